"""NCCL: completions in error (``transport/net_ib.cc``, ``net_ib/p2p.cc``) and work requests that take long.

The text may come from a plugin of another age than NCCL, so shapes are told apart, not versions. ``opcode`` and ``len`` of a
failed completion are undefined by verbs and are never read; the peer is the address of the out-of-band connection.
"""

from __future__ import annotations

import re
from typing import Literal

from exporter.nccl.facts import STATUSES, Completion, Fact, Record, Slow
from exporter.nccl.pattern import Pattern, noise

# "remoteGids" has no blank after it since 2.20
_GIDS = r"(?: {1,2}localGid (?P<local>\S{1,64}))?(?: remoteGids? ?(?P<remote>\S{1,64}))?"
_PEER = r"Got completion from peer (?P<peer>[^\s<]{1,255})(?:<\d+>)? with "
_ANY = r"NET/(?P<network>[^\s:/]{1,40}?) ?: " + _PEER
_HCA = r" {1,2}hca (?P<hca>\S{1,64})"
_FUNCTION = r"(?:\w{1,80}: )?"


def _completion(match: re.Match[str], record: Record) -> Fact:
    group = match.groupdict()
    status = int(group["status"])
    return Completion(
        status,
        STATUSES[status] if status < len(STATUSES) else "",
        int(group["vendor"]) if "vendor" in group else None,
        group.get("peer") or "",
        group.get("hca") or "",
        group.get("request") or "",
        group.get("local") or "",
        group.get("remote") or "",
        int(group["qp"]) if "qp" in group else None,
        group["network"],
    )


def _companion(match: re.Match[str], record: Record) -> Fact:
    group = match.groupdict()
    status = int(group.get("status") or -1)
    name = STATUSES[status] if 0 <= status < len(STATUSES) else ""
    return Completion(status, name, None, "", "", queue_pair=int(group["qp"]), network="IB", companion=True)


