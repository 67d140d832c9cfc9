"""Which driver a device has, from what is known of it: the kernel's name, the device's name, the names of its counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.drivers import DRIVERS, GENERIC, PMA, driver_for
from exporter.kernel.captured import load_capture

MACHINES = Path(__file__).parent.parent / "machines"

ETHTOOL = {
    "aws-gateway/eth0": "ena",
    "gcp-vm/eth0": "gve",
    "mi300-ionic/enp132s0": "ionic",
    "mi300-ionic/enp132s0v0": "ionic",
    "mi300-ionic/enp68s0": "ionic",
    "mlx5-xdp-k515/eth0": "mlx5",
    "node-exporter-fixture/eth0": "generic",
    "sos-openstack/ens3": "generic",
    "sos-openstack/veth0d284c32": "generic",
    "srv-bnxt/eth0": "bnxt",
    "srv-i40e-0/eth0": "generic",
    "srv-i40e-1/eth0": "generic",
    "srv-igb/eth0": "generic",
    "srv-ixgbe-busy/eth0": "generic",
    "tg3-docs/eth0": "generic",
}

RDMA = {
    "efa-docs-g4-all-zero/rdmap0s31/ports/1/hw_counters": "efa",
    "h100-8xndr-bf3bond/mlx5_0/ports/1/hw_counters": "mlx5",
    "h100-8xndr-bf3bond/mlx5_bond_0/ports/1/hw_counters": "mlx5",
    "ionic-pollara-hwcounters/rocep68s0/ports/1/hw_counters": "ionic",
    "ionic-pollara-hwcounters/rocep132s0/ports/1/hw_counters": "ionic",
    "rxe-stock/rocep1/ports/1/hw_counters": "rxe",
}


@pytest.mark.parametrize(("place", "expected"), ETHTOOL.items())
def test_the_names_of_real_interfaces_tell_the_driver(place: str, expected: str) -> None:
    machine, netdev = place.split("/")
    names, _ = load_capture(MACHINES / machine).kernel.ethtool.statistics(netdev)
    assert driver_for("", "", names).name == expected


@pytest.mark.parametrize(("place", "expected"), RDMA.items())
def test_the_names_of_real_rdma_ports_tell_the_driver_of_a_renamed_device(place: str, expected: str) -> None:
    machine, folder = place.split("/", 1)
    names = load_capture(MACHINES / machine).kernel.sysfs.list(f"class/infiniband/{folder}")
    assert driver_for("", "roceP1p1s0", names).name == expected
    assert driver_for("", "storage", names).name == expected


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("mlx5_0", "mlx5"),
        ("mlx5_bond_0", "mlx5"),
        ("mlx4_0", "mlx4"),
        ("bnxt_re0", "bnxt"),
        ("rdmap0s31", "efa"),
        ("efa_0", "efa"),
        ("irdma0", "ice"),
        ("ionic_1", "ionic"),
        ("mana_0", "mana"),
        ("hns_0", "hns"),
        ("erdma_0", "erdma"),
        ("hfi1_0", "hfi1"),
        ("rxe0", "rxe"),
        ("siw0", "siw"),
        ("qib0", "generic"),
        ("scif0", "generic"),
        ("rocep68s0", "generic"),
        ("ibp24s0", "generic"),
        ("iwp1s0", "generic"),
    ],
)
def test_the_name_that_a_driver_gives_its_devices_tells_it(device: str, expected: str) -> None:
    assert driver_for("", device).name == expected


def test_the_kernel_decides_against_every_other_sign() -> None:
    names = ("sent_pkts", "rcvd_pkts", "rcvd_seq_err", "send_rnr_err")
    assert driver_for("mlx5_core", "rxe0", names).name == "mlx5"
    assert driver_for("virtio_net", "", names).name == "rxe"


def test_a_few_names_or_names_of_two_drivers_tell_nothing() -> None:
    assert driver_for("", "", ("out_of_buffer", "out_of_sequence")) is GENERIC
    shared = ("out_of_buffer", "out_of_sequence", "duplicate_request", "packet_seq_err", "local_ack_timeout_err")
    assert driver_for("", "", shared) is GENERIC
    assert driver_for("", "", (*shared, "rx_dct_connect")).name == "mlx5"
    assert driver_for("", "", (*shared, "active_qps", "watermark_qps", "to_retransmits")).name == "bnxt"


def test_port_counters_are_those_of_the_ibta_but_for_a_driver_that_counts_otherwise() -> None:
    scale = {
        driver.name: {entry.name: entry.scale for entry in driver.pma or PMA}["port_xmit_data"] for driver in DRIVERS
    }
    assert scale["hfi1"] == 8
    assert {value for name, value in scale.items() if name != "hfi1"} == {4}


@given(
    kernel_name=st.text(),
    device=st.text(),
    names=st.lists(st.text() | st.sampled_from([e.name for e in DRIVERS[0].port])),
)
def test_whatever_is_given_gives_a_driver(kernel_name: str, device: str, names: list[str]) -> None:
    assert driver_for(kernel_name, device, names) in (*DRIVERS, GENERIC)
