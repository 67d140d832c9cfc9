"""Messages made from the format strings of NCCL, for the tests of the pattern tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"

CONVERSION = re.compile(r"%(?:<PRI[a-zA-Z]\d+>|[-0-9.]*(?:hh|h|ll|l|z)?[a-zA-Z%])")
WORDS = {
    "NET/%s : GPU Direct RDMA %s for HCA %d '%s'": ("IB", "Enabled", "mlx5_0"),
    "NVLS multicast support is %savailable on dev %d": ("not ",),
    "NET/IB : Using%s %s; OOB %s:%s": (" [0]mlx5_0:1/IB", "[RO]", "eth0", "192.0.2.1<0>"),
    "Bootstrap : Using%s": (" eth0:192.0.2.1<0>",),
    "Bootstrap: Using%s": (" eth0:192.0.2.1<0>",),
    "NET/Socket : Using%s": (" [0]eth0:192.0.2.1<0>",),
    "%s : Using%s": ("NET/Socket", " [0]eth0:192.0.2.1<0>"),
    "%s : no interface found": ("NET/Socket",),
    "%s : invalid listen device dev=%d ncclNetIfs=%d": ("NET/Socket",),
    "%s: Connect to %s failed : %s": ("socketStartConnect", "192.0.2.9<40001>", "Connection refused"),
    "%s: connect returned %s, exceeded error retry count (%d)": ("socketPollConnect", "Connection refused"),
    "%s: connect returned %s, retrying (%d/%ld) after sleep for %u msec": ("socketPollConnect", "Connection refused"),
    "socketProgressOpt: Call to %s %s failed : %s": ("recv from", "192.0.2.9<40001>", "Broken pipe"),
    "ncclOsSocketProgressOpt: Call to %s %s failed : %s": ("recv from", "192.0.2.9<40001>", "Broken pipe"),
    "comm %p rank %d nranks %d cudaDev %d busId %lx - %s COMPLETE": ("Destroy",),
    "comm %p rank %d nranks %d cudaDev %d busId %lx commId 0x%lx - %s COMPLETE": ("Abort",),
    "Channel %02d : %d[%lx] -> %d[%lx] via SHM/%s/%s": ("direct", "CE"),
    "Channel %02d : %d[%d] -> %d[%d] via SHM/%s/%s": ("direct", "direct"),
    "%s/Plugin: Could not find:%s. %s": ("TUNER", " libnccl-tuner.so", "Using internal tuner plugin."),
    "%s/Plugin: Could not find:%s%s%s": ("NET", " libnccl-net.so", "", ""),
    "Count not open %s": ("libibverbs.so.1",),
    "Could not open %s": ("libibverbs.so.1",),
    "NET/IB : %s:%d speed change detected: %d -> %s Mbps": ("mlx5_0", "200000"),
    "%s:%d NCCL DIAG [%s] net bw: %.1f/%.1f/%.1f Gbit/s min/median/max %s bw (across %d ranks) in comm 0x%lx": (
        "word",
        "OK",
        "write",
    ),
    "%s:%d NCCL DIAG %sp2p: only %llu/%llu GPU-to-GPU peer accesses passed verification": ("word", "[INFO] "),
    "%s: mismatch across %d ranks in comm 0x%lx, rank(s) %s differ from rank %d (%s)": ("CUDA driver version",),
}
"""Words for conversions whose text decides what the line says; elsewhere any word will do."""
FAMILY_WORDS = {
    "socket": ("192.0.2.9<40001>", "Connection refused", "x"),
    "channel": ("IB", "/GDRDMA", "", "", "", ""),
    "init": ("ncclCommInitRank",),
    "env": ("NCCL_P2P_LEVEL", "SYS"),
}
GIDS = " localGid fe80::1 remoteGidsfe80::2"
"""What four strings of a completion print on RoCE; on InfiniBand they are empty."""


class Row(NamedTuple):
    """A row of nccl-formats.tsv."""

    family: str
    first: str
    last: str
    level: str
    subsystem: str
    location: str
    format: str


def rows() -> list[Row]:
    """All format strings."""
    lines = (DATA / "nccl-formats.tsv").read_text().splitlines()
    found = [Row(*line.split("\t")) for line in lines if not line.startswith("#")]
    return found[1:]


def message(row: Row) -> str:
    """One line that the format may print, without its prefix."""
    words = iter(WORDS.get(row.format, FAMILY_WORDS.get(row.family, ())))
    number = 1

    def value(found: re.Match[str]) -> str:
        nonlocal number
        kind = found[0][-1]
        if kind == "%":
            return "%"
        if kind == "s":
            return next(words, "word")
        if kind == "m":
            return "Cannot allocate memory"
        if kind == "p":
            return "0x7f2c14000b60"
        if kind == "f":
            return "1.50"
        if kind == "g":
            return "2.5"
        number += 1
        return f"{number:x}" if kind in "xX" else str(number)

    text = (
        row.format.replace("=%s%s%s%s%s", "=%s" + GIDS)
        .replace("%s%s%s%s", GIDS)
        .replace("\\n", "\n")
        .replace('\\"', '"')
        .replace("\\ ", "")
    )
    text = CONVERSION.sub(value, text)
    text = re.sub(r"^\S+:\d+ NCCL DIAG ", "", text)
    return text.split("\n")[0]
