"""Broadcom NetXtreme-E (BCM574xx to BCM576xx, Thor): bnxt_en and bnxt_re.

Sources: drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c, drivers/infiniband/hw/bnxt_re/hw_counters.c, Broadcom's own
(out-of-tree) bnxt_re, and the comments of the firmware interface (rx_port_stats_ext) for what an event means.
"""

from __future__ import annotations

from functools import partial

from exporter.catalogue import ethernet, ports, rdma
from exporter.drivers.entry import MICROSECONDS, Driver, counter, family, left_out

port_counter = partial(counter, width="acc64", physical=True)
port_family = partial(family, width="acc64", physical=True)

PAUSE = (
    port_family("rx_pfc_ena_frames_pri(?P<priority>[0-7])", ethernet.PFC_RECEIVED_FRAMES),
    port_family("tx_pfc_ena_frames_pri(?P<priority>[0-7])", ethernet.PFC_TRANSMITTED_FRAMES),
    port_family("pfc_pri(?P<priority>[0-7])_rx_duration_us", ethernet.PFC_RECEIVED_PAUSE, scale=MICROSECONDS),
    port_family("pfc_pri(?P<priority>[0-7])_tx_duration_us", ethernet.PFC_TRANSMITTED_PAUSE, scale=MICROSECONDS),
    port_family("pfc_pri(?P<priority>[0-7])_rx_transitions", ethernet.PFC_RECEIVED_TRANSITIONS),
    port_family("pfc_pri(?P<priority>[0-7])_tx_transitions", ethernet.PFC_TRANSMITTED_TRANSITIONS),
    port_counter("rx_pfc_frames", ethernet.PFC_PORT_RECEIVED_FRAMES),
    port_counter("tx_pfc_frames", ethernet.PFC_PORT_TRANSMITTED_FRAMES),
    port_counter("rx_pause_frames", ethernet.GLOBAL_RECEIVED_FRAMES),
    port_counter("tx_pause_frames", ethernet.GLOBAL_TRANSMITTED_FRAMES),
    # A receive ring that stands still while the port pauses its peer ...
    port_counter("continuous_pause_events", ethernet.STORM_WARNINGS),
    # ... and the firmware taking PFC off the RoCE class to end the flood.
    port_counter("continuous_roce_pause_events", ethernet.STORM_ERRORS),
    # One event each, of one of the two conditions above: their sum is the number of ends.
    port_counter("resume_pause_events", ethernet.STORM_RECOVERIES, sums=True),
    port_counter("resume_roce_pause_events", ethernet.STORM_RECOVERIES, sums=True),
)

PHYSICAL = (
    port_counter("link_down_events", ports.LINK_DOWNS),
    port_counter("rx_pcs_symbol_err", ethernet.SYMBOL_ERRORS),
    port_counter("rx_corrected_bits", ethernet.FEC_CORRECTIONS),
    port_counter("rx_fec_corrected_blocks", ethernet.FEC_CORRECTED_BLOCKS),
    port_counter("rx_fec_uncorrectable_blocks", ethernet.FEC_UNCORRECTABLE_BLOCKS),
    port_counter("rx_fcs_err_frames", ethernet.CRC_ERRORS),
    port_counter("rx_ovrsz_frames", ethernet.OVERSIZE),
    port_counter("rx_mtu_err_frames", ethernet.PHY_ERRORS, labels=(("kind", "over_mtu"),)),
    port_counter("rx_align_err_frames", ethernet.PHY_ERRORS, labels=(("kind", "alignment"),)),
    port_counter("rx_undrsz_frames", ethernet.PHY_ERRORS, labels=(("kind", "undersize"),)),
    port_counter("rx_runt_frames", ethernet.PHY_ERRORS, labels=(("kind", "fragments"),)),
    port_counter("rx_jbr_frames", ethernet.PHY_ERRORS, labels=(("kind", "jabber"),)),
    port_counter("rx_stat_err", ethernet.PHY_ERRORS, labels=(("kind", "receive_error_drop"),)),
    port_counter("tx_stat_error", ethernet.PHY_ERRORS, labels=(("kind", "transmit_error_drop"),)),
    port_counter("tx_err", ethernet.PHY_ERRORS, labels=(("kind", "transmit"),)),
    port_counter("tx_fcs_err_frames", ethernet.PHY_ERRORS, labels=(("kind", "transmit_crc"),)),
    port_counter("tx_jabber_frames", ethernet.PHY_ERRORS, labels=(("kind", "transmit_jabber"),)),
    port_counter("tx_fifo_underruns", ports.PCIE_UNDERRUNS),
    port_counter("rx_stat_discard", ethernet.RECEIVED_DISCARDS),
    port_counter("tx_stat_discard", ethernet.TRANSMITTED_DISCARDS),
    port_counter("tx_xthol_frames", ethernet.HEAD_OF_LINE_DISCARDS),
    port_counter("rx_buffer_passed_threshold", ethernet.BUFFER_HIGH),
    port_counter("rx_filter_miss", ethernet.STEERING_DROPS),
)

