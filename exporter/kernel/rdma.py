"""RDMA netlink: devices, ports and all hardware counters of a port in one message.

NETLINK_RDMA, client nldev (include/uapi/rdma/rdma_netlink.h, drivers/infiniband/core/nldev.c). Needs no privilege. In
shared mode it shows the host's devices from every network namespace, and the counters too, which sysfs hides there.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import Literal, NamedTuple

from exporter.kernel import RdmaDevice, RdmaLink, Statistics
from exporter.kernel.netlink import (
    TIMEOUT_SECONDS,
    Netlink,
    attributes,
    malformed,
    number,
    number_attribute,
    optional_number,
    required,
    spans,
    text,
)

_NETLINK_RDMA = 20
_NLDEV = 5 << 10  # RDMA_NL_NLDEV; a message's type is the client and the operation
_GET, _PORT_GET, _SYS_GET, _STAT_GET = 1, 5, 6, 17  # RDMA_NLDEV_CMD_*

# RDMA_NLDEV_ATTR_*
_DEVICE_INDEX, _DEVICE_NAME, _PORT_INDEX, _FIRMWARE, _NODE_GUID = 1, 2, 3, 5, 6
_PORT_STATE, _PORT_PHYSICAL_STATE, _NETDEV_INDEX, _NETDEV_NAME = 12, 13, 50, 51
_NAMESPACE_MODE, _PROTOCOL = 66, 67
_COUNTERS, _COUNTER, _COUNTER_NAME, _COUNTER_VALUE = 80, 81, 82, 83


class LiveRdma:
    """The kernel's RDMA netlink. ``sysfs`` is where sysfs is mounted."""

    def __init__(self, sysfs: str = "/sys", timeout: float = TIMEOUT_SECONDS) -> None:
        self._class = os.path.join(sysfs, "class/infiniband")
        self._netlink = Netlink(_NETLINK_RDMA, timeout)
        self._counters = CounterDecoder()

    def devices(self) -> tuple[RdmaDevice, ...]:
        """Return the RDMA devices of this network namespace (all of them in shared mode)."""
        self._check_loaded()
        return tuple(map(decode_device, self._netlink.dump(_NLDEV + _GET, b"", "rdma dev")))

    def links(self) -> tuple[RdmaLink, ...]:
        """Return every port of every device.

        Each port is asked for by itself: a dump ends silently at the first port whose state the driver fails to tell.
        Such a port is here with its states unknown; one that has gone meanwhile (EINVAL) is not.
        """
        links = []
        for device in self.devices():
            for port in range(1, device.ports + 1):
                try:
                    body = self._request(_PORT_GET, f"rdma link {device.name}/{port}", device.dev_index, port)
                    links.append(decode_link(body))
                except OSError as error:
                    if error.errno != errno.EINVAL:
                        links.append(RdmaLink(device.dev_index, device.name, port, None, None, None, ""))
        return tuple(links)

    def namespaces(self) -> Literal["shared", "exclusive", ""]:
        """Return how devices are shared among network namespaces; empty when the kernel does not say (before 5.2)."""
        self._check_loaded()
        return decode_namespaces(self._netlink.request(_NLDEV + _SYS_GET, b"", "rdma system"))

    def statistics(self, dev_index: int, port: int) -> Statistics:
        """Return all counters of one port. EINVAL: no such port, or a driver without counters (siw).

        EMSGSIZE: more counters than fit into the message that the kernel makes (about 85).
        """
        return self._counters.decode(
            self._request(_STAT_GET, f"rdma statistic of device {dev_index} port {port}", dev_index, port)
        )

    def _request(self, operation: int, what: str, dev_index: int, port: int) -> bytes:
        self._check_loaded()
        body = number_attribute(_DEVICE_INDEX, dev_index) + number_attribute(_PORT_INDEX, port)
        return self._netlink.request(_NLDEV + operation, body, what)

    def _check_loaded(self) -> None:
        # Opening a NETLINK_RDMA socket makes the kernel load ib_core (its module alias); looking must not do that.
        if not os.path.isdir(self._class):
            raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT), "RDMA netlink")


