"""What the tests of the netlink rooms share: recorded answers, and errors as values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
