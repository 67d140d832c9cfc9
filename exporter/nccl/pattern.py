"""What an entry of a pattern table says: which line, of which versions, and the fact it gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from exporter.nccl.facts import Fact, Failure, Noise, Record

Make = Callable[[re.Match[str], Record], Fact]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """One form of one line.

    ``regex`` matches the message from its start (after the NCCL prefix; a tail may follow). ``first`` is the fixed text that
    the message begins with, or several such texts: it finds the patterns to try, so it is literal and as long as can be.
    ``holds`` is a text that stands somewhere in it, asked before the regex. ``since`` / ``until`` are the releases that
    print this form (empty: from the first, to the newest known). ``make`` builds the fact from the match and the record.
    ``examples`` are whole messages; a test proves that each matches this entry and no other of any table. ``counted`` says
    that ``make`` gives a :class:`~exporter.nccl.facts.Local` which depends on the first group alone.
    """

    name: str
    first: str | tuple[str, ...]
    regex: re.Pattern[str]
    make: Make
    holds: str = ""
    since: str = ""
    until: str = ""
    examples: tuple[str, ...] = ()
    counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Library:
    """One library's table: ``name`` as in docs, ``source`` where its lines were read (repository and tag)."""

    name: str
    source: str
    patterns: tuple[Pattern, ...]


TOKENS = {
    "d": r"(-?\d+)",
    "x": r"(?:0x)?([0-9a-f]+)",
    "p": r"(0x[0-9a-f]+|\(nil\))",
    "f": r"(-?[0-9.]+(?:e[-+]?\d+)?)",
    "s": r"(\S{0,255}?)",
    "S": r"(.{0,500}?)",
    "F": r"(?:\w{1,80}: )?",
}
"""What stands for a conversion of a printed format. Every repeat is bounded, so that no line can cost more than its length."""
LAST = {"s": r"(\S*)", "S": r"(.*)"}


class Compiled(NamedTuple):
    """A format as a regex, with the literals that find it."""

    regex: re.Pattern[str]
    first: str
    holds: str


def compiled(text: str) -> Compiled:
    r"""Turn a printed format into what matches it.

    >>> compiled("Device %d marked as failed.").regex.pattern
    'Device (-?\\d+) marked as failed\\.(?!\\S)'

    ``%d`` is an integer, ``%x`` a hexadecimal number with or without 0x, ``%p`` a pointer, ``%f`` a decimal number, ``%s`` a
    word, ``%S`` a text with blanks, ``%F`` an optional ``function: `` (not a group), ``%%`` a percent sign. Each but ``%F``
    is a group, in order. A ``$`` at the end stands for the end of the message; otherwise more may follow after a blank.

    Raises:
        KeyError: another conversion.

    """
    ends = text.endswith("$")
    pieces = re.split(r"%(.)", text.removesuffix("$"))
    regex, literals = "", [""]
    for i, piece in enumerate(pieces):
        if i % 2 == 0 or piece == "%":
            regex += re.escape(piece).replace(r"\ ", " ")
            literals[-1] += piece
        else:
            last = i == len(pieces) - 2 and not pieces[-1]
            regex += (last and LAST.get(piece)) or TOKENS[piece]
            literals.append("")
    return Compiled(re.compile(regex + ("$" if ends else r"(?!\S)")), literals[0], max(literals[1:] or [""], key=len))


def line(
    name: str, text: str, make: Make, *, since: str = "", until: str = "", examples: tuple[str, ...] = ()
) -> Pattern:
    """An entry whose regex, ``first`` and ``holds`` follow from the format that the library prints (see :func:`compiled`)."""
    form = compiled(text)
    return Pattern(
        name=name,
        first=form.first,
        holds=form.holds,
        regex=form.regex,
        make=make,
        since=since,
        until=until,
        examples=examples,
    )


def noise(what: str) -> Make:
    """For a line that is known and says nothing here."""
    fact = Noise(what)
    return lambda match, record: fact


def failure(kind: str, what: str, *, code: int = 0, peer: int = 0, hca: int = 0, consequence: bool = False) -> Make:
    """For a failure of one class; ``code``, ``peer`` and ``hca`` are the numbers of the groups that hold them, 0 is none."""

    def make(match: re.Match[str], record: Record) -> Fact:
        return Failure(
            kind,
            what,
            int(match[code]) if code else None,
            match[peer] if peer else "",
            match[hca] if hca else "",
            consequence,
        )

    return make
