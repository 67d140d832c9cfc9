"""NCCL: what its logs say.

Gauges describe communicators that live: they end with Destroy or Abort, with the process, or after 15 silent minutes once
another communicator uses the GPU. ``device`` and ``port`` are those of ``fabric_port_info``, empty when the log does not tell;
a merged NIC counts once for each member. ``log`` names the job as far as the path of the log does.
"""

from exporter.catalogue.declare import P, counter, gauge

CHANNELS = gauge(
    "fabric_nccl_channels",
    ("log", "net", *P, "path"),
    "Network channels of living communicators, each link counted once. path is gdr for GPUDirect RDMA, host for data that is "
    "staged in host memory, socket for TCP.",
)
SOCKET_FALLBACK = gauge(
    "fabric_nccl_socket_fallback",
    ("log",),
    "1 when living communicators talk to other hosts over sockets although this host has RDMA ports, 0 when they do not.",
)
INFO = gauge(
    "fabric_nccl_info",
    ("log", "version", "network", "plugin"),
    "What the processes of living communicators run, always 1. plugin is empty for NCCL's own networks.",
)
GDR_LEVEL = gauge(
    "fabric_nccl_gdr_level",
    ("log", "level"),
    "1 for the level to which NCCL_NET_GDR_LEVEL was set (LOC to SYS). No series where it is not set.",
)
COMPLETION_ERRORS = counter(
    "fabric_nccl_completion_errors_total",
    (*P, "status"),
    "Work requests that failed, by verbs status (12 is retries exceeded); flushed ones are counted apart, being a consequence.",
)
COMPLETION_ERROR_LAST = gauge(
    "fabric_nccl_completion_error_last_timestamp_seconds",
    (*P, "status"),
    "When a work request last failed with that status. No series before the first.",
)
FLUSH_ERRORS = counter(
    "fabric_nccl_flush_errors_total",
    P,
    "Work requests that were flushed: the consequence of an earlier error, here or on another host.",
)
ASYNC_EVENTS = counter(
    "fabric_nccl_async_events_total",
    (*P, "event"),
    "Asynchronous events of devices, each counted once however many processes tell of it.",
)
ASYNC_EVENT_LAST = gauge(
    "fabric_nccl_async_event_last_timestamp_seconds",
    (*P, "event"),
    "When a device last had that event. No series before the first.",
)
FAILURES = counter(
    "fabric_nccl_failures_total",
    ("class",),
    "Other failures by class, without those that follow from another one.",
)
FAILURE_LAST = gauge(
    "fabric_nccl_failure_last_timestamp_seconds",
    ("class",),
    "When there last was a failure of that class. No series before the first.",
)
LOGS = gauge(
    "fabric_nccl_logs",
    ("state",),
    "Files of logs by state: active (written to in the last minute), quiet, unreadable; refused are folders that cannot be "
    "read, or are on a network file system without leave, and files beyond the limit.",
)
LOG_BYTES = counter("fabric_nccl_log_bytes_total", (), "Bytes of logs that were read.")
LOG_LAG = gauge("fabric_nccl_log_lag_bytes", ("log",), "Bytes that were written to logs and not read yet.")
LOG_CUT_LINES = counter(
    "fabric_nccl_log_cut_lines_total", (), "Lines of logs that were longer than 64 KiB and read up to there only."
)
LOG_TRUNCATIONS = counter(
    "fabric_nccl_log_truncations_total",
    (),
    "Times a log was found truncated or overwritten. Lines of which neither we nor a copy knew by then are lost.",
)
LOG_LAST_LINE = gauge(
    "fabric_nccl_log_last_line_timestamp_seconds", ("log",), "When the last line of NCCL was written or read."
)
GPU_PROCESSES = gauge(
    "fabric_nccl_gpu_processes",
    ("evidence",),
    "Processes that hold a GPU, by whether a log of theirs is known: without one, nothing here speaks of them.",
)
