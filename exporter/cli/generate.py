"""``generate``: write the documents that come from the catalogue and the drivers' tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from exporter.config import Settings

ABOUT = "write docs/metrics.md and docs/drivers.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--root", metavar="DIR", default=".", help="folder of the project (default: here)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a file is not up to date")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write the files, or say which are stale."""
    from exporter.generate import docs

    root = Path(arguments.root)
    if arguments.check:
        stale = docs.check(root)
        for name in stale:
            print(f"{name}: not up to date, run fabric-exporter generate", file=sys.stderr)
        return 1 if stale else 0
    for path in docs.write(root):
        print(path)
    return 0
