"""NVIDIA ConnectX-4 and later, BlueField: mlx5_core and mlx5_ib.

Sources: drivers/net/ethernet/mellanox/mlx5/core/en_stats.c, drivers/infiniband/hw/mlx5/counters.c and the kernel's
Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst.
"""

from __future__ import annotations

from functools import partial

from exporter.catalogue import ethernet, ports, rdma
from exporter.drivers.entry import MICROSECONDS, PERCENT, Driver, counter, family, left_out

HOST = "traffic of the kernel's own rings, RDMA not included; node_exporter and the interface's own counters have it"
QUEUE = "statistics of single queues and channels come and go with ethtool -L; their sums are served where they matter"
NO_FAULT = "the driver's ordinary work, no sign of a fault"

port_counter = partial(counter, physical=True)
port_family = partial(family, physical=True)
frame_counter = partial(counter, physical=True, ethernet=True)
frame_family = partial(family, physical=True, ethernet=True)
queue_counter = partial(counter, width="mod32")

SOFTWARE = (
    left_out("(rx|tx)_(packets|bytes)", HOST, pattern=True),
    counter("rx_ecn_mark", ethernet.NETDEV_ECN_MARKED, width="sw64"),
    left_out("tx_queue_stopped", "a full send queue for a moment: back pressure, nothing is lost"),
    left_out("tx_queue_wake", NO_FAULT),
    counter("tx_queue_dropped", ethernet.HOST_DROPS, labels=(("kind", "tx_queue"),), width="sw64"),
    counter("tx_recover", ports.DRIVER_ERRORS, labels=(("kind", "tx_recovery"),), width="sw64"),
    counter("rx_recover", ports.DRIVER_ERRORS, labels=(("kind", "rx_recovery"),), width="sw64"),
    counter("tx_cqe_err", ports.DRIVER_ERRORS, labels=(("kind", "tx_completion"),), width="sw64"),
    counter("rx_wqe_err", ports.DRIVER_ERRORS, labels=(("kind", "rx_completion"),), width="sw64"),
    counter("rx_buff_alloc_err", ports.DRIVER_ERRORS, labels=(("kind", "rx_allocation"),), width="sw64"),
    counter("rx_oversize_pkts_sw_drop", ethernet.HOST_DROPS, labels=(("kind", "oversize_driver"),), width="sw64"),
    counter("ch_eq_rearm", ports.DRIVER_ERRORS, labels=(("kind", "lost_interrupt"),), width="sw64"),
    left_out("ch_(poll|aff_change|events|arm|force_irq)", NO_FAULT, pattern=True),
)
"""What the driver keeps in memory."""

DEVICE = (
    counter("rx_out_of_buffer", ethernet.HOST_DISCARDS, width="mod32"),
    counter("rx_if_down_packets", ethernet.HOST_DROPS, labels=(("kind", "interface_down"),), width="mod32"),
    counter("rx_steer_missed_packets", ethernet.STEERING_DROPS),
    counter("dev_internal_queue_oob", ethernet.HOST_DROPS, labels=(("kind", "internal_queue"),), width="mod32"),
    counter("rx_oversize_pkts_buffer", ethernet.HOST_DROPS, labels=(("kind", "oversize_buffer"),), width="mod32"),
    left_out("(rx|tx)_vport_(unicast|multicast|broadcast)_(packets|bytes)", HOST, pattern=True),
    family("rx_vport_rdma_(unicast|multicast)_bytes", rdma.RECEIVED_BYTES, sums=True),
    family("tx_vport_rdma_(unicast|multicast)_bytes", rdma.TRANSMITTED_BYTES, sums=True),
    family("rx_vport_rdma_(unicast|multicast)_packets", rdma.RECEIVED_PACKETS, sums=True),
    family("tx_vport_rdma_(unicast|multicast)_packets", rdma.TRANSMITTED_PACKETS, sums=True),
    left_out(
        "vport_loopback_(packets|bytes)", "traffic between functions of one card never meets the fabric", pattern=True
    ),
)
"""What the device counts for this function: right on virtual functions too."""

