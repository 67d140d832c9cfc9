"""A log that is written fast and rotated in every way, followed by a program that is killed again and again."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exporter.nccl import ledger
from exporter.storage import FILE
from tests.nccl_follow.torture import Ranges, verdict

MODULE = (sys.executable, "-m", "tests.nccl_follow.torture")


def kept(state: Path) -> Ranges:
    """Return what is in the state database."""
    with sqlite3.connect(state / FILE) as connection:
        found = ledger.load(connection)
    connection.close()
    evidence = [Ranges.restore(row.evidence) for row in found.logs if row.evidence]
    return evidence[0] if evidence else Ranges()


def torture(folder: Path, *, rate: float, rotations: int, seconds: float, kills: int, seed: int) -> dict[str, object]:
    logs, state = folder / "logs", folder / "state"
    logs.mkdir()
    choose = random.Random(seed)
    follower = subprocess.Popen([*MODULE, "follow", logs, state])
    while not (state / FILE).exists():
        time.sleep(0.1)
    time.sleep(1)  # it looks at the folder for the first time: what is there before that is history
    writer = subprocess.Popen([*MODULE, "write", logs, str(rate), str(rotations), str(seconds), str(seed)])
    try:
        for _ in range(kills):
            time.sleep(seconds / (kills + 1) * choose.uniform(0.5, 1.2))
            follower.send_signal(signal.SIGKILL)
            follower.wait()
            time.sleep(choose.choice([0.0, 0.2, 1.0]))
            follower = subprocess.Popen([*MODULE, "follow", logs, state])
        assert writer.wait(600) == 0
        written = int((logs / "generations").read_text().split()[-1].rstrip("]")) + 1
        for _ in range(60):
            time.sleep(5)
            follower.send_signal(signal.SIGKILL)  # the database cannot be read while it runs
            follower.wait()
            seen = kept(state)
            if seen.ranges and seen.ranges[-1][1] == written - 1:
                break
            follower = subprocess.Popen([*MODULE, "follow", logs, state])
        follower = subprocess.Popen([*MODULE, "follow", logs, state])
        time.sleep(5)  # whatever it would count again, it would now
    finally:
        for process in (writer, follower):
            process.kill()
            process.wait()
    return verdict(logs, kept(state))


@pytest.mark.long
def test_every_line_counts_once(tmp_path: Path) -> None:
    result = torture(tmp_path, rate=4e6, rotations=80, seconds=8, kills=4, seed=1)
    print(result)
    assert (result["again"], result["lost"]) == (0, [])


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_thousand_rotations_and_twenty_kills(tmp_path: Path) -> None:
    result = torture(tmp_path, rate=20e6, rotations=1000, seconds=120, kills=20, seed=2)
    print(result)
    assert (result["again"], result["lost"]) == (0, [])
