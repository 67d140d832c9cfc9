"""How each fact changes the evidence of a log."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from exporter.nccl import facts
from exporter.nccl.facts import FLUSHED, Device, Record
from exporter.nccl.state import (
    BENIGN,
    MOST_CONSEQUENCES,
    MOST_ENDS,
    MOST_ERRORS,
    MOST_HOSTS,
    MOST_KEYS,
    MOST_PROCESSES,
    SAME_FAILURE_SECONDS,
    Communicator,
    Error,
    FlapKey,
    Process,
    Tally,
    Way,
    add,
    count_news,
    cut,
    line_of,
    number,
    pack,
    put,
    renew,
    report,
)

if TYPE_CHECKING:
    from exporter.nccl.evidence import Evidence

# What is there


def _version(evidence: Evidence, record: Record, fact: facts.Version, now: float, process: Process) -> None:
    runtime = f"+{fact.runtime}" if fact.runtime else ""
    add(evidence.versions, (cut(fact.library, 16), cut(fact.version + runtime, 64)))


def _network(evidence: Evidence, record: Record, fact: facts.Network, now: float, process: Process) -> None:
    process.network = cut(fact.name, 64)
    add(evidence.networks, process.network)


def _plugin(evidence: Evidence, record: Record, fact: facts.Plugin, now: float, process: Process) -> None:
    add(evidence.plugins, (cut(fact.kind, 16), cut(fact.name, 64), cut(fact.version, 32), fact.outcome))


def _devices(evidence: Evidence, record: Record, fact: facts.Devices, now: float, process: Process) -> None:
    """HCAs have a link layer; what has none are the interfaces of a socket network."""
    if any(device.link_layer for device in fact.devices):
        devices = tuple(_bounded(device) for device in fact.devices[:MOST_HOSTS])
        process.devices = _list_number(evidence, devices)
        _of_host(evidence, process)
    else:
        for device in fact.devices[:MOST_HOSTS]:
            add(evidence.interfaces, cut(device.name, 64))


def _virtual(evidence: Evidence, record: Record, fact: facts.VirtualDevice, now: float, process: Process) -> None:
    """Since 2.24 the index of a channel is that of a virtual device, which may merge several of the list."""
    index, names = number(fact.number) or 0, cut(fact.name).split("+")[:MOST_VALUES]
    known = {device.name: device for device in evidence.listed(process.devices)}
    parts = [known.get(name, Device(index, name, 0, "", ())) for name in names]
    members = tuple((part.name, part.port) for part in parts)
    new = Device(index, "+".join(names), parts[0].port, parts[0].link_layer, members)
    others = tuple(device for device in evidence.listed(process.virtual) if device.number != index)
    process.virtual = _list_number(evidence, tuple(sorted((*others, new)))[:MOST_HOSTS])
    _of_host(evidence, process)


def _list_number(evidence: Evidence, devices: tuple[Device, ...]) -> int:
    if devices not in evidence.lists:
        if len(evidence.lists) >= MOST_HOSTS:
            return -1
        evidence.lists.append(devices)
    return evidence.lists.index(devices)


def _of_host(evidence: Evidence, process: Process) -> None:
    if process.host:
        put(evidence.hosts, process.host, (process.devices, process.virtual), MOST_HOSTS)


def _bounded(device: Device) -> Device:
    members = tuple((cut(name, 64), number(port) or 0) for name, port in device.members[:8])
    name, port = cut(device.name, 128), number(device.port) or 0
    return Device(number(device.number) or 0, name, port, cut(device.link_layer, 16), members)


def _hardware(evidence: Evidence, record: Record, fact: facts.Hardware, now: float, process: Process) -> None:
    """The PCI address is the last element of the path under /sys."""
    found = re.findall(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", cut(fact.pci_path, 1000))
    if found:
        put(evidence.nics, (process.host, cut(fact.name, 64)), found[-1])


def _no_device(evidence: Evidence, record: Record, fact: facts.NoDevice, now: float, process: Process) -> None:
    evidence.without_device += 1


def _gdr_device(evidence: Evidence, record: Record, fact: facts.GdrDevice, now: float, process: Process) -> None:
    add(evidence.gdr_devices, (cut(fact.network, 64), number(fact.number) or 0, _hca(fact.name), fact.enabled))


def _gdr_distance(evidence: Evidence, record: Record, fact: facts.GdrDistance, now: float, process: Process) -> None:
    add(evidence.gdr_distances, fact.enabled)


def _gdr_support(evidence: Evidence, record: Record, fact: facts.GdrSupport, now: float, process: Process) -> None:
    add(evidence.gdr_support, (fact.enabled, cut(fact.reason)))


def _dma_buf(evidence: Evidence, record: Record, fact: facts.DmaBuf, now: float, process: Process) -> None:
    evidence.dma_buf += 1


def _setting(evidence: Evidence, record: Record, fact: facts.Setting, now: float, process: Process) -> None:
    name, value = cut(fact.name, 64), cut(fact.value)
    values = evidence.settings.get(name)
    if values is None:
        if len(evidence.settings) >= MOST_KEYS:
            return
        values = evidence.settings[name] = {}
    hosts = values.get(value)
    if hosts is None:
        if len(values) >= MOST_VALUES:
            return
        hosts = values[value] = []
    if process.host not in hosts and len(hosts) < MOST_VALUES:
        hosts.append(process.host)


MOST_VALUES = 8
"""Values of one variable, and hosts of one value, that are kept."""
MOST_LINES = 1 << 20
"""No block that is read at once holds more."""


def _bad_setting(evidence: Evidence, record: Record, fact: facts.BadSetting, now: float, process: Process) -> None:
    add(evidence.bad_settings, (cut(fact.name, 64), cut(fact.value)))


# Communicators and their channels


def _init(evidence: Evidence, record: Record, fact: facts.Init, now: float, process: Process) -> None:
    pointer, rank = cut(fact.communicator, 32), number(fact.rank)
    rank = -1 if rank is None else rank
    if fact.stage in {"destroyed", "aborted"}:
        add(evidence.ends, fact.stage)
        if pointer in process.communicators:
            evidence.end(process, pointer)
        return
    ranks, identity, bus = number(fact.ranks) or 0, cut(fact.identity, 32), cut(fact.bus_id, 32)
    if fact.stage == "start":
        evidence.starts += 1
        evidence.open(process, pointer, Communicator(rank, ranks, identity, bus, "start", 0, now))
        return
    evidence.completes += 1
    one = process.communicators.get(pointer) or _adopted(process, pointer, rank)
    if one is None:
        one = evidence.open(process, pointer, Communicator(rank, started=now))
    one.ranks, one.identity, one.bus = ranks or one.ranks, identity or one.identity, bus or one.bus
    one.stage = "complete"
    if not one.identity:
        # Up to 2.15 the channels come before the only line of a communicator: the next ones are another's.
        process.current.pop(rank, None)


def _adopted(process: Process, pointer: str, rank: int) -> Communicator | None:
    """Give the communicator whose channels came before any line of it its pointer."""
    earlier = process.current.get(rank, "")
    one = process.communicators.get(earlier)
    if one is None or one.stage != "open":
        return None
    del process.communicators[earlier]
    process.communicators[pointer] = one
    process.current[rank] = pointer
    return one


def _shape(evidence: Evidence, record: Record, fact: facts.Shape, now: float, process: Process) -> None:
    nodes = number(fact.nodes) or 0
    evidence.nodes = max(evidence.nodes, nodes)
    one = process.communicators.get(fact.communicator)
    if one is not None:
        one.nodes = nodes


def _channel(evidence: Evidence, record: Record, fact: facts.Channel, now: float, process: Process) -> None:
    """A channel belongs to the newest communicator of its process that has the rank which printed it."""
    direction, network, device, path, channel, connection, sender, receiver, proxy, _ = fact
    hca = "" if path == "socket" else evidence.hca_of(process, network, device)
    if len(network) > 64 or not 0 <= device <= MOST_PROCESSES:
        network, device = cut(network, 64), MOST_PROCESSES
    add(evidence.channels, (direction, network, device, hca, path))
    rank = (receiver if direction == "receive" else sender) & 0xFFFFF
    one = process.communicators.get(process.current.get(rank, ""))
    if one is None:
        one = evidence.open(process, f"?{rank}", Communicator(rank, started=now))
    way = (direction, network, device, hca, path, -1 if proxy is None else proxy & 0xFFFFF)
    links = one.ends.get(way)  # type: ignore[call-overload]  # a Way is this tuple, and making one costs more than finding it
    if links is None:
        if len(one.ends) >= MOST_KEYS:
            return
        links = one.ends[Way(*way)] = set()
    link = pack(channel, connection, sender, receiver)
    if link not in links and evidence.kept_ends < MOST_ENDS:
        links.add(link)
        evidence.kept_ends += 1


def _local(evidence: Evidence, record: Record, fact: facts.Local, now: float, process: Process) -> None:
    add(evidence.local, fact.kind, max(1, min(fact.lines, MOST_LINES)))


def _collnet(evidence: Evidence, record: Record, fact: facts.Collnet, now: float, process: Process) -> None:
    add(evidence.collnet, (fact.direction, cut(fact.network, 64), fact.path))


def _connected(evidence: Evidence, record: Record, fact: facts.Connected, now: float, process: Process) -> None:
    add(evidence.connected, cut(fact.what, 32))
    if fact.gdr is not None:
        add(evidence.rings_gdr, fact.gdr)


# What broke


def _completion(evidence: Evidence, record: Record, fact: facts.Completion, now: float, process: Process) -> None:
    """A companion is the second line of an error (C9, C10 of newer releases): the error is counted by its own line."""
    if fact.companion:
        evidence.companions += 1
        return
    evidence.companions = max(evidence.companions - 1, 0)
    status, hca, peer = number(fact.status) or 0, _hca(fact.hca), cut(fact.peer, 128)
    vendor = number(fact.vendor_error)
    _tally(evidence.completions, (status, cut(fact.name, 32), vendor, hca, peer), process.host, 1)
    hca = hca or _only_hca(process)
    table = evidence.news.flushes if status == FLUSHED else evidence.news.completions
    count_news(table, (process.host, hca, status), now)
    _note(
        evidence,
        record,
        process,
        now,
        "completion",
        fact.name or f"status {status}",
        consequence=status == FLUSHED,
        status=status,
        vendor_error=vendor,
        hca=hca,
        peer=peer,
        local_gid=cut(fact.local_gid, 64),
        remote_gid=cut(fact.remote_gid, 64),
    )


def _only_hca(process: Process) -> str:
    """The HCA of a process whose channels all use the same: up to 2.21 a completion error does not name one."""
    used = {way.hca for one in process.communicators.values() for way in one.ends if way.path != "socket"}
    return used.pop() if len(used) == 1 else ""


def _plugin_error(evidence: Evidence, record: Record, fact: facts.PluginError, now: float, process: Process) -> None:
    network, code, text, device = cut(fact.network, 64), number(fact.code), cut(fact.text), number(fact.device)
    _tally(evidence.plugin_errors, (network, code, text, device), process.host, 1)
    count_news(evidence.news.failures, "plugin", now)
    hca = "" if device is None else evidence.hca_of(process, process.network, device)
    _note(evidence, record, process, now, "plugin", text, code=code, hca=hca)


def _event(evidence: Evidence, record: Record, fact: facts.AsyncEvent, now: float, process: Process) -> None:
    key = FlapKey(process.host, _hca(fact.hca), number(fact.port), cut(fact.event, 40))
    reporter = (process.pid, number(record.tid) or 0)
    count_news(evidence.news.events, (key, reporter), now)
    if report(evidence.flaps, key, reporter, now) and (fact.fatal or fact.event not in BENIGN):
        _note(evidence, record, process, now, "event", key.event, hca=key.device, port=key.port)


def _failure(evidence: Evidence, record: Record, fact: facts.Failure, now: float, process: Process) -> None:
    """A process that repeats itself has one failure: a retry, the call, what called it."""
    kind, what, hca, code = cut(fact.kind, 32), cut(fact.what), _hca(fact.hca), number(fact.code)
    if fact.consequence:
        add(evidence.consequences, (kind, what))
    else:
        again = (process.host, process.pid, kind, hca)
        since = evidence.failing.get(again)
        renew(evidence.failing, again, now)
        if since is not None and now - since <= SAME_FAILURE_SECONDS:
            _tally(evidence.failures, (kind, what, code, hca), process.host, 0)
            return
        _tally(evidence.failures, (kind, what, code, hca), process.host, 1)
        count_news(evidence.news.failures, kind, now)
    _note(
        evidence,
        record,
        process,
        now,
        "failure",
        what,
        consequence=fact.consequence,
        code=code,
        hca=hca,
        peer=cut(fact.peer, 128),
    )


def _slow(evidence: Evidence, record: Record, fact: facts.Slow, now: float, process: Process) -> None:
    add(evidence.slow, (fact.kind, cut(fact.peer, 128), _hca(fact.hca), number(fact.port)))


def _resiliency(evidence: Evidence, record: Record, fact: facts.Resiliency, now: float, process: Process) -> None:
    add(evidence.resiliency, (fact.what, number(fact.device)))


def _diagnosis(evidence: Evidence, record: Record, fact: facts.Report, now: float, process: Process) -> None:
    if fact.finding:
        add(evidence.reports, (cut(fact.area, 32), cut(fact.text)))


def _tally(table: dict[Any, Tally], key: object, host: str, count: int) -> None:
    tally = table.get(key)
    if tally is None:
        if len(table) >= MOST_KEYS:
            return
        tally = table[key] = Tally()
    tally.lines += 1
    tally.count += count
    if host not in tally.hosts and len(tally.hosts) < MOST_VALUES:
        tally.hosts.append(host)


def _note(
    evidence: Evidence,
    record: Record,
    process: Process,
    now: float,
    kind: Literal["completion", "event", "failure", "plugin"],
    what: str,
    *,
    consequence: bool = False,
    **details: Any,
) -> None:
    """Keep an error for people."""
    error = Error(
        kind=kind,
        what=cut(what),
        order=evidence.order,
        at=now,
        timestamp=cut(record.timestamp, 40),
        host=process.host,
        pid=process.pid,
        consequence=consequence,
        line=line_of(record),
        **details,
    )
    if not consequence and evidence.first_cause is None:
        evidence.first_cause = error
    kept = evidence.effects if consequence else evidence.causes
    kept.append(error)
    if len(kept) > (MOST_CONSEQUENCES if consequence else MOST_ERRORS):
        del kept[0]


def _hca(name: str) -> str:
    """The HCA's name; libfabric names its domains after it (``rdmap16s27-rdm``)."""
    return cut(name, 64).removesuffix("-rdm").removesuffix("-dgrm")


HANDLERS: dict[type, Callable[[Evidence, Record, Any, float, Process], None]] = {
    facts.Version: _version,
    facts.Network: _network,
    facts.Plugin: _plugin,
    facts.Devices: _devices,
    facts.NoDevice: _no_device,
    facts.VirtualDevice: _virtual,
    facts.Hardware: _hardware,
    facts.Channel: _channel,
    facts.Local: _local,
    facts.Collnet: _collnet,
    facts.Connected: _connected,
    facts.GdrDevice: _gdr_device,
    facts.GdrDistance: _gdr_distance,
    facts.GdrSupport: _gdr_support,
    facts.DmaBuf: _dma_buf,
    facts.Init: _init,
    facts.Shape: _shape,
    facts.Setting: _setting,
    facts.BadSetting: _bad_setting,
    facts.Completion: _completion,
    facts.PluginError: _plugin_error,
    facts.AsyncEvent: _event,
    facts.Slow: _slow,
    facts.Resiliency: _resiliency,
    facts.Failure: _failure,
    facts.Report: _diagnosis,
}
"""Facts that are not here say nothing that is kept."""
