"""What cloud NICs count: EFA and ENA on AWS, gve, mana, erdma."""

from exporter.catalogue.declare import N, P, counter, gauge

EFA_RECEIVED_DROPS = counter(
    "fabric_efa_received_drops_total",
    P,
    "Packets that the EFA device received and dropped (no receive request, bad queue pair). Not loss on the path.",
)
EFA_RETRANSMIT_TIMEOUTS = counter(
    "fabric_efa_retransmit_timeouts_total", P, "SRD timeouts that changed the network path."
)
EFA_IMPAIRED = counter(
    "fabric_efa_impaired_connections_total",
    P,
    "Connections to a remote host that became impaired: their rate was cut.",
)
EFA_UNRESPONSIVE = counter(
    "fabric_efa_unresponsive_remotes_total", P, "Times a remote host did not answer: dead peer or broken path."
)
EFA_BYTES = counter(
    "fabric_efa_operation_bytes_total",
    (*P, "operation"),
    "Payload bytes by EFA operation: send, recv, rdma_read, rdma_read_resp, rdma_write, rdma_write_recv.",
    profile="full",
)
EFA_REQUESTS = counter(
    "fabric_efa_work_requests_total", (*P, "operation"), "Work requests by EFA operation.", profile="full"
)
EFA_REQUEST_ERRORS = counter(
    "fabric_efa_work_request_errors_total",
    (*P, "operation"),
    "RDMA reads and writes of EFA that completed in error.",
)
EFA_COMMANDS_SUBMITTED = counter(
    "fabric_efa_admin_commands_submitted_total",
    ("device",),
    "Administrative commands given to the EFA device. Reading its statistics takes some of them itself.",
    profile="full",
)
EFA_COMMANDS_COMPLETED = counter(
    "fabric_efa_admin_commands_completed_total",
    ("device",),
    "Administrative commands that the EFA device has answered.",
    profile="full",
)
EFA_COMMAND_ERRORS = counter(
    "fabric_efa_admin_command_errors_total",
    ("device",),
    "Administrative commands that failed on the EFA device.",
    profile="full",
)
EFA_ADMIN_TIMEOUTS = counter(
    "fabric_efa_admin_timeouts_total",
    ("device",),
    "Administrative commands that never completed: device or firmware stuck.",
)
EFA_KEEPALIVES = counter(
    "fabric_efa_keepalives_total", ("device",), "Signs of life received from the EFA device; must keep rising."
)
EFA_VERB_ERRORS = counter(
    "fabric_efa_verb_errors_total", ("device", "verb"), "Verbs that failed (create_qp, reg_mr, ...).", profile="full"
)
ALLOWANCE_EXCEEDED = counter(
    "fabric_ena_allowance_exceeded_total",
    (*N, "allowance"),
    "Packets queued or dropped because the instance passed a limit: bw_in, bw_out, pps, conntrack, linklocal. This is the "
    "cloud's limit on ENA, not the fabric; EFA traffic is not in here.",
)
CONNTRACK_AVAILABLE = gauge(
    "fabric_ena_conntrack_allowance_available", N, "Connections that the instance may still track.", profile="full"
)
SRD_MODE = gauge(
    "fabric_ena_srd_mode_id", N, "ENA Express: sum of 1 SRD on, 2 SRD for UDP, 4 UDP ordering bypass.", profile="full"
)
SRD_UTILIZATION = gauge(
    "fabric_ena_srd_utilization_ratio", N, "Share of the SRD connection memory in use.", profile="full"
)
SRD_RECEIVED = counter("fabric_ena_srd_received_packets_total", N, "Packets received by ENA Express.", profile="full")
SRD_TRANSMITTED = counter(
    "fabric_ena_srd_transmitted_packets_total", N, "Packets transmitted by ENA Express.", profile="full"
)
SRD_ELIGIBLE = counter(
    "fabric_ena_srd_eligible_packets_total",
    N,
    "Packets transmitted that could have gone by ENA Express, whether they did or not.",
    profile="full",
)
THROTTLED = counter(
    "fabric_cloud_throttled_packets_total",
    (*P, "limit"),
    "RDMA packets dropped by a limit of the cloud, by limit.",
)
CURRENT_RATE = gauge(
    "fabric_rdma_congestion_control_rate",
    P,
    "Rate that congestion control allows now; the driver states no unit.",
    profile="full",
)
