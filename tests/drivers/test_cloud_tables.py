"""What a user sees of the NICs of clouds, and how all of these drivers are told apart."""

from __future__ import annotations

import pytest
from tables import DEVICE, NETDEV, PORT, machine, raw, served

from exporter.drivers import aws, bnxt, driver_for, erdma, gve, hns, intel, ionic, mana
from exporter.drivers.plan import Plan


class TestEfa:
    def files(self, name: str, device: str) -> dict[str, int]:
        folder = f"class/infiniband/{device}/ports/1/hw_counters"
        sysfs = machine(name).sysfs
        return {file: int(sysfs.read(f"{folder}/{file}")) for file in sysfs.list(folder) if file != "lifespan"}

    def test_all_counters_of_the_documentation(self) -> None:
        counters = self.files("efa-docs-g4-all-zero", "rdmap0s31")
        assert len(counters) == 22
        series = served(aws.EFA.port, counters, PORT)
        assert len(series) == 22
        assert set(series.values()) == {0}

    def test_core_is_what_diagnosis_needs(self) -> None:
        counters = self.files("efa-docs-g4-all-zero", "rdmap0s31")
        assert sorted(served(aws.EFA.port, counters, PORT, profile="core")) == [
            "fabric_efa_impaired_connections_total",
            "fabric_efa_received_drops_total",
            "fabric_efa_retransmit_timeouts_total",
            "fabric_efa_unresponsive_remotes_total",
            'fabric_efa_work_request_errors_total{operation="rdma_read"}',
            'fabric_efa_work_request_errors_total{operation="rdma_write"}',
            "fabric_rdma_received_bytes_total",
            "fabric_rdma_received_packets_total",
            "fabric_rdma_retransmitted_packets_total",
            "fabric_rdma_transmitted_bytes_total",
            "fabric_rdma_transmitted_packets_total",
        ]

    def test_bytes_keep_their_direction(self) -> None:
        assert served(aws.EFA.port, self.files("rdma-exporter-efa", "rdmap0s0"), PORT) == {
            "fabric_rdma_received_bytes_total": 123,
            "fabric_rdma_transmitted_bytes_total": 456,
        }

    def test_operations_are_labels(self) -> None:
        counters = {"send_wrs": 1, "rdma_read_resp_bytes": 2, "rdma_write_recv_bytes": 3, "rdma_write_wr_err": 4}
        assert served(aws.EFA.port, counters, PORT) == {
            'fabric_efa_work_requests_total{operation="send"}': 1,
            'fabric_efa_operation_bytes_total{operation="rdma_read_resp"}': 2,
            'fabric_efa_operation_bytes_total{operation="rdma_write_recv"}': 3,
            'fabric_efa_work_request_errors_total{operation="rdma_write"}': 4,
        }

    def test_the_device_has_no_port(self) -> None:
        counters = {
            "submitted_cmds": 1,
            "completed_cmds": 2,
            "cmds_err": 3,
            "no_completion_cmds": 4,
            "keep_alive_rcvd": 5,
            "create_qp_err": 6,
        }
        assert served(aws.EFA.device, counters, DEVICE) == {
            "fabric_efa_admin_commands_submitted_total": 1,
            "fabric_efa_admin_commands_completed_total": 2,
            "fabric_efa_admin_command_errors_total": 3,
            "fabric_efa_admin_timeouts_total": 4,
            "fabric_efa_keepalives_total": 5,
            'fabric_efa_verb_errors_total{verb="create_qp"}': 6,
        }

    def test_old_kernels_have_the_port_in_the_device(self) -> None:
        counters = {"keep_alive_rcvd": 1, "retrans_pkts": 2, "send_wrs": 3}
        assert served(aws.EFA.device, counters, PORT) == {
            "fabric_efa_keepalives_total": 1,
            "fabric_rdma_retransmitted_packets_total": 2,
            'fabric_efa_work_requests_total{operation="send"}': 3,
        }

    def test_one_of_32_devices_fits_its_share_of_1600_series(self) -> None:
        port = served(aws.EFA.port, self.files("efa-docs-g4-all-zero", "rdmap0s31"), PORT, profile="core")
        device = served(aws.EFA.device, {"keep_alive_rcvd": 0, "no_completion_cmds": 0}, DEVICE, profile="core")
        assert len(port) + len(device) == 13


