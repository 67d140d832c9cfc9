"""What the lines of each library say: one table per library.

NCCL's is in several modules, by what its lines tell of. No line matches entries of two tables, so their order is of no account.
"""

from exporter.nccl.pattern import Library
from exporter.nccl.patterns import (
    nccl_completions,
    nccl_devices,
    nccl_events,
    nccl_gdr,
    nccl_init,
    nccl_paths,
    nccl_resources,
    nccl_settings,
    nccl_sockets,
    nccl_verbs,
)
from exporter.nccl.patterns.aws_ofi import AWS_OFI
from exporter.nccl.patterns.google import GOOGLE
from exporter.nccl.patterns.hpcx import HPCX
from exporter.nccl.patterns.pytorch import PYTORCH
from exporter.nccl.patterns.ras import RAS
from exporter.nccl.patterns.rccl import RCCL

NCCL = Library(
    name="nccl",
    source="NVIDIA/nccl v2.7.8-1 to v2.30.7-1; released libraries of 2.31.2 and 2.32.3",
    patterns=(
        *nccl_paths.PATTERNS,
        *nccl_init.PATTERNS,
        *nccl_gdr.PATTERNS,
        *nccl_devices.PATTERNS,
        *nccl_settings.PATTERNS,
        *nccl_completions.PATTERNS,
        *nccl_events.PATTERNS,
        *nccl_sockets.PATTERNS,
        *nccl_verbs.PATTERNS,
        *nccl_resources.PATTERNS,
    ),
)

LIBRARIES = (NCCL, RCCL, AWS_OFI, HPCX, GOOGLE, RAS, PYTORCH)
