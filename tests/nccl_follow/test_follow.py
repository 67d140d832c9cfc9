"""What a follower reads, where it begins, and what becomes of it when it ends, or when its files or its state do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from exporter.nccl.follow import MOST_EVIDENCE, MOST_OPEN, POLL_SECONDS, Follower
from exporter.nccl.globs import LogRule
from exporter.nccl.lines import LONGEST_LINE
from exporter.nccl.reader import Facts, Reader
from exporter.storage import FILE, Storage
from tests.nccl_follow.counting import Hand, Handed, LineReader, rule, write

NFS = 0x6969
EXT4 = 0xEF53


@pytest.fixture
def again(tmp_path: Path, handed: Handed) -> Callable[..., Hand]:
    """Ends the follower that ran before, as a kill does, and starts another one with the same state."""
    running: list[Hand] = []

    def start(*rules: LogRule, **options: Any) -> Hand:
        for hand in running:
            hand.close()
        running[:] = [handed(*rules, storage=Storage(str(tmp_path / "state"), retry=0.0), **options)]
        return running[0]

    return start


def test_a_restart_goes_on_where_it_was(tmp_path: Path, again: Callable[..., Hand]) -> None:
    path, logs = tmp_path / "x.log", rule(tmp_path / "*.log")
    path.write_text("1\n2\nhalf")
    again(logs).round()
    with path.open("a") as file:
        file.write("-done\n4\n")
    hand = again(logs)
    assert hand.lines() == []
    hand.round()
    assert hand.lines() == ["1", "2", "half-done", "4"]
    again(logs).round(2)
    again(logs).round()
    hand = again(logs)
    hand.round()
    assert hand.lines() == ["1", "2", "half-done", "4"]


def test_whatever_happens_between_two_runs(tmp_path: Path, again: Callable[..., Hand]) -> None:
    path, logs = tmp_path / "x.log", rule(tmp_path / "*.log")
    write(path, 1)
    again(logs).round()
    write(path, 2)
    path.rename(tmp_path / "x.log.1")
    write(path, 3)
    hand = again(logs)
    hand.round()
    assert hand.lines() == ["1", "2", "3"]
    write(path, 4)
    shutil.copy(path, tmp_path / "x.log.2")
    os.truncate(path, 0)
    write(path, 5)
    hand = again(logs)
    hand.round(2)
    assert sorted(hand.lines()) == ["1", "2", "3", "4", "5"]
    write(path, 6, mode="w")
    write(tmp_path / "y.log", 7)
    hand = again(logs)
    hand.round(2)
    assert sorted(hand.lines()) == ["1", "2", "3", "4", "5", "6", "7"]


def test_another_number_of_the_same_disk(tmp_path: Path, again: Callable[..., Hand]) -> None:
    path, logs = tmp_path / "x.log", rule(tmp_path / "*.log")
    write(path, 1)
    hand = again(logs)
    hand.round()
    hand.storage.submit(lambda connection: connection.execute("UPDATE nccl_files SET device = 7")).result()
    write(path, 2)
    hand = again(logs)
    hand.round(2)
    assert hand.lines() == ["1", "2"]
    hand = again(logs)
    hand.round()
    assert hand.lines() == ["1", "2"]


@pytest.mark.parametrize(
    ("start", "age", "lines"),
    [
        ("beginning", 1e6, ["1", "2", "3"]),
        ("end", 0, ["3"]),
        ("age", 0, ["1", "2", "3"]),
        ("age", 86_000, ["1", "2", "3"]),
        ("age", 90_000, ["3"]),
    ],
)
def test_where_reading_begins(tmp_path: Path, handed: Handed, start: str, age: float, lines: list[str]) -> None:
    path = tmp_path / "x.log"
    path.write_text("1\n2\n")
    os.utime(path, (time.time() - age, time.time() - age))
    hand = handed(rule(tmp_path / "*.log", start=start))
    hand.round()
    write(path, 3)
    hand.round()
    assert hand.lines() == lines


def test_the_end_is_not_in_the_middle_of_a_line(tmp_path: Path, handed: Handed) -> None:
    path = tmp_path / "x.log"
    path.write_text("1\nbegun ")
    hand = handed(rule(tmp_path / "*.log", start="end"))
    hand.round()
    with path.open("a") as file:
        file.write("and ended\n3\n")
    hand.round()
    assert hand.lines() == ["3"]


def test_what_is_new_is_read_whole(tmp_path: Path, again: Callable[..., Hand]) -> None:
    logs = rule(tmp_path / "*.log", start="end")
    write(tmp_path / "old.log", 1)
    hand = again(logs)
    hand.round()
    write(tmp_path / "new.log", 2)
    hand.round()
    assert hand.lines() == ["2"]
    write(tmp_path / "newer.log", 3)
    hand = again(logs)
    hand.round()
    assert hand.lines() == ["2", "3"]


def test_what_was_there_before_is_replayed_and_has_its_own_time(tmp_path: Path, handed: Handed) -> None:
    path = tmp_path / "x.log"
    write(path, "old")
    os.utime(path, (1.7e9, 1.7e9))
    hand = handed(rule(tmp_path / "*.log", start="beginning"))
    hand.round()
    write(path, "new")
    before = time.time() - 1
    hand.round()
    seen = hand.evidence(path)
    assert seen.replayed == [True, False]
    assert seen.times[0] == 1.7e9
    assert seen.times[1] >= before


def test_a_long_line_is_cut_and_counted(tmp_path: Path, handed: Handed) -> None:
    (tmp_path / "x.log").write_bytes(b"x" * (3 * LONGEST_LINE) + b"\nshort\xff\0\n")
    hand = handed(rule(tmp_path / "*.log"))
    hand.round()
    assert [len(line) for line in hand.lines()] == [LONGEST_LINE, len("short\xff\0")]
    assert hand.states.cut_lines == 1


class Picky(LineReader):
    """Fails on some lines, as a reader with a fault does."""

    def feed(self, block: bytes) -> Facts:
        if b"poison" in block:
            raise LookupError("a fault")
        return super().feed(block)


def test_a_fault_of_ours_costs_one_block(tmp_path: Path, handed: Handed) -> None:
    hand = handed(rule(tmp_path / "*.log"), reader=cast(type[Reader], Picky))
    for line in ("1", "poison", "3"):
        write(tmp_path / "x.log", line)
        hand.round()
    assert hand.lines() == ["1", "3"]
    assert hand.states.faults == 1


def test_state_that_is_lost_is_written_again(tmp_path: Path, again: Callable[..., Hand]) -> None:
    path, logs = tmp_path / "x.log", rule(tmp_path / "*.log")
    write(path, 1)
    hand = again(logs)
    hand.round()
    shutil.rmtree(tmp_path / "state")
    write(path, 2)
    hand.round(12)
    hand = again(logs)
    write(path, 3)
    hand.round()
    assert hand.lines() == ["1", "2", "3"]


def test_damaged_state_is_begun_anew(tmp_path: Path, again: Callable[..., Hand]) -> None:
    path, logs = tmp_path / "x.log", rule(tmp_path / "*.log")
    write(path, 1)
    hand = again(logs)
    hand.round()
    hand.close()
    (tmp_path / "state" / FILE).write_bytes(b"damaged" * 1000)
    hand = again(logs)
    hand.round(12)
    assert hand.lines() == ["1"]
    hand = again(logs)
    hand.round()
    assert hand.lines() == ["1"]


def test_a_full_disk_costs_no_line(tmp_path: Path, again: Callable[..., Hand]) -> None:
    path, logs, state = tmp_path / "x.log", rule(tmp_path / "*.log"), tmp_path / "state"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", state], check=True)
    try:
        hand = again(logs)
        hand.round()
        subprocess.run(["dd", "if=/dev/zero", f"of={state / 'ballast'}", "bs=4k"], check=False, capture_output=True)
        for number in range(5):
            write(path, *[f"{number}-{line}" for line in range(1000)])
            hand.round()
        assert len(hand.lines()) == 5000
        assert hand.storage.errors > 0
        (state / "ballast").unlink()
        write(path, "last")
        hand.round(2)
        assert hand.storage.kept
        hand = again(logs)
        hand.round()
        assert len(set(hand.lines())) == len(hand.lines()) == 5001
        hand.close()
    finally:
        subprocess.run(["umount", state], check=True)


def test_a_network_file_system_is_refused(tmp_path: Path, handed: Handed) -> None:
    asked: list[str] = []

    def kind(path: str) -> int:
        asked.append(path)
        return NFS

    write(tmp_path / "x.log", 1)
    hand = handed(rule(tmp_path / "*.log"), rule(tmp_path / "*/y.log"), kind_of=kind)
    hand.round(30)
    assert hand.lines() == []
    assert hand.states.refused == 2, "the folder of logs, and the one where folders of logs may come"
    assert asked.count(str(tmp_path)) < 10


def test_a_real_file_system_that_is_not_known_to_be_local_is_refused(handed: Handed) -> None:
    hand = handed(rule("/proc/self/status"))
    hand.round()
    assert (hand.lines(), hand.states.refused) == ([], 1)


def test_a_network_file_system_is_polled_slowly_where_it_is_allowed(tmp_path: Path, handed: Handed) -> None:
    asked: list[str] = []

    def kind(path: str) -> int:
        asked.append(path)
        return NFS

    write(tmp_path / "host.log", 1)
    hand = handed(rule(tmp_path / "{hostname}.log", network=True), kind_of=kind)
    hand.round()
    assert hand.lines() == ["1"]
    write(tmp_path / "host.log", 2)
    hand.round(29)
    assert (hand.lines(), asked) == (["1"], [str(tmp_path)])
    hand.round(2)
    assert (hand.lines(), asked) == (["1", "2"], [str(tmp_path)] * 2)


def test_a_quiet_folder_is_watched_and_not_looked_at(tmp_path: Path, handed: Handed) -> None:
    asked: list[str] = []

    def kind(path: str) -> int:
        asked.append(path)
        return EXT4

    (tmp_path / "a").mkdir()
    write(tmp_path / "a/x.log", 1)
    hand = handed(rule(tmp_path / "*/*.log"), kind_of=kind)
    hand.round(70)
    asked.clear()
    hand.round(20)
    assert asked.count(str(tmp_path / "a")) <= 1
    before = hand.now
    write(tmp_path / "a/x.log", 2)
    hand.until(lambda: hand.lines() == ["1", "2"])
    (tmp_path / "b").mkdir()
    write(tmp_path / "b/x.log", 3)
    hand.until(lambda: hand.lines() == ["1", "2", "3"])
    assert hand.now - before < POLL_SECONDS, "it was told, it did not poll"


def test_it_follows_without_inotify(tmp_path: Path, handed: Handed) -> None:
    (tmp_path / "a").mkdir()
    write(tmp_path / "a/x.log", 1)
    hand = handed(rule(tmp_path / "*/*.log"))
    instances = Path("/proc/sys/fs/inotify/max_user_instances")
    before = instances.read_text()
    instances.write_text("0")
    try:
        hand.round(70)
        write(tmp_path / "a/x.log", 2)
        (tmp_path / "b").mkdir()
        write(tmp_path / "b/x.log", 3)
        hand.round(6)
        assert hand.lines() == ["1", "2", "3"]
    finally:
        instances.write_text(before)


def test_two_thousand_logs_need_few_descriptors_and_little_memory(tmp_path: Path, handed: Handed) -> None:
    count = MOST_EVIDENCE + 50
    hand = handed(rule(tmp_path / "*.log"))
    hand.round()
    for number in range(count):
        write(tmp_path / f"{number}.log", number)
    most = 0
    for _ in range(4):
        hand.round()
        most = max(most, _open_logs(tmp_path))
    assert sorted(map(int, hand.lines())) == sorted(range(count))[-MOST_EVIDENCE:] or len(hand.lines()) == MOST_EVIDENCE
    assert most <= MOST_OPEN
    hand.round(after=100)
    assert _open_logs(tmp_path) == 0
    assert hand.states[:2] == (0, count)
    write(tmp_path / "7.log", "more")
    hand.round(6)
    assert "more" in hand.lines()


def _open_logs(folder: Path) -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith(str(folder))
        except OSError:  # closed meanwhile
            continue
    return count


def test_other_rules_while_it_runs(tmp_path: Path, again: Callable[..., Hand]) -> None:
    write(tmp_path / "x.log", 1)
    write(tmp_path / "y.out", 2)
    logs, outputs = rule(tmp_path / "*.log"), rule(tmp_path / "*.out", start="beginning")
    hand = again(logs)
    hand.round()
    hand.follower.configure([outputs])
    hand.round()
    assert hand.paths() == [str(tmp_path / "y.out")]
    hand.follower.configure([logs, outputs])
    write(tmp_path / "y.out", 3)
    hand.round()
    assert hand.lines(tmp_path / "y.out") == ["2", "3"]
    hand.follower.configure([])
    hand.round()
    assert hand.paths() == []


def test_a_log_whose_job_is_over_is_forgotten(tmp_path: Path, again: Callable[..., Hand]) -> None:
    path, logs = tmp_path / "x.log", rule(tmp_path / "*.log")
    write(path, 1)
    wall = [time.time()]
    hand = again(logs, wall=lambda: wall[0])
    hand.round()
    path.unlink()
    hand.round(20)
    assert hand.lines() == ["1"], "what it said still holds"
    wall[0] += 1000
    hand.round(2)
    assert hand.paths() == []
    rows = hand.storage.submit(
        lambda connection: [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("nccl_logs", "nccl_files")
        ]
    )
    assert rows.result() == [0, 0]


UNREADABLE = """
import sys
from tests.nccl_follow.counting import Hand, rule
hand = Hand(None, rule(sys.argv[1] + "/*.log"))
hand.round()
print("told", hand.states.unreadable, sorted(hand.lines()), flush=True)
sys.stdin.readline()
hand.round(30)
print("told", hand.states.unreadable, sorted(hand.lines()), flush=True)
hand.round(40)
print("told", hand.states.unreadable, sorted(hand.lines()), flush=True)
"""


def test_a_log_that_cannot_be_read_is_counted_and_tried_again(public_folder: Path) -> None:
    write(public_folder / "secret.log", 1)
    write(public_folder / "open.log", 2)
    (public_folder / "secret.log").chmod(0o600)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
    command = [*nobody, sys.executable, "-c", UNREADABLE, str(public_folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        told = (line.strip() for line in process.stdout if line.startswith("told"))
        assert next(told) == "told 1 ['2']"
        (public_folder / "secret.log").chmod(0o644)
        process.stdin.write("\n")
        process.stdin.flush()
        assert next(told) == "told 1 ['2']", "not at once"
        assert next(told) == "told 0 ['1', '2']"


def test_links_that_others_made_are_not_followed(public_folder: Path, handed: Handed) -> None:
    secret = public_folder / "secret"
    write(secret, "secret")
    logs = public_folder / "logs"
    logs.mkdir()
    (logs / "x.log").symlink_to(secret)
    os.chown(logs / "x.log", 65534, 65534, follow_symlinks=False)
    hand = handed(rule(logs / "*.log"))
    hand.round()
    assert hand.lines() == []
    os.chown(secret, 65534, 65534)
    hand.round()
    assert hand.lines() == ["secret"]


def test_as_a_thread_it_ends_when_told_to(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    write(path, 1)
    storage = Storage(str(tmp_path / "state"))
    follower = Follower([rule(tmp_path / "*.log")], storage, interval=0.01)
    stop = threading.Event()
    thread = threading.Thread(target=follower.run, args=(stop,))
    thread.start()
    while True:
        with follower.committed(5) as committed:
            if committed.totals.log_bytes == 2:
                break
        time.sleep(0.01)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert storage.kept
    storage.close()
