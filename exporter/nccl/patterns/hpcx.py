"""HPC-X: NVIDIA's network plugin (``IBext``) with SHARP. Its completion texts are NCCL's, of its own age."""

from __future__ import annotations

import re

from exporter.nccl.facts import GdrDevice, Plugin
from exporter.nccl.pattern import Library, Pattern, noise

HPCX = Library(
    name="nccl-rdma-sharp-plugins",
    source="Mellanox/nccl-rdma-sharp-plugins, 2026-04",
    patterns=(
        Pattern(
            name="hpcx_plugin",
            first="P2P plugin ",
            regex=re.compile(r"P2P plugin (?:(v\d+) )?(\S{1,60})"),
            make=lambda match, record: Plugin("net", match[2], match[1] or "", "loaded"),
            examples=("P2P plugin IBext_v8", "P2P plugin v11 IBext_v11", "P2P plugin IBext"),
        ),
        Pattern(
            name="hpcx_gdr",
            first="NET/IB : GPU Direct RDMA (",
            regex=re.compile(r"NET/IB : GPU Direct RDMA \(([\w-]{1,40})\) enabled for HCA (\d+) '([^\s']{1,64})"),
            make=lambda match, record: GdrDevice("IB", int(match[2]), match[3], True, match[1]),
            examples=(
                "NET/IB : GPU Direct RDMA (nvidia-peermem) enabled for HCA 0 'mlx5_0",
                "NET/IB : GPU Direct RDMA (DMABUF) enabled for HCA 0 'mlx5_0",
            ),
        ),
        Pattern(
            name="hpcx_sharp",
            first="NET/IB :SHARP ",
            regex=re.compile(r"NET/IB :SHARP coll init error: "),
            make=noise("SHARP is not there; the usual network is used"),
            examples=("NET/IB :SHARP coll init error: Cannot create SHArP job(-11)",),
        ),
    ),
)
