"""Where a PCI function sits, read from its path in sysfs (reference: Documentation/PCI/sysfs-pci.rst)."""

from __future__ import annotations

import re
from typing import NamedTuple

from exporter.kernel import Sysfs

ADDRESS = re.compile(r"[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
ROOT = re.compile(r"pci[0-9a-f]{4,5}:[0-9a-f]{2}")

NVIDIA, AMD = "0x10de", "0x1002"
DISPLAY, PROCESSING = ("0x0300", "0x0380"), ("0x0302", "0x1200")
"""PCI classes: a VGA or other display controller may be a GPU or a BMC; a 3D controller or processing accelerator is a GPU."""


class Place(NamedTuple):
    """A PCI function's address, host bridge (``pci0000:3a``) and the functions on the way down to it, itself the last."""

    address: str
    root: str
    path: tuple[str, ...]


def place(resolved: str) -> Place:
    """Return where a device is, from its resolved path in sysfs; empty text where it is not on PCI."""
    parts = resolved.split("/")
    path = tuple(part for part in parts if ADDRESS.fullmatch(part))
    root = next((part for part in parts if ROOT.fullmatch(part)), "")
    return Place(path[-1] if path else "", root, path)


def is_gpu(pci_class: str, vendor: str) -> bool:
    """True when the ``class`` and ``vendor`` files of a PCI function say that it is a GPU or an accelerator."""
    kind = pci_class[:6]
    return kind in PROCESSING or (kind in DISPLAY and vendor in (NVIDIA, AMD))


def gpus(sysfs: Sysfs) -> tuple[Place, ...]:
    """Return the places of all GPUs, by address."""
    found = []
    for address in sysfs.list("bus/pci/devices"):
        folder = f"bus/pci/devices/{address}"
        try:
            if is_gpu(sysfs.read(f"{folder}/class"), sysfs.read(f"{folder}/vendor")):
                found.append(place(sysfs.resolve(folder)))
        except OSError:
            continue
    return tuple(found)
