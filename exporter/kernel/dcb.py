"""Data Center Bridging over rtnetlink: PFC, application priorities, receive buffers, who runs DCBX.

RTM_GETDCB with DCB_CMD_IEEE_GET (include/uapi/linux/dcbnl.h, net/dcb/dcbnl.c). Needs no privilege; the kernel holds RTNL.
The answer carries the DCBX mode too, so that DCB_CMD_GDCBX need not be asked.
"""

from __future__ import annotations

import struct

from exporter.kernel import Dcb
from exporter.kernel.netlink import (
    TIMEOUT_SECONDS,
    Netlink,
    attributes,
    malformed,
    name_attribute,
    optional_number,
)

_NETLINK_ROUTE = 0
_RTM_GETDCB = 78
_IEEE_GET = 21  # DCB_CMD_IEEE_GET
_MESSAGE = struct.Struct("=BBH")  # struct dcbmsg: family, command, padding

_INTERFACE, _IEEE, _DCBX = 1, 13, 14  # DCB_ATTR_*
_PFC, _APP_TABLE, _BUFFER = 2, 3, 10  # DCB_ATTR_IEEE_*, DCB_ATTR_DCB_BUFFER
_APPLICATIONS = (1, 2)  # DCB_ATTR_IEEE_APP; DCB_ATTR_DCB_APP for selectors that IEEE does not know (PCP)

_PFC_STRUCT = struct.Struct("=BBBxHxx8Q8Q")  # struct ieee_pfc: capacity, mask, bypass, delay, requests, indications
_BUFFER_STRUCT = struct.Struct("=8B8II")  # struct dcbnl_buffer: buffer of each priority, sizes, total size
_APPLICATION_STRUCT = struct.Struct("=BBH")  # struct dcb_app: selector, priority, protocol


class LiveDcb:
    """The kernel's DCB. EOPNOTSUPP: the driver has none; ENODEV: no such interface."""

    def __init__(self, timeout: float = TIMEOUT_SECONDS) -> None:
        self._netlink = Netlink(_NETLINK_ROUTE, timeout)

    def get(self, netdev: str) -> Dcb:
        """Return what the driver tells of one interface."""
        body = _MESSAGE.pack(0, _IEEE_GET, 0) + name_attribute(_INTERFACE, netdev)
        return decode_dcb(self._netlink.request(_RTM_GETDCB, body, f"DCB of {netdev}"))


def decode_dcb(body: bytes) -> Dcb:
    """Return what an answer to DCB_CMD_IEEE_GET says. Raises OSError(EBADMSG)."""
    table = dict(attributes(body[_MESSAGE.size :]))
    ieee = dict(attributes(table.get(_IEEE, b"")))
    capacity = enabled = None
    requests: tuple[int, ...] = ()
    indications: tuple[int, ...] = ()
    if _PFC in ieee:
        capacity, enabled, _, _, *frames = _unpack(_PFC_STRUCT, ieee[_PFC], "PFC")
        requests, indications = tuple(frames[:8]), tuple(frames[8:])
    buffers = _unpack(_BUFFER_STRUCT, ieee[_BUFFER], "buffers") if _BUFFER in ieee else ()
    applications = []
    for type, payload in attributes(ieee.get(_APP_TABLE, b"")):
        if type in _APPLICATIONS:
            selector, priority, protocol = _unpack(_APPLICATION_STRUCT, payload, "application")
            applications.append((selector, priority, protocol))
    return Dcb(
        pfc_enabled=enabled,
        pfc_capacity=capacity,
        applications=tuple(applications),
        dcbx=optional_number(table.get(_DCBX), 1),
        pfc_requests=requests,
        pfc_indications=indications,
        buffer_sizes=buffers[8:16],
        priority_buffers=buffers[:8],
    )


def _unpack(layout: struct.Struct, payload: bytes, what: str) -> tuple[int, ...]:
    # A later kernel may append fields to a structure, but does not move them.
    if len(payload) < layout.size:
        raise malformed(f"{what} of {len(payload)} bytes, expected {layout.size}")
    return layout.unpack_from(payload)
