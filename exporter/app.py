"""Builds everything for one host: kernel, sources, sampler, and what is known of the exporter itself."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
from prometheus_client import ProcessCollector

from exporter import __version__, config
from exporter.catalogue import itself
from exporter.catalogue.declare import counter, gauge
from exporter.catalogue.ports import COUNTER_RESETS
from exporter.config import Settings
from exporter.discovery import Rules, discover
from exporter.errors import FabricError, UsageError
from exporter.kernel import Kernel
from exporter.kernel.live import open_kernel
from exporter.model import Inventory, Metric, Reading, Series
from exporter.nccl.following import Following
from exporter.patience import Patience
from exporter.sampler import Sampler
from exporter.sources import SOURCES
from exporter.sources.base import Environment, Shapes, series
from exporter.sources.nccl import PATIENCE_SECONDS
from exporter.storage import Storage

DISCOVERY_SECONDS = 30.0
SETTLE_SECONDS = 0.3
"""How long link events are gathered before devices are looked for: one change makes several events."""
DISCOVERY_SHARE = 0.05
"""What of the time discovery may take where link events never end, as on hosts that start and stop containers all the time."""
FIRST_READ_SECONDS = 9.5
REVISION = os.environ.get("FABRIC_EXPORTER_REVISION", "")
"""The commit that a container image was built from, told by its Dockerfile."""

log = structlog.get_logger("fabric-exporter")


def open_kernel_of(settings: Settings) -> Kernel:
    """Return the captured kernel when there is one to serve from, else the live one.

    Raises :class:`CaptureError`, and :class:`UsageError` when sysfs is not where it is said to be.
    """
    if settings.capture:
        from exporter.kernel.captured import load_capture

        capture = load_capture(settings.capture)
        for problem in capture.problems:
            log.warning("capture", problem=problem)
        return capture.kernel
    if not os.path.isdir(settings.sysfs):
        raise UsageError(f"--path.sysfs: {settings.sysfs}: no such folder, expected where sysfs is mounted")
    return open_kernel(settings.sysfs, settings.procfs)


class Exporter:
    """The sources of one host with what is known of them. Used in one event loop."""

    def __init__(
        self, kernel: Kernel, settings: Settings, rules: Rules | None = None, *, storage: Storage | None = None
    ) -> None:
        self.kernel = kernel
        self.settings = settings
        self.rules = rules if rules is not None else config.rules(settings)
        self.environment = Environment(
            kernel=kernel,
            profile=settings.profile,
            raw=settings.raw.fullmatch if settings.raw is not None else None,
            clock=time.monotonic,
        )
        self.storage = storage
        log_rules = config.log_rules(settings)
        if storage is not None and kernel.live:
            self.environment.following = Following(storage, self.inventory)
            self.environment.following.configure(log_rules)
        sources = [source(self.environment) for source in SOURCES if source.name not in settings.disabled]
        for source in sources:
            if source.name == "ethtool":
                source.max_age = settings.ethtool_max_age
        self.sampler = Sampler(sources)
        self.ready = False
        self.restarts: dict[str, int] = {"discovery": 0, "links": 0, "logs": 0}
        self.reload_success = True
        self.web_config_success: Callable[[], bool] = lambda: True
        self.reload_timestamp = time.time()
        self.discovered_timestamp = 0.0
        self.discovery_duration = 0.0
        self._shapes = Shapes()
        self._process = ProcessCollector(registry=None)
        self._patience = Patience("fabric-discovery")
        self._wake = asyncio.Event()
        self._read_once = asyncio.Event()

    # What the web server asks

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names of the enabled sources."""
        return self.sampler.source_names

    def inventory(self) -> Inventory:
        """Return what the last discovery found."""
        return self.sampler.inventory

    async def scrape(self, sources: frozenset[str] | None, deadline: float) -> Sequence[Reading]:
        """Return all readings, the exporter's own included. ``deadline`` is the loop's time at which to answer."""
        following = self.environment.following
        if following is not None:
            following.scrape_begins()
        try:
            readings = await self.sampler.sample(sources, deadline)
        finally:
            if following is not None:
                following.scrape_ends()
        if self.environment.outdated:
            self.environment.outdated = False
            self._wake.set()
        return [*readings, *self.itself(sources), *self.process()]

    async def errors(self) -> Sequence[Mapping[str, Any]] | None:
        """Return the latest errors that logs tell of, None when none are followed. Raises TimeoutError."""
        following = self.environment.following
        return await following.errors(PATIENCE_SECONDS) if following is not None else None

    # Discovery

    async def discover(self) -> None:
        """Look for devices and interfaces; what the kernel does not answer is left out, or as it was known before.

        Raises :class:`KernelError` when too much hangs (the old inventory stays in use), and whatever a fault of ours raises.
        """
        began, previous = time.monotonic(), self.sampler.inventory
        rules = self.rules
        inventory = await self._patience.run(self.kernel, lambda kernel: discover(kernel, rules, previous))
        self.sampler.adopt(inventory)
        self.discovered_timestamp = time.time()
        self.discovery_duration = time.monotonic() - began

    async def first_read(self) -> None:
        """Discover, and read every source once: which source serves what is known after that."""
        await self.discover()
        await self.sampler.sample(None, time.monotonic() + FIRST_READ_SECONDS)
        # What exists by now stays: the garbage collector need not look at it again.
        gc.collect()
        gc.freeze()
        self.ready = True
        self._read_once.set()
        inventory = self.inventory()
        log.info("ready", ports=len(inventory.ports), netdevs=len(inventory.netdevs), gpus=len(inventory.gpus))

    async def rediscover(self) -> None:
        """Discover on link events and every half minute, for ever."""
        while True:
            if not self.ready:
                await self.first_read()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), DISCOVERY_SECONDS)
                await asyncio.sleep(settle(self.discovery_duration))
            self._wake.clear()
            await self.discover()

    async def follow_links(self) -> None:
        """Note when links go down, and have devices looked for when something changes."""
        async for event in self.kernel.links.monitor():
            if event.kind == "carrier" and event.carrier is False:
                self.environment.last_down[event.ifindex] = time.time()
            if event.kind == "deleted":
                self.environment.last_down.pop(event.ifindex, None)
            self._wake.set()
        await asyncio.Event().wait()

    async def follow_logs(self) -> None:
        """Follow the logs that are configured, once it is known which devices their lines may speak of."""
        await self._read_once.wait()
        if self.environment.following is not None:
            await self.environment.following.run()
        await asyncio.Event().wait()

    def reload(self) -> None:
        """Read the configuration file again. A bad one is told, counted, and the old one kept."""
        try:
            rules, log_rules = config.rules(self.settings), config.log_rules(self.settings)
        except FabricError as error:
            self.reload_success = False
            log.warning("reload failed, keeping the old configuration", error=str(error))
            return
        self.rules = rules
        if self.environment.following is not None:
            self.environment.following.configure(log_rules)
        self.reload_success = True
        self.reload_timestamp = time.time()
        log.info("configuration reloaded")
        self._wake.set()

    # The exporter about itself

    def itself(self, sources: frozenset[str] | None = None) -> list[Reading]:
        """Return the readings about those sources (None: all) and about the exporter."""
        sampler = self.sampler
        pairs: list[tuple[Series, int | float]] = []

        def add(metric: Metric, value: int | float, *labels: tuple[str, str]) -> None:
            pairs.append((series(metric, (), *labels), value))

        for lane in sampler.lanes:
            if sources is not None and lane.name not in sources:
                continue
            source = ("source", lane.name)
            add(itself.SOURCE_SUCCESS, int(lane.success), source)
            add(itself.SOURCE_DURATION, lane.duration, source)
            if lane.last_read_timestamp is not None:
                add(itself.SOURCE_LAST_READ, lane.last_read_timestamp, source)
            add(itself.SOURCE_QUARANTINED, len(lane.quarantined), source)
            add(itself.SOURCE_ERRORS, lane.errors, source)
            add(itself.SOURCE_DROPPED, sampler.dropped(lane.name), source)
        stuck = sum(lane.stuck_workers() for lane in sampler.lanes)
        add(itself.STUCK_WORKERS, stuck + self._patience.stuck)
        for labels, counts in list(self.environment.resets.counts.items()):
            pairs.extend((series(COUNTER_RESETS, labels, ("kind", kind)), count) for kind, count in counts.items())
        for task, restarts in self.restarts.items():
            add(itself.TASK_RESTARTS, restarts, ("task", task))
        add(itself.CONFIG_SUCCESS, int(self.reload_success and self.web_config_success()))
        add(itself.CONFIG_TIMESTAMP, self.reload_timestamp)
        if self.storage is not None:
            add(itself.STORAGE_PERSISTENT, int(self.storage.kept))
            add(itself.STORAGE_ERRORS, self.storage.errors)
        add(itself.DISCOVERY_TIMESTAMP, self.discovered_timestamp)
        add(itself.DISCOVERY_DURATION, self.discovery_duration)
        if self.inventory().rdma_namespaces:
            add(itself.RDMA_NAMESPACES, int(self.inventory().rdma_namespaces == "shared"))
        built = {"version": __version__, "revision": REVISION, "python_version": platform.python_version()}
        add(itself.BUILD_INFO, 1, *(pair for pair in built.items() if pair[1]))
        return self._shapes.reading(pairs)

    def process(self) -> list[Reading]:
        """Return prometheus_client's ``process_*`` metrics of this process."""
        pairs = []
        for family in self._process.collect():
            for sample in family.samples:
                metric = PROCESS.get(sample.name)
                if metric is None:
                    declare = counter if family.type == "counter" else gauge
                    metric = PROCESS[sample.name] = declare(sample.name, (), family.documentation)
                pairs.append((Series(metric, ()), sample.value))
        return self._shapes.reading(pairs)


PROCESS: dict[str, Metric] = {}
"""The metrics of prometheus_client's process collector, by sample name, as they are met."""


def settle(duration: float) -> float:
    """Return how long to gather link events, in seconds, when the last discovery took ``duration``."""
    return min(max(SETTLE_SECONDS, duration / DISCOVERY_SHARE), DISCOVERY_SECONDS)


async def once(settings: Settings) -> Sequence[Reading]:
    """Return one exposition's readings, without ``process_*`` (node_exporter's textfile collector refuses duplicates)."""
    exporter = Exporter(open_kernel_of(settings), settings)
    await exporter.discover()
    readings = await exporter.sampler.sample(None, time.monotonic() + FIRST_READ_SECONDS)
    return [*readings, *exporter.itself()]
