"""Threads that make blocking calls: as few as possible, and never fewer than needed.

One thread does all the work as long as each piece is quick, because threads that take turns at the interpreter cost several times
the CPU of one. A second joins when the first takes long, and leaves when there is nothing to do.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger("crew")

IDLE_SECONDS = 5.0
"""After how long without work a thread that is not needed leaves."""


class Member:
    """One thread of a crew. ``dismissed``: it hangs in a call, others have taken over, and it ends when it comes back."""

    __slots__ = ("dismissed",)

    def __init__(self) -> None:
        self.dismissed = False


Task = Callable[[Member], None]


class Crew:
    """Takes tasks in order. Its threads are daemons and not the default executor's, whose threads keep a program from ending."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._members: set[Member] = set()
        self._lock = threading.Lock()
        self._refused = False

    def put(self, task: Task) -> None:
        """Have the task done, after those put before."""
        self._tasks.put(task)
        with self._lock:
            if not self._members:
                self._join()

    def waiting(self) -> bool:
        """True when a task has not been begun."""
        return not self._tasks.empty()

    def reinforce(self) -> None:
        """Have one more thread work, when a task waits and there may be one more. A task for which none could be had waits on."""
        with self._lock:
            if self.waiting() and len(self._members) < self._most:
                self._join()

    def dismiss(self, member: Member) -> None:
        """Give a thread up that hangs in a task: it does nothing more when it comes back."""
        with self._lock:
            member.dismissed = True
            self._members.discard(member)
            if self.waiting() and not self._members:
                self._join()

    def _join(self) -> None:
        member = Member()
        self._members.add(member)
        try:
            threading.Thread(target=self._work, args=(member,), name=self._name, daemon=True).start()
        except RuntimeError as error:  # no memory, or as many threads as the host or the service may have
            self._members.discard(member)
            if not self._refused:
                log.error("tasks wait for a thread", crew=self._name, error=str(error))  # noqa: TRY400 - told in one line
            self._refused = True
        else:
            self._refused = False

    def _work(self, member: Member) -> None:
        while not member.dismissed:
            try:
                task = self._tasks.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if len(self._members) > 1 or member.dismissed:
                        self._members.discard(member)
                        return
                continue
            task(member)
