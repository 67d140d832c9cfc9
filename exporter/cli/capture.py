"""``capture``: save what the exporter reads on this host, addresses and names masked, for others to look at or serve from."""

from __future__ import annotations

import argparse
import asyncio
import re
import socket
import time
from dataclasses import replace
from pathlib import Path

from exporter import app, logs
from exporter.capture import write_capture
from exporter.config import Settings
from exporter.kernel import Kernel

ABOUT = "save what is read on this host in a folder, addresses, serial numbers and host names masked"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("folder", metavar="DIR", help="a new or an empty folder")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the capture and say in one line what it holds and what was masked."""
    logs.set_up(settings.log_level, settings.log_format)
    everything = replace(settings, profile="full", raw=re.compile(""))

    def exercise(kernel: Kernel) -> None:
        asyncio.run(read_everything(kernel, everything))

    folder = Path(arguments.folder)
    kernel = app.open_kernel_of(settings)
    summary = write_capture(kernel, exercise, folder, host_names=(socket.gethostname(),))
    print(f"{folder}: {summary}")
    return 0


async def read_everything(kernel: Kernel, settings: Settings) -> None:
    """Discover what the host has and read every source once."""
    exporter = app.Exporter(kernel, settings)
    await exporter.discover()
    await exporter.sampler.sample(None, time.monotonic() + app.FIRST_READ_SECONDS)
