"""What the exporter serves is what Debian's ethtool prints in the same second, also while interfaces come, go and change."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.stage import PROGRAM, Stage, eventually
from tests.namespaces import Namespace

ALL = ("--collector.ethtool.device-include=.*", "--collector.ethtool.raw-include=.*", "--collector.ethtool.max-age=0")
METRICS = "http://127.0.0.1:10073/metrics"
Raw = dict[str, dict[str, float]]


def raw(page: str) -> Raw:
    """Return the raw statistics of each interface."""
    found: Raw = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == "fabric_ethtool_raw":
                found.setdefault(sample.labels["netdev"], {})[sample.labels["stat"]] = sample.value
    return found


def printed(text: str) -> dict[str, float]:
    """Return what ``ethtool -S`` printed."""
    lines = [line.strip().rpartition(": ") for line in text.splitlines() if not line.startswith("NIC statistics")]
    return {name: float(value) for name, _, value in lines if name}


def test_a_veth_after_traffic(stage: Stage) -> None:
    stage.exporter(*ALL)
    stage.space.send_frames(40)

    def same() -> bool | None:
        """Frames settle within moments; two readings with nothing between them must agree."""
        before = {name: printed(stage.space.run("ethtool", "-S", name)) for name in ("veth0", "peer0")}
        served = raw(stage.space.run("curl", "--silent", METRICS))
        after = {name: printed(stage.space.run("ethtool", "-S", name)) for name in ("veth0", "peer0")}
        if before != after:
            return None
        assert served == after
        return sum(value for name, value in after["peer0"].items() if name.endswith("xdp_packets")) == 40 or None

    eventually(same, "40 frames counted by peer0")


def test_the_interfaces_of_this_host(tmp_path: Path) -> None:
    """Physical interfaces of the machine that runs the tests: every counter lies between ethtool's before and after."""
    names = [path.parent.name for path in Path("/sys/class/net").glob("*/device")]

    def ethtool() -> Raw:
        texts = {
            name: subprocess.run(["ethtool", "-S", name], capture_output=True, text=True, check=False).stdout
            for name in names
        }
        return {name: printed(text) for name, text in texts.items() if "NIC statistics" in text}

    before = ethtool()
    command = [str(PROGRAM), "once", "--collector.ethtool.raw-include=.*"]
    served = raw(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    after = ethtool()
    assert served.keys() == before.keys()
    for name, statistics in served.items():
        assert statistics.keys() == before[name].keys()
        for statistic, value in statistics.items():
            low, high = sorted((before[name][statistic], after[name][statistic]))
            assert low <= value <= high, (name, statistic)


def add_pair(space: Namespace, name: str, queues: int) -> None:
    count = f"numrxqueues {queues} numtxqueues {queues}"
    space.ip(f"link add {name} {count} type veth peer name {name}p {count}")


def queues_of(statistics: dict[str, float]) -> int:
    return len({found[1] for stat in statistics if (found := re.match(r"rx_queue_(\d+)_", stat))})


def test_two_hundred_scrapes_while_everything_changes(stage: Stage) -> None:
    """Queue counts, names and interfaces change at every turn; veth0 and peer0 are served at every turn, untouched."""
    space = stage.space
    add_pair(space, "many", 8)
    exporter = stage.exporter(*ALL)
    space.send_frames(7)
    settled = eventually(
        lambda: (
            (served := raw(space.run("curl", "--silent", METRICS)))["peer0"].get("rx_queue_0_xdp_packets", 0)
            + sum(served["peer0"].get(f"rx_queue_{queue}_xdp_packets", 0) for queue in (1, 2, 3))
            == 7
            or None
        ),
        "7 frames",
    )
    assert settled
    name, seen_queues, seen_names = "many", set(), set()
    for turn in range(200):
        match turn % 5:
            case 0:
                queues = 1 + turn % 8
                space.run("ethtool", "-L", name, "rx", str(queues), "tx", str(queues))
            case 1:
                space.ip(f"link set {name} name many{turn}")
                name = f"many{turn}"
            case 2:
                add_pair(space, f"new{turn}", 1 + turn % 4)
            case 3:
                space.ip(f"link delete new{turn - 1}")
            case 4:
                # A name is used again by another interface, with another number of queues.
                space.ip(f"link delete {name}")
                add_pair(space, name, 8)
        page = space.run("curl", "--silent", "--fail", METRICS)
        served = raw(page)
        assert sum(served["peer0"][f"rx_queue_{queue}_xdp_packets"] for queue in range(4)) == 7
        assert queues_of(served["veth0"]) == queues_of(served["peer0"]) == 4
        for netdev, statistics in served.items():
            assert statistics.get("peer_ifindex", 0) > 0, f"{netdev}: another counter's value stands in peer_ifindex"
            seen_queues.add(queues_of(statistics))
            seen_names.add(netdev)
        assert len(re.findall(r'^fabric_netdev_up\{netdev="(?:veth0|peer0)"\} 1$', page, re.M)) == 2
    assert exporter.process.poll() is None
    assert len(seen_queues) > 2, "changes of the queue count were never seen"
    assert len(seen_names) > 4, "renamed and new interfaces were never seen"
    assert "Traceback" not in exporter.log.read_text()


def test_a_renamed_interface_is_found_by_its_new_name(stage: Stage) -> None:
    stage.exporter(*ALL)
    stage.space.ip("link set veth0 name lan0")

    def renamed() -> set[str] | None:
        names = set(raw(stage.space.run("curl", "--silent", METRICS)))
        return names if names == {"lan0", "peer0"} else None

    eventually(renamed, "lan0 in place of veth0")


def test_flaps_faster_than_the_scrape_are_all_counted(stage: Stage) -> None:
    stage.exporter(*ALL)

    def served(name: str) -> float | None:
        page = stage.space.run("curl", "--silent", f"{METRICS}?collect%5B%5D=netdevs")
        series = f'{name}{{netdev="veth0"}} '
        return next((float(line[len(series) :]) for line in page.splitlines() if line.startswith(series)), None)

    def count() -> float:
        return served("fabric_port_carrier_changes_total") or 0

    assert served("fabric_port_last_down_timestamp_seconds") is None
    began = time.time()
    before = count()
    stage.space.batch(["link set peer0 down", "link set peer0 up"] * 20)
    eventually(lambda: True if count() == before + 40 else None, "40 carrier changes")
    went_down = eventually(lambda: served("fabric_port_last_down_timestamp_seconds"), "when the link was last down")
    assert began <= went_down <= time.time()
