"""A machine to measure on: interfaces with many queues in this network namespace, InfiniBand devices from a capture."""

from __future__ import annotations

import subprocess
from pathlib import Path

from exporter.kernel.tree import Link, parse_line


def make_interfaces(pairs: int, queues: int) -> None:
    """Make the veth pairs in this namespace, with NAPI on so that a frame received is counted in ``ethtool -S``."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    ip("link", "set", "lo", "up")
    count = ("numrxqueues", str(queues), "numtxqueues", str(queues))
    for pair in range(pairs):
        ends = (f"veth{pair}", f"peer{pair}")
        ip("link", "add", ends[0], *count, "type", "veth", "peer", "name", ends[1], *count)
        for end in ends:
            subprocess.run(["ethtool", "-K", end, "gro", "on", "tso", "off"], check=True, stdout=subprocess.DEVNULL)
            ip("link", "set", end, "up")


def write_tree(capture: Path, root: Path, below: str = "") -> None:
    """Write the files and links of a captured sysfs (``sys.txt``) whose paths begin with ``below`` as real ones."""
    for line in capture.read_text().splitlines():
        parsed = parse_line(line)
        if parsed is None or not parsed[0].path.startswith(below):
            continue
        path, value = root / parsed[0].path, parsed[0].value
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, bytes):
            path.write_bytes(value + b"\n")
        elif isinstance(value, Link):
            path.symlink_to(value.target)


def make_sysfs(folder: Path, machine: Path) -> Path:
    """Return the root of a sysfs with this namespace's interfaces and the captured machine's InfiniBand devices."""
    own, root = folder / "own", folder / "sys"
    own.mkdir()
    subprocess.run(["mount", "-t", "sysfs", "sysfs", own], check=True)
    write_tree(machine, root, "class/infiniband/")
    for name in ("class/net", "devices"):
        (root / name).mkdir(parents=True)
        subprocess.run(["mount", "--bind", own / name, root / name], check=True)
    return root


def unmount(*folders: Path) -> None:
    subprocess.run(["umount", *folders], check=True)
