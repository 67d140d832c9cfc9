"""NCCL: versions, plugins, the life of a communicator and call stacks (``init.cc``, ``plugin/``, ``include/checks.h``)."""

from __future__ import annotations

import re
from typing import Literal

from exporter.nccl.facts import Fact, Init, Plugin, Record, Shape, Trace, Version
from exporter.nccl.pattern import Make, Pattern, failure, line, noise

_COMM = (
    r"(?:\[Rank \d+\] )?(?:\w{1,60} )?comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d+) n[rR]anks (?P<ranks>\d+) "
    r"cudaDev (?P<cuda>-?\d+)(?: nvmlDev (?P<nvml>-?\d+))? busId (?P<bus>[0-9a-f]+)"
    r"(?: commId (?P<id1>0x[0-9a-f]+))?(?: parent \S{1,20})?(?: (?:splitCount|childCount) \d+)?(?: color -?\d+ key -?\d+)?"
    r"(?: commId (?P<id2>0x[0-9a-f]+))?(?: localSize \d+ used \d+ bytes on core \d+)? ?- "
)
_STAGES: dict[str, Literal["start", "complete", "destroyed", "aborted"]] = {
    "Init START": "start",
    "Init COMPLETE": "complete",
    "Destroy COMPLETE": "destroyed",
    "Abort COMPLETE": "aborted",
}


def _init(match: re.Match[str], record: Record) -> Fact:
    comm, rank, ranks, cuda, nvml, bus, id1, id2, stage = match.groups()
    return Init(
        _STAGES[stage], comm, int(rank), int(ranks), int(cuda), int(nvml) if nvml else None, bus, id1 or id2 or ""
    )


def _plugin(kind: str, outcome: Literal["loaded", "absent", "failed"]) -> Make:
    """A plugin of a kind; groups ``kind``, ``name`` and ``version`` say more where the pattern has them."""

    def make(match: re.Match[str], record: Record) -> Fact:
        group = match.groupdict()
        return Plugin(
            (group.get("kind") or kind).lower(), (group.get("name") or "").strip(), group.get("version") or "", outcome
        )

    return make


