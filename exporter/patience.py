"""Asks the kernel many questions in a row, and goes on without the answers that do not come.

Discovery and captures ask hundreds of small questions, each needing what the one before said. They are asked in a thread. When
one hangs the thread is left to it and all is asked anew in another, that question excepted. A question that hangs or fails is
answered as it was the last time: what is known of a device is not lost because its firmware, or this process, is in trouble.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Container
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast

import structlog

from exporter.crew import Crew, Member
from exporter.errors import KernelError
from exporter.kernel import (
    DriverInfo,
    Ethtool,
    Kernel,
    Link,
    LinkEvent,
    Links,
    Rdma,
    RdmaDevice,
    RdmaLink,
    Statistics,
    Sysfs,
    not_there,
    read_one_by_one,
)

HANGS_SECONDS = 3.0
"""How long one question may take before it is taken to hang. The kernel answers in microseconds, sick firmware in a minute."""
LESS_PATIENT = 1 / 3
"""What of that is left to the others once one has hung: sick devices come in dozens, and somebody waits for the rest."""
MOST_HUNG = 48
"""Threads that may wait in the kernel at the same time. When more would, nothing is asked any more."""

T = TypeVar("T")

log = structlog.get_logger("kernel")


@dataclass(slots=True)
class Round:
    """All questions once, in one thread. ``current`` is the one that is being asked, and since when."""

    known: dict[str, Any]
    skip: frozenset[str]
    current: tuple[str, float] | None = None
    answers: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    member: Member | None = None
    abandoned: bool = False
    ended: bool = False

    def ask(self, question: str, call: Callable[[], T], *, family: str = "") -> T:
        """Return the answer; the last one when the kernel hangs or fails. Raises the :class:`OSError` when there is none.

        Questions of a ``family`` wait for each other in the kernel: when one cannot be asked, none is.
        """
        if question in self.skip or family in self.skip:
            return cast(T, self._recall(question, OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), question)))
        self.current = (family or question, time.monotonic())
        try:
            answer = call()
        except OSError as error:
            if not_there(error):
                # Without the frames that it came through: they would keep this round alive, and all before it.
                self.answers[question] = OSError(error.errno, error.strerror)
                raise
            if family and error.errno == errno.EBUSY:
                self.skip |= {family}
            self.failed[question] = error.strerror or str(error)
            return cast(T, self._recall(question, error))
        finally:
            self.current = None
            if self.abandoned:
                raise Abandoned
        self.answers[question] = answer
        return answer

    def _recall(self, question: str, error: OSError) -> object:
        """Return the last answer, or raise it: that something is not there is an answer. Raises ``error`` without one."""
        if question not in self.known:
            raise error
        answer = self.answers[question] = self.known[question]
        if isinstance(answer, OSError):
            raise OSError(answer.errno, answer.strerror, question)
        return answer


class Abandoned(BaseException):
    """Ends the work of a thread that nobody waits for any more."""


class Patience:
    """Has work done that asks a kernel. Used in one event loop, one work at a time."""

    def __init__(self, name: str, hangs_after: float = HANGS_SECONDS, most: int = MOST_HUNG) -> None:
        self._crew = Crew(name, most=1)
        self._hangs_after = hangs_after
        self._most = most
        self._known: dict[str, Any] = {}
        self._hung: dict[str, Round] = {}
        self._told: set[tuple[str, str]] = set()

    @property
    def stuck(self) -> int:
        """How many threads wait in the kernel for an answer that has not come."""
        return sum(not round.ended for round in self._hung.values())

    async def run(self, kernel: Kernel, work: Callable[[Kernel], T]) -> T:
        """Return what ``work`` returns when it is given the kernel; it may be called several times.

        Raises what it raises, and :class:`KernelError` when too many questions hang.
        """
        hangs_after = self._hangs_after
        while True:
            self._hung = {question: round for question, round in self._hung.items() if not round.ended}
            if len(self._hung) >= self._most:
                raise KernelError(
                    f"{len(self._hung)} questions to the kernel hang, among them {next(iter(self._hung))}"
                )
            round = Round(self._known, frozenset(self._hung))
            done = self._start(round, partial(work, patient(kernel, round)))
            while not done.done():
                await asyncio.wait([done], timeout=hangs_after / 4)
                if not done.done() and self._hangs(round, hangs_after):
                    hangs_after = self._hangs_after * LESS_PATIENT
                    break
            else:
                self._known = round.answers
                self._tell(round)
                return done.result()

    def _start(self, round: Round, work: Callable[[], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def task(member: Member) -> None:
            round.member = member
            outcome, fault = None, None
            try:
                outcome = work()
            except Abandoned:
                pass
            except Exception as error:
                fault = error
            round.ended = True
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(deliver, outcome, fault)

        def deliver(outcome: T | None, fault: Exception | None) -> None:
            if round.abandoned or done.done():
                return
            if fault is not None:
                done.set_exception(fault)
            else:
                done.set_result(cast(T, outcome))

        self._crew.put(task)
        return done

    def _hangs(self, round: Round, seconds: float) -> bool:
        """Give the round up if its question hangs; True when that happened."""
        current = round.current
        if current is None or time.monotonic() - current[1] < seconds:
            return False
        round.abandoned = True
        if round.member is not None:
            self._crew.dismiss(round.member)
        self._hung[current[0]] = round
        log.error("no answer, going on without", question=current[0], seconds=seconds)
        return True

    def _tell(self, round: Round) -> None:
        """Log what failed and did not fail the last time: one line for each kind of error, a host may have thousands of files."""
        kinds: dict[str, list[str]] = {}
        for question, error in round.failed.items():
            if (question, error) not in self._told:
                kinds.setdefault(error, []).append(question)
        for error, questions in kinds.items():
            told = "no answer, the last one stays in use if there is one"
            log.warning(told, error=error, questions=len(questions), first=questions[0])
        self._told = set(round.failed.items())


def patient(kernel: Kernel, round: Round) -> Kernel:
    """Return the kernel with the questions of discovery and captures (files, devices, links) asked in the round."""
    return replace(
        kernel,
        sysfs=_PatientSysfs(kernel.sysfs, round),
        ethtool=_PatientEthtool(kernel.ethtool, round),
        rdma=_PatientRdma(kernel.rdma, round),
        links=_PatientLinks(kernel.links, round),
    )


class _Patient(Generic[T]):
    def __init__(self, asked: T, round: Round) -> None:
        self._asked = asked
        self._round = round


class _PatientSysfs(_Patient[Sysfs]):
    def read(self, path: str) -> str:
        return self._round.ask(path, partial(self._asked.read, path))

    def read_bytes(self, path: str, limit: int = 4096) -> bytes:
        return self._round.ask(f"{path} (bytes)", partial(self._asked.read_bytes, path, limit))

    def read_folder(self, path: str, skip: Container[str] = (), first: str = "") -> list[tuple[str, str | OSError]]:
        return read_one_by_one(self, path, skip, first)

    def list(self, path: str) -> tuple[str, ...]:
        return self._round.ask(f"{path}/", partial(self._asked.list, path))

    def exists(self, path: str) -> bool:
        return self._round.ask(f"{path} (there)", partial(self._asked.exists, path))

    def resolve(self, path: str) -> str:
        return self._round.ask(f"{path} (link)", partial(self._asked.resolve, path))

    def read_proc(self, path: str) -> str:
        return self._round.ask(f"proc {path}", partial(self._asked.read_proc, path))


class _PatientEthtool(_Patient[Ethtool]):
    def driver_info(self, netdev: str) -> DriverInfo:
        question = f"driver of {netdev}"
        return self._round.ask(question, partial(self._asked.driver_info, netdev), family="ethtool")

    def statistics(self, netdev: str) -> Statistics:
        question = f"statistics of {netdev}"
        return self._round.ask(question, partial(self._asked.statistics, netdev), family="ethtool")


class _PatientRdma(_Patient[Rdma]):
    def devices(self) -> tuple[RdmaDevice, ...]:
        return self._round.ask("RDMA devices", self._asked.devices)

    def links(self) -> tuple[RdmaLink, ...]:
        return self._round.ask("RDMA links", self._asked.links)

    def namespaces(self) -> Literal["shared", "exclusive", ""]:
        return self._round.ask("RDMA namespaces", self._asked.namespaces)

    def statistics(self, dev_index: int, port: int) -> Statistics:
        question = f"RDMA statistics of {dev_index}:{port}"
        return self._round.ask(question, partial(self._asked.statistics, dev_index, port))


class _PatientLinks(_Patient[Links]):
    def dump(self) -> tuple[Link, ...]:
        return self._round.ask("links", self._asked.dump)

    def default_route_interfaces(self) -> tuple[str, ...]:
        return self._round.ask("default routes", self._asked.default_route_interfaces)

    def monitor(self) -> AsyncIterator[LinkEvent]:
        return self._asked.monitor()
