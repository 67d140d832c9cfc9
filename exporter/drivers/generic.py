"""Every driver without a table of its own: only names that mean the same wherever they occur.

Sources: the ethtool.c of igb, e1000e, ixgbe, i40e and tg3 (drivers/net/ethernet), struct rtnl_link_stats64 in
include/uapi/linux/if_link.h, Documentation/ABI/stable/sysfs-class-infiniband. ixgbe's ``rx_pb_N_pxoff`` stays unmatched: the
source does not say whether N is a priority or a packet buffer.
"""

from __future__ import annotations

from exporter.catalogue import ethernet, ports, rdma
from exporter.drivers.entry import Driver, counter, family, left_out

NO_COUNTER = "an interface's number, not a counter"

ETHTOOL = (
    left_out("peer_ifindex", NO_COUNTER),
    counter("rx_crc_errors", ethernet.CRC_ERRORS),
    counter("port.rx_crc_errors", ethernet.CRC_ERRORS, alternative=True),
    counter("rx_fcs_errors", ethernet.CRC_ERRORS, alternative=True),
    counter("port.rx_dropped", ethernet.RECEIVED_DISCARDS),
    counter("port.rx_discards", ethernet.RECEIVED_DISCARDS, alternative=True),
    counter("rx_missed_errors", ethernet.RECEIVED_DISCARDS, alternative=True),
    counter("port.tx_dropped_link_down", ethernet.TRANSMITTED_DISCARDS),
    counter("rx_no_dma_resources", ethernet.HOST_DISCARDS),
    counter("rx_no_buffer_count", ethernet.HOST_DISCARDS, alternative=True),
    family(r"port\.rx_priority_(?P<priority>[0-7])_xoff_rx", ethernet.PFC_RECEIVED_FRAMES),
    family(r"port\.tx_priority_(?P<priority>[0-7])_xoff_tx", ethernet.PFC_TRANSMITTED_FRAMES),
    family(r"port\.rx_priority_(?P<priority>[0-7])_xon_rx", ethernet.PFC_RECEIVED_XON),
    family(r"port\.tx_priority_(?P<priority>[0-7])_xon_tx", ethernet.PFC_TRANSMITTED_XON),
    counter("rx_flow_control_xoff", ethernet.GLOBAL_RECEIVED_FRAMES),
    counter("port.link_xoff_rx", ethernet.GLOBAL_RECEIVED_FRAMES, alternative=True),
    counter("rx_xoff_pause_rcvd", ethernet.GLOBAL_RECEIVED_FRAMES, alternative=True),
    counter("tx_flow_control_xoff", ethernet.GLOBAL_TRANSMITTED_FRAMES),
    counter("port.link_xoff_tx", ethernet.GLOBAL_TRANSMITTED_FRAMES, alternative=True),
    counter("tx_xoff_sent", ethernet.GLOBAL_TRANSMITTED_FRAMES, alternative=True),
    counter("rx_flow_control_xon", ethernet.GLOBAL_RECEIVED_XON),
    counter("port.link_xon_rx", ethernet.GLOBAL_RECEIVED_XON, alternative=True),
    counter("rx_xon_pause_rcvd", ethernet.GLOBAL_RECEIVED_XON, alternative=True),
    counter("tx_flow_control_xon", ethernet.GLOBAL_TRANSMITTED_XON),
    counter("port.link_xon_tx", ethernet.GLOBAL_TRANSMITTED_XON, alternative=True),
    counter("tx_xon_sent", ethernet.GLOBAL_TRANSMITTED_XON, alternative=True),
    counter("port.mac_local_faults", ethernet.PHY_ERRORS, labels=(("kind", "local_fault"),)),
    counter("port.mac_remote_faults", ethernet.PHY_ERRORS, labels=(("kind", "remote_fault"),)),
    counter("port.rx_undersize", ethernet.PHY_ERRORS, labels=(("kind", "undersize"),)),
    counter("rx_short_length_errors", ethernet.PHY_ERRORS, labels=(("kind", "undersize"),), alternative=True),
    counter("port.rx_fragments", ethernet.PHY_ERRORS, labels=(("kind", "fragments"),)),
    counter("rx_fragments", ethernet.PHY_ERRORS, labels=(("kind", "fragments"),), alternative=True),
    counter("port.rx_jabber", ethernet.PHY_ERRORS, labels=(("kind", "jabber"),)),
    counter("rx_jabbers", ethernet.PHY_ERRORS, labels=(("kind", "jabber"),), alternative=True),
    counter("rx_align_errors", ethernet.PHY_ERRORS, labels=(("kind", "alignment"),)),
    counter("port.rx_oversize", ethernet.OVERSIZE),
    counter("rx_long_length_errors", ethernet.OVERSIZE, alternative=True),
    counter("rx_frame_too_long_errors", ethernet.OVERSIZE, alternative=True),
    counter("port.rx_bytes", ethernet.RECEIVED_BYTES),
    counter("rx_bytes_nic", ethernet.RECEIVED_BYTES, alternative=True),
    counter("port.tx_bytes", ethernet.TRANSMITTED_BYTES),
    counter("tx_bytes_nic", ethernet.TRANSMITTED_BYTES, alternative=True),
    counter("tx_timeout_count", ports.WATCHDOG, width="sw64"),
    counter("port.tx_timeout", ports.WATCHDOG, width="sw64", alternative=True),
)

PORT = (
    counter("out_of_buffer", rdma.OUT_OF_BUFFER),
    counter("out_of_sequence", rdma.OUT_OF_SEQUENCE),
    counter("duplicate_request", rdma.DUPLICATE_REQUESTS),
    counter("packet_seq_err", rdma.SEQUENCE_NAKS),
    counter("implied_nak_seq_err", rdma.IMPLIED_NAKS),
    counter("local_ack_timeout_err", rdma.ACK_TIMEOUTS),
    counter("rnr_nak_retry_err", rdma.RNR_NAKS),
    counter("np_ecn_marked_roce_packets", rdma.ECN_MARKED),
    counter("np_cnp_sent", rdma.CNP_SENT),
    counter("rp_cnp_handled", rdma.CNP_HANDLED),
    counter("rp_cnp_ignored", rdma.CNP_IGNORED),
    counter("rx_icrc_encapsulated", rdma.ICRC_ERRORS),
)
"""The names that the kernel's ABI document gives a meaning."""

GENERIC = Driver(
    name="generic",
    kernel_names=(),
    ethtool=ETHTOOL,
    port=PORT,
    notes=("A name that is not listed is left alone: what it counts, and in which unit, is the driver's own affair.",),
)
