"""Reads the sources when somebody asks, in threads of a crew, and never waits for one that hangs.

One reading of a source is a *flight*: everybody who asks while it is in the air gets its result. It goes unit by unit; what
is read is kept as it comes, so a unit that hangs costs itself. A flight whose unit does not return is abandoned, the unit put in
quarantine with back-off, and another thread reads the rest. Nothing here knows what is read.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from exporter.arbiter import Arbiter
from exporter.crew import Crew, Member
from exporter.kernel import ENOTSUPP
from exporter.model import Inventory, Reading
from exporter.sources.base import Source, Trouble

STUCK_SECONDS = 3.0
"""How long one unit may take before it is taken to hang. mlx5 answers in milliseconds; sick firmware takes a minute."""
SLOW_SECONDS = 0.05
"""How long one unit may take before the sources that wait for it get a thread of their own."""
NEVER = frozenset({errno.EOPNOTSUPP, errno.EPROTONOSUPPORT, errno.EPERM, ENOTSUPP})
"""What a driver answers to a question that it will never answer otherwise; it is asked again after RETRY_SECONDS only."""
RETRY_SECONDS = 600.0
BACKOFF_SECONDS = 30.0
LONGEST_BACKOFF_SECONDS = 600.0
STALE_SECONDS = 60.0
"""The longest that the last good readings of a unit are served when it cannot be read."""
MOST_STUCK = 12
"""Threads of one source that may hang at the same time. When so many do, the source is not read until one returns."""
FAILURES_LOGGED = 256
"""Different failures that are logged; the rest is only counted, so that a broken device does not fill the disk."""

BEGIN = "begin"
"""The unit that stands for what a source does before its units."""

log = structlog.get_logger("sampler")


@dataclass(slots=True)
class Flight:
    """One reading of one source."""

    inventory: Inventory
    skip: frozenset[str]
    started: float
    landed: asyncio.Future[None]
    member: Member | None = None
    current: tuple[str, float] | None = None
    done: list[tuple[str, list[Reading] | None]] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    trouble: Trouble = field(default_factory=Trouble)
    finished: float | None = None
    abandoned: bool = False


@dataclass(slots=True)
class Quarantine:
    """A unit that hung: when it may be tried again, and the flight that still waits for it in the kernel."""

    until: float
    backoff: float
    flight: Flight


class Lane:
    """One source with its last results and its troubles. ``landed`` is called in the reading thread when a flight ends."""

    def __init__(
        self,
        source: Source[Any],
        crew: Crew,
        landed: Callable[[Lane, Flight], None],
        stuck_after: float,
        clock: Callable[[], float],
    ) -> None:
        self.source = source
        self.crew = crew
        self.landed = landed
        self.stuck_after = stuck_after
        self.clock = clock
        self.flight: Flight | None = None
        self.results: dict[str, tuple[list[Reading], float]] = {}
        self.quarantined: dict[str, Quarantine] = {}
        self.silent: dict[str, float] = {}
        self.last_inventory: Inventory | None = None
        self.last_start: float | None = None
        self.interval = STALE_SECONDS
        self.finished_at: float | None = None
        self.last_read_timestamp: float | None = None
        self.duration = 0.0
        self.success = True
        self.errors = 0
        self.tried = False
        self.logged: set[tuple[str, str]] = set()

    @property
    def name(self) -> str:
        return self.source.name

    def start(self, inventory: Inventory) -> None:
        """Start a flight unless one is in the air, the last result is fresh, or a hung read forbids it."""
        now = self.clock()
        if self.flight is not None:
            self.check(now)
        if self.flight is not None:
            return
        fresh = self.finished_at is not None and now - self.finished_at < self.source.max_age
        if fresh and inventory is self.last_inventory:
            return
        if self.barred(now):
            self.success = False
            return
        if self.last_start is not None:
            self.interval = now - self.last_start
        self.last_start = now
        self._fly(inventory)

    def barred(self, now: float) -> bool:
        """True when nothing of this source may be read now: its start hung, or a hung read forbids a second one."""
        held = self.quarantined.get(BEGIN)
        if held is not None and (now < held.until or held.flight.finished is None):
            return True
        return self.full()

    def full(self) -> bool:
        """True when as many threads hang as may."""
        return self.stuck_workers() >= (1 if self.source.exclusive else MOST_STUCK)

    def _fly(self, inventory: Inventory) -> None:
        now = self.clock()
        hung = [key for key, held in self.quarantined.items() if now < held.until or held.flight.finished is None]
        skip = frozenset((*hung, *(key for key, again in self.silent.items() if now < again)))
        flight = Flight(inventory, skip, now, asyncio.get_running_loop().create_future())
        self.flight = flight
        self.last_inventory = inventory
        self.crew.put(lambda member: self._work(flight, member))

    def _work(self, flight: Flight, member: Member) -> None:
        """Read the units, in a thread of the crew. Only ``flight`` is written."""
        source, trouble, clock = self.source, flight.trouble, self.clock
        flight.member = member
        flight.started = clock()
        try:
            flight.current = (BEGIN, clock())
            source.begin(flight.inventory, trouble)
            for unit in source.units(flight.inventory):
                if flight.abandoned:
                    break
                if unit.key in flight.skip:
                    continue
                flight.current = (unit.key, clock())
                readings: list[Reading] | None = None
                try:
                    readings = source.read(unit.subject, trouble)
                except OSError as error:
                    if trouble.note(unit.key, error):
                        readings = []
                    if error.errno in NEVER:
                        flight.never.append(unit.key)
                except Exception as error:  # a fault of ours in one source must not cost the others
                    self._fault(trouble, unit.key, error)
                flight.done.append((unit.key, readings))
        except OSError as error:
            trouble.note(BEGIN, error)
        except Exception as error:
            self._fault(trouble, BEGIN, error)
        flight.current = None
        flight.finished = clock()
        self.landed(self, flight)

    def _fault(self, trouble: Trouble, where: str, error: Exception) -> None:
        """Note a fault of ours, and log where it is the first time that it is met."""
        trouble.note(where, f"{type(error).__name__}: {error}")
        if trouble.failures[-1] not in self.logged and len(self.logged) < FAILURES_LOGGED:
            log.error("source failed", source=self.name, unit=where, exc_info=error)

    def land(self, flight: Flight) -> None:
        """Take over a flight's results, in the event loop."""
        if not flight.landed.done():
            flight.landed.set_result(None)
        if flight.abandoned:
            return
        self.flight = None
        self.tried = True
        self._harvest(flight)
        self.finished_at = flight.finished
        self.last_read_timestamp = time.time()
        self.duration = (flight.finished or flight.started) - flight.started
        now = self.clock()
        self.silent = {key: again for key, again in self.silent.items() if now < again}
        self.silent.update((key, now + RETRY_SECONDS) for key in flight.never)
        read = {BEGIN, *(key for key, _ in flight.done)}
        for key in [key for key in self.results if key not in read and key not in flight.skip]:
            del self.results[key]
        for key in [key for key in self.quarantined if key in read]:
            del self.quarantined[key]
        self.success = not flight.trouble.failures and not self.quarantined

    def _harvest(self, flight: Flight) -> None:
        """Keep what the flight has read so far. A unit that failed keeps its last good readings until they are stale."""
        now = self.clock()
        for key, readings in list(flight.done):
            if readings is not None:
                self.results[key] = (readings, now)
        failures = flight.trouble.failures
        self.errors += len(failures)
        for failure in failures:
            if failure not in self.logged and len(self.logged) < FAILURES_LOGGED:
                self.logged.add(failure)
                log.warning("read failed", source=self.name, where=failure.where, error=failure.error)

    def check(self, now: float) -> bool:
        """Abandon the flight if its unit hangs, put the unit in quarantine and read the rest; True when that happened."""
        flight = self.flight
        current = flight.current if flight is not None else None
        if flight is None or current is None or now - current[1] < self.stuck_after:
            return False
        flight.abandoned = True
        key = current[0]
        self.flight = None
        if flight.member is not None:
            self.crew.dismiss(flight.member)
        self.tried = True
        self.success = False
        self._harvest(flight)
        self.errors += 1
        before = self.quarantined.get(key)
        backoff = BACKOFF_SECONDS if before is None else min(before.backoff * 2, LONGEST_BACKOFF_SECONDS)
        self.quarantined[key] = Quarantine(now + backoff, backoff, flight)
        log.error("read hangs", source=self.name, unit=key, seconds=round(now - current[1], 1), retry_in=backoff)
        if key == BEGIN or self.full():
            self.finished_at = now
        else:
            self._fly(flight.inventory)
        return True

    def quick(self, now: float) -> bool:
        """True when a unit of this source is being read and has not taken long."""
        current = self.flight.current if self.flight is not None else None
        return current is not None and now - current[1] < SLOW_SECONDS

    def stuck_at(self) -> float:
        """When the unit that is read now will be taken to hang."""
        current = self.flight.current if self.flight is not None else None
        return (current[1] if current is not None else self.clock()) + self.stuck_after

    def late(self) -> None:
        """The deadline has passed with the flight in the air: serve what it has read, and say so."""
        if self.flight is not None:
            self.success = False
            now = self.clock()
            for key, readings in list(self.flight.done):
                if readings is not None:
                    self.results[key] = (readings, now)

    def readings(self) -> Iterable[Reading]:
        """Return all readings that are not stale: at most twice the scrape interval, and a minute at most.

        What the last flight has read is served whatever its age: nobody could have it fresher.
        """
        now = self.clock()
        oldest = now - min(STALE_SECONDS, 2 * max(self.interval, self.source.max_age))
        if self.last_start is not None and not self.barred(now):
            oldest = min(oldest, self.last_start)
        for readings, read_at in self.results.values():
            if read_at >= oldest:
                yield from readings

    def stuck_workers(self) -> int:
        """How many threads of this source wait in the kernel."""
        return sum(held.flight.finished is None for held in self.quarantined.values())


