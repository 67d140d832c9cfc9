"""What a user sees of the NICs of other vendors: real captures where there are any, the driver's own names elsewhere."""

from __future__ import annotations

import pytest
from tables import PORT, machine, raw, served

from exporter.drivers import bnxt, hns, intel, ionic
from exporter.drivers.plan import Plan

PRIORITIES = range(8)
ALL_ONES = (1 << 64) - 1


class TestBnxtEthtool:
    real = raw(machine("srv-bnxt").ethtool.statistics("eth0"))

    def test_values_of_a_real_card(self) -> None:
        series = served(bnxt.DRIVER.ethtool, self.real)
        assert {name: value for name, value in series.items() if value} == {
            "fabric_port_link_downs_total": 2,
            "fabric_port_buffer_high_total": 417,
            "fabric_received_discards_total": 14,
            "fabric_transmitted_discards_total": 13,
            "fabric_netdev_out_of_buffer_total": 13,
            'fabric_netdev_host_drops_total{kind="tx_queue"}': 14,
            'fabric_phy_errors_total{kind="transmit"}': 12,
            "fabric_netdev_received_bytes_total": 7258696030461,
            "fabric_netdev_transmitted_bytes_total": 15434985234825,
            "fabric_netdev_received_packets_total": 3400498238,
            "fabric_netdev_transmitted_packets_total": 47792694822,
        }

    def test_what_is_zero_is_there(self) -> None:
        series = served(bnxt.DRIVER.ethtool, self.real)
        for name in ("fec_corrections", "fec_corrected_blocks", "fec_uncorrectable_blocks", "phy_symbol_errors"):
            assert series[f"fabric_{name}_total"] == 0
        for priority in PRIORITIES:
            assert series[f'fabric_pfc_received_pause_seconds_total{{priority="{priority}"}}'] == 0
            assert series[f'fabric_priority_transmitted_bytes_total{{priority="{priority}"}}'] == 0
            assert series[f'fabric_cos_discarded_packets_total{{cos="{priority}"}}'] == 0

    def test_pause_is_in_seconds_and_keeps_its_direction(self) -> None:
        paused = {
            **self.real,
            "pfc_pri3_rx_duration_us": 1_500_000,
            "pfc_pri3_tx_duration_us": 250,
            "rx_pfc_ena_frames_pri3": 7,
            "tx_pfc_ena_frames_pri3": 8,
            "rx_pfc_frames": 9,
            "tx_pfc_frames": 10,
            "rx_pause_frames": 11,
            "tx_pause_frames": 12,
            "pfc_pri3_rx_transitions": 13,
        }
        series = served(bnxt.DRIVER.ethtool, paused)
        assert series['fabric_pfc_received_pause_seconds_total{priority="3"}'] == 1.5
        assert series['fabric_pfc_transmitted_pause_seconds_total{priority="3"}'] == 0.00025
        assert series['fabric_pfc_received_frames_total{priority="3"}'] == 7
        assert series['fabric_pfc_transmitted_frames_total{priority="3"}'] == 8
        assert series["fabric_pfc_port_received_frames_total"] == 9
        assert series["fabric_pfc_port_transmitted_frames_total"] == 10
        assert series["fabric_global_pause_received_frames_total"] == 11
        assert series["fabric_global_pause_transmitted_frames_total"] == 12
        assert series['fabric_pfc_received_transitions_total{priority="3"}'] == 13

    def test_a_storm_that_ends_pfc_is_an_error_and_its_ends_add_up(self) -> None:
        storm = {
            **self.real,
            "continuous_pause_events": 5,
            "resume_pause_events": 4,
            "continuous_roce_pause_events": 3,
            "resume_roce_pause_events": 2,
        }
        series = served(bnxt.DRIVER.ethtool, storm)
        assert series["fabric_pause_storm_warnings_total"] == 5
        assert series["fabric_pause_storm_errors_total"] == 3
        assert series["fabric_pause_storm_recoveries_total"] == 6

    def test_a_virtual_function_shows_its_own_rings_only(self) -> None:
        assert served(bnxt.DRIVER.ethtool, self.real, virtual=True) == {
            "fabric_netdev_out_of_buffer_total": 13,
            'fabric_netdev_host_drops_total{kind="tx_queue"}': 14,
            'fabric_netdev_host_drops_total{kind="netpoll"}': 0,
        }

    def test_newer_names_of_the_ring_sums(self) -> None:
        newer = {"rx_total_ring_discards": 1, "tx_total_ring_discards": 2, "total_missed_irqs": 3, "rx_filter_miss": 4}
        assert served(bnxt.DRIVER.ethtool, newer) == {
            "fabric_netdev_out_of_buffer_total": 1,
            'fabric_netdev_host_drops_total{kind="tx_queue"}': 2,
            'fabric_netdev_driver_errors_total{kind="lost_interrupt"}': 3,
            "fabric_netdev_steering_drops_total": 4,
        }