TRAFFIC = (
    port_counter("rx_bytes", ethernet.RECEIVED_BYTES),
    port_counter("tx_bytes", ethernet.TRANSMITTED_BYTES),
    port_counter("rx_good_frames", ethernet.RECEIVED_PACKETS),
    port_counter("tx_good_frames", ethernet.TRANSMITTED_PACKETS),
    port_family("rx_bytes_pri(?P<priority>[0-7])", ethernet.PRIORITY_RECEIVED_BYTES),
    port_family("tx_bytes_pri(?P<priority>[0-7])", ethernet.PRIORITY_TRANSMITTED_BYTES),
    port_family("rx_packets_pri(?P<priority>[0-7])", ethernet.PRIORITY_RECEIVED_PACKETS),
    port_family("tx_packets_pri(?P<priority>[0-7])", ethernet.PRIORITY_TRANSMITTED_PACKETS),
    port_family("rx_discard_packets_cos(?P<cos>[0-7])", ethernet.COS_DISCARDS),
    left_out("rx_discard_bytes_cos[0-7]", "the same discards as rx_discard_packets_cosN, in bytes", pattern=True),
    left_out("(rx|tx)_(bytes|packets)_cos[0-7]", "the same traffic as the names with _priN, by queue", pattern=True),
    left_out("rx_bits", "rx_bytes in another unit"),
    left_out("rx_runt_bytes", "the runt frames are counted"),
    left_out(
        "(rx|tx)_(total|ucast|mcast|bcast|ctrl|tagged|double_tagged|good_vlan)_frames",
        "a part of rx_good_frames and tx_good_frames, or these with the faulty frames, which are served by kind",
        pattern=True,
    ),
    left_out("(rx|tx)_[0-9]+b(_[0-9]+b)?_frames", "packet sizes: a histogram no question here needs", pattern=True),
    left_out("(rx|tx)_eee_lpi_(events|duration)", "energy saving: ordinary work", pattern=True),
    left_out("tx_total_collisions", "half duplex only"),
    left_out(
        "pcie_[a-z0-9_]+(\\[[0-9]+\\])?",
        "old drivers only, and rates and histograms among them; the PCIe link and AER are read from the kernel",
        pattern=True,
    ),
)

HOST = (
    counter("rx_total_ring_discards", ethernet.HOST_DISCARDS, width="acc64"),
    counter("rx_total_discard_pkts", ethernet.HOST_DISCARDS, width="acc64", alternative=True),
    counter("tx_total_ring_discards", ethernet.HOST_DROPS, labels=(("kind", "tx_queue"),), width="acc64"),
    counter(
        "tx_total_discard_pkts", ethernet.HOST_DROPS, labels=(("kind", "tx_queue"),), width="acc64", alternative=True
    ),
    counter("rx_total_oom_discards", ethernet.HOST_DROPS, labels=(("kind", "out_of_memory"),), width="sw64"),
    counter("rx_total_buf_errors", ethernet.HOST_DROPS, labels=(("kind", "buffer_error"),), width="sw64"),
    counter("rx_total_netpoll_discards", ethernet.HOST_DROPS, labels=(("kind", "netpoll"),), width="sw64"),
    counter("rx_total_l4_csum_errors", ethernet.PHY_ERRORS, labels=(("kind", "l4_checksum"),), width="sw64"),
    counter("rx_total_resets", ports.DRIVER_ERRORS, labels=(("kind", "rx_ring_reset"),), width="sw64"),
    counter("tx_total_resets", ports.DRIVER_ERRORS, labels=(("kind", "tx_ring_reset"),), width="sw64"),
    counter("total_missed_irqs", ports.DRIVER_ERRORS, labels=(("kind", "lost_interrupt"),), width="sw64"),
    left_out(
        r"\[[0-9]+\]: [a-z0-9_]+",
        "statistics of single rings come and go with ethtool -L; the sums that matter are served",
        pattern=True,
    ),
)
"""The function's own rings: right on virtual functions too. ``..._discard_pkts`` is the older name."""

