"""PyTorch's own lines about NCCL, from where the text of the watchdog begins."""

from __future__ import annotations

import re

from exporter.nccl.pattern import Library, Pattern, failure

PYTORCH = Library(
    name="pytorch",
    source="pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, 2.3 and later",
    patterns=(
        Pattern(
            name="watchdog_timeout",
            first="Watchdog caught collective operation timeout: ",
            regex=re.compile(r"Watchdog caught collective operation timeout: WorkNCCL\("),
            make=failure("timeout", "a collective did not end in time (PyTorch's watchdog)", consequence=True),
            examples=(
                "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
                "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.",
            ),
        ),
    ),
)