PHYSICAL = (
    frame_counter("rx_packets_phy", ethernet.RECEIVED_PACKETS),
    frame_counter("tx_packets_phy", ethernet.TRANSMITTED_PACKETS),
    frame_counter("rx_bytes_phy", ethernet.RECEIVED_BYTES),
    frame_counter("tx_bytes_phy", ethernet.TRANSMITTED_BYTES),
    left_out("rx_bits_phy", "the same traffic as rx_bytes_phy, in another unit"),
    left_out("(rx|tx)_(multicast|broadcast)_phy", "a part of rx_packets_phy and tx_packets_phy", pattern=True),
    left_out("rx_[0-9]+(_to_[0-9]+)?_bytes_phy", "packet sizes: a histogram no question here needs", pattern=True),
    frame_counter("rx_crc_errors_phy", ethernet.CRC_ERRORS),
    port_counter("rx_pcs_symbol_err_phy", ethernet.SYMBOL_ERRORS),
    frame_counter("rx_symbol_err_phy", ethernet.PHY_ERRORS, labels=(("kind", "symbol"),)),
    frame_counter("rx_in_range_len_errors_phy", ethernet.PHY_ERRORS, labels=(("kind", "in_range_length"),)),
    frame_counter("rx_out_of_range_len_phy", ethernet.PHY_ERRORS, labels=(("kind", "out_of_range_length"),)),
    frame_counter("rx_undersize_pkts_phy", ethernet.PHY_ERRORS, labels=(("kind", "undersize"),)),
    frame_counter("rx_fragments_phy", ethernet.PHY_ERRORS, labels=(("kind", "fragments"),)),
    frame_counter("rx_jabbers_phy", ethernet.PHY_ERRORS, labels=(("kind", "jabber"),)),
    frame_counter("tx_errors_phy", ethernet.PHY_ERRORS, labels=(("kind", "transmit"),)),
    frame_counter("rx_oversize_pkts_phy", ethernet.OVERSIZE),
    frame_counter("rx_unsupported_op_phy", ethernet.UNSUPPORTED_CONTROL),
    left_out("(rx|tx)_mac_control_phy", "control frames of all kinds together; pause is served by kind", pattern=True),
    left_out(
        "(rx|tx)_pause_ctrl_phy",
        "whether PFC frames are in here is not documented; rx_global_pause and rx_prioN_pause tell the two apart",
        pattern=True,
    ),
    frame_counter("rx_discards_phy", ethernet.RECEIVED_DISCARDS),
    frame_counter("tx_discards_phy", ethernet.TRANSMITTED_DISCARDS),
    port_counter("link_down_events_phy", ports.LINK_DOWNS, width="mod32"),
    port_counter("rx_corrected_bits_phy", ethernet.FEC_CORRECTIONS),
    port_family("rx_err_lane_(?P<lane>[0-3])_phy", ethernet.LANE_ERRORS),
    port_counter("rx_buffer_passed_thres_phy", ethernet.BUFFER_HIGH),
    port_counter("module_unplug", ports.MODULE_EVENTS, labels=(("event", "unplug"),), width="sw64"),
    port_counter("module_bus_stuck", ports.MODULE_EVENTS, labels=(("event", "bus_stuck"),), width="sw64"),
    port_counter("module_high_temp", ports.MODULE_EVENTS, labels=(("event", "high_temp"),), width="sw64"),
    port_counter("module_bad_shorted", ports.MODULE_EVENTS, labels=(("event", "bad_shorted"),), width="sw64"),
)
"""The port itself, shared by all functions and hosts behind it. What counts frames (IEEE 802.3) is listed on InfiniBand too."""

PCIE = (
    port_counter("rx_pci_signal_integrity", ports.PCIE_RECEIVED_SIGNAL_ERRORS, width="mod32"),
    port_counter("tx_pci_signal_integrity", ports.PCIE_TRANSMITTED_SIGNAL_ERRORS, width="mod32"),
    port_counter("outbound_pci_buffer_overflow", ports.PCIE_BUFFER_OVERFLOWS),
    port_counter(
        "outbound_pci_stalled_rd",
        ports.PCIE_STALLED_RATIO,
        labels=(("operation", "read"),),
        scale=PERCENT,
        width="gauge",
    ),
    port_counter(
        "outbound_pci_stalled_wr",
        ports.PCIE_STALLED_RATIO,
        labels=(("operation", "write"),),
        scale=PERCENT,
        width="gauge",
    ),
    port_counter(
        "outbound_pci_stalled_rd_events", ports.PCIE_STALLED_SECONDS, labels=(("operation", "read"),), width="mod32"
    ),
    port_counter(
        "outbound_pci_stalled_wr_events", ports.PCIE_STALLED_SECONDS, labels=(("operation", "write"),), width="mod32"
    ),
    port_family("pci_bw_inbound_(?P<threshold>high|low)", ports.PCIE_INBOUND_BANDWIDTH_EVENTS),
    port_family("pci_bw_outbound_(?P<threshold>high|low)", ports.PCIE_OUTBOUND_BANDWIDTH_EVENTS),
)