class Sampler:
    """Answers scrapes from the sources. One per daemon; used in one event loop."""

    def __init__(
        self,
        sources: Sequence[Source[Any]],
        *,
        stuck_after: float = STUCK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inventory = Inventory()
        self._crew = Crew("fabric-reader", most=len(sources) + 1)
        self.lanes = tuple(Lane(source, self._crew, self._land_later, stuck_after, clock) for source in sources)
        self.clock = clock
        self._ended: deque[tuple[Lane, Flight]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arbiter = Arbiter()

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of the sources, in order."""
        return tuple(lane.name for lane in self.lanes)

    def adopt(self, inventory: Inventory) -> None:
        """Take over a new inventory. An equal one changes nothing, so that nothing derived from it is made again."""
        if inventory != self.inventory:
            self.inventory = inventory
            self._arbiter.forget(inventory)

    def dropped(self, source: str) -> int:
        """How many series of a source were not served, because another reading had them already."""
        return self._arbiter.dropped.get(source, 0)

    async def sample(self, wanted: frozenset[str] | None, deadline: float) -> list[Reading]:
        """Return the readings of the sources that are wanted (None: all), at the latest at ``deadline`` (of ``clock``)."""
        self._loop = asyncio.get_running_loop()
        self._land()
        lanes = [lane for lane in self.lanes if wanted is None or lane.name in wanted]
        for lane in lanes:
            lane.start(self.inventory)
        await self._wait(lanes, deadline)
        found = [(lane.name, reading) for lane in lanes for reading in lane.readings()]
        return self._arbiter.settle(found, complete=all(lane.tried for lane in self.lanes))

    async def _wait(self, lanes: Sequence[Lane], deadline: float) -> None:
        while flying := [lane for lane in lanes if lane.flight is not None]:
            now = self.clock()
            if now >= deadline:
                for lane in flying:
                    lane.late()
                return
            until = min(deadline, *(lane.stuck_at() for lane in flying))
            if self._crew.waiting():
                until = min(until, now + SLOW_SECONDS)
            landings = [lane.flight.landed for lane in flying if lane.flight is not None]
            await asyncio.wait(landings, timeout=max(until - now, 0.001))
            self._land()
            now = self.clock()
            for lane in flying:
                lane.check(now)
            if self._crew.waiting() and not any(lane.quick(now) for lane in self.lanes):
                self._crew.reinforce()

    def _land_later(self, lane: Lane, flight: Flight) -> None:
        """Have the event loop take a flight's results over. Called in the reading thread.

        The loop is woken when nothing is left to read: each time it wakes it takes the interpreter from the reader.
        """
        self._ended.append((lane, flight))
        loop = self._loop
        if loop is not None and not self._crew.waiting():
            try:
                loop.call_soon_threadsafe(self._land)
            except RuntimeError:  # the loop has ended meanwhile: nobody waits any more
                return

    def _land(self) -> None:
        while self._ended:
            lane, flight = self._ended.popleft()
            lane.land(flight)
