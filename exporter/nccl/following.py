"""The follower of logs as a background task of the program: made when there are logs to follow, and not before."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from exporter.model import Inventory
from exporter.nccl.globs import LogRule
from exporter.storage import Storage

if TYPE_CHECKING:
    from exporter.nccl.follow import Follower

STOP_SECONDS = 5.0
"""How long the thread is waited for when the program ends. It may wait for a file system that does not answer."""
GIVE_WAY_SECONDS = 0.05
"""How long reading waits for a scrape between two blocks, at most: a scrape may take long, and logs grow meanwhile."""


class Following:
    """Used in one event loop. ``follower`` is None as long as nothing is configured."""

    def __init__(self, storage: Storage, inventory: Callable[[], Inventory]) -> None:
        self.follower: Follower | None = None
        self._storage, self._inventory = storage, inventory
        self._rules: tuple[LogRule, ...] = ()
        self._configured = asyncio.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._scrapes = 0

    def configure(self, rules: Iterable[LogRule]) -> None:
        """Follow the logs of these rules, and of no others, from the next look on."""
        self._rules = tuple(rules)
        if self.follower is not None:
            self.follower.configure(self._rules)
        elif self._rules:
            self._configured.set()

    def scrape_begins(self) -> None:
        """Have reading give way."""
        self._scrapes += 1
        self._idle.clear()

    def scrape_ends(self) -> None:
        """Have reading go on, when it was the last one."""
        self._scrapes -= 1
        if not self._scrapes:
            self._idle.set()

    async def errors(self, patience: float) -> list[dict[str, Any]] | None:
        """Return the latest errors, None when no logs are followed. Raises TimeoutError when a commit takes that long."""
        follower = self.follower
        if follower is None:
            return None
        from exporter.nccl.recent import recent_errors

        def ask() -> list[dict[str, Any]]:
            with follower.committed(patience) as committed:
                return recent_errors(committed)

        return await asyncio.to_thread(ask)

    async def run(self) -> None:
        """Follow until cancelled. Raises what ends the thread."""
        await self._configured.wait()
        if self.follower is None:
            from exporter.nccl.follow import Follower

            self.follower = Follower(
                self._rules,
                self._storage,
                inventory=self._inventory,
                hostname=os.uname().nodename,
                give_way=lambda: self._idle.wait(GIVE_WAY_SECONDS),
            )
        follower, stop = self.follower, threading.Event()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def settle(fault: BaseException | None) -> None:
            if ended.done():
                return
            if fault is None:
                ended.set_result(None)
            else:
                ended.set_exception(fault)

        def work() -> None:
            fault = None
            try:
                follower.run(stop)
            except BaseException as error:
                fault = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, fault)

        threading.Thread(target=work, name="fabric-nccl", daemon=True).start()
        try:
            await asyncio.shield(ended)
        finally:
            stop.set()
            if not ended.done():
                await asyncio.wait([ended], timeout=STOP_SECONDS)