class CounterDecoder:
    """Answers to STAT_GET, decoded with what was learned from earlier ones.

    All answers for ports of one kind are equal but for the values. The first is walked attribute by attribute and leaves
    a layout; the next is cut by that layout in one step, and what is between its values compared. Ports share the layouts,
    and so may threads, which at worst learn the same twice.
    """

    def __init__(self) -> None:
        self._layouts: dict[int, _Layout] = {}  # by length
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def decode(self, body: bytes) -> Statistics:
        """Return the counters; ``names`` is the same object for equal names. Raises OSError(EBADMSG)."""
        counters = next((payload for type, payload in attributes(body) if type == _COUNTERS), b"")
        layout = self._layouts.get(len(counters))
        pieces = layout.cut.unpack(counters) if layout else ()
        if layout is None or pieces[::2] != layout.between:
            layout = self._layouts[len(counters)] = self._learn(counters)
            pieces = layout.cut.unpack(counters)
        return Statistics(layout.names, pieces[1::2])

    def _learn(self, counters: bytes) -> _Layout:
        names, format, done = [], "=", 0
        for type, start, end in spans(counters):
            if type != _COUNTER:
                continue
            name = value = None
            for member, first, last in spans(counters, start, end):
                if member == _COUNTER_NAME:
                    name = text(counters[first:last])
                elif member == _COUNTER_VALUE and last - first == 8:
                    value = first
            if name is None or value is None:
                raise malformed("a counter without a name or without a value of 8 bytes")
            names.append(name)
            format += f"{value - done}sQ"
            done = value + 8
        cut = struct.Struct(f"{format}{len(counters) - done}s")
        listed = tuple(names)
        return _Layout(self._names.setdefault(listed, listed), cut, cut.unpack(counters)[::2])


class _Layout(NamedTuple):
    """The counters of a RDMA_NLDEV_ATTR_STAT_HWCOUNTERS nest, how to cut it, and the bytes around the values."""

    names: tuple[str, ...]
    cut: struct.Struct
    between: tuple[bytes, ...]


def decode_device(body: bytes) -> RdmaDevice:
    """Return the device that a message of a GET dump describes. Raises OSError(EBADMSG)."""
    table = dict(attributes(body))
    guid = optional_number(table.get(_NODE_GUID), 8)
    return RdmaDevice(
        dev_index=number(required(table, _DEVICE_INDEX, "device index"), 4),
        name=text(required(table, _DEVICE_NAME, "device name")),
        firmware_version=text(table.get(_FIRMWARE, b"")),
        node_guid="" if guid is None else ":".join(f"{guid >> shift & 0xFFFF:04x}" for shift in (48, 32, 16, 0)),
        protocol=text(table.get(_PROTOCOL, b"")),
        ports=number(required(table, _PORT_INDEX, "number of ports"), 4),
    )


def decode_link(body: bytes) -> RdmaLink:
    """Return the port that an answer to PORT_GET describes. Raises OSError(EBADMSG)."""
    table = dict(attributes(body))
    return RdmaLink(
        dev_index=number(required(table, _DEVICE_INDEX, "device index"), 4),
        device=text(required(table, _DEVICE_NAME, "device name")),
        port=number(required(table, _PORT_INDEX, "port"), 4),
        state=optional_number(table.get(_PORT_STATE), 1),
        physical_state=optional_number(table.get(_PORT_PHYSICAL_STATE), 1),
        ifindex=optional_number(table.get(_NETDEV_INDEX), 4),
        netdev=text(table.get(_NETDEV_NAME, b"")),
    )


def decode_namespaces(body: bytes) -> Literal["shared", "exclusive", ""]:
    """Return the mode in an answer to SYS_GET. Raises OSError(EBADMSG)."""
    mode = optional_number(dict(attributes(body)).get(_NAMESPACE_MODE), 1)
    return "" if mode is None else "shared" if mode else "exclusive"
