"""A reader and evidence that count lines, in the place of those that understand them, and a follower to drive by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from exporter.nccl.evidence import Evidence
from exporter.nccl.facts import Fact, Noise, Record
from exporter.nccl.follow import Follower
from exporter.nccl.globs import Glob, LogRule
from exporter.nccl.reader import Facts, Reader
from exporter.nccl.state import News
from exporter.storage import Storage


class LineReader:
    """Makes a fact of every line."""

    def __init__(self) -> None:
        self.lines = 0

    def feed(self, block: bytes) -> Facts:
        lines = block.decode("latin-1").removesuffix("\n").split("\n")
        self.lines += len(lines)
        return [(Record("", line), Noise("")) for line in lines]

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self.lines)

    @classmethod
    def restore(cls, state: bytes) -> LineReader:
        reader = cls()
        reader.lines = msgspec.msgpack.decode(state, type=int)
        return reader


class Lines:
    """Remembers the lines of a log, in order."""

    def __init__(self, lines: list[str] | None = None) -> None:
        self.lines = lines or []
        self.hosts: dict[str, int] = {}
        self.replaying = False
        self.replayed: list[bool] = []
        self.times: list[float] = []

    def take(self, record: Record, fact: Fact, now: float) -> None:
        self.lines.append(record.message)
        self.replayed.append(self.replaying)
        self.times.append(now)

    def drain(self) -> News:
        return News()

    def state(self) -> bytes:
        return msgspec.msgpack.encode(self.lines)

    @classmethod
    def restore(cls, state: bytes) -> Lines:
        return cls(msgspec.msgpack.decode(state, type=list[str]))


class Hand:
    """A follower that does a round when it is told to. Time passes when it is told to, too."""

    def __init__(self, storage: Storage | None = None, *rules: LogRule, **options: Any) -> None:
        self.now = 1000.0
        self.storage = storage or Storage("")
        self.stop = threading.Event()
        settings: dict[str, Any] = {
            "reader": cast(type[Reader], LineReader),
            "evidence": cast(type[Evidence], Lines),
            "clock": lambda: self.now,
            **options,
        }
        self.follower = Follower(rules, self.storage, **settings)
        self.follower.load()

    def round(self, count: int = 1, *, after: float = 1.0) -> None:
        """Do rounds until nothing is left to read, ``count`` times; each begins ``after`` seconds later than the one before."""
        for _ in range(count):
            self.now += after
            while self.follower.round(self.stop):
                self.now += 0.001

    def until(self, holds: Callable[[], bool]) -> None:
        """Do rounds, quickly, until something holds: the kernel tells of changes in its own time."""
        for _ in range(1000):
            self.round(after=0.001)
            if holds():
                return
            time.sleep(0.01)
        raise AssertionError("it never came to hold")

    def close(self) -> None:
        """End as a killed program does: nothing more is committed."""
        self.follower._descriptors.keep(lambda file: False)
        self.follower._watch.close()
        self.storage.close()

    def lines(self, path: Path | str | None = None) -> list[str]:
        """Return the lines of a log, or of all logs by path, as they are committed."""
        with self.follower.committed(1.0) as committed:
            views = [view for view in committed.logs if path is None or view.path == str(path)]
            return [line for view in views for line in cast(Any, view.evidence or Lines()).lines]

    def paths(self) -> list[str]:
        with self.follower.committed(1.0) as committed:
            return [view.path for view in committed.logs]

    def evidence(self, path: Path) -> Lines:
        with self.follower.committed(1.0) as committed:
            return cast(Lines, next(view.evidence for view in committed.logs if view.path == str(path)))

    @property
    def states(self) -> Any:
        with self.follower.committed(1.0) as committed:
            return committed.states


def rule(path: Path | str, **options: Any) -> LogRule:
    return LogRule(glob=Glob(str(path), "host", "test"), **options)


Handed = Callable[..., Hand]


def write(path: Path, *lines: object, mode: str = "a") -> None:
    """Write lines to a file."""
    with path.open(mode) as file:
        file.writelines(f"{line}\n" for line in lines)