def _plugin_load(match: re.Match[str], record: Record) -> Fact:
    absent = "No such file" in record.message
    return Plugin(match["kind"].lower(), match["name"] or "", "", "absent" if absent else "failed")


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="version",
        first="NCCL version ",
        regex=re.compile(r"NCCL version (\d+\.[^\s+,]{1,40})(?:\+(\S{1,40}))?(?!\S)"),
        make=lambda match, record: Version("NCCL", match[1], match[2] or ""),
        examples=(
            "NCCL version 2.18.6+cuda12.1",
            "NCCL version 2.22.3",
            "NCCL version 2.26.6+cudaCUDA_MAJOR.CUDA_MINOR",
        ),
    ),
    Pattern(
        name="init",
        first=("comm 0x", "nccl", "[Rank "),
        holds="- Init ",
        regex=re.compile(_COMM + r"(Init START|Init COMPLETE)"),
        make=_init,
        examples=(
            "comm 0x14b1a8002fb0 rank 28 nranks 32 cudaDev 4 busId 88000 - Init COMPLETE",
            "comm 0x563933a24140 rank 2 nranks 8 cudaDev 2 nvmlDev 2 busId cb000 commId 0x9c8695409e569bc5 - Init START",
            "ncclCommInitRankConfig comm 0x55b6 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x54fe "
            "- Init COMPLETE",
            "[Rank 3] ncclCommInitRank comm 0x55b6 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 17000 commId "
            "0x54fe - Init START",
            "ncclCommSplit comm 0x55b6 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 parent 0x55b7 color 1 key 0 "
            "commId 0x54fe - Init START",
            "ncclCommSplit comm 0x55b6 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 parent 0x55b7 splitCount 1 "
            "color 1 key 0- Init START",
            "ncclCommSplit comm 0x55b6 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 17000 commId 0x54fe parent 0x55b7 "
            "childCount 1 color 1 key 0 - Init COMPLETE",
            "ncclCommInitRank comm 0x3cf8 rank 1 nranks 16 cudaDev 1 nvmlDev 1 busId 26000 commId 0xea12 - "
            "Init COMPLETE localSize 320 used 12345 bytes on core 4",
            "ncclCommInitRank comm 0x3cf959d0 rank 6 nranks 16 cudaDev 6 nvmlDev 6 busId c6000 commId 0xea12d82f079d0527 "
            "localSize 384 used 667533643 bytes on core 209 - Init COMPLETE",
        ),
    ),
    Pattern(
        name="end",
        first="comm 0x",
        holds=" COMPLETE",
        regex=re.compile(_COMM + r"(Destroy COMPLETE|Abort COMPLETE)"),
        make=_init,
        examples=(
            "comm 0x8e01d00 rank 1 nranks 2 cudaDev 0 busId 100000 - Abort COMPLETE",
            "comm 0x8e01d00 rank 1 nranks 2 cudaDev 0 busId 100000 commId 0x54fe - Destroy COMPLETE",
        ),
    ),
    Pattern(
        name="end_steps",
        first="comm 0x",
        holds=" - ",
        regex=re.compile(_COMM + r"(?:(?:Abort|Destroy|Finalize|Revoke) START|(?:Finalize|Revoke) COMPLETE)"),
        make=noise("a step of the end of a communicator"),
        since="2.28.3",
        examples=(
            "comm 0x8e01d00 rank 1 nRanks 2 cudaDev 0 busId 100000 - Abort START",
            "comm 0x8e01d00 rank 1 nRanks 2 cudaDev 0 busId 100000 commId 0x54fe - Revoke COMPLETE, result 0",
            "comm 0x8e01d00 rank 1 nranks 2 cudaDev 0 busId 100000 commId 0x54fe - Finalize COMPLETE",
        ),
    ),
    line(
        "shape",
        "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL",
        lambda match, record: Shape(match[1], int(match[3]), int(match[4]), int(match[5])),
        since="2.20.3",
        examples=("comm 0x55b6aa64a990 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",),
    ),
    Pattern(
        name="trace",
        first="",
        holds=" -> ",
        regex=re.compile(r"\S{1,500}:\d+ (?:\(\S{1,200}\) )?-> (\d+)(?!\S)(?! ->)"),
        make=lambda match, record: Trace(int(match[1])),
        examples=(
            "transport/net.cc:1298 -> 6",
            "proxy.cc:874 -> 6 [Progress Thread]",
            "transport/net.cc:1298 (sendProxyProgress) -> 6",
            "misc/socket.cc:12 -> 2 (Connection refused)",
        ),
    ),
    Pattern(
        name="trace_located",
        first="-> ",
        regex=re.compile(r"-> (\d+)(?!\S)"),
        make=lambda match, record: Trace(int(match[1])),
        since="2.30.7",
        examples=("-> 6", "-> 6 [Async thread]"),
    ),
    Pattern(
        name="plugin_loaded",
        first=("NET/Plugin: ", "RMA/Plugin: ", "GIN/Plugin: "),
        holds="/Plugin: Loaded ",
        regex=re.compile(
            r"(?:NET|RMA|GIN)/Plugin: Loaded (?P<kind>net|coll|collnet|rma|gin) plugin (?P<name>.{1,100}?) "
            r"\((?P<version>v\d+)\)"
        ),
        make=_plugin("net", "loaded"),
        since="2.13.4",
        examples=(
            "NET/Plugin: Loaded net plugin IBext_v8 (v8)",
            "NET/Plugin: Loaded net plugin NCCL RDMA Plugin v9 (v9)",
            "NET/Plugin: Loaded collnet plugin SHARP (v9)",
            "RMA/Plugin: Loaded rma plugin x (v15)",
        ),
    ),
    Pattern(
        name="plugin_using",
        first=("TUNER/Plugin: ", "PROFILER/Plugin: ", "ENV/Plugin: "),
        holds="/Plugin: ",
        regex=re.compile(
            r"(?P<kind>TUNER|PROFILER|ENV)/Plugin: (?:Using(?: tuner plugin)?|[Ll]oaded) (?P<name>\S.{0,100}?)"
            r"(?: \((?P<version>v\d+)\))?$"
        ),
        make=_plugin("", "loaded"),
        since="2.21.5",
        examples=(
            "TUNER/Plugin: Using tuner plugin nccl_ofi_tuner",
            "TUNER/Plugin: Using nccl_ofi_tuner (v3)",
            "PROFILER/Plugin: Loaded inspector (v5)",
            "PROFILER/Plugin: loaded inspector",
            "ENV/Plugin: Using ncclEnvDefault (v1)",
        ),
    ),
    Pattern(
        name="plugin_absent",
        first=("NET/Plugin : ", "NET/Plugin: "),
        holds="No plugin found",
        regex=re.compile(
            r"(?P<kind>NET)/Plugin ?: (?:dlerror=.{0,300}? )?No plugin found(?: \((?P<name>[^)]{1,100})\))?"
        ),
        make=_plugin("net", "absent"),
        until="2.21.5",
        examples=(
            "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
            "NET/Plugin : No plugin found, using internal implementation",
            "NET/Plugin: No plugin found (libnccl-net.so)",
            "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory "
            "No plugin found (libnccl-net.so), using internal implementation",
        ),
    ),
    Pattern(
        name="plugin_not_found",
        first=("NET/Plugin: ", "TUNER/Plugin: ", "PROFILER/Plugin: ", "ENV/Plugin: ", "RMA/Plugin: ", "GIN/Plugin: "),
        holds="/Plugin: Could not find:",
        regex=re.compile(r"(?P<kind>[A-Z]{2,10})/Plugin: Could not find: ?(?P<name>\S{1,200}?)\.?(?: |$)"),
        make=_plugin("net", "absent"),
        since="2.22.3",
        examples=(
            "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
            "PROFILER/Plugin: Could not find: libnccl-profiler.so.",
        ),
    ),
    Pattern(
        name="plugin_load",
        first=("NET/Plugin : ", "NET/Plugin: "),
        holds="lugin load",
        regex=re.compile(
            r"(?P<kind>NET)/Plugin ?: (?:Most recent p|P)lugin load (?:\((?P<name>[^)]{1,100})\) )?returned \d+"
        ),
        make=_plugin_load,
        until="2.21.5",
        examples=(
            "NET/Plugin : Plugin load returned 2 : libnccl-net.so: cannot open shared object file: No such "
            "file or directory.",
            "NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file",
            "NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file: No such file or directory "
            ": when loading libnccl-net.so",
            "NET/Plugin: Most recent plugin load returned 2 : x. All attempts to load 'libnccl-net.so' also failed.",
        ),
    ),
    Pattern(
        name="plugin_initialized",
        first=("Initialized ", "RMA/Plugin: "),
        holds="nitialize",
        regex=re.compile(r"(?:RMA/Plugin: )?Initialized (?:NET )?plugin (?P<name>\S{1,100})"),
        make=noise("a plugin that was loaded is ready"),
        since="2.27.3",
        examples=("Initialized NET plugin IB", "RMA/Plugin: Initialized plugin IB"),
    ),
    Pattern(
        name="plugin_init_failed",
        first=("Failed to initialize ", "RMA/Plugin: "),
        holds="Failed to initialize ",
        regex=re.compile(r"(?:(?P<kind>RMA)/Plugin: )?Failed to initialize (?:NET )?plugin (?P<name>\S{1,100})"),
        make=_plugin("net", "failed"),
        since="2.28.3",
        examples=("Failed to initialize NET plugin IBext_v11", "RMA/Plugin: Failed to initialize plugin IB"),
    ),
    line(
        "plugin_none",
        "Failed to initialize any NET plugin",
        failure("plugin", "no network plugin could be initialised"),
        since="2.27.3",
        examples=("Failed to initialize any NET plugin",),
    ),
    line(
        "network_not_found",
        "Error: network %S not found.",
        failure("plugin", "the network named by NCCL_NET does not exist"),
        until="2.26.6",
        examples=("Error: network IBext not found.",),
    ),
    Pattern(
        name="external_plugin",
        first="External network plugin ",
        regex=re.compile(r"External network plugin (?P<name>\S{1,200}) is unsupported"),
        make=_plugin("net", "failed"),
        since="2.28.3",
        examples=("External network plugin libnccl-net.so is unsupported",),
    ),
    Pattern(
        name="external_plugin_loaded",
        first="Successfully loaded external network plugin ",
        regex=re.compile(r"Successfully loaded external network plugin (?P<name>\S{1,200})"),
        make=_plugin("net", "loaded"),
        since="2.28.3",
        examples=("Successfully loaded external network plugin libnccl-net.so",),
    ),
    Pattern(
        name="no_libibverbs",
        first="Failed to open libibverbs.so",
        regex=re.compile(r"Failed to open (?P<name>libibverbs\.so)"),
        make=_plugin("ibverbs", "absent"),
        until="2.29.7",
        examples=("Failed to open libibverbs.so[.1]",),
    ),
    Pattern(
        name="no_libibverbs_new",
        first=("Could not open ", "Count not open "),
        regex=re.compile(r"Cou(?:ld|nt) not open (?P<name>libibverbs\.so\S{0,20})"),
        make=_plugin("ibverbs", "absent"),
        since="2.30.3",
        examples=("Count not open libibverbs.so.1", "Could not open libibverbs.so.1"),
    ),
    Pattern(
        name="mismatched_version",
        first="Mismatched NCCL ",
        regex=re.compile(r"Mismatched NCCL (?:git versions?|version) detected ?: rank \d+ "),
        make=failure("version", "ranks run different builds of NCCL"),
        since="2.23.4",
        examples=(
            "Mismatched NCCL version detected : rank 0 version 22304 rank 3 version 22203",
            "Mismatched NCCL git versions detected: rank 0 fingerprint 0x12345678, rank 3 fingerprint 0x87654321",
        ),
    ),
    Pattern(
        name="mismatched_peer",
        first="NCCL version mismatch with remote peer ",
        regex=re.compile(r"NCCL version mismatch with remote peer ([^\s<]{1,255})"),
        make=failure("version", "a peer runs another version of NCCL", peer=1),
        since="2.24.3",
        examples=("NCCL version mismatch with remote peer 192.0.2.9<40001> (local: 22403, remote 22304)",),
    ),
    Pattern(
        name="application_version",
        first=("NCCL library ", "The application was compiled "),
        holds=" compiled with ",
        regex=re.compile(
            r"(?:NCCL library (?:version )?is (?:too old|not backwards compatible)"
            r"|The application was compiled with too old version of NCCL)\."
        ),
        make=failure("version", "the application was built for another version of NCCL"),
        since="2.29.2",
        examples=(
            "NCCL library version is too old. This application was compiled with NCCL version 22902, "
            "but is running with NCCL library version 22304.",
            "NCCL library is not backwards compatible. This application was compiled with NCCL version 2.1.0, "
            "but is running with NCCL library version 3.0.0.",
            "The application was compiled with too old version of NCCL. It was compiled with NCCL version 20000, "
            "but is running with NCCL library version 22907. It needs to be recompiled with at least NCCL version 22000.",
        ),
    ),
)
