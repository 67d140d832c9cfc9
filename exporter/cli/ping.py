"""``ping``: does the exporter of this host answer? For HEALTHCHECK and probes, which have no certificate and no password."""

from __future__ import annotations

import argparse
import socket
import ssl
import sys

from exporter.config import Settings

ABOUT = "exit with 0 when the exporter at --web.listen-address answers, with 1 when it does not"
TIMEOUT_SECONDS = 3.0
EVERYWHERE = ("", "0.0.0.0", "[::]")  # noqa: S104 - such an address is asked on loopback, not listened on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Ping has no arguments of its own."""


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Ask the first listen address. Any answer is a sign of life, a refusal without a password too."""
    address = settings.listen[0]
    try:
        answered = ask(address, tls=bool(settings.web_config_file))
    except (OSError, ValueError) as error:
        print(f"{address}: {error}", file=sys.stderr)
        return 1
    if not answered:
        print(f"{address}: listens and does not answer", file=sys.stderr)
    return 0 if answered else 1


def ask(address: str, *, tls: bool) -> bool:
    """Return True when the server answers a request, or a TLS handshake where it may have TLS.

    Raises :class:`OSError` when nothing listens or nothing comes in time.
    """
    with connect(address) as plain:
        plain.settimeout(TIMEOUT_SECONDS)
        if not tls:
            return answers(plain)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # asked is whether it lives, not who it is
        try:
            with context.wrap_socket(plain):
                return True
        except ssl.SSLError as error:
            # A web configuration without TLS, or a server that wants a certificate: both have answered.
            return error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE") or "ALERT" in str(
                error.reason
            )


def answers(connection: socket.socket) -> bool:
    """Return True when the server answers HTTP."""
    connection.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return connection.recv(16).startswith(b"HTTP/1.")


def connect(address: str) -> socket.socket:
    """Return a connection to a listen address; one of all interfaces is reached on loopback."""
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(TIMEOUT_SECONDS)
            connection.connect(address.removeprefix("unix:"))
        except OSError:
            connection.close()
            raise
        return connection
    host, _, port = address.rpartition(":")
    host = "localhost" if host in EVERYWHERE else host.strip("[]")
    return socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
