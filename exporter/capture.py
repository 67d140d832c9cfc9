"""Saves what the exporter reads from a kernel, masked, as a folder that answers in its place (docs/capture.md)."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from exporter.drivers import DRIVERS
from exporter.errors import CaptureError
from exporter.kernel import Kernel, Sysfs
from exporter.kernel.captured import capture_files
from exporter.kernel.recording import Recording, record
from exporter.kernel.snapshot import Snapshot
from exporter.masking import Mask, mask_snapshot
from exporter.patience import Patience

CONTEXT = (
    "class/dmi/id/sys_vendor",
    "class/dmi/id/product_name",
    "class/dmi/id/product_version",
    "class/dmi/id/board_name",
    "class/dmi/id/bios_version",
    "class/infiniband/*/board_id",
    "class/infiniband/*/fw_ver",
    "class/infiniband/*/hca_type",
    "class/infiniband/*/node_desc",
    "class/infiniband/*/node_guid",
    "class/infiniband/*/node_type",
    "class/infiniband/*/ports/*/cap_mask",
    "class/infiniband/*/ports/*/link_layer",
    "class/infiniband/*/ports/*/phys_state",
    "class/infiniband/*/ports/*/rate",
    "class/infiniband/*/ports/*/state",
    "class/net/*/address",
    "class/net/*/carrier_down_count",
    "class/net/*/device/device",
    "class/net/*/device/vendor",
    "class/net/*/mtu",
    "class/net/*/operstate",
    "class/net/*/phys_port_name",
    "class/net/*/phys_switch_id",
    "class/net/*/speed",
    "class/net/*/type",
    "module/ib_core/parameters/netns_mode",
    "module/nvidia/version",
    *(f"module/{name}/version" for driver in DRIVERS for name in driver.kernel_names),
)
"""Files of sysfs that are saved as well, since they tell what a machine is to whoever looks at the capture later."""
CONTEXT_FILES = 2000
"""At most so many of them: a host may have thousands of interfaces."""
PROC_CONTEXT = ("sys/kernel/osrelease", "driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class Summary:
    """What a capture holds: how many files of sysfs, interfaces, RDMA devices; how many values of each kind were masked."""

    sysfs_files: int
    netdevs: int
    rdma_devices: int
    masked: Counter[str]

    def __str__(self) -> str:
        hidden = ", ".join(f"{_plural(count, kind)}" for kind, count in sorted(self.masked.items())) or "nothing"
        return (
            f"saved {_plural(self.sysfs_files, 'sysfs file')}, {_plural(self.netdevs, 'interface')}, "
            f"{_plural(self.rdma_devices, 'RDMA device')}; masked {hidden}"
        )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun if count == 1 else f'{noun}es' if noun.endswith(('s', 'sh')) else f'{noun}s'}"


def write_capture(
    kernel: Kernel,
    exercise: Callable[[Kernel], None],
    folder: Path,
    *,
    host_names: tuple[str, ...] = (),
) -> Summary:
    """Save all that ``exercise`` asks of the kernel it is given, and some context, in a new or empty folder.

    The folder appears complete or not at all, readable for its owner. ``host_names`` are masked wherever they occur. Raises
    CaptureError when the folder is not empty or cannot be written, and KernelError when too much hangs.
    """
    _check(folder)
    recording = record(kernel)
    exercise(recording.kernel)
    asyncio.run(Patience("fabric-capture").run(recording.kernel, lambda kernel: read_rest(kernel.sysfs, recording)))
    mask = Mask(secrets.token_bytes(32), host_names)
    snapshot = mask_snapshot(recording.finish(), mask)
    _write(folder, capture_files(snapshot))
    return Summary(
        sysfs_files=sum(isinstance(entry.value, bytes) for entry in snapshot.sysfs.entries()),
        netdevs=len(snapshot.links) if isinstance(snapshot.links, tuple) else 0,
        rdma_devices=_rdma_devices(snapshot),
        masked=mask.counts,
    )


def _rdma_devices(snapshot: Snapshot) -> int:
    names = {device.name for device in snapshot.rdma_devices} if isinstance(snapshot.rdma_devices, tuple) else set()
    with suppress(OSError):
        names.update(snapshot.sysfs.list("class/infiniband"))
    return len(names)


def read_rest(sysfs: Sysfs, recording: Recording) -> None:
    """Read the context files and what was seen and not read. What is not there, or cannot be read, is no loss."""
    found = (path for pattern in CONTEXT for path in matches(sysfs, pattern))
    for path, _ in zip(found, range(CONTEXT_FILES), strict=False):
        with suppress(OSError):
            sysfs.read(path)
    for path in PROC_CONTEXT:
        with suppress(OSError):
            sysfs.read_proc(path)
    for path in recording.sysfs.unread():
        with suppress(OSError):
            sysfs.read(path)


def matches(sysfs: Sysfs, pattern: str) -> Iterator[str]:
    """Yield the paths of a pattern whose parts may hold ``*``; a part without one is not looked for."""
    yield from _matches(sysfs, "", pattern.split("/"))


def _matches(sysfs: Sysfs, folder: str, parts: list[str]) -> Iterator[str]:
    part, *rest = parts
    names: Iterable[str] = (part,)
    if "*" in part:
        try:
            names = [name for name in sysfs.list(folder) if fnmatchcase(name, part)]
        except OSError:
            return
    for name in names:
        path = f"{folder}/{name}" if folder else name
        if rest:
            yield from _matches(sysfs, path, rest)
        else:
            yield path


def _check(folder: Path) -> None:
    try:
        if any(folder.iterdir()):
            raise CaptureError(f"{folder}: not empty: expected a new or an empty folder")
    except FileNotFoundError:
        return
    except OSError as error:
        raise CaptureError(f"{folder}: {error.strerror}: expected a new or an empty folder") from None


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files in a temporary folder, then put it in the folder's place.

    One that is there may be a mount point (a container's volume), which nothing can take the place of: the files go into it.
    """
    there = folder.exists()
    try:
        where = folder if there else folder.absolute().parent
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=where))
    except OSError as error:
        raise CaptureError(f"{folder}: cannot be made: {error.strerror}") from None
    try:
        for name, text in files.items():
            path = temporary / name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.touch(0o600)
            path.write_text(text, "utf-8", "surrogateescape")
        if there:
            for path in sorted(temporary.iterdir()):
                os.rename(path, folder / path.name)
        else:
            os.rename(temporary, folder)
    except OSError as error:
        raise CaptureError(f"{folder}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
