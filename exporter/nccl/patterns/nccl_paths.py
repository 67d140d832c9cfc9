"""NCCL: the network and the paths between ranks (``transport/net.cc``, ``p2p.cc``, ``shm.cc``, ``coll_net.cc``)."""

from __future__ import annotations

import re
from typing import Literal

from exporter.nccl.facts import Channel, Collnet, Connected, Fact, Local, Network, Record
from exporter.nccl.facts import Path as HowFar
from exporter.nccl.pattern import Pattern, line, noise

_PEERS = r"Channel (\d+)(?:/(\d+))? : (\d+)\[[0-9a-f]+\] -> (\d+)\[[0-9a-f]+\]"
# the name of a network may hold a blank (AWS Libfabric); nothing but known marks may follow the device
_NET = r"/((?:RMA/)?[^/]{1,80})/(\d+)(?:\((\d+)\))?(/GDRDMA)?(?:\(PCI\))?(?:/Shared)?(?:/flush=(\w+))?(?!\S)"
_DIRECTIONS: dict[str, Literal["send", "receive"]] = {"send": "send", "receive": "receive"}


def how_far(network: str, direct: str | None) -> HowFar:
    """The path of a network channel: GPU Direct RDMA by its mark, else sockets by the network's name, else host memory."""
    if direct:
        return "gdr"
    return "socket" if network.endswith("Socket") else "host"


def _channel(match: re.Match[str], record: Record) -> Fact:
    channel, connection, sender, receiver, direction, network, device, proxy, direct, flush = match.groups()
    return Channel(
        _DIRECTIONS[direction],
        network,
        int(device),
        "gdr" if direct else how_far(network, direct),
        int(channel),
        int(connection or 0),
        int(sender),
        int(receiver),
        int(proxy) if proxy else None,
        flush or "",
    )


def _collnet(match: re.Match[str], record: Record) -> Fact:
    direction, network, device, direct = match.groups()
    return Collnet(_DIRECTIONS[direction], network, int(device), how_far(network, direct))


