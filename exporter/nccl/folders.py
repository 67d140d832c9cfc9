"""The folders in which logs may be, and what is in them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import structlog

from exporter.nccl.file_systems import file_system, gives_other_inodes, is_local, name_of
from exporter.nccl.files import Log, LogFile
from exporter.nccl.globs import LogRule

MOST_FOLDERS = 4096
RETRY_SECONDS = 60.0
"""How long a folder that cannot be read, or whose file system is refused, is left alone."""

log = structlog.get_logger("nccl")


@dataclass(slots=True, eq=False)
class Folder:
    """A folder in which logs may be, or to which links lead.

    ``logs`` are the logs whose current file has that name here, ``files`` the known files that are here, by inode; ``listing``
    is what was there when it was last looked at, names and inodes, which was at ``looked`` (seconds since 1970; None: never).
    ``network``: it may be on a network file system; ``asks``: its listing does not give the inodes that stat does.
    """

    path: str
    rules: list[LogRule] = field(default_factory=list)
    network: bool = False
    asks: bool = False
    logs: dict[str, Log] = field(default_factory=dict)
    files: dict[int, LogFile] = field(default_factory=dict)
    listing: dict[str, int] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    looked: float | None = None
    allowed: bool = False
    refused: str = ""
    retry_at: float = 0.0
    too_many: int = 0

    def rule(self, name: str) -> LogRule | None:
        """Return the first rule that makes a file of that name a log."""
        return next((rule for rule in self.rules if rule.glob.matches(name)), None)

    def base(self, name: str, but: Log | None = None) -> Log | None:
        """Return the log of which a file of that name may be an older generation."""
        for at in range(len(name) - 1, 0, -1):
            if name[at] in ".-" and (found := self.logs.get(name[:at])) is not None and found is not but:
                return found
        return None


class Folders:
    """The folders of some rules, and those to which links lead. Calls block as long as the file system does.

    ``parents`` are folders in which folders of logs may come; ``refused`` is how many folders could not be looked at. At most
    ``network_entries`` entries of a folder are looked at on a network file system.
    """

    def __init__(
        self,
        rules: Iterable[LogRule],
        *,
        kind_of: Callable[[str], int] = file_system,
        network_entries: int | None = None,
    ) -> None:
        self.rules = tuple(rules)
        self.parents: tuple[str, ...] = ()
        self._kind_of = kind_of
        self._network_entries = network_entries
        self._folders: dict[str, Folder] = {}
        self._named: dict[bool, dict[str, list[LogRule]]] = {False: {}, True: {}}
        self._refused_parents: frozenset[str] = frozenset()

    @property
    def refused(self) -> int:
        return len(self._refused_parents) + sum(bool(folder.refused) for folder in self.all())

    def all(self) -> tuple[Folder, ...]:
        """Return all folders that are known."""
        return tuple(self._folders.values())

    def get(self, path: str, looked: float | None = None) -> Folder:
        """Return the folder of that path, a new one if it was not known."""
        folder = self._folders.get(path)
        if folder is None:
            folder = self._folders[path] = Folder(path, looked=looked)
        return folder

    def walk(self, *, network: bool, looked: float | None) -> None:
        """Find the folders that the rules for this host's file systems name, or those that are for network file systems."""
        parents: dict[str, None] = {}
        refused: set[str] = set()
        named: dict[str, list[LogRule]] = {}

        def listed(path: str) -> list[os.DirEntry[str]]:
            try:
                if network or is_local(self._kind_of(path)):
                    return self._scan(path, network=network)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR):
                    return []
            refused.add(path)
            return []

        for rule in self.rules:
            if rule.network != network:
                continue
            for path, logs in rule.glob.folders(listed):
                if not logs:
                    parents[path] = None
                elif path in named or len(named) < MOST_FOLDERS:
                    named.setdefault(path, []).append(rule)
        self._named[network] = named
        if not network:
            for path in refused - self._refused_parents:
                log.warning("logs cannot be looked for", folder=path)
            self.parents = tuple(path for path in parents if path not in refused)
            self._refused_parents = frozenset(refused)
        local, remote = self._named[False], self._named[True]
        for path, folder in list(self._folders.items()):
            if path not in local and path not in remote:
                folder.rules = []
                if not folder.files:
                    del self._folders[path]
        for path in {**local, **remote}:
            folder = self.get(path, looked)
            folder.rules = list(dict.fromkeys(local.get(path, []) + remote.get(path, [])))
            folder.network = all(rule.network for rule in folder.rules)

    def entries(self, folder: Folder, now: float) -> list[os.DirEntry[str]] | None:
        """Return what is in a folder; None when it may not, or cannot, be looked at. Nothing is in one that is not there."""
        if now < folder.retry_at:
            return None
        try:
            kind = self._kind_of(folder.path)
            folder.allowed, folder.asks = folder.network or is_local(kind), gives_other_inodes(kind)
            if folder.allowed:
                entries = self._scan(folder.path, network=folder.network)
                folder.refused = ""
                return entries
            reason = f"{name_of(kind)} may be a network's file system (see network_file_systems)"
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                folder.refused = ""
                return []
            reason = error.strerror or str(error)
        if reason != folder.refused:
            log.warning("logs cannot be read", folder=folder.path, error=reason)
        folder.refused, folder.retry_at = reason, now + RETRY_SECONDS
        return None

    def _scan(self, path: str, *, network: bool) -> list[os.DirEntry[str]]:
        with os.scandir(path) as entries:
            if not network or self._network_entries is None:
                return list(entries)
            return [entry for entry, _ in zip(entries, range(self._network_entries), strict=False)]


def listing_of(folder: Folder, entries: Iterable[os.DirEntry[str]]) -> dict[str, int]:
    """Return the inodes of what is in a folder, by name; of logs and their generations alone where each must be asked for."""
    if not folder.asks:
        return {entry.name: entry.inode() for entry in entries}
    listing = {}
    for entry in entries:
        if folder.rule(entry.name) is not None or folder.base(entry.name) is not None:
            try:
                listing[entry.name] = entry.stat(follow_symlinks=False).st_ino
            except OSError:
                continue
    return listing
