"""The exporter about itself: can this be trusted?"""

from exporter.catalogue.declare import SOURCE, counter, gauge

SOURCE_SUCCESS = gauge(
    "fabric_source_success",
    SOURCE,
    "1 when the source was read without failure or its hardware is simply absent, 0 when a read failed or came late.",
)
SOURCE_DURATION = gauge("fabric_source_duration_seconds", SOURCE, "How long the last read of the source took.")
SOURCE_LAST_READ = gauge(
    "fabric_source_last_read_timestamp_seconds", SOURCE, "When the source was last read to its end."
)
SOURCE_QUARANTINED = gauge(
    "fabric_source_quarantined", SOURCE, "Devices that are left out of the source for now, because a read of them hung."
)
SOURCE_ERRORS = counter("fabric_source_read_errors_total", SOURCE, "Reads that failed or hung; one file is one read.")
SOURCE_DROPPED = counter(
    "fabric_source_dropped_series_total",
    SOURCE,
    "Series that were not served because another reading had them already.",
)
STUCK_WORKERS = gauge(
    "fabric_exporter_stuck_workers", (), "Worker threads that wait in the kernel for a read that does not return."
)
TASK_RESTARTS = counter(
    "fabric_exporter_task_restarts_total", ("task",), "Times a background task failed and was started again."
)
CONFIG_SUCCESS = gauge(
    "fabric_exporter_config_last_reload_successful",
    (),
    "1 when the last reading of the configuration files succeeded, 0 when it failed and the old one is kept.",
)
CONFIG_TIMESTAMP = gauge(
    "fabric_exporter_config_last_reload_success_timestamp_seconds", (), "When the configuration was last taken over."
)
STORAGE_PERSISTENT = gauge(
    "fabric_exporter_storage_persistent",
    (),
    "1 when state is kept in --storage.path, 0 when it is in memory alone: no path, or one that cannot be written now.",
)
STORAGE_ERRORS = counter(
    "fabric_exporter_storage_errors_total", (), "Times the state database could not be opened or written."
)
DISCOVERY_TIMESTAMP = gauge(
    "fabric_exporter_discovery_timestamp_seconds", (), "When devices and interfaces were last looked for."
)
DISCOVERY_DURATION = gauge("fabric_exporter_discovery_duration_seconds", (), "How long that took.")
RDMA_NAMESPACES = gauge(
    "fabric_exporter_rdma_namespaces_shared",
    (),
    "1 when RDMA devices are shared between network namespaces, 0 when each belongs to one. No series without RDMA netlink.",
)
BUILD_INFO = gauge(
    "fabric_exporter_build_info", ("version", "revision", "python_version"), "The exporter's version, always 1."
)
