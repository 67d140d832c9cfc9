"""What broke in the fabric: events of devices and completions in error, in the order in which one explains the next."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from exporter.nccl.facts import FLUSHED
from exporter.nccl.findings.finding import Case, Finding, hosts_of, lines, names, times
from exporter.nccl.state import Error, Flap, FlapKey

RETRIES_EXCEEDED = 12
LOCAL_PROTECTION = 4
LINK = ("port_error", "port_active")
STATUS = {
    9: (
        "remote_request_refused",
        "the peer's NIC refused a request (status 9): access flags, size, or a software fault",
    ),
    10: ("remote_memory_access", "the peer's NIC could not use the address that it was given (status 10)"),
    11: (
        "remote_operation",
        "the peer's NIC could not finish a request (status 11): look at PCIe and IOMMU of the peer",
    ),
    13: ("peer_not_receiving", "the peer posted no receive in time (status 13): a process that hangs or has died"),
}
"""Findings by status, but for those that have a check of their own."""


def device_events(case: Case) -> Iterator[Finding]:
    """A fatal event of a device ends the job."""
    errors = [error for error in case.causes("event") if error.what not in {*LINK, "unknown"}]
    for what in dict.fromkeys(error.what for error in errors):
        told = [error for error in errors if error.what == what]
        devices = names((error.hca for error in told), "a device that is not named")
        yield Finding(
            "device_event",
            "confirmed",
            "critical",
            f"The NIC or its driver reported {what} on {devices} of {hosts_of(told)}.",
            lines(told),
        )


def link(case: Case) -> Iterator[Finding]:
    """A port that goes down explains retries that run out after it."""
    downs = {key: flap for key, flap in case.evidence.flaps.items() if key.event == "port_error"}
    errors = case.causes("event", "port_error")
    starved = _starved(case)
    for key, flap in downs.items():
        told = [error for error in errors if (error.host, error.hca, error.port) == (key.host, key.device, key.port)]
        begin = min((error.order for error in told), default=0)
        after = [error for error in starved if error.order > begin]
        ups = case.evidence.flaps.get(key._replace(event="port_active"), Flap()).count
        yield _link(key, flap, ups, told, after)


def _link(key: FlapKey, flap: Flap, ups: int, told: list[Error], after: list[Error]) -> Finding:
    port = f"{key.device}:{key.port}" if key.device else "A port (this release does not name it)"
    came = "came back" if ups >= flap.count else "was not seen to come back"
    summary = f"{port} of {key.host or 'a host'} went down {times(flap.count)} and {came}"
    if after:
        peers = names(error.peer for error in after)
        summary += f"; after that {hosts_of(after)} got no answer from {peers} (status 12), a consequence of the link"
    return Finding(
        "fabric_link_flap",
        "likely" if after else "confirmed",
        "critical" if after or ups < flap.count else "warning",
        summary + ".",
        lines([*told, *after], f"{flap.raw} lines of {len(flap.reporters)} threads about {flap.count} event(s)"),
    )


def retries(case: Case) -> Iterator[Finding]:
    """Status 12: no answer came. A port that went down before explains it better."""
    starved = _starved(case)
    downs = [error.order for error in case.causes("event", "port_error")]
    if not starved or (downs and min(downs) < starved[0].order):
        return
    first = starved[0]
    count = _count(case, RETRIES_EXCEEDED)
    over = f" over {names(error.hca for error in starved)}" if any(error.hca for error in starved) else ""
    yield Finding(
        "fabric_path_or_peer",
        "likely",
        "critical",
        f"{hosts_of(starved)} got no answer from {names((error.peer for error in starved), 'a peer')}{over} (status 12, "
        f"{times(count)}): the path between them failed, or the peer stopped.",
        lines(starved, *_path(first), *_waited(case), *flushed(case)),
    )
    yield from _gid(case, starved)


def _gid(case: Case, starved: list[Error]) -> Iterator[Finding]:
    """RoCE that never worked: a GID that is not routed."""
    roce = any(device.link_layer == "RoCE" for devices in case.evidence.lists for device in devices)
    local = [error.local_gid for error in starved if error.local_gid.startswith("fe80:")]
    if case.release and case.release < (2, 21, 0) and roce and not case.setting("NCCL_IB_GID_INDEX"):
        yield Finding(
            "fabric_path_config",
            "possible",
            "warning",
            "NCCL before 2.21 takes GID 0 on RoCE unless NCCL_IB_GID_INDEX says otherwise, which is often not routed: try the "
            "index of a RoCE v2 GID with an IPv4 address (show_gids).",
            (f"NCCL {'.'.join(map(str, case.release))}, RoCE, no NCCL_IB_GID_INDEX in the log", *lines(starved[:1])),
        )
    elif local:
        yield Finding(
            "fabric_path_config",
            "possible",
            "warning",
            f"The GID in use is link-local ({local[0]}), which does not leave the subnet: NCCL_IB_GID_INDEX may point to the "
            "wrong entry, or the port has no IP address.",
            lines(starved[:2]),
        )


def local_protection(case: Case) -> Iterator[Finding]:
    """Status 4: the NIC could not reach memory of its own host."""
    errors = [error for error in case.causes("completion") if error.status == LOCAL_PROTECTION]
    if not errors:
        return
    direct = case.gdr.state in {"on", "mixed"}
    hosts = {error.host for error in errors}
    more = ["on several hosts: a setting rather than a broken part"] if len(hosts) > 1 else []
    yield Finding(
        "host_pcie_iommu",
        "likely" if direct else "possible",
        "critical",
        f"NICs of {hosts_of(errors)} could not reach memory of their own host (status 4): PCIe ACS or an IOMMU in the way of "
        "GPUDirect RDMA is the usual reason.",
        lines(errors, f"GPUDirect RDMA {case.gdr.state} ({case.gdr.basis})", *more, *flushed(case)),
    )


def other_completions(case: Case) -> Iterator[Finding]:
    """The other statuses say which side refused, not why."""
    errors = [
        error
        for error in case.causes("completion")
        if error.status not in {RETRIES_EXCEEDED, LOCAL_PROTECTION, FLUSHED}
    ]
    for status in dict.fromkeys(error.status for error in errors):
        told = [error for error in errors if error.status == status]
        id, what = STATUS.get(
            status or 0, ("completion_error", f"a work request failed with {told[0].what} (status {status})")
        )
        yield Finding(
            id,
            "possible",
            "critical",
            f"On {hosts_of(told)} {what}; peer {names((error.peer for error in told), 'not named')}.",
            lines(told, *flushed(case)),
        )
    if case.evidence.companions and not case.evidence.completions:
        yield Finding(
            "completion_error",
            "insufficient",
            "critical",
            "Work requests failed, but the lines that say how are not in this log.",
            (f"{case.evidence.companions} lines Got CQE with error without the line that follows them",),
        )


def _starved(case: Case) -> list[Error]:
    return [error for error in case.causes("completion") if error.status == RETRIES_EXCEEDED]


def _count(case: Case, status: int) -> int:
    return sum(tally.count for key, tally in case.evidence.completions.items() if key[0] == status)


def _path(error: Error) -> tuple[str, ...]:
    if not error.local_gid:
        return ()
    return (f"path {plain(error.local_gid)} to {plain(error.remote_gid) or 'unknown'}",)


def flushed(case: Case) -> tuple[str, ...]:
    """Return the flush cascade as evidence, nothing where there was none."""
    count = _count(case, FLUSHED)
    return (f"{count} request(s) flushed (status 5): the consequence",) if count else ()


def _waited(case: Case) -> tuple[str, ...]:
    """How long NCCL waits before status 12: 4.096 us x 2^NCCL_IB_TIMEOUT x (NCCL_IB_RETRY_CNT + 1)."""
    exponent = _integer(case.setting("NCCL_IB_TIMEOUT")) or (
        None if case.release is None else 20 if case.release >= (2, 23, 0) else 18
    )
    tries = _integer(case.setting("NCCL_IB_RETRY_CNT")) or 7
    if exponent is None or exponent > 31:
        return ()
    seconds = 4.096e-6 * 2**exponent * (tries + 1)
    return (f"the path broke about {seconds:.0f} s before the error: look at counters around that time",)


def _integer(values: tuple[str, ...]) -> int | None:
    return int(values[-1]) if values and re.fullmatch(r"[0-9]{1,3}", values[-1]) else None


def plain(gid: str) -> str:
    """A RoCE v2 GID of an IPv4 address as that address."""
    try:
        address = ipaddress.IPv6Address(gid.partition("%")[0])
    except ValueError:
        return gid
    return str(address.ipv4_mapped or gid)


CHECKS = (device_events, link, local_protection, retries, other_completions)