class TestEna:
    real = raw(machine("aws-gateway").ethtool.statistics("eth0"))

    def test_a_real_instance(self) -> None:
        assert served(aws.ENA.ethtool, self.real) == {
            **{
                f'fabric_ena_allowance_exceeded_total{{allowance="{allowance}"}}': 0
                for allowance in ("bw_in", "bw_out", "pps", "conntrack", "linklocal")
            },
            **{
                f'fabric_netdev_driver_errors_total{{kind="{kind}"}}': 0
                for kind in ("keepalive_missing", "admin_unusable", "admin_aborted", "admin_full", "admin_timeout")
            },
            "fabric_netdev_tx_timeouts_total": 0,
        }

    def test_gauges_and_units(self) -> None:
        counters = {
            "pps_allowance_exceeded": 9,
            "conntrack_allowance_available": 136812,
            "ena_srd_mode": 3,
            "ena_srd_resource_utilization": 50,
            "ena_srd_eligible_tx_pkts": 7,
            "total_resets": 2,
            "missing_tx_cmpl": 1,
        }
        assert served(aws.ENA.ethtool, counters) == {
            'fabric_ena_allowance_exceeded_total{allowance="pps"}': 9,
            "fabric_ena_conntrack_allowance_available": 136812,
            "fabric_ena_srd_mode_id": 3,
            "fabric_ena_srd_utilization_ratio": 0.5,
            "fabric_ena_srd_eligible_packets_total": 7,
            "fabric_netdev_device_resets_total": 2,
            'fabric_netdev_driver_errors_total{kind="missing_tx_cmpl"}': 1,
        }
        plan = Plan(aws.ENA.ethtool, tuple(counters), NETDEV, profile="full")
        gauges = {series.metric.name for series in plan.shape.series if series.metric.type == "gauge"}
        assert gauges == {
            "fabric_ena_conntrack_allowance_available",
            "fabric_ena_srd_mode_id",
            "fabric_ena_srd_utilization_ratio",
        }


class TestGve:
    def test_a_real_instance(self) -> None:
        series = served(gve.DRIVER.ethtool, raw(machine("gcp-vm").ethtool.statistics("eth0")))
        assert set(series.values()) == {0}
        assert len(series) == 10

    def test_queues_are_summed_and_nothing_is_counted_twice(self) -> None:
        counters = {
            "rx_dropped": 6,
            "rx_skb_alloc_fail": 1,
            "rx_buf_alloc_fail": 2,
            "rx_desc_err_dropped_pkt": 3,
            "rx_dropped_pkt[0]": 6,
            "rx_no_buffers_posted[0]": 10,
            "rx_no_buffers_posted[1]": 20,
            "rx_queue_drop_cnt[0]": 30,
            "rx_queue_drop_cnt[1]": 40,
            "rx_drops_packet_over_mru[1]": 50,
            "rx_drops_invalid_checksum[12]": 60,
            "tx_timeouts": 70,
            "reset_cnt": 80,
            "adminq_timeouts": 90,
            "adminq_describe_device_cnt": 1,
        }
        assert served(gve.DRIVER.ethtool, counters) == {
            'fabric_netdev_host_drops_total{kind="rx_skb_allocation"}': 1,
            'fabric_netdev_host_drops_total{kind="rx_allocation"}': 2,
            'fabric_netdev_host_drops_total{kind="rx_descriptor"}': 3,
            "fabric_netdev_out_of_buffer_total": 30,
            'fabric_netdev_host_drops_total{kind="device_queue"}': 70,
            "fabric_netdev_oversize_packets_total": 50,
            'fabric_phy_errors_total{kind="l4_checksum"}': 60,
            "fabric_netdev_tx_timeouts_total": 70,
            "fabric_netdev_device_resets_total": 80,
            'fabric_netdev_driver_errors_total{kind="admin_timeout"}': 90,
        }


