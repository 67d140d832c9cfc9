"""``ping``: is the exporter of this host alive? For HEALTHCHECK and probes that cannot give a certificate or a password."""

from __future__ import annotations

import argparse
import socket

from exporter.config import Settings
from exporter.web.address import parse_address

ABOUT = "exit with 0 when an exporter listens on this host's address, with 1 when none does"
TIMEOUT_SECONDS = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Ping has no arguments of its own: it knows ``--web.listen-address``."""


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Connect to the first listen address; an address of all interfaces is asked on loopback."""
    address = parse_address(settings.listen[0])
    ...
    return 0
