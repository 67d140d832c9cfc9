"""Make a machine's ``sys.txt`` from a copy of /sys: ``python tests/machines/from_copy.py COPY > tests/machines/NAME/sys.txt``.

The copy has its symbolic links, and ``X.errno`` files that hold the message which reading X gave. Kept is what the exporter
reads and the little around it that tells one machine from another.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from exporter.kernel.tree import Entry, Failure, Link, format_entry

KEPT = re.compile(
    r"(class/[^/]+/[^/]+"
    r"|bus/(pci|netdevsim)/devices/[^/]+"
    r"|.+/infiniband/[^/]+/(?!ports/)[^/]+"
    r"|.+/infiniband/[^/]+/ports/\d+/(?!pkeys|cm_)[^/]+"
    r"|.+/infiniband/[^/]+/ports/\d+/(counters|hw_counters)/[^/]+"
    r"|.+/infiniband/[^/]+/ports/\d+/(gids|gid_attrs/ndevs|gid_attrs/types)/[0-3]"
    r"|.+/infiniband/[^/]+/hw_counters/[^/]+"
    r"|.+/net/[^/]+/[^/]+"
    r"|.+/net/[^/]+/statistics/[^/]+"
    r"|devices/pci[^/]+/.+/(class|vendor|device|subsystem_vendor|subsystem_device|numa_node|driver|physfn|iommu_group"
    r"|(current|max)_link_(speed|width)|aer_(dev|rootport)_.+|sriov_(numvfs|totalvfs)|power_state)"
    r"|devices/pci[^/]+/.+/virtio\d+/(driver|vendor|device)"
    r"|devices/[^/]+/driver"
    r"|kernel/iommu_groups/\d+/type"
    r"|module/ib_core/parameters/netns_mode)"
)
ERRNO_BY_MESSAGE = {os.strerror(number): number for number in errno.errorcode}


def entries(root: Path) -> Iterator[Entry]:
    for folder, folders, files in os.walk(root):
        for name in [*files, *(name for name in folders if (Path(folder) / name).is_symlink())]:
            file = Path(folder) / name
            path = file.relative_to(root).as_posix()
            if not KEPT.fullmatch(path.removesuffix(".errno")):
                continue
            if file.is_symlink():
                yield Entry(path, Link(os.readlink(file)))
            elif path.endswith(".errno"):
                yield Entry(path.removesuffix(".errno"), Failure(ERRNO_BY_MESSAGE[file.read_text().strip()]))
            else:
                yield Entry(path, file.read_bytes().removesuffix(b"\n"))


if __name__ == "__main__":
    sys.stdout.writelines(
        f"{format_entry(entry)}\n" for entry in sorted(entries(Path(sys.argv[1])), key=lambda e: e.path)
    )
