"""Tells that something changed in folders of which nothing is expected, so that they need not be looked at every second."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from watchfiles import Change

MOST_WATCHED = 1024
"""Folders. Every program of a user shares ``fs.inotify.max_user_watches``; what is not watched is polled."""
REARM_SECONDS = 5.0
RETRY_SECONDS = 600.0
"""How long after it was refused inotify is tried again."""

log = structlog.get_logger("nccl")


class Watch:
    """A set of folders that inotify watches, by watchfiles. ``folders`` are those watched now."""

    def __init__(self) -> None:
        self.folders: frozenset[str] = frozenset()
        self._changes: Generator[set[tuple[Change, str]], None, None] | None = None
        self._again = 0.0
        self._told = False

    def arm(self, wanted: Iterable[str], now: float) -> frozenset[str]:
        """Watch these folders and no others; return those that are new: they must be looked at once more.

        What is wanted changes at most every few seconds, since each change watches all anew.
        """
        folders = frozenset(sorted(wanted)[:MOST_WATCHED])
        if folders == self.folders or now < self._again:
            return frozenset()
        before = self.folders
        self.close()
        self._again = now + REARM_SECONDS
        if not folders:
            return frozenset()
        from watchfiles import watch

        self._changes = watch(
            *folders, watch_filter=None, debounce=1, step=1, rust_timeout=1, yield_on_timeout=True, recursive=False
        )
        try:
            next(self._changes)
        except FileNotFoundError:  # one of them went meanwhile: the next time it is not wanted any more
            self.close()
            return frozenset()
        except (OSError, RuntimeError) as error:  # max_user_watches, max_user_instances; watchfiles' own error
            self.close()
            self._again = now + RETRY_SECONDS
            if not self._told:
                log.warning("folders cannot be watched and are polled", error=str(error))
                self._told = True
            return frozenset()
        self.folders = folders
        return folders - before

    def changed(self) -> frozenset[str]:
        """Return the folders in which something changed since the last call."""
        if self._changes is None:
            return frozenset()
        try:
            paths = {path for _, path in next(self._changes)}
        except (OSError, RuntimeError, StopIteration) as error:
            log.warning("folders cannot be watched and are polled", error=str(error))
            folders = self.folders
            self.close()
            return folders
        if gone := paths & self.folders:  # a folder itself: it may come again, and would not be watched
            self.folders -= gone
        return frozenset(os.path.dirname(path) for path in paths) | gone

    def close(self) -> None:
        """Watch nothing any more."""
        changes, self._changes = self._changes, None
        self.folders = frozenset()
        if changes is not None:
            changes.close()