RDMA_TRAFFIC = (
    counter("rx_bytes", rdma.RECEIVED_BYTES),
    counter("tx_bytes", rdma.TRANSMITTED_BYTES),
    counter("rx_pkts", rdma.RECEIVED_PACKETS),
    counter("tx_pkts", rdma.TRANSMITTED_PACKETS),
    family("rx_(?P<operation>atomic|read|write|send)_req(uests)?", rdma.REQUESTS_RECEIVED),
    family("tx_(?P<operation>atomic|read|write|send)_req", rdma.REQUESTS_TRANSMITTED),
    left_out("(rx|tx)_read_resp", "answers to READs, in packets and bytes already", pattern=True),
    left_out("(rx|tx)_roce_only_(pkts|bytes)", "a part of rx_pkts and tx_pkts: without the CNPs", pattern=True),
    left_out("rx_(roce_)?good_(pkts|bytes)", "rx_pkts without the faulty, which are served", pattern=True),
    family("active_(?P<kind>pds|ahs|qps|rc_qps|ud_qps|srqs|cqs|mrs|mws)", rdma.OBJECTS, width="gauge"),
    family("watermark_(?P<kind>pds|ahs|qps|rc_qps|ud_qps|srqs|cqs|mrs|mws)", rdma.OBJECTS_PEAK, width="gauge"),
    left_out("resize_cq_cnt", "completion queues resized: ordinary work"),
)

RDMA_ERRORS = (
    counter("rx_roce_errors", rdma.DROPS, labels=(("kind", "receive_errors"),)),
    counter("tx_roce_errors", rdma.DROPS, labels=(("kind", "transmit_errors"),)),
    counter("rx_roce_discards", rdma.DROPS, labels=(("kind", "receive_discards"),)),
    counter("tx_roce_discards", rdma.DROPS, labels=(("kind", "transmit_discards"),)),
    counter("max_retry_exceeded", rdma.RETRIES_EXCEEDED),
    counter("recoverable_errors", rdma.QP_ERRORS, labels=(("kind", "recoverable"),)),
    counter("unrecoverable_err", rdma.QP_ERRORS, labels=(("kind", "unrecoverable"),)),
    counter("bad_resp_err", rdma.QP_ERRORS, labels=(("kind", "bad_response"),)),
    counter("local_qp_op_err", rdma.QP_ERRORS, labels=(("kind", "local_operation"),)),
    counter("local_protection_err", rdma.QP_ERRORS, labels=(("kind", "local_protection"),)),
    counter("mem_mgmt_op_err", rdma.QP_ERRORS, labels=(("kind", "memory_management"),)),
    counter("remote_op_err", rdma.QP_ERRORS, labels=(("kind", "remote_operation"),)),
    # Every error of the device's PCIe requests is in one of the two: their sum is all of them.
    family("res_(rx|tx)_pci_err", ports.PCIE_RDMA_ERRORS, sums=True),
    family(
        "(?P<kind>res_(?:exceed_max|exceeds_wqe|opcode_err|rx_invalid_rkey|rx_domain_err|rx_no_perm|rx_range_err"
        "|tx_invalid_rkey|tx_domain_err|tx_no_perm|tx_range_err|irrq_oflow|unsup_opcode|unaligned_atomic|rem_inv_err"
        "|mem_err|srq_err|cmp_err|invalid_dup_rkey|wqe_format_err|cq_load_err|srq_load_err))",
        rdma.QP_ERRORS,
    ),
    counter("pacing_alerts", rdma.DOORBELL_PACING, width="sw64"),
    left_out("pacing_(reschedule|complete)", "how the driver paces; pacing_alerts says that it had to", pattern=True),
    left_out("db_fifo_register", "the raw content of a register"),
)

UPSTREAM = (
    counter("to_retransmits", rdma.ACK_TIMEOUTS),
    counter("seq_err_naks_rcvd", rdma.SEQUENCE_NAKS),
    counter("rnr_naks_rcvd", rdma.RNR_NAKS),
    counter("missing_resp", rdma.IMPLIED_NAKS),
    counter("dup_req", rdma.DUPLICATE_REQUESTS),
    counter("remote_invalid_req_err", rdma.QP_ERRORS, labels=(("kind", "remote_invalid_request"),)),
    counter("remote_access_err", rdma.QP_ERRORS, labels=(("kind", "remote_access"),)),
    counter("res_length_mismatch", rdma.QP_ERRORS, labels=(("kind", "responder_local_length"),)),
    counter("oos_drop_count", rdma.OUT_OF_SEQUENCE),
    counter("rx_out_of_buffer", rdma.OUT_OF_BUFFER),
    counter("tx_cnp_pkts", rdma.CNP_SENT),
    counter("rx_cnp_pkts", rdma.CNP_HANDLED),
    counter("rx_ecn_marked_pkts", rdma.ECN_MARKED),
)
"""What the kernel's driver calls by its own names."""

