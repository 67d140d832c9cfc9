"""What can be said of a log as a whole: GPUDirect RDMA, one host or several, which release."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple

from exporter.nccl.evidence import Evidence

GdrState = Literal["on", "off", "mixed", "unknown", "not_applicable"]

GDR_LEVELS = ("LOC", "NVL", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
OLD_GDR_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
"""What the digits 0 to 4 mean; larger ones are SYS."""
WITHOUT_RDMA = re.compile(r"Socket$|^FasTrak|^GPUDirectTCPX")
"""Networks that carry data over TCP: GPUDirect RDMA has no meaning there."""


class Gdr(NamedTuple):
    """Whether GPUDirect RDMA is used, and what says so."""

    state: GdrState
    basis: str


def gdr_level(value: str) -> str:
    """Return the level to which NCCL_NET_GDR_LEVEL sets the longest distance of GPUDirect RDMA.

    Accepted are the names in capitals and digits of an older scale (``src/graph/paths.cc``); anything else NCCL ignores: empty.
    """
    if value in GDR_LEVELS:
        return value
    if re.fullmatch(r"[0-9]{1,4}", value):
        return OLD_GDR_LEVELS[min(int(value), len(OLD_GDR_LEVELS) - 1)]
    return ""


def gdr(evidence: Evidence) -> Gdr:
    """Judge GPUDirect RDMA by the strongest evidence that there is.

    Channel lines say what is used, the line of the rings says it of a whole communicator; lines on HCAs are the NIC's side only,
    DMA-BUF is the GPU's side only and proves nothing.
    """
    used: dict[bool, int] = {}
    for (_, network, _, _, path), count in evidence.channels.items():
        if path != "socket" and not WITHOUT_RDMA.search(network):
            used[path == "gdr"] = used.get(path == "gdr", 0) + count
    if used:
        return Gdr(_state(used), f"channels: {used.get(True, 0)} of {sum(used.values())} network channels with /GDRDMA")
    networks = {*evidence.networks, *(key[1] for key in evidence.channels)}
    if networks and all(WITHOUT_RDMA.search(network) for network in networks):
        return Gdr("not_applicable", f"network: {', '.join(sorted(networks))} does not use RDMA")
    if one_host(evidence):
        return Gdr("not_applicable", "ranks: all are on one host, no network channel is made")
    for said, basis in (
        (set(evidence.rings_gdr), "rings: Connected all rings ... GDR n"),
        (set(evidence.gdr_distances), "distances: Enabled or Disabled for a GPU and an HCA; no channel seen"),
        ({enabled for *_, enabled in evidence.gdr_devices}, "devices: Enabled or Disabled for an HCA; no channel seen"),
        ({enabled for enabled, _ in evidence.gdr_support}, "plugin: what it says of GPUDirect RDMA; no channel seen"),
    ):
        if said:
            return Gdr(_state(said), basis)
    if "LOC" in {gdr_level(value) for value in evidence.settings.get("NCCL_NET_GDR_LEVEL", ())}:
        return Gdr("off", "settings: NCCL_NET_GDR_LEVEL is LOC")
    if evidence.dma_buf:
        return Gdr("unknown", "DMA-BUF is available: the GPU's side only, which proves nothing")
    return Gdr("unknown", "no line tells")


def _state(said: Collection[bool]) -> GdrState:
    if True in said and False in said:
        return "mixed"
    return "on" if True in said else "off"


def one_host(evidence: Evidence) -> bool:
    """True when the log shows that all ranks of its communicators are on one host and none uses the network."""
    if evidence.channels or len(evidence.hosts) > 1:
        return False
    if evidence.nodes:
        return evidence.nodes == 1
    ranks: dict[tuple[str, int], set[int]] = {}
    for process in evidence.processes.values():
        for one in process.communicators.values():
            if one.ranks:
                ranks.setdefault((one.identity, one.ranks), set()).add(one.rank)
    return bool(ranks) and all(len(there) >= size for (_, size), there in ranks.items())


def release(evidence: Evidence) -> tuple[int, int, int] | None:
    """Return the newest release of NCCL that the log names, None when it names none. RCCL's numbers are not NCCL's."""
    found = [
        (int(match[1]), int(match[2]), int(match[3] or 0))
        for library, version in evidence.versions
        if library == "NCCL" and (match := re.match(r"([0-9]{1,3})\.([0-9]{1,3})(?:\.([0-9]{1,3}))?", version))
    ]
    return max(found, default=None)


def networks_between_hosts(evidence: Evidence) -> set[str]:
    """Return the networks of the channels; where none was made, those of processes whose communicators span hosts."""
    used = {network for _, network, *_ in evidence.channels}
    if used or evidence.nodes <= 1:
        return used
    return set(evidence.networks)
