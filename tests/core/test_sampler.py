"""Single flight, deadlines, quarantine, staleness: with sources that do what a test tells them, in real threads."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Sequence

import pytest
import structlog

from exporter.catalogue.ethernet import RECEIVED_DISCARDS
from exporter.model import Inventory, Netdev, Reading, Series, Shape
from exporter.sampler import MOST_STUCK, Lane, Sampler
from exporter.sources.base import Environment, Source, Trouble, Unit

INVENTORY = Inventory(netdevs=tuple(Netdev(name, ifindex) for ifindex, name in enumerate(("eth0", "eth1", "eth2"), 1)))


class Told(Source[Netdev]):
    """A source that reads each interface by calling what the test gave."""

    name = "ethtool"
    max_age = 0.0

    def __init__(self, reads: Callable[[str], int]) -> None:
        self.reads = reads
        self.calls: list[str] = []
        self.shapes_by_name = {
            netdev.name: Shape([Series(RECEIVED_DISCARDS, netdev.labels)]) for netdev in INVENTORY.netdevs
        }

    def units(self, inventory: Inventory) -> Sequence[Unit[Netdev]]:
        return [Unit(netdev.name, netdev) for netdev in inventory.netdevs]

    def read(self, subject: Netdev, trouble: Trouble) -> list[Reading]:
        self.calls.append(subject.name)
        return [Reading(self.shapes_by_name[subject.name], (self.reads(subject.name),))]


class Clock:
    """Monotonic time that a test may set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


def sampler(source: Told, clock: Clock, **how: float) -> tuple[Sampler, Lane]:
    made = Sampler([source], clock=clock, **how)
    made.adopt(INVENTORY)
    return made, made.lanes[0]


def served(readings: Sequence[Reading]) -> dict[str, float]:
    return {dict(sample.labels)["netdev"]: sample.value for reading in readings for sample in reading.samples()}


async def test_scrapes_at_the_same_time_share_one_flight() -> None:
    gate = threading.Event()

    def read(name: str) -> int:
        gate.wait(10)
        return 1

    source, clock = Told(read), Clock()
    made, _ = sampler(source, clock)
    waiting = [asyncio.create_task(made.sample(None, clock() + 10)) for _ in range(5)]
    await asyncio.sleep(0.05)
    gate.set()
    for readings in await asyncio.gather(*waiting):
        assert served(readings) == {"eth0": 1, "eth1": 1, "eth2": 1}
    assert source.calls == ["eth0", "eth1", "eth2"]


async def test_a_young_reading_is_served_again_and_an_old_one_is_not() -> None:
    source, clock = Told(lambda name: 1), Clock()
    source.max_age = 1.0
    made, _ = sampler(source, clock)
    await made.sample(None, clock() + 5)
    await made.sample(None, clock() + 5)
    assert len(source.calls) == 3
    clock.ahead = 1.0
    await made.sample(None, clock() + 5)
    assert len(source.calls) == 6


async def test_a_hung_unit_costs_itself_and_is_left_alone_until_its_time() -> None:
    hang = threading.Event()

    def read(name: str) -> int:
        if name == "eth1" and not hang.is_set():
            hang.wait(30)
        return 1

    source, clock = Told(read), Clock()
    made, lane = sampler(source, clock, stuck_after=0.1)
    began = time.monotonic()
    assert served(await made.sample(None, clock() + 20)) == {"eth0": 1, "eth2": 1}
    assert time.monotonic() - began < 10, "the scrape waited for the hung read"
    assert (lane.success, len(lane.quarantined), lane.stuck_workers(), lane.errors) == (False, 1, 1, 1)

    clock.ahead = 700
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth2": 1}, "not tried again while it hangs"
    assert source.calls.count("eth1") == 1

    hang.set()
    for _ in range(100):
        if lane.stuck_workers() == 0:
            break
        await asyncio.sleep(0.05)
    assert lane.stuck_workers() == 0
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth1": 1, "eth2": 1}
    assert (lane.success, len(lane.quarantined)) == (True, 0)