PRIORITIES = (
    frame_family("rx_prio(?P<priority>[0-7])_bytes", ethernet.PRIORITY_RECEIVED_BYTES),
    frame_family("tx_prio(?P<priority>[0-7])_bytes", ethernet.PRIORITY_TRANSMITTED_BYTES),
    frame_family("rx_prio(?P<priority>[0-7])_packets", ethernet.PRIORITY_RECEIVED_PACKETS),
    frame_family("tx_prio(?P<priority>[0-7])_packets", ethernet.PRIORITY_TRANSMITTED_PACKETS),
    frame_family("rx_prio(?P<priority>[0-7])_discards", ethernet.PRIORITY_DISCARDS),
    frame_family("rx_prio(?P<priority>[0-7])_buf_discard", ethernet.PRIORITY_BUFFER_DISCARDS),
    frame_family("rx_prio(?P<priority>[0-7])_cong_discard", ethernet.PRIORITY_WRED_DISCARDS),
    frame_family("rx_prio(?P<priority>[0-7])_marked", ethernet.PRIORITY_MARKED),
)

PAUSE = (
    frame_family("rx_prio(?P<priority>[0-7])_pause", ethernet.PFC_RECEIVED_FRAMES),
    frame_family("tx_prio(?P<priority>[0-7])_pause", ethernet.PFC_TRANSMITTED_FRAMES),
    frame_family("rx_prio(?P<priority>[0-7])_pause_duration", ethernet.PFC_RECEIVED_PAUSE, scale=MICROSECONDS),
    frame_family("tx_prio(?P<priority>[0-7])_pause_duration", ethernet.PFC_TRANSMITTED_PAUSE, scale=MICROSECONDS),
    frame_family("rx_prio(?P<priority>[0-7])_pause_transition", ethernet.PFC_RECEIVED_TRANSITIONS),
    frame_counter("rx_global_pause", ethernet.GLOBAL_RECEIVED_FRAMES),
    frame_counter("tx_global_pause", ethernet.GLOBAL_TRANSMITTED_FRAMES),
    frame_counter("rx_global_pause_duration", ethernet.GLOBAL_RECEIVED_PAUSE, scale=MICROSECONDS),
    frame_counter("tx_global_pause_duration", ethernet.GLOBAL_TRANSMITTED_PAUSE, scale=MICROSECONDS),
    frame_counter("rx_global_pause_transition", ethernet.GLOBAL_RECEIVED_TRANSITIONS),
    frame_counter("tx_pause_storm_warning_events", ethernet.STORM_WARNINGS),
    frame_counter("tx_pause_storm_error_events", ethernet.STORM_ERRORS),
)
"""The names of a priority exist only while PFC is on for it, the global ones only while 802.3x is on."""

QUEUES = (
    left_out(r"(rx|tx|ch)[0-9]+_[a-z0-9_]+", QUEUE, pattern=True),
    left_out(
        r"(rx|tx)_(lro|gro|hw_gro|tso|csum|xdp|xsk|cache|pp|tls|mpwqe|cqe|arfs|congst|removed_vlan|added_vlan|nop|xmit)[a-z0-9_]*",
        "offloads, buffers and XDP programs of the host at their ordinary work",
        pattern=True,
    ),
    left_out(r"(ptp_(tx|rx|ch|cq)|qos_tx|macsec|ipsec)[a-z0-9_]*", QUEUE, pattern=True),
)

Q_COUNTERS = (
    queue_counter("rx_write_requests", rdma.REQUESTS_RECEIVED, labels=(("operation", "write"),)),
    queue_counter("rx_read_requests", rdma.REQUESTS_RECEIVED, labels=(("operation", "read"),)),
    queue_counter("rx_atomic_requests", rdma.REQUESTS_RECEIVED, labels=(("operation", "atomic"),)),
    queue_counter("rx_dct_connect", rdma.REQUESTS_RECEIVED, labels=(("operation", "dct_connect"),)),
    queue_counter("out_of_buffer", rdma.OUT_OF_BUFFER),
    queue_counter("out_of_sequence", rdma.OUT_OF_SEQUENCE),
    queue_counter("duplicate_request", rdma.DUPLICATE_REQUESTS),
    queue_counter("rnr_nak_retry_err", rdma.RNR_NAKS),
    queue_counter("packet_seq_err", rdma.SEQUENCE_NAKS),
    queue_counter("implied_nak_seq_err", rdma.IMPLIED_NAKS),
    queue_counter("local_ack_timeout_err", rdma.ACK_TIMEOUTS),
    queue_counter("resp_cqe_error", rdma.COMPLETION_ERRORS, labels=(("side", "responder"),)),
    queue_counter("req_cqe_error", rdma.COMPLETION_ERRORS, labels=(("side", "requester"),)),
    queue_counter("resp_cqe_flush_error", rdma.FLUSHED_COMPLETIONS, labels=(("side", "responder"),)),
    queue_counter("req_cqe_flush_error", rdma.FLUSHED_COMPLETIONS, labels=(("side", "requester"),)),
    queue_counter("resp_local_length_error", rdma.QP_ERRORS, labels=(("kind", "responder_local_length"),)),
    queue_counter("req_remote_invalid_request", rdma.QP_ERRORS, labels=(("kind", "remote_invalid_request"),)),
    queue_counter("req_remote_access_errors", rdma.QP_ERRORS, labels=(("kind", "remote_access"),)),
    queue_counter("resp_remote_access_errors", rdma.QP_ERRORS, labels=(("kind", "responder_remote_access"),)),
    queue_counter("req_transport_retries_exceeded", rdma.RETRIES_EXCEEDED),
    queue_counter("req_rnr_retries_exceeded", rdma.RNR_RETRIES_EXCEEDED),
    queue_counter("roce_adp_retrans", rdma.ADAPTIVE_RETRANSMITS),
    queue_counter("roce_adp_retrans_to", rdma.ADAPTIVE_RETRANSMIT_TIMEOUTS),
    queue_counter("roce_slow_restart", rdma.SLOW_RESTARTS),
    queue_counter("roce_slow_restart_cnps", rdma.SLOW_RESTART_CNPS),
    queue_counter("roce_slow_restart_trans", rdma.SLOW_RESTART_TRANSITIONS),
)

