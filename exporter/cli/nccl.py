"""``nccl``: read logs of NCCL, say what path was used and what failed."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import BinaryIO, cast

from exporter.config import Settings
from exporter.errors import UsageError

ABOUT = "read logs of NCCL and RCCL and say which path was used and what failed"
LARGE = 32 << 20
"""Bytes from which on a file gets a line of progress."""
REFRESH_SECONDS = 0.2
GZIP = b"\x1f\x8b"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="a log, a .gz of one, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a report")
    parser.add_argument(
        "--this-host",
        action="store_true",
        help="the logs were written on this host (or on the one captured): compare them with its devices",
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the reports. A file that cannot be read is told, the others are reported, and the status is that of a mistake."""
    from exporter.nccl import report

    inventory = None
    if arguments.this_host:
        from exporter import app, config
        from exporter.discovery import discover

        inventory = discover(app.open_kernel_of(settings), config.rules(settings))
    logs, problems = [], []
    for file in arguments.files:
        try:
            with opened(file) as (stream, progress):
                logs.append(report.read(file, stream, progress))
        except (OSError, EOFError, zlib.error) as error:
            problems.append(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}")
    found = report.findings(logs, inventory)
    if arguments.json:
        items = [report.as_json(log, each) for log, each in zip(logs, found, strict=True)]
        print(json.dumps({"logs": items}, indent=2))
    else:
        print("\n".join(report.as_text(log, each) for log, each in zip(logs, found, strict=True)), end="")
    if problems:
        raise UsageError("; ".join(problems))
    return 0


@contextmanager
def opened(file: str) -> Iterator[tuple[BinaryIO, Callable[[], None]]]:
    """Open a log and give it with what shows the progress of reading it. Raises :class:`OSError`."""
    if file == "-":
        yield unpacked(sys.stdin.buffer), lambda: None
        return
    with open(file, "rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        if size < LARGE or not sys.stderr.isatty():
            yield unpacked(raw), lambda: None
            return
        progress = Progress(file, raw, size)
        try:
            yield unpacked(raw), progress.show
        finally:
            progress.clear()


def unpacked(raw: BinaryIO) -> BinaryIO:
    """Return what a stream holds, unpacked when it is gzip, whatever its name."""
    packed = cast(BufferedReader, raw).peek(len(GZIP))[: len(GZIP)] == GZIP
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw


class Progress:
    """One line on standard error, rewritten while a large file is read."""

    def __init__(self, name: str, raw: BinaryIO, size: int) -> None:
        self._name, self._raw, self._size = os.path.basename(name)[-40:], raw, size
        self._shown = 0.0

    def show(self) -> None:
        """Show how far the file is read, now and then."""
        now = time.monotonic()
        if now - self._shown >= REFRESH_SECONDS:
            self._shown = now
            share = self._raw.tell() / self._size
            bar = "#" * int(share * 30)
            print(f"\r{self._name} [{bar:<30}] {share:4.0%}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        print("\r\033[K", end="", file=sys.stderr, flush=True)
