"""RDMA traffic, loss, retries, completions and congestion control (DCQCN: marks, CNPs)."""

from exporter.catalogue.declare import P, counter, gauge

TRAFFIC = ("pma", "rdma", "ethtool")
"""Where RDMA traffic is counted: the port's own PMA, the RDMA driver (optional counters too), vport counters of the NIC."""

RECEIVED_BYTES = counter("fabric_rdma_received_bytes_total", P, "Bytes received by RDMA on this port.", sources=TRAFFIC)
TRANSMITTED_BYTES = counter(
    "fabric_rdma_transmitted_bytes_total", P, "Bytes transmitted by RDMA on this port.", sources=TRAFFIC
)
RECEIVED_PACKETS = counter(
    "fabric_rdma_received_packets_total", P, "Packets received by RDMA on this port.", sources=TRAFFIC
)
TRANSMITTED_PACKETS = counter(
    "fabric_rdma_transmitted_packets_total", P, "Packets transmitted by RDMA on this port.", sources=TRAFFIC
)
REQUESTS_RECEIVED = counter(
    "fabric_rdma_received_requests_total",
    (*P, "operation"),
    "RDMA requests received, by operation.",
    profile="full",
)
REQUESTS_TRANSMITTED = counter(
    "fabric_rdma_transmitted_requests_total",
    (*P, "operation"),
    "RDMA requests transmitted, by operation.",
    profile="full",
)
OUT_OF_SEQUENCE = counter(
    "fabric_rdma_out_of_sequence_packets_total",
    P,
    "Packets that arrived out of order: loss or reordering on the path into this host (normal with adaptive routing).",
)
SEQUENCE_NAKS = counter(
    "fabric_rdma_sequence_naks_total",
    P,
    "Sequence NAKs received: packets that this host sent were lost or reordered on the way out.",
)
SEQUENCE_NAKS_SENT = counter(
    "fabric_rdma_sequence_naks_sent_total",
    P,
    "Sequence NAKs sent: packets into this host were lost or reordered.",
    profile="full",
)
IMPLIED_NAKS = counter(
    "fabric_rdma_implied_naks_total",
    P,
    "Answers to READ or atomic requests found missing: loss on the path of the answer.",
)
ACK_TIMEOUTS = counter(
    "fabric_rdma_ack_timeouts_total",
    P,
    "Acknowledgement timers of the requester that expired: black-holed path, dead peer, or a timeout that is too short.",
)
ADAPTIVE_RETRANSMITS = counter(
    "fabric_rdma_adaptive_retransmits_total", P, "Adaptive retransmissions (early, before the timeout)."
)
ADAPTIVE_RETRANSMIT_TIMEOUTS = counter(
    "fabric_rdma_adaptive_retransmit_timeouts_total",
    P,
    "Timeouts with adaptive retransmission on; they are counted here and not in fabric_rdma_ack_timeouts_total.",
)
RNR_NAKS = counter(
    "fabric_rdma_rnr_naks_total",
    P,
    "Receiver-not-ready NAKs received: the remote host had no receive buffer posted.",
)
RNR_NAKS_SENT = counter(
    "fabric_rdma_rnr_naks_sent_total",
    P,
    "Receiver-not-ready NAKs sent: this host had no receive buffer posted.",
)
DUPLICATE_REQUESTS = counter(
    "fabric_rdma_duplicate_requests_total",
    P,
    "Requests received again after they had been executed: our acknowledgements were lost or late.",
)
OUT_OF_BUFFER = counter(
    "fabric_rdma_out_of_buffer_total",
    P,
    "RDMA packets that found no receive work request on this host. Not the kernel's rings (fabric_netdev_out_of_buffer).",
)
RETRIES_EXCEEDED = counter(
    "fabric_rdma_retries_exceeded_total",
    P,
    "Queue pairs that gave up after all transport retries. One event normally ends a training job.",
)
RNR_RETRIES_EXCEEDED = counter(
    "fabric_rdma_rnr_retries_exceeded_total", P, "Queue pairs that gave up after all receiver-not-ready retries."
)
RETRANSMITTED_PACKETS = counter(
    "fabric_rdma_retransmitted_packets_total", P, "Packets or segments that the device retransmitted."
)
RETRANSMITTED_BYTES = counter(
    "fabric_rdma_retransmitted_bytes_total", P, "Bytes that the device retransmitted.", profile="full"
)
ICRC_ERRORS = counter(
    "fabric_rdma_icrc_errors_total",
    P,
    "RoCE packets with a bad invariant CRC: corrupted inside the network, past the checks of every link.",
)
COMPLETION_ERRORS = counter(
    "fabric_rdma_completion_errors_total",
    (*P, "side"),
    "Completions in error, on the side of the requester or the responder. Whether flushes are counted in here too differs by "
    "device: judge it together with fabric_rdma_flushed_completions_total.",
)
FLUSHED_COMPLETIONS = counter(
    "fabric_rdma_flushed_completions_total",
    (*P, "side"),
    "Completions flushed. Grows at every ordinary end of a queue pair: no alarm by itself.",
    profile="full",
)
QP_ERRORS = counter(
    "fabric_rdma_operation_errors_total",
    (*P, "kind"),
    "Operations refused or failed by class: access, protection, length, invalid request, device errors.",
    profile="full",
)
DROPS = counter(
    "fabric_rdma_discards_total",
    (*P, "kind"),
    "Packets that the RDMA device dropped or found faulty, by kind.",
    profile="full",
)
SLOW_RESTARTS = counter("fabric_rdma_slow_restarts_total", P, "Slow restarts of queue pairs after idling.")
SLOW_RESTART_CNPS = counter(
    "fabric_rdma_slow_restart_cnps_total",
    P,
    "CNPs made by slow restart, without any mark received (they inflate the CNPs sent).",
    profile="full",
)
SLOW_RESTART_TRANSITIONS = counter(
    "fabric_rdma_slow_restart_transitions_total", P, "Entries into the slow restart state.", profile="full"
)
READ_LIMIT = counter(
    "fabric_rdma_read_depth_limits_total", (*P, "side"), "Times the limit of outstanding READs was met.", profile="full"
)
CONGESTED_QPS = counter(
    "fabric_rdma_congestion_control_events_total",
    (*P, "event"),
    "Events of the device's congestion control: queue pairs that slowed down, recovered, or raised their rate.",
    profile="full",
)
DOORBELL_PACING = counter(
    "fabric_rdma_doorbell_pacing_alerts_total",
    P,
    "Times the doorbell FIFO filled and the driver began to pace.",
    profile="full",
)
OBJECTS = gauge("fabric_rdma_objects", (*P, "kind"), "RDMA objects that exist now, by kind.", profile="full")
OBJECTS_PEAK = gauge(
    "fabric_rdma_objects_peak",
    (*P, "kind"),
    "Most RDMA objects that existed since the driver was loaded.",
    profile="full",
)
ADMIN_COMMANDS = counter(
    "fabric_rdma_admin_commands_total", P, "Administrative commands given to the RDMA device.", profile="full"
)
ADMIN_COMMAND_ERRORS = counter(
    "fabric_rdma_admin_command_errors_total",
    P,
    "Administrative commands that failed on the RDMA device.",
    profile="full",
)
ECN_MARKED = counter(
    "fabric_ecn_marked_received_packets_total",
    P,
    "RoCE packets received with the congestion mark (CE): a switch on the way into this host is queueing.",
)
CNP_SENT = counter(
    "fabric_cnp_sent_packets_total",
    P,
    "Congestion notifications sent because marked packets arrived. Rate limited, so far fewer than the marks.",
)
CNP_HANDLED = counter(
    "fabric_cnp_handled_packets_total",
    P,
    "Congestion notifications that slowed this host's transmission: this host sends into a congested queue. Where the device "
    "does not tell what it did with them, all that it received.",
)
CNP_IGNORED = counter(
    "fabric_cnp_ignored_packets_total",
    P,
    "Congestion notifications received and not acted on: congestion control off or misconfigured on that priority.",
)
CNP_RECEIVED = counter(
    "fabric_cnp_received_packets_total",
    P,
    "Congestion notifications received, acted on or not (only where the device counts them apart).",
    profile="full",
)
