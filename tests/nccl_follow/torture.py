"""Torture for following: a program that writes and rotates a log, and one that follows it and can be killed at any moment.

``python -m tests.nccl_follow.torture write FOLDER RATE ROTATIONS SECONDS SEED`` writes numbered lines to ``FOLDER/x.log`` at RATE
bytes a second and notes in ``FOLDER/generations`` which lines each generation of the log held and how it ended.
``python -m tests.nccl_follow.torture follow FOLDER STATE`` follows ``FOLDER/*.log`` and keeps in STATE which lines it has read.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import Any, cast

import msgspec

from exporter.nccl.evidence import Evidence
from exporter.nccl.facts import Fact, Noise, Record
from exporter.nccl.follow import Follower
from exporter.nccl.reader import Facts, Reader
from exporter.nccl.state import News
from exporter.storage import Storage
from tests.nccl_follow.counting import rule

LINE = 128
DIGITS = 12
KINDS = ("rename", "copytruncate", "truncate", "delete")
LOSING = ("truncate", "delete")
"""Kinds after which the kernel keeps nothing of what was not read before."""


class NumberReader:
    """Makes one fact of the numbers of a block's lines."""

    def feed(self, block: bytes) -> Facts:
        lines = block.split(b"\n")[:-1]
        if bad := [line for line in lines if len(line) != LINE - 1]:
            raise AssertionError(f"a line in parts: {bad[0]!r}")
        return [(Record("", ",".join(line[:DIGITS].decode() for line in lines)), Noise(""))]

    def state(self) -> bytes:
        return b""


class Ranges:
    """Which numbers were seen: ranges [first, last], and how many were seen again."""

    def __init__(self, ranges: list[list[int]] | None = None, again: int = 0) -> None:
        self.ranges, self.again = ranges or [], again
        self.hosts: dict[str, int] = {}
        self.replaying = False

    def take(self, record: Record, fact: Fact, now: float) -> None:
        for number in map(int, record.message.split(",")):
            self.add(number)

    def add(self, number: int) -> None:
        at = bisect_right(self.ranges, [number, 1 << 62]) - 1
        if at >= 0 and number <= self.ranges[at][1]:
            self.again += 1
        elif at >= 0 and number == self.ranges[at][1] + 1:
            self.ranges[at][1] = number
            if at + 1 < len(self.ranges) and self.ranges[at + 1][0] == number + 1:
                self.ranges[at][1] = self.ranges.pop(at + 1)[1]
        elif at + 1 < len(self.ranges) and self.ranges[at + 1][0] == number + 1:
            self.ranges[at + 1][0] = number
        else:
            self.ranges.insert(at + 1, [number, number])

    def drain(self) -> News:
        return News()

    def state(self) -> bytes:
        return msgspec.msgpack.encode((self.ranges, self.again))

    @classmethod
    def restore(cls, state: bytes) -> Ranges:
        return cls(*msgspec.msgpack.decode(state, type=tuple[list[list[int]], int]))


def write(folder: Path, rate: float, rotations: int, seconds: float, seed: int) -> None:
    path, choose = folder / "x.log", random.Random(seed)
    file = path.open("ab", buffering=0)
    number = first = 0
    began = time.monotonic()
    with (folder / "generations").open("w") as notes:
        for rotation in range(1, rotations + 1):
            until = began + seconds * rotation / rotations
            while (now := time.monotonic()) < until:
                behind = int((now - began) * rate / LINE) - number
                if behind <= 0:
                    time.sleep(0.001)
                    continue
                count = min(behind, 512)
                file.write(b"".join(b"%012d%s\n" % (n, b"." * (LINE - 13)) for n in range(number, number + count)))
                number += count
            kind = choose.choice(KINDS) if rotation < rotations else "end"
            if kind == "rename":
                path.rename(folder / f"x.log.{rotation}")
                file.write(b"%012d%s\n" % (number, b"." * (LINE - 13)))  # it has not noticed yet
                number += 1
            elif kind == "copytruncate":
                shutil.copy(path, folder / f"x.log.{rotation}")
                os.truncate(path, 0)
            elif kind == "delete":
                path.unlink()
            print(json.dumps([kind, first, number - 1]), file=notes, flush=True)
            first = number
            if kind in ("rename", "delete", "truncate"):
                file.close()
                file = path.open("wb", buffering=0)


def follow(folder: Path, state: Path) -> None:
    Follower(
        [rule(folder / "*.log")],
        Storage(str(state)),
        reader=cast(type[Reader], NumberReader),
        evidence=cast(type[Evidence], Ranges),
    ).run(threading.Event())


def verdict(folder: Path, seen: Ranges) -> dict[str, Any]:
    """Return what was counted twice, what was lost although it was kept, and how much the kernel did not keep."""
    lost, unkept = [], 0
    for line in (folder / "generations").read_text().splitlines():
        kind, first, last = json.loads(line)
        missing = [n for n in range(first, last + 1) if not _has(seen, n)] if not _whole(seen, first, last) else []
        if kind in LOSING and missing == list(range(last + 1 - len(missing), last + 1)):
            unkept += len(missing)
        elif missing:
            lost.append((kind, first, last, missing[:3], len(missing)))
    return {"again": seen.again, "lost": lost, "unkept": unkept, "lines": last + 1}


def _whole(seen: Ranges, first: int, last: int) -> bool:
    at = bisect_right(seen.ranges, [first, 1 << 62]) - 1
    return first > last or (at >= 0 and seen.ranges[at][1] >= last)


def _has(seen: Ranges, number: int) -> bool:
    at = bisect_right(seen.ranges, [number, 1 << 62]) - 1
    return at >= 0 and number <= seen.ranges[at][1]


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "write":
        write(Path(rest[0]), float(rest[1]), int(rest[2]), float(rest[3]), int(rest[4]))
    else:
        follow(Path(rest[0]), Path(rest[1]))