class TestBnxtRdma:
    names = (
        ("to_retransmits", "local_ack_timeout_err", "fabric_rdma_ack_timeouts_total"),
        ("seq_err_naks_rcvd", "packet_seq_err", "fabric_rdma_sequence_naks_total"),
        ("rnr_naks_rcvd", "rnr_nak_retry_err", "fabric_rdma_rnr_naks_total"),
        ("missing_resp", "implied_nak_seq_err", "fabric_rdma_implied_naks_total"),
        ("dup_req", "duplicate_request", "fabric_rdma_duplicate_requests_total"),
        (
            "remote_invalid_req_err",
            "req_remote_invalid_request",
            'fabric_rdma_operation_errors_total{kind="remote_invalid_request"}',
        ),
        ("remote_access_err", "req_remote_access_errors", 'fabric_rdma_operation_errors_total{kind="remote_access"}'),
        (
            "res_length_mismatch",
            "resp_local_length_error",
            'fabric_rdma_operation_errors_total{kind="responder_local_length"}',
        ),
        ("oos_drop_count", "out_of_sequence", "fabric_rdma_out_of_sequence_packets_total"),
        ("rx_out_of_buffer", "out_of_buffer", "fabric_rdma_out_of_buffer_total"),
        ("tx_cnp_pkts", "np_cnp_sent", "fabric_cnp_sent_packets_total"),
        ("rx_cnp_pkts", "rp_cnp_handled", "fabric_cnp_handled_packets_total"),
        ("rx_ecn_marked_pkts", "np_ecn_marked_roce_packets", "fabric_ecn_marked_received_packets_total"),
        ("rx_read_req", "rx_read_requests", 'fabric_rdma_received_requests_total{operation="read"}'),
    )

    def test_both_generations_give_the_same_series(self) -> None:
        values = range(1, len(self.names) + 1)
        upstream = {name: value for (name, _, _), value in zip(self.names, values, strict=True)}
        out_of_tree = {name: value for (_, name, _), value in zip(self.names, values, strict=True)}
        expected = {name: value for (_, _, name), value in zip(self.names, values, strict=True)}
        assert served(bnxt.DRIVER.port, upstream, PORT) == expected
        assert served(bnxt.DRIVER.port, out_of_tree, PORT) == expected

    def test_names_of_both_never_make_a_series_twice_or_a_sum(self) -> None:
        both = {"to_retransmits": 5, "local_ack_timeout_err": 5, "tx_cnp_pkts": 6, "np_cnp_sent": 6, "np_cnp_pkts": 6}
        assert served(bnxt.DRIVER.port, both, PORT) == {
            "fabric_rdma_ack_timeouts_total": 5,
            "fabric_cnp_sent_packets_total": 6,
        }

    def test_gauges_are_gauges_and_a_register_is_nothing(self) -> None:
        names = ("active_qps", "watermark_qps", "db_fifo_register", "max_retry_exceeded")
        plan = Plan(bnxt.DRIVER.port, names, PORT, profile="full")
        types = {series.metric.name: series.metric.type for series in plan.shape.series}
        assert types == {
            "fabric_rdma_objects": "gauge",
            "fabric_rdma_objects_peak": "gauge",
            "fabric_rdma_retries_exceeded_total": "counter",
        }

    def test_traffic_and_faults(self) -> None:
        counters = {
            "rx_bytes": 100,
            "tx_bytes": 200,
            "rx_pkts": 3,
            "tx_pkts": 4,
            "rx_roce_only_bytes": 90,
            "rx_roce_good_bytes": 99,
            "rx_good_bytes": 99,
            "rx_roce_discards": 5,
            "res_rx_pci_err": 6,
            "res_tx_pci_err": 7,
            "res_mem_err": 8,
            "resp_cqe_flush_error": 9,
        }
        assert served(bnxt.DRIVER.port, counters, PORT) == {
            "fabric_rdma_received_bytes_total": 100,
            "fabric_rdma_transmitted_bytes_total": 200,
            "fabric_rdma_received_packets_total": 3,
            "fabric_rdma_transmitted_packets_total": 4,
            'fabric_rdma_discards_total{kind="receive_discards"}': 5,
            "fabric_pcie_rdma_errors_total": 13,
            'fabric_rdma_operation_errors_total{kind="res_mem_err"}': 8,
            'fabric_rdma_flushed_completions_total{side="responder"}': 9,
        }


