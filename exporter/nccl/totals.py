"""What the logs of this host have counted: the counters of ``/metrics``, which go on when a log is forgotten.

Counts come in the transaction that stores how far a log was read (:meth:`Totals.absorb`), so that a line counts once whatever
ends the exporter.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TypeVar

import msgspec

from exporter.model import Inventory
from exporter.nccl.facts import EVENTS, FAILURES
from exporter.nccl.places import UNKNOWN, Port, local, ports_of
from exporter.nccl.state import MOST_KEYS, Flap, FlapKey, News, report

K = TypeVar("K", bound=Hashable)

VERSION = 1
STATUSES = (4, 9, 10, 11, 12, 13)
"""Completion statuses that name a cause; the others are counted as ``other``."""
OTHER = "other"


class Count(msgspec.Struct, array_like=True):
    """How often, and when last (seconds since 1970, 0 for never)."""

    count: int = 0
    last: float = 0.0


class Totals(msgspec.Struct, array_like=True):
    """The counters of a host: completion errors by port and status, events by port, failures by class."""

    completions: dict[tuple[Port, str], Count] = {}
    flushes: dict[Port, Count] = {}
    events: dict[tuple[Port, str], Count] = {}
    failures: dict[str, Count] = {}
    flaps: dict[FlapKey, Flap] = {}
    """Events that processes tell of in several logs at once."""
    log_bytes: int = 0
    """Bytes of logs that were read. Whoever reads them adds to it."""

    def absorb(self, news: News, hosts: Collection[str], hostname: str, inventory: Inventory) -> None:
        """Add what one log has counted. ``hosts`` are those that wrote to it (:attr:`Evidence.hosts`)."""
        for (host, hca, status), (count, last) in news.completions.items():
            for port in ports_of(hca, inventory) if local(host, hosts, hostname) else (UNKNOWN,):
                _add(self.completions, (port, str(status) if status in STATUSES else OTHER), int(count), last)
        for (host, hca, _), (count, last) in news.flushes.items():
            for port in ports_of(hca, inventory) if local(host, hosts, hostname) else (UNKNOWN,):
                _add(self.flushes, port, int(count), last)
        for (key, reporter), (count, last) in news.events.items():
            ports = ports_of(key.device, inventory, key.port) if local(key.host, hosts, hostname) else (UNKNOWN,)
            # Every process tells of it in its own log, each container under a host name of its own.
            named = key if UNKNOWN in ports else key._replace(host="")
            if new := report(self.flaps, named, reporter, last, int(count)):
                for port in ports:
                    _add(self.events, (port, key.event if key.event in EVENTS else OTHER), new, last)
        for kind, (count, last) in news.failures.items():
            _add(self.failures, kind if kind in FAILURES else OTHER, int(count), last)

    def state(self) -> bytes:
        """Return the state for :meth:`restore`."""
        return msgspec.msgpack.encode((VERSION, self))

    @classmethod
    def restore(cls, state: bytes) -> Totals:
        """Return the totals of a :meth:`state`. Raises ValueError when it is of another version or broken."""
        version, _ = msgspec.msgpack.decode(state, type=tuple[int, msgspec.Raw])
        if version != VERSION:
            raise ValueError(f"state of version {version}, expected {VERSION}")
        return msgspec.msgpack.decode(state, type=tuple[int, Totals])[1]


def _add(table: dict[K, Count], key: K, count: int, last: float) -> None:
    entry = table.get(key)
    if entry is None:
        if len(table) >= MOST_KEYS:
            return
        entry = table[key] = Count()
    entry.count += count
    entry.last = max(entry.last, last)
