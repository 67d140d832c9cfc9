"""Which files are logs right now, and what became of those that were: found, renamed, replaced, copied, gone.

A file is known by device and inode, a log by the path that a rule names. A log's file that is renamed stays the log's until it
is gone; a new file at the path goes on with the same log. Beside a log lie its older generations (``NAME.1``, ``NAME-2026``):
one that was never seen is read too if it was written since its folder was last looked at. A copy of what was read, as
``copytruncate`` makes it, is known by its bytes: only what was not read before the truncation is read from it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable

from exporter.nccl.file_systems import file_system
from exporter.nccl.files import FLAGS, Copy, Identity, Log, LogFile, begins_as, end_of, holds, is_start_of
from exporter.nccl.folders import Folder, Folders, listing_of
from exporter.nccl.globs import COMPRESSED, LogRule
from exporter.nccl.lines import START, Mark

MOST_FILES = 16384
MOST_ORPHANS = 8
ABSENT = 2
"""How often in a row a folder is listed without a file before it counts as gone: a listing during a rename may miss it."""
SLACK_SECONDS = 2.0
"""How far the clock of a file system may be behind ours."""


class Tracker:
    """All logs of some rules. Calls block as long as the file system does; for one thread.

    ``now`` (monotonic) and ``wall`` (seconds since 1970) are the time of the round; ``looked`` is when the last one was, of this
    run or the one before, ``known_globs`` what was looked for then. ``fresh`` are files that were found, ``gone`` those that
    have lost their name, ``forgotten`` those that were dropped; whoever reads them takes them out.
    """

    def __init__(
        self,
        rules: Iterable[LogRule],
        *,
        kind_of: Callable[[str], int] = file_system,
        most_files: int = MOST_FILES,
        network_entries: int | None = None,
    ) -> None:
        self.rules = tuple(rules)
        self.folders = Folders(self.rules, kind_of=kind_of, network_entries=network_entries)
        self.most_files = most_files
        self.logs: dict[str, Log] = {}
        self.files: dict[Identity, LogFile] = {}
        self.fresh: list[LogFile] = []
        self.gone: list[LogFile] = []
        self.forgotten: list[Identity] = []
        self.known_globs: frozenset[str] = frozenset()
        self.looked: float | None = None
        self.truncations = 0
        self.now = 0.0
        self.wall = 0.0

    def restore(self, logs: Iterable[Log]) -> list[Log]:
        """Take over logs that are known already; return those that no rule names any more."""
        dropped = []
        for known in logs:
            rule = next((rule for rule in self.rules if rule.glob.names(known.path)), None)
            if rule is None:
                dropped.append(known)
                continue
            known.key = rule.key_of(known.path)
            self.logs[known.path] = known
            for file in known.files:
                self.files[file.identity] = file
                self._folder(file.folder).files[file.identity.inode] = file
            parent, _, name = known.path.rpartition("/")
            self._folder(parent or "/").logs[name] = known
        return dropped

    def walk(self, *, network: bool) -> None:
        """Find the folders to look at (:meth:`Folders.walk`)."""
        self.folders.walk(network=network, looked=self.looked)

    def _folder(self, path: str) -> Folder:
        return self.folders.get(path, self.looked)

    # What is there

    def look(self, folder: Folder) -> None:
        """Look at a folder: see which logs there are, and which files have come, gone or changed their names."""
        entries = self.folders.entries(folder, self.now)
        if entries is None:
            return
        listing = listing_of(folder, entries)
        if listing != folder.listing or any(file.absent for file in folder.files.values()):
            before, folder.listing = folder.listing, listing
            self._known(folder)
            self._named(folder, entries)
            self._generations(folder, listing, before)
        for name in folder.links:
            self._link(folder, name)
        folder.looked = self.wall

    def _known(self, folder: Folder) -> None:
        """See which known files have another name now, and which have none."""
        names = {inode: name for name, inode in reversed(folder.listing.items())}
        for inode, file in list(folder.files.items()):
            if folder.listing.get(file.name) == inode:
                file.absent = 0
            elif inode in names:
                self._renamed(file, folder, names[inode], inode)
            else:
                file.absent += 1
                if file.absent == ABSENT:
                    self.gone.append(file)
        for name, known in folder.logs.items():
            for inode in known.copies.keys() - names.keys():
                del known.copies[inode]
                known.dirty = True
            current = known.current
            if current is not None and current.folder == folder.path and folder.listing.get(name) is None:
                known.current = None

    def _renamed(self, file: LogFile, folder: Folder, name: str, inode: int) -> None:
        """A known file has another name. One of which nothing was read is known by its inode only, which may be another's now."""
        path = os.path.join(folder.path, name)
        if file.mark.offset:
            file.path, file.absent, file.dirty = path, 0, True
            return
        self.forget(file)
        status = self._status(folder, name, inode)
        if status is not None and name not in folder.logs and not self._is_copy(file.log, folder, path, inode):
            self._add(file.log, folder, path, inode, status, START)

    def _named(self, folder: Folder, entries: Iterable[os.DirEntry[str]]) -> None:
        """See which files have the names of logs."""
        folder.links, folder.too_many = [], 0
        for entry in entries:
            name = entry.name
            known, rule = folder.logs.get(name), folder.rule(name)
            if rule is not None and entry.is_symlink():
                folder.links.append(name)
                continue
            inode = folder.listing.get(name)
            if inode is None:
                continue
            file = folder.files.get(inode)
            if known is None:
                if file is not None:  # an older generation, or another link to the same file
                    continue
                if rule is None or len(self.files) >= self.most_files:
                    folder.too_many += rule is not None
                    continue
                known = folder.logs[name] = self._log(os.path.join(folder.path, name), rule)
            if known.current is None or known.current is not file:
                self._take_over(known, folder, name, inode, rule)

    def _log(self, path: str, rule: LogRule) -> Log:
        known = self.logs.get(path)
        if known is None:
            known = self.logs[path] = Log(path, rule.key_of(path))
        return known

    def _take_over(self, known: Log, folder: Folder, name: str, inode: int, rule: LogRule | None) -> None:
        """Make the file of that name the current one of a log."""
        file = folder.files.get(inode)
        if file is None:
            path = os.path.join(folder.path, name)
            status = self._status(folder, name, inode)
            if status is None:
                return
            file = self.files.get(identity_of(status))
            if file is not None:
                if status.st_nlink == 1:  # it came from another folder
                    self._move(file, folder, path, inode)
            else:
                base = folder.base(name, known)
                if base is not None and self._is_copy(base, folder, path, inode):
                    return
                mark = START if known.known or rule is None else self._start(rule, folder, path, status)
                file = self._add(known, folder, path, inode, status, mark)
        if file is not None:
            known.current, known.known = file, True

    def _status(self, folder: Folder, name: str, inode: int) -> os.stat_result | None:
        """Return the status of a file that was listed; None when it is no regular file, or another one by now."""
        try:
            status = os.stat(os.path.join(folder.path, name), follow_symlinks=False)
        except OSError:
            folder.listing.pop(name, None)  # so that the folder is not taken to be as it was
            return None
        if status.st_ino != inode:
            folder.listing.pop(name, None)
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def _add(
        self, known: Log, folder: Folder, path: str, inode: int, status: os.stat_result, mark: Mark
    ) -> LogFile | None:
        if len(self.files) >= self.most_files:
            folder.too_many += 1
            return None
        file = LogFile(identity_of(status), path, known, mark, grew=self.now)
        self.files[file.identity] = folder.files[inode] = file
        known.files.append(file)
        self.fresh.append(file)
        return file

    def _move(self, file: LogFile, folder: Folder, path: str, inode: int) -> None:
        files = self._folder(file.folder).files
        for key in [key for key, one in files.items() if one is file]:
            del files[key]
        file.path, file.absent, file.dirty = path, 0, True
        folder.files[inode] = file

    def _start(self, rule: LogRule, folder: Folder, path: str, status: os.stat_result) -> Mark:
        """Return where the reading of a new log begins: what came since we look is read whole, the rest as its rule says."""
        if rule.start == "age":
            at_end = self.wall - status.st_mtime > rule.old_seconds
        else:
            at_end = rule.start == "end" and (folder.looked is None or rule.glob.text not in self.known_globs)
        if not at_end:
            return START
        try:
            descriptor = os.open(path, FLAGS)
        except OSError:
            return START  # who makes it readable changes it
        try:
            return end_of(descriptor, status.st_size)
        finally:
            os.close(descriptor)

    # Links

    def _link(self, folder: Folder, name: str) -> None:
        """Follow a link to a log, unless somebody else than root, us or the owner of the file made it."""
        path = os.path.join(folder.path, name)
        rule = folder.rule(name)
        try:
            link, status = os.lstat(path), os.stat(path)
            known = self.logs.get(path)
            if known is not None and known.current is not None and known.current.identity == identity_of(status):
                return
            if rule is None or link.st_uid not in (0, status.st_uid, os.geteuid()):
                return
            target = os.path.realpath(path, strict=True)
        except OSError:
            return
        home, target_name = self._folder(os.path.dirname(target)), os.path.basename(target)
        if not home.allowed:
            home.network = home.network or rule.network
            self.look(home)
        inode = home.listing.get(target_name, status.st_ino)
        if not home.allowed or (known is None and inode in home.files):  # the file is a log by itself
            return
        known = self._log(path, rule)
        for other in self.folders.all():
            for base in [base for base, one in other.logs.items() if one is known]:
                del other.logs[base]
        home.logs[target_name] = known
        self._take_over(known, home, target_name, inode, rule)

    # Older generations and copies

    def _generations(self, folder: Folder, listing: dict[str, int], before: dict[str, int]) -> None:
        """Look for generations that came and went since the last look, and for copies of what was truncated."""
        candidates = []
        for name, inode in listing.items():
            if inode in folder.files or name in folder.logs or name.endswith(COMPRESSED):
                continue
            known = folder.base(name)
            if known is None:
                continue
            status, copy = self._status(folder, name, inode), known.copies.get(inode)
            if status is not None and (copy is None or copy.modified != status.st_mtime_ns):
                candidates.append((status.st_size, os.path.join(folder.path, name), inode, status, known))
        # The longest first: of several copies of one content it holds what the others do.
        for _, path, inode, status, known in sorted(candidates, key=lambda one: one[:2], reverse=True):
            if self._is_copy(known, folder, path, inode) or folder.looked is None:
                continue
            was_there = before.get(os.path.basename(path)) == inode
            if status.st_mtime >= folder.looked - (0 if was_there else SLACK_SECONDS):
                self._add(known, folder, path, inode, status, START)

    def _is_copy(self, known: Log, folder: Folder, path: str, inode: int) -> bool:
        """True for a copy of what was, or will be, read. What was truncated away before it was read is read from the copy."""
        try:
            descriptor = os.open(path, FLAGS)
        except OSError:
            return False
        try:
            status = os.fstat(descriptor)
            size = status.st_size
            if status.st_ino != inode:
                return False
            for mark in known.orphans:
                if size > mark.offset and holds(descriptor, size, mark):
                    known.orphans.remove(mark)
                    self._add(known, folder, path, inode, status, mark)
                    return True
            source = next((file for file in known.files if _is_copy_of(descriptor, size, file)), None)
            marks = (*known.orphans, *(file.mark for file in known.files))
            if source is not None or any(begins_as(descriptor, size, mark) for mark in marks):
                known.copies[inode] = Copy(source, status.st_mtime_ns)
                known.dirty = True
                return True
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False

    # What reading finds

    def rewritten(self, file: LogFile) -> None:
        """A file has other content than what was read. What was truncated away may be in a copy beside it."""
        self.truncations += 1
        folder, known = self._folder(file.folder), file.log
        before, name = dict(folder.listing), file.name
        if file.mark.offset:
            known.orphans = [*known.orphans, file.mark][-MOST_ORPHANS:]
        self._release(file, folder)
        inode = folder.listing.get(name, -1)
        if known.current is file or folder.files.get(inode) is not file:
            file.restart()
        else:  # an older generation that was written over, or another file that got the inode of one that is gone
            self.forget(file)
            before.pop(name, None)
            rule = folder.rule(name)
            if rule is not None and folder.base(name) is not known:
                self._take_over(self._log(file.path, rule), folder, name, inode, rule)
        self._look_for_copies(folder, before)

    def lost(self, file: LogFile) -> None:
        """A file is gone. What it held when it was not read any more may be in a copy, too."""
        folder = self._folder(file.folder)
        if file.mark.offset:
            file.log.orphans = [*file.log.orphans, file.mark][-MOST_ORPHANS:]
        self._release(file, folder)
        self.forget(file)
        self._look_for_copies(folder, dict(folder.listing))

    def _look_for_copies(self, folder: Folder, before: dict[str, int]) -> None:
        self._generations(folder, listing_of(folder, self.folders.entries(folder, self.now) or ()), before)

    def _release(self, file: LogFile, folder: Folder) -> None:
        """See what there is in copies of a file that holds something else now."""
        names = {inode: name for name, inode in folder.listing.items()}
        for inode in [inode for inode, copy in file.log.copies.items() if copy.source is file]:
            del file.log.copies[inode]
            file.log.dirty = True
            status = self._status(folder, names[inode], inode) if inode in names else None
            if status is not None and not file.mark.offset:  # nothing of it was read
                self._add(file.log, folder, os.path.join(folder.path, names[inode]), inode, status, START)

    def forget(self, file: LogFile) -> None:
        """Drop a file."""
        self.files.pop(file.identity, None)
        self.forgotten.append(file.identity)
        files = self._folder(file.folder).files
        for key in [key for key, one in files.items() if one is file]:
            del files[key]
        if file in file.log.files:
            file.log.files.remove(file)
        if file.log.current is file:
            file.log.current = None

    def drop(self, known: Log) -> None:
        """Drop a log that has no files."""
        self.logs.pop(known.path, None)
        for folder in self.folders.all():
            for name in [name for name, one in folder.logs.items() if one is known]:
                del folder.logs[name]


def _is_copy_of(descriptor: int, size: int, file: LogFile) -> bool:
    """True when another file of ``size`` bytes begins with what was read of this one, or this one with all of the other."""
    if holds(descriptor, size, file.mark):
        return True
    if file.descriptor >= 0:  # it may have no name any more
        return is_start_of(descriptor, size, file.descriptor)
    try:
        other = os.open(file.path, FLAGS)
    except OSError:
        return False
    try:
        return identity_of(os.fstat(other)) == file.identity and is_start_of(descriptor, size, other)
    finally:
        os.close(other)


def identity_of(status: os.stat_result) -> Identity:
    """Return what a stat says the file is."""
    return Identity(status.st_dev, status.st_ino)
