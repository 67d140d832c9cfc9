"""Finds the entries that a message may match, by how it begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from exporter.nccl.pattern import Library, Make, Pattern


class Candidate(NamedTuple):
    """An entry made ready to be tried."""

    holds: str
    match: Callable[[str], re.Match[str] | None]
    make: Make
    counted: bool


class Node(NamedTuple):
    """Candidates of all messages that begin alike; ``deeper`` by the first ``depth`` characters says it closer."""

    depth: int
    deeper: dict[str, Node]
    candidates: tuple[Candidate, ...]


_DEPTHS = (4, 8, 12, 20)
_FEW = 8


def build(libraries: Iterable[Library]) -> Node:
    """The tree of all entries; entries of one table are tried in its order."""
    begins = [
        (first, pattern)
        for library in libraries
        for pattern in library.patterns
        for first in ((pattern.first,) if isinstance(pattern.first, str) else pattern.first)
    ]
    return _node(begins, _DEPTHS)


def _node(begins: Sequence[tuple[str, Pattern]], depths: Sequence[int]) -> Node:
    """The node for all entries whose first text is the same, or shorter, up to here."""
    if not depths:
        return Node(0, {}, _candidates(begins))
    depth = depths[0]
    groups = {first[:depth] for first, _ in begins if len(first) >= depth}
    deeper = {}
    for begin in groups:
        group = [(first, pattern) for first, pattern in begins if begin.startswith(first[:depth])]
        deeper[begin] = _node(group, depths[1:] if len(group) > _FEW else ())
    return Node(depth, deeper, _candidates([(first, pattern) for first, pattern in begins if len(first) < depth]))


def _candidates(begins: Sequence[tuple[str, Pattern]]) -> tuple[Candidate, ...]:
    patterns = dict.fromkeys(pattern for _, pattern in begins)
    return tuple(Candidate(pattern.holds, pattern.regex.match, pattern.make, pattern.counted) for pattern in patterns)


def find(root: Node, message: str) -> tuple[Candidate, ...]:
    """The candidates for a message."""
    depth, deeper, candidates = root
    while deeper and (node := deeper.get(message[:depth])):
        depth, deeper, candidates = node
    return candidates
