"""One log and the files it consists of, one after the other: what is known of each, and how its bytes are read."""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exporter.nccl.lines import BLOCK, SAMPLE, START, Mark

FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: opening a FIFO would wait for its writer. O_NOFOLLOW: links were followed before, by the rules for them."""


class Identity(NamedTuple):
    """What a file is, whatever its name."""

    device: int
    inode: int


class Copy(NamedTuple):
    """A file that is a copy of another one: of which, as long as that holds the same, and when it was last written (ns)."""

    source: LogFile | None
    modified: int


class Rewritten(Exception):  # noqa: N818 - an outcome, not an error
    """What lies before the mark is not what was read: the file was truncated, or another file has its inode."""


@dataclass(slots=True, eq=False)
class LogFile:
    """One file of a log. ``path`` is where it is now, no link in it; ``mark`` how far it was read.

    ``size`` and ``modified`` (ns) are as last seen; ``grew`` is when it was last seen to change (monotonic); ``drained`` says
    that nothing more can be read until it changes. What lies before ``replay_until`` was written before this run began.
    ``absent`` counts how often its folder was listed without it; ``error`` is the errno that opening it gave.
    """

    identity: Identity
    path: str
    log: Log
    mark: Mark = START
    reader: Any = None
    reader_state: bytes = b""
    size: int = 0
    modified: int = -1
    grew: float = 0.0
    drained: bool = False
    replay_until: int = 0
    absent: int = 0
    error: int = 0
    retry_at: float = 0.0
    descriptor: int = -1
    dirty: bool = True

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0] or "/"

    @property
    def lag(self) -> int:
        """Bytes that are there and not read."""
        return max(self.size - self.mark.offset, 0)

    def saw(self, status: os.stat_result, now: float) -> bool:
        """Note the file's size and time; True when there may be something to read."""
        if status.st_size != self.size or status.st_mtime_ns != self.modified:
            self.size, self.modified, self.grew = status.st_size, status.st_mtime_ns, now
            self.drained, self.dirty = False, True
        return not self.drained

    def restart(self) -> None:
        """Read from the start again: the file has new content."""
        self.mark, self.reader, self.reader_state, self.size = START, None, b"", 0
        self.drained, self.dirty = False, True


@dataclass(slots=True, eq=False)
class Log:
    """One log: a path that a rule names, and what was read of the files that had or have this name.

    ``files`` are those that are still there or still read, the oldest first; ``current`` is the one that has the name now,
    ``known`` says that there was one. ``orphans`` are marks of content that was truncated away, a copy of which may be found;
    ``copies`` are copies in which there was nothing to read, by inode. ``last`` is when a line was last written (seconds since
    1970).
    """

    path: str
    key: str = ""
    evidence: Any = None
    files: list[LogFile] = field(default_factory=list)
    current: LogFile | None = None
    known: bool = False
    orphans: list[Mark] = field(default_factory=list)
    copies: dict[int, Copy] = field(default_factory=dict)
    last: float = 0.0
    dirty: bool = True


class Descriptors:
    """The open files, few: those longest unused are closed first. A file that has no name any more stays open until let go."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[LogFile, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, file: LogFile) -> int:
        """Return a descriptor of the file. Raises :class:`OSError`; ESTALE when another file has its path now."""
        if file.descriptor >= 0:
            self._open.move_to_end(file)
            return file.descriptor
        descriptor = os.open(file.path, FLAGS)
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) != file.identity or not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), file.path)
        while len(self._open) >= self._most:
            oldest = next((one for one in self._open if not one.absent), None)
            if oldest is None:
                break
            self.close(oldest)
        file.descriptor = descriptor
        self._open[file] = None
        return descriptor

    def close(self, file: LogFile) -> None:
        if file.descriptor >= 0:
            os.close(file.descriptor)
            file.descriptor = -1
            del self._open[file]

    def keep(self, wanted: Callable[[LogFile], bool]) -> None:
        """Close all files but those that are wanted."""
        for file in [file for file in self._open if not wanted(file)]:
            self.close(file)


def block_after(descriptor: int, mark: Mark) -> bytes:
    """Return the bytes after a mark, at most BLOCK. Raises :class:`Rewritten` when those before it are other ones."""
    before = len(mark.tail)
    data = os.pread(descriptor, before + BLOCK, mark.offset - before)
    if not data.startswith(mark.tail):
        raise Rewritten
    return data[before:]


def past_hole(descriptor: int, mark: Mark, data: bytes) -> Mark:
    """Return the mark behind the hole that ``data`` begins with, when the file system can tell, else the same mark.

    A writer that goes on at its old place after its file was truncated leaves a hole; it may be gigabytes long.
    """
    if len(data) < BLOCK or not data.startswith(b"\0") or data.strip(b"\0"):
        return mark
    try:
        offset = os.lseek(descriptor, mark.offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            return mark
        offset = os.fstat(descriptor).st_size
    if offset < mark.offset + SAMPLE:
        return mark
    return Mark(offset, mark.skipping, bytes(SAMPLE), mark.head, mark.begin if mark.head else offset)


def end_of(descriptor: int, size: int) -> Mark:
    """Return the mark at the end of a file: the next line that begins there is the first to be read."""
    tail = os.pread(descriptor, min(size, SAMPLE), max(size - SAMPLE, 0))
    head = os.pread(descriptor, min(size, SAMPLE), 0)
    return Mark(size, not tail.endswith(b"\n") and size > 0, tail, head)


def holds(descriptor: int, size: int, mark: Mark) -> bool:
    """True when the file begins with what was read up to the mark: it is that file, or a copy of it."""
    if not mark.begin < mark.offset <= size:
        return False
    before = len(mark.tail)
    return os.pread(descriptor, before, mark.offset - before) == mark.tail


def begins_as(descriptor: int, size: int, mark: Mark) -> bool:
    """True when a file that is not longer than what was read up to the mark begins like it: a copy of what was read."""
    if not mark.begin < size <= mark.offset:
        return False
    compared = min(size - mark.begin, len(mark.head))
    return os.pread(descriptor, compared, mark.begin) == mark.head[:compared]


def is_start_of(descriptor: int, size: int, other: int) -> bool:
    """True when another file begins with this one's ``size`` bytes: it is a copy, or will be when it is complete."""
    if not 0 < size <= os.fstat(other).st_size:
        return False
    return all(
        os.pread(descriptor, min(SAMPLE, size), at) == os.pread(other, min(SAMPLE, size), at)
        for at in (0, max(size - SAMPLE, 0))
    )