OUT_OF_TREE = (
    counter("local_ack_timeout_err", rdma.ACK_TIMEOUTS, alternative=True),
    counter("packet_seq_err", rdma.SEQUENCE_NAKS, alternative=True),
    counter("rnr_nak_retry_err", rdma.RNR_NAKS, alternative=True),
    counter("implied_nak_seq_err", rdma.IMPLIED_NAKS, alternative=True),
    counter("duplicate_request", rdma.DUPLICATE_REQUESTS, alternative=True),
    counter(
        "req_remote_invalid_request", rdma.QP_ERRORS, labels=(("kind", "remote_invalid_request"),), alternative=True
    ),
    counter("req_remote_access_errors", rdma.QP_ERRORS, labels=(("kind", "remote_access"),), alternative=True),
    counter("resp_local_length_error", rdma.QP_ERRORS, labels=(("kind", "responder_local_length"),), alternative=True),
    counter("out_of_sequence", rdma.OUT_OF_SEQUENCE, alternative=True),
    counter("out_of_buffer", rdma.OUT_OF_BUFFER, alternative=True),
    counter("np_cnp_sent", rdma.CNP_SENT, alternative=True),
    counter("np_cnp_pkts", rdma.CNP_SENT, alternative=True),
    counter("rp_cnp_handled", rdma.CNP_HANDLED, alternative=True),
    counter("np_ecn_marked_roce_packets", rdma.ECN_MARKED, alternative=True),
    # From here on names that the kernel's driver has no twin of.
    counter("rp_cnp_ignored", rdma.CNP_IGNORED),
    counter("rx_icrc_encapsulated", rdma.ICRC_ERRORS),
    counter("req_cqe_error", rdma.COMPLETION_ERRORS, labels=(("side", "requester"),)),
    counter("resp_cqe_error", rdma.COMPLETION_ERRORS, labels=(("side", "responder"),)),
    counter("req_cqe_flush_error", rdma.FLUSHED_COMPLETIONS, labels=(("side", "requester"),)),
    counter("resp_cqe_flush_error", rdma.FLUSHED_COMPLETIONS, labels=(("side", "responder"),)),
    counter("resp_remote_access_errors", rdma.QP_ERRORS, labels=(("kind", "responder_remote_access"),)),
    counter("roce_adp_retrans", rdma.ADAPTIVE_RETRANSMITS),
    counter("roce_adp_retrans_to", rdma.ADAPTIVE_RETRANSMIT_TIMEOUTS),
    counter("roce_slow_restart", rdma.SLOW_RESTARTS),
    counter("roce_slow_restart_cnps", rdma.SLOW_RESTART_CNPS),
    counter("roce_slow_restart_trans", rdma.SLOW_RESTART_TRANSITIONS),
)
"""What Broadcom's own driver calls by mlx5's names. A device has one generation of names or the other."""

DRIVER = Driver(
    name="bnxt",
    kernel_names=("bnxt_en", "bnxt_re"),
    device_pattern="bnxt_re.+",
    ethtool=(*PAUSE, *PHYSICAL, *TRAFFIC, *HOST),
    port=(*RDMA_TRAFFIC, *RDMA_ERRORS, *UPSTREAM, *OUT_OF_TREE),
    refresh_seconds=1,
    notes=(
        "The device writes its port statistics once a second (ethtool -C stats-block-usecs) and only while the link is up: "
        "reading more often shows the same numbers. Changing that interval closes and reopens the interface.",
        "Port statistics exist on the physical function only.",
        "The traffic of a priority is the traffic of its hardware queue (CoS): priorities that share a queue show the same "
        "numbers, do not add them up. The names are there only while the map of priorities to queues is known.",
        "A duration of received pause is the time this port was stopped, of transmitted pause the time it stopped its peer.",
        "continuous_roce_pause_events means that the firmware switched PFC off for RoCE to end a flood: packets drop after it.",
        "After one failed query of the firmware bnxt_re stops asking, and its error counters stay as they are for good: a port "
        "whose rdma packets grow while everything else never moves may be such a port. Loading the driver again ends it.",
        "rx_out_of_buffer of bnxt_re (hw_counters) is RDMA; the same word of mlx5 (ethtool -S) is the kernel's rings.",
        "rx_cnp_pkts and rp_cnp_handled count the CNPs received; whether each slowed a queue pair is not told.",
        "Broadcom's own driver has mlx5's names and a counters directory; the kernel's has neither.",
    ),
)