def _slow(kind: Literal["slow", "stall"]) -> Pattern:
    what = "slow" if kind == "slow" else r"stall \(no CQE\)"
    found = re.compile(
        rf"NET/\S{{1,40}}?: WQE {what}: peer=(\S{{0,255}}?)(?:<\d+>)? (?:\| )?(?:local: "
        rf")?.{{0,80}}?dev=(\S{{1,64}}) port=(\d+)"
    )
    tail = "localGid=fe80::1 | remote: qpn=78 port=1 lid=0 remoteGid=fe80::2"
    start = "peer=192.0.2.12<40101> | local: qpn=77 dev=mlx5_3 port=1 lid=0 " + tail
    ends = {
        "slow": f"NET/IB: WQE slow: {start} | thr=1000000ns delta=2500000ns mean=2100ns stddev=10ns p50=2000ns "
        "p90=2100ns p99=2200ns p99.9=2300ns max=2500000ns count=4096 | t_post=1 t_poll=2500001",
        "stall": f"NET/IB: WQE stall (no CQE): {start} | stall_thr=1000000ns age=5000000ns inflight=3",
    }
    return Pattern(
        name=f"wqe_{kind}",
        first="NET/",
        holds=f": WQE {kind}",
        regex=found,
        make=lambda match, record: Slow(kind, match[1], match[2], int(match[3])),
        since="2.31.2",
        examples=(ends[kind], ends[kind].replace("NET/IB", "NET/IB-CAST")),
    )


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="completion_no_peer",
        first="NET/",
        holds=": Got completion with error ",
        regex=re.compile(
            r"NET/(?P<network>[^\s:/]{1,40}?) ?: Got completion with error (?P<status>\d+), opcode -?\d+, len -?\d+, "
            r"vendor err (?P<vendor>-?\d+)"
        ),
        make=_completion,
        until="2.9",
        examples=("NET/IB : Got completion with error 12, opcode 1, len 32478, vendor err 129",),
    ),
    Pattern(
        name="completion_error",
        first="NET/",
        holds=": Got completion from peer ",
        regex=re.compile(
            _ANY + r"error (?P<status>\d+), opcode -?\d+, len -?\d+, vendor err (?P<vendor>-?\d+)(?!\d| \()"
        ),
        make=_completion,
        until="2.17.1",
        examples=(
            "NET/IB : Got completion from peer 192.0.2.22<40102> with error 12, opcode 0, len 0, vendor err 129",
        ),
    ),
    Pattern(
        name="completion_error_request",
        first="NET/",
        holds=": Got completion from peer ",
        regex=re.compile(
            _ANY + r"error (?P<status>\d+), opcode -?\d+, len -?\d+, vendor err (?P<vendor>-?\d+) "
            r"\((?P<request>\w{1,20})\)" + _GIDS
        ),
        make=_completion,
        since="2.18.1",
        until="2.19.4",
        examples=(
            "NET/IB : Got completion from peer fe80::a00:27ff:fe00:a1%ib0<40103> with error 4, opcode 32564, len 32564, "
            "vendor err 81 (Send)",
            "NET/IB : Got completion from peer 192.0.2.2<40103> with error 12, opcode 0, len 0, vendor err 129 (Recv) "
            "localGid ::ffff:198.51.100.1 remoteGid ::ffff:198.51.100.2",
        ),
    ),
    Pattern(
        name="completion_status",
        first="NET/",
        holds=": Got completion from peer ",
        regex=re.compile(
            _ANY + r"status=(?P<status>\d+) opcode=-?\d+ len=-?\d+ vendor err (?P<vendor>-?\d+) "
            r"\((?P<request>\w{1,20})\)(?!.{0,200} hca )" + _GIDS
        ),
        make=_completion,
        since="2.20.3",
        until="2.21.5",
        examples=(
            "NET/IB : Got completion from peer 192.0.2.12<40101> with status=12 opcode=129 len=65536 vendor err 129 (Recv) "
            "localGid ::ffff:198.51.100.182 remoteGids::ffff:198.51.100.221",
            "NET/IB : Got completion from peer 192.0.2.12<40101> with status=5 opcode=32656 len=32659 vendor err 249 (Send)",
        ),
    ),
    Pattern(
        name="completion_status_hca",
        first="NET/",
        holds=": Got completion from peer ",
        regex=re.compile(
            _ANY + r"status=(?P<status>\d+) opcode=-?\d+ len=-?\d+ vendor err (?P<vendor>-?\d+) "
            r"\((?P<request>\w{1,20})\)" + _GIDS + _HCA
        ),
        make=_completion,
        since="2.22.3",
        until="2.28.3",
        examples=(
            "NET/IB: Got completion from peer 192.0.2.95<40112> with status=5 opcode=0 len=0 vendor err 249 "
            "(Recv) hca mlx5_3",
            "NET/IB: Got completion from peer 192.0.2.95<40112> with status=12 opcode=32224 len=0 vendor err 129 (Recv) "
            "localGid fe80::9e63:c0ff:fe0a:30 remoteGidsfe80::9e63:c0ff:fe0a:40 hca mlx5_10",
        ),
    ),
    Pattern(
        name="completion_named_size",
        first="NET/",
        holds=": Got completion from peer ",
        regex=re.compile(
            _ANY + r"status=[^()]{0,80}\((?P<status>\d+)\) opcode=[^()]{0,80}\(-?\d+\) reqSize=-?\d+ "
            r"vendor_err=(?P<vendor>\d+) req_type=(?P<request>\w{1,20})" + _GIDS + _HCA
        ),
        make=_completion,
        since="2.28.7",
        until="2.28.9",
        examples=(
            "NET/IB: Got completion from peer 192.0.2.95<40112> with status=IBV_WC_RETRY_EXC_ERR(12) "
            "opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send localGid fe80::1 remoteGidsfe80::2 hca mlx5_3",
        ),
    ),
    Pattern(
        name="completion_named",
        first="NET/",
        holds=": Got completion from peer ",
        regex=re.compile(
            _ANY
            + r"status=[^()]{0,80}\((?P<status>\d+)\) opcode=[^()]{0,80}\(-?\d+\) vendor_err=(?P<vendor>\d+)"
            + _GIDS
            + _HCA
        ),
        make=_completion,
        since="2.29.2",
        until="2.31.2",
        examples=(
            "NET/IB: Got completion from peer 192.0.2.95<40112> with status=IBV_WC_RETRY_EXC_ERR(12) "
            "opcode=IBV_WC_SEND(0) vendor_err=129  localGid fe80::1 remoteGidsfe80::2 hca mlx5_3",
            "NET/IB: Got completion from peer 192.0.2.95<40112> with status=IBV_WC_WR_FLUSH_ERR(5) "
            "opcode=IBV_WC_SEND(0) vendor_err=249  hca mlx5_3",
        ),
    ),
    Pattern(
        name="completion_named_qp",
        first="NET/",
        holds=": Got completion from peer ",
        regex=re.compile(
            _ANY + r"status=[^()]{0,80}\((?P<status>\d+)\) opcode=[^()]{0,80}\(-?\d+\) vendor_err=(?P<vendor>\d+) "
            r"qp_num=(?P<qp>\d+)" + _GIDS + _HCA
        ),
        make=_completion,
        since="2.32.3",
        examples=(
            "NET/IB: Got completion from peer 192.0.2.95<40112> with status=IBV_WC_RETRY_EXC_ERR(12) "
            "opcode=IBV_WC_SEND(0) vendor_err=129 qp_num=4711  localGid fe80::1 remoteGidsfe80::2 hca mlx5_3",
        ),
    ),
    Pattern(
        name="completion_gin",
        first="NET/IB/GIN: ",
        holds="Got completion from peer ",
        regex=re.compile(
            r"NET/(?P<network>IB/GIN): " + _PEER + r"status=(?P<status>\d+) opcode=-?\d+ len=-?\d+ "
            r"vendor err (?P<vendor>-?\d+) \((?P<request>\w{1,20})\)" + _GIDS + _HCA
        ),
        make=_completion,
        since="2.28.7",
        examples=(
            "NET/IB/GIN: Got completion from peer 192.0.2.95<40112> with status=12 opcode=0 len=0 vendor err 129 (IPut) "
            "localGid fe80::1 remoteGidsfe80::2 hca mlx5_3",
        ),
    ),
    Pattern(
        name="companion",
        first="NET/IB: ",
        holds="Got CQE with error (",
        regex=re.compile(
            r"NET/IB: " + _FUNCTION + r"Got CQE with error \(devIndex=-?\d+, .{0,200}?qp_num=(?P<qp>\d+)\)"
        ),
        make=_companion,
        since="2.29.7",
        examples=(
            "NET/IB: ncclIbTest: Got CQE with error (devIndex=0, req=0x7f2c, comm=0x7f2d (Send), wr_id=1, qp_num=4711)",
            "NET/IB: Got CQE with error (devIndex=0, req=0x7f2c, comm=0x7f2d (Send), wr_id=1, qp_num=4711)",
        ),
    ),
    Pattern(
        name="companion_resiliency",
        first="NET/IB: ",
        holds="Got completion with error (devIndex=",
        regex=re.compile(
            r"NET/IB: "
            + _FUNCTION
            + r"Got completion with error \(devIndex=-?\d+, wc->status=\([^()]{0,80}\)(?P<status>\d+), "
            r".{0,200}?wc->qp_num=(?P<qp>\d+)"
        ),
        make=_companion,
        since="2.29.7",
        examples=(
            "NET/IB: ncclIbResiliencyHandle: Got completion with error (devIndex=0, wc->status=(IBV_WC_RETRY_EXC_ERR)12, "
            "wc->opcode=(IBV_WC_SEND)0, wc->wr_id=1, wc->qp_num=4711, wc->byte_len=0)",
        ),
    ),
    _slow("slow"),
    _slow("stall"),
    Pattern(
        name="wqe_summary",
        first="NET/",
        holds=": WQE latency summary [",
        regex=re.compile(r"NET/\S{1,40}?: WQE latency summary \["),
        make=noise("latencies of a queue pair at its end"),
        since="2.31.2",
        examples=(
            "NET/IB: WQE latency summary [Send peer=192.0.2.12<40101> dev=mlx5_3 qpn=77 port=1]: n=1 slow=0 thr=0ns",
        ),
    ),
)