def _rings(match: re.Match[str], record: Record) -> Fact:
    return Connected("rings", match[2] == "1", match[1] == "1")


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="p2p",
        first="Channel ",
        holds=" via P2P/",
        regex=re.compile(
            r"Channel [^\]]{1,40}\] -> [^\]]{1,40}\] via P2P/(?!indirect)(direct pointer\S{0,40}|\S{1,80})(?!\S)"
        ),
        make=lambda match, record: Local("p2p", match[1]),
        counted=True,
        examples=(
            "Channel 00/0 : 6[2] -> 7[3] via P2P/IPC",
            "Channel 12/1 : 3[3] -> 4[4] via P2P/CUMEM/read",
            "Channel 00/0 : 0[0] -> 1[1] via P2P/MNNVL",
            "Channel 00/0 : 1[1] -> 0[0] via P2P/direct pointer/read",
            "Channel 00 : 3[4a000] -> 2[48000] via P2P/IPC",
            "Channel 04/0 : 0[5000] -> 3[65000] via P2P/IPC comm 0x3cf940e0 nRanks 16",
        ),
    ),
    Pattern(
        name="p2p_indirect",
        first="Channel ",
        holds=" via P2P/indirect/",
        regex=re.compile(r"Channel [^\]]{1,40}\] -> [^\]]{1,40}\] via P2P/(indirect)/\d+\["),
        make=lambda match, record: Local("p2p", match[1]),
        counted=True,
        examples=("Channel 00/0 : 0[0] -> 5[5] via P2P/indirect/4[4]",),
    ),
    Pattern(
        name="network_channel",
        first="Channel ",
        holds="] via NET/",
        regex=re.compile(_PEERS + r" \[(send|receive)\] via NET" + _NET),
        make=_channel,
        examples=(
            "Channel 00/0 : 12[4] -> 4[4] [receive] via NET/IBext_v8/4/GDRDMA",
            "Channel 01/0 : 6[81000] -> 1[41000] [send] via NET/IBext/1",
            "Channel 02/0 : 3[3] -> 9[1] [send] via NET/IB/1(1)/GDRDMA(PCI)/Shared",
            "Channel 02/0 : 3[3] -> 9[1] [receive] via NET/IB/1/GDRDMA/flush=None",
            "Channel 00/0 : 5[901c0] -> 13[901c0] [receive] via NET/AWS Libfabric/1/GDRDMA",
            "Channel 00/0 : 15[7] -> 0[0] [receive] via NET/Socket/0",
            "Channel 00 : 15[8a000] -> 16[1a000] [receive] via NET/IB/3",
            "Channel 00/0 : 9[26000] -> 0[5000] [receive] via NET/Socket/0 comm 0x3cf940e0 nRanks 16",
        ),
    ),
    Pattern(
        name="shm",
        first="Channel ",
        holds=" via SHM/",
        regex=re.compile(r"Channel [^\]]{1,40}\] -> [^\]]{1,40}\] via SHM/(\w{1,20}(?:/\w{1,20})?)(?!\S)"),
        make=lambda match, record: Local("shm", match[1]),
        counted=True,
        examples=("Channel 00 : 2[0] -> 3[1] via SHM/direct/direct", "Channel 01 : 0[0] -> 1[1] via SHM/direct"),
    ),
    Pattern(
        name="shm_old",
        first="Channel ",
        holds=" via direct shared memory",
        regex=re.compile(r"Channel [^\]]{1,40}\] -> [^\]]{1,40}\] via (direct) shared memory(?!\S)"),
        make=lambda match, record: Local("shm", match[1]),
        counted=True,
        until="2.12.12",
        examples=("Channel 00 : 3[4c000] -> 4[8a000] via direct shared memory",),
    ),
    Pattern(
        name="collnet",
        first="CollNet ",
        holds=" via COLLNET/",
        regex=re.compile(
            r"CollNet \d+(?:/\d+)? : \d+ \[(send|receive)\] via COLLNET/(.{1,80}?)/(\d+)(/GDRDMA)?(?:\(PCI\))?(?!\S)"
        ),
        make=_collnet,
        examples=(
            "CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA",
            "CollNet 01 : 0 [receive] via COLLNET/SHARP/1",
            "CollNet 00/1 : 7 [send] via COLLNET/SHARP/3/GDRDMA(PCI)",
        ),
    ),
    line(
        "rings",
        "Connected all rings, use ring PXN %d GDR %d",
        _rings,
        since="2.24.3",
        examples=("Connected all rings, use ring PXN 0 GDR 1",),
    ),
    line(
        "rings_old",
        "Connected all rings",
        lambda match, record: Connected("rings"),
        until="2.23.4",
        examples=("Connected all rings", "Connected all rings comm 0x3cf940e0 nRanks 16 busId 5000"),
    ),
    line(
        "trees",
        "Connected all trees",
        lambda match, record: Connected("trees"),
        examples=("Connected all trees",),
    ),
    line(
        "nvls_tree",
        "Connected NVLS tree",
        lambda match, record: Connected("nvls_tree"),
        since="2.18.1",
        examples=("Connected NVLS tree",),
    ),
    line(
        "binomial_trees",
        "Connected binomial trees",
        lambda match, record: Connected("binomial_trees"),
        since="2.23.4",
        examples=("Connected binomial trees",),
    ),
    line(
        "collnet_connected",
        "rank %d Connected CollNet",
        lambda match, record: Connected("collnet"),
        examples=("rank 3 Connected CollNet",),
    ),
    line(
        "collnet_chains",
        "Connected Collnet Chains %s",
        lambda match, record: Connected("collnet_chains"),
        since="2.22.3",
        examples=("Connected Collnet Chains 0x7f0c14000b60",),
    ),
    line(
        "collnet_chain",
        "Connected collnet + chain",
        lambda match, record: Connected("collnet_chains"),
        since="2.14.3",
        until="2.21.5",
        examples=("Connected collnet + chain",),
    ),
    line(
        "network",
        "Using network %S",
        lambda match, record: Network(match[1].rstrip()),
        examples=("Using network IBext_v8", "Using network AWS Libfabric"),
    ),
    line(
        "network_assigned",
        "Assigned NET plugin %s to comm",
        noise("the network is told by Using network"),
        since="2.27.3",
        examples=("Assigned NET plugin IBext_v10 to comm",),
    ),
)
