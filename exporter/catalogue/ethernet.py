"""What the NIC driver counts on Ethernet: PFC and pause, priorities, drops, physical layer, FEC; and PFC configuration."""

from exporter.catalogue.declare import NP, N, counter, gauge, unknown

PFC_RECEIVED_FRAMES = counter(
    "fabric_pfc_received_frames_total",
    NP,
    "PFC pause frames received: the network told this port to stop that priority.",
)
PFC_TRANSMITTED_FRAMES = counter(
    "fabric_pfc_transmitted_frames_total", NP, "PFC pause frames transmitted: this host is the slow receiver."
)
PFC_RECEIVED_PAUSE = counter(
    "fabric_pfc_received_pause_seconds_total",
    NP,
    "Time that this port could not transmit on that priority. Its rate is the paused share, 0 to 1.",
)
PFC_TRANSMITTED_PAUSE = counter(
    "fabric_pfc_transmitted_pause_seconds_total", NP, "Time that this port held its peer paused on that priority."
)
PFC_RECEIVED_TRANSITIONS = counter(
    "fabric_pfc_received_transitions_total",
    NP,
    "Changes from paused to running on that priority, caused by the peer.",
    profile="full",
)
PFC_TRANSMITTED_TRANSITIONS = counter(
    "fabric_pfc_transmitted_transitions_total",
    NP,
    "Changes from paused to running on that priority that this port caused at its peer.",
    profile="full",
)
PFC_RECEIVED_XON = counter(
    "fabric_pfc_received_xon_frames_total", NP, "PFC frames received that let the priority go on.", profile="full"
)
PFC_TRANSMITTED_XON = counter(
    "fabric_pfc_transmitted_xon_frames_total", NP, "PFC frames transmitted that let the peer go on.", profile="full"
)
PFC_RECEIVED_XOFF_TIME = counter(
    "fabric_pfc_received_xoff_time_total",
    NP,
    "Pause time received on that priority in a unit that the driver's source does not state: compare it with itself only.",
    profile="full",
)
PFC_TRANSMITTED_XOFF_TIME = counter(
    "fabric_pfc_transmitted_xoff_time_total",
    NP,
    "Pause time transmitted on that priority in a unit that the driver's source does not state.",
    profile="full",
)
PFC_PORT_RECEIVED_FRAMES = counter(
    "fabric_pfc_port_received_frames_total",
    N,
    "PFC pause frames received on all priorities together (drivers that do not tell priorities apart).",
)
PFC_PORT_TRANSMITTED_FRAMES = counter(
    "fabric_pfc_port_transmitted_frames_total", N, "PFC pause frames transmitted on all priorities together."
)
GLOBAL_RECEIVED_FRAMES = counter(
    "fabric_global_pause_received_frames_total",
    N,
    "802.3x pause frames received: the whole port was told to stop.",
    sources=("ethtool", "pause"),
)
GLOBAL_TRANSMITTED_FRAMES = counter(
    "fabric_global_pause_transmitted_frames_total",
    N,
    "802.3x pause frames transmitted: this host holds its whole link.",
    sources=("ethtool", "pause"),
)
GLOBAL_RECEIVED_PAUSE = counter(
    "fabric_global_pause_received_seconds_total", N, "Time that this port could not transmit because of 802.3x pause."
)
GLOBAL_TRANSMITTED_PAUSE = counter(
    "fabric_global_pause_transmitted_seconds_total", N, "Time that this port held its peer with 802.3x pause."
)
GLOBAL_RECEIVED_TRANSITIONS = counter(
    "fabric_global_pause_received_transitions_total",
    N,
    "Changes from paused to running by 802.3x, caused by the peer.",
    profile="full",
)
GLOBAL_TRANSMITTED_TRANSITIONS = counter(
    "fabric_global_pause_transmitted_transitions_total",
    N,
    "Changes from paused to running by 802.3x that this port caused at its peer.",
    profile="full",
)
GLOBAL_RECEIVED_XON = counter(
    "fabric_global_pause_received_xon_frames_total",
    N,
    "802.3x frames received that let the link go on.",
    profile="full",
)
GLOBAL_TRANSMITTED_XON = counter(
    "fabric_global_pause_transmitted_xon_frames_total",
    N,
    "802.3x frames transmitted that let the peer go on.",
    profile="full",
)
GLOBAL_RECEIVED_XOFF_TIME = counter(
    "fabric_global_pause_received_xoff_time_total",
    N,
    "802.3x pause time received in a unit that the driver's source does not state: compare it with itself only.",
    profile="full",
)
GLOBAL_TRANSMITTED_XOFF_TIME = counter(
    "fabric_global_pause_transmitted_xoff_time_total",
    N,
    "802.3x pause time transmitted in a unit that the driver's source does not state: compare it with itself only.",
    profile="full",
)
GLOBAL_RECEIVE_ENABLED = gauge(
    "fabric_global_pause_receive_enabled",
    N,
    "1 when this port obeys 802.3x pause, 0 when it does not.",
    profile="full",
    sources=("pause",),
)
GLOBAL_TRANSMIT_ENABLED = gauge(
    "fabric_global_pause_transmit_enabled",
    N,
    "1 when this port sends 802.3x pause, 0 when it does not.",
    profile="full",
    sources=("pause",),
)
STORM_WARNINGS = counter(
    "fabric_pause_storm_warnings_total", N, "Times this device paused the network past the minor watermark."
)
STORM_ERRORS = counter(
    "fabric_pause_storm_errors_total",
    N,
    "Times this device paused the network past the critical watermark; it then stops pausing and drops.",
)
STORM_RECOVERIES = counter("fabric_pause_storm_recoveries_total", N, "Ends of a long continuous pause.", profile="full")
BUFFER_HIGH = counter(
    "fabric_port_buffer_high_total",
    N,
    "Times the receive buffer of the port passed its threshold: PCIe or host cannot drain.",
)
PRIORITY_RECEIVED_BYTES = counter("fabric_priority_received_bytes_total", NP, "Bytes received on that priority.")
PRIORITY_TRANSMITTED_BYTES = counter(
    "fabric_priority_transmitted_bytes_total", NP, "Bytes transmitted on that priority."
)
PRIORITY_RECEIVED_PACKETS = counter(
    "fabric_priority_received_packets_total", NP, "Packets received on that priority.", profile="full"
)
PRIORITY_TRANSMITTED_PACKETS = counter(
    "fabric_priority_transmitted_packets_total", NP, "Packets transmitted on that priority.", profile="full"
)
PRIORITY_DISCARDS = counter(
    "fabric_priority_discards_total",
    NP,
    "Packets of that priority dropped on arrival for lack of buffer. On a lossless priority this must stay 0.",
)
PRIORITY_BUFFER_DISCARDS = counter(
    "fabric_priority_host_buffer_discards_total",
    NP,
    "Packets of that priority dropped because this host's share of the buffer was full.",
    profile="full",
)
PRIORITY_WRED_DISCARDS = counter(
    "fabric_priority_host_congestion_discards_total",
    NP,
    "Packets of that priority dropped by the device's early-drop threshold.",
    profile="full",
)
PRIORITY_MARKED = counter(
    "fabric_priority_host_marked_packets_total",
    NP,
    "Packets of that priority that this device itself marked, as its buffer filled. Not marks from the network.",
    profile="full",
)
COS_DISCARDS = counter(
    "fabric_cos_discarded_packets_total",
    (*N, "cos"),
    "Packets dropped on arrival per hardware class of service (not the same number as the priority).",
    profile="full",
)
RECEIVED_BYTES = counter("fabric_netdev_received_bytes_total", N, "Bytes received on the wire, RDMA included.")
TRANSMITTED_BYTES = counter(
    "fabric_netdev_transmitted_bytes_total", N, "Bytes transmitted on the wire, RDMA included.", profile="full"
)
RECEIVED_PACKETS = counter(
    "fabric_netdev_received_packets_total", N, "Packets received on the wire, RDMA included.", profile="full"
)
TRANSMITTED_PACKETS = counter(
    "fabric_netdev_transmitted_packets_total", N, "Packets transmitted on the wire, RDMA included.", profile="full"
)
RECEIVED_DISCARDS = counter(
    "fabric_received_discards_total",
    N,
    "Packets dropped on arrival for lack of port buffer: the host does not drain, or lossless is not in effect.",
)
TRANSMITTED_DISCARDS = counter(
    "fabric_transmitted_discards_total",
    N,
    "Packets dropped on the way out: link down, head-of-line timeout, or stuck under pause.",
)
HEAD_OF_LINE_DISCARDS = counter(
    "fabric_transmitted_head_of_line_discards_total",
    N,
    "Packets dropped because they had waited too long to leave: the link was paused or blocked.",
)
HOST_DISCARDS = counter(
    "fabric_netdev_out_of_buffer_total",
    N,
    "Packets that found no buffer in the kernel's receive rings. RDMA is not in here (fabric_rdma_out_of_buffer_total).",
)
HOST_DROPS = counter(
    "fabric_netdev_host_drops_total",
    (*N, "kind"),
    "Packets that the driver or the host dropped, by kind.",
    profile="full",
)
STEERING_DROPS = counter(
    "fabric_netdev_steering_drops_total",
    N,
    "Packets that matched no steering rule of the device (wrong address or VLAN, no listener).",
    profile="full",
)
NETDEV_ECN_MARKED = counter(
    "fabric_netdev_ecn_marked_packets_total",
    N,
    "Marked packets seen by the kernel's own rings. Says nothing about RoCE.",
    profile="full",
)
SYMBOL_ERRORS = counter(
    "fabric_phy_symbol_errors_total",
    N,
    "Symbols left wrong after error correction. Any steady growth is a bad cable, module or port.",
)
CRC_ERRORS = counter(
    "fabric_phy_crc_errors_total",
    N,
    "Frames received with a bad checksum: a bad link, or a switch that passes a corrupt frame on.",
    sources=("ethtool", "standard"),
)
STOMPED_CRC = counter(
    "fabric_phy_stomped_crc_errors_total",
    N,
    "Frames that a switch before this link had found corrupt: the fault is at another hop.",
    profile="full",
)
PHY_ERRORS = counter(
    "fabric_phy_errors_total",
    (*N, "kind"),
    "Malformed frames and faults on the wire, by kind: undersize, fragments, jabber, alignment, faults.",
    profile="full",
)
LANE_ERRORS = counter(
    "fabric_phy_lane_errors_total",
    (*N, "lane"),
    "Errors on that lane before error correction. Not 0 is normal on PAM4 links; one lane far above the others is bad.",
    profile="full",
)
UNSUPPORTED_CONTROL = counter(
    "fabric_phy_unsupported_control_frames_total",
    N,
    "MAC control frames received that this port does not take, such as PFC frames while PFC is off here.",
)
OVERSIZE = counter(
    "fabric_netdev_oversize_packets_total",
    N,
    "Packets received that were longer than the MTU allows: a jumbo frame mismatch.",
    sources=("ethtool", "standard"),
)
FEC_CORRECTIONS = counter(
    "fabric_fec_corrections_total",
    N,
    "Bits that forward error correction repaired. Not 0 is normal on PAM4 links; judge the rate against its past.",
    sources=("ethtool", "fec"),
)
FEC_CORRECTED_BLOCKS = counter(
    "fabric_fec_corrected_blocks_total",
    N,
    "Blocks that forward error correction repaired.",
    sources=("ethtool", "fec"),
)
FEC_UNCORRECTABLE_BLOCKS = counter(
    "fabric_fec_uncorrectable_blocks_total",
    N,
    "Blocks that forward error correction could not repair: packets were lost on this link.",
    sources=("ethtool", "fec"),
)
FEC_INFO = gauge(
    "fabric_fec_info", (*N, "mode"), "The forward error correction in use, always 1.", profile="full", sources=("fec",)
)
PFC_ENABLED = gauge(
    "fabric_pfc_enabled", NP, "1 when PFC is on for that priority, 0 when it is off (DCB).", sources=("dcb",)
)
DSCP_TRUSTED = gauge(
    "fabric_dscp_trusted",
    N,
    "1 when packets get their priority from DSCP, 0 when from the VLAN tag (from the DCB application table).",
    sources=("dcb",),
)
DSCP_PRIORITY = gauge(
    "fabric_dscp_priority_id",
    (*N, "dscp"),
    "Priority that a DSCP maps to (DCB application table).",
    profile="full",
    sources=("dcb",),
)
DCBX_FIRMWARE = gauge(
    "fabric_dcbx_firmware_managed",
    N,
    "1 when the NIC's firmware runs DCBX and may override the host's PFC settings, 0 when the host does.",
    sources=("dcb",),
)
PRIORITY_BUFFER = gauge(
    "fabric_priority_buffer_bytes", NP, "Receive buffer of the priority (DCB buffer).", profile="full", sources=("dcb",)
)
RAW = unknown(
    "fabric_ethtool_raw",
    ("netdev", "stat"),
    "A statistic as ethtool -S prints it, chosen with --collector.ethtool.raw-include. Unit and type are the driver's.",
)
