"""What an entry of a pattern table says: which line, of which versions, and the fact it gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from exporter.nccl.facts import Fact, Record


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """One form of one line.

    ``regex`` matches the message from its start (after the NCCL prefix; a tail may follow). ``first`` is the fixed text that
    the message begins with: it finds the patterns to try, so it is literal and as long as can be. ``since`` / ``until`` are
    the releases that print this form (empty: from the first, to the newest known). ``make`` builds the fact from the match
    and the record. ``examples`` are whole messages; a test proves that each matches this entry of its table and no other.
    """

    name: str
    first: str
    regex: re.Pattern[str]
    make: Callable[[re.Match[str], Record], Fact]
    since: str = ""
    until: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Library:
    """One library's table: ``name`` as in docs, ``source`` where its lines were read (repository and tag)."""

    name: str
    source: str
    patterns: tuple[Pattern, ...]
