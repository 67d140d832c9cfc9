"""Counters of a host and gauges of what lives, as a Prometheus server reads them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from exporter.catalogue import nccl
from exporter.model import Inventory, Metric, RdmaPort, Reading
from exporter.nccl.evidence import Evidence
from exporter.nccl.facts import (
    AsyncEvent,
    Channel,
    Completion,
    Device,
    Devices,
    Fact,
    Failure,
    Init,
    Network,
    Plugin,
    Record,
    Setting,
    Shape,
    Version,
)
from exporter.nccl.metrics import MOST_LOGS, MOST_SERIES, LogInfo, readings
from exporter.nccl.places import UNKNOWN, Port, local, ports_of
from exporter.nccl.state import News
from exporter.nccl.totals import Count, Totals
from exporter.sources.base import Shapes
from exporter.web.render import Renderer

HERE = "node-1"
HOST = Inventory(
    ports=(RdmaPort("mlx5_0", 1, link_layer="InfiniBand"), RdmaPort("mlx5_1", 1, link_layer="InfiniBand")),
    missing=(RdmaPort("mlx5_9", 1, link_layer="InfiniBand"),),
)
TWO = Devices(
    "IB",
    (
        Device(0, "mlx5_0", 1, "IB", (("mlx5_0", 1),)),
        Device(1, "mlx5_1", 1, "IB", (("mlx5_1", 1),)),
        Device(2, "mlx5_0+mlx5_1", 1, "IB", (("mlx5_0", 1), ("mlx5_1", 1))),
        Device(3, "mlx5_7", 1, "IB", (("mlx5_7", 1),)),
    ),
    True,
    "eth0",
    "192.0.2.1",
)


def line(host: str = HERE, pid: int = 100) -> Record:
    return Record("INFO", "", host, pid, pid, 0)


def init(rank: int, pointer: str = "0xa", bus: str = "1b000", stage: str = "start") -> Init:
    return Init(stage, pointer, rank, 16, rank, rank, bus, "0x1")  # type: ignore[arg-type]  # one of the four


def channel(direction: str, sender: int, receiver: int, device: int = 0, path: str = "gdr") -> Channel:
    network = "Socket" if path == "socket" else "IB"
    return Channel(direction, network, device, path, 0, 0, sender, receiver)  # type: ignore[arg-type]  # as printed


def taken(*pairs: tuple[Record, Fact], at: float = 1000.0, replaying: bool = False) -> Evidence:
    evidence = Evidence()
    evidence.replaying = replaying
    for record, fact in pairs:
        evidence.take(record, fact, at)
    return evidence


def values(found: list[Reading], name: str) -> dict[tuple[str, ...], float]:
    """Values of a family by the values of its labels."""
    return {
        tuple(value for _, value in sample.labels): sample.value
        for reading in found
        for sample in reading.samples()
        if sample.metric.name == name
    }


def read(
    *logs: tuple[str, Evidence, LogInfo], now: float = 1010.0, totals: Totals | None = None, inventory: Inventory = HOST
) -> list[Reading]:
    return readings(logs, inventory, now, Shapes(), totals=totals or Totals(), hostname=HERE)


def absorbed(*evidences: Evidence, inventory: Inventory = HOST) -> Totals:
    totals = Totals()
    for evidence in evidences:
        totals.absorb(evidence.drain(), evidence.hosts, HERE, inventory)
    return totals


# Names


@pytest.mark.parametrize(
    ("hca", "port", "expected"),
    [
        ("mlx5_0", None, (Port("mlx5_0", "1"),)),
        ("mlx5_0:1", None, (Port("mlx5_0", "1"),)),
        ("mlx5_0", 1, (Port("mlx5_0", "1"),)),
        ("mlx5_0+mlx5_1", None, (Port("mlx5_0", "1"), Port("mlx5_1", "1"))),
        ("mlx5_0_dma", None, (Port("mlx5_0", "1"),)),
        ("mlx5_9", None, (Port("mlx5_9", "1"),)),
        ("mlx5_7", None, (UNKNOWN,)),
        ("", None, (UNKNOWN,)),
    ],
)
def test_ports_of_a_name(hca: str, port: int | None, expected: tuple[Port, ...]) -> None:
    assert ports_of(hca, HOST, port) == expected


def test_a_device_of_two_ports_needs_the_number() -> None:
    dual = Inventory(ports=(RdmaPort("mlx4_0", 1), RdmaPort("mlx4_0", 2)))
    assert ports_of("mlx4_0", dual) == (Port("mlx4_0", ""),)
    assert ports_of("mlx4_0:2", dual) == (Port("mlx4_0", "2"),)
    assert ports_of("mlx4_0", dual, 2) == (Port("mlx4_0", "2"),)


def test_a_log_of_one_host_is_ours_whatever_it_is_called() -> None:
    assert local("pod-7f9c", ["pod-7f9c"], HERE)
    assert local("node-1", ["node-1", "node-2"], "node-1.example.org")
    assert not local("node-2", ["node-1", "node-2"], HERE)


# Counters


def completion(status: int, hca: str = "mlx5_0") -> Completion:
    return Completion(status, "X", 129, "192.0.2.9", hca)


def test_counters_begin_at_zero_and_an_error_has_a_time() -> None:
    found = read(totals=absorbed(taken((line(), completion(12)), at=1234.5)))
    errors = values(found, "fabric_nccl_completion_errors_total")
    assert len(errors) == 4 * 7
    assert errors["mlx5_0", "1", "12"] == 1
    assert errors["mlx5_9", "1", "other"] == 0
    assert errors["", "", "4"] == 0
    assert sum(errors.values()) == 1
    assert values(found, "fabric_nccl_completion_error_last_timestamp_seconds") == {("mlx5_0", "1", "12"): 1234.5}
    assert values(found, "fabric_nccl_async_events_total")["mlx5_1", "1", "port_error"] == 0
    assert values(found, "fabric_nccl_failures_total")["memlock",] == 0


def test_flushes_are_apart_and_other_statuses_together() -> None:
    found = read(totals=absorbed(taken((line(), completion(5)), (line(), completion(1)), (line(), completion(21)))))
    assert values(found, "fabric_nccl_flush_errors_total")["mlx5_0", "1"] == 1
    errors = values(found, "fabric_nccl_completion_errors_total")
    assert errors["mlx5_0", "1", "other"] == 2
    assert sum(errors.values()) == 2


def test_a_merged_nic_counts_for_each_member_and_an_unknown_one_as_unknown() -> None:
    found = read(totals=absorbed(taken((line(), completion(12, "mlx5_0+mlx5_1")), (line(), completion(12, "mlx5_7")))))
    errors = values(found, "fabric_nccl_completion_errors_total")
    assert {key: value for key, value in errors.items() if value} == {
        ("mlx5_0", "1", "12"): 1,
        ("mlx5_1", "1", "12"): 1,
        ("", "", "12"): 1,
    }


def test_errors_of_other_hosts_in_one_log_are_not_our_ports() -> None:
    found = read(totals=absorbed(taken((line(), completion(12)), (line("node-2"), completion(12)))))
    errors = values(found, "fabric_nccl_completion_errors_total")
    assert (errors["mlx5_0", "1", "12"], errors["", "", "12"]) == (1, 1)


def test_a_flap_told_in_eight_logs_is_one() -> None:
    event = AsyncEvent("port_error", "mlx5_0", 1, False)
    totals = absorbed(*(taken((line(f"pod-{pid}", pid), event)) for pid in range(8)))
    assert values(read(totals=totals), "fabric_nccl_async_events_total")["mlx5_0", "1", "port_error"] == 1
    later = taken((line("pod-1", 1), event), at=2000.0)
    totals.absorb(later.drain(), later.hosts, HERE, HOST)
    assert totals.events[Port("mlx5_0", "1"), "port_error"] == Count(2, 2000.0)


def test_what_follows_from_an_error_is_no_failure() -> None:
    totals = absorbed(
        taken(
            (line(), Failure("memlock", "x", 12)),
            (line(), Failure("proxy", "y", consequence=True)),
            (line(), Failure("new", "z")),
        )
    )
    failures = values(read(totals=totals), "fabric_nccl_failures_total")
    assert {key: value for key, value in failures.items() if value} == {("memlock",): 1, ("other",): 1}


def test_totals_go_on() -> None:
    totals = absorbed(taken((line(), completion(12)), (line(), AsyncEvent("port_error", "mlx5_0", 1, False))))
    totals.log_bytes = 5
    assert Totals.restore(totals.state()) == totals
    with pytest.raises(ValueError, match=r".+"):
        Totals.restore(b"\xc1")


def test_hostile_news_do_not_grow_the_totals() -> None:
    totals = Totals()
    for n in range(2000):
        news = News()
        news.completions["h", f"hca{n}", n] = [1, 0.0]
        news.failures[f"f{n}"] = [1, 0.0]
        totals.absorb(news, ["h"], HERE, HOST)
    assert len(totals.completions) <= 7
    assert len(totals.failures) == 1


# Gauges


def test_channels_of_a_living_communicator() -> None:
    evidence = taken(
        (line(), TWO),
        (line(), init(4)),
        (line(), channel("send", 4, 12)),
        (line(), channel("receive", 12, 4)),
        (line(), channel("receive", 11, 4, device=1, path="host")),
        (line(), channel("send", 4, 13, device=2)),
        (line(), channel("send", 4, 14, device=3)),
    )
    found = read(("job", evidence, LogInfo()))
    assert values(found, "fabric_nccl_channels") == {
        ("job", "IB", "mlx5_0", "1", "gdr"): 3,
        ("job", "IB", "mlx5_1", "1", "host"): 1,
        ("job", "IB", "mlx5_1", "1", "gdr"): 1,
        ("job", "IB", "", "", "gdr"): 1,
    }


def test_a_link_of_which_both_ends_are_here_counts_once() -> None:
    evidence = taken(
        (line(), TWO),
        (line(pid=101), TWO),
        (line(), init(0)),
        (line(pid=101), init(1, "0xb")),
        (line(), channel("send", 0, 1)),
        (line(pid=101), channel("receive", 0, 1)),
    )
    assert list(values(read(("", evidence, LogInfo())), "fabric_nccl_channels").values()) == [1]


def test_channels_of_other_hosts_in_one_log_are_not_ours() -> None:
    evidence = taken(
        (line(), TWO),
        (line("node-2"), TWO),
        (line(), init(0)),
        (line("node-2"), init(8)),
        (line(), channel("send", 0, 8)),
        (line("node-2"), channel("receive", 0, 8)),
        (line("node-2"), channel("send", 8, 9)),
    )
    assert values(read(("", evidence, LogInfo())), "fabric_nccl_channels") == {("", "IB", "mlx5_0", "1", "gdr"): 1}
    strange = readings([("", evidence, LogInfo())], HOST, 1010.0, Shapes(), totals=Totals(), hostname="login-1")
    assert values(strange, "fabric_nccl_channels") == {("", "IB", "", "", "gdr"): 2}


def test_the_life_of_gauges() -> None:
    evidence = taken((line(), TWO), (line(), init(4)), (line(), channel("send", 4, 12)))
    log = ("", evidence, LogInfo())

    def shown(*logs: tuple[str, Evidence, LogInfo], now: float = 1010.0) -> float:
        return sum(values(read(*logs, now=now), "fabric_nccl_channels").values())

    # silent for a day, but nobody else uses the GPU
    assert shown(log, now=1000.0 + 86400) == 1
    # another process of the same GPU
    other = taken((line(pid=200), init(0, "0xb")), at=1500.0)
    assert shown(log, ("", other, LogInfo()), now=1800.0) == 1
    assert shown(log, ("", other, LogInfo()), now=1901.0) == 0
    # another GPU
    elsewhere = taken((line(pid=200), init(0, "0xb", bus="2c000")), at=1500.0)
    assert shown(log, ("", elsewhere, LogInfo()), now=90000.0) == 1
    # its writer is known to be gone
    assert shown(("", evidence, LogInfo(alive=False))) == 0
    evidence.take(line(), init(4, stage="aborted"), 1600.0)
    assert shown(log) == 0


def test_a_log_read_again_at_start_raises_nothing_until_somebody_writes() -> None:
    evidence = taken((line(), TWO), (line(), init(4)), (line(), channel("send", 4, 12)), replaying=True)
    assert values(read(("", evidence, LogInfo())), "fabric_nccl_channels") == {}
    assert values(read(("", evidence, LogInfo())), "fabric_nccl_info") == {}
    assert values(read(("", evidence, LogInfo(alive=True))), "fabric_nccl_channels") != {}
    evidence.replaying = False
    evidence.take(line(), Network("IB"), 1001.0)
    assert values(read(("", evidence, LogInfo())), "fabric_nccl_channels") != {}


def test_sockets_on_a_host_with_rdma() -> None:
    evidence = taken((line(), init(4)), (line(), channel("send", 4, 12, path="socket")))
    fallback = "fabric_nccl_socket_fallback"
    assert values(read(("j", evidence, LogInfo())), fallback) == {("j",): 1}
    assert values(read(("j", evidence, LogInfo()), inventory=Inventory()), fallback) == {("j",): 0}
    assert values(read(("j", evidence, LogInfo())), "fabric_nccl_channels") == {("j", "Socket", "", "", "socket"): 1}
    one_host = taken((line(), Network("Socket")), (line(), init(0)), (line(), Shape("0xa", 8, 1, 8)))
    assert values(read(("j", one_host, LogInfo())), fallback) == {("j",): 0}
    two_hosts = taken((line(), Network("Socket")), (line(), init(0)), (line(), Shape("0xa", 16, 2, 8)))
    assert values(read(("j", two_hosts, LogInfo())), fallback) == {("j",): 1}


def test_what_runs() -> None:
    evidence = taken(
        (line(), Version("NCCL", "2.27.7", "cuda13.0")),
        (line(), Plugin("net", "IBext_v10", "v10", "loaded")),
        (line(), Network("IBext_v10")),
        (line(), Setting("NCCL_NET_GDR_LEVEL", "5")),
        (line(), init(0)),
    )
    found = read(("job", evidence, LogInfo(lag=7, last_line=1000.0)))
    assert values(found, "fabric_nccl_info") == {("job", "2.27.7+cuda13.0", "IBext_v10", "IBext_v10"): 1}
    assert values(found, "fabric_nccl_gdr_level") == {("job", "SYS"): 1}
    assert values(found, "fabric_nccl_log_lag_bytes") == {("job",): 7}
    assert values(found, "fabric_nccl_log_last_line_timestamp_seconds") == {("job",): 1000.0}


def test_files_of_one_job_are_added() -> None:
    logs = [
        (
            "job",
            taken(
                (line(pid=pid), TWO),
                (line(pid=pid), init(pid, bus=f"{pid}b000")),
                (line(pid=pid), channel("send", pid, 12)),
            ),
            LogInfo(1, pid),
        )
        for pid in range(1, 5)
    ]
    found = read(*logs)
    assert values(found, "fabric_nccl_channels") == {("job", "IB", "mlx5_0", "1", "gdr"): 4}
    assert values(found, "fabric_nccl_log_lag_bytes") == {("job",): 4}
    assert values(found, "fabric_nccl_log_last_line_timestamp_seconds") == {("job",): 4}


def test_fifty_jobs_and_the_rest() -> None:
    evidence = Evidence()
    found = read(*((f"job-{n}", evidence, LogInfo(last_line=float(n + 1))) for n in range(60)))
    lags = values(found, "fabric_nccl_log_lag_bytes")
    assert len(lags) == MOST_LOGS
    assert ("other",) in lags
    assert ("job-59",) in lags
    assert ("job-0",) not in lags


def test_at_most_500_series_counters_first() -> None:
    ways = [(device, path) for device in range(4) for path in ("gdr", "host")]
    logs = []
    for n in range(60):
        channels = [(line(pid=n), channel("send", n, 70 + i, *way)) for i, way in enumerate(ways)]
        evidence = taken((line(pid=n), TWO), (line(pid=n), init(n, bus=f"{n:x}000")), *channels)
        logs.append((f"job-{n}", evidence, LogInfo(last_line=float(n + 1))))
    found = read(*logs)
    assert sum(len(reading.values) for reading in found) == MOST_SERIES
    assert len(values(found, "fabric_nccl_completion_errors_total")) == 28
    assert ("job-59", "IB", "mlx5_0", "1", "gdr") in values(found, "fabric_nccl_channels")


def test_processes_that_hold_gpus() -> None:
    found = readings([], HOST, 0.0, Shapes(), totals=Totals(), gpu_processes=(3, 1))
    assert values(found, "fabric_nccl_gpu_processes") == {("yes",): 3, ("no",): 1}
    assert values(read(), "fabric_nccl_gpu_processes") == {}


def test_the_exposition_is_clean_for_promtool() -> None:
    evidence = taken(
        (line(), Version("NCCL", "2.27.7")),
        (line(), TWO),
        (line(), Setting("NCCL_NET_GDR_LEVEL", "SYS")),
        (line(), init(4)),
        (line(), channel("send", 4, 12)),
        (line(), completion(12)),
        (line(), AsyncEvent("port_error", "mlx5_0", 1, False)),
        (line(), Failure("shm", "x", 28)),
    )
    totals = absorbed(evidence)
    found = readings(
        [("job", evidence, LogInfo(1, 2.0))], HOST, 1010.0, Shapes(), totals=totals, hostname=HERE, gpu_processes=(1, 0)
    )
    served = {sample.metric for reading in found for sample in reading.samples()}
    of_files = {"LOGS", "LOG_CUT_LINES", "LOG_TRUNCATIONS"}  # those are whose that follows the logs
    declared = {value for name, value in vars(nccl).items() if isinstance(value, Metric) and name not in of_files}
    assert served - {nccl.LOGS} == declared
    page = Renderer().render(found, openmetrics=False)
    assert b'fabric_nccl_completion_errors_total{device="",port="",status="12"} 0' in page
    promtool = shutil.which("promtool")
    assert promtool, "promtool is not installed (make tools)"
    checked = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr.decode()) == (0, "")
