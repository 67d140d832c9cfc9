"""Everything a kernel answered, as values; and the kernel that answers so again.

A snapshot is what a capture folder is read into (:mod:`exporter.kernel.captured`) and what a recording of a live kernel is
(:mod:`exporter.kernel.recording`). An answer may be an error: then that error is the answer.
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Container
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from exporter.kernel import (
    Dcb,
    DriverInfo,
    Fec,
    GpuProcesses,
    HealthReporter,
    Kernel,
    Link,
    LinkEvent,
    LinkState,
    Pause,
    RdmaDevice,
    RdmaLink,
    Statistics,
    read_one_by_one,
)
from exporter.kernel.tree import Tree

T = TypeVar("T")


@dataclass(slots=True)
class Snapshot:
    """The answers of one kernel: by interface name, by RDMA device name and port, or as a whole (None: never asked)."""

    sysfs: Tree = field(default_factory=Tree)
    proc: Tree = field(default_factory=Tree)
    statistics: dict[str, Statistics | OSError] = field(default_factory=dict)
    driver_info: dict[str, DriverInfo | OSError] = field(default_factory=dict)
    link_state: dict[str, LinkState | OSError] = field(default_factory=dict)
    pause: dict[str, Pause | OSError] = field(default_factory=dict)
    fec: dict[str, Fec | OSError] = field(default_factory=dict)
    standard: dict[str, Statistics | OSError] = field(default_factory=dict)
    dcb: dict[str, Dcb | OSError] = field(default_factory=dict)
    rdma_statistics: dict[tuple[str, int], Statistics | OSError] | OSError | None = None
    rdma_devices: tuple[RdmaDevice, ...] | OSError | None = None
    rdma_links: tuple[RdmaLink, ...] | OSError | None = None
    rdma_namespaces: Literal["shared", "exclusive", ""] | OSError | None = None
    health_reporters: tuple[HealthReporter, ...] | OSError | None = None
    links: tuple[Link, ...] | OSError | None = None
    default_routes: tuple[str, ...] | OSError | None = None
    gpu_processes: GpuProcesses | OSError | None = None


def kernel_of(snapshot: Snapshot) -> Kernel:
    """Return the kernel that answers as the snapshot says."""
    return Kernel(
        sysfs=CapturedSysfs(snapshot),
        ethtool=CapturedEthtool(snapshot),
        ethtool_netlink=CapturedEthtoolNetlink(snapshot),
        rdma=CapturedRdma(snapshot),
        dcb=CapturedDcb(snapshot),
        devlink=CapturedDevlink(snapshot),
        links=CapturedLinks(snapshot),
        processes=CapturedProcesses(snapshot),
        live=False,
    )


def _given(answer: T | OSError | None, absent: int) -> T:
    """Return an answer, raise one that is an error; where there is none raise ``absent``."""
    if answer is None:
        raise OSError(absent, os.strerror(absent))
    if isinstance(answer, OSError):
        raise OSError(answer.errno, answer.strerror)
    return answer


class _Captured:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot


class CapturedSysfs(_Captured):
    """Files of sysfs and procfs."""

    def read(self, path: str) -> str:
        return self._snapshot.sysfs.read_bytes(path).decode("utf-8", "replace")

    def read_bytes(self, path: str, limit: int = 4096) -> bytes:
        return self._snapshot.sysfs.read_bytes(path)[:limit]

    def read_folder(self, path: str, skip: Container[str] = (), first: str = "") -> list[tuple[str, str | OSError]]:
        return read_one_by_one(self, path, skip, first)

    def list(self, path: str) -> tuple[str, ...]:
        return self._snapshot.sysfs.list(path)

    def exists(self, path: str) -> bool:
        return self._snapshot.sysfs.exists(path)

    def resolve(self, path: str) -> str:
        return self._snapshot.sysfs.resolve(path)

    def read_proc(self, path: str) -> str:
        return self._snapshot.proc.read_bytes(path).decode("utf-8", "replace")


class CapturedEthtool(_Captured):
    """The ethtool ioctls."""

    def driver_info(self, netdev: str) -> DriverInfo:
        return _given(self._snapshot.driver_info.get(netdev), errno.EOPNOTSUPP)

    def statistics(self, netdev: str) -> Statistics:
        return _given(self._snapshot.statistics.get(netdev), errno.EOPNOTSUPP)


class CapturedEthtoolNetlink(_Captured):
    """The ethtool netlink family."""

    def link_state(self, netdev: str) -> LinkState:
        return _given(self._snapshot.link_state.get(netdev), errno.EOPNOTSUPP)

    def pause(self, netdev: str) -> Pause:
        return _given(self._snapshot.pause.get(netdev), errno.EOPNOTSUPP)

    def fec(self, netdev: str) -> Fec:
        return _given(self._snapshot.fec.get(netdev), errno.EOPNOTSUPP)

    def standard(self, netdev: str) -> Statistics:
        return _given(self._snapshot.standard.get(netdev), errno.EOPNOTSUPP)


class CapturedRdma(_Captured):
    """RDMA netlink. A snapshot without it is a kernel without it."""

    def devices(self) -> tuple[RdmaDevice, ...]:
        return _given(self._snapshot.rdma_devices, errno.EPROTONOSUPPORT)

    def links(self) -> tuple[RdmaLink, ...]:
        return _given(self._snapshot.rdma_links, errno.EPROTONOSUPPORT)

    def namespaces(self) -> Literal["shared", "exclusive", ""]:
        return _given(self._snapshot.rdma_namespaces, errno.EPROTONOSUPPORT)

    def statistics(self, dev_index: int, port: int) -> Statistics:
        statistics = _given(self._snapshot.rdma_statistics, errno.EPROTONOSUPPORT)
        name = next((device.name for device in self.devices() if device.dev_index == dev_index), "")
        return _given(statistics.get((name, port)), errno.EINVAL)


class CapturedDcb(_Captured):
    """DCB over rtnetlink."""

    def get(self, netdev: str) -> Dcb:
        return _given(self._snapshot.dcb.get(netdev), errno.EOPNOTSUPP)


class CapturedDevlink(_Captured):
    """devlink health."""

    def health_reporters(self) -> tuple[HealthReporter, ...]:
        return _given(self._snapshot.health_reporters, errno.EOPNOTSUPP)


class CapturedLinks(_Captured):
    """Interfaces and default routes. Nothing ever happens to them."""

    def dump(self) -> tuple[Link, ...]:
        return _given(self._snapshot.links, errno.EOPNOTSUPP)

    def default_route_interfaces(self) -> tuple[str, ...]:
        return _given(self._snapshot.default_routes, errno.EOPNOTSUPP)

    async def monitor(self) -> AsyncIterator[LinkEvent]:
        nothing: tuple[LinkEvent, ...] = ()
        for event in nothing:
            yield event


class CapturedProcesses(_Captured):
    """The processes that held a GPU."""

    def holding_gpus(self) -> GpuProcesses:
        return _given(self._snapshot.gpu_processes, errno.EOPNOTSUPP)
