"""Decides which source serves a series that several could.

The catalogue lists a metric's sources, the preferred first. The first that has the series when all sources have been read once is
kept for the life of the device: changing over would look like a reset.
"""

from __future__ import annotations

from collections.abc import Sequence

from exporter.drivers.plan import Picker, picker
from exporter.model import Inventory, Reading, Series, Shape


class Arbiter:
    """Remembers who serves what, and cuts the others' readings.

    ``dropped`` counts, per source, the series that came twice without being contested: a fault of a driver or of ours.
    """

    def __init__(self) -> None:
        self.dropped: dict[str, int] = {}
        self._owners: dict[Series, str] = {}
        self._known: dict[tuple[str, str], object] = {}
        self._cuts: dict[int, tuple[Shape, Shape, Picker | None]] = {}
        self._settled: tuple[int, ...] = ()

    def settle(self, readings: Sequence[tuple[str, Reading]], *, complete: bool) -> list[Reading]:
        """Return the readings, each contested series in one of them only.

        ``complete`` is True when every source has been asked at least once; owners found before that are not kept.
        """
        shapes = tuple([id(reading.shape) for _, reading in readings])
        if shapes != self._settled or not complete:
            self._decide(readings, complete)
            self._settled = shapes if complete else ()
        out = []
        for _, reading in readings:
            _, shape, take = self._cuts[id(reading.shape)]
            if take is None:
                out.append(reading)
            elif len(shape):
                out.append(Reading(shape, take(reading.values)))
        return out

    def forget(self, inventory: Inventory) -> None:
        """Drop what is remembered of devices and interfaces that are gone, or others by now that have their names."""
        ports = (*inventory.missing, *inventory.ports)
        now: dict[tuple[str, str], object] = {("device", port.device): (port.identity, port.index) for port in ports}
        now.update({("netdev", netdev.name): netdev.identity for netdev in inventory.netdevs})
        others = {label for label, identity in now.items() if self._known.get(label, identity) != identity}
        self._known = now
        self._owners = {
            series: owner
            for series, owner in self._owners.items()
            if any(label in now for label in series.labels) and not any(label in others for label in series.labels)
        }

    def _decide(self, readings: Sequence[tuple[str, Reading]], complete: bool) -> None:
        owners = self._owners if complete else dict(self._owners)
        best: dict[Series, str] = {}
        for source, reading in readings:
            for series in reading.shape.series:
                order = series.metric.sources
                if len(order) > 1 and series not in owners and source in order:
                    rival = best.get(series)
                    if rival is None or order.index(source) < order.index(rival):
                        best[series] = source
        owners.update(best)
        cuts: dict[int, tuple[Shape, Shape, Picker | None]] = {}
        seen: set[Series] = set()
        for source, reading in readings:
            shape = reading.shape
            kept = self._cuts.get(id(shape)) if complete else None
            owned = [place for place, series in enumerate(shape.series) if owners.get(series, source) == source]
            places = [place for place in owned if shape.series[place] not in seen]
            seen.update(shape.series[place] for place in places)
            if kept is None and len(places) < len(owned):
                self.dropped[source] = self.dropped.get(source, 0) + len(owned) - len(places)
            if len(places) == len(shape):
                cuts[id(shape)] = (shape, shape, None)
            elif kept is not None and kept[0] is shape and kept[1].series == tuple(shape.series[p] for p in places):
                cuts[id(shape)] = kept
            else:
                cuts[id(shape)] = (shape, Shape(shape.series[place] for place in places), picker(places))
        self._cuts = cuts
