"""What one log has shown: facts go in, one by one; what was used, what broke and who is still there can be asked.

An :class:`Evidence` is bounded (:mod:`exporter.nccl.state`), knows no file and no clock, and goes into the state database as
it is. What it counts for ``/metrics`` is handed over apart (:meth:`Evidence.drain`): the totals of a host live longer than a
log.
"""

from __future__ import annotations

import msgspec

from exporter.nccl.facts import Device, Fact, Record
from exporter.nccl.intake import HANDLERS
from exporter.nccl.state import (
    MOST_COMMUNICATORS,
    MOST_HOSTS,
    MOST_PROCESSES,
    ChannelKey,
    Communicator,
    CompletionKey,
    Error,
    FailureKey,
    Flap,
    FlapKey,
    News,
    Pair,
    PluginErrorKey,
    Process,
    Tally,
    add,
    cut,
    number,
    put,
)

VERSION = 1
"""Of the state. Another one is not read: the log is read again."""


NO_LISTS = (-1, -1)


class Evidence(msgspec.Struct, array_like=True, dict=True):
    """The evidence of one log. Tables hold line counts unless they say otherwise.

    ``order`` numbers the facts taken, ``first`` and ``last`` are when the first and the last of them were.
    """

    order: int = 0
    first: float = 0.0
    last: float = 0.0

    versions: dict[tuple[str, str], int] = {}
    """Library and version."""
    networks: dict[str, int] = {}
    plugins: dict[tuple[str, str, str, str], int] = {}
    """Kind, name, version, outcome."""
    lists: list[tuple[Device, ...]] = []
    """Lists of HCAs, and of virtual ones, that processes have printed: most print the same."""
    hosts: dict[str, tuple[int, int]] = {}
    """Hosts that wrote here, and the numbers of the two lists that each printed last (-1: none)."""
    nics: dict[tuple[str, str], str] = {}
    """Host and HCA -> PCI address."""
    interfaces: dict[str, int] = {}
    """Interfaces of socket networks."""
    without_device: int = 0

    channels: dict[ChannelKey, int] = {}
    local: dict[str, int] = {}
    collnet: dict[tuple[str, str, str], int] = {}
    """Direction, network, path."""
    connected: dict[str, int] = {}
    pairs: dict[Pair, int] = {}
    """Of the communicators that have ended."""

    rings_gdr: dict[bool, int] = {}
    """``Connected all rings, use ring ... GDR n``."""
    gdr_devices: dict[tuple[str, int, str, bool], int] = {}
    """Network, device index, HCA, enabled."""
    gdr_distances: dict[bool, int] = {}
    gdr_support: dict[tuple[bool, str], int] = {}
    dma_buf: int = 0

    starts: int = 0
    completes: int = 0
    ends: dict[str, int] = {}
    """Communicators ``destroyed`` and ``aborted``."""
    nodes: int = 0
    """The most that a communicator has."""

    settings: dict[str, dict[str, list[str]]] = {}
    """Variable -> value -> hosts, in the order in which they came."""
    bad_settings: dict[tuple[str, str], int] = {}

    completions: dict[CompletionKey, Tally] = {}
    companions: int = 0
    """Second lines of completion errors whose first line has not come."""
    plugin_errors: dict[PluginErrorKey, Tally] = {}
    flaps: dict[FlapKey, Flap] = {}
    failures: dict[FailureKey, Tally] = {}
    failing: dict[tuple[str, int, str, str], float] = {}
    """When a process last told of a class of failure: host, pid, class, HCA."""
    consequences: dict[tuple[str, str], int] = {}
    """Class and what, of lines that follow from an earlier error."""
    slow: dict[tuple[str, str, str, int | None], int] = {}
    """Kind, peer, HCA, port."""
    resiliency: dict[tuple[str, int | None], int] = {}
    reports: dict[tuple[str, str], int] = {}
    """Area and text of diagnostics that tell of a fault."""
    causes: list[Error] = []
    """The latest errors that follow from nothing in this log."""
    effects: list[Error] = []
    first_cause: Error | None = None

    processes: dict[tuple[str, int], Process] = {}
    communicators: int = 0
    kept_ends: int = 0

    def __post_init__(self) -> None:
        self.news = News()
        self.named: dict[tuple[int, int], dict[int, str]] = {}
        """HCAs by their index in channels, by the numbers of two lists: an index is that of a virtual device since 2.24."""
        self.replaying = False
        """Set while a log is read from its start: its processes may be long dead."""

    def take(self, record: Record, fact: Fact, now: float) -> None:
        """Take one fact. ``now`` is when its line was written, or read where the line does not say (seconds since 1970)."""
        handle = HANDLERS.get(type(fact))
        if handle is None:
            return
        self.order += 1
        if now > self.last:
            self.last = now
            self.first = self.first or now
        process = self.processes.get((record.host, record.pid))
        if process is None:
            process = self._process(record.host, record.pid)
        process.last = now if now > process.last else process.last
        if not self.replaying:
            process.fresh = True
        handle(self, record, fact, now, process)

    def drain(self) -> News:
        """Return what was counted since the last call. Call it in the transaction that stores :meth:`state`."""
        news, self.news = self.news, News()
        return news

    def state(self) -> bytes:
        """Return the state for :meth:`restore`. What :meth:`drain` has not handed over is lost with it."""
        return msgspec.msgpack.encode((VERSION, self))

    @classmethod
    def restore(cls, state: bytes) -> Evidence:
        """Return the evidence of a :meth:`state`. Raises ValueError when it is of another version or broken."""
        version, _ = msgspec.msgpack.decode(state, type=tuple[int, msgspec.Raw])
        if version != VERSION:
            raise ValueError(f"state of version {version}, expected {VERSION}")
        return msgspec.msgpack.decode(state, type=tuple[int, Evidence])[1]

    # Processes and their communicators

    def end_process(self, host: str, pid: int) -> None:
        """The process is gone, and its communicators with it."""
        process = self.processes.pop((host, pid), None)
        if process is not None:
            for pointer in list(process.communicators):
                self.end(process, pointer)

    def open(self, process: Process, pointer: str, one: Communicator) -> Communicator:
        """A communicator begins; one of the same pointer is over."""
        if pointer in process.communicators:
            self.end(process, pointer)
        if self.communicators >= MOST_COMMUNICATORS:
            self._forget_communicators()
        process.communicators[pointer] = one
        process.current[one.rank] = pointer
        self.communicators += 1
        return one

    def end(self, process: Process, pointer: str) -> None:
        """A communicator is over; the pairs that it used are kept."""
        one = process.communicators[pointer]
        for pair, count in self.pairs_of(process, one).items():
            add(self.pairs, pair, count)
        del process.communicators[pointer]
        if process.current.get(one.rank) == pointer:
            del process.current[one.rank]
        self.communicators -= 1
        self.kept_ends -= sum(len(links) for links in one.ends.values())

    def pairs_of(self, process: Process, one: Communicator) -> dict[Pair, int]:
        """Return GPU and HCA of each end of a communicator's network channels, with the number of ends.

        With PXN the data goes through another rank's GPU to that rank's NIC: that GPU counts. A busId that is not known is empty.
        """
        pairs: dict[Pair, int] = {}
        for way, links in one.ends.items():
            if way.hca:
                bus = one.bus if way.proxy in {-1, one.rank} else self._bus(process, one, way.proxy)
                pair = Pair(process.host, bus, way.hca)
                pairs[pair] = pairs.get(pair, 0) + len(links)
        return pairs

    def listed(self, which: int) -> tuple[Device, ...]:
        """Return a list by its number, nothing for -1."""
        return self.lists[which] if 0 <= which < len(self.lists) else ()

    def hca_of(self, process: Process, network: str, device: int) -> str:
        """Return the name of a network's device, empty when the log does not tell. The index is the network's own."""
        if "Libfabric" not in network:
            lists = (process.devices, process.virtual)
            if lists == NO_LISTS:
                lists = self.hosts.get(process.host, NO_LISTS)
            named = self.named.get(lists)
            if named is None:
                named = self.named[lists] = {one.number: one.name for which in lists for one in self.listed(which)}
            if device in named:
                return named[device]
        for owner, index, name, _ in self.gdr_devices:
            if index == device and owner == network:
                return name
        return ""

    def _bus(self, process: Process, one: Communicator, rank: int) -> str:
        """The GPU of another rank of the same communicator on the same host."""
        for other in self.processes.values():
            if other.host == process.host:
                for candidate in other.communicators.values():
                    if candidate.rank == rank and candidate.identity == one.identity:
                        return candidate.bus
        return ""

    def _process(self, host: str, pid: int) -> Process:
        key = (cut(host, 64), number(pid) or 0)
        process = self.processes.get(key)
        if process is None:
            if len(self.processes) >= MOST_PROCESSES:
                self._forget_processes()
            process = self.processes[key] = Process(*key)
            if host and key[0] not in self.hosts:
                put(self.hosts, key[0], NO_LISTS, MOST_HOSTS)
        return process

    def _forget_processes(self) -> None:
        for process in sorted(self.processes.values(), key=lambda one: one.last)[: MOST_PROCESSES // 4]:
            self.end_process(process.host, process.pid)

    def _forget_communicators(self) -> None:
        held = [
            (process.last, one.started, pointer, process)
            for process in self.processes.values()
            for pointer, one in process.communicators.items()
        ]
        held.sort(key=lambda item: item[:2])
        for *_, pointer, process in held[: MOST_COMMUNICATORS // 4]:
            self.end(process, pointer)
