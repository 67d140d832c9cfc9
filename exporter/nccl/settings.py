"""What is wrong with the variables that a log echoes."""

from __future__ import annotations

import re

GDR_LEVELS = ("LOC", "NVL", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
OLD_GDR_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
"""What the digits 0 to 4 mean; larger ones are SYS."""


def gdr_level(value: str) -> str:
    """Return the level to which NCCL_NET_GDR_LEVEL sets the longest distance of GPUDirect RDMA.

    Accepted are the names in capitals and digits of an older scale (``src/graph/paths.cc``); anything else NCCL ignores: empty.
    """
    if value in GDR_LEVELS:
        return value
    if re.fullmatch(r"[0-9]{1,4}", value):
        return OLD_GDR_LEVELS[min(int(value), len(OLD_GDR_LEVELS) - 1)]
    return ""
