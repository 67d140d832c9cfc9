"""What failed on a host or in a plugin, and what follows from something that is not in the log."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from exporter.nccl.findings.completions import flushed, plain
from exporter.nccl.findings.finding import Case, Confidence, Finding, Severity, hosts_of, lines, names
from exporter.nccl.state import Error


def plugin_requests(case: Case) -> Iterator[Finding]:
    """Codes of libfabric are not verbs statuses."""
    errors = case.causes("plugin")
    if not errors:
        return
    efa = any(kind == "provider" and name == "efa" for kind, name, *_ in case.evidence.plugins)
    unreachable = [error for error in errors if error.code in {20, 113} or "unreachable" in error.what.lower()]
    code = f"code {errors[0].code}: {errors[0].what}"
    if efa and unreachable:
        yield Finding(
            "cloud_network_policy",
            "possible",
            "critical",
            f"Requests of {hosts_of(errors)} over EFA failed ({code}) although the provider was found: the security group must "
            "allow all traffic from and to itself.",
            lines(unreachable),
        )
        return
    yield Finding(
        "plugin_request_failed",
        "insufficient",
        "critical",
        f"Requests of {hosts_of(errors)} failed in the network plugin ({code}).",
        lines(errors),
    )


REACHES = {
    101: "found no route",
    110: "timed out",
    113: "found no route",
    22: "was refused as invalid",
}
"""How an errno of ibv_modify_qp reads."""


def queue_pairs(case: Case) -> Iterator[Finding]:
    """ibv_modify_qp fails when a RoCE address cannot be resolved or reached."""
    errors = case.causes("failure", "ibv_modify_qp failed")
    if not errors:
        return
    error = errors[0]
    code = error.code or 0
    gids = re.search(r"local GID (\S+), remote GID ([^\s,]+)", error.line)
    apart = gids is not None and _apart(gids[1], gids[2])
    summary = f"A connection of {hosts_of(errors)}" + (f" on {error.hca}" if error.hca else "")
    if gids:
        summary += f" from {plain(gids[1])} to {plain(gids[2])}"
    summary += f" {REACHES.get(code, f'failed with {code}')}: the NIC cannot reach the address of its peer"
    if apart:
        summary += (
            ", which is in another subnet; in a rail-only fabric without routes between rails set NCCL_CROSS_NIC=0"
        )
    likely = apart and code in {101, 110, 113}
    yield Finding("fabric_reachability", "likely" if likely else "possible", "critical", summary + ".", lines(errors))


@dataclass(slots=True)
class Told:
    """Failures that one finding is about: their class, what they say, their lines, codes and hosts."""

    kind: str
    what: str
    errors: list[Error] = field(default_factory=list)
    codes: set[int | None] = field(default_factory=set)
    names: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> str:
        """The hosts, for a sentence."""
        return names(self.names, "a host")


class Rule(NamedTuple):
    """What failures that it holds for mean: the finding, and its summary without the full stop."""

    id: str
    holds: Callable[[Told], bool]
    summary: Callable[[Told, Case], str]
    confidence: Confidence = "confirmed"
    severity: Severity = "critical"


def _connecting(told: Told, case: Case) -> str:
    peer = names((error.peer for error in told.errors), "another rank (not named)")
    early = "" if case.evidence.completes else ", before any communicator was up"
    return f"{told.hosts} could not connect to {peer} over TCP{early}: a firewall, routing or NCCL_SOCKET_IFNAME"


def _no_interface(told: Told, case: Case) -> str:
    wanted = names(case.setting("NCCL_SOCKET_IFNAME"))
    return f"NCCL found no interface on {told.hosts}" + (
        f": nothing matches NCCL_SOCKET_IFNAME={wanted}" if wanted else ""
    )


def _not_opened(told: Told, case: Case) -> str:
    which = names(error.hca for error in told.errors)
    devices = f"RDMA devices ({which})" if which else "RDMA devices"
    return f"{devices} of {told.hosts} cannot be opened by the job, as when its container was not given them"


def _plainly(told: Told, case: Case) -> str:
    peers, codes = names(error.peer for error in told.errors), sorted(code for code in told.codes if code is not None)
    return (
        f"On {told.hosts}: {told.what}"
        + (f" (code {codes[0]})" if codes else "")
        + (f"; peer {peers}" if peers else "")
    )


RULES = (
    Rule(
        "host_shm_limit",
        lambda told: told.kind == "shm" and 28 in told.codes,
        lambda told, case: (
            f"Shared memory of {told.hosts} (/dev/shm) is too small: give the container more (--shm-size, "
            "emptyDir in memory)"
        ),
    ),
    Rule(
        "host_shm",
        lambda told: told.kind == "shm",
        lambda told, case: f"Ranks of {told.hosts} do not share /dev/shm, or a peer died",
        "possible",
    ),
    Rule(
        "host_limits_memlock",
        lambda told: told.kind == "memlock",
        lambda told, case: f"The limit on locked memory of {told.hosts} is too low for RDMA (ulimit -l, LimitMEMLOCK)",
    ),
    Rule("socket_interface_missing", lambda told: told.kind == "bootstrap" and "interface" in told.what, _no_interface),
    Rule(
        "control_plane_reachability",
        lambda told: told.kind == "socket" and told.what.startswith("connecting"),
        _connecting,
        "likely",
    ),
    Rule(
        "rdma_device_not_accessible",
        lambda told: told.kind in {"device", "verbs"} and "open" in told.what,
        _not_opened,
        severity="warning",
    ),
)
"""The first that holds is the finding; what none holds for is told as it is."""
FATAL = {"bootstrap", "cuda", "plugin", "version"}
"""Classes that end a job when no rule holds."""


def failures(case: Case) -> Iterator[Finding]:
    """One finding for each rule that holds, one for each text that none holds for."""
    groups: dict[str, tuple[Rule | None, Told]] = {}
    for (kind, what, code, _), tally in case.evidence.failures.items():
        if not tally.count or what == "ibv_modify_qp failed":
            continue
        one = Told(kind, what, codes={code})
        rule = next((rule for rule in RULES if rule.holds(one)), None)
        _, told = groups.setdefault(rule.id if rule else kind if kind == "other" else f"{kind} {what}", (rule, one))
        told.errors += [error for error in case.causes("failure", what) if error not in told.errors]
        told.codes.add(code)
        told.names += tally.hosts
    for rule, told in groups.values():
        if rule is not None:
            yield Finding(rule.id, rule.confidence, rule.severity, rule.summary(told, case) + ".", lines(told.errors))
        elif told.kind == "other":
            yield Finding(
                "unknown_warnings",
                "insufficient",
                "info",
                f"There are warnings on {told.hosts} that are not known here; read them.",
                lines(told.errors),
            )
        else:
            severity: Severity = "critical" if told.kind in FATAL else "warning"
            yield Finding(f"nccl_{told.kind}", "confirmed", severity, _plainly(told, case) + ".", lines(told.errors))


def consequences(case: Case) -> Iterator[Finding]:
    """What follows from something that is not in this log."""
    evidence = case.evidence
    if evidence.causes:
        return
    victims = [error for error in evidence.effects if error.kind == "completion"]
    closed = [error for error in evidence.effects if error.what == "the peer closed a connection"]
    if victims:
        peers = names((error.peer for error in victims), "the peer")
        yield Finding(
            "consequence_of_remote_failure",
            "insufficient",
            "critical",
            f"Requests of {hosts_of(victims)} were flushed after an error that is not in this log: look at the log of {peers} "
            "and for the first status other than 5.",
            lines(victims, *flushed(case)),
        )
    elif closed:
        peers = names((error.peer for error in closed), "a peer")
        yield Finding(
            "consequence_of_remote_failure",
            "insufficient",
            "critical",
            f"{peers} closed its connection to {hosts_of(closed)}: its process ended or failed first, look at its log.",
            lines(closed),
        )
    elif evidence.effects:
        what = names(what for _, what in evidence.consequences)
        yield Finding(
            "cause_not_in_log",
            "insufficient",
            "critical",
            f"On {hosts_of(evidence.effects)}: {what}; nothing in this log says why.",
            lines(evidence.effects),
        )


def _apart(one: str, other: str) -> bool:
    """True when two GIDs are IPv4 addresses that differ in their first 24 bits."""
    ends = []
    for gid in (one, other):
        try:
            address = ipaddress.IPv4Address(plain(gid))
        except ValueError:
            return False
        ends.append(int(address) >> 8)
    return ends[0] != ends[1]


CHECKS = (plugin_requests, queue_pairs, failures, consequences)
