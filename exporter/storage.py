"""State that outlives a restart: one SQLite file below ``--storage.path``, and the one thread that uses it.

Work is handed over as a function of the connection, done in one transaction, in order. Whatever happens to the file costs
persistence and never the program: without a folder, or as long as the file cannot be opened, transactions are made in memory
(:attr:`Storage.persistent` says so); a file that is damaged is moved aside; a file that is locked, or a folder that is full or
read-only, is tried again. After each such change :attr:`Storage.generation` is another number, and who keeps the truth in
memory writes all of it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import structlog

from exporter.errors import StorageError

FILE = "state.sqlite"
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE nccl_logs (path BLOB PRIMARY KEY, last REAL NOT NULL, copies BLOB NOT NULL, evidence BLOB NOT NULL)",
        "CREATE TABLE nccl_files (device INTEGER, inode INTEGER, log BLOB NOT NULL, path BLOB NOT NULL,"
        " mark BLOB NOT NULL, reader BLOB NOT NULL, PRIMARY KEY (device, inode))",
        "CREATE TABLE nccl_about (id INTEGER PRIMARY KEY CHECK (id = 1), about BLOB NOT NULL)",
    ),
)
"""The statements that lead from one ``user_version`` to the next. Released ones are never changed, new ones are added."""
BUSY_SECONDS = 5.0
"""How long another process that holds the file is waited for: a predecessor that is still ending."""
RETRY_SECONDS = 10.0
"""How long after a failure the file is tried again."""
CLOSE_SECONDS = 5.0
WAL_BYTES = 16 << 20
"""What the write-ahead log is cut to after a checkpoint."""

T = TypeVar("T")

log = structlog.get_logger("storage")


class Storage:
    """One database for the whole program. Transactions are made in the order in which they are submitted.

    ``folder`` is made when it is missing; empty means memory only. ``errors`` counts transactions and openings that failed,
    ``persistent`` says that the database is the file, ``kept`` that what was last handed over is in it.
    """

    def __init__(self, folder: str, *, busy: float = BUSY_SECONDS, retry: float = RETRY_SECONDS) -> None:
        self.errors = 0
        self.generation = 0
        self.persistent = False
        self.kept = False
        self._path = Path(folder) / FILE if folder else None
        self._busy = busy
        self._retry = retry
        self._retry_at = 0.0
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._told = ""
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in one transaction and return what it returns.

        Raises :class:`StorageError` when the database cannot do it (nothing of it is kept then), and what ``work`` raises.
        """
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        """Have the work done as :meth:`run` does, for callers that are threads."""
        future: Future[T] = Future()

        def task() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(self._transaction(work))
            except BaseException as error:  # whatever it is, it belongs to the caller
                future.set_exception(error)

        with self._lock:
            self._tasks.put(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="fabric-storage", daemon=True)
                self._thread.start()
        return future

    def close(self) -> None:
        """End the thread and close the file when everything submitted is done, or after CLOSE_SECONDS."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._tasks.put(None)
        if thread is not None:
            thread.join(CLOSE_SECONDS)

    # In the thread

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
        self._drop()

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._failed(error)
            raise StorageError(f"{self._path or 'memory'}: {error}") from error
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        self.kept = self.persistent
        if self.persistent:
            self._told = ""
        return result

    def _open(self) -> sqlite3.Connection:
        """Return the connection: to the file when it can be had, else to memory."""
        now = time.monotonic()
        if self.persistent and self._connection is not None and self._identity != _identity(self._path):
            self._failure("the file was removed or replaced, a new one is made")
            self._drop()
        if self._connection is None or (not self.persistent and self._path is not None and now >= self._retry_at):
            opened = self._open_file() if self._path is not None else None
            if opened is not None or self._connection is None:
                self._drop()
                self.persistent = opened is not None
                self._connection = opened if opened is not None else _prepared(sqlite3.connect(":memory:"))
                self._identity = _identity(self._path)
                self.generation += 1
            self._retry_at = time.monotonic() + self._retry
            if self._path is None:
                log.info("no --storage.path: state is kept in memory and forgotten at the end")
        assert self._connection is not None
        return self._connection

    def _open_file(self) -> sqlite3.Connection | None:
        """Return a connection to the file, a new one in the place of one that is damaged; None when it cannot be had now."""
        assert self._path is not None
        for _ in range(2):
            connection = None
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                patience = self._busy if self.generation == 0 else 0.0
                connection = sqlite3.connect(self._path, timeout=patience, isolation_level=None)
                # Exclusive: two programs with one file would undo each other's work. It also spares the shared memory file.
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
                (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise _damage(verdict)
                return _prepared(connection)
            except (OSError, sqlite3.Error, StorageError) as error:
                if connection is not None:
                    connection.close()
                self._failure(str(error))
                if not _is_damage(error) or not self._move_aside():
                    return None
        return None

    def _failed(self, error: sqlite3.Error) -> None:
        """Take the consequences of a transaction that failed: what a damaged file, or one with I/O errors, held is given up."""
        self._failure(str(error))
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        if self.persistent and _is_damage(error):
            self._drop()
            self._move_aside()
        elif self.persistent and _code(error) in (
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_READONLY,
        ):
            self._drop()

    def _failure(self, reason: str) -> None:
        """Count a failure, and tell it unless it is the one that was told last."""
        self.errors += 1
        self.kept = False
        if reason != self._told:
            self._told = reason
            log.error("storage failed, going on in memory", path=str(self._path), error=reason)

    def _move_aside(self) -> bool:
        """Rename the file and its write-ahead log, so that a new one can be made and somebody can look at the old."""
        assert self._path is not None
        aside = f"{self._path}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        try:
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{self._path}{suffix}", f"{aside}{suffix}")
            os.rename(self._path, aside)
        except OSError as error:
            self._failure(f"damaged, and cannot be moved aside: {error.strerror}")
            return False
        log.warning("damaged storage was moved aside", path=aside)
        return True

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self.persistent = False
        self._retry_at = 0.0
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Bring the schema up to date. Raises :class:`StorageError` for the file of a newer release, which is left alone."""
    connection.isolation_level = None
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StorageError(f"made by a newer release (version {version}, expected at most {len(MIGRATIONS)})")
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    return connection


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code (https://www.sqlite.org/rescode.html), 0 where there is none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _damage(verdict: str) -> sqlite3.DatabaseError:
    """Return what quick_check found as the error that SQLite raises when it stumbles over it."""
    error = sqlite3.DatabaseError(verdict)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _is_damage(error: BaseException) -> bool:
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _identity(path: Path | None) -> tuple[int, int] | None:
    try:
        status = os.stat(path) if path is not None else None
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status is not None else None
