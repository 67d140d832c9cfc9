"""Where the reading of a growing file stands, and which whole lines the bytes after that place hold. Pure."""

from __future__ import annotations

from typing import NamedTuple

BLOCK = 128 << 10
"""Bytes that are read at once: the facts of so many lines stay in a processor's cache until they are taken."""
LONGEST_LINE = 64 << 10
"""Bytes of a line that are read; NCCL's longest are near 50 kB. What follows in the line is passed over."""
SAMPLE = 256
"""Bytes at the start of a file, and before the place reached, by which its content is known again."""


class Mark(NamedTuple):
    """A place in a file: the start of the next line to read (or, with ``skipping``, a place inside a line that was cut).

    ``tail`` are the last bytes before ``offset``, ``head`` those from ``begin`` on, where the file's hole ends if it begins with
    one; at most SAMPLE of each, as they were read.
    """

    offset: int = 0
    skipping: bool = False
    tail: bytes = b""
    head: bytes = b""
    begin: int = 0


START = Mark()


class Step(NamedTuple):
    """What one block gave: whole lines, each with its newline; the place behind them; how many lines were cut."""

    lines: bytes
    mark: Mark
    cut: int


def advance(mark: Mark, data: bytes, *, last: bool = False) -> Step:
    """Return the whole lines at the start of ``data``, which are the bytes of the file from ``mark.offset`` on.

    An unfinished line stays for the next time, unless it is too long already or, with ``last``, there is no next time. NUL
    bytes before a line are no part of it: they are the hole that a file has whose writer went on at its old place after the
    file was truncated.
    """
    begin = 0
    skipping = mark.skipping
    if skipping:
        newline = data.find(b"\n")
        begin = newline + 1 if newline >= 0 else len(data)
        skipping = newline < 0
    if data.startswith(b"\0", begin):
        begin = len(data) - len(data[begin:].lstrip(b"\0"))
    end = max(data.rfind(b"\n", begin) + 1, begin)
    lines, cut = data[begin:end], 0
    if len(lines) > LONGEST_LINE:
        lines, cut = shortened(lines)
    unfinished = len(data) - end
    if unfinished > LONGEST_LINE:
        lines += data[end : end + LONGEST_LINE] + b"\n"
        cut += 1
        skipping = True
        end = len(data)
    elif last:
        lines += data[end:]
        end = len(data)
    return Step(lines, moved(mark, data, end, skipping=skipping), cut)


def moved(mark: Mark, data: bytes, count: int, *, skipping: bool) -> Mark:
    """Return the mark ``count`` bytes further, where ``data`` are the bytes from the old one on."""
    head, begin = mark.head, mark.begin
    if not head:
        begin = mark.offset + count - len(data[:count].lstrip(b"\0"))
    if len(head) < SAMPLE and (known := begin + len(head) - mark.offset) >= 0:
        head += data[known : min(count, known + SAMPLE - len(head))]
    tail = data[count - SAMPLE : count] if count >= SAMPLE else (mark.tail + data[:count])[-SAMPLE:]
    return Mark(mark.offset + count, skipping, tail, head, begin)


def shortened(lines: bytes) -> tuple[bytes, int]:
    """Return the lines with those cut that are too long, and how many were."""
    half = LONGEST_LINE // 2
    # A line that is too long covers a whole window without a newline.
    if all(lines.find(b"\n", at, at + half) >= 0 for at in range(0, len(lines) - half, half)):
        return lines, 0
    short, cut = [], 0
    for line in lines.split(b"\n")[:-1]:
        cut += len(line) > LONGEST_LINE
        short.append(line[:LONGEST_LINE] + b"\n")
    return b"".join(short), cut
