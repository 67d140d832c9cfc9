"""``once``: one exposition to standard output, or atomically to a file for node_exporter's textfile collector."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import sys
import tempfile
from pathlib import Path

from exporter import app, logs
from exporter.config import Settings
from exporter.errors import UsageError
from exporter.web.render import Renderer

ABOUT = "read everything once and print it, or write it to a file for the textfile collector"
MODE = 0o644
"""Mode of the written file: the collector that reads it is another user."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("-o", "--output", metavar="FILE", default="", help="write to FILE, replaced in one step")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print or write one exposition in text format 0.0.4."""
    logs.set_up(settings.log_level, settings.log_format)
    page = Renderer().render(asyncio.run(app.once(settings)), openmetrics=False)
    if arguments.output:
        replace(Path(arguments.output), page)
    else:
        pour(page)
    return 0


def pour(content: bytes) -> None:
    """Write to standard output. Raises :class:`UsageError`, and BrokenPipeError when nobody reads any more."""
    try:
        if sys.stdout is None:  # closed: the descriptor may be something else's by now
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        with open(sys.stdout.fileno(), "wb", closefd=False) as output:
            output.write(content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"standard output: cannot be written: {error.strerror}") from None


def replace(path: Path, content: bytes) -> None:
    """Write the file so that a reader sees the old or the new content, never a part. Raises :class:`UsageError`.

    A link stays, what it leads to is replaced. A device or a pipe is written to: it must not become a file.
    """
    temporary = ""
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(content)
            return
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".fabric-exporter.", delete=False) as file:
            temporary = file.name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), MODE)
        os.replace(temporary, target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
