"""Takes over what was read of logs, keeps it with the places up to which it was, and hands it out.

Everything happens under one lock, from the first fact of a slice to the end of the transaction that stores it: whoever asks
meanwhile waits, and sees committed values only.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import structlog

from exporter.errors import StorageError
from exporter.model import Inventory
from exporter.nccl import ledger
from exporter.nccl.evidence import Evidence
from exporter.nccl.files import Identity, Log, LogFile
from exporter.nccl.lines import Step
from exporter.nccl.reader import Facts
from exporter.nccl.totals import Totals
from exporter.nccl.tracker import Tracker
from exporter.storage import Storage

COMMIT_SECONDS = 10.0
"""How long a commit is waited for, and how often it is tried whether the database is a file again."""
IDLE_SECONDS = 30.0
"""How often the time of the last look is written when nothing else is."""

log = structlog.get_logger("nccl")


@dataclass(slots=True)
class Block:
    """One block that was read: of which file, what it gave, when it was written at the latest (seconds since 1970).

    ``size`` is in bytes; ``replayed``: it was there before this run; ``drained``: nothing more was there.
    """

    file: LogFile
    step: Step
    facts: Facts
    written: float
    replayed: bool
    drained: bool
    size: int


class LogView(NamedTuple):
    """One log for whoever asks. ``lag`` is how many bytes were not read as of the last round."""

    path: str
    key: str
    evidence: Evidence | None
    lag: int
    files: frozenset[Identity]


class States(NamedTuple):
    """How many files and folders are in which state, and what happened since the start of the program."""

    active: int = 0
    quiet: int = 0
    unreadable: int = 0
    refused: int = 0
    cut_lines: int = 0
    truncations: int = 0
    faults: int = 0


class Committed(NamedTuple):
    """What is committed. To be used only as long as the lock is held under which it was handed out."""

    logs: tuple[LogView, ...]
    totals: Totals
    states: States


class Keeper:
    """Evidence and places of all logs, in memory and in the database."""

    def __init__(
        self,
        storage: Storage,
        inventory: Callable[[], Inventory],
        hostname: str,
        evidence: type[Evidence],
        clock: Callable[[], float],
    ) -> None:
        self.totals = Totals()
        self.cut_lines = 0
        self.faults = 0
        self._storage, self._inventory, self._hostname, self._clock = storage, inventory, hostname, clock
        self._new_evidence = evidence
        self._lock = threading.Lock()
        self._logs: tuple[LogView, ...] = ()
        self._states = States()
        self._gone_logs: list[str] = []
        self._gone_files: list[Identity] = []
        self._generation = -1
        self._whole = True
        self._saving: Future[None] | None = None
        self._saved_at = float("-inf")

    @contextmanager
    def committed(self, patience: float) -> Iterator[Committed]:
        """Give what is committed, for as long as the context lasts; nothing is taken over meanwhile.

        Raises :class:`TimeoutError` when a commit takes longer than ``patience`` seconds.
        """
        if not self._lock.acquire(timeout=patience):
            raise TimeoutError("a commit takes long")
        try:
            yield Committed(self._logs, self.totals, self._states)
        finally:
            self._lock.release()

    def publish(self, logs: Iterable[Log], states: States) -> None:
        """Hand these logs out from now on."""
        view = tuple(
            LogView(
                known.path,
                known.key,
                known.evidence,
                sum(file.lag for file in known.files),
                frozenset(file.identity for file in known.files),
            )
            for known in logs
            if known.evidence is not None or known.files
        )
        with self._lock:
            self._logs, self._states = view, states

    def forget(self, logs: Iterable[Log]) -> None:
        """Remove logs and their files from the database with the next commit."""
        for known in logs:
            self._gone_logs.append(known.path)
            self._gone_files += [file.identity for file in known.files]

    def commit(self, blocks: Iterable[Block], tracker: Tracker, *, always: bool = False) -> None:
        """Take over what was read, and write it together with the places up to which it was."""
        with self._lock:
            touched: dict[Log, Evidence] = {}
            for block in blocks:
                file, known = block.file, block.file.log
                if block.facts:
                    if known.evidence is None:
                        known.evidence = self._new_evidence()
                    touched[known] = known.evidence
                    self._take(known.evidence, block)
                file.mark, file.drained, file.dirty = block.step.mark, block.drained, True
                known.last = max(known.last, block.written)
                self.cut_lines += block.step.cut
                self.totals.log_bytes += block.size
            inventory = self._inventory()
            for known, evidence in touched.items():
                known.dirty = True
                self.totals.absorb(evidence.drain(), evidence.hosts, self._hostname, inventory)
            self._save(tracker, always=always)

    def _take(self, evidence: Evidence, block: Block) -> None:
        evidence.replaying = block.replayed
        try:
            for record, fact in block.facts:
                stamp = record.timestamp
                evidence.take(record, fact, written_at(stamp, block.written) if stamp else block.written)
        except Exception:  # a fault of ours in one block must not cost the others
            self.faults += 1
            log.exception("a part of a log is passed over", path=block.file.path, offset=block.file.mark.offset)

    def _save(self, tracker: Tracker, *, always: bool) -> None:
        storage, now = self._storage, self._clock()
        self._gone_files += tracker.forgotten
        tracker.forgotten.clear()
        if self._saving is not None and not self._saving.done():
            return
        if not storage.persistent:
            self._whole = True
            if now - self._saved_at >= COMMIT_SECONDS or always:
                self._saved_at = now
                settled(storage.submit(lambda connection: None))
            if not storage.persistent:
                return
        whole, expected = self._whole or storage.generation != self._generation, storage.generation
        logs = [known for known in tracker.logs.values() if known.dirty or whole]
        files = [file for file in tracker.files.values() if file.dirty or whole]
        changed = whole or logs or files or self._gone_files or self._gone_logs
        if not (changed or always) and now - self._saved_at < IDLE_SECONDS:
            return
        for file in files:
            if file.reader is not None:
                file.reader_state = file.reader.state()
        changes = ledger.Changes(
            ledger.About(tracker.looked or 0.0, tuple(sorted(tracker.known_globs)), self.totals.state()),
            whole,
            [ledger.log_row(known) for known in logs],
            [ledger.file_row(file) for file in files],
            self._gone_logs,
            self._gone_files,
        )

        def write(connection: sqlite3.Connection) -> None:
            if storage.generation != expected:
                raise StorageError("another database than before")
            ledger.save(connection, changes)

        self._saved_at = now
        self._saving = storage.submit(write)
        self._whole = not settled(self._saving)
        if self._whole:
            return
        self._generation = expected
        self._gone_logs, self._gone_files = [], []
        for known in logs:
            known.dirty = False
        for file in files:
            file.dirty = False

    def load(self, tracker: Tracker) -> None:
        """Go on where the last run ended, as far as the database tells."""
        try:
            kept = self._storage.submit(ledger.load).result(COMMIT_SECONDS)
        except (StorageError, FutureTimeout, ValueError) as error:
            log.warning("what was read before is not known", error=str(error) or "the database does not answer")
            return
        if kept.about is None:
            return
        logs: dict[bytes, Log] = {}
        try:
            totals = Totals.restore(kept.about.totals)
            for row in kept.logs:
                evidence = self._new_evidence.restore(row.evidence) if row.evidence else None
                path = os.fsdecode(row.path)
                logs[row.path] = Log(path, evidence=evidence, known=True, last=row.last, dirty=False)
            for file_row in kept.files:
                if (known := logs.get(file_row.log)) is not None:
                    known.files.append(ledger.file_of(file_row, known))
            for row in kept.logs:
                logs[row.path].copies = ledger.copies_of(row, logs[row.path].files)
        except ValueError as error:
            log.warning("what was read before cannot be used, logs are read again", error=str(error))
            return
        for known in logs.values():
            known.files.sort(key=lambda file: file.modified)
            known.last = max([known.last, *(file.modified / 1e9 for file in known.files)])
        tracker.looked, tracker.known_globs = kept.about.looked, frozenset(kept.about.globs)
        tracker.logs = {known.path: known for known in logs.values()}
        self.totals, self._whole, self._generation = totals, False, self._storage.generation


def settled(future: Future[None]) -> bool:
    """Wait for a transaction; True when it was made."""
    try:
        future.result(COMMIT_SECONDS)
    except (StorageError, FutureTimeout):
        return False
    return True


def written_at(stamp: str, latest: float) -> float:
    """Return when a line was written: as a container runtime noted it, else at the latest when its file was."""
    if len(stamp) < 20 or stamp[10] != "T":  # NCCL's own has no zone
        return latest
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return latest
    return min(when.timestamp(), latest) if when.tzinfo is not None else latest
