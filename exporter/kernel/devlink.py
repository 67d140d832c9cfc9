"""devlink health reporters, listed.

Generic netlink family ``devlink`` (include/uapi/linux/devlink.h, net/devlink/health.c). Needs no privilege.
DEVLINK_CMD_HEALTH_REPORTER_DUMP_GET is never sent: it may make the device write a dump.
"""

from __future__ import annotations

from exporter.kernel import HealthReporter
from exporter.kernel.netlink import (
    TIMEOUT_SECONDS,
    GenericFamily,
    attributes,
    number,
    optional_number,
    required,
    text,
)

_HEALTH_REPORTER_GET = 52  # DEVLINK_CMD_HEALTH_REPORTER_GET
_BUS, _DEVICE, _PORT, _REPORTER = 1, 2, 3, 114  # DEVLINK_ATTR_*
_NAME, _STATE, _ERRORS, _RECOVERIES = 115, 116, 117, 118  # DEVLINK_ATTR_HEALTH_REPORTER_*
_HEALTHY = {0: True, 1: False}  # DEVLINK_HEALTH_REPORTER_STATE_*


class LiveDevlink:
    """The kernel's devlink. ENOENT: a kernel built without it."""

    def __init__(self, timeout: float = TIMEOUT_SECONDS) -> None:
        self._family = GenericFamily("devlink", timeout)

    def health_reporters(self) -> tuple[HealthReporter, ...]:
        """Return the reporters of all devices and ports of this network namespace."""
        return tuple(map(decode_reporter, self._family.dump(_HEALTH_REPORTER_GET, "devlink health")))


def decode_reporter(body: bytes) -> HealthReporter:
    """Return the reporter that a message of the dump describes. Raises OSError(EBADMSG)."""
    table = dict(attributes(body))
    reporter = dict(attributes(required(table, _REPORTER, "health reporter")))
    return HealthReporter(
        bus=text(required(table, _BUS, "bus")),
        name=text(required(table, _DEVICE, "device")),
        port=optional_number(table.get(_PORT), 4),
        reporter=text(required(reporter, _NAME, "reporter")),
        healthy=_HEALTHY.get(number(required(reporter, _STATE, "state"), 1)),
        errors=number(required(reporter, _ERRORS, "errors"), 8),
        recoveries=number(required(reporter, _RECOVERIES, "recoveries"), 8),
    )
