r"""Sysfs as text: one line per file, link, folder or error, and the tree that such lines describe.

The canonical form, sorted by path, relative to the root of sysfs or procfs::

    class/infiniband/mlx5_0/ports/1/state: 4: ACTIVE
    class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/net/eth0
    class/net/eth0/speed ! EINVAL
    class/iommu/

One trailing newline of a file is left out; other newlines are written ``\n``, a backslash ``\\``, NUL ``\0``, any other byte
that is not printable text ``\xHH``. What ``grep -r . /sys/class/infiniband/*/`` prints is read as well: paths that begin
with ``/sys/`` or ``/proc/``, no blank after the colon, one output line per line of the file.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

MAXIMUM_LINKS = 40
"""Symbolic links followed in one path before the kernel answers ELOOP (MAXSYMLINKS, include/linux/namei.h)."""

PROBLEMS = 10
"""Lines of one file that are named as unusable; the rest is counted, since a file that is no capture has many."""


class Link(NamedTuple):
    """A symbolic link."""

    target: str


class Failure(NamedTuple):
    """A file whose reading gave an error."""

    errno: int


class Entry(NamedTuple):
    """One path with what is there: the bytes of a file, a link, an error, or None for a folder."""

    path: str
    value: bytes | Link | Failure | None


Folder = dict[str, "Node"]
Node = bytes | Link | Failure | Folder


_ERRNO_NAMES = {
    **errno.errorcode,
    errno.EOPNOTSUPP: "EOPNOTSUPP",
}  # Python says ENOTSUP, the kernel and its readers do not


def escape(value: bytes) -> str:
    r"""Return the bytes as one line of printable text (see the head of this module).

    >>> escape(b"one\ntwo\\\x00\xff")
    'one\\ntwo\\\\\\0\\xff'
    """
    return "".join(map(_escape_character, value.decode("utf-8", "surrogateescape")))


def _escape_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character == "\n":
        return "\\n"
    if character == "\0":
        return "\\0"
    if character == "\t" or character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([n0\\]))")
_PLAIN = {b"n": b"\n", b"0": b"\0", b"\\": b"\\"}


def unescape(text: str) -> bytes:
    """Return the bytes that :func:`escape` made the text of. A backslash that begins no escape stays as it is."""

    def replace(match: re.Match[bytes]) -> bytes:
        return bytes.fromhex(match[1].decode()) if match[1] else _PLAIN[match[2]]

    return _ESCAPE.sub(replace, text.encode("utf-8", "surrogateescape"))


def format_entry(entry: Entry) -> str:
    """Return the entry's line in canonical form."""
    match entry.value:
        case None:
            return f"{entry.path}/"
        case Link(target):
            return f"{entry.path} -> {target}"
        case Failure(number):
            return f"{entry.path} ! {_ERRNO_NAMES.get(number, 'EIO')}"
        case bytes() as value:
            return f"{entry.path}: {escape(value)}"


# A colon belongs to a path only in the names of these: PCI hosts, functions and their port services, USB and MDIO devices.
_COMPONENT = (
    r"(?:pci[0-9a-f]{4,}:[0-9a-f]{2}"
    r"|[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?::pcie[0-9a-f]+)?"
    r"|[0-9]+-[0-9.]+:[0-9]+\.[0-9]+"
    r"|[A-Z]{3,4}[0-9A-F]{4}:[0-9a-f]{2}"
    r"|[^/:]+)"
)
_GREP = re.compile(rf"/(?:sys|proc)/({_COMPONENT}(?:/{_COMPONENT})*):(.*)")
_GREP_ERROR = re.compile(r"grep: /(?:sys|proc)/(.+?)/?: (.+)")
_GREP_NOTHING = re.compile(
    r"(?:Binary file .+ matches|grep: .+: binary file matches|grep: /.*\*.*: No such file or directory)"
)
"""Lines of grep that tell of no file: a binary one, and a pattern of the shell that no path matched."""
_FAILURE = re.compile(r"(.+) ! (E[A-Z0-9]+)")
_ERRNO_BY_MESSAGE = {os.strerror(number): number for number in errno.errorcode}


def parse_line(line: str) -> tuple[Entry, bool] | None:
    """Return the entry of a line and whether it is one of grep's (several may be lines of one file).

    None for an empty line and for what grep says about a binary file or a pattern without a match. Raises ValueError with
    what was expected.
    """
    if not line.strip() or _GREP_NOTHING.fullmatch(line):
        return None
    if match := _GREP.fullmatch(line):
        return Entry(match[1], match[2].encode("utf-8", "surrogateescape")), True
    if (match := _GREP_ERROR.fullmatch(line)) and match[2] in _ERRNO_BY_MESSAGE:
        return Entry(match[1], Failure(_ERRNO_BY_MESSAGE[match[2]])), True
    return _parse_canonical(line), False


