"""A network namespace of one's own: real interfaces that nobody else sees."""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

import pytest

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace made with ``ip netns``. ``with`` deletes it, and its interfaces with it.

    A test that wants one is skipped when not run as root.
    """

    def __init__(self) -> None:
        self.name = f"fabric-{os.getpid()}-{next(_numbers)}"

    def __enter__(self) -> Self:
        if os.geteuid() != 0:
            pytest.skip("making a network namespace needs root")
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["ip", "netns", "delete", self.name], check=True)

    def command(self, *words: str | Path) -> list[str]:
        """Return a command that runs in the namespace, with its own /sys. A single text is split at its blanks."""
        if len(words) == 1:
            words = tuple(str(words[0]).split())
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def run(self, *words: str | Path) -> str:
        """Run a command (see :meth:`command`) and return what it prints. One that fails is an AssertionError."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ip(self, arguments: str) -> str:
        """Run ``ip`` on the namespace and return what it prints."""
        command = ["ip", "-n", self.name, *arguments.split()]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def batch(self, lines: list[str]) -> None:
        """Run many ``ip`` commands in one process."""
        command = ["ip", "-n", self.name, "-batch", "-"]
        subprocess.run(command, check=True, input="\n".join(lines), text=True)

    def inside(self, function: Callable[[], T]) -> T:
        """Return what the function returns in a thread that has entered the namespace; so do the threads it starts."""
        results: list[T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                with open(f"/run/netns/{self.name}") as namespace:
                    if _libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), "setns")
                results.append(function())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        if errors:
            raise errors[0]
        assert results, "not done in a minute"
        return results[0]
