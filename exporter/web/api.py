"""``/api/v1/evidence``: the latest errors that NCCL's logs tell of, as JSON (docs/api.md)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from exporter.web.guard import AUTHENTICATED

PRIVATE = ("path", "host", "pid", "peer", "local_gid", "remote_gid", "line")
"""What of an error is not for everybody."""
NAMED = ("completion", "event")
"""Kinds of errors whose ``what`` is the name of a status or an event."""
FORWARDED = ("Forwarded", "X-Forwarded-For", "Via")
"""Headers of a proxy: whoever is behind it is not on this host."""


def is_trusted(request: web.Request) -> bool:
    """True for who has shown a password or a certificate, and for who is on this host."""
    if AUTHENTICATED.get():
        return True
    if any(name in request.headers for name in FORWARDED):
        return False
    return is_loopback(request.transport.get_extra_info("peername") if request.transport is not None else None)


def is_loopback(peer: object) -> bool:
    """True for the peer's address of a connection from this host: of 127.0.0.0/8, ::1, or of a Unix socket."""
    if not isinstance(peer, tuple):
        return isinstance(peer, str | bytes)
    address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def evidence(errors: Sequence[Mapping[str, Any]] | None, *, trusted: bool) -> dict[str, Any]:
    """Return the answer. ``errors`` is None when no logs are followed; who is not trusted is not told of hosts and peers."""
    told = [error if trusted else redacted(error) for error in errors or ()]
    return {"following": errors is not None, "redacted": not trusted, "errors": told}


def redacted(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error without what names hosts, peers, people or paths. What is no name of a fixed set may be a line's text."""
    kept = {key: value for key, value in error.items() if key not in PRIVATE}
    return kept if error["kind"] in NAMED else {**kept, "what": None}