CONGESTION = (
    counter("np_ecn_marked_roce_packets", rdma.ECN_MARKED, lag_sum=True),
    counter("np_cnp_sent", rdma.CNP_SENT, lag_sum=True),
    counter("rp_cnp_handled", rdma.CNP_HANDLED, lag_sum=True),
    counter("rp_cnp_ignored", rdma.CNP_IGNORED, lag_sum=True),
    counter("rx_icrc_encapsulated", rdma.ICRC_ERRORS),
)

OPTIONAL = (
    counter("cc_rx_ce_pkts", rdma.ECN_MARKED, alternative=True),
    counter("cc_tx_cnp_pkts", rdma.CNP_SENT, alternative=True),
    counter("cc_rx_cnp_pkts", rdma.CNP_RECEIVED),
    counter("rdma_rx_bytes", rdma.RECEIVED_BYTES),
    counter("rdma_tx_bytes", rdma.TRANSMITTED_BYTES),
    counter("rdma_rx_packets", rdma.RECEIVED_PACKETS),
    counter("rdma_tx_packets", rdma.TRANSMITTED_PACKETS),
)
"""Off until the operator turns them on (rdma statistic set link ... optional-counters); in RDMA netlink only."""

REPRESENTORS = (
    left_out(
        "vport_[a-z0-9_]+",
        "a representor's copy of what another function counts; that function's own port has the original",
        pattern=True,
    ),
)

DRIVER = Driver(
    name="mlx5",
    kernel_names=("mlx5_core", "mlx5_ib", "mlx5_core[ib_ipoib]", "mlx5e_rep"),  # IPoIB; the uplink in switchdev mode
    device_pattern=r"mlx5_.+",
    ethtool=(*SOFTWARE, *DEVICE, *PHYSICAL, *PCIE, *PRIORITIES, *PAUSE, *QUEUES),
    port=(*Q_COUNTERS, *CONGESTION, *OPTIONAL, *REPRESENTORS),
    device=Q_COUNTERS,
    read_first="rx_write_requests",
    pause_frames=False,
    notes=(
        "Pause frames by ethtool netlink come from the register behind rx_pause_ctrl_phy, which may count PFC frames too: they "
        "are not served as 802.3x pause; rx_global_pause of ethtool -S is.",
        "One ethtool -S costs about 40 firmware commands under RTNL; firmware in trouble can hold RTNL for minutes.",
        "PFC and 802.3x names come and go with the configuration: no PFC series for a priority means PFC is off for it.",
        "rx_out_of_buffer (ethtool -S) is the kernel's rings; out_of_buffer (hw_counters) is RDMA.",
        "rx_ecn_mark counts marks seen by the kernel's rings, rx_prioN_marked marks made by this card: neither is a mark on "
        "RoCE that came from the network. That is np_ecn_marked_roce_packets.",
        "With adaptive retransmission on, timeouts are counted in roce_adp_retrans_to and local_ack_timeout_err may stay flat.",
        "Congestion counters are missing when the firmware denies the query (typical for virtual functions). On a bond they are "
        "the sum over its members. cc_rx_ce_pkts and cc_tx_cnp_pkts stand in for them where they are on.",
        "sysfs refreshes its cache only when rx_write_requests is read: it is read first.",
        "On IP over InfiniBand the names of Ethernet's own counters exist too, and count nothing that is documented: no series.",
        "In switchdev mode the Q counters are in the device's hw_counters.",
    ),
)
