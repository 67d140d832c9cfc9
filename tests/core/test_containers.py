"""RDMA devices as a network namespace of one's own sees them (drivers/infiniband/core/device.c, ib_devices_shared_netns)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.hosts import served

DEVICE = "class/infiniband/mlx5_0"
RDMA = {
    "rdma-dev": '[{"ifindex":0,"ifname":"mlx5_0","ports":1}]',
    "rdma-link": '[{"ifindex":0,"ifname":"mlx5_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP"}]',
    "rdma-statistic": '[{"ifname":"mlx5_0","port":1,"out_of_sequence":7,"np_cnp_sent":9}]',
}


@pytest.mark.parametrize(("mode", "shared"), [("shared", 1), ("exclusive", 0)])
def test_a_container_without_counters_in_sysfs_reads_them_by_netlink(tmp_path: Path, mode: str, shared: int) -> None:
    """In shared mode other namespaces get devices whose folders hold neither counters nor hw_counters."""
    lines = [f"{DEVICE}/node_guid: 0c42:a103:00aa:0100", f"{DEVICE}/ports/1/link_layer: Ethernet"]
    found = served(tmp_path, lines, **RDMA, **{"rdma-system": f'[{{"netns":"{mode}"}}]'})
    assert found["fabric_port_up{device=mlx5_0,port=1}"] == 1
    assert found["fabric_rdma_out_of_sequence_packets_total{device=mlx5_0,port=1}"] == 7
    assert found["fabric_cnp_sent_packets_total{device=mlx5_0,port=1}"] == 9
    assert found["fabric_exporter_rdma_namespaces_shared{}"] == shared
    for source in ("ports", "rdma", "pma"):
        assert found[f"fabric_source_success{{source={source}}}"] == 1


def test_a_kernel_without_rdma_netlink_does_not_say_how_devices_are_shared(tmp_path: Path) -> None:
    found = served(tmp_path, [f"{DEVICE}/ports/1/state: 4: ACTIVE", f"{DEVICE}/ports/1/hw_counters/out_of_sequence: 7"])
    assert found["fabric_rdma_out_of_sequence_packets_total{device=mlx5_0,port=1}"] == 7
    assert "fabric_exporter_rdma_namespaces_shared{}" not in found
