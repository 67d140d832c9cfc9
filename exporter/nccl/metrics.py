"""The metrics of NCCL's logs: gauges of the communicators that live, counters of the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from exporter.catalogue import nccl
from exporter.model import Inventory, Reading, Series
from exporter.nccl.evidence import Evidence
from exporter.nccl.facts import FAILURES
from exporter.nccl.places import UNKNOWN, Port, local, ports_of
from exporter.nccl.state import Communicator, Process
from exporter.nccl.totals import OTHER, STATUSES, Totals
from exporter.nccl.verdicts import gdr_level
from exporter.sources.base import Shapes, series

MOST_LOGS = 50
"""Values of ``log``; the rest is ``other``."""
MOST_SERIES = 500
SILENT_SECONDS = 900.0
EXPECTED_EVENTS = ("port_error", "device_fatal", "cq_error", "qp_fatal")
"""Events that every port begins with at 0, so that its first is an increase."""
LINK_LAYERS = ("InfiniBand", "Ethernet", "")
"""Ports of which NCCL's verbs transport can speak; EFA has a link layer of its own."""

Samples = Iterator[tuple[Series, int | float]]
ChannelCounts = dict[tuple[str, Port, str], int]


class LogInfo(NamedTuple):
    """What is known of a log's file.

    ``lag`` is bytes not read yet, ``last_line`` when its last line of NCCL was written or read (0: none). ``alive`` says
    whether what writes it still runs; None when that is not known.
    """

    lag: int = 0
    last_line: float = 0.0
    alive: bool | None = None


class Log(NamedTuple):
    """One log: its key (the value of ``log``), its evidence and its file."""

    key: str
    evidence: Evidence
    info: LogInfo


class Living(NamedTuple):
    """A communicator that lives, with its process. ``here`` is False when it may be another host's."""

    process: Process
    communicator: Communicator
    here: bool


def readings(
    logs: Iterable[tuple[str, Evidence, LogInfo]],
    inventory: Inventory,
    now: float,
    shapes: Shapes,
    *,
    totals: Totals,
    hostname: str = "",
    gpu_processes: tuple[int, int] | None = None,
) -> list[Reading]:
    """Return all readings. ``gpu_processes`` are the processes that hold a GPU, with and without evidence (None: not known)."""
    kept = bounded([Log(*log) for log in logs])
    samples: list[tuple[Series, int | float]] = []
    for sample in (
        *counters(totals, inventory),
        *files(kept, gpu_processes),
        *gauges(kept, inventory, now, hostname),
    ):
        if len(samples) < MOST_SERIES:
            samples.append(sample)
    return shapes.reading(samples)


def bounded(logs: Sequence[Log]) -> list[Log]:
    """Return the logs, newest first, with the keys of the oldest replaced by ``other`` when there are too many."""
    logs = sorted(logs, key=lambda log: -log.info.last_line)
    keys = list(dict.fromkeys(log.key for log in logs))
    if len(keys) <= MOST_LOGS:
        return list(logs)
    named = set(keys[: MOST_LOGS - 1])
    return [log if log.key in named else log._replace(key=OTHER) for log in logs]


def counters(totals: Totals, inventory: Inventory) -> Samples:
    """Yield the counters of the host, those of its ports from 0 on."""
    ports = [
        Port(one.device, str(one.port))
        for one in (*inventory.ports, *inventory.missing)
        if one.link_layer in LINK_LAYERS
    ] + [UNKNOWN]
    statuses = (*map(str, STATUSES), OTHER)
    for port, status in dict.fromkeys(
        [*((port, status) for port in ports for status in statuses), *totals.completions]
    ):
        count = totals.completions.get((port, status))
        yield series(nccl.COMPLETION_ERRORS, _port(port), ("status", status)), count.count if count else 0
        if count:
            yield series(nccl.COMPLETION_ERROR_LAST, _port(port), ("status", status)), count.last
    for port in dict.fromkeys([*ports, *totals.flushes]):
        count = totals.flushes.get(port)
        yield series(nccl.FLUSH_ERRORS, _port(port)), count.count if count else 0
    for port, event in dict.fromkeys([*((port, event) for port in ports for event in EXPECTED_EVENTS), *totals.events]):
        count = totals.events.get((port, event))
        yield series(nccl.ASYNC_EVENTS, _port(port), ("event", event)), count.count if count else 0
        if count:
            yield series(nccl.ASYNC_EVENT_LAST, _port(port), ("event", event)), count.last
    for kind in FAILURES:
        count = totals.failures.get(kind)
        yield series(nccl.FAILURES, (("class", kind),)), count.count if count else 0
        if count:
            yield series(nccl.FAILURE_LAST, (("class", kind),)), count.last
    yield series(nccl.LOG_BYTES, ()), totals.log_bytes


