"""Ports, interfaces and how they join, on captures written for one trait each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from exporter.discovery import Filter, PortRule, Rules, discover
from exporter.kernel import Kernel
from exporter.kernel.captured import open_capture
from exporter.kernel.recording import record
from exporter.model import Inventory

ROOT = "devices/pci0000:20/0000:20:01.0"


def machine(tmp_path: Path, *lines: str, **files: str) -> Kernel:
    """Return a captured kernel of these lines of sys.txt, and of more files (``ip_route='...'`` is ip-route.json)."""
    (tmp_path / "sys.txt").write_text("\n".join(lines) + "\n")
    for name, text in files.items():
        (tmp_path / f"{name.replace('_', '-')}.json").write_text(text)
    return open_capture(tmp_path)


def netdev(name: str, index: int, *more: str, pci: str = "") -> list[str]:
    """Return the lines of an interface, on a PCI function where one is given."""
    folder = f"class/net/{name}"
    lines = [f"{folder}/ifindex: {index}", f"{folder}/operstate: up", f"{folder}/carrier: 1", f"{folder}/dev_port: 0"]
    if pci:
        lines.append(f"{folder}/device -> ../../../{pci}")
    return [*lines, *(f"{folder}/{line}" for line in more)]


def rdma(name: str, *more: str, ports: int = 1, pci: str = "", link_layer: str = "Ethernet") -> list[str]:
    """Return the lines of an RDMA device whose ports are up."""
    folder = f"class/infiniband/{name}"
    lines = [f"{folder}/node_guid: 0c42:a103:00aa:{name[-1]}{name[-1]}00", f"{folder}/fw_ver: 28.41.1000"]
    if pci:
        lines.append(f"{folder}/device -> ../../../{pci}")
    for port in range(1, ports + 1):
        lines += [
            f"{folder}/ports/{port}/state: 4: ACTIVE",
            f"{folder}/ports/{port}/phys_state: 5: LinkUp",
            f"{folder}/ports/{port}/link_layer: {link_layer}",
        ]
    return [*lines, *(f"{folder}/{line}" for line in more)]


def function(pci: str, vendor: str, pci_class: str, numa: int = 0, *more: str) -> list[str]:
    """Return the lines of a PCI function."""
    address = pci.rpartition("/")[2]
    return [
        f"{pci}/vendor: {vendor}",
        f"{pci}/class: {pci_class}",
        f"{pci}/numa_node: {numa}",
        f"bus/pci/devices/{address} -> ../../../{pci}",
        *(f"{pci}/{line}" for line in more),
    ]


NIC = f"{ROOT}/0000:23:00.0"
GPU = f"{ROOT}/0000:24:00.0"


def gpu_host(tmp_path: Path, *more: str, **files: str) -> Kernel:
    """A host with one NIC under the same root port as a GPU, and a front end NIC elsewhere."""
    front = "devices/pci0000:00/0000:00:03.0"
    return machine(
        tmp_path,
        *function(NIC, "0x15b3", "0x020000", 0, "driver -> ../../../../bus/pci/drivers/mlx5_core"),
        *function(GPU, "0x10de", "0x030200"),
        *function(front, "0x15b3", "0x020000", 1),
        *rdma("mlx5_0", "ports/1/gid_attrs/ndevs/0: eth0", pci=NIC),
        *rdma("mlx5_1", "ports/1/gid_attrs/ndevs/0: eth1", pci=front),
        *netdev("eth0", 4, pci=NIC),
        *netdev("eth1", 5, pci=front),
        *more,
        **files,
    )


def test_a_port_and_its_interface_find_each_other(tmp_path: Path) -> None:
    found = discover(gpu_host(tmp_path))
    port = found.ports[0]
    assert (port.device, port.port, port.netdev, port.driver) == ("mlx5_0", 1, "eth0", "mlx5_core")
    assert (port.pci_address, port.pcie_root, port.numa_node) == ("0000:23:00.0", "pci0000:20", 0)
    assert (port.function, port.link_layer, port.firmware_version) == ("pf", "Ethernet", "28.41.1000")
    interface = found.netdev("eth0")
    assert interface is not None
    assert interface.labels == (("device", "mlx5_0"), ("port", "1"), ("netdev", "eth0"))
    assert found.gpus == ("0000:24:00.0",)


def test_a_port_with_a_gpu_under_the_same_root_is_fabric_and_the_default_route_is_frontend(tmp_path: Path) -> None:
    route = '[{"dst":"default","gateway":"192.0.2.1","dev":"eth1","metric":100}]'
    found = discover(gpu_host(tmp_path, ip_route=route))
    assert {port.device: port.role for port in found.ports} == {"mlx5_0": "fabric", "mlx5_1": "frontend"}
    assert {netdev.name: netdev.role for netdev in found.netdevs} == {"eth0": "fabric", "eth1": "frontend"}


def test_a_port_far_from_every_gpu_is_unknown(tmp_path: Path) -> None:
    assert discover(gpu_host(tmp_path)).ports[1].role == "unknown"


def test_a_fabric_port_that_lost_its_carrier_is_still_a_fabric_port(tmp_path: Path) -> None:
    up = discover(gpu_host(tmp_path))
    text = (tmp_path / "sys.txt").read_text()
    down = text.replace("4: ACTIVE", "1: DOWN").replace("5: LinkUp", "3: Disabled").replace("carrier: 1", "carrier: 0")
    (tmp_path / "sys.txt").write_text(down)
    kernel = open_capture(tmp_path)
    assert discover(kernel).ports[0].role == "unknown"
    assert discover(kernel, previous=up).ports[0].role == "fabric"


def test_the_configuration_has_the_last_word_on_roles(tmp_path: Path) -> None:
    rules = Rules(ports=(PortRule(re.compile("mlx5_1|nothing"), "storage", "3", "b"),))
    port = discover(gpu_host(tmp_path), rules).ports[1]
    assert (port.role, port.rail, port.plane) == ("storage", "3", "b")


def test_a_bond_has_its_members_counters(tmp_path: Path) -> None:
    second = f"{ROOT}/0000:23:00.1"
    found = discover(
        machine(
            tmp_path,
            *function(NIC, "0x15b3", "0x020000"),
            *function(second, "0x15b3", "0x020000"),
            *rdma("mlx5_bond_0", "ports/1/gid_attrs/ndevs/1: bond0", pci=NIC),
            *netdev("bond0", 9, "bonding/slaves: eth0 eth1"),
            *netdev("eth0", 4, "master -> ../bond0", pci=NIC),
            *netdev("eth1", 5, "master -> ../bond0", pci=second),
        )
    )
    assert (found.ports[0].netdev, found.ports[0].members) == ("bond0", ("eth0", "eth1"))
    for name, master in (("eth0", "bond0"), ("eth1", "bond0"), ("bond0", "")):
        interface = found.netdev(name)
        assert interface is not None
        assert (interface.device, interface.port, interface.master) == ("mlx5_bond_0", 1, master)


def test_virtual_functions_and_subfunctions_are_told_from_their_parents(tmp_path: Path) -> None:
    virtual, sub = f"{ROOT}/0000:23:00.2", f"{NIC}/mlx5_core.sf.4"
    found = discover(
        machine(
            tmp_path,
            *function(NIC, "0x15b3", "0x020000"),
            *function(virtual, "0x15b3", "0x020000", 0, "physfn -> ../0000:23:00.0"),
            f"{sub}/sfnum: 88",
            *rdma("mlx5_0", pci=NIC),
            *rdma("mlx5_2", pci=virtual),
            *rdma("mlx5_3", pci=sub),
            *netdev("eth0v0", 7, pci=virtual),
        )
    )
    assert [(port.device, port.function) for port in found.ports] == [
        ("mlx5_0", "pf"),
        ("mlx5_2", "vf"),
        ("mlx5_3", "sf"),
    ]
    assert found.ports[2].pci_address == "0000:23:00.0"


def test_two_ports_of_one_device_get_their_own_interfaces(tmp_path: Path) -> None:
    kernel = machine(
        tmp_path,
        *function(NIC, "0x15b3", "0x020000"),
        *rdma("mlx4_0", ports=2, pci=NIC, link_layer="InfiniBand"),
        f"{NIC}/net/ib0/dev_port: 0",
        f"{NIC}/net/ib1/dev_port: 1",
        *[line for line in netdev("ib0", 4, pci=NIC) if "dev_port" not in line],
        *[line for line in netdev("ib1", 5, pci=NIC) if "dev_port" not in line],
        "class/net/ib0/dev_port: 0",
        "class/net/ib1/dev_port: 1",
    )
    assert [(port.port, port.netdev) for port in discover(kernel).ports] == [(1, "ib0"), (2, "ib1")]


def test_efa_is_a_port_without_an_interface(tmp_path: Path) -> None:
    efa = "devices/pci0000:50/0000:50:1b.0"
    kernel = machine(
        tmp_path,
        *function(efa, "0x1d0f", "0x020000", 0, "driver -> ../../../bus/pci/drivers/efa"),
        *rdma("rdmap80s27", pci=efa, link_layer="Unknown"),
        *netdev("ens5", 2, pci="devices/pci0000:00/0000:00:05.0"),
        f"{'devices/pci0000:00/0000:00:05.0'}/vendor: 0x1d0f",
    )
    found = discover(kernel)
    assert (found.ports[0].netdev, found.ports[0].driver, found.ports[0].link_layer) == ("", "efa", "Unknown")
    assert [interface.labels for interface in found.netdevs] == [(("netdev", "ens5"),)]


def test_representors_and_virtual_interfaces_are_not_read_unless_named(tmp_path: Path) -> None:
    lines = [
        *function(NIC, "0x15b3", "0x020000"),
        *netdev("eth0", 4, "phys_port_name: p0", pci=NIC),
        *netdev("eth0_3", 5, "phys_port_name: pf0vf3", pci=NIC),
        *netdev("cali12345", 6),
        *netdev("veth1", 7),
    ]
    recording = record(machine(tmp_path, *lines))
    kernel = recording.kernel
    assert [interface.name for interface in discover(kernel).netdevs] == ["eth0"]
    assert list(recording.snapshot.driver_info) == ["eth0"], "asked under RTNL what is not needed"
    rules = Rules(netdevs=Filter(re.compile("veth.*|eth0"), re.compile("eth0")))
    assert [interface.name for interface in discover(kernel, rules).netdevs] == ["veth1"]


def test_a_software_device_names_its_interface_as_parent(tmp_path: Path) -> None:
    kernel = machine(tmp_path, *rdma("rxe0", "parent: eth0"), *netdev("eth0", 4))
    found = discover(kernel)
    assert (found.ports[0].netdev, found.ports[0].function) == ("eth0", "")
    assert [interface.name for interface in found.netdevs] == ["eth0"]


def test_a_physical_port_that_vanished_is_missing_until_it_is_back(tmp_path: Path) -> None:
    before = discover(gpu_host(tmp_path))
    gone = machine(tmp_path, *function(GPU, "0x10de", "0x030200"))
    after = discover(gone, previous=before)
    assert [(port.device, port.role) for port in after.missing] == [("mlx5_0", "fabric"), ("mlx5_1", "unknown")]
    assert [port.device for port in discover(gone, previous=after).missing] == ["mlx5_0", "mlx5_1"]
    assert discover(gpu_host(tmp_path), previous=after).missing == ()


def test_a_renamed_device_is_not_missing(tmp_path: Path) -> None:
    before = discover(gpu_host(tmp_path))
    text = (tmp_path / "sys.txt").read_text().replace("class/infiniband/mlx5_0/", "class/infiniband/ibp35s0/")
    (tmp_path / "sys.txt").write_text(text)
    after = discover(open_capture(tmp_path), previous=before)
    assert [port.device for port in after.ports] == ["ibp35s0", "mlx5_1"]
    assert after.missing == ()
    assert after.ports[0].role == "fabric"


def test_excluded_devices_are_not_there(tmp_path: Path) -> None:
    rules = Rules(devices=Filter(exclude=re.compile("mlx5_1")))
    found = discover(gpu_host(tmp_path), rules)
    assert [port.device for port in found.ports] == ["mlx5_0"]


def test_a_host_with_nothing_is_an_empty_inventory(tmp_path: Path) -> None:
    (tmp_path / "sys.txt").write_text("class/net/lo/ifindex: 1\nclass/net/lo/type: 772\n")
    assert discover(open_capture(tmp_path)) == Inventory()


@pytest.mark.parametrize("name", ["h100-8xndr-bf3bond", "node-mlx4-scif-mic", "fixtures-node-exporter", "rxe-stock"])
def test_real_captures_are_found_without_a_problem(name: str) -> None:
    found = discover(open_capture(f"tests/machines/{name}"))
    assert found.ports
    assert found.problems == ()
