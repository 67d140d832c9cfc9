"""What a finding is, and what every check is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from exporter.model import Inventory
from exporter.nccl.evidence import Evidence
from exporter.nccl.state import Error
from exporter.nccl.verdicts import Gdr

Confidence = Literal["confirmed", "likely", "possible", "insufficient"]
Severity = Literal["critical", "warning", "info"]

MOST_LINES = 8


class Finding(NamedTuple):
    """One thing that a log shows.

    ``confidence`` is that of the summary: ``confirmed`` when a line says it, ``likely`` when nothing else is near, ``possible``
    when other causes fit as well, ``insufficient`` when the log cannot tell. ``severity`` is ``critical`` when the job cannot go
    on, ``warning`` when it is slower or about to fail, ``info`` otherwise. ``evidence`` are lines of the log or what was counted.
    """

    id: str
    confidence: Confidence
    severity: Severity
    summary: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One log, as the checks see it. ``inventory`` is this host's, for its own log only; None is not known, as elsewhere."""

    evidence: Evidence
    gdr: Gdr
    release: tuple[int, int, int] | None
    inventory: Inventory | None = None
    nccl_lines: int | None = None

    def causes(self, kind: str, *what: str) -> list[Error]:
        """Return the errors that follow from nothing else, of a kind and any of the given texts (none: all)."""
        return [error for error in self.evidence.causes if error.kind == kind and (not what or error.what in what)]

    def setting(self, name: str) -> tuple[str, ...]:
        """Return the values of a variable, in the order in which they came."""
        return tuple(self.evidence.settings.get(name, ()))


def lines(errors: Iterable[Error], *more: str) -> tuple[str, ...]:
    """Return the lines of some errors as evidence, each text once, and more after them."""
    kept = list(dict.fromkeys(error.line for error in errors))[: MOST_LINES - len(more)]
    return (*kept, *more)


def names(items: Iterable[str], empty: str = "") -> str:
    """Return a few names for a sentence: ``a, b and 3 more``."""
    found = [item for item in dict.fromkeys(items) if item]
    if len(found) > 3:
        return f"{', '.join(found[:3])} and {len(found) - 3} more"
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found) or empty


def hosts_of(errors: Iterable[Error]) -> str:
    """Return the hosts that told of errors, for a sentence."""
    return names((error.host for error in errors), "a host")


def times(count: int) -> str:
    """Return ``once``, ``twice`` or ``n times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