async def test_an_exclusive_source_reads_nothing_while_a_read_hangs() -> None:
    hang = threading.Event()

    def read(name: str) -> int:
        if name == "eth1":
            hang.wait(30)
        return 1

    source, clock = Told(read), Clock()
    source.exclusive = True
    made, lane = sampler(source, clock, stuck_after=0.1)
    assert served(await made.sample(None, clock() + 20)) == {"eth0": 1}
    await made.sample(None, clock() + 5)
    assert source.calls == ["eth0", "eth1"]
    assert (lane.success, lane.stuck_workers()) == (False, 1)
    hang.set()


async def test_a_late_source_serves_what_it_has_and_says_so() -> None:
    gate = threading.Event()

    def read(name: str) -> int:
        if name != "eth0":
            gate.wait(10)
        return 1

    source, clock = Told(read), Clock()
    made, lane = sampler(source, clock, stuck_after=60)
    assert served(await made.sample(None, clock() + 0.3)) == {"eth0": 1}
    assert lane.success is False
    gate.set()
    assert served(await made.sample(None, clock() + 10)) == {"eth0": 1, "eth1": 1, "eth2": 1}
    assert source.calls == ["eth0", "eth1", "eth2"], "the second scrape joined the first's flight"
    assert lane.success is True


async def test_the_last_good_reading_of_a_failing_unit_is_served_until_it_is_stale() -> None:
    broken = False

    def read(name: str) -> int:
        if broken and name == "eth1":
            raise OSError(errno.EIO, "Input/output error")
        return 1

    source, clock = Told(read), Clock()
    made, lane = sampler(source, clock)
    await made.sample(None, clock() + 5)
    broken = True
    clock.ahead = 15
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth1": 1, "eth2": 1}
    assert (lane.success, lane.errors) == (False, 1)
    clock.ahead = 75
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth2": 1}
    assert lane.errors == 2


async def test_a_reading_that_may_be_served_for_long_is() -> None:
    source, clock = Told(lambda name: 1), Clock()
    source.max_age = 300.0
    made, _ = sampler(source, clock)
    await made.sample(None, clock() + 5)
    clock.ahead = 299
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth1": 1, "eth2": 1}
    assert len(source.calls) == 3


async def test_what_was_just_read_is_served_however_soon_the_scrapes_follow() -> None:
    """A source has answered, another takes ten seconds more: that is long after two intervals of scrapes without a pause."""

    class Slow(Told):
        name = "rdma"

    slow = False

    def read_slowly(name: str) -> int:
        if slow and name == "eth0":
            while quick_lane.flight is not None:
                time.sleep(0.005)
            clock.ahead += 10
        return 1

    clock = Clock()
    made = Sampler([Told(lambda name: 1), Slow(read_slowly)], clock=clock, stuck_after=60)
    made.adopt(INVENTORY)
    quick_lane = made.lanes[0]
    await made.sample(None, clock() + 60)
    await made.sample(None, clock() + 60)
    slow = True
    await made.sample(None, clock() + 60)
    assert served(list(quick_lane.readings())) == {"eth0": 1, "eth1": 1, "eth2": 1}


async def test_what_a_device_does_not_have_is_no_failure() -> None:
    def read(name: str) -> int:
        if name == "eth1":
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return 1

    source, clock = Told(read), Clock()
    made, lane = sampler(source, clock)
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth2": 1}
    assert (lane.success, lane.errors) == (True, 0)


async def test_a_fault_of_ours_costs_its_unit_only() -> None:
    def read(name: str) -> int:
        if name == "eth1":
            raise ZeroDivisionError("a fault")
        return 1

    source, clock = Told(read), Clock()
    made, lane = sampler(source, clock)
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth2": 1}
    assert (lane.success, lane.errors) == (False, 1)


async def test_a_fault_of_ours_is_logged_once() -> None:
    def read(name: str) -> int:
        raise ZeroDivisionError("a fault")

    source, clock = Told(read), Clock()
    made, lane = sampler(source, clock)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            await made.sample(None, clock() + 5)
            clock.ahead += 10
    assert lane.errors == 9
    failed = [log["unit"] for log in logs if log["event"] == "source failed"]
    assert sorted(failed) == ["eth0", "eth1", "eth2"], "once for each interface"


