"""How to ask Linux. The only package that opens files under /sys and /proc, talks netlink or does an ioctl.

A :class:`Kernel` is eight small interfaces; it comes live (:mod:`exporter.kernel.live`) and captured
(:mod:`exporter.kernel.captured`). All calls block and may block for long: they are made in worker threads only. They
raise :class:`OSError` with the kernel's errno and nothing else; what an errno means to a counter is said once, by
:func:`not_there`. They never write to a device, start a dump or create anything.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Container, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

ENOTSUPP = 524
"""The kernel's own "not supported" (include/linux/errno.h), which some drivers let out."""
NOT_THERE = frozenset(
    {
        errno.ENOENT,
        errno.EINVAL,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.ENODEV,
        errno.ENOTDIR,
        errno.EPROTONOSUPPORT,
        errno.EAFNOSUPPORT,
        ENOTSUPP,
    }
)
"""What the kernel answers for a thing that a device, driver or kernel does not have."""


def not_there(error: OSError) -> bool:
    """True when the error means "this device has no such thing", False when it is a failure to be counted."""
    return error.errno in NOT_THERE


U64 = (1 << 64) - 1


def unsigned(text: str) -> int | None:
    """Return the number that a file holds; None for anything but ASCII digits, or more of them than 64 bits give."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    value = int(digits)
    return value if value <= U64 else None


class Sysfs(Protocol):
    """Files below two roots. Paths are relative to the root of sysfs (``class/net/eth0/mtu``) or procfs (``net/route``)."""

    def read(self, path: str) -> str:
        """Return the file's text without its trailing newline. One read of at most a page, as sysfs answers."""

    def read_bytes(self, path: str, limit: int = 4096) -> bytes:
        """Return at most ``limit`` bytes as they are (PCI ``config``). A short answer is not an error."""

    def read_folder(self, path: str, skip: Container[str] = (), first: str = "") -> list[tuple[str, str | OSError]]:
        """Return the files of a folder, each with its text as :meth:`read` gives it or with the error of reading it.

        Names in ``skip`` are not opened; ``first`` is read before the others, which come sorted. Raises what listing the
        folder raises.
        """

    def list(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder."""

    def exists(self, path: str) -> bool:
        """True when the path, symbolic links followed, is there."""

    def resolve(self, path: str) -> str:
        """Return the path with every symbolic link followed, relative to the root of sysfs."""

    def read_proc(self, path: str) -> str:
        """Return the text of a file below procfs."""


def in_order(names: Iterable[str], skip: Container[str], first: str) -> list[str]:
    """Return the names in the order in which :meth:`Sysfs.read_folder` reads them."""
    return sorted((name for name in names if name not in skip), key=lambda name: (name != first, name))


def read_one_by_one(sysfs: Sysfs, path: str, skip: Container[str], first: str) -> list[tuple[str, str | OSError]]:
    """Read a folder by the other methods of a sysfs, for one that is not in a hurry."""
    found: list[tuple[str, str | OSError]] = []
    for name in in_order(sysfs.list(path), skip, first):
        try:
            found.append((name, sysfs.read(f"{path}/{name}")))
        except OSError as error:
            found.append((name, error))
    return found


class DriverInfo(NamedTuple):
    """ETHTOOL_GDRVINFO (include/uapi/linux/ethtool.h)."""

    driver: str
    version: str
    firmware_version: str
    bus_info: str


class Statistics(NamedTuple):
    """Names and values of one set of counters, in the kernel's order.

    ``names`` is the *same object* as in the last answer as long as the kernel lists the same names, so that whatever was
    derived from it can be kept by ``is``. Names are as the kernel gives them: inner blanks, brackets and colons kept.
    """

    names: tuple[str, ...]
    values: tuple[int, ...]


class Ethtool(Protocol):
    """The ethtool ioctls. ``statistics`` holds RTNL for as long as the driver needs: tens of firmware commands on mlx5."""

    def driver_info(self, netdev: str) -> DriverInfo: ...

    def statistics(self, netdev: str) -> Statistics:
        """``ethtool -S``. An interface without statistics answers two empty tuples."""


class LinkState(NamedTuple):
    """ETHTOOL_MSG_LINKSTATE_GET. ``ext_state`` / ``ext_substate`` are the kernel's numbers, ``down_count`` its counter."""

    link: bool | None
    ext_state: int | None
    ext_substate: int | None
    down_count: int | None


class Pause(NamedTuple):
    """ETHTOOL_MSG_PAUSE_GET: 802.3x settings and frames (None: the driver does not say)."""

    autoneg: bool | None
    receive: bool | None
    transmit: bool | None
    received_frames: int | None
    transmitted_frames: int | None


class Fec(NamedTuple):
    """ETHTOOL_MSG_FEC_GET: the active mode (``RS``, ``BASER``, ``None``, ``LLRS`` or empty) and the totals (None: unknown)."""

    active: str
    corrected_blocks: int | None
    uncorrectable_blocks: int | None
    corrected_bits: int | None


class EthtoolNetlink(Protocol):
    """The ``ethtool`` generic netlink family."""

    def link_state(self, netdev: str) -> LinkState: ...

    def pause(self, netdev: str) -> Pause: ...

    def fec(self, netdev: str) -> Fec: ...

    def standard(self, netdev: str) -> Statistics:
        """ETHTOOL_MSG_STATS_GET, groups eth-phy, eth-mac, eth-ctrl: the kernel's own names (``FrameCheckSequenceErrors``)."""


class RdmaDevice(NamedTuple):
    """RDMA_NLDEV_CMD_GET."""

    dev_index: int
    name: str
    firmware_version: str
    node_guid: str
    protocol: str
    ports: int


class RdmaLink(NamedTuple):
    """RDMA_NLDEV_CMD_PORT_GET. ``state`` / ``physical_state`` are the IBTA numbers; ``netdev`` is empty when there is none."""

    dev_index: int
    device: str
    port: int
    state: int | None
    physical_state: int | None
    ifindex: int | None
    netdev: str


class Rdma(Protocol):
    """RDMA netlink (NETLINK_RDMA, client nldev). EPROTONOSUPPORT: a kernel without RDMA."""

    def devices(self) -> tuple[RdmaDevice, ...]: ...

    def links(self) -> tuple[RdmaLink, ...]: ...

    def namespaces(self) -> Literal["shared", "exclusive", ""]: ...

    def statistics(self, dev_index: int, port: int) -> Statistics:
        """RDMA_NLDEV_CMD_STAT_GET of one port: all hw_counters, enabled optional ones included."""


class Dcb(NamedTuple):
    """DCB_CMD_IEEE_GET, whose answer carries the DCBX mode too.

    ``pfc_enabled`` is the mask of priorities (None: no PFC structure), ``applications`` are (selector, priority, protocol)
    entries, ``dcbx`` the mode flags (HOST 1, LLD_MANAGED 2, CEE 4, IEEE 8, STATIC 16; None: unknown),
    ``pfc_requests`` / ``pfc_indications`` the frames per priority that the driver keeps (as old as its last refresh).
    """

    pfc_enabled: int | None
    pfc_capacity: int | None
    applications: tuple[tuple[int, int, int], ...]
    dcbx: int | None
    pfc_requests: tuple[int, ...] = ()
    pfc_indications: tuple[int, ...] = ()
    buffer_sizes: tuple[int, ...] = ()
    priority_buffers: tuple[int, ...] = ()


class DcbReader(Protocol):
    """DCB over rtnetlink (RTM_GETDCB). EOPNOTSUPP: the driver has no DCB."""

    def get(self, netdev: str) -> Dcb: ...


class HealthReporter(NamedTuple):
    """One devlink health reporter. ``healthy`` is None when the kernel gives another state than healthy or error."""

    bus: str
    name: str
    port: int | None
    reporter: str
    healthy: bool | None
    errors: int
    recoveries: int


class Devlink(Protocol):
    """devlink generic netlink: lists only. DUMP_GET is never sent: it may start a dump."""

    def health_reporters(self) -> tuple[HealthReporter, ...]: ...


class Link(NamedTuple):
    """One interface of an RTM_GETLINK dump.

    ``carrier_up_count`` / ``carrier_down_count`` are the kernel's flap counters; ``kind`` is IFLA_INFO_KIND (``bond``,
    ``vlan``, ``veth``, empty for hardware); ``master`` and ``parent`` are indexes (0: none). ``up`` and ``carrier`` are None
    where a capture does not say.
    """

    ifindex: int
    name: str
    kind: str
    master: int
    parent: int
    mac: str
    mtu: int
    up: bool | None
    carrier: bool | None
    operational_state: str
    carrier_up_count: int | None
    carrier_down_count: int | None
    loopback: bool


class LinkEvent(NamedTuple):
    """Something about the links changed (``resync``: events were lost, look at everything again)."""

    kind: Literal["new", "deleted", "carrier", "resync"]
    ifindex: int
    name: str
    carrier: bool | None


class Links(Protocol):
    """rtnetlink: interfaces, default routes, and news of them."""

    def dump(self) -> tuple[Link, ...]: ...

    def default_route_interfaces(self) -> tuple[str, ...]:
        """Interfaces of the IPv4 and IPv6 default routes of the main table, the lowest metric first."""

    def monitor(self) -> AsyncIterator[LinkEvent]:
        """Yield link events until closed. A captured kernel yields none and ends."""


class GpuProcess(NamedTuple):
    """A process that computes on GPUs.

    ``inner_pid`` is its pid in its own pid namespace, which it knows itself by. ``devices`` are names below /dev, ``files``
    names and inodes of the regular files that it has open.
    """

    pid: int
    inner_pid: int
    devices: tuple[str, ...] = ()
    files: tuple[tuple[str, int], ...] = ()


class GpuProcesses(NamedTuple):
    """Those that could be seen, and whether these are all."""

    processes: tuple[GpuProcess, ...]
    complete: bool


class Processes(Protocol):
    """The processes of the host."""

    def holding_gpus(self) -> GpuProcesses: ...


@dataclass(frozen=True, slots=True)
class Kernel:
    """Everything the exporter asks of Linux, live or captured."""

    sysfs: Sysfs
    ethtool: Ethtool
    ethtool_netlink: EthtoolNetlink
    rdma: Rdma
    dcb: DcbReader
    devlink: Devlink
    links: Links
    processes: Processes
    live: bool = True
