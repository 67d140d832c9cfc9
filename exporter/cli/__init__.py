"""The command line: Prometheus style flags, each with an environment twin, and verbs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from exporter import __version__
from exporter.cli import capture, generate, nccl, once, ping, serve
from exporter.cli.flags import add_flags, settings_of
from exporter.config import Settings
from exporter.errors import FabricError, UsageError

PROGRAM = "fabric-exporter"
USAGE_STATUS = 2


class Verb(Protocol):
    """What a module of this package offers."""

    ABOUT: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's own arguments."""

    def run(self, arguments: argparse.Namespace, settings: Settings) -> int:
        """Do it; return the exit status."""


VERBS: dict[str, Verb] = {"once": once, "capture": capture, "nccl": nccl, "ping": ping, "generate": generate}
"""What the program does besides serving."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {PROGRAM} --help)")


def parser() -> Parser:
    """Return the parser of all verbs and flags."""
    top = Parser(
        prog=PROGRAM,
        description="Prometheus exporter for the health of a GPU cluster's network. Without a verb it serves.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    add_flags(top)
    verbs = top.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for name, module in VERBS.items():
        verb = verbs.add_parser(name, help=module.ABOUT, description=module.ABOUT, allow_abbrev=False)
        module.add_arguments(verb)
        add_flags(verb, inherited=True)
    return top


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> int:
    """Run the command line; return the exit status. A mistake of the user is one line and status 2."""
    try:
        parsed = parser().parse_args(arguments)
        settings = settings_of(parsed, os.environ if environment is None else environment)
        run = VERBS[parsed.verb].run if parsed.verb else serve.run
        return run(parsed, settings)
    except FabricError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return USAGE_STATUS
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
