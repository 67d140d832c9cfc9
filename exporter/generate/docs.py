"""docs/metrics.md and docs/drivers.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from exporter import catalogue
from exporter.drivers import DRIVERS, GENERIC, PMA
from exporter.drivers.entry import Driver, Entry
from exporter.model import Metric
from exporter.sources.ethernet import STANDARD

WARNING = "<!-- Made by `fabric-exporter generate` from exporter/catalogue and exporter/drivers. Edit those. -->"

PLACES = (
    ("ethtool", "`ethtool -S`"),
    ("port", "`ports/N/hw_counters` and RDMA netlink"),
    ("device", "`hw_counters` of the device"),
    ("pma", "`ports/N/counters`"),
)
"""The tables of a driver (attributes of :class:`Driver`) and where the counters are found."""

COMMON = (
    ("every driver", "`ports/N/counters`", PMA),
    ("drivers without their own", "`ethtool -S IF --groups eth-mac`", STANDARD),
)
"""Tables that are not of one driver: whose they are, and where the counters are found."""

WIDTHS = {
    "u64": "64 bits",
    "ext64": "64 bits; 32 that stick on old devices",
    "mod32": "32 bits, wraps",
    "acc64": "64 bits, kept up by the driver",
    "sw64": "64 bits, counted by the driver",
    "gauge": "goes up and down",
    "sat4": "4 bits, sticks",
    "sat8": "8 bits, sticks",
    "sat16": "16 bits, sticks",
    "sat32": "32 bits, sticks",
}


def pages() -> dict[str, str]:
    """Return the documents: path below the project's root -> text."""
    return {"docs/metrics.md": metrics_page(), "docs/drivers.md": drivers_page()}


def write(root: Path) -> list[Path]:
    """Write the documents that are missing or differ below ``root``; return the paths written. Raises OSError."""
    made = pages()
    written = []
    for name in check(root):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[name], encoding="utf-8")
        written.append(path)
    return written


def check(root: Path) -> list[str]:
    """Return the documents that are missing below ``root`` or differ from what would be written now."""
    return [
        name
        for name, text in pages().items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    ]


def metrics_page() -> str:
    """Return docs/metrics.md: every metric with what feeds it."""
    feeds = _feeds()
    lines = [
        "# Metrics",
        "",
        WARNING,
        "",
        "Times are seconds, sizes bytes, shares run from 0 to 1. A label that does not apply is left out: `device` and `port` "
        "for an interface without an RDMA device, `netdev` for a device without an interface. What a device does not count "
        "has no series.",
        "",
        "*core* metrics are served by default, *full* ones with `--metrics.profile=full` only. Where several sources can feed a "
        "metric, the first in the list that has it is kept for the life of the device. What each raw counter means to a "
        "driver is in [drivers.md](drivers.md).",
        "",
    ]
    for room in catalogue.ROOMS:
        lines += [f"## {_title(room)}", ""]
        for metric in _declared(room):
            lines += [f"### {metric.name}", "", metric.help, "", _facts(metric), ""]
            if metric in feeds:
                lines += [*_table(("Driver", "Raw counter", "Found in", "Factor"), feeds[metric]), ""]
    return "\n".join(lines)


def drivers_page() -> str:
    """Return docs/drivers.md: how each driver is recognised, what its counters become, what is left out and why."""
    lines = [
        "# Drivers",
        "",
        WARNING,
        "",
        "A device's driver is told by the kernel's name of it, else by the name that the driver gave to the RDMA device, else "
        "by the names of its counters. Counters that no table knows are not served (`--collector.ethtool.raw-include` shows "
        "those of `ethtool -S` as they are).",
        "",
        "*PF only*: left out on virtual functions, where the name exists but does not count; *Ethernet only*: left out on IP "
        "over InfiniBand. *Sum*: all raw counters of one series are added. *Stands in*: used only where a counter above it that "
        "feeds the same series is missing.",
        "",
    ]
    for whose, found_in, entries in COMMON:
        lines += [f"## {whose.capitalize()}: {found_in}", "", *_entries(entries)]
    for driver in (*DRIVERS, GENERIC):
        lines += _driver(driver)
    return "\n".join(lines)


