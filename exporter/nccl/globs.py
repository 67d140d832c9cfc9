"""Which files are logs: patterns of absolute paths, and the folders where such files may be.

``*``, ``?`` and ``[...]`` match within one part of a path and no leading dot, ``**`` as a whole part folders of any depth,
``{hostname}`` is the name of this host up to its first dot (as NCCL's ``%h``). Files that were compressed are no logs.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from exporter.errors import ConfigError

HOSTNAME = "{hostname}"
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".lzma", ".zip", ".Z")
DAY_SECONDS = 86400.0

Start = Literal["beginning", "end", "age"]
ListFolder = Callable[[str], list["os.DirEntry[str]"]]
"""Returns what is in a folder, nothing for one that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRule:
    """One entry of ``nccl.logs``: which files, the regular expression for their key, and where reading begins.

    ``start`` is ``age``: a file that was last written more than ``old_seconds`` ago is read from its end, another one from its
    beginning. With ``network`` files on network file systems are read too; the pattern then names this host.
    """

    glob: Glob
    key: re.Pattern[str] | None = None
    start: Start = "age"
    old_seconds: float = DAY_SECONDS
    network: bool = False

    def key_of(self, path: str) -> str:
        """Return the key of a log: the group ``key``, else the first group, else the whole match; empty without one."""
        match = self.key.search(path) if self.key is not None else None
        if match is None:
            return ""
        return (match["key"] if "key" in match.re.groupindex else match[1] if match.re.groups else match[0]) or ""


class Glob:
    """A pattern of absolute paths. Raises :class:`ConfigError` for one that is none; ``where`` begins its message."""

    def __init__(self, text: str, hostname: str, where: str) -> None:
        self.text = text
        self.names_host = HOSTNAME in text
        path = text.replace(HOSTNAME, hostname.partition(".")[0])
        *folders, name = path.split("/")
        if not path.startswith("/") or not name or {".", ".."} & {*folders, name} or "\0" in path:
            raise ConfigError(f"{where}: expected an absolute path or pattern of files, got {text!r}")
        if name == "**" or any("**" in part and part != "**" for part in (*folders, name)):
            raise ConfigError(f"{where}: expected '**' as a whole part of the path and not as the last, got {text!r}")
        self.recursive = "**" in folders
        self._folders = [part for part in folders if part]
        self._name = _matcher(name)

    def matches(self, name: str) -> bool:
        """True when a file of that name, in one of the folders, is a log."""
        return self._name(name) and not name.endswith(COMPRESSED)

    def names(self, path: str) -> bool:
        """True when the path is a log's, whether it is there or not."""
        *folders, name = [part for part in path.split("/") if part]
        return self.matches(name) and _leads(self._folders, folders)

    def folders(self, listed: ListFolder) -> Iterator[tuple[str, bool]]:
        """Yield the folders to look into; with True those where logs may be, with False those where folders may come."""
        yield from _walk("", self._folders, listed)


def _walk(folder: str, parts: list[str], listed: ListFolder) -> Iterator[tuple[str, bool]]:
    while parts and not _is_pattern(parts[0]):
        folder, parts = f"{folder}/{parts[0]}", parts[1:]
    if not parts:
        yield folder or "/", True
        return
    yield folder or "/", False
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk(folder, rest, listed)
        for entry in listed(folder or "/"):
            if _is_folder(entry, follow=False) and not entry.name.startswith("."):
                yield from _walk(f"{folder}/{entry.name}", parts, listed)
        return
    matches = _matcher(part)
    for entry in listed(folder or "/"):
        if matches(entry.name) and _is_folder(entry, follow=True):
            yield from _walk(f"{folder}/{entry.name}", rest, listed)


def _leads(parts: list[str], folders: list[str]) -> bool:
    if not parts:
        return not folders
    if parts[0] == "**":
        deeper = bool(folders) and not folders[0].startswith(".") and _leads(parts, folders[1:])
        return deeper or _leads(parts[1:], folders)
    return bool(folders) and _matcher(parts[0])(folders[0]) and _leads(parts[1:], folders[1:])


def _is_folder(entry: os.DirEntry[str], *, follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False


def _is_pattern(part: str) -> bool:
    return any(character in part for character in "*?[")


def _matcher(part: str) -> Callable[[str], bool]:
    if not _is_pattern(part):
        return part.__eq__
    match = re.compile(fnmatch.translate(part)).match
    if part.startswith("."):
        return lambda name: match(name) is not None
    return lambda name: not name.startswith(".") and match(name) is not None
