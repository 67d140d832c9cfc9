"""What ethtool prints, read as :mod:`exporter.kernel.tool_output` reads what the other tools print."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from exporter.kernel import U64, DriverInfo, Fec, LinkState, Pause, Statistics
from exporter.kernel.tool_output import documents, named_counts, only

FEC_MODES = {"None": "Off", "BASER": "BaseR"}
"""What ``ethtool --show-fec`` calls modes that the kernel calls otherwise (ethtool, netlink/fec.c)."""

_STATISTIC = re.compile(r"[ \t]*(.+?):[ \t]*([0-9]+)[ \t]*")


def statistics(text: str) -> Statistics:
    """Return what ``ethtool -S`` printed. The value stands after the last colon: names may hold colons and blanks."""
    names: list[str] = []
    values: list[int] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip()
        if (
            not line
            or line.startswith("#")
            or line == "NIC statistics:"
            or line.strip().lower() == "no stats available"
        ):
            continue
        match = _STATISTIC.fullmatch(line)
        if match is None or int(match[2]) > U64:
            raise ValueError(f"line {number}: expected '  name: value' as ethtool -S prints it, found {line[:60]!r}")
        names.append(match[1])
        values.append(int(match[2]))
    return Statistics(tuple(names), tuple(values))


def driver_info(text: str) -> DriverInfo:
    """Return what ``ethtool -i`` printed."""
    fields = dict(re.findall(r"^([a-z-]+):[ \t]*(.*?)[ \t\r]*$", text, re.MULTILINE))
    if "driver" not in fields:
        raise ValueError("expected 'driver: NAME' as ethtool -i prints it")
    return DriverInfo(
        driver=fields["driver"],
        version=fields.get("version", ""),
        firmware_version=fields.get("firmware-version", ""),
        bus_info=fields.get("bus-info", ""),
    )


class _PauseStatistics(msgspec.Struct):
    rx_pause_frames: int | None = None
    tx_pause_frames: int | None = None


class _Pause(msgspec.Struct):
    autonegotiate: bool | None = None
    rx: bool | None = None
    tx: bool | None = None
    exact: bool = False
    statistics: _PauseStatistics = msgspec.field(default_factory=_PauseStatistics)


def pause(text: str) -> Pause:
    """Return what ``ethtool --json -I -a`` printed, or what a capture of ours holds (``exact``).

    ethtool before 6.2 prints true for every setting, whatever it is: all three true says nothing then.
    """
    found = only(documents(text, _Pause))
    counts = found.statistics
    settings = (found.autonegotiate, found.rx, found.tx)
    if settings == (True, True, True) and not found.exact:
        settings = (None, None, None)
    return Pause(*settings, counts.rx_pause_frames, counts.tx_pause_frames)


class _FecTotal(msgspec.Struct):
    total: int | None = None


class _FecStatistics(msgspec.Struct):
    corrected_blocks: _FecTotal = msgspec.field(default_factory=_FecTotal)
    uncorrectable_blocks: _FecTotal = msgspec.field(default_factory=_FecTotal)
    corrected_bits: _FecTotal = msgspec.field(default_factory=_FecTotal)


class _Fec(msgspec.Struct):
    active: list[str] = []
    statistics: _FecStatistics = msgspec.field(default_factory=_FecStatistics)


def fec(text: str) -> Fec:
    """Return what ``ethtool --json -I --show-fec`` printed."""
    found = only(documents(text, _Fec))
    modes = {printed: mode for mode, printed in FEC_MODES.items()}
    counts = found.statistics
    return Fec(
        " ".join(modes.get(mode, mode) for mode in found.active),
        corrected_blocks=counts.corrected_blocks.total,
        uncorrectable_blocks=counts.uncorrectable_blocks.total,
        corrected_bits=counts.corrected_bits.total,
    )


class _LinkState(msgspec.Struct, forbid_unknown_fields=True):
    link: bool | None = None
    ext_state: int | None = None
    ext_substate: int | None = None
    down_count: int | None = None


def link_state(text: str) -> LinkState:
    """Return a link state in the exporter's own form, an object with the fields of :class:`exporter.kernel.LinkState`."""
    return LinkState(*msgspec.structs.astuple(only(documents(text, _LinkState))))


def groups(text: str) -> Statistics:
    """Return what ``ethtool --json -S NETDEV --groups eth-phy eth-mac eth-ctrl`` printed."""
    groups = [group for group in only(documents(text, dict[str, Any])).values() if isinstance(group, dict)]
    counts = msgspec.convert(
        [(name, count) for group in groups for name, count in group.items()], list[tuple[str, int]]
    )
    return named_counts(counts)
