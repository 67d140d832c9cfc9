"""The latest errors of all logs, for people and for the API."""

from __future__ import annotations

from typing import Any

from exporter.nccl.keep import Committed
from exporter.nccl.report import error_item

MOST_ERRORS = 500


def recent_errors(committed: Committed) -> list[dict[str, Any]]:
    """Return the latest errors in types of JSON, newest first, at most MOST_ERRORS: ``log``, ``path`` and those of error_item.

    Of one moment those come first that follow from no other.
    """
    errors = [
        (log, error)
        for log in committed.logs
        if log.evidence is not None
        for error in (*log.evidence.causes, *log.evidence.effects)
    ]
    errors.sort(key=lambda one: (-one[1].at, one[1].consequence, -one[1].order))
    return [{"log": log.key, "path": log.path, **error_item(error)} for log, error in errors[:MOST_ERRORS]]