class TestMana:
    def test_interface(self) -> None:
        counters = {
            "hc_rx_discards_no_wqe": 1,
            "hc_tx_err_mtu_violation": 2,
            "hc_rx_ucast_bytes": 3,
            "hc_tx_bytes": 4,
            "rx_0_packets": 5,
            "stop_queue": 6,
            "tx_cq_err": 7,
            "hc_rx_pkt_drop_phy": 8,
            "hc_tc3_rx_pause_phy": 9,
        }
        assert served(mana.DRIVER.ethtool, counters) == {
            "fabric_netdev_out_of_buffer_total": 1,
            'fabric_netdev_host_drops_total{kind="tx_err_mtu_violation"}': 2,
            'fabric_netdev_driver_errors_total{kind="tx_completion"}': 7,
            "fabric_received_discards_total": 8,
        }

    def test_port(self) -> None:
        counters = {
            "requester_timeout": 1,
            "requester_oos_nak": 2,
            "requester_rnr_nak": 3,
            "responder_rnr_nak": 4,
            "responder_oos": 5,
            "responder_dup_request": 6,
            "dup_rx_requests": 6,
            "requester_retries_exceeded": 7,
            "requestor_local_prot_error": 8,
            "nak_access_error": 9,
            "num_qps_congested": 10,
            "current_rate": 11,
            "received_cnps": 12,
        }
        assert served(mana.DRIVER.port, counters, PORT) == {
            "fabric_rdma_ack_timeouts_total": 1,
            "fabric_rdma_sequence_naks_total": 2,
            "fabric_rdma_rnr_naks_total": 3,
            "fabric_rdma_rnr_naks_sent_total": 4,
            "fabric_rdma_out_of_sequence_packets_total": 5,
            "fabric_rdma_duplicate_requests_total": 6,
            "fabric_rdma_retries_exceeded_total": 7,
            'fabric_rdma_operation_errors_total{kind="local_protection"}': 8,
            'fabric_rdma_operation_errors_total{kind="nak_access_error"}': 9,
            'fabric_rdma_congestion_control_events_total{event="slowed"}': 10,
            "fabric_rdma_congestion_control_rate": 11,
            "fabric_cnp_handled_packets_total": 12,
        }

    def test_the_adapter_counts_for_its_only_port(self) -> None:
        counters = {
            "sent_cnps": 1,
            "received_ecns": 2,
            "received_cnp_count": 3,
            "qp_congested_events": 4,
            "rate_inc_events": 5,
        }
        assert served(mana.DRIVER.device, counters, PORT) == {
            "fabric_cnp_sent_packets_total": 1,
            "fabric_ecn_marked_received_packets_total": 2,
        }


@pytest.mark.parametrize("prefix", ["", "hw_"])
def test_erdma_limits_of_the_cloud(prefix: str) -> None:
    counters = {
        "rx_bytes_cnt": 1,
        "tx_packets_cnt": 2,
        "tx_reqs_cnt": 3,
        "rx_disable_drop_cnt": 4,
        "tx_bps_limit_drop_cnt": 5,
        "rx_pps_limit_drop_cnt": 6,
    }
    assert served(erdma.DRIVER.port, {prefix + name: value for name, value in counters.items()}, PORT) == {
        "fabric_rdma_received_bytes_total": 1,
        "fabric_rdma_transmitted_packets_total": 2,
        'fabric_rdma_discards_total{kind="receive_disabled"}': 4,
        'fabric_cloud_throttled_packets_total{limit="tx_bps"}': 5,
        'fabric_cloud_throttled_packets_total{limit="rx_pps"}': 6,
    }


@pytest.mark.parametrize(
    ("kernel_name", "device", "driver"),
    [
        ("bnxt_en", "rocep1s0f0", bnxt.DRIVER),
        ("", "bnxt_re0", bnxt.DRIVER),
        ("ice", "rocep1s0f0", intel.DRIVER),
        ("", "irdma0", intel.DRIVER),
        ("efa", "rdmap0s31", aws.EFA),
        ("", "rdmap0s31", aws.EFA),
        ("ena", "", aws.ENA),
        ("gve", "", gve.DRIVER),
        ("", "mana_0", mana.DRIVER),
        ("ionic", "rocep132s0", ionic.DRIVER),
        ("hns3", "", hns.DRIVER),
        ("", "erdma_0", erdma.DRIVER),
    ],
)
def test_drivers_are_known_by_kernel_name_and_by_their_devices(kernel_name: str, device: str, driver: object) -> None:
    assert driver_for(kernel_name, device) is driver


@pytest.mark.parametrize(
    ("name", "netdev", "driver"),
    [
        ("srv-bnxt", "eth0", bnxt.DRIVER),
        ("aws-gateway", "eth0", aws.ENA),
        ("gcp-vm", "eth0", gve.DRIVER),
        ("mi300-ionic", "enp68s0", ionic.DRIVER),
    ],
)
def test_drivers_are_known_by_what_they_list(name: str, netdev: str, driver: object) -> None:
    assert driver_for("", "", machine(name).ethtool.statistics(netdev).names) is driver
