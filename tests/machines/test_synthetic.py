"""The synthetic machines in this folder are what the script makes, and no two of their counters can be taken for another."""

from __future__ import annotations

import collections

import pytest
import synthetic
from machines import MACHINES, machine_names, open_machine

from exporter.discovery import discover


@pytest.mark.parametrize("name", sorted(synthetic.SYNTHETIC))
def test_the_files_are_what_the_script_makes(name: str) -> None:
    made = synthetic.files(name)
    found = {
        path.relative_to(MACHINES / name).as_posix(): path for path in (MACHINES / name).rglob("*") if path.is_file()
    }
    found.pop("expected.prom", None)
    assert {file: path.read_text() for file, path in found.items()} == made


@pytest.mark.parametrize("name", sorted(synthetic.SYNTHETIC))
def test_counters_are_told_apart(name: str) -> None:
    """Of the counters that a name does not limit to few bits, no two of a machine have one value."""
    kernel = open_machine(name)
    limited = synthetic.PERCENT | synthetic.FOUR_BITS | synthetic.EIGHT_BITS | {"ena_srd_mode"}
    values = collections.Counter(
        value
        for netdev in discover(kernel).netdevs
        for counter, value in zip(*kernel.ethtool.statistics(netdev.name), strict=True)
        if counter not in limited and value
    )
    assert [value for value, times in values.items() if times > 1] == []


def test_the_large_hosts() -> None:
    """What they are made for: roles, a bond with its members, a virtual function, a dark port, 32 devices without interfaces."""
    roce = discover(open_machine("mlx5-roce-8nic"))
    assert len(roce.gpus) == 8
    assert {port.device: (port.role, port.function, port.members) for port in roce.ports} == {
        **{f"mlx5_{number}": ("fabric", "pf", ()) for number in range(7)},
        "mlx5_7": ("unknown", "pf", ()),
        "mlx5_8": ("unknown", "vf", ()),
        "mlx5_bond_0": ("frontend", "pf", ("ens9f0np0", "ens9f1np1")),
    }
    efa = discover(open_machine("efa-p5"))
    assert [(port.role, port.netdev, port.link_layer) for port in efa.ports] == [("fabric", "", "Unknown")] * 32
    assert len({port.pcie_root for port in efa.ports}) == len(efa.gpus) == 8
    assert [(netdev.name, netdev.driver, netdev.role) for netdev in efa.netdevs] == [("enp16s31", "ena", "frontend")]


def test_every_machine_opens_without_problems() -> None:
    for name in machine_names():
        open_machine(name)
