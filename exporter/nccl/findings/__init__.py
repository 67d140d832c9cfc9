"""From evidence to sentences: what a person at three in the morning should know of a log.

Statuses and numbers decide, never the text of NCCL's hints. What a log cannot tell is said as such: wrong and confident is
worse than silent.
"""

from __future__ import annotations

from exporter.model import Inventory
from exporter.nccl.evidence import Evidence
from exporter.nccl.findings import completions, failures, notices, paths, settings
from exporter.nccl.findings.finding import Case, Confidence, Finding, Severity
from exporter.nccl.verdicts import gdr, release

__all__ = ["Confidence", "Finding", "Severity", "find"]

CHECKS = (*completions.CHECKS, *failures.CHECKS, *paths.CHECKS, *settings.CHECKS, *notices.CHECKS)
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
MOST_FINDINGS = 32


def find(evidence: Evidence, inventory: Inventory | None = None, nccl_lines: int | None = None) -> list[Finding]:
    """Return what a log shows, the gravest first, and among equals what explains the others.

    ``inventory`` is this host's, given only for a log that was written here. ``nccl_lines`` is how many lines of NCCL were
    read (None: not known). A log without anything wrong says so.
    """
    case = Case(evidence, gdr(evidence), release(evidence), inventory, nccl_lines)
    found = [finding for check in CHECKS for finding in check(case)]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    if all(finding.severity == "info" for finding in found) and not any(
        finding.confidence == "insufficient" for finding in found
    ):
        found.insert(0, Finding("no_fault", "likely", "info", "Nothing wrong is visible in this log."))
    return found[:MOST_FINDINGS]