ICE = {
    "rx_bytes": 1,
    "rx_dropped": 2,
    "rx_queue_0_packets": 3,
    "tx_queue_63_bytes": 4,
    "rx_bytes.nic": 5,
    "rx_unicast.nic": 6,
    "rx_multicast.nic": 7,
    "rx_broadcast.nic": 8,
    "rx_dropped.nic": 9,
    "tx_dropped_link_down.nic": 10,
    "link_xoff_rx.nic": 11,
    "link_xon_tx.nic": 12,
    "tx_priority_3_xoff.nic": 13,
    "tx_priority_3_xon.nic": 14,
    "rx_priority_3_xoff.nic": 15,
    "rx_priority_3_xon.nic": 16,
    "mac_remote_faults.nic": 17,
    "rx_size_big.nic": 18,
    "fdir_sb_status.nic": 19,
    "tx_timeout.nic": 20,
    "rx_csum_bad.nic": 21,
    "tx_hwtstamp_timeouts": 22,
}


class TestIntel:
    def test_ice_counts_frames_and_never_seconds(self) -> None:
        assert served(intel.DRIVER.ethtool, ICE) == {
            "fabric_netdev_out_of_buffer_total": 2,
            "fabric_netdev_received_bytes_total": 5,
            "fabric_netdev_received_packets_total": 21,
            "fabric_received_discards_total": 9,
            "fabric_transmitted_discards_total": 10,
            "fabric_global_pause_received_frames_total": 11,
            "fabric_global_pause_transmitted_xon_frames_total": 12,
            'fabric_pfc_transmitted_frames_total{priority="3"}': 13,
            'fabric_pfc_transmitted_xon_frames_total{priority="3"}': 14,
            'fabric_pfc_received_frames_total{priority="3"}': 15,
            'fabric_pfc_received_xon_frames_total{priority="3"}': 16,
            'fabric_phy_errors_total{kind="remote_fault"}': 17,
            "fabric_netdev_tx_timeouts_total": 20,
            'fabric_phy_errors_total{kind="l4_checksum"}': 21,
        }

    def test_a_virtual_function_has_no_port(self) -> None:
        assert served(intel.DRIVER.ethtool, ICE, virtual=True) == {"fabric_netdev_out_of_buffer_total": 2}

    @pytest.mark.parametrize(
        ("generation", "names"),
        [
            ("1 and 2", ("tcpRetransSegs", "iwInRdmaReads", "iwOutRdmaWrites", "tcpInProtoErrors")),
            ("3", ("RetransSegs", "InRdmaReads", "OutRdmaWrites", "InProtoErrors")),
        ],
    )
    def test_irdma_spellings(self, generation: str, names: tuple[str, ...]) -> None:
        assert served(intel.DRIVER.port, dict(zip(names, (1, 2, 3, 4), strict=True)), PORT) == {
            "fabric_rdma_retransmitted_packets_total": 1,
            'fabric_rdma_received_requests_total{operation="read"}': 2,
            'fabric_rdma_transmitted_requests_total{operation="write"}': 3,
            'fabric_rdma_discards_total{kind="protocol_error"}': 4,
        }, generation

    def test_irdma_adds_ip_versions(self) -> None:
        counters = {
            "ip4InOctets": 1,
            "ip6InOctets": 2,
            "ip4InMcastOctets": 4,
            "ip4OutPkts": 8,
            "ip6OutPkts": 16,
            "TxUDP": 32,
        }
        assert served(intel.DRIVER.port, counters, PORT) == {
            "fabric_rdma_received_bytes_total": 3,
            "fabric_rdma_transmitted_packets_total": 24,
        }

    def test_irdma_generation_3_names_with_blanks(self) -> None:
        counters = {
            "RNR sent": 1,
            "RNR received": 2,
            "ord limit count": 3,
            "ird limit count": 4,
            "Rx atomics": 5,
            "Tx atomics": 6,
            "Nak Sequence Error": 7,
            "Nak Sequence Error Implied": 8,
            "RTO": 9,
            "Rcvd Out of order packets": 10,
            "CRC errors": 11,
        }
        assert served(intel.DRIVER.port, counters, PORT) == {
            "fabric_rdma_rnr_naks_sent_total": 1,
            "fabric_rdma_rnr_naks_total": 2,
            'fabric_rdma_read_depth_limits_total{side="requester"}': 3,
            'fabric_rdma_read_depth_limits_total{side="responder"}': 4,
            'fabric_rdma_received_requests_total{operation="atomic"}': 5,
            'fabric_rdma_transmitted_requests_total{operation="atomic"}': 6,
            "fabric_rdma_sequence_naks_total": 7,
            "fabric_rdma_implied_naks_total": 8,
            "fabric_rdma_ack_timeouts_total": 9,
            "fabric_rdma_out_of_sequence_packets_total": 10,
            "fabric_rdma_icrc_errors_total": 11,
        }

    def test_irdma_congestion(self) -> None:
        counters = {"cnpSent": 1, "cnpHandled": 2, "cnpIgnored": 3, "RxECNMrkd": 4}
        assert served(intel.DRIVER.port, counters, PORT, profile="core") == {
            "fabric_cnp_sent_packets_total": 1,
            "fabric_cnp_handled_packets_total": 2,
            "fabric_cnp_ignored_packets_total": 3,
            "fabric_ecn_marked_received_packets_total": 4,
        }


