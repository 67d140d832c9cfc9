"""Several functions of one card: who sees the port that they share, and whose a counter is."""

from __future__ import annotations

from pathlib import Path

from tests.core.hosts import interface, served

CARD = "devices/pci0000:20/0000:20:01.0/0000:23:00.0"
VIRTUAL = "devices/pci0000:20/0000:20:01.0/0000:23:00.2"


def test_a_virtual_function_says_nothing_of_the_port(tmp_path: Path) -> None:
    """Drivers answer zeros for FEC, pause and the port's down count there; its own carrier is what it can tell."""
    fec = '[{"active":["RS"],"statistics":{"corrected_blocks":{"total":0},"uncorrectable_blocks":{"total":0}}}]'
    pause = '[{"rx":false,"tx":false,"exact":true,"statistics":{"tx_pause_frames":0,"rx_pause_frames":0}}]'
    link = '[{"link":true,"down_count":0}]'
    found = served(
        tmp_path,
        [
            *interface("eth0", 4, CARD),
            *interface("eth0v0", 5, VIRTUAL),
            f"{CARD}/vendor: 0x14e4",
            f"{VIRTUAL}/physfn -> ../0000:23:00.0",
        ],
        **{
            f"{folder}__{name}": text
            for name in ("eth0", "eth0v0")
            for folder, text in (("ethtool-fec", fec), ("ethtool-pause", pause), ("ethtool-link", link))
        },
    )
    for metric, of_port, of_function in (
        ("fabric_fec_uncorrectable_blocks_total", 0, None),
        ("fabric_global_pause_received_frames_total", 0, None),
        ("fabric_global_pause_receive_enabled", 0, None),
        ("fabric_port_link_downs_total", 0, 4),
        ("fabric_netdev_up", 1, 1),
    ):
        assert found.get(f"{metric}{{netdev=eth0}}") == of_port, metric
        assert found.get(f"{metric}{{netdev=eth0v0}}") == of_function, metric


def test_a_card_in_switchdev_mode_has_one_port_and_its_counters(tmp_path: Path) -> None:
    """The other ports of its RDMA device stand for virtual functions; what the device counts is the uplink's."""
    device = "class/infiniband/mlx5_0"
    ports = [
        line
        for number, netdev in enumerate(("eth0", "eth0_0", "eth0_1"), 1)
        for line in (
            f"{device}/ports/{number}/state: 4: ACTIVE",
            f"{device}/ports/{number}/gid_attrs/ndevs/0: {netdev}",
            f"{device}/ports/{number}/hw_counters/vport_out_of_sequence: 7",
        )
    ]
    found = served(
        tmp_path,
        [
            *interface("eth0", 4, CARD, "phys_port_name: p0"),
            *interface("eth0_0", 5, CARD, "phys_port_name: pf0vf0"),
            *interface("eth0_1", 6, CARD, "phys_port_name: c1pf0"),
            f"{CARD}/vendor: 0x15b3",
            f"{device}/device -> ../../../{CARD}",
            f"{device}/hw_counters/out_of_sequence: 11",
            *ports,
        ],
    )
    assert [name for name in found if name.startswith("fabric_port_up")] == ["fabric_port_up{device=mlx5_0,port=1}"]
    assert [name for name in found if name.startswith("fabric_netdev_up")] == [
        "fabric_netdev_up{device=mlx5_0,port=1,netdev=eth0}"
    ]
    out_of_sequence = {name: value for name, value in found.items() if "out_of_sequence" in name}
    assert out_of_sequence == {"fabric_rdma_out_of_sequence_packets_total{device=mlx5_0,port=1}": 11}


def test_what_a_device_with_two_ports_counts_is_of_neither(tmp_path: Path) -> None:
    device = "class/infiniband/mlx4_0"
    found = served(
        tmp_path,
        [f"{device}/hw_counters/sq_num_to: 3", *(f"{device}/ports/{number}/state: 4: ACTIVE" for number in (1, 2))],
    )
    timeouts = {name: value for name, value in found.items() if "ack_timeouts" in name}
    assert timeouts == {"fabric_rdma_ack_timeouts_total{device=mlx4_0}": 3}


def test_ip_over_infiniband_says_nothing_of_frames(tmp_path: Path) -> None:
    """mlx5 lists Ethernet's counters there too. Zeros among them would look like a clean link."""
    address = ":".join(["80", "00", "00", "28", *["fe"] * 16])
    (tmp_path / "ethtool").mkdir()
    (tmp_path / "ethtool-i").mkdir()
    for name, driver in (("eth0", "mlx5_core"), ("ib0", "mlx5_core[ib_ipoib]")):
        (tmp_path / f"ethtool-i/{name}.txt").write_text(f"driver: {driver}\n")
        (tmp_path / f"ethtool/{name}.txt").write_text(
            "     rx_crc_errors_phy: 0\n     rx_discards_phy: 0\n     link_down_events_phy: 3\n     rx_prio3_bytes: 9\n"
        )
    found = served(
        tmp_path,
        [
            *interface("eth0", 4, CARD, "address: 02:00:00:00:00:01"),
            *interface("ib0", 5, VIRTUAL, f"address: {address}"),
            f"{CARD}/vendor: 0x15b3",
            f"{VIRTUAL}/vendor: 0x15b3",
        ],
    )
    for metric, on_ethernet, on_infiniband in (
        ("fabric_phy_crc_errors_total{netdev=%s}", 0, None),
        ("fabric_received_discards_total{netdev=%s}", 0, None),
        ("fabric_priority_received_bytes_total{netdev=%s,priority=3}", 9, None),
        ("fabric_port_link_downs_total{netdev=%s}", 3, 3),
    ):
        assert found.get(metric % "eth0") == on_ethernet, metric
        assert found.get(metric % "ib0") == on_infiniband, metric
