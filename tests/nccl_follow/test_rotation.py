"""What becomes of a log that is renamed, copied, truncated, deleted, linked: every line of it is read once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.nccl_follow.counting import Hand, Handed, rule, write


@pytest.fixture
def hand(tmp_path: Path, handed: Handed) -> Hand:
    hand = handed(rule(tmp_path / "*.log"))
    hand.round()
    return hand


def test_lines_that_are_written_are_read(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    write(path, 1, 2)
    hand.round()
    write(path, 3)
    hand.round()
    assert hand.lines() == ["1", "2", "3"]


def test_a_line_is_read_when_it_is_whole(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    path.write_text("one\ntw")
    hand.round()
    assert hand.lines() == ["one"]
    with path.open("a") as file:
        file.write("o\nthree")
    hand.round(3)
    assert hand.lines() == ["one", "two"]


def test_renamed_and_made_anew(tmp_path: Path, hand: Hand) -> None:
    path, older = tmp_path / "x.log", tmp_path / "x.log.1"
    write(path, 1, 2)
    hand.round()
    write(path, 3)
    path.rename(older)
    write(older, 4)
    write(path, 5)
    hand.round()
    write(older, 6)  # its writer has not noticed yet
    write(path, 7)
    hand.round()
    assert hand.lines() == [str(number) for number in range(1, 8)]


def test_renamed_more_than_once_between_two_looks(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    write(path, 0)
    hand.round()
    for number in range(1, 6):
        for older in range(8, 0, -1):
            source = tmp_path / f"x.log.{older}"
            if source.exists():
                source.rename(tmp_path / f"x.log.{older + 1}")
        path.rename(tmp_path / "x.log.1")
        write(path, number)
        os.utime(tmp_path / "x.log.1", ns=(number, os.stat(path).st_mtime_ns + number))
    hand.round(2)
    assert sorted(hand.lines()) == [str(number) for number in range(6)]
    hand.round(3)
    assert len(hand.lines()) == 6


def test_older_generations_from_before_are_left_alone(tmp_path: Path, handed: Handed) -> None:
    write(tmp_path / "x.log.1", "old")
    write(tmp_path / "x.log", "new")
    hand = handed(rule(tmp_path / "*.log"))
    hand.round(3)
    write(tmp_path / "x.log", "newer")
    hand.round(3)
    assert hand.lines() == ["new", "newer"]


def test_copied_and_truncated(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    write(path, 1, 2)
    hand.round()
    write(path, 3)
    shutil.copy(path, tmp_path / "x.log.1")
    os.truncate(path, 0)
    write(path, 4)
    hand.round(2)
    assert sorted(hand.lines()) == ["1", "2", "3", "4"]
    write(path, 5)
    hand.round(3)
    assert sorted(hand.lines()) == ["1", "2", "3", "4", "5"]


def test_copied_and_truncated_and_grown_beyond(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    write(path, *range(10, 20))
    hand.round()
    write(path, 20)
    shutil.copy(path, tmp_path / "x.log-20261202")
    os.truncate(path, 0)
    write(path, *range(21, 80))
    hand.round(2)
    assert sorted(hand.lines()) == [str(number) for number in range(10, 80)]


def test_a_copy_is_seen_before_the_truncation(tmp_path: Path, hand: Hand) -> None:
    path, copy = tmp_path / "x.log", tmp_path / "x.log.1"
    write(path, *range(1000, 1100))
    hand.round()
    copy.write_bytes(path.read_bytes()[:250])
    hand.round()
    write(path, 1100)
    shutil.copy(path, copy)
    hand.round()
    assert len(hand.lines()) == 101
    write(path, 1101)
    shutil.copy(path, copy)
    os.truncate(path, 0)
    write(path, 1102)
    hand.round(3)
    assert sorted(hand.lines()) == [str(number) for number in range(1000, 1103)]


def test_copied_over_the_last_copy(tmp_path: Path, hand: Hand) -> None:
    path, copy = tmp_path / "x.log", tmp_path / "x.log.1"
    for number in range(100, 200, 10):
        write(path, *range(number, number + 8))
        hand.round()
        write(path, number + 8)
        shutil.copy(path, copy)
        os.truncate(path, 0)
        write(path, number + 9)
        hand.round(number % 3 + 1)
    hand.round(3)
    assert sorted(hand.lines()) == [str(number) for number in range(100, 200)]


def test_a_copy_that_holds_nothing_new_is_left_alone(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    write(path, 1, 2)
    hand.round()
    shutil.copy(path, tmp_path / "x.log.bak")
    hand.round()
    write(path, 3)
    hand.round()
    os.truncate(path, 0)
    write(path, 4)
    hand.round(3)
    assert hand.lines() == ["1", "2", "3", "4"]


def test_truncated_in_place_by_a_process_that_starts_again(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    write(path, 1, 2, 3)
    hand.round()
    write(path, 4, mode="w")
    hand.round()
    write(path, *range(5, 50), mode="w")
    hand.round()
    assert hand.lines() == [str(number) for number in range(1, 50)]
    assert hand.states.truncations == 2


def test_truncated_and_grown_to_the_same_size(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    write(path, "aaa", "bbb")
    hand.round()
    write(path, "ccc", "ddd", mode="w")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    hand.round()
    assert hand.lines() == ["aaa", "bbb", "ccc", "ddd"]


def test_truncated_under_a_writer_that_goes_on_at_its_old_place(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    with path.open("w") as file:
        file.write("x" * 3_000_000 + "\n1\n")
        file.flush()
        hand.round()
        shutil.copy(path, tmp_path / "x.log.1")
        os.truncate(path, 0)
        file.write("2\n")
        file.flush()
        hand.round(2)
        file.write("3\n")
    hand.round(2)
    assert hand.lines()[1:] == ["1", "2", "3"]
    assert path.stat().st_size > 3_000_000
    assert path.stat().st_blocks * 512 < 100_000, "the hole is there"


def test_deleted_while_it_is_written(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    with path.open("w") as file:
        file.write("1\n")
        file.flush()
        hand.round()
        path.unlink()
        file.write("2\n")
        file.flush()
        hand.round(3)
        file.write("3\nwithout an end")
    hand.round(30)
    assert hand.lines() == ["1", "2", "3", "without an end"]
    assert [name for name in os.listdir("/proc/self/fd") if "x.log" in _target(name)] == [], "it is let go"


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


def test_deleted_and_made_anew(tmp_path: Path, hand: Hand) -> None:
    path = tmp_path / "x.log"
    for number in range(20):
        write(path, number)
        hand.round()
        path.unlink()
    hand.round(30)
    assert hand.lines() == [str(number) for number in range(20)]


def test_another_log_gets_the_inode_of_a_deleted_one(tmp_path: Path, hand: Hand) -> None:
    one, two = tmp_path / "one.log", tmp_path / "two.log"
    write(one, 1)
    hand.round()
    hand.round(after=100)  # closed, being quiet
    inode = one.stat().st_ino
    one.unlink()
    write(two, 2, 3)
    if two.stat().st_ino != inode:
        pytest.skip("this file system does not use an inode again at once")
    hand.round(4, after=6)
    assert (hand.lines(one), hand.lines(two)) == (["1"], ["2", "3"])


def test_links(tmp_path: Path, handed: Handed) -> None:
    home = tmp_path / "home"
    home.mkdir()
    write(home / "0.log", 1)
    (tmp_path / "x.log").symlink_to(home / "0.log")
    hand = handed(rule(tmp_path / "*.log"))
    hand.round()
    write(home / "0.log", 2)
    hand.round()
    (home / "0.log").rename(home / "0.log.20261202-120000")
    write(home / "0.log.20261202-120000", 3)
    write(home / "0.log", 4)
    hand.round(2)
    write(home / "1.log", 6)
    write(home / "0.log", 5)
    (tmp_path / "new").symlink_to(home / "1.log")
    (tmp_path / "new").rename(tmp_path / "x.log")
    hand.round(6)
    write(home / "1.log", 7)
    hand.round(2)
    assert sorted(hand.lines()) == [str(number) for number in range(1, 8)]
    assert hand.paths() == [str(tmp_path / "x.log")]


def test_a_link_to_a_log_and_a_hard_link_count_once(tmp_path: Path, handed: Handed) -> None:
    (tmp_path / "other").mkdir()
    write(tmp_path / "a.log", 1)
    (tmp_path / "b.log").symlink_to("a.log")
    os.link(tmp_path / "a.log", tmp_path / "c.log")
    os.link(tmp_path / "a.log", tmp_path / "other/d.log")
    hand = handed(rule(tmp_path / "*.log"), rule(tmp_path / "other/*.log"))
    hand.round(2)
    write(tmp_path / "c.log", 2)
    hand.round(7)
    assert hand.lines() == ["1", "2"]


def test_a_log_moves_to_another_folder_of_logs(tmp_path: Path, handed: Handed) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.mkdir()
    two.mkdir()
    write(one / "x.log", 1)
    hand = handed(rule(tmp_path / "*/x.log"))
    hand.round(2)
    (one / "x.log").rename(two / "x.log")
    write(two / "x.log", 2)
    hand.round(4, after=6)
    write(two / "x.log", 3)
    hand.round(20)
    assert sorted(hand.lines()) == ["1", "2", "3"]


def test_what_is_no_file_and_what_is_compressed_is_never_opened(tmp_path: Path, handed: Handed) -> None:
    os.mkfifo(tmp_path / "fifo.log")
    os.mknod(tmp_path / "device.log", 0o20600, os.makedev(1, 1))
    (tmp_path / "folder.log").mkdir()
    (tmp_path / "dangling.log").symlink_to("nowhere")
    write(tmp_path / "x.log.gz", "compressed")
    (tmp_path / "zip.log").symlink_to("fifo.log")
    write(tmp_path / "x.log", 1)
    hand = handed(rule(tmp_path / "*.log"), rule(tmp_path / "*.gz"))
    hand.round(3, after=6)
    assert hand.lines() == ["1"]
    assert hand.paths() == [str(tmp_path / "x.log")]
