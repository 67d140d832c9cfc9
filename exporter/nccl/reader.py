"""Turns the lines of one log into facts, a block of bytes at a time.

Most lines of most logs say nothing here. Lines are counted and markers found by searching the block; only lines with a marker
are decoded. The prefix of a line repeats thousands of times (one per thread), so what it says is remembered.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TypeVar

import msgspec

from exporter.nccl.facts import Channel, Collnet, Fact, Failure, Level, Local, Network, Noise, Record, Setting
from exporter.nccl.pattern import Make
from exporter.nccl.patterns import LIBRARIES
from exporter.nccl.prefix import LEVELS, Head, parse, records
from exporter.nccl.table import build, find
from exporter.nccl.unwrap import Line, plain, runtime, unwrap

LONGEST = 64 * 1024
"""Characters of a line that are read; the rest is cut off."""
LONGEST_MESSAGE = 8 * 1024

_TABLE = build(LIBRARIES)
_MARK = " NCCL "
_INFO = " NCCL INFO "
_WATCHDOG = "Watchdog caught collective operation timeout"
# NCCL and RCCL; PyTorch's watchdog; a framework's exception, after which the text of the error stands on a line of its own
_MARKERS = (b"CCL ", _WATCHDOG.encode(), b"Last error:")
_DENSE = 4  # lines per marked line at which reading all lines is cheaper than looking each up
_AFTER_LAST_ERROR = 4
_HEADS, _HOSTS, _TEXTS, _STREAMS = 1024, 128, 64, 4  # things remembered
_LONGEST_HEAD = 256
_KEPT_OF_PART = 20_000  # bytes that a state holds of a line that goes on
_HOST = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TEST_FAILURE = re.compile(r"Test NCCL failure \S{1,255} '.{0,500}? / (.*)'")
_NAMED_VERSION = re.compile(r"NCCL error(?: in)?: .{0,600}?, (NCCL version \d[^\s,]{0,40})$")
_BY_ENDING = (Channel, Collnet, Setting, Network)  # what they say hangs on how the message ends
_BANNER = ("NCCL version ", "RCCL version")

_new = tuple.__new__  # a Record from its fields, in half the time that its own constructor takes
_Key = TypeVar("_Key", str, bytes)
Facts = list[tuple[Record, Fact]]


class _State(msgspec.Struct):
    """What a Reader needs to go on after a restart."""

    lines: int
    nccl_lines: int
    garbled: int
    runtime: str
    parts: dict[str, str]
    hosts: list[str]
    told: list[bytes]
    echoed: list[bytes]
    expecting: int


class Reader:
    """Reads the lines of one log. Keeps what a line leaves open: the parts of a line that a container runtime cut, the text
    that follows ``Last error:``.

    ``lines``, ``nccl_lines`` (lines with a record of NCCL or RCCL, known or not; a bare version is none) and ``garbled`` (lines
    spliced, cut, or with other text before the prefix) count from the start of the log.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.nccl_lines = 0
        self.garbled = 0
        self._runtime = ""
        self._parts: dict[str, str] = {}
        self._expecting = 0
        self._dense = False
        self._heads: dict[str, Head] = {}
        self._hosts: dict[str, None] = {}
        self._told: dict[bytes, None] = {}
        self._echoed: dict[bytes, None] = {}

    def feed(self, block: bytes) -> Facts:
        """Read complete lines; the last may lack its newline at the end of the file."""
        lines = block.count(b"\n")
        if block and not block.endswith(b"\n"):
            lines += 1
        self.lines += lines
        if b"\0" in block:
            block = block.replace(b"\0", b"")
        out: Facts = []
        first = runtime(_text(block[: block.find(b"\n") if b"\n" in block else LONGEST]))
        self._runtime = first.wrappers[0] if first else ""
        marked = None if self._parts or _has_parts(block, lines, self._runtime) else self._marked(block, lines)
        if text := _text(block if marked is None else marked):
            self._lines(text.removesuffix("\n"), out)
        return out

    def _marked(self, block: bytes, lines: int) -> bytes | None:
        """The lines that may matter, or None where they are so many that all can as well be read."""
        if self._dense and block.count(_MARKERS[0]) * _DENSE >= lines:
            return None
        found: dict[int, int] = {}
        for marker in _MARKERS:
            at = block.find(marker)
            while at >= 0:
                end = block.find(b"\n", at)
                end = len(block) if end < 0 else end
                found[block.rfind(b"\n", 0, at) + 1] = end
                if marker is _MARKERS[-1]:
                    _following(block, end, _AFTER_LAST_ERROR, found)
                at = block.find(marker, end)
            if len(found) * _DENSE >= lines:
                self._dense = True
                return None
        self._dense = False
        if self._expecting:
            _following(block, -1, self._expecting, found)
        return b"".join([block[start:end] + b"\n" for start, end in sorted(found.items())])

    def _lines(self, text: str, out: Facts) -> None:
        """Read all lines of a text.

        This loop is the short way for what most lines are, an INFO with a prefix that was seen before; any other line takes
        the long way. Both ways say the same of the same line.
        """
        short = not (self._runtime or "\r" in text or "\x1b" in text or " [repeated " in text)
        heads, table, longest, count = self._heads, _TABLE, LONGEST_MESSAGE, 0
        counts: dict[tuple[str, Make, str], list[int]] = {}
        for line in text.split("\n"):
            left, mark, message = line.partition(_INFO)
            if not (mark and short) or _MARK in message or len(message) > longest:
                self._line(line, out)
                continue
            head = heads.get(left) or self._learned(left, "INFO")
            if head is None:
                self._line(line, out)
                continue
            count += 1
            depth, deeper, candidates = table
            while deeper and (node := deeper.get(message[:depth])):
                depth, deeper, candidates = node
            for holds, match, make, counted in candidates:
                if holds in message and (found := match(message)):
                    if counted:
                        key = left, make, found[1]
                        if key in counts:
                            counts[key][1] += 1
                            break
                        counts[key] = [len(out), 1]
                    record = _new(Record, ("INFO", message, *head))
                    fact = make(found, record)
                    if type(fact) is not Noise:
                        out.append((record, fact))
                    break
        self.nccl_lines += count
        for at, lines in counts.values():
            record, fact = out[at]
            assert isinstance(fact, Local)
            out[at] = record, fact._replace(lines=lines)

    def _line(self, text: str, out: Facts) -> None:
        """Read one line as it stands in the file."""
        if len(text) > LONGEST:
            text = text[:LONGEST]
            self.garbled += 1
        stamp = ""
        if self._runtime:
            line = runtime(text)
            if line is not None:
                joined = self._join(line)
                if joined is None:
                    return
                text, stamp = joined, line.stamp
        for piece in text.split("\r") if "\r" in text else (text,):
            self._piece(piece, stamp, out)

    def _join(self, line: Line) -> str | None:
        """The whole line, or None as long as the runtime has more parts of it."""
        text = self._parts.pop(line.stream, "") + line.text
        if len(text) > LONGEST:
            text = text[:LONGEST]
            self.garbled += not line.partial
        if line.partial:
            if len(self._parts) >= _STREAMS:
                self._parts.clear()
            self._parts[line.stream] = text
            return None
        return text

    def _piece(self, text: str, stamp: str, out: Facts) -> None:
        """Read one line without the container runtime's wrapper."""
        left, mark, right = text.partition(_MARK)
        if not mark:
            expected = self._expecting > 0
            self._expecting -= expected
            if expected or "CCL " in text or "Last error:" in text or _WATCHDOG in text:
                self._other(text, stamp, expected, out)
            return
        level = LEVELS.get(right[:4])
        if level is None or right[4:5] != " " or _MARK in right or "\x1b" in text or " [repeated " in text:
            self._odd(text, stamp, out)
            return
        head = self._heads.get(left) or self._learned(left, right[:4])
        if head is None:
            self._odd(text, stamp, out)
            return
        self.nccl_lines += 1
        self._record(level, right[5:], head, stamp, out)

    def _learned(self, left: str, word: str) -> Head | None:
        """What a prefix says that was not seen before, or None where it has no host or other text before it."""
        head, foreign, _ = parse(left, word)
        if foreign or not head.host or _MARK in left:
            return None
        if len(self._heads) >= _HEADS:
            self._heads.clear()
        if len(left) <= _LONGEST_HEAD:
            self._heads[left] = head
        if head.host not in self._hosts and _HOST.fullmatch(head.host):
            _keep(self._hosts, head.host, _HOSTS)
        return head

    def _record(self, level: Level, message: str, head: Head, stamp: str, out: Facts, cut: bool = False) -> None:
        """Add the fact of one record; ``cut`` says that its end may be lost."""
        if len(message) > LONGEST_MESSAGE:
            message = message[:LONGEST_MESSAGE]
            self.garbled += 1
        for holds, match, make, _ in find(_TABLE, message):
            if holds in message and (found := match(message)):
                record = _new(Record, (level, message, *head))
                fact = make(found, record)
                kind = type(fact)
                if kind is not Noise and not (cut and kind in _BY_ENDING):
                    self._add(record, fact, stamp, out)
                return
        if level == "WARN" and not cut and message.strip():
            self._add(Record(level, message, *head), Failure("other", message[:200]), stamp, out)

    def _add(self, record: Record, fact: Fact, stamp: str, out: Facts) -> None:
        """Add a fact with the runtime's time stamp, once where a framework repeated its text."""
        if record.level == "WARN":
            digest = _digest(record.message)
            if self._echoed.pop(digest, ...) is None:
                return
            _keep(self._told, digest, _TEXTS)
        out.append((record._replace(timestamp=stamp) if stamp else record, fact))

    def _odd(self, text: str, stamp: str, out: Facts) -> None:
        """A line whose record is not alone, not at the start, or without a host."""
        text = plain(text)
        found = records(text)
        if not found:
            self._other(text, stamp, False, out)
            return
        self.nccl_lines += 1
        self.garbled += len(found) > 1 or bool(found[0].parsed.foreign)
        for index, spliced in enumerate(found):
            head, message = spliced.parsed.head, spliced.message
            if index or spliced.parsed.foreign:
                head = head._replace(host=self._known(head.host))
            if spliced.cut:  # what stands before the next host is the end of this message
                following = found[index + 1].parsed.head.host
                message += following.removesuffix(self._known(following))
            if spliced.level:
                self._record(spliced.level, message, head, stamp, out, spliced.cut)

    def _known(self, host: str) -> str:
        """The host of a spliced line: other text may stand right before it, so only one seen in clean lines is believed."""
        return max((name for name in self._hosts if host.endswith(name)), key=len, default="")

    def _other(self, text: str, stamp: str, expected: bool, out: Facts) -> None:
        """A line without a prefix: a version banner, or an error that a framework or nccl-tests repeats.

        ``expected`` says that the text of an error may be this line.
        """
        line = unwrap(text)
        message, stamp = line.text, stamp or line.stamp
        if message.startswith(_BANNER):
            self._record("VERSION", message, Head(), stamp, out)
        elif message.startswith(("NCCL ", "[")) and (found := records(message)):
            self.nccl_lines += 1
            for spliced in found:
                self._record(spliced.level, spliced.message, spliced.parsed.head, stamp, out, spliced.cut)
        elif "Last error:" in message:
            self._expecting = _AFTER_LAST_ERROR
        elif named := _NAMED_VERSION.search(message):
            self._record("", named[1], Head(), stamp, out)
        elif (watchdog := message.find(_WATCHDOG)) >= 0:
            self._record("", message[watchdog:], Head(), stamp, out)
        elif echo := _TEST_FAILURE.search(message):
            self._echo(echo[1], stamp, out)
        elif expected:
            self._echo(message, stamp, out)

    def _echo(self, message: str, stamp: str, out: Facts) -> None:
        """The text of the last WARN, repeated by a framework: it counts where that WARN itself is not in this log."""
        digest = _digest(message)
        if digest in self._told:
            return
        before = len(out)
        self._record("", message, Head(), stamp, out)
        if len(out) > before:
            _keep(self._echoed, digest, _TEXTS)

    def state(self) -> bytes:
        """What :meth:`restore` needs, under 70 kB."""
        return msgspec.msgpack.encode(
            _State(
                self.lines,
                self.nccl_lines,
                self.garbled,
                self._runtime,
                {stream[:16]: _text(text.encode()[:_KEPT_OF_PART]) for stream, text in self._parts.items()},
                list(self._hosts),
                list(self._told),
                list(self._echoed),
                self._expecting,
            )
        )

    @classmethod
    def restore(cls, state: bytes) -> Reader:
        """A Reader that goes on where another stopped.

        Raises:
            msgspec.MsgspecError: this is no state.

        """
        kept = msgspec.msgpack.decode(state, type=_State)
        reader = cls()
        reader.lines, reader.nccl_lines, reader.garbled = kept.lines, kept.nccl_lines, kept.garbled
        reader._runtime, reader._parts, reader._expecting = kept.runtime, kept.parts, kept.expecting
        reader._hosts = dict.fromkeys(kept.hosts)
        reader._told = dict.fromkeys(kept.told)
        reader._echoed = dict.fromkeys(kept.echoed)
        return reader


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _digest(message: str) -> bytes:
    """What stands for the text of an error, which a framework may cut or pad."""
    return blake2b(message.strip()[:200].encode(), digest_size=8).digest()


def _has_parts(block: bytes, lines: int, runtime: str) -> bool:
    """Does a block hold a part of a line, whose rest the container runtime wrote as another line?"""
    if runtime == "docker":
        return block.count(b'\\n","stream"') != lines
    return runtime == "cri" and (b" stdout P" in block or b" stderr P" in block)


def _following(block: bytes, end: int, most: int, found: dict[int, int]) -> None:
    """Add the lines after the one that ends at ``end``, up to the ``most``-th that has no record."""
    while most and end + 1 < len(block):
        start = end + 1
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        found[start] = end
        most -= b" NCCL " not in block[start:end]


def _keep(kept: dict[_Key, None], key: _Key, most: int) -> None:
    """Remember a key as the newest of at most ``most``."""
    kept.pop(key, None)
    kept[key] = None
    if len(kept) > most:
        del kept[next(iter(kept))]
