"""Whether a folder is on this host's own disks or memory: what is shared with other hosts is not read unless that is allowed.

A thousand exporters that each look at one shared folder every second are a denial of service. So a file system counts as local
only when it is known to be; everything else (NFS, Lustre, GPFS, BeeGFS, Weka, CephFS, SMB, anything in FUSE) is a network's.
"""

from __future__ import annotations

import ctypes
import os

LOCAL = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x794C7630: "overlay",
    0x2FC12FC1: "zfs",
    0xF2F52010: "f2fs",
    0xCA451A4E: "bcachefs",
    0x858458F6: "ramfs",
    0x3153464A: "jfs",
}
"""``f_type`` of the file systems of one host (include/uapi/linux/magic.h; zfs: zfs_vfsops.c of OpenZFS)."""
NETWORK = {
    0x6969: "nfs",
    0x0BD00BD0: "lustre",
    0x47504653: "gpfs",
    0x19830326: "beegfs",
    0x00C36400: "ceph",
    0x517B: "smb",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x65735546: "fuse",
    0x01021997: "9p",
    0x5346414F: "afs",
    0x01161970: "gfs2",
    0x7461636F: "ocfs2",
    0xAAD7AAEA: "panfs",
}
"""Names for messages. A type that is in neither table is refused as well."""

_LIBC = ctypes.CDLL(None, use_errno=True)


def file_system(path: str) -> int:
    """Return ``f_type`` of the file system that holds the path (statfs(2)). Blocks as long as the file system does.

    Raises :class:`OSError`.
    """
    answer = ctypes.create_string_buffer(256)  # struct statfs has 120 bytes; f_type is its first word
    if _LIBC.statfs(os.fsencode(path), answer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return ctypes.c_ulong.from_buffer(answer).value & 0xFFFFFFFF


def is_local(kind: int) -> bool:
    """True when the file system belongs to this host alone."""
    return kind in LOCAL


def gives_other_inodes(kind: int) -> bool:
    """True when a listing of a folder may give other inodes than stat(2) does: overlayfs, and what is not known."""
    return kind not in LOCAL or kind == 0x794C7630


def name_of(kind: int) -> str:
    """Return the file system's name, else its number in hexadecimal."""
    return LOCAL.get(kind) or NETWORK.get(kind) or f"{kind:#x}"
