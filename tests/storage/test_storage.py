"""The state database as its users see it: what is committed is there again, and no state of the file ends the program."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exporter.errors import StorageError
from exporter.storage import FILE, MIGRATIONS, Storage

Opened = Callable[..., Storage]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens storages and closes them with the test. Failures are tried again at once."""
    made: list[Storage] = []

    def open_one(folder: Path | str = tmp_path / "state", **options: float) -> Storage:
        made.append(Storage(str(folder), **{"busy": 0.05, "retry": 0.0, **options}))
        return made[-1]

    yield open_one
    for storage in made:
        storage.close()


def put(connection: sqlite3.Connection, name: str, size: int = 1) -> None:
    connection.execute("INSERT OR REPLACE INTO nccl_logs VALUES (?, 0, '', zeroblob(?))", (name, size))


def names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT path FROM nccl_logs ORDER BY path")]


async def test_what_was_committed_is_there_again(tmp_path: Path, opened: Opened) -> None:
    first = opened()
    await first.run(lambda connection: put(connection, "a"))
    assert (first.persistent, first.kept, first.errors) == (True, True, 0)
    first.close()
    assert await opened().run(names) == ["a"]
    assert (tmp_path / "state" / FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


async def test_a_transaction_that_fails_leaves_nothing_behind(opened: Opened) -> None:
    storage = opened()

    def half(connection: sqlite3.Connection) -> None:
        put(connection, "half")
        raise LookupError("no more")

    with pytest.raises(LookupError):
        await storage.run(half)
    with pytest.raises(StorageError, match="no such table: nowhere"):
        await storage.run(lambda connection: connection.execute("SELECT * FROM nowhere"))
    await storage.run(lambda connection: put(connection, "whole"))
    assert await storage.run(names) == ["whole"]


async def test_without_a_folder_it_works_in_memory(opened: Opened) -> None:
    storage = opened("")
    await storage.run(lambda connection: put(connection, "a"))
    assert await storage.run(names) == ["a"]
    assert (storage.persistent, storage.kept, storage.errors) == (False, False, 0)


async def test_a_folder_that_cannot_be_made_is_tried_again(tmp_path: Path, opened: Opened) -> None:
    obstacle = tmp_path / "state"
    obstacle.write_text("a file where the folder should be")
    storage = opened(obstacle / "folder")
    await storage.run(lambda connection: put(connection, "a"))
    assert (storage.persistent, storage.errors) == (False, 1)
    generation = storage.generation
    obstacle.unlink()
    await storage.run(lambda connection: put(connection, "b"))
    assert (storage.persistent, storage.kept) == (True, True)
    assert storage.generation > generation
    assert await storage.run(names) == ["b"], "what was in memory is written again by who keeps it"


@pytest.mark.parametrize("content", [b"no database at all" * 1000, b"SQLite format 3\0" + bytes(5000)])
async def test_a_damaged_file_is_moved_aside(tmp_path: Path, opened: Opened, content: bytes) -> None:
    path = tmp_path / "state" / FILE
    path.parent.mkdir()
    path.write_bytes(content)
    storage = opened()
    await storage.run(lambda connection: put(connection, "a"))
    assert (storage.persistent, storage.kept, storage.errors) == (True, True, 1)
    (aside,) = path.parent.glob(f"{FILE}.damaged-*")
    assert aside.read_bytes() == content


async def test_damage_while_it_runs_costs_the_old_state_only(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "state" / FILE
    storage = opened()

    def fill(connection: sqlite3.Connection) -> None:
        for number in range(1000):
            put(connection, f"{number:04}", 20_000)

    await storage.run(fill)
    storage.close()  # so that all pages are in the file and none in memory
    storage = opened()
    await storage.run(lambda connection: None)
    with path.open("r+b") as file:
        for page in range(2, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)
    generation = storage.generation
    with pytest.raises(StorageError):
        await storage.run(names)
    await storage.run(lambda connection: put(connection, "new"))
    assert await storage.run(names) == ["new"]
    assert storage.generation > generation
    assert storage.persistent
    assert len(list(path.parent.glob(f"{FILE}.damaged-*[!lm]"))) == 1


async def test_a_file_that_is_removed_is_made_again(tmp_path: Path, opened: Opened) -> None:
    storage = opened()
    await storage.run(lambda connection: put(connection, "a"))
    for file in (tmp_path / "state").iterdir():
        file.unlink()
    await storage.run(lambda connection: put(connection, "b"))
    storage.close()
    assert await opened().run(names) == ["b"]


async def test_two_programs_do_not_share_a_file(opened: Opened) -> None:
    first, second = opened(), opened()
    await first.run(lambda connection: put(connection, "first"))
    await second.run(lambda connection: put(connection, "second"))
    assert (first.persistent, second.persistent) == (True, False)
    first.close()
    assert await second.run(names) == ["first"]
    assert second.persistent


async def test_the_file_of_a_newer_release_is_left_alone(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "state" / FILE
    storage = opened()
    await storage.run(lambda connection: put(connection, "a"))
    storage.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    storage = opened()
    await storage.run(lambda connection: put(connection, "b"))
    assert not storage.persistent
    assert path.read_bytes() == before


async def test_a_full_disk_is_counted_and_recovers(tmp_path: Path, opened: Opened) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=True)
    try:
        storage = opened(folder)
        await storage.run(lambda connection: put(connection, "a"))
        ballast = folder / "ballast"
        fill = subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=64k"], check=False, capture_output=True)
        assert b"No space left" in fill.stderr
        with pytest.raises(StorageError, match="full"):
            await storage.run(lambda connection: put(connection, "big", 500_000))
        assert (storage.kept, storage.errors) == (False, 1)
        ballast.unlink()
        await storage.run(lambda connection: put(connection, "b"))
        assert await storage.run(names) == ["a", "b"]
        assert storage.kept
        storage.close()
    finally:
        subprocess.run(["umount", folder], check=True)


async def test_a_folder_that_becomes_read_only_is_tried_again(tmp_path: Path, opened: Opened) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    try:
        storage = opened(folder)
        await storage.run(lambda connection: put(connection, "a"))
        storage.close()
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        storage = opened(folder)
        await storage.run(lambda connection: put(connection, "b"))
        assert (storage.persistent, storage.errors) == (False, 1)
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        assert await storage.run(names) == ["a"]
        assert storage.persistent
        storage.close()
    finally:
        subprocess.run(["umount", folder], check=True)


KILLED = """
import sys
from exporter.storage import Storage
storage = Storage(sys.argv[1])
for number in range(10**9):
    def work(connection):
        for part in range(20):
            connection.execute(
                "INSERT INTO nccl_logs VALUES (?, 0, '', zeroblob(3000))", (f"{number:09}-{part:02}",)
            )
    storage.submit(work).result()
    print(number, flush=True)
"""


async def test_what_was_told_to_be_committed_survives_a_kill(tmp_path: Path, opened: Opened) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path / "state"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = 0
    while told < 100:
        told = int(process.stdout.readline())
    time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read().split()
    process.stdout.close()
    process.wait()
    told = int(rest[-1]) if rest else told
    kept = await opened().run(names)
    assert len(kept) % 20 == 0, "no transaction is there in part"
    assert len(kept) // 20 - 1 in (told, told + 1)