class TestIonicEthtool:
    def test_a_real_physical_function(self) -> None:
        series = served(ionic.DRIVER.ethtool, raw(machine("mi300-ionic").ethtool.statistics("enp68s0")))
        assert {name: value for name, value in series.items() if value} == {
            "fabric_netdev_received_bytes_total": 306471174847120,
            "fabric_netdev_transmitted_bytes_total": 509011967971838,
            "fabric_netdev_received_packets_total": 283924076469,
            "fabric_netdev_transmitted_packets_total": 470001797593,
        }
        for priority in PRIORITIES:
            assert series[f'fabric_pfc_received_pause_seconds_total{{priority="{priority}"}}'] == 0
            assert series[f'fabric_priority_received_packets_total{{priority="{priority}"}}'] == 0

    def test_a_virtual_function_does_not_show_its_neighbours_port(self) -> None:
        physical = raw(machine("mi300-ionic").ethtool.statistics("enp132s0"))
        virtual = raw(machine("mi300-ionic").ethtool.statistics("enp132s0v0"))
        assert physical["octets_tx_ok"] == virtual["octets_tx_ok"] == 103623222172110
        assert served(ionic.DRIVER.ethtool, virtual, virtual=True) == {
            "fabric_netdev_out_of_buffer_total": 0,
            'fabric_netdev_host_drops_total{kind="rx_dropped"}': 0,
            'fabric_netdev_host_drops_total{kind="rx_missed"}': 0,
            'fabric_netdev_host_drops_total{kind="tx_queue"}': 0,
            'fabric_netdev_driver_errors_total{kind="tx_aborted"}': 0,
        }

    def test_ticks_of_a_microsecond_become_seconds(self) -> None:
        counters = {"rx_pripause_3_1us_count": 2_500_000, "tx_pripause_3_1us_count": 1, "rx_pause_1us_count": 40}
        assert served(ionic.DRIVER.ethtool, counters) == {
            'fabric_pfc_received_pause_seconds_total{priority="3"}': 2.5,
            'fabric_pfc_transmitted_pause_seconds_total{priority="3"}': 1e-06,
            "fabric_global_pause_received_seconds_total": 4e-05,
        }

    def test_faults(self) -> None:
        counters = {
            "frames_rx_bad_fcs": 1,
            "frames_rx_stomped_crc": 2,
            "frames_rx_bad_all": 3,
            "frames_rx_dropped": 4,
            "frames_rx_pripause": 5,
            "frames_tx_pause": 6,
            "frames_rx_jabber": 7,
            "frames_tx_truncated": 8,
            "hw_rx_over_errors": 9,
        }
        assert served(ionic.DRIVER.ethtool, counters) == {
            "fabric_phy_crc_errors_total": 1,
            "fabric_phy_stomped_crc_errors_total": 2,
            "fabric_received_discards_total": 4,
            "fabric_pfc_port_received_frames_total": 5,
            "fabric_global_pause_transmitted_frames_total": 6,
            'fabric_phy_errors_total{kind="jabber"}': 7,
            "fabric_pcie_transmit_underruns_total": 8,
            "fabric_netdev_out_of_buffer_total": 9,
        }


