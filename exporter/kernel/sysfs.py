"""Files below /sys and /proc, read the way the kernel makes them: whole, in one small read.

There is no lock and no shared state, so a file that blocks (a firmware command that never ends, a FIFO in a test) holds
the thread that reads it and nobody else. Opens are blocking on purpose: the deadline belongs to the caller.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Container

from exporter.kernel import in_order

PAGE = os.sysconf("SC_PAGESIZE")
"""What one read of a sysfs attribute returns at most (Documentation/filesystems/sysfs.rst: "a buffer of PAGE_SIZE")."""

_MAX_LINKS = 40
"""Symbolic links followed before ELOOP, as in the kernel (include/linux/namei.h: MAXSYMLINKS)."""


class LiveSysfs:
    """The files of a running Linux. ``sysfs_root`` and ``procfs_root`` may be bind mounts such as ``/host/sys``.

    Names come from the kernel and from configuration, so a path with a ``..`` or a NUL in it is refused with EINVAL before
    anything is opened. Text is UTF-8; a byte that is not becomes U+FFFD, so that whatever is read can also be written.
    """

    def __init__(self, sysfs_root: str = "/sys", procfs_root: str = "/proc") -> None:
        self._sysfs = sysfs_root.rstrip("/")
        self._procfs = procfs_root.rstrip("/")

    def read(self, path: str) -> str:
        """Return the file's text without its trailing newline, from one read of at most a page."""
        return _read_once(_below(self._sysfs, path), PAGE).decode("utf-8", "replace").removesuffix("\n")

    def read_bytes(self, path: str, limit: int = 4096) -> bytes:
        """Return at most ``limit`` bytes from one read. PCI ``config`` gives 64 without CAP_SYS_ADMIN."""
        return _read_once(_below(self._sysfs, path), limit)

    def read_folder(self, path: str, skip: Container[str] = (), first: str = "") -> list[tuple[str, str | OSError]]:
        """Return the files of a folder, each with its text or the error of reading it.

        The files are opened relative to the folder: the way to a counter of a port goes through fifteen folders.
        """
        found: list[tuple[str, str | OSError]] = []
        folder = os.open(_below(self._sysfs, path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in in_order(os.listdir(folder), skip, first):
                try:
                    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
                    try:
                        text = os.read(file, PAGE)
                    finally:
                        os.close(file)
                except OSError as error:
                    found.append((name, error))
                else:
                    found.append((name, text.decode("utf-8", "replace").removesuffix("\n")))
        finally:
            os.close(folder)
        return found

    def list(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder."""
        return tuple(sorted(os.listdir(_below(self._sysfs, path))))

    def exists(self, path: str) -> bool:
        """True when the path, symbolic links followed, is there."""
        try:
            os.stat(_below(self._sysfs, path))
        except OSError:
            return False
        return True

    def resolve(self, path: str) -> str:
        """Return the path with every symbolic link followed, relative to the root of sysfs.

        sysfs makes relative links only; copies of it hold absolute ones as well. A target below the root or below
        ``/sys`` is taken relative to the root, any other absolute one is ENOENT. Raises ELOOP after 40 links.
        """
        pending = _below(self._sysfs, path)[len(self._sysfs) :].split("/")[::-1]
        done: list[str] = []
        links = 0
        while pending:
            part = pending.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                del done[-1:]
                continue
            here = "/".join((self._sysfs, *done, part))
            try:
                target = os.readlink(here)
            except OSError as error:
                if error.errno != errno.EINVAL:  # EINVAL: there, but not a link
                    raise
                done.append(part)
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), here)
            if target.startswith("/"):
                target = self._relative(target, here)
                done.clear()
            pending.extend(target.split("/")[::-1])
        return "/".join(done)

    def read_proc(self, path: str) -> str:
        """Return the text of a file below procfs, which unlike sysfs may take many reads (``net/route``)."""
        file = os.open(_below(self._procfs, path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            chunks = []
            while chunk := os.read(file, 65536):
                chunks.append(chunk)
        finally:
            os.close(file)
        return b"".join(chunks).decode("utf-8", "replace")

    def _relative(self, target: str, link: str) -> str:
        for root in (self._sysfs, "/sys"):
            if target.startswith(f"{root}/"):
                return target[len(root) :]
        raise OSError(errno.ENOENT, f"link leaves {self._sysfs or '/'}", link)


def _below(root: str, path: str) -> str:
    if "\0" in path or (".." in path and ".." in path.split("/")):
        raise OSError(errno.EINVAL, "not a path below its root", path)
    return f"{root}/{path}"


def _read_once(path: str, limit: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, limit)
    finally:
        os.close(file)
