"""What the tests of the netlink rooms share: recorded answers, and a network namespace to ask in."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

Answer = TypeVar("Answer")

_CLONE_NEWNET = 0x40000000
_DATA = Path(__file__).parent / "data" / "netlink"


class Recorded(NamedTuple):
    """What a kernel answered to us (bodies after struct nlmsghdr), and what a tool printed in the same moment."""

    answers: tuple[bytes, ...]
    printed: str

    @property
    def attributes(self) -> bytes:
        """The attributes of the one answer of a generic netlink family."""
        (answer,) = self.answers
        return answer[4:]

    def json(self) -> Any:
        return json.loads(self.printed)


def recorded(name: str) -> Recorded:
    """Read tests/kernel/data/netlink/NAME.txt."""
    head, _, printed = (_DATA / f"{name}.txt").read_text().partition("\n\n")
    lines = [line.partition(": ")[::2] for line in head.splitlines()]
    return Recorded(tuple(bytes.fromhex(value) for key, value in lines if key == "answer"), printed)


def outcome(call: Callable[..., object], *arguments: object) -> tuple[object, int]:
    """Return what the call returns and 0, or None and the errno that it raises."""
    try:
        return call(*arguments), 0
    except OSError as error:
        return None, error.errno or -1


class Namespace:
    """A network namespace made for a test."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *command: str) -> str:
        """Run a command in it and return what it prints."""
        return subprocess.run(
            ("ip", "netns", "exec", self.name, *command), check=True, capture_output=True, text=True
        ).stdout

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Call a function in a thread that lives in this namespace."""
        with ThreadPoolExecutor(1, initializer=self._enter) as threads:
            return threads.submit(question).result()

    def _enter(self) -> None:
        with open(f"/run/netns/{self.name}") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def namespace() -> Iterator[Namespace]:
    """Make a namespace with the veth pair v0 (up) and v1 (down), and remove it."""
    made = Namespace(f"fabric-a2-{os.getpid()}")
    subprocess.run(("ip", "netns", "add", made.name), check=True)
    try:
        made.run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        made.run("ip", "link", "set", "v0", "up")
        yield made
    finally:
        subprocess.run(("ip", "netns", "del", made.name), check=True)
