"""The ethtool ioctls: driver information and ``ethtool -S`` (include/uapi/linux/ethtool.h, net/ethtool/ioctl.c).

The kernel writes as many names or values as the driver has *now*. Kernels before the end of 2025 do so whatever the
caller had room for; later ones answer a count that is not exactly right with zero entries. So the exact count is passed,
and the answer goes into one large private mapping of which only the pages that were written to exist in memory.

Names and values come from separate calls, between which the driver's list may change, even without changing its length
(PFC moved from priority 3 to 4 on mlx5). Values are therefore returned only when the same bytes of names were read
before and after them from the same interface. Unless a list changed within the last minute, the names of the last read
count as those before, and a read costs two calls under RTNL: GSTATS and GSTRINGS. Names are decoded only when they differ.
On mlx5 GSTRINGS asks the firmware for the PFC and pause settings, about 4 commands beside some 40 of GSTATS
(drivers/net/ethernet/mellanox/mlx5/core/en_stats.c): a tenth more, for counters that never carry another's name.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import math
import mmap
import os
import socket
import struct
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from exporter.kernel import DriverInfo, Statistics

_SIOCGIFINDEX = 0x8933
_SIOCETHTOOL = 0x8946
_GET_DRIVER_INFO = 0x3
_GET_STRINGS = 0x1B
_GET_STATISTICS = 0x1D
_GET_SET_INFO = 0x37

_STATISTICS_SET = 1
"""ETH_SS_STATS in enum ethtool_stringset."""

_NAME_BYTES = 32
"""ETH_GSTRING_LEN: the room of one name, padded with NUL."""

_INTERFACE_NAME_BYTES = 16
"""IFNAMSIZ, its NUL included."""

_POINTER_REQUEST = struct.Struct("16sP16x")
_INDEX_REQUEST = struct.Struct("16si20x")
"""struct ifreq, 40 bytes: the name of an interface, then a pointer or the interface's index."""

_DRIVER_INFO = struct.Struct("=I32s32s32s32s32s12x5I")
_SET_INFO = struct.Struct("=I4xQI")
_STRINGS_HEAD = struct.Struct("=III")
_STATISTICS_HEAD = struct.Struct("=II")

_BUFFER_BYTES = 4 << 20
"""Room for 131,071 names: the slack that an old kernel may write into when queues are added between two calls."""

_MAX_COUNT = (_BUFFER_BYTES - _STRINGS_HEAD.size) // _NAME_BYTES

_NO_STATISTICS = Statistics((), ())


class _Names(NamedTuple):
    """The names of an interface's statistics, as the kernel wrote them and decoded; ``changed`` when that was last noticed."""

    ifindex: int
    raw: bytes
    decoded: tuple[str, ...]
    changed: float


