"""RCCL: AMD's NCCL. Its code is NCCL's with the words of HIP, so that most lines are in NCCL's table."""

from __future__ import annotations

import re

from exporter.nccl.facts import GdrSupport, Report, Slow, Version
from exporter.nccl.pattern import Library, Pattern, failure, noise

RCCL = Library(
    name="rccl",
    source="ROCm/rccl develop 2024-10 and ROCm/rocm-systems projects/rccl, mid 2026",
    patterns=(
        Pattern(
            name="rccl_version",
            first="RCCL version",
            regex=re.compile(r"RCCL version ?:? {0,4}(\d+\.[^\s+]{1,60})(?:\+(\S{1,40}))?"),
            make=lambda match, record: Version("RCCL", match[1], match[2] or ""),
            examples=("RCCL version : 2.22.3-HEAD:271856d", "RCCL version 2.18.3+hip6.0 HEAD:2f6d59e"),
        ),
        Pattern(
            name="rccl_no_gdr",
            first="GDRDMA not enabled. ",
            regex=re.compile(r"GDRDMA not enabled\. (.{0,200})"),
            make=lambda match, record: GdrSupport(False, match[1]),
            examples=("GDRDMA not enabled. Could not find memory_peers directory or peer_memory symbol",),
        ),
        Pattern(
            name="rccl_host",
            first=("NUMA auto balancing enabled", 'Missing "'),
            regex=re.compile(r'NUMA auto balancing enabled|Missing "(?:iommu=pt|HSA_FORCE_FINE_GRAIN_PCIE=1)" from '),
            make=lambda match, record: Report("host", record.message, False),
            examples=(
                "NUMA auto balancing enabled which can lead to variability in the RCCL performance!",
                'Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
                'Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from environment which can lead to low RCCL performance!',
            ),
        ),
        Pattern(
            name="rccl_mscclpp",
            first="MSCCL++: ",
            regex=re.compile(r"MSCCL\+\+: Cannot enable MSCCL\+\+"),
            make=noise("an alternative algorithm is not used"),
            examples=("MSCCL++: Cannot enable MSCCL++; environment is not MSCCL compatible",),
        ),
        Pattern(
            name="rccl_merge",
            first="NET/IB : Merging NICs across ",
            regex=re.compile(r"NET/IB : Merging NICs across (?:NUMA nodes|PCIe Root Complexes) \((\S{1,64})"),
            make=failure("topology", "NICs of different NUMA nodes or root complexes are merged", hca=1),
            examples=(
                "NET/IB : Merging NICs across NUMA nodes (rdma0 numa=0, rdma4 numa=1). "
                "This may significantly reduce performance.",
                "NET/IB : Merging NICs across PCIe Root Complexes (rdma0 , rdma4 ). This may significantly "
                "reduce performance.",
            ),
        ),
        Pattern(
            name="rccl_no_merge",
            first="NET/IB : Skipping makeVDevice (disabled by default on AINIC)",
            regex=re.compile(r"NET/IB : Skipping makeVDevice \(disabled by default on AINIC\)"),
            make=noise("NICs are not merged"),
            examples=("NET/IB : Skipping makeVDevice (disabled by default on AINIC), Please set NCCL_IB_MERGE_NICS=1",),
        ),
        Pattern(
            name="rccl_cts_stall",
            first="NET/IB",
            holds=": CTS stall (",
            regex=re.compile(r"NET/IB\S{0,20}?: CTS stall \((?:sender|receiver)\): "),
            make=lambda match, record: Slow("stall", "", "", None),
            examples=("NET/IB: CTS stall (sender): ch 0 rank 3 -> 11 dev rdma0 waiting 10.0 s",),
        ),
    ),
)
