"""A log's evidence as JSON and as a short text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple

from exporter.model import Inventory
from exporter.nccl.evidence import Evidence
from exporter.nccl.facts import FLUSHED, Device, Record
from exporter.nccl.findings import Finding, find
from exporter.nccl.findings.finding import names
from exporter.nccl.findings.settings import differing
from exporter.nccl.reader import Reader
from exporter.nccl.state import Error, Pair
from exporter.nccl.verdicts import gdr

BLOCK = 1 << 20
PATHS = {"gdr": "GPUDirect RDMA", "host": "host memory", "socket": "sockets"}


class ReadLog(NamedTuple):
    """One log that was read to its end."""

    file: str
    reader: Reader
    evidence: Evidence


def read(file: str, stream: BinaryIO, progress: Callable[[], object] = lambda: None) -> ReadLog:
    """Read a whole log; ``progress`` is called after each block. Raises what reading the stream raises."""
    reader, evidence = Reader(), Evidence()
    evidence.replaying = True
    now, rest = 0.0, b""
    while block := stream.read(BLOCK):
        data = rest + block
        end = data.rfind(b"\n") + 1 or (len(data) if len(data) > BLOCK else 0)
        now, rest = _take(reader, evidence, data[:end], now), data[end:]
        progress()
    _take(reader, evidence, rest, now)
    return ReadLog(file, reader, evidence)


def _take(reader: Reader, evidence: Evidence, lines: bytes, now: float) -> float:
    for record, fact in reader.feed(lines) if lines else ():
        now = max(now, _written(record))
        evidence.take(record, fact, now)
    return now


def _written(record: Record) -> float:
    """When a line was written, 0 where it does not say. Without a zone it is taken as UTC: only differences matter here."""
    if not record.timestamp:
        return 0.0
    try:
        when = datetime.fromisoformat(record.timestamp)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def findings(logs: Sequence[ReadLog], inventory: Inventory | None = None) -> list[list[Finding]]:
    """Return the findings of each log; what differs between logs of several hosts is said of each of them."""
    between = list(differing([log.evidence.settings for log in logs])) if len(logs) > 1 else []
    found = []
    for log in logs:
        own = find(log.evidence, inventory, log.reader.nccl_lines)
        told = {finding.summary for finding in own}
        found.append([*own, *(finding for finding in between if finding.summary not in told)])
    return found


def as_json(log: ReadLog, found: Iterable[Finding]) -> dict[str, Any]:
    """Return what is known of a log, in types of JSON. Lines are counted, but where a key says otherwise."""
    evidence = log.evidence
    return {
        "file": log.file,
        "lines": log.reader.lines,
        "nccl_lines": log.reader.nccl_lines,
        "garbled_lines": log.reader.garbled,
        "hosts": list(evidence.hosts),
        "versions": [
            version if library == "NCCL" else f"{library} {version}" for library, version in evidence.versions
        ],
        "networks": evidence.networks,
        "plugins": [
            {"kind": kind, "name": name, "version": version, "outcome": outcome, "count": count}
            for (kind, name, version, outcome), count in evidence.plugins.items()
        ],
        "devices": [
            {"index": device.number, "name": device.name, "port": device.port, "link_layer": device.link_layer}
            for device in devices(evidence)
        ],
        "merged_devices": [
            {
                "index": device.number,
                "name": device.name,
                "members": [f"{name}:{port}" for name, port in device.members],
            }
            for device in merged(evidence)
        ],
        "interfaces": list(evidence.interfaces),
        "channels": {
            "send": _channels(evidence, "send"),
            "receive": _channels(evidence, "receive"),
            "p2p": evidence.local.get("p2p", 0),
            "shm": evidence.local.get("shm", 0),
            "collnet": sum(evidence.collnet.values()),
        },
        "gpu_nic_pairs": [
            {
                "host": pair.host,
                "gpu": pci_address(pair.gpu) or None,
                "hca": pair.hca,
                "nic": evidence.nics.get((pair.host, pair.hca)),
                "count": count,
            }
            for pair, count in sorted(pairs(evidence).items())
        ],
        "communicators": {
            "started": evidence.starts,
            "completed": evidence.completes,
            "destroyed": evidence.ends.get("destroyed", 0),
            "aborted": evidence.ends.get("aborted", 0),
            "hosts": evidence.nodes or None,
        },
        "completion_errors": [
            {
                "status": status,
                "name": name,
                "vendor_error": vendor,
                "hca": hca or None,
                "peer": peer or None,
                "count": tally.count,
            }
            for (status, name, vendor, hca, peer), tally in evidence.completions.items()
        ],
        "flush_errors": sum(tally.count for key, tally in evidence.completions.items() if key[0] == FLUSHED),
        "async_events": events(evidence),
        "failures": [
            {
                "class": kind,
                "what": what,
                "code": code,
                "hca": hca or None,
                "count": tally.count,
                "raw_count": tally.lines,
            }
            for (kind, what, code, hca), tally in evidence.failures.items()
        ],
        "consequences": [
            {"class": kind, "what": what, "count": count} for (kind, what), count in evidence.consequences.items()
        ],
        "plugin_errors": [
            {"network": network, "code": code, "text": text, "device": device, "count": tally.count}
            for (network, code, text, device), tally in evidence.plugin_errors.items()
        ],
        "first_error": error_item(evidence.first_cause) if evidence.first_cause else None,
        "settings": {name: next(reversed(values)) for name, values in evidence.settings.items()},
        "gdr": gdr(evidence)._asdict(),
        "findings": [finding._asdict() for finding in found],
    }


def _channels(evidence: Evidence, wanted: str) -> list[dict[str, Any]]:
    return [
        {"net": network, "device": device, "hca": hca or None, "path": path, "count": count}
        for (direction, network, device, hca, path), count in sorted(evidence.channels.items())
        if direction == wanted
    ]


def devices(evidence: Evidence) -> list[Device]:
    """Return the HCAs of all lists that a host or a process printed last, each once."""
    found = {*(which for which, _ in evidence.hosts.values()), *(one.devices for one in evidence.processes.values())}
    return sorted({device for which in found for device in evidence.listed(which)})


def merged(evidence: Evidence) -> list[Device]:
    """Return the NICs that are several HCAs, or several ports."""
    found = {which for pair in evidence.hosts.values() for which in pair}
    found |= {which for one in evidence.processes.values() for which in (one.devices, one.virtual)}
    return sorted({device for which in found for device in evidence.listed(which) if len(device.members) > 1})


def pairs(evidence: Evidence) -> dict[Pair, int]:
    """Return the GPU and the HCA of the ends of network channels, of communicators that live and that have ended."""
    found = dict(evidence.pairs)
    for process in evidence.processes.values():
        for one in process.communicators.values():
            for pair, count in evidence.pairs_of(process, one).items():
                found[pair] = found.get(pair, 0) + count
    return found


def events(evidence: Evidence) -> list[dict[str, Any]]:
    """Return asynchronous events by device and port, over all hosts: ``raw_count`` lines, ``count`` things that happened."""
    found: dict[tuple[str, str, int | None], list[int]] = {}
    for key, flap in evidence.flaps.items():
        counts = found.setdefault((key.event, key.device, key.port), [0, 0])
        counts[0] += flap.count
        counts[1] += flap.raw
    return [
        {"event": event, "device": device or None, "port": port, "count": count, "raw_count": raw}
        for (event, device, port), (count, raw) in found.items()
    ]


def error_item(error: Error) -> dict[str, Any]:
    """Return an error in types of JSON; ``time`` is seconds since 1970, None when not known."""
    return {
        "kind": error.kind,
        "what": error.what,
        "time": error.at or None,
        "host": error.host or None,
        "pid": error.pid or None,
        "status": error.status,
        "vendor_error": error.vendor_error,
        "code": error.code,
        "hca": error.hca or None,
        "port": error.port,
        "peer": error.peer or None,
        "local_gid": error.local_gid or None,
        "remote_gid": error.remote_gid or None,
        "consequence": error.consequence,
        "line": error.line,
    }


def pci_address(bus: str) -> str:
    """Return the PCI address of a busId as NCCL prints it: domain, bus, device, function in one hexadecimal number.

    >>> pci_address("801000")
    '0008:01:00.0'
    """
    try:
        packed = int(bus, 16)
    except ValueError:
        return ""
    return f"{packed >> 20:04x}:{packed >> 12 & 0xFF:02x}:{packed >> 4 & 0xFF:02x}.{packed & 0xF:x}"


def as_text(log: ReadLog, found: Sequence[Finding]) -> str:
    """Return a short report: what was used, what was found and why, the gravest first."""
    evidence = log.evidence
    lines = [f"{log.file}: {log.reader.nccl_lines} lines of NCCL in {log.reader.lines}"]
    lines += [f"  {name:<10} {value}" for name, value in _facts(evidence) if value]
    for finding in found:
        lines += ["", f"  {finding.severity.upper()}: {finding.summary} [{finding.id}, {finding.confidence}]"]
        lines += [f"    {line}" for line in finding.evidence]
    return visible("\n".join(lines)) + "\n"


def _facts(evidence: Evidence) -> Iterator[tuple[str, str]]:
    yield (
        "version",
        names(version if library == "NCCL" else f"{library} {version}" for library, version in evidence.versions),
    )
    yield "hosts", names(evidence.hosts)
    yield "network", names(evidence.networks)
    layers = sorted({device.link_layer for device in devices(evidence)})
    yield (
        "HCAs",
        ", ".join(dict.fromkeys(device.name for device in devices(evidence)))
        + (f" ({', '.join(layers)})" if layers else ""),
    )
    yield "interfaces", ", ".join(evidence.interfaces)
    uses: dict[tuple[str, str], list[int]] = {}
    for (direction, network, _, _, path), count in evidence.channels.items():
        uses.setdefault((network, path), [0, 0])[direction == "receive"] += count
    for (network, path), (sent, received) in uses.items():
        yield "channels", f"{sent} send and {received} receive lines via {network}, {PATHS[path]}"
    local = ", ".join(f"{count} {kind.upper()}" for kind, count in evidence.local.items())
    yield "in hosts", local and f"{local} channels"
    state, basis = gdr(evidence)
    yield "GPUDirect", f"{state.replace('_', ' ')} ({basis})"
    yield "settings", " ".join(f"{name}={next(reversed(values))}" for name, values in evidence.settings.items())


def visible(text: str) -> str:
    """Return text that is safe on a terminal: a log may hold anything."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode() for char in text
    )
