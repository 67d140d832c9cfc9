"""Variables that are wrong, out of date, or not the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from exporter.nccl.findings.finding import Case, Confidence, Finding, Severity, names
from exporter.nccl.verdicts import gdr_level

AUTOMATIC_GID = (2, 21, 0)
"""From here on NCCL finds the GID itself."""


class Rule(NamedTuple):
    """A variable with a value that deserves a word. ``since`` is the release from which it does (None: all)."""

    id: str
    name: str
    wrong: Callable[[str], bool]
    severity: Severity
    meaning: str
    confidence: Confidence = "confirmed"
    since: tuple[int, int, int] | None = None


RULES = (
    Rule(
        "gdr_level_forced",
        "NCCL_NET_GDR_LEVEL",
        lambda value: gdr_level(value) == "SYS",
        "warning",
        "lifts the limit on distance: GPUDirect RDMA is used even across CPU sockets, where it may be slower than host memory",
    ),
    Rule(
        "gdr_level_off",
        "NCCL_NET_GDR_LEVEL",
        lambda value: gdr_level(value) == "LOC",
        "warning",
        "turns GPUDirect RDMA off",
    ),
    Rule(
        "gdr_level_ignored",
        "NCCL_NET_GDR_LEVEL",
        lambda value: not gdr_level(value),
        "warning",
        "is no level that NCCL knows (LOC, NVL, PIX, PXB, P2C, PXN, PHB, SYS), so it is ignored",
    ),
    Rule(
        "gdr_read_disabled",
        "NCCL_NET_GDR_READ",
        lambda value: value == "0",
        "warning",
        "turns GPUDirect RDMA off for sending",
    ),
    Rule(
        "ib_disabled",
        "NCCL_IB_DISABLE",
        lambda value: value not in {"", "0"},
        "warning",
        "turns InfiniBand and RoCE off: traffic between hosts uses sockets",
    ),
    Rule(
        "gid_index_set",
        "NCCL_IB_GID_INDEX",
        lambda value: value not in {"", "-1"},
        "info",
        "is not needed since 2.21, which finds the GID itself; a fixed index breaks when the table of GIDs changes",
        since=AUTOMATIC_GID,
    ),
)
SAME_EVERYWHERE = ("NCCL_IB_TC", "NCCL_IB_SL", "NCCL_IB_FIFO_TC")
"""Variables that must not differ between hosts: they choose queues and priorities in the fabric."""


def values(case: Case) -> Iterator[Finding]:
    """Values that deserve a word."""
    for rule in RULES:
        if rule.since is not None and (case.release is None or case.release < rule.since):
            continue
        for value, hosts in case.evidence.settings.get(rule.name, {}).items():
            if rule.wrong(value):
                where = names(hosts)
                yield Finding(
                    rule.id,
                    rule.confidence,
                    rule.severity,
                    f"{rule.name}={value}{_meant(rule.name, value)} {rule.meaning}.",
                    (f"{rule.name} set by environment to {value}" + (f" on {where}" if where else ""),),
                )


def _meant(name: str, value: str) -> str:
    """What a digit stands for."""
    level = gdr_level(value) if name == "NCCL_NET_GDR_LEVEL" else ""
    return f" ({level})" if level and level != value else ""


def refused(case: Case) -> Iterator[Finding]:
    """Values that NCCL itself does not take."""
    for (name, value), count in case.evidence.bad_settings.items():
        yield Finding(
            "setting_refused",
            "confirmed",
            "warning",
            f"NCCL does not take {name}={value} and uses its default.",
            (f"{count} line(s)",),
        )


def differing(settings: Sequence[Mapping[str, Mapping[str, Sequence[str]]]]) -> Iterator[Finding]:
    """Variables that differ between hosts, over the settings (variable -> value -> hosts) of one or several logs."""
    for name in SAME_EVERYWHERE:
        found: dict[str, dict[str, None]] = {}
        for one in settings:
            for value, hosts in one.get(name, {}).items():
                found.setdefault(value, {}).update(dict.fromkeys(host for host in hosts if host))
        hosts_of = [set(hosts) for hosts in found.values() if hosts]
        if len(hosts_of) > 1 and not set.intersection(*hosts_of):
            yield Finding(
                "setting_differs",
                "confirmed",
                "warning",
                f"{name} is not the same on all hosts: "
                + "; ".join(f"{value} on {names(hosts)}" for value, hosts in found.items())
                + ".",
                tuple(f"{name}={value} on {', '.join(hosts)}" for value, hosts in found.items())[:8],
            )


def between_hosts(case: Case) -> Iterator[Finding]:
    """Within one log."""
    yield from differing([case.evidence.settings])


CHECKS = (values, refused, between_hosts)
