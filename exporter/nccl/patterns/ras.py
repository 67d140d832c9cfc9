"""NCCL's RAS and diagnostics (``ras/``, ``diagnostics``), where they tell of health.

Diagnostics are printed on standard output as ``host:pid NCCL DIAG [OK|INFO] text``; a failed check is ``[INFO]`` too, so that
only the text tells.
"""

from __future__ import annotations

import re

from exporter.nccl.facts import Report
from exporter.nccl.pattern import Library, Make, Pattern, noise

_TAG = r"(?:\[(?:OK|INFO)\] {1,4})?"
_AREAS = (
    "[INFO] ",
    "[OK] ",
    "p2p: ",
    "CUDA driver version: ",
    "GPU inventory: ",
    "NVLink: ",
    "ECC: ",
    "NCCL environment: ",
    "net bw: ",
    "ATS state: ",
    "IOMMU groups: ",
    "rdma_topo check: ",
    "Xid ",
    "SXid ",
)


def _report(area: str, finding: bool) -> Make:
    return lambda match, record: Report(area, record.message.strip(), finding)


RAS = Library(
    name="nccl-ras",
    source="NVIDIA/nccl v2.24.3-1 to v2.30.7-1; released libraries of 2.31.2 and 2.32.3",
    patterns=(
        Pattern(
            name="ras_dead",
            first="RAS declaring peer ",
            regex=re.compile(r"RAS declaring peer \S{1,255} as DEAD"),
            make=_report("ras", True),
            since="2.24.3",
            examples=("RAS declaring peer 192.0.2.9<28028> as DEAD; rasDeadPeersHash 0x12",),
        ),
        Pattern(
            name="ras_error",
            first="RAS ",
            holds=" timeout error (",
            regex=re.compile(
                r"RAS (?:collective \S{1,300}|init|keep-alive|send stuck|termination stuck) timeout error \("
            ),
            make=_report("ras", True),
            since="2.24.3",
            examples=(
                "RAS keep-alive timeout error (60s) on socket connection with 192.0.2.9<40001>",
                "RAS collective 192.0.2.9<40001>:7 timeout error (2.5s) -- giving up on 3 missing responses",
            ),
        ),
        Pattern(
            name="ras_warning",
            first="RAS ",
            holds=" timeout ",
            regex=re.compile(
                r"RAS (?:(?:collective \S{1,300}|connect|keep-alive|peer connect) timeout warning|connect "
                r"retry timeout|idle timeout) \("
            ),
            make=_report("ras", False),
            since="2.24.3",
            examples=(
                "RAS keep-alive timeout warning (20s) on socket connection with 192.0.2.9<40001>",
                "RAS connect retry timeout (60s) on socket connection with 192.0.2.9<40001>",
                "RAS idle timeout (60s) on socket connection with 192.0.2.9<40001>",
            ),
        ),
        Pattern(
            name="ras_thread",
            first="fatal error - RAS thread terminating",
            regex=re.compile(r"fatal error - RAS thread terminating"),
            make=noise("the job goes on without RAS"),
            since="2.24.3",
            until="2.25.1",
            examples=("fatal error - RAS thread terminating",),
        ),
        Pattern(
            name="diag_finding",
            first=_AREAS,
            regex=re.compile(
                _TAG + r"(?:p2p: (?:(?:read|write) mismatch|peer-memory import failed|only \d+/\d+ GPU-to-GPU)"
                r"|(?:CUDA driver version|GPU inventory|NVLink|[\w /]{1,60}): (?:count |model |link-count )?mismatch across "
                r"|NVLink: (?:inactive link|inconsistent link speeds)"
                r"|ECC: (?:un)?corrected volatile errors (?:on|at or above)"
                r"|NCCL environment: (?:\d+ NCCL_\* env var\(s\) differ|\w{1,100}=\S{0,500} on rank\(s\))"
                r"|net bw: .{0,200}>30% off median"
                r"|ATS state: (?:ATSCtl )?disabled"
                r"|IOMMU groups: GPU and NIC groups differ"
                r"|rdma_topo check: failed"
                r"|S?Xid \d+ detected (?!.{0,600}No user action or further investigation))"
            ),
            make=_report("diagnostics", True),
            since="2.31.2",
            examples=(
                "[INFO] p2p: read mismatch rank 0 -> rank 1 expected=0x1 got=0x2; check ACS",
                "[INFO] p2p: only 54/56 GPU-to-GPU peer accesses passed verification",
                "[INFO] NVLink: inactive link(s) on rank(s) 3 across 8 ranks in comm 0x1",
                "[INFO] GPU inventory: count mismatch across 16 ranks in comm 0x1, rank(s) 8 differ from rank 0 (8)",
                "[INFO] ECC: uncorrected volatile errors on rank(s) 3 (worst=2) across 8 ranks in comm 0x1",
                "[INFO] NCCL environment: 2 NCCL_* env var(s) differ across ranks in comm 0x1",
                "[INFO] net bw: write rank 3 (mlx5_3): 180.2 Gbit/s, >30% off median 390.1 Gbit/s in comm 0x1",
                "ATS state: disabled on 8 rank/NIC pair(s) across 8/8 ranks in comm 0x1",
                "[INFO] rdma_topo check: failed on rank(s) 3 across 1/8 ranks in comm 0x1; first rank 3 exit 1: x",
                "Xid 79 detected 2 s ago on GPU 0000:1b:00 on host a. For the recommended response, see the "
                "documentation: x",
            ),
        ),
        Pattern(
            name="diag_bandwidth",
            first=("[INFO] net bw: ", "[OK] net bw: "),
            holds=" min/median/max ",
            regex=re.compile(r"\[(?:OK|INFO)\] net bw: [\d.]{1,20}/[\d.]{1,20}/[\d.]{1,20} Gbit/s min/median/max"),
            make=_report("diagnostics", False),
            since="2.32.3",
            examples=("[OK] net bw: 380.1/390.2/395.0 Gbit/s min/median/max write bw (across 16 ranks) in comm 0x1",),
        ),
    ),
)