class TestIonicRdma:
    def statistics(self) -> dict[str, dict[str, int]]:
        rdma = machine("ionic-pollara-hwcounters").rdma
        return {device.name: raw(rdma.statistics(device.dev_index, 1)) for device in rdma.devices()}

    def test_all_names_of_a_real_card(self) -> None:
        for device, counters in self.statistics().items():
            assert len(counters) == 42, device
            # Bytes and packets, each received and transmitted, are sums of two.
            assert len(served(ionic.DRIVER.port, counters, PORT)) == 42 - 4

    def test_values_of_a_real_card(self) -> None:
        series = served(ionic.DRIVER.port, self.statistics()["ionic_1"], PORT)
        assert {name: value for name, value in series.items() if value} == {
            "fabric_rdma_received_bytes_total": 3087001744,
            "fabric_rdma_received_packets_total": 49221925,
            "fabric_rdma_transmitted_bytes_total": 3489656928,
            "fabric_rdma_transmitted_packets_total": 32852846,
            'fabric_rdma_discards_total{kind="duplicate_response"}': 34,
        }

    def test_multicast_is_traffic_too(self) -> None:
        counters = {"rx_rdma_ucast_bytes": 10, "rx_rdma_mcast_bytes": 5}
        assert served(ionic.DRIVER.port, counters, PORT) == {"fabric_rdma_received_bytes_total": 15}

    def test_all_ones_is_no_value(self) -> None:
        counters = {"req_rx_pkt_seq_err": ALL_ONES, "resp_rx_outouf_seq": 4, "tx_rdma_cnp_pkts": ALL_ONES}
        assert served(ionic.DRIVER.port, counters, PORT) == {"fabric_rdma_out_of_sequence_packets_total": 4}

    def test_directions_and_sides(self) -> None:
        counters = {
            "tx_rdma_cnp_pkts": 1,
            "rx_rdma_cnp_pkts": 2,
            "rx_rdma_ecn_pkts": 3,
            "req_rx_rnr_retry_err": 4,
            "resp_tx_rnr_retry_err": 5,
            "req_rx_pkt_seq_err": 6,
            "resp_tx_pkt_seq_err": 7,
            "req_tx_retry_excd_err": 8,
            "resp_rx_outof_buf": 9,
            "req_rx_cqe_flush": 10,
        }
        assert served(ionic.DRIVER.port, counters, PORT) == {
            "fabric_cnp_sent_packets_total": 1,
            "fabric_cnp_handled_packets_total": 2,
            "fabric_ecn_marked_received_packets_total": 3,
            "fabric_rdma_rnr_naks_total": 4,
            "fabric_rdma_rnr_naks_sent_total": 5,
            "fabric_rdma_sequence_naks_total": 6,
            "fabric_rdma_sequence_naks_sent_total": 7,
            "fabric_rdma_retries_exceeded_total": 8,
            "fabric_rdma_out_of_buffer_total": 9,
            'fabric_rdma_flushed_completions_total{side="requester"}': 10,
        }


HNS_MAC = {
    "mac_rx_pfc_pri3_pkt_num": 1,
    "mac_tx_pfc_pri3_pkt_num": 2,
    "mac_rx_pfc_pri3_xoff_time": 3,
    "mac_tx_pause_xoff_time": 4,
    "mac_rx_pfc_pkt_num": 5,
    "mac_rx_mac_pause_num": 6,
    "mac_rx_fcs_err_pkt_num": 7,
    "mac_rx_good_oct_num": 8,
    "mac_rx_total_oct_num": 9,
    "mac_rx_64_oct_pkt_num": 10,
    "txq0_pktnum_rcd": 11,
}


class TestHns:
    def test_time_without_a_unit_is_not_called_seconds(self) -> None:
        series = served(hns.DRIVER.ethtool, HNS_MAC)
        assert series == {
            'fabric_pfc_received_frames_total{priority="3"}': 1,
            'fabric_pfc_transmitted_frames_total{priority="3"}': 2,
            'fabric_pfc_received_xoff_time_total{priority="3"}': 3,
            "fabric_global_pause_transmitted_xoff_time_total": 4,
            "fabric_pfc_port_received_frames_total": 5,
            "fabric_global_pause_received_frames_total": 6,
            "fabric_phy_crc_errors_total": 7,
            "fabric_netdev_received_bytes_total": 8,
        }
        assert not any("seconds" in name for name in series)

    def test_rdma(self) -> None:
        counters = {
            "rx_pkt": 1,
            "rx_rc_pkt": 1,
            "tx_err_pkt": 2,
            "tx_cnp_pkt": 3,
            "rx_cnp_pkt": 4,
            "ecn_doorbell": 5,
            "rx_buffer": 6,
            "cq_cqe": 7,
            "cmds_err": 8,
        }
        assert served(hns.DRIVER.port, counters, PORT) == {
            "fabric_rdma_received_packets_total": 1,
            'fabric_rdma_discards_total{kind="transmit_errors"}': 2,
            "fabric_cnp_sent_packets_total": 3,
            "fabric_cnp_handled_packets_total": 4,
            'fabric_rdma_congestion_control_events_total{event="ecn_doorbell"}': 5,
            "fabric_rdma_admin_command_errors_total": 8,
        }
