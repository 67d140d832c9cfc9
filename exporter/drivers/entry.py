"""What one line of a driver's table says, and what a driver is.

A driver is data: for each place where it shows counters (``ethtool -S``, a port's or a device's ``hw_counters``) a tuple of
entries, the first that matches a raw name wins. Adding a counter is adding a line; its unit, width and limits are facts
of the driver's source, kept with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

from exporter.model import Metric

Width = Literal["u64", "ext64", "mod32", "acc64", "sw64", "gauge", "sat4", "sat8", "sat16", "sat32"]
"""``u64``: 64 bits in the device. ``mod32``: 32 bits that wrap. ``acc64``: narrow hardware, widened by the driver. ``sw64``: kept
by the driver in memory. ``satN``: N bits that stick at the top. ``ext64``: 64 bits, but on devices without the IBTA's extended
port counters 32 bits that stick at the top (the value is then exactly 2^32-1). ``gauge``: goes up and down."""

MICROSECONDS = 1e-6
"""Factor from microseconds to seconds."""
PERCENT = 0.01
"""Factor from percent to a ratio."""
WORDS = 4
"""Factor from the IBTA's 4-octet words to bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One raw counter, or one family of them (see :class:`Options`, :func:`counter`, :func:`family`, :func:`left_out`).

    Compared by identity, so that a table of hundreds is a cheap key.
    """

    name: str = ""
    pattern: re.Pattern[str] | None = None
    metric: Metric | None = None
    labels: tuple[tuple[str, str], ...] = ()
    scale: float = 1
    width: Width = "u64"
    physical: bool = False
    ethernet: bool = False
    sums: bool = False
    invalid: int | None = None
    lag_sum: bool = False
    alternative: bool = False
    reason: str = ""


class Options(TypedDict, total=False):
    """What an entry may say beyond its name and metric.

    The metric's value is ``value * scale`` (an int scale keeps integers exact). ``physical`` entries are dropped on virtual
    functions and subfunctions, whose strings exist but do not count, ``ethernet`` entries on IP over InfiniBand. ``sums`` adds
    up all raw counters that give the same series. ``invalid`` is a raw value that means "not known" (all-ones on ionic): no
    series then. ``lag_sum`` marks sums over the members of a bond, which may go backwards when membership changes.
    ``alternative`` entries give way to an earlier entry of the table that feeds the same series: another spelling, or another
    way to count the same thing.
    """

    labels: tuple[tuple[str, str], ...]
    scale: float
    width: Width
    physical: bool
    ethernet: bool
    sums: bool
    invalid: int
    lag_sum: bool
    alternative: bool


def counter(name: str, metric: Metric, **options: Unpack[Options]) -> Entry:
    """Return the entry of one exact raw name."""
    return Entry(name=name, metric=metric, **options)


def family(pattern: str, metric: Metric, **options: Unpack[Options]) -> Entry:
    """Return the entry of all raw names that ``pattern`` matches in full; its named groups become labels of those names."""
    return Entry(pattern=re.compile(pattern), metric=metric, **options)


def left_out(name_or_pattern: str, reason: str, *, pattern: bool = False) -> Entry:
    """Return the entry of raw names that are known and deliberately not served; ``reason`` is printed in docs/drivers.md."""
    if pattern:
        return Entry(pattern=re.compile(name_or_pattern), reason=reason)
    return Entry(name=name_or_pattern, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """One NIC driver: how to know it and what its counters mean.

    ``kernel_names`` are the names that ETHTOOL_GDRVINFO and ``device/driver`` give. ``device_pattern`` matches the names that
    the driver itself gives to RDMA devices, for captures that lack the driver link (not udev's ``rocep68s0``: any driver's
    device may have that one). ``ethtool`` reads ``ethtool -S``, ``port`` a port's hw_counters and RDMA netlink, ``device`` the
    device's hw_counters, ``pma`` a port's ``counters`` where this driver differs from the rest (empty:
    :data:`exporter.drivers.pma.PMA`). ``read_first`` is the hw_counters file to read before the others. ``refresh_seconds``
    is how often the driver itself takes new values. ``pause_frames`` is False where the driver's answer to
    ETHTOOL_MSG_PAUSE_GET may count PFC frames as 802.3x pause. ``notes`` go to docs/drivers.md.
    """

    name: str
    kernel_names: tuple[str, ...]
    device_pattern: str = ""
    ethtool: tuple[Entry, ...] = ()
    port: tuple[Entry, ...] = ()
    device: tuple[Entry, ...] = ()
    pma: tuple[Entry, ...] = ()
    read_first: str = ""
    refresh_seconds: float = 0
    pause_frames: bool = True
    notes: tuple[str, ...] = ()
