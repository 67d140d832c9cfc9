"""The HTTP side: what each path answers, from what the rest of the program offers as a :class:`Scraper`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aiohttp import web

from exporter.model import Inventory, Reading
from exporter.web import api, landing
from exporter.web.guard import Guard, line
from exporter.web.listen import Listeners, listen
from exporter.web.negotiate import accepts_gzip, choose_format, gzip
from exporter.web.render import Renderer
from exporter.web.webconfig import WebConfigFile

TIMEOUT_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"
TIMEOUT_SECONDS = 10.0
"""Prometheus' default scrape_timeout."""
TIMEOUT_OFFSET_SECONDS = 0.5
"""What of the timeout is left to rendering and the way back (blackbox_exporter's --timeout-offset)."""
LONGEST_TIMEOUT_SECONDS = 3600.0
THREAD_BYTES = 64 * 1024
"""Above this size a page is compressed in a worker thread: one of 64 KiB takes less than a millisecond."""


class Scraper(Protocol):
    """What the server asks of the program."""

    @property
    def ready(self) -> bool:
        """True once every source has been read."""

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names that ``collect[]`` and ``exclude[]`` take."""

    async def scrape(self, sources: frozenset[str] | None, deadline: float) -> Sequence[Reading]:
        """Return the readings of those sources (None: all). ``deadline`` is the loop's time at which to answer."""

    def inventory(self) -> Inventory:
        """Return what the last discovery found."""

    async def errors(self) -> Sequence[Mapping[str, Any]] | None:
        """Return the latest errors that logs tell of, None when none are followed. Raises TimeoutError."""


class Pages:
    """The handlers, one per path."""

    def __init__(self, scraper: Scraper, telemetry_path: str) -> None:
        self._scraper = scraper
        self._telemetry_path = telemetry_path
        self._renderer = Renderer()

    def install(self, app: web.Application) -> None:
        """Add the paths to ``app``, each for GET and HEAD."""
        app.router.add_get(self._telemetry_path, self.metrics)
        app.router.add_get("/-/healthy", self.healthy)
        app.router.add_get("/-/ready", self.ready)
        app.router.add_get("/api/v1/evidence", self.evidence)
        if self._telemetry_path != "/":
            app.router.add_get("/", self.landing)

    async def metrics(self, request: web.Request) -> web.Response:
        """Read the sources and answer with their readings."""
        collect, exclude = request.query.getall("collect[]", []), request.query.getall("exclude[]", [])
        known = frozenset(self._scraper.source_names)
        if unknown := [name for name in (*collect, *exclude) if name not in known]:
            return line(400, f"unknown source {unknown[0]!r}, expected one of {', '.join(sorted(known))}")
        sources = frozenset(collect or known) - frozenset(exclude) if collect or exclude else None

        seconds = answer_within(request.headers.get(TIMEOUT_HEADER, ""))
        readings = await self._scraper.scrape(sources, asyncio.get_running_loop().time() + seconds)

        openmetrics, content_type = choose_format(request.headers.get("Accept", ""))
        page = self._renderer.render(readings, openmetrics=openmetrics)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if accepts_gzip(request.headers.get("Accept-Encoding", "")):
            page = gzip(page) if len(page) < THREAD_BYTES else await asyncio.to_thread(gzip, page)
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=page, headers=headers)

    async def evidence(self, request: web.Request) -> web.Response:
        """Tell the latest errors that logs tell of."""
        try:
            errors = await self._scraper.errors()
        except TimeoutError:
            return line(503, "logs are being taken over, try again later")
        return web.json_response(api.evidence(errors, trusted=api.is_trusted(request)))

    async def healthy(self, request: web.Request) -> web.Response:
        """Say that the event loop runs."""
        return line(200, "healthy")

    async def ready(self, request: web.Request) -> web.Response:
        """Say whether every source has been read once."""
        return (
            line(200, "ready")
            if self._scraper.ready
            else line(503, "not ready, sources are being read for the first time")
        )

    async def landing(self, request: web.Request) -> web.Response:
        """Answer a person who looks what this is."""
        page = landing.page(self._scraper.inventory(), self._telemetry_path, ready=self._scraper.ready)
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": landing.POLICY}
        # Names of interfaces may be any bytes; what is no UTF-8 among them is shown as "?".
        return web.Response(body=page.encode("utf-8", "replace"), headers=headers)


def answer_within(header: str) -> float:
    """Return the seconds in which to answer a scrape with that timeout header; one that makes no sense is disregarded."""
    try:
        seconds = float(header)
    except ValueError:
        seconds = TIMEOUT_SECONDS
    if not 0 < seconds <= LONGEST_TIMEOUT_SECONDS:
        seconds = TIMEOUT_SECONDS
    # Of a timeout under a second, half is left for the way back.
    return max(seconds - TIMEOUT_OFFSET_SECONDS, seconds / 2)


def application(
    scraper: Scraper, web_config: WebConfigFile | None, *, telemetry_path: str = "/metrics", max_requests: int = 40
) -> web.Application:
    """Return the application."""
    app = web.Application()
    Guard(web_config, max_requests).install(app)
    Pages(scraper, telemetry_path).install(app)
    return app


async def serve(
    scraper: Scraper,
    addresses: Sequence[str],
    web_config: WebConfigFile | None,
    *,
    telemetry_path: str = "/metrics",
    max_requests: int = 40,
) -> Listeners:
    """Serve on those addresses until the returned listeners are closed.

    Addresses are ``:10073`` (all of IPv6 and IPv4), ``0.0.0.0:10073``, ``[::1]:10073``, ``host:10073``, ``unix:/run/x.sock``;
    port 0 takes a free one. Raises :class:`UsageError` in one line for an address that cannot be listened on; none is then.
    """
    app = application(scraper, web_config, telemetry_path=telemetry_path, max_requests=max_requests)
    return await listen(app, addresses, web_config)
