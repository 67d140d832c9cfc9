"""Port and interface families join by what the info metrics say, in Prometheus itself: a bond, plain interfaces, EFA."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import golden
import pytest
from prometheus_client.parser import text_string_to_metric_families

Sample = tuple[str, dict[str, str], float]

HOSTS = {"roce": "mlx5-roce-8nic", "efa": "efa-p5", "plain": "node-2eth-no-rdma"}
"""``instance`` of each host: RoCE ports, a bond of two and a virtual function; EFA ports; two interfaces without RDMA."""
PORT = "instance, device, port"


def samples(machine: str) -> list[Sample]:
    text = (golden.FOLDER / machine / "expected.prom").read_text()
    return [
        (sample.name, dict(sample.labels), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


FLEET = [
    (name, {"instance": instance, **labels}, value)
    for instance, machine in HOSTS.items()
    for name, labels, value in samples(machine)
]


def fleet(metric: str) -> list[tuple[dict[str, str], float]]:
    return [(labels, value) for name, labels, value in FLEET if name == metric]


def series(name: str, labels: dict[str, str]) -> str:
    return name + "{" + ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items()) + "}"


def evaluated(
    folder: Path,
    expression: str,
    expected: Iterable[tuple[dict[str, str], float]],
    more: Iterable[Sample] = (),
) -> None:
    """Have promtool evaluate an expression over the fleet's series and compare; whatever it says is a failure."""
    given = [*FLEET, *more]
    names = {name for name, _, _ in given if name in expression}
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [
            {"series": series(name, labels), "values": f"{value!r}x1"} for name, labels, value in given if name in names
        ],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": "1m",
                "exp_samples": [{"labels": series("", labels), "value": value} for labels, value in expected],
            }
        ],
    }
    path = folder / "test.json"
    path.write_text(json.dumps({"tests": [test]}))  # JSON is YAML
    done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_port_gets_its_role_and_interface(tmp_path: Path) -> None:
    """The bond's port has the bond as its interface, an EFA port has none."""
    info = {(labels["instance"], labels["device"], labels["port"]): labels for labels, _ in fleet("fabric_port_info")}
    expected = []
    for labels, value in fleet("fabric_port_up"):
        known = info[labels["instance"], labels["device"], labels["port"]]
        expected.append((labels | {key: known[key] for key in ("netdev", "role") if key in known}, value))
    interfaces = {labels["device"]: labels.get("netdev") for labels, _ in expected}
    assert interfaces["mlx5_bond_0"] == "bond0"
    assert interfaces["rdmap25s0"] is None
    evaluated(
        tmp_path,
        f"fabric_port_up * on ({PORT}) group_left (netdev, role) max by ({PORT}, netdev, role) (fabric_port_info)",
        expected,
    )


def test_an_interface_gets_its_role_and_its_bond(tmp_path: Path) -> None:
    info = {(labels["instance"], labels["netdev"]): labels for labels, _ in fleet("fabric_netdev_info")}
    expected = []
    for labels, value in fleet("fabric_netdev_up"):
        known = info[labels["instance"], labels["netdev"]]
        expected.append((labels | {key: known[key] for key in ("master", "role") if key in known}, value))
    masters = {labels["netdev"]: labels.get("master") for labels, _ in expected}
    assert [name for name, master in masters.items() if master == "bond0"] == ["ens9f0np0", "ens9f1np1"]
    evaluated(
        tmp_path,
        "fabric_netdev_up * on (instance, netdev) group_left (master, role)"
        " max by (instance, netdev, master, role) (fabric_netdev_info)",
        expected,
    )


def test_what_interfaces_count_meets_what_ports_count(tmp_path: Path) -> None:
    """Link downs of every interface of a port beside the port's state: two members and the bond are one port."""
    downs: Counter[tuple[str, str, str]] = Counter()
    members: Counter[str] = Counter()
    for labels, value in fleet("fabric_port_link_downs_total"):
        if "device" in labels:
            downs[labels["instance"], labels["device"], labels["port"]] += int(value)
            members[labels["device"]] += 1
    assert members["mlx5_bond_0"] == 3
    up = {(labels["instance"], labels["device"], labels["port"]) for labels, value in fleet("fabric_port_up") if value}
    expected = [
        ({"instance": instance, "device": device, "port": port}, float(count))
        for (instance, device, port), count in downs.items()
        if (instance, device, port) in up
    ]
    assert len(expected) > 8
    evaluated(
        tmp_path,
        f"sum by ({PORT}) (fabric_port_link_downs_total{{device!=''}}) and on ({PORT}) fabric_port_up == 1",
        expected,
    )


FABRIC_ONLY = f'fabric_received_discards_total and on ({PORT}) max by ({PORT}) (fabric_port_info{{role="fabric"}})'


def discards(*devices: str) -> list[tuple[dict[str, str], float]]:
    """Return what the expression above must give: the discards of those devices on the RoCE host."""
    found = [(labels, value) for labels, value in fleet("fabric_received_discards_total") if "device" in labels]
    named = {"__name__": "fabric_received_discards_total"}
    return [(labels | named, value) for labels, value in found if labels["device"] in devices]


def test_only_the_fabric_is_looked_at(tmp_path: Path) -> None:
    """Not the bond, the virtual function, or the port whose role is unknown for want of a cable."""
    evaluated(tmp_path, FABRIC_ONLY, discards(*(f"mlx5_{number}" for number in range(7))))


def test_a_role_that_changed_on_one_host_breaks_nothing(tmp_path: Path) -> None:
    """Both descriptions of a port are there for a moment."""
    (unplugged,) = [labels for labels, _ in fleet("fabric_port_info") if labels["device"] == "mlx5_7"]
    new = ("fabric_port_info", unplugged | {"role": "fabric"}, 1.0)
    evaluated(tmp_path, FABRIC_ONLY, discards(*(f"mlx5_{number}" for number in range(8))), [new])


@pytest.mark.parametrize("name", golden.names())
@pytest.mark.parametrize(
    ("metric", "identity"), [("fabric_port_info", ("device", "port")), ("fabric_netdev_info", ("netdev",))]
)
def test_one_info_series_for_each(name: str, metric: str, identity: tuple[str, ...]) -> None:
    seen = Counter(tuple(labels[key] for key in identity) for family, labels, _ in samples(name) if family == metric)
    assert set(seen.values()) <= {1}
