"""What is kept of logs in the state database: how far each file was read, its reader's state, and the evidence of each log.

All of one moment is written in one transaction, so that a restart neither loses nor repeats a line.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from exporter.nccl.files import Copy, Identity, Log, LogFile
from exporter.nccl.lines import Mark

FileKey = tuple[int, int]


class FileRow(NamedTuple):
    """A file: which, of which log, where, how far, and its reader's state. Paths are bytes: a name need not be UTF-8."""

    device: int
    inode: int
    log: bytes
    path: bytes
    mark: bytes
    reader: bytes


class LogRow(NamedTuple):
    """A log: its path, when its last line was written, copies of its files, its evidence (empty: none)."""

    path: bytes
    last: float
    copies: bytes
    evidence: bytes


class About(NamedTuple):
    """The last commit: when it was (seconds since 1970), the globs that were looked for, and the totals of all logs."""

    looked: float
    globs: tuple[str, ...]
    totals: bytes


class CopyKey(NamedTuple):
    """A copy: its inode, that of the file of which it is one (None: one that holds something else now), its time (ns)."""

    inode: int
    source: int | None
    modified: int


class Seen(NamedTuple):
    """A mark; with the size and the time (ns) that the file had, and whether there was nothing left to read."""

    mark: Mark
    size: int
    modified: int
    drained: bool


@dataclass(slots=True)
class Changes:
    """What one commit writes. With ``whole`` everything that was there is removed first."""

    about: About
    whole: bool
    logs: list[LogRow] = field(default_factory=list)
    files: list[FileRow] = field(default_factory=list)
    gone_logs: list[str] = field(default_factory=list)
    gone_files: list[Identity] = field(default_factory=list)


def file_row(file: LogFile) -> FileRow:
    """Return the row of a file."""
    seen = msgspec.msgpack.encode(Seen(file.mark, file.size, file.modified, file.drained))
    reader = file.reader.state() if file.reader is not None else file.reader_state
    return FileRow(*_key(file.identity), os.fsencode(file.log.path), os.fsencode(file.path), seen, reader)


def log_row(log: Log) -> LogRow:
    """Return the row of a log."""
    copies = [
        CopyKey(inode, copy.source.identity.inode if copy.source is not None else None, copy.modified)
        for inode, copy in log.copies.items()
    ]
    evidence = b"" if log.evidence is None else log.evidence.state()
    return LogRow(os.fsencode(log.path), log.last, msgspec.msgpack.encode(copies), evidence)


def save(connection: sqlite3.Connection, changes: Changes) -> None:
    """Write the changes, in the caller's transaction."""
    if changes.whole:
        connection.execute("DELETE FROM nccl_files")
        connection.execute("DELETE FROM nccl_logs")
    connection.executemany("DELETE FROM nccl_logs WHERE path = ?", [(os.fsencode(path),) for path in changes.gone_logs])
    connection.executemany(
        "DELETE FROM nccl_files WHERE device = ? AND inode = ?", [_key(identity) for identity in changes.gone_files]
    )
    connection.executemany("INSERT OR REPLACE INTO nccl_files VALUES (?, ?, ?, ?, ?, ?)", changes.files)
    connection.executemany("INSERT OR REPLACE INTO nccl_logs VALUES (?, ?, ?, ?)", changes.logs)
    connection.execute("INSERT OR REPLACE INTO nccl_about VALUES (1, ?)", (msgspec.msgpack.encode(changes.about),))


class Kept(NamedTuple):
    """What was kept; ``about`` is None when nothing was."""

    about: About | None
    logs: list[LogRow]
    files: list[FileRow]


def load(connection: sqlite3.Connection) -> Kept:
    """Return what is kept. Raises :class:`msgspec.MsgspecError` for what another program wrote."""
    about = connection.execute("SELECT about FROM nccl_about").fetchone()
    logs = connection.execute("SELECT path, last, copies, evidence FROM nccl_logs").fetchall()
    files = connection.execute("SELECT device, inode, log, path, mark, reader FROM nccl_files").fetchall()
    return Kept(
        msgspec.msgpack.decode(about[0], type=About) if about is not None else None,
        [LogRow(*row) for row in logs],
        [FileRow(*row) for row in files],
    )


def file_of(row: FileRow, log: Log) -> LogFile:
    """Return the file of a row. Raises :class:`msgspec.MsgspecError` for what is none."""
    seen = msgspec.msgpack.decode(row.mark, type=Seen)
    return LogFile(
        Identity(row.device % (1 << 64), row.inode % (1 << 64)),
        os.fsdecode(row.path),
        log,
        seen.mark,
        reader_state=row.reader,
        size=seen.size,
        modified=seen.modified,
        drained=seen.drained,
        dirty=False,
    )


def copies_of(row: LogRow, files: Iterable[LogFile]) -> dict[int, Copy]:
    """Return the copies of a log's files. Raises :class:`msgspec.MsgspecError` for what are none."""
    by_inode = {file.identity.inode: file for file in files}
    return {
        key.inode: Copy(by_inode.get(key.source) if key.source is not None else None, key.modified)
        for key in msgspec.msgpack.decode(row.copies, type=list[CopyKey])
    }


def _key(identity: Identity) -> FileKey:
    """Return the numbers as SQLite has them: with a sign."""
    device, inode = ((number + (1 << 63)) % (1 << 64) - (1 << 63) for number in identity)
    return device, inode
