"""Listening sockets: from an address as it is written to a server that can be closed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import re
import socket
import stat
from collections.abc import Sequence
from typing import cast

from aiohttp import http_exceptions, web

from exporter.errors import UsageError
from exporter.web.tls import LiveContext
from exporter.web.webconfig import WebConfigFile

BACKLOG = 128
ACCEPTED_AT_ONCE = 1
"""What asyncio calls backlog is also how often it tries to accept before it looks at anything else. Without free descriptors each
try fails, is logged, and schedules the next round (CPython 3.11): thousands of log lines a second, where one will do."""
KEEPALIVE_SECONDS = 300.0
"""Longer than any usual scrape interval, so that a scraper need not shake hands each time."""
HANDSHAKE_SECONDS = 10.0
CLOSE_SECONDS = 5.0
"""How long requests that are being answered may take when the program ends."""

PROBE_SECONDS = 1.0

FLAG = "--web.listen-address"

_TCP = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]/]*)):(?P<port>\d{1,5})", re.ASCII)


class Listeners:
    """The sockets that are served, until :meth:`close`."""

    def __init__(self, addresses: tuple[str, ...], opened: contextlib.AsyncExitStack) -> None:
        self.addresses = addresses
        """Where it listens, as URLs (``unix:`` and the path for a Unix socket)."""
        self._opened = opened

    async def close(self) -> None:
        """Stop listening first, then let the requests that are being answered end within a few seconds."""
        await self._opened.aclose()


async def listen(app: web.Application, addresses: Sequence[str], web_config: WebConfigFile | None) -> Listeners:
    """Serve ``app`` on every address. Raises :class:`UsageError` for the first that cannot be had; none is served then."""
    async with contextlib.AsyncExitStack() as opened:
        sockets = [sock for address in addresses for sock in await _open(address, opened)]
        secure = web_config is not None and web_config.in_force().context is not None
        context = LiveContext.following(web_config.context) if web_config is not None and secure else None
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_protocol_log(),
            keepalive_timeout=KEEPALIVE_SECONDS,
            shutdown_timeout=CLOSE_SECONDS,
        )
        opened.push_async_callback(runner.cleanup)
        await runner.setup()
        for sock in sockets:
            server = await asyncio.get_running_loop().create_server(
                cast("web.Server", runner.server),
                sock=sock,
                backlog=ACCEPTED_AT_ONCE,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
            )
            sock.listen(BACKLOG)
            opened.callback(server.close)
        # Undone in reverse: no new connections, then no more requests, then the sockets and their files.
        return Listeners(tuple(_url(sock, secure=secure) for sock in sockets), opened.pop_all())


async def _open(address: str, opened: contextlib.AsyncExitStack) -> list[socket.socket]:
    """Return the listening sockets of one address: several when a host name has several addresses."""
    try:
        if address.startswith("unix:") and address != "unix:":
            return [_unix(address.removeprefix("unix:"), opened)]
        match = _TCP.fullmatch(address)
        if match is None or int(match["port"]) > 65535:
            raise UsageError(f"{FLAG}: expected host:port, :port, [IPv6]:port or unix:/path, found {address!r}")
        host, port = match["ipv6"] or match["host"], int(match["port"])
        if not host and socket.has_dualstack_ipv6():
            everywhere = socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
            return [opened.enter_context(everywhere)]
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return [
            opened.enter_context(socket.create_server(where, family=family, backlog=BACKLOG))
            for family, where in dict.fromkeys((family, where) for family, _, _, _, where in found)
        ]
    except UnicodeError:
        raise UsageError(f"{FLAG}: {address}: is no name of a host") from None
    except socket.gaierror as error:
        raise UsageError(f"{FLAG}: {address}: {error.strerror}") from None
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise UsageError(f"{FLAG}: {address}: {reason}") from None


def _unix(path: str, opened: contextlib.AsyncExitStack) -> socket.socket:
    """Return a socket that listens at ``path``, where a socket that nobody listens on any more is replaced."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise UsageError(f"{FLAG}: unix:{path}: is there and is no socket")
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(PROBE_SECONDS)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise OSError(errno.EADDRINUSE, "")
    sock = opened.enter_context(socket.socket(socket.AF_UNIX))
    sock.bind(path)
    opened.callback(_remove, path, _inode(path))
    sock.listen(BACKLOG)
    return sock


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove(path: str, inode: tuple[int, int] | None) -> None:
    """Remove the file if it is still the one that was made: it may be another program's by now."""
    if _inode(path) == inode:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _url(sock: socket.socket, *, secure: bool) -> str:
    if sock.family == socket.AF_UNIX:
        return f"unix:{sock.getsockname()}"
    host, port = sock.getsockname()[:2]
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _protocol_log() -> logging.Logger:
    """Return the logger for aiohttp's protocol. What a client sends that is not HTTP is its own affair, not an error of ours."""
    logger = logging.getLogger("fabric-exporter.http")
    logger.addFilter(_not_the_clients_fault)
    return logger


def _not_the_clients_fault(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], http_exceptions.HttpProcessingError))
