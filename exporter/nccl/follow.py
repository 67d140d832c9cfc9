"""Follows logs: looks which there are, reads what is new, has it understood and taken over (design section 8).

One thread does all of it. Folders in which nothing happens are watched, the others are looked at every second.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import structlog

from exporter.model import Inventory
from exporter.nccl.evidence import Evidence
from exporter.nccl.file_systems import file_system
from exporter.nccl.files import Descriptors, LogFile, Rewritten, block_after, past_hole
from exporter.nccl.folders import Folder
from exporter.nccl.globs import LogRule
from exporter.nccl.keep import Block, Committed, Keeper, States
from exporter.nccl.lines import BLOCK, Mark, Step, advance
from exporter.nccl.reader import Facts, Reader
from exporter.nccl.tracker import ABSENT, Tracker, identity_of
from exporter.nccl.watch import Watch
from exporter.storage import Storage

ROUND_SECONDS = 1.0
WALK_SECONDS = 30.0
"""How often folders are looked for when nothing tells of new ones, and watched ones are looked at all the same."""
POLL_SECONDS = 5.0
"""How often quiet folders and files are looked at that nothing watches."""
NETWORK_SECONDS = 30.0
NETWORK_ENTRIES = 4096
"""How often, and how many entries of a folder, are looked at on a network file system."""
QUIET_SECONDS = 60.0
"""How long after it last changed a file counts as active."""
DRAIN_SECONDS = 10.0
"""How long a file without a name is kept open after it last changed: it takes space, and its writer may still write."""
SLICE_BYTES = 2 << 20
"""How much is read between two commits; what it says is held in memory until then."""
MOST_OPEN = 128
MOST_EVIDENCE = 2048
"""Logs whose evidence is kept; that of those longest silent is dropped."""
FORGET_SECONDS = 900.0
"""How long after its last line a log without files is kept."""
log = structlog.get_logger("nccl")


class Follower:
    """Follows the logs of some rules. :meth:`run` is for a thread, everything else for any."""

    def __init__(
        self,
        rules: Iterable[LogRule],
        storage: Storage,
        *,
        inventory: Callable[[], Inventory] = Inventory,
        hostname: str = "",
        give_way: Callable[[], object] = lambda: None,
        reader: type[Reader] = Reader,
        evidence: type[Evidence] = Evidence,
        kind_of: Callable[[str], int] = file_system,
        interval: float = ROUND_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._keeper = Keeper(storage, inventory, hostname, evidence, clock)
        self._give_way, self._new_reader = give_way, reader
        self._interval, self._clock, self._wall = interval, clock, wall
        self._rules: tuple[LogRule, ...] | None = tuple(rules)
        self._kind_of = kind_of
        self._tracker = Tracker((), kind_of=kind_of)
        self._watch = Watch()
        self._descriptors = Descriptors(MOST_OPEN)
        self._ahead: dict[LogFile, Mark] = {}
        self._draining: list[LogFile] = []
        self._checked: dict[Folder, float] = {}
        self._walked = self._walked_network = float("-inf")
        self._first = True
        self._loaded = False

    # For others

    def configure(self, rules: Iterable[LogRule]) -> None:
        """Follow the logs of other rules, from the next round on."""
        self._rules = tuple(rules)

    def committed(self, patience: float) -> AbstractContextManager[Committed]:
        """See :meth:`Keeper.committed`."""
        return self._keeper.committed(patience)

    def run(self, stop: threading.Event) -> None:
        """Follow until ``stop`` is set, a second at most after it."""
        try:
            self.load()
            while not stop.is_set():
                began = self._clock()
                if not self.round(stop):
                    stop.wait(max(began + self._interval - self._clock(), 0.0))
        finally:
            for file in self._ahead:  # read and not taken over
                file.reader = None
            self._ahead.clear()
            self._descriptors.keep(lambda file: False)
            self._watch.close()
        self._keeper.commit([], self._tracker, always=True)

    def load(self) -> None:
        """Go on where the last run ended, once."""
        if not self._loaded:
            self._loaded = True
            self._keeper.load(self._tracker)

    # A round

    def round(self, stop: threading.Event) -> bool:
        """Look at what is due and read for a second at most; True when there is more to read."""
        tracker = self._tracker
        if self._rules is not None:
            tracker = self._change_rules()
        tracker.now, tracker.wall = now, wall = self._clock(), self._wall()
        hints = self._watch.changed()
        if now - self._walked >= (WALK_SECONDS if self._watch.folders else POLL_SECONDS) or hints & {
            *tracker.folders.parents
        }:
            tracker.walk(network=False)
            self._walked = now
        if now - self._walked_network >= NETWORK_SECONDS:
            tracker.walk(network=True)
            self._walked_network = now
        for folder in tracker.folders.all():
            self._look(folder, hinted=folder.path in hints)
        self._draining = [*self._draining, *tracker.gone]
        tracker.gone.clear()
        tracker.fresh.clear()
        due = [file for folder in tracker.folders.all() for file in self._due(folder) if self._check(file)]
        due += [file for file in self._draining if file.descriptor >= 0 and self._check(file)]
        pending = deque(sorted(dict.fromkeys(due), key=lambda file: file.modified))
        self._read(pending, now + self._interval, stop)
        self._let_go()
        self._tidy()
        tracker.looked = wall
        tracker.known_globs = frozenset(rule.glob.text for rule in tracker.rules)
        self._keeper.commit([], tracker)
        self._publish()
        self._first = self._first and bool(pending)
        self._arm()
        return bool(pending)

    def _change_rules(self) -> Tracker:
        rules, self._rules = self._rules or (), None
        old, new = self._tracker, Tracker(rules, kind_of=self._kind_of, network_entries=NETWORK_ENTRIES)
        new.looked, new.known_globs = old.looked, old.known_globs
        dropped = new.restore(old.logs.values())
        self._keeper.forget(dropped)
        self._tracker = new
        self._draining = [file for file in self._draining if file.log.path in new.logs]
        self._checked.clear()
        self._walked = self._walked_network = float("-inf")
        return new

    def _active(self, folder: Folder) -> bool:
        now = self._tracker.now
        return any(now - file.grew < QUIET_SECONDS for file in folder.files.values())

    def _look(self, folder: Folder, *, hinted: bool) -> None:
        """Look at a folder if it is due, and have all its files checked if they are."""
        now = self._tracker.now
        age = now - self._checked.get(folder, float("-inf"))
        if folder.network:
            due = full = age >= NETWORK_SECONDS
        else:
            full = hinted or age >= (WALK_SECONDS if folder.path in self._watch.folders else POLL_SECONDS)
            due = full or self._active(folder)
        if due:
            self._tracker.look(folder)
        if full:
            self._checked[folder] = now

    def _due(self, folder: Folder) -> Iterable[LogFile]:
        now = self._tracker.now
        if self._checked.get(folder) == now:
            return list(folder.files.values())
        if folder.network:
            return ()
        return [file for file in folder.files.values() if now - file.grew < QUIET_SECONDS]

    def _check(self, file: LogFile) -> bool:
        """True when there may be something to read in a file."""
        now = self._tracker.now
        if now < file.retry_at:
            return False
        try:
            status = os.fstat(file.descriptor) if file.descriptor >= 0 else os.stat(file.path, follow_symlinks=False)
        except OSError:
            return False
        identity = identity_of(status)
        if identity != file.identity:
            if identity.inode != file.identity.inode or not self._first:
                return False
            # The same disk has another number since the host was started again.
            self._tracker.forgotten.append(file.identity)
            self._tracker.files.pop(file.identity, None)
            file.identity, file.dirty = identity, True
            self._tracker.files[identity] = file
        if self._first:
            file.replay_until = status.st_size
        return file.saw(status, now)

    # Reading

    def _read(self, pending: deque[LogFile], until: float, stop: threading.Event) -> None:
        """Read files in turn, a block each, and commit after every slice."""
        while pending and not stop.is_set():
            blocks: list[Block] = []
            rewritten: LogFile | None = None
            size = 0
            while pending and size < SLICE_BYTES and rewritten is None and not stop.is_set():
                self._give_way()
                file = pending.popleft()
                try:
                    block = self._block(file)
                except Rewritten:
                    rewritten = file
                    break
                except OSError as error:
                    self._cannot_read(file, error)
                    continue
                blocks.append(block)
                self._ahead[file] = block.step.mark
                size += block.size
                if not block.drained:
                    pending.append(file)
            self._commit(blocks)
            if rewritten is not None:
                self._tracker.rewritten(rewritten)
                if self._tracker.files.get(rewritten.identity) is rewritten:
                    pending.append(rewritten)
                fresh, self._tracker.fresh = self._tracker.fresh, []
                pending.extendleft([file for file in reversed(fresh) if self._check(file)])
            if self._clock() >= until:
                return

    def _block(self, file: LogFile) -> Block:
        """Read one block of a file and have it understood. Raises OSError, and :class:`Rewritten`."""
        mark = self._ahead.get(file, file.mark)
        descriptor = self._descriptors.get(file)
        if os.fstat(descriptor).st_size < file.size:
            raise Rewritten
        data = block_after(descriptor, mark)
        file.error = 0
        written = min(file.modified / 1e9, self._tracker.wall)
        replayed = mark.offset < file.replay_until
        behind = past_hole(descriptor, mark, data)
        if behind is not mark:
            return Block(file, Step(b"", behind, 0), [], written, replayed, drained=False, size=0)
        step = advance(mark, data)
        facts = self._understand(file, step.lines) if step.lines else []
        return Block(file, step, facts, written, replayed, len(data) < BLOCK, step.mark.offset - mark.offset)

    def _understand(self, file: LogFile, lines: bytes) -> Facts:
        try:
            if file.reader is None:
                file.reader = self._reader_of(file)
            return file.reader.feed(lines)  # type: ignore[no-any-return]  # a Reader
        except Exception:  # a fault of ours in one block must not cost the others
            self._keeper.faults += 1
            log.exception("a part of a log is passed over", path=file.path, offset=file.mark.offset)
            file.reader = self._new_reader()
            return []

    def _reader_of(self, file: LogFile) -> Reader:
        if file.reader_state:
            try:
                return self._new_reader.restore(file.reader_state)
            except ValueError:
                log.warning("reading goes on without what was begun", path=file.path)
        return self._new_reader()

    def _cannot_read(self, file: LogFile, error: OSError) -> None:
        if error.errno in (errno.ESTALE, errno.ENOENT):  # it was renamed a moment ago
            return
        if error.errno != file.error:
            log.warning("log cannot be read", path=file.path, error=error.strerror)
        file.error = error.errno or errno.EIO
        file.retry_at = self._tracker.now + QUIET_SECONDS

    def _let_go(self) -> None:
        """Drop files that have no name any more, when they are read and nobody has written to them for a while."""
        now, kept = self._tracker.now, []
        for file in self._draining:
            if file.absent < ABSENT:  # it was only missed in a listing
                continue
            if file.descriptor >= 0 and (not file.drained or now - file.grew < DRAIN_SECONDS):
                kept.append(file)
                continue
            if file.descriptor >= 0:
                self._commit(self._rest(file))
                self._descriptors.close(file)
            self._tracker.lost(file)
            file.log.dirty = True
        self._draining = kept

    def _rest(self, file: LogFile) -> list[Block]:
        """Return what no newline ends at the end of a file."""
        try:
            data = block_after(file.descriptor, file.mark)
        except (OSError, Rewritten):
            return []
        step = advance(file.mark, data, last=True)
        if not step.lines:
            return []
        facts = self._understand(file, step.lines)
        return [Block(file, step, facts, file.modified / 1e9, replayed=False, drained=True, size=len(data))]

    def _tidy(self) -> None:
        """Close files that are quiet, and drop logs and evidence that have been silent for long."""
        tracker = self._tracker
        self._descriptors.keep(lambda file: tracker.files.get(file.identity) is file)
        for file in [file for file in tracker.files.values() if file.reader is not None]:
            if file.drained and not file.absent and tracker.now - file.grew >= QUIET_SECONDS:
                self._descriptors.close(file)
                file.reader_state, file.reader = file.reader.state(), None
        forgotten = [
            known for known in tracker.logs.values() if not known.files and tracker.wall - known.last > FORGET_SECONDS
        ]
        holding = [known for known in tracker.logs.values() if known.evidence is not None]
        excess = sorted(holding, key=lambda known: known.last)[: max(len(holding) - MOST_EVIDENCE, 0)]
        self._keeper.forget(forgotten)
        for known in forgotten:
            tracker.drop(known)
        for known in excess:
            known.evidence, known.dirty = None, True

    def _publish(self) -> None:
        tracker = self._tracker
        files = tracker.files.values()
        unreadable = sum(file.error != 0 for file in files)
        active = sum(tracker.now - file.grew < QUIET_SECONDS and not file.error for file in files)
        too_many = sum(folder.too_many for folder in tracker.folders.all())
        quiet = len(files) - active - unreadable
        keeper = self._keeper
        refused = tracker.folders.refused + too_many
        states = States(active, quiet, unreadable, refused, keeper.cut_lines, tracker.truncations, keeper.faults)
        keeper.publish(tracker.logs.values(), states)

    def _arm(self) -> None:
        """Watch the folders in which nothing happens, and look once more at those that were not watched before."""
        tracker = self._tracker
        wanted = [
            folder.path
            for folder in tracker.folders.all()
            if folder.allowed and not folder.network and not self._active(folder)
        ]
        parents = {*tracker.folders.parents}
        new = self._watch.arm({*wanted, *parents}, tracker.now)
        for folder in tracker.folders.all():
            if folder.path in new:
                self._checked.pop(folder, None)
        if new & parents:
            self._walked = float("-inf")

    def _commit(self, blocks: Iterable[Block]) -> None:
        self._keeper.commit(blocks, self._tracker)
        self._ahead.clear()