async def test_so_many_threads_hang_and_no_more() -> None:
    hang = threading.Event()

    def read(name: str) -> int:
        hang.wait(60)
        return 1

    clock = Clock()
    source = Told(read)
    netdevs = tuple(Netdev(f"eth{number}", number) for number in range(40))
    source.shapes_by_name = {netdev.name: Shape([Series(RECEIVED_DISCARDS, netdev.labels)]) for netdev in netdevs}
    made, lane = sampler(source, clock, stuck_after=0.02)
    made.adopt(Inventory(netdevs=netdevs))
    assert await made.sample(None, clock() + 20) == []
    assert (lane.stuck_workers(), len(source.calls)) == (MOST_STUCK, MOST_STUCK)
    clock.ahead = 3600
    assert await made.sample(None, clock() + 20) == []
    assert len(source.calls) == MOST_STUCK, "read although as many threads hang as may"
    hang.set()
    while lane.stuck_workers():
        await asyncio.sleep(0.01)
    assert len(served(await made.sample(None, clock() + 20))) == len(netdevs)
    assert lane.success


async def test_a_host_without_room_for_a_thread_is_read_when_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    source, clock = Told(lambda name: 1), Clock()
    made, lane = sampler(source, clock)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as context:
        context.setattr(threading.Thread, "start", refuse)
        assert await made.sample(None, clock() + 0.2) == []
        assert lane.success is False
    assert served(await made.sample(None, clock() + 20)) == {"eth0": 1, "eth1": 1, "eth2": 1}
    assert lane.success


async def test_an_interface_that_left_is_not_served_any_more() -> None:
    source, clock = Told(lambda name: 1), Clock()
    made, _ = sampler(source, clock)
    await made.sample(None, clock() + 5)
    made.adopt(Inventory(netdevs=INVENTORY.netdevs[:1]))
    assert served(await made.sample(None, clock() + 5)) == {"eth0": 1}


async def test_sources_that_are_not_wanted_are_not_read() -> None:
    source, clock = Told(lambda name: 1), Clock()
    made, _ = sampler(source, clock)
    assert served(await made.sample(frozenset({"ports"}), clock() + 5)) == {}
    assert source.calls == []


def test_the_environment_serves_the_profile() -> None:
    from exporter.catalogue.ethernet import FEC_INFO
    from exporter.kernel.captured import open_capture

    kernel = open_capture("tests/machines/tg3-docs")
    assert not Environment(kernel).serves(FEC_INFO)
    assert Environment(kernel, profile="full").serves(FEC_INFO)


async def test_a_driver_that_has_no_such_thing_is_asked_again_after_ten_minutes_only() -> None:
    source, clock = Told(lambda name: 1), Clock()

    def read(name: str) -> int:
        if name == "eth1":
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return 1

    source.reads = read
    made, _ = sampler(source, clock)
    for ahead in (0, 1, 599, 601):
        clock.ahead = ahead
        assert served(await made.sample(None, clock() + 5)) == {"eth0": 1, "eth2": 1}
    assert source.calls.count("eth1") == 2
    assert source.calls.count("eth0") == 4


async def test_one_thread_reads_while_all_is_quick_and_a_slow_read_holds_up_nobody() -> None:
    gate = threading.Event()

    class Slow(Told):
        name = "rdma"

    def slow(name: str) -> int:
        gate.wait(10)
        return 1

    def quick(name: str) -> int:
        return threading.get_ident()

    clock = Clock()
    made = Sampler([Slow(slow), Told(quick)], clock=clock, stuck_after=60)
    made.adopt(INVENTORY)
    held = asyncio.create_task(made.sample(None, clock() + 20))
    await asyncio.sleep(0.3)
    assert set(served(await made.sample(frozenset({"ethtool"}), clock() + 5))) == {"eth0", "eth1", "eth2"}
    gate.set()
    await held
    one_reader = {served(await made.sample(frozenset({"ethtool"}), clock() + 5))["eth0"] for _ in range(5)}
    assert len(one_reader) <= 2
