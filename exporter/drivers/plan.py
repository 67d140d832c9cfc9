"""Applies a driver's table to the counters that one device lists.

A plan is compiled when a device's list of names is new and kept while the kernel lists the same names; a scrape is then one
``itemgetter`` over the values and a few corrections (units, sums, saturation, bonds that lose a member).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

from exporter.catalogue.ports import SATURATED
from exporter.drivers.entry import Entry
from exporter.model import Labels, Metric, Profile, Reading, Series, Shape

SATURATION = {"sat4": 0xF, "sat8": 0xFF, "sat16": 0xFFFF, "sat32": 0xFFFFFFFF, "ext64": 0xFFFFFFFF}
"""The value at which a counter of that width sticks (IBTA PortCounters)."""
WRAP = 1 << 32
PFC_METRICS = "fabric_pfc_"

T = TypeVar("T")


class Picker(Protocol):
    """Takes the values at certain places, in that order."""

    def __call__(self, values: Sequence[T], /) -> tuple[T, ...]: ...


@lru_cache(maxsize=64)
def _index(entries: tuple[Entry, ...]) -> tuple[dict[str, int], tuple[tuple[int, Entry], ...]]:
    exact: dict[str, int] = {}
    patterns = []
    for position, entry in enumerate(entries):
        if entry.pattern is not None:
            patterns.append((position, entry))
        else:
            exact.setdefault(entry.name, position)
    return exact, tuple(patterns)


def match(entries: tuple[Entry, ...], name: str) -> tuple[Entry, dict[str, str]] | None:
    """Return the first entry that matches the raw name, and the labels that its pattern's groups give; None if none does."""
    found = _find(entries, name)
    return None if found is None else (entries[found[0]], found[1])


def _find(entries: tuple[Entry, ...], name: str) -> tuple[int, dict[str, str]] | None:
    exact, patterns = _index(entries)
    stop = exact.get(name, len(entries))
    for position, entry in patterns:
        if position > stop:
            break
        found = entry.pattern.fullmatch(name) if entry.pattern is not None else None
        if found is not None:
            return position, {key: value for key, value in found.groupdict().items() if value is not None}
    return (stop, {}) if stop < len(entries) else None


def identify(metric: Metric, identity: Labels, extra: Iterable[tuple[str, str]] = ()) -> Series | None:
    """Return the series of a metric for a device, with the labels in the metric's order.

    None when the metric belongs to an RDMA port (no ``netdev`` among its labels) and there is no RDMA device: such a
    series would have nothing to tell it from another device's.
    """
    known = dict(identity)
    if "netdev" not in metric.labels and "device" in metric.labels and "device" not in known:
        return None
    known.update(extra)
    return Series(metric, tuple((label, known[label]) for label in metric.labels if label in known))


def picker(positions: Sequence[int]) -> Picker:
    """Return a function that takes the values at ``positions`` as a tuple, whatever their number."""
    if len(positions) == 1:
        only = positions[0]
        return lambda values: (values[only],)
    if not positions:
        return lambda values: ()
    return operator.itemgetter(*positions)


def scaled(value: int, scale: float) -> int | float:
    """Return value * scale; a scale below 1 is applied as a division, so that 1 us is 1e-06 s and not a neighbour of it."""
    return value * scale if scale >= 1 else value / round(1 / scale)


@dataclass(slots=True)
class Resets:
    """How often the counters of each port were seen to go back, by kind. Shared by the plans of a port."""

    counts: dict[Labels, dict[str, int]]

    def register(self, labels: Labels, kinds: Collection[str]) -> None:
        """Start the counts of a port at 0, so that its first reset is an increase."""
        known = self.counts.setdefault(labels, {})
        for kind in kinds:
            known.setdefault(kind, 0)

    def add(self, labels: Labels, kind: str) -> None:
        """Count one."""
        known = self.counts.setdefault(labels, {})
        known[kind] = known.get(kind, 0) + 1


