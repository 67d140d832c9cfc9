"""How the daemon logs: one line per event to standard error, logfmt or JSON."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Literal

import structlog

LEVELS = ("debug", "info", "warn", "error")


def set_up(level: str, form: Literal["logfmt", "json"]) -> None:
    """Set structlog up for the whole process. Control characters in values are escaped by the renderer."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _plain,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}[level]
        ),
        logger_factory=lambda *names: Lines(),
        cache_logger_on_first_use=False,
    )


class Lines:
    """Writes lines to standard error. A disk that is full, or a pipe that nobody reads any more, costs lines, not the daemon."""

    def msg(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # ValueError: closed
            print(line, file=sys.stderr, flush=True)

    debug = info = warning = error = critical = msg


def _plain(
    logger: structlog.typing.WrappedLogger, name: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Escape what is not printable, so that a hostile interface name cannot write a line of its own."""
    return {
        key: value if not isinstance(value, str) or value.isprintable() else value.encode("unicode_escape").decode()
        for key, value in event.items()
    }
