"""What a log tells besides: failover, slow requests, reports, events that mean nothing by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.nccl.findings.finding import Case, Finding, names, times
from exporter.nccl.state import BENIGN

SUBNET_MANAGER = ("client_reregistration", "sm_change", "lid_change", "pkey_change")


def resiliency(case: Case) -> Iterator[Finding]:
    """Port failover: the traffic of a merged NIC runs on fewer ports."""
    counts: dict[str, int] = {}
    for (what, _), count in case.evidence.resiliency.items():
        counts[what] = counts.get(what, 0) + count
    if not counts:
        return
    dead = counts.get("fatal", 0)
    yield Finding(
        "port_failover",
        "confirmed",
        "critical" if dead else "warning",
        "A port of a merged NIC failed"
        + (" and the job could not go on." if dead else ": its traffic runs on the others."),
        tuple(f"{what}: {count} line(s)" for what, count in sorted(counts.items())),
    )


def slow_requests(case: Case) -> Iterator[Finding]:
    """The latency monitor of NCCL and RCCL names device and peer. A stall is a request that has not ended."""
    found = case.evidence.slow
    if not found:
        return
    stalls = [key for key in found if key[0] == "stall"]
    which = stalls or list(found)
    devices, peers = names((hca for _, _, hca, _ in which), "a NIC"), names((peer for _, peer, *_ in which), "a peer")
    yield Finding(
        "slow_requests",
        "confirmed",
        "warning" if stalls else "info",
        f"Requests over {devices} to {peers} {'do not end' if stalls else 'took longer than the threshold'}.",
        tuple(f"{kind}: {hca}:{port} to {peer}, {count} line(s)" for (kind, peer, hca, port), count in found.items())[
            :8
        ],
    )


def diagnostics(case: Case) -> Iterator[Finding]:
    """What NCCL's own diagnostics, RAS or Inspector found."""
    by_area: dict[str, list[str]] = {}
    for area, text in case.evidence.reports:
        by_area.setdefault(area, []).append(text)
    for area, texts in by_area.items():
        yield Finding(
            f"nccl_reports_{area}",
            "confirmed",
            "warning",
            f"NCCL's own checks ({area}) found faults: {texts[0][:160]}",
            tuple(texts[:8]),
        )


def benign_events(case: Case) -> Iterator[Finding]:
    """Events that are no fault by themselves, though their lines say WARN."""
    told = {
        key: flap for key, flap in case.evidence.flaps.items() if key.event in BENIGN and key.event != "port_active"
    }
    manager = {key: flap for key, flap in told.items() if key.event in SUBNET_MANAGER}
    for id, group, meaning in (
        ("benign_sm_event", manager, "the subnet manager restarted or a port was set up again; harmless alone"),
        ("device_notice", {key: told[key] for key in told if key not in manager}, "no fault by itself"),
    ):
        if group:
            what = names(key.event for key in group)
            count = sum(flap.count for flap in group.values())
            hosts = names((key.host for key in group), "a host")
            yield Finding(
                id,
                "confirmed",
                "info",
                f"{what} on {hosts}, {times(count)}: {meaning}.",
                tuple(f"{key.event}: {flap.raw} lines, {flap.count} event(s)" for key, flap in group.items())[:8],
            )


CHECKS = (resiliency, slow_requests, diagnostics, benign_events)