class _Item(NamedTuple):
    """One series of a plan: the entry it came from and the positions of the raw values that make it."""

    series: Series
    entry: Entry
    positions: tuple[int, ...]


class Plan:
    """The series that one device's counters become.

    ``names`` are the raw names it was made for, ``shape`` all its series, ``used`` the names that feed one,
    ``unmatched`` those that no entry knows.
    """

    def __init__(
        self,
        entries: tuple[Entry, ...],
        names: tuple[str, ...],
        identity: Labels,
        *,
        profile: Profile = "core",
        virtual: bool = False,
        infiniband: bool = False,
        lag: bool = False,
        resets: Resets | None = None,
        earlier: Plan | None = None,
        keep: Callable[[Metric], bool] = lambda metric: True,
    ) -> None:
        self.names = names
        self.identity = identity
        self._port = tuple(pair for pair in identity if pair[0] != "netdev") or identity
        self._resets = resets
        self._lag = lag
        self.unmatched: tuple[str, ...] = ()

        def serves(entry: Entry) -> bool:
            return (
                entry.metric is not None
                and not (entry.physical and virtual)
                and not (entry.ethernet and infiniband)
                and (profile == "full" or entry.metric.profile == "core")
                and keep(entry.metric)
            )

        self._items = self._compile(entries, serves)
        self.used = frozenset(names[position] for item in self._items for position in item.positions)
        saturable = [item for item in self._items if item.entry.width in SATURATION]
        flags = [identify(SATURATED, identity, (("field", self.names[item.positions[0]]),)) for item in saturable]
        self._saturable = tuple(
            (item.positions[0], SATURATION[item.entry.width])
            for item, flag in zip(saturable, flags, strict=True)
            if flag is not None
        )
        # A counter of 64 bits passes 2^32-1 like any other value: it is flagged only while it stands there.
        self._may_stick = tuple(
            (len(self._items) + place, item.positions[0], SATURATION["ext64"])
            for place, item in enumerate(item for item, flag in zip(saturable, flags, strict=True) if flag is not None)
            if item.entry.width == "ext64"
        )
        self.shape = Shape([*(item.series for item in self._items), *(flag for flag in flags if flag is not None)])
        self._take = picker([item.positions[0] for item in self._items])
        self._corrections = tuple(
            (place, item.positions, item.entry.scale)
            for place, item in enumerate(self._items)
            if item.entry.scale != 1 or len(item.positions) > 1
        )
        self._invalid = tuple(
            (place, position, item.entry.invalid)
            for place, item in enumerate(self._items)
            if item.entry.invalid is not None
            for position in item.positions
        )
        self._gates = self._gate()
        self._awake: set[tuple[str, bool]] = set() if earlier is None else earlier._awake
        self._variants: dict[tuple[int, ...], tuple[Shape, Picker]] = {}
        self._last: tuple[int, ...] | None = None
        self._offsets: dict[Series, int] = {} if earlier is None else earlier._offsets
        if earlier is not None and earlier._last is not None:
            before = dict(zip((item.series for item in earlier._items), earlier._last, strict=True))
            now = tuple(before.get(item.series, 0) for item in self._items)
            self._last = now
        if resets is not None and self._items:
            resets.register(self._port, ("reset", "wrap", "membership") if lag else ("reset", "wrap"))

    def _compile(self, entries: tuple[Entry, ...], serves: Callable[[Entry], bool]) -> tuple[_Item, ...]:
        found: dict[Series, tuple[int, list[int]]] = {}
        unmatched = []
        for position, name in enumerate(self.names):
            matched = _find(entries, name)
            if matched is None:
                unmatched.append(name)
                continue
            place, groups = matched
            entry = entries[place]
            if entry.metric is None or not serves(entry):
                continue
            series = identify(entry.metric, self.identity, (*groups.items(), *entry.labels))
            if series is None:
                continue
            rival = found.get(series)
            if rival is not None and entry.sums:
                rival[1].append(position)
            elif rival is None or place < rival[0]:
                found[series] = (place, [position])
        self.unmatched = tuple(unmatched)
        return tuple(_Item(series, entries[place], tuple(at)) for series, (place, at) in found.items())

    def _gate(self) -> tuple[tuple[int, int, tuple[str, bool]], ...]:
        """Return (place, position, (priority, is pfc)) of the series that are served for living priorities only.

        A driver that lists PFC counters for some priorities lists them for those with PFC on (mlx5): never gated.
        """
        prioritised = [
            (place, item, dict(item.series.labels)["priority"])
            for place, item in enumerate(self._items)
            if "priority" in item.series.metric.labels
        ]
        listed = {priority for _, item, priority in prioritised if item.series.metric.name.startswith(PFC_METRICS)}
        always = listed if len(listed) < 8 else set()
        return tuple(
            (place, item.positions[0], (priority, item.series.metric.name.startswith(PFC_METRICS)))
            for place, item, priority in prioritised
            if priority not in always
        )

    def reading(self, values: Sequence[int], *, pfc_enabled: int = 0) -> Reading:
        """Return the series' values. ``values`` fit ``names``; ``pfc_enabled`` is the mask of priorities with PFC on."""
        raw = self._take(values)
        self._look_back(raw)
        out: list[int | float] = list(raw)
        for place, positions, scale in self._corrections:
            total = values[positions[0]] if len(positions) == 1 else sum(values[position] for position in positions)
            out[place] = scaled(total, scale)
        if self._offsets:
            for place, item in enumerate(self._items):
                if item.series in self._offsets:
                    out[place] += self._offsets[item.series]
        out.extend(1 if values[position] == top else 0 for position, top in self._saturable)
        absent = self._absent(values, pfc_enabled)
        if not absent:
            return Reading(self.shape, tuple(out))
        variant = self._variants.get(absent)
        if variant is None:
            gone = set(absent)
            places = [place for place in range(len(self.shape)) if place not in gone]
            variant = (Shape(self.shape.series[place] for place in places), picker(places))
            self._variants[absent] = variant
        shape, take = variant
        return Reading(shape, take(out))

    def _absent(self, values: Sequence[int], pfc_enabled: int) -> tuple[int, ...]:
        absent = [place for place, position, invalid in self._invalid if values[position] == invalid]
        absent.extend(place for place, position, top in self._may_stick if values[position] != top)
        if self._gates:
            awake = self._awake
            for _, position, gate in self._gates:
                if gate not in awake and values[position]:
                    awake.add(gate)
            absent.extend(
                place
                for place, _, gate in self._gates
                if gate not in awake and not (gate[0].isdigit() and pfc_enabled >> int(gate[0]) & 1)
            )
        return tuple(dict.fromkeys(absent))

    def _look_back(self, raw: tuple[int, ...]) -> None:
        """Compare with the last values: count resets and wraps, keep sums over a bond's members monotonic."""
        last, self._last = self._last, raw
        if last is None or not any(map(operator.lt, raw, last)):
            return
        kinds = set()
        shrunk = []
        for item, new, old in zip(self._items, raw, last, strict=True):
            if new >= old or item.series.metric.type != "counter" or item.entry.invalid in (new, old):
                continue
            if self._lag and item.entry.lag_sum and new > 0:
                shrunk.append((item.series, old - new))
            elif item.entry.width == "mod32" and old < WRAP and old - new > WRAP // 2:
                kinds.add("wrap")
            else:
                kinds.add("reset")
        if "reset" in kinds:
            # The whole device started again: what was kept for its sums starts again too.
            self._offsets.clear()
        elif shrunk:
            kinds.add("membership")
            for series, lost in shrunk:
                self._offsets[series] = self._offsets.get(series, 0) + lost
        if self._resets is not None:
            for kind in kinds:
                self._resets.add(self._port, kind)
