"""Reads what NCCL puts before a message (``src/debug.cc``), in every version, and finds records that were spliced together."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from exporter.nccl.facts import Level
from exporter.nccl.unwrap import unwrap

LEVELS: dict[str, Level] = {
    "INFO": "INFO",
    "WARN": "WARN",
    "ATTN": "ATTN",
    "DIAG": "DIAG",
    "TRACE": "INFO",  # builds with TRACE=1 say more of the same
    "CALL": "",
}
"""The words that follow ``NCCL`` in a prefix, and the level of their records; CALL tells of calls only."""


class Head(NamedTuple):
    """The fields of a prefix; the last fields of :class:`~exporter.nccl.facts.Record`, in its order."""

    host: str = ""
    pid: int = 0
    tid: int = 0
    device: int | None = None
    location: str = ""
    timestamp: str = ""


class Parsed(NamedTuple):
    """A prefix, ``foreign`` text that stood before it and is no wrapper, and where its host begins in what was read."""

    head: Head
    foreign: str
    start: int


class Spliced(NamedTuple):
    """One record of a line."""

    level: Level
    parsed: Parsed
    message: str
    cut: bool
    """Another record follows in the same line, so that the message may have lost its end."""


_LONGEST = 4096
_MOST_MARKS = 32  # in a line; more is no log of NCCL
_CLEAN = re.compile(r"([A-Za-z0-9._-]{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\]")
# host:pid:tid [device], then the location of a WARN: anything, since C++ plugins print __PRETTY_FUNCTION__
_ORIGIN = re.compile(r":(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\]")
_CALL = re.compile(r":(\d{1,10}):(\d{1,10})$")
_DIAG = re.compile(r":(\d{1,10})$")
_HOST = re.compile(r"[^\s:\[\](){}<>'\",|/]{0,255}$")
_NO_HOST = re.compile(r"(?:^|(?<=\s))\[(-?\d{1,4})\](?: (\S.*))?$")
# one hyperscaler's fork: [rank/size][time] [file:line] [host:pid=N]
_FORK = re.compile(r"\[\d{1,9}/\d{1,9}\]\[([^\]]{1,40})\] \[([^\]]{1,256})\] \[([^\s:\]]{1,255}):pid=(\d{1,10})\]$")
# NCCL_DEBUG_TIMESTAMP_FORMAT is the user's; brackets may be missing
_TIME = re.compile(
    r"\[([^\[\]]{0,38}\d[:/.-]\d[^\[\]]{0,38})\]\s*$"
    r"|((?:\d{2,4}[-/.]\d\d[-/.]\d{2,4}[ T_])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|\d{2,4}[-/]\d\d[-/]\d{2,4})\s*$"
)
_MARK = re.compile(r"(?:^| )NCCL (INFO|WARN|ATTN|DIAG|CALL|TRACE)(?: |$)")


def parse(left: str, word: str = "INFO") -> Parsed:
    """Read the prefix that ends right before ``NCCL`` and the level's ``word``; ``left`` may begin with wrappers or other text.

    A prefix that lost its host gives an empty host, and no prefix at all an empty head.
    """
    if clean := _CLEAN.fullmatch(left):
        host, pid, tid, device = clean.groups()
        return Parsed(Head(host, int(pid), int(tid), int(device)), "", 0)
    offset = max(len(left) - _LONGEST, 0)
    left = left[offset:]
    origins = list(_ORIGIN.finditer(left))
    origin = origins[-1] if origins else None
    if origin:
        head = Head("", int(origin[1]), int(origin[2]), int(origin[3]), left[origin.end() :].strip())
    elif word == "CALL" and (origin := _CALL.search(left)):
        head = Head("", int(origin[1]), int(origin[2]))
    elif word == "DIAG" and (origin := _DIAG.search(left)):
        head = Head("", int(origin[1]))
    elif fork := _FORK.search(left):
        time, location, host, pid = fork.groups()
        return Parsed(
            Head(host, int(pid), 0, None, location, time), _foreign(left[: fork.start()])[0], offset + fork.start()
        )
    elif bare := _NO_HOST.search(left):
        foreign, time = _foreign(left[: bare.start()])
        return Parsed(Head("", 0, 0, int(bare[1]), bare[2] or "", time), foreign, offset + bare.start())
    else:
        foreign, time = _foreign(left)
        return Parsed(Head(timestamp=time), foreign, offset + len(left))
    before = left[: origin.start()]
    found = _HOST.search(before[-256:])
    name = found[0] if found else ""
    start = origin.start() - len(name)
    foreign, time = _foreign(left[:start])
    return Parsed(head._replace(host=name, timestamp=time), foreign, offset + start)


@lru_cache(maxsize=256)
def _foreign(before: str) -> tuple[str, str]:
    """What of the text before a prefix is neither wrapper nor time stamp, and the time stamp."""
    if not before or before.isspace():
        return "", ""
    rest, stamp = unwrap(before)[:2]
    if found := _TIME.match(rest):
        return "", found[1] or found[2]
    return rest.strip(), stamp


def records(text: str) -> list[Spliced]:
    """All records of a line, first to last.

    Several processes may share one descriptor, so that a message can hold another full prefix; a message that only speaks of
    NCCL is left whole.
    """
    found: list[Spliced] = []
    begin = 0
    level: Level | None = None
    parsed = Parsed(Head(), "", 0)
    for mark in islice(_MARK.finditer(text), _MOST_MARKS):
        segment = text[begin : mark.start()]
        following = parse(segment, mark[1])
        if level is not None:
            if not following.head.pid:
                continue
            found.append(Spliced(level, parsed, segment[: following.start], True))
            following = following._replace(foreign="")
        level, parsed, begin = LEVELS[mark[1]], following, mark.end()
    if level is not None:
        found.append(Spliced(level, parsed, text[begin:], False))
    return found
