"""What every request passes before it is answered: the limits, the web configuration in force, authentication."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import structlog
from aiohttp import web

from exporter.web.auth import Authenticator
from exporter.web.webconfig import InForce, WebConfigFile

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

AUTHENTICATED: ContextVar[bool] = ContextVar("authenticated", default=False)
"""Whether who asks has shown a password or a certificate that the web configuration demands or takes; for handlers."""
HEALTH = ("/-/healthy", "/-/ready")
"""Answered at any load: a busy exporter must not look like a dead one."""

log = structlog.get_logger("fabric-exporter")


def line(status: int, text: str, **headers: str) -> web.Response:
    """Return a response of one line of text."""
    return web.Response(status=status, text=f"{text}\n", headers=headers)


class Guard:
    """The application's one middleware, and the headers that all its responses carry."""

    def __init__(self, web_config: WebConfigFile | None, max_requests: int) -> None:
        self._web_config = web_config
        self._max_requests = max_requests
        self._in_flight = 0
        self._authenticator = Authenticator()

    def install(self, app: web.Application) -> None:
        """Put the guard before all handlers of ``app``."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._pass(request, handler)

        app.middlewares.append(guarded)
        app.on_response_prepare.append(self._dress)

    async def _pass(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if self._web_config is None:
                return await self._limited(request, handler)
            return await self._configured(self._web_config.in_force(), request, handler)
        except web.HTTPException:
            raise
        except Exception:
            log.exception("request failed", path=request.path)
            return line(500, "internal error, see the exporter's log")

    async def _limited(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer, unless too many are being answered. Whoever has no password does not count: guesses would keep others out."""
        if self._in_flight >= self._max_requests and request.path not in HEALTH:
            return line(503, f"{self._max_requests} requests are being answered, try again later")
        self._in_flight += 1
        try:
            return await handler(request)
        finally:
            self._in_flight -= 1

    async def _configured(self, in_force: InForce, request: web.Request, handler: Handler) -> web.StreamResponse:
        outdated = in_force.context is not None and _context(request) is not in_force.context
        if outdated and in_force.verifies_clients:
            # Who is behind this connection was checked against what holds no longer. Closing it without an answer makes HTTP
            # clients ask again on a new one (RFC 9110 section 9.2.2), where they show their certificate.
            request.protocol.force_close()
            return line(421, "closed")
        if in_force.bucket is not None and not in_force.bucket.take(time.monotonic()):
            return line(429, "too many requests, see rate_limit in the web configuration")
        if in_force.users and not await self._authenticator.allows(
            in_force.users, request.headers.get("Authorization", "")
        ):
            challenge = 'Basic realm="fabric-exporter", charset="UTF-8"'
            return line(401, "user and password expected", **{"WWW-Authenticate": challenge})
        AUTHENTICATED.set(bool(in_force.users) or _has_certificate(request))
        response = await self._limited(request, handler)
        if outdated:
            response.force_close()
        return response

    async def _dress(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = "fabric-exporter"
        response.headers["X-Content-Type-Options"] = "nosniff"
        if self._web_config is not None:
            response.headers.update(self._web_config.in_force().headers)


def _context(request: web.Request) -> object:
    """Return the TLS context of the request's connection."""
    connection = request.get_extra_info("ssl_object")
    return None if connection is None else connection.context


def _has_certificate(request: web.Request) -> bool:
    """True when the client of the request's connection has shown a certificate, which TLS has verified."""
    connection = request.get_extra_info("ssl_object")
    return connection is not None and bool(connection.getpeercert())