def files(logs: Sequence[Log], gpu_processes: tuple[int, int] | None) -> Samples:
    """Yield what is known of the files."""
    if gpu_processes is not None:
        for value, count in zip(("yes", "no"), gpu_processes, strict=True):
            yield series(nccl.GPU_PROCESSES, (("evidence", value),)), count
    for key, group in _by_key(logs):
        yield series(nccl.LOG_LAG, (("log", key),)), sum(log.info.lag for log in group)
        last = max(log.info.last_line for log in group)
        if last:
            yield series(nccl.LOG_LAST_LINE, (("log", key),)), last


def gauges(logs: Sequence[Log], inventory: Inventory, now: float, hostname: str) -> Samples:
    """Yield what the living communicators of this host use."""
    newest = newest_by_gpu(logs, hostname)
    alive = {id(log.evidence): living(log, newest, now, hostname) for log in logs}
    for key, group in _by_key([log for log in logs if alive[id(log.evidence)]]):
        label = ("log", key)
        counts: ChannelCounts = {}
        known: set[tuple[str, str, str]] = set()
        levels: set[str] = set()
        fallback = False
        for log in group:
            here = alive[id(log.evidence)]
            for way, count in channels(here, inventory).items():
                counts[way] = counts.get(way, 0) + count
            fallback |= falls_back(here)
            version, plugin = _version(log.evidence), _plugin(log.evidence)
            known |= {(version, process.network, plugin) for process, *_ in here}
            levels |= {gdr_level(value) for value in log.evidence.settings.get("NCCL_NET_GDR_LEVEL", ())} - {""}
        yield series(nccl.SOCKET_FALLBACK, (label,)), int(fallback and bool(inventory.ports))
        for version, network, plugin in sorted(known):
            yield series(nccl.INFO, (label, ("version", version), ("network", network), ("plugin", plugin))), 1
        for level in sorted(levels):
            yield series(nccl.GDR_LEVEL, (label, ("level", level))), 1
        for (network, port, path), count in sorted(counts.items()):
            yield series(nccl.CHANNELS, (label, ("net", network), *_port(port), ("path", path))), count


def newest_by_gpu(logs: Sequence[Log], hostname: str) -> dict[str, float]:
    """Return when the newest communicator of each GPU began, and under "" that of any."""
    newest: dict[str, float] = {}
    for log in logs:
        for process in log.evidence.processes.values():
            if local(process.host, log.evidence.hosts, hostname):
                for one in process.communicators.values():
                    for gpu in {one.bus, ""}:
                        newest[gpu] = max(newest.get(gpu, 0.0), one.started)
    return newest


def living(log: Log, newest: dict[str, float], now: float, hostname: str) -> list[Living]:
    """Return the communicators of a log that live and are this host's; all of them when no host of the log is this one.

    What was only read again at start, and nobody knows to run, is dead. A communicator of a process that has been silent for 15
    minutes is dead once another one, of a process that began later, uses its GPU.
    """
    if log.info.alive is False:
        return []
    hosts = log.evidence.hosts
    ours = [process for process in log.evidence.processes.values() if local(process.host, hosts, hostname)]
    return [
        Living(process, one, bool(ours))
        for process in ours or log.evidence.processes.values()
        if process.fresh or log.info.alive
        for one in process.communicators.values()
        if now - process.last <= SILENT_SECONDS or newest.get(one.bus, 0.0) <= process.last
    ]


def channels(communicators: Iterable[Living], inventory: Inventory) -> ChannelCounts:
    """Return the links of network channels by network, port and path; a link of which both ends are here counts once."""
    counts: ChannelCounts = {}
    seen: dict[str, set[int]] = {}
    for _, one, here in communicators:
        known = seen.setdefault(one.identity, set())
        for way, links in one.ends.items():
            new = len(links - known)
            known |= links
            for port in ports_of(way.hca, inventory) if way.hca and here else (UNKNOWN,):
                key = (way.network, port, way.path)
                counts[key] = counts.get(key, 0) + new
    return {key: count for key, count in counts.items() if count}


def falls_back(communicators: Iterable[Living]) -> bool:
    """True when a communicator uses sockets between hosts: it has such channels, or spans hosts and has no other network."""
    for process, one, _ in communicators:
        if any(way.path == "socket" for way in one.ends):
            return True
        if process.network.endswith("Socket") and one.nodes > 1:
            return True
    return False


def _by_key(logs: Sequence[Log]) -> list[tuple[str, list[Log]]]:
    groups: dict[str, list[Log]] = {}
    for log in logs:
        groups.setdefault(log.key, []).append(log)
    return list(groups.items())


def _port(port: Port) -> tuple[tuple[str, str], tuple[str, str]]:
    return (("device", port.device), ("port", port.port))


def _version(evidence: Evidence) -> str:
    """The version named last; RCCL's numbers are not NCCL's."""
    library, version = next(reversed(evidence.versions), ("NCCL", ""))
    return version if library == "NCCL" else f"{library} {version}"


def _plugin(evidence: Evidence) -> str:
    """The network plugin loaded last."""
    loaded = [name for kind, name, _, outcome in evidence.plugins if kind in {"net", "ofi"} and outcome == "loaded"]
    return loaded[-1] if loaded else ""