class LiveEthtool:
    """ethtool on a running Linux, one call at a time: every call takes RTNL, and two would only wait for each other there.

    A call that does not return (sick firmware holds RTNL for a minute and more) keeps the lock. Others wait for
    ``patience`` seconds, then raise EBUSY, so that threads do not pile up behind it. For ``calm`` seconds after
    a change of names was noticed they are read before the values as well as after.
    """

    def __init__(self, patience: float = 2.0, calm: float = 60.0) -> None:
        self._patience = patience
        self._calm = calm
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._buffer = mmap.mmap(-1, _BUFFER_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        self._names: dict[str, _Names] = {}

    def driver_info(self, netdev: str) -> DriverInfo:
        """Return the interface's driver, ETHTOOL_GDRVINFO. EOPNOTSUPP: an interface without one (``lo``)."""
        with self._exclusively():
            _DRIVER_INFO.pack_into(self._buffer, 0, _GET_DRIVER_INFO, b"", b"", b"", b"", b"", *(0,) * 5)
            self._ioctl(netdev)
            _, driver, version, firmware_version, bus_info, *_ = _DRIVER_INFO.unpack_from(self._buffer)
        return DriverInfo(_text(driver), _text(version), _text(firmware_version), _text(bus_info))

    def statistics(self, netdev: str) -> Statistics:
        """Return names and values of ``ethtool -S``; two empty tuples for an interface without statistics.

        Raises EAGAIN when the list changed under two reads in a row, EBUSY when an earlier call has not returned, ENODEV
        when there is no such interface.
        """
        with self._exclusively():
            try:
                for afresh in (False, True):
                    statistics = self._read(netdev, afresh)
                    if statistics is not None:
                        return statistics
            except OSError as error:
                if error.errno == errno.ENODEV:
                    self._names.pop(netdev, None)
                raise
        raise OSError(errno.EAGAIN, "statistics changed while they were read", netdev)

    def _read(self, netdev: str, afresh: bool) -> Statistics | None:
        """Return the statistics, or None when names or interface changed meanwhile. ``afresh``: distrust the last names."""
        ifindex = self._ifindex(netdev)
        names = self._names.get(netdev)
        now = time.monotonic()
        if afresh or names is None or names.ifindex != ifindex or now - names.changed < self._calm:
            count = self._count(netdev)
            if count == 0:
                return _NO_STATISTICS if self._ifindex(netdev) == ifindex else None
            before = self._raw_names(netdev, count)
            if before is None:
                return None
            if names is None:
                names = _Names(ifindex, before, decode_names(before), now if afresh else -math.inf)
            elif afresh or (names.ifindex, names.raw) != (ifindex, before):
                decoded = names.decoded if names.raw == before else decode_names(before)
                names = _Names(ifindex, before, decoded, now)
        values = self._values(netdev, len(names.decoded))
        after = self._raw_names(netdev, len(names.decoded))
        if values is None or after != names.raw or self._ifindex(netdev) != ifindex:
            return None
        self._names[netdev] = names
        return Statistics(names.decoded, values)

    def _count(self, netdev: str) -> int:
        """Return ETHTOOL_GSSET_INFO's count, 0 for an interface without statistics.

        It goes before GSTRINGS and GSTATS of an unknown interface because these log a kernel warning for a driver
        that has a list of no entries.
        """
        _SET_INFO.pack_into(self._buffer, 0, _GET_SET_INFO, 1 << _STATISTICS_SET, 0)
        try:
            self._ioctl(netdev)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return 0
            raise
        _, known_sets, count = _SET_INFO.unpack_from(self._buffer)
        if not known_sets:
            return 0
        if count > _MAX_COUNT:
            raise OSError(errno.EOVERFLOW, f"{count} statistics, expected at most {_MAX_COUNT}", netdev)
        return int(count)

    def _raw_names(self, netdev: str, count: int) -> bytes | None:
        """Return ETHTOOL_GSTRINGS' block of names, or None when there are not ``count`` of them."""
        _STRINGS_HEAD.pack_into(self._buffer, 0, _GET_STRINGS, _STATISTICS_SET, count)
        self._ioctl(netdev)
        _, _, answered = _STRINGS_HEAD.unpack_from(self._buffer)
        if answered != count:
            return None
        return self._buffer[_STRINGS_HEAD.size : _STRINGS_HEAD.size + count * _NAME_BYTES]

    def _values(self, netdev: str, count: int) -> tuple[int, ...] | None:
        """Return ETHTOOL_GSTATS' values, or None when there are not ``count`` of them."""
        _STATISTICS_HEAD.pack_into(self._buffer, 0, _GET_STATISTICS, count)
        self._ioctl(netdev)
        _, answered = _STATISTICS_HEAD.unpack_from(self._buffer)
        if answered != count:
            return None
        return struct.unpack_from(f"={count}Q", self._buffer, _STATISTICS_HEAD.size)

    def _ifindex(self, netdev: str) -> int:
        """Return the index of the interface that has this name now (SIOCGIFINDEX: no RTNL)."""
        request = _INDEX_REQUEST.pack(_interface_name(netdev), 0)
        _, ifindex = _INDEX_REQUEST.unpack(fcntl.ioctl(self._opened(), _SIOCGIFINDEX, request))
        return int(ifindex)

    def _ioctl(self, netdev: str) -> None:
        """Let the kernel carry out the command at the buffer's start; its answer replaces it there."""
        request = _POINTER_REQUEST.pack(_interface_name(netdev), self._address)
        fcntl.ioctl(self._opened(), _SIOCETHTOOL, request)

    def _opened(self) -> socket.socket:
        """Return the socket that stands for this network namespace, opened at first use and closed with this object."""
        if self._socket is None:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            weakref.finalize(self, self._socket.close)
        return self._socket

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self._patience):
            raise OSError(errno.EBUSY, "an earlier ethtool call has not returned")
        try:
            yield
        finally:
            self._lock.release()


def decode_names(raw: bytes) -> tuple[str, ...]:
    """Return the names in a GSTRINGS block of 32 bytes each, blanks kept. A byte that is not UTF-8 becomes U+FFFD."""
    return tuple(_text(raw[start : start + _NAME_BYTES]) for start in range(0, len(raw), _NAME_BYTES))


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _interface_name(netdev: str) -> bytes:
    """Return the name as the kernel stores it; ENODEV for what no interface can be called."""
    name = os.fsencode(netdev)
    if (
        not 0 < len(name) < _INTERFACE_NAME_BYTES or b"\0" in name or b":" in name
    ):  # the kernel cuts an alias off at ":"
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), netdev)
    return name