def _parse_canonical(line: str) -> Entry:
    value_at, link_at = line.find(": "), line.find(" -> ")
    if value_at > 0 and not 0 <= link_at < value_at:
        return Entry(_path(line[:value_at]), unescape(line[value_at + 2 :]))
    if link_at > 0:
        return Entry(_path(line[:link_at]), Link(line[link_at + 4 :]))
    if (match := _FAILURE.fullmatch(line)) and isinstance(number := getattr(errno, match[2], None), int):
        return Entry(_path(match[1]), Failure(number))
    if line.endswith(":"):
        return Entry(_path(line[:-1]), b"")
    if line.endswith("/"):
        return Entry(_path(line[:-1]), None)
    raise ValueError("expected 'path: value', 'path -> target', 'path ! ERRNO' or 'path/'")


def _path(text: str) -> str:
    if text.startswith("/") or any(part in ("", ".", "..") for part in text.split("/")):
        raise ValueError(f"expected a path relative to the root of sysfs, found {text!r}")
    return text


class Tree:
    """Files, links and folders, looked up as the kernel looks them up. Paths are relative to the root."""

    def __init__(self) -> None:
        self._root: Folder = {}

    @classmethod
    def parse(cls, text: str, problems: list[str], name: str) -> Tree:
        """Return the tree of a text; lines that cannot be used are named in ``problems`` (``name`` is the file's)."""
        tree, unusable = cls(), 0
        grep_files: set[str] = set()
        for number, line in enumerate(text.split("\n"), 1):
            try:
                parsed = parse_line(line.removesuffix("\r"))
                if parsed is None:
                    continue
                entry, is_grep = parsed
                if is_grep and entry.path in grep_files and isinstance(entry.value, bytes):
                    entry = Entry(entry.path, tree.read_bytes(entry.path) + b"\n" + entry.value)
                elif is_grep:
                    grep_files.add(entry.path)
                tree.add(entry)
            except (ValueError, OSError) as error:
                unusable += 1
                if unusable <= PROBLEMS:
                    problems.append(f"{name}:{number}: {error}")
        if unusable > PROBLEMS:
            problems.append(f"{name}: {unusable - PROBLEMS} more lines that cannot be used")
        return tree

    def __bool__(self) -> bool:
        return bool(self._root)

    def add(self, entry: Entry) -> None:
        """Put the entry in its place. Raises ValueError where its path leads through a file or a link."""
        *folders, last = entry.path.split("/")
        folder = self._root
        for part in folders:
            child = folder.setdefault(part, {})
            if not isinstance(child, dict):
                raise ValueError(f"{entry.path}: {part!r} is not a folder")  # noqa: TRY004  (a wrong text, not a wrong type)
            folder = child
        if entry.value is None:
            folder.setdefault(last, {})
        elif isinstance(folder.get(last), dict):
            raise ValueError(f"{entry.path}: is a folder already")
        else:
            folder[last] = entry.value

    def entries(self) -> Iterator[Entry]:
        """Yield everything in the tree, sorted by path."""
        yield from sorted(self._walk("", self._root))

    def _walk(self, prefix: str, folder: Folder) -> Iterator[Entry]:
        for name, node in folder.items():
            path = f"{prefix}{name}"
            if not isinstance(node, dict):
                yield Entry(path, node)
            elif node:
                yield from self._walk(f"{path}/", node)
            else:
                yield Entry(path, None)

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file. Raises OSError with the kernel's errno, or the one that the capture holds."""
        node = self._lookup(path)
        match node:
            case bytes():
                return node
            case Failure(number):
                raise _error(number, path)
            case None:
                raise _error(errno.ENOENT, path)
            case _:
                raise _error(errno.EISDIR, path)

    def list(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder."""
        node = self._lookup(path)
        if node is None:
            raise _error(errno.ENOENT, path)
        if isinstance(node, Failure):
            raise _error(node.errno, path)
        if not isinstance(node, dict):
            raise _error(errno.ENOTDIR, path)
        return tuple(sorted(node))

    def exists(self, path: str) -> bool:
        """True when the path, links followed, is there: also when it is a link to what the capture leaves out."""
        try:
            self._follow(path)
        except OSError:
            return False
        return True

    def resolve(self, path: str) -> str:
        """Return the path with every link followed.

        No link in sysfs dangles, but what one leads to may be left out of a capture: its path is still the answer.
        """
        return self._follow(path)[0]

    def _lookup(self, path: str) -> bytes | Failure | Folder | None:
        return self._follow(path)[1]

    def _follow(self, path: str) -> tuple[str, bytes | Failure | Folder | None]:
        pending = [
            (part, False) for part in reversed(path.split("/"))
        ]  # a part, and whether it comes from a link's target
        trail: list[tuple[str, bytes | Failure | Folder | None]] = []
        links = 0
        while pending:
            part, from_link = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                del trail[-1:]
                continue
            parent = trail[-1][1] if trail else self._root
            if isinstance(parent, bytes | Failure):
                raise _error(errno.ENOTDIR, path)
            node = parent.get(part) if parent is not None else None
            if node is None and not from_link:
                raise _error(errno.ENOENT, path)
            if not isinstance(node, Link):
                trail.append((part, node))
                continue
            links += 1
            if links > MAXIMUM_LINKS:
                raise _error(errno.ELOOP, path)
            if node.target.startswith("/"):
                trail.clear()
            pending.extend((step, True) for step in reversed(node.target.removeprefix("/sys/").split("/")))
        return "/".join(name for name, _ in trail), trail[-1][1] if trail else self._root


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
