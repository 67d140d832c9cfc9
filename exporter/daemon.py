"""The daemon: listens, supervises the background tasks, reloads and ends."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from exporter import __version__
from exporter.app import Exporter, open_kernel_of
from exporter.config import Settings
from exporter.errors import FabricError
from exporter.storage import Storage
from exporter.web.server import serve
from exporter.web.webconfig import load_web_config

RESTART_SECONDS = 1.0
LONGEST_RESTART_SECONDS = 60.0

log = structlog.get_logger("fabric-exporter")


async def supervise(name: str, task: Callable[[], Awaitable[None]], restarts: dict[str, int]) -> None:
    """Run a background task for ever: one that fails is told, counted and started again with back-off."""
    pause = RESTART_SECONDS
    while True:
        began = time.monotonic()
        try:
            await task()
        except FabricError as error:
            restarts[name] = restarts.get(name, 0) + 1
            log.error("background task failed", task=name, error=str(error))  # noqa: TRY400 - told in one line
        except Exception as error:
            restarts[name] = restarts.get(name, 0) + 1
            log.exception("background task failed", task=name, error=str(error))
        if time.monotonic() - began > LONGEST_RESTART_SECONDS:
            pause = RESTART_SECONDS
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_RESTART_SECONDS)


def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log in one line what goes wrong in the event loop itself: it has no free file descriptor for a connection, mostly."""
    error = context.get("exception")
    fault = error if isinstance(error, Exception) and not isinstance(error, OSError) else None
    log.error("event loop", problem=context["message"], error=str(error or ""), exc_info=fault)


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises :class:`FabricError` for what the operator must mend first."""
    web_config = load_web_config(settings.web_config_file) if settings.web_config_file else None
    storage = Storage(settings.storage_path)
    if settings.storage_path:
        storage.submit(lambda connection: None)  # so that it is known from the start whether it can be used
    exporter = Exporter(open_kernel_of(settings), settings, storage=storage)
    if web_config is not None:
        exporter.web_config_success = lambda: web_config.success
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(tell)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, exporter.reload)
    listeners = await serve(
        exporter,
        settings.listen,
        web_config,
        telemetry_path=settings.telemetry_path,
        max_requests=settings.max_requests,
    )
    try:
        async with asyncio.TaskGroup() as group:
            log.info("serving", version=__version__, addresses=",".join(listeners.addresses))
            children = [
                group.create_task(supervise("discovery", exporter.rediscover, exporter.restarts)),
                group.create_task(supervise("links", exporter.follow_links, exporter.restarts)),
                group.create_task(supervise("logs", exporter.follow_logs, exporter.restarts)),
            ]
            await stop.wait()
            log.info("stopping")
            for child in children:
                child.cancel()
    finally:
        await listeners.close()
        await asyncio.to_thread(storage.close)