def _driver(driver: Driver) -> Iterator[str]:
    yield from (f"## {driver.name}", "")
    yield from (_recognised(driver), "")
    if driver.refresh_seconds:
        yield from (f"Takes new values every {driver.refresh_seconds:g} s.", "")
    if driver.read_first:
        yield from (f"`{driver.read_first}` is read before the other files of `hw_counters`.", "")
    if driver.notes:
        yield from (*(f"- {note}" for note in driver.notes), "")
    for place, found_in in PLACES:
        entries: tuple[Entry, ...] = getattr(driver, place)
        if entries:
            yield from (f"### {driver.name}: {found_in}", "", *_entries(entries))


def _recognised(driver: Driver) -> str:
    ways = []
    if driver.kernel_names:
        ways.append("kernel driver " + ", ".join(f"`{name}`" for name in driver.kernel_names))
    if driver.device_pattern:
        ways.append(f"RDMA devices named {_code(driver.device_pattern)}")
    if not ways:
        return "What no other driver claims."
    return f"Recognised by: {'; '.join(ways)}."


def _entries(entries: Sequence[Entry]) -> Iterator[str]:
    served = [
        (
            _code(raw_name(entry)),
            _link(entry.metric),
            ", ".join(f'`{name}="{value}"`' for name, value in entry.labels),
            factor(entry),
            WIDTHS[entry.width],
            _remarks(entry),
        )
        for entry in entries
        if entry.metric is not None
    ]
    if served:
        yield from (*_table(("Raw counter", "Metric", "Labels", "Factor", "Width", "Remarks"), served), "")
    left = [(_code(raw_name(entry)), entry.reason) for entry in entries if entry.metric is None]
    if left:
        yield from (*_table(("Left out", "Why"), left), "")


def raw_name(entry: Entry) -> str:
    """Return the raw name for a reader: a family's labels in braces, the rest of its pattern as it is."""
    if entry.pattern is None:
        return entry.name
    return re.sub(r"\(\?P<(\w+)>[^()]*\)", r"{\1}", entry.pattern.pattern).replace(r"\.", ".")


def factor(entry: Entry) -> str:
    """Return what the raw value is multiplied by or divided by, empty for 1."""
    if entry.scale == 1:
        return ""
    return f"× {entry.scale:g}" if entry.scale > 1 else f"÷ {round(1 / entry.scale)}"


def _remarks(entry: Entry) -> str:
    remarks = []
    if entry.physical:
        remarks.append("PF only")
    if entry.ethernet:
        remarks.append("Ethernet only")
    if entry.sums:
        remarks.append("sum")
    if entry.alternative:
        remarks.append("stands in")
    if entry.lag_sum:
        remarks.append("sum over the members on a bond")
    if entry.invalid is not None:
        remarks.append(f"{entry.invalid:#x} means not known")
    return ", ".join(remarks)


def _feeds() -> dict[Metric, list[tuple[str, str, str, str]]]:
    """Return, for each metric, the rows (driver, raw counter, place, factor) of the entries that feed it."""
    feeds: dict[Metric, list[tuple[str, str, str, str]]] = {}
    common = {entry for *_, entries in COMMON for entry in entries}
    own = [
        (driver.name, found_in, tuple(entry for entry in getattr(driver, place) if entry not in common))
        for driver in (*DRIVERS, GENERIC)
        for place, found_in in PLACES
    ]
    for name, found_in, entries in (*COMMON, *own):
        for entry in entries:
            if entry.metric is not None:
                row = (name, _code(raw_name(entry)), found_in, factor(entry))
                feeds.setdefault(entry.metric, []).append(row)
    return feeds


def _facts(metric: Metric) -> str:
    facts: list[str] = [metric.type, metric.profile]
    facts.append("labels " + ", ".join(f"`{label}`" for label in metric.labels) if metric.labels else "no labels")
    if metric.sources:
        facts.append("sources " + ", ".join(f"`{source}`" for source in metric.sources))
    return " · ".join(facts)


def _declared(room: ModuleType) -> Iterator[Metric]:
    return (value for value in vars(room).values() if isinstance(value, Metric))


def _title(room: ModuleType) -> str:
    """Return the heading of a room: the first line of its docstring."""
    return (room.__doc__ or room.__name__).strip().splitlines()[0].rstrip(".")


def _link(metric: Metric | None) -> str:
    return "" if metric is None else f"[{metric.name}](metrics.md#{metric.name})"


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
