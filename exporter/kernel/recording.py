"""A kernel that remembers every answer it passes on: what the exporter reads is exactly what a capture saves.

Safe to use from several threads at once, as the sampler does.
"""

from __future__ import annotations

import errno
import os
import posixpath
import threading
from collections.abc import AsyncIterator, Callable, Container
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Generic, Literal, TypeVar

from exporter.kernel import (
    Dcb,
    DcbReader,
    Devlink,
    DriverInfo,
    Ethtool,
    EthtoolNetlink,
    Fec,
    GpuProcesses,
    HealthReporter,
    Kernel,
    Link,
    LinkEvent,
    Links,
    LinkState,
    Pause,
    Processes,
    Rdma,
    RdmaDevice,
    RdmaLink,
    Statistics,
    Sysfs,
    read_one_by_one,
)
from exporter.kernel import tree as text
from exporter.kernel.snapshot import Snapshot

T = TypeVar("T")
K = TypeVar("K")

UNREAD_FILES = 64
"""Files of one folder that were listed and not read, and are read at the end all the same: the folder must look the same."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A kernel to use; :meth:`finish` gives the snapshot of what it answered."""

    kernel: Kernel
    snapshot: Snapshot
    sysfs: RecordingSysfs

    def finish(self) -> Snapshot:
        """Return the snapshot as it is now. What a thread is still told afterwards is passed on and not remembered."""
        self.sysfs.finish()
        snapshot = replace(self.snapshot)
        for field in fields(snapshot):
            answers = getattr(snapshot, field.name)
            if isinstance(answers, dict):
                setattr(snapshot, field.name, dict(answers))
        return snapshot


def record(kernel: Kernel) -> Recording:
    """Return a recording of the kernel."""
    snapshot = Snapshot()
    sysfs = RecordingSysfs(kernel.sysfs, snapshot)
    recorder = Kernel(
        sysfs=sysfs,
        ethtool=RecordingEthtool(kernel.ethtool, snapshot),
        ethtool_netlink=RecordingEthtoolNetlink(kernel.ethtool_netlink, snapshot),
        rdma=RecordingRdma(kernel.rdma, snapshot),
        dcb=RecordingDcb(kernel.dcb, snapshot),
        devlink=RecordingDevlink(kernel.devlink, snapshot),
        links=RecordingLinks(kernel.links, snapshot),
        processes=RecordingProcesses(kernel.processes, snapshot),
        live=kernel.live,
    )
    return Recording(recorder, snapshot, sysfs)


class RecordingSysfs:
    """Files with the links that lead to them.

    The kernel tells where a path ends, not which part of it was a link: each part is resolved by itself, and one that ends
    elsewhere is a link.
    """

    def __init__(self, sysfs: Sysfs, snapshot: Snapshot) -> None:
        self._sysfs = sysfs
        self._snapshot = snapshot
        self._lock = threading.Lock()
        self._places: dict[str, str] = {"": ""}
        self._unread: dict[str, set[str]] = {}
        self._finished = False

    def read(self, path: str) -> str:
        return self._reading(path, lambda: self._sysfs.read(path), str.encode)

    def read_bytes(self, path: str, limit: int = 4096) -> bytes:
        return self._reading(path, lambda: self._sysfs.read_bytes(path, limit), bytes)

    def read_folder(self, path: str, skip: Container[str] = (), first: str = "") -> list[tuple[str, str | OSError]]:
        return read_one_by_one(self, path, skip, first)

    def list(self, path: str) -> tuple[str, ...]:
        try:
            names = self._sysfs.list(path)
        except OSError as error:
            self._failed(path, error)
            raise
        self._keep(path, None)
        for name in names:
            self._seen(f"{path}/{name}")
        return names

    def exists(self, path: str) -> bool:
        found = self._sysfs.exists(path)
        if found:
            self._seen(path)
        return found

    def resolve(self, path: str) -> str:
        resolved = self._sysfs.resolve(path)
        self._seen(path)
        return resolved

    def read_proc(self, path: str) -> str:
        try:
            answer = self._sysfs.read_proc(path)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._add(self._snapshot.proc, path, text.Failure(error.errno or errno.EIO))
            raise
        self._add(self._snapshot.proc, path, answer.encode())
        return answer

    def unread(self) -> tuple[str, ...]:
        """Return the files that were seen and not read. Every name that was listed is to be there again, so they are read too."""
        paths: list[str] = []
        for seen in list(self._unread.values()):
            paths += [path for path in sorted(seen) if not self._snapshot.sysfs.exists(path)][:UNREAD_FILES]
        return tuple(paths)

    def finish(self) -> None:
        """Remember nothing any more."""
        with self._lock:
            self._finished = True

    def _reading(self, path: str, read: Callable[[], T], value: Callable[[T], bytes]) -> T:
        try:
            answer = read()
        except OSError as error:
            self._failed(path, error)
            raise
        self._keep(path, value(answer))
        return answer

    def _failed(self, path: str, error: OSError) -> None:
        """Remember an error of a file. What is not there, or is of another kind, is remembered by what is there."""
        if error.errno == errno.EISDIR:
            self._keep(path, None)
        elif error.errno not in (errno.ENOENT, errno.ENOTDIR, None):
            self._keep(path, text.Failure(error.errno))

    def _seen(self, path: str) -> None:
        """Remember that a path is there, and what it is: a link, a folder, or a file to read in the end."""
        parent, _, name = path.rpartition("/")
        folder, place = self._place(parent), self._place(path)
        if place is None or place != posixpath.join(folder or "", name):  # a link, remembered on the way
            return
        try:
            self._sysfs.list(place)
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                self._unread.setdefault(folder or "", set()).add(place)
            return
        self._add(self._snapshot.sysfs, place, None)

    def _keep(self, path: str, value: bytes | text.Failure | None) -> None:
        place = self._place(path)
        if place is not None:
            self._add(self._snapshot.sysfs, place, value)

    def _place(self, path: str) -> str | None:
        """Return where a path ends, and remember the links on the way; None when it leads nowhere."""
        whole, place = "", ""
        for part in path.split("/"):
            whole = f"{whole}/{part}" if whole else part
            here = f"{place}/{part}" if place else part
            if whole not in self._places:
                try:
                    resolved = self._sysfs.resolve(here)
                except OSError:
                    return None
                if resolved != here:
                    self._add(self._snapshot.sysfs, here, text.Link(posixpath.relpath(resolved, place or ".")))
                self._places[whole] = resolved
            place = self._places[whole]
        return place

    def _add(self, tree: text.Tree, path: str, value: bytes | text.Link | text.Failure | None) -> None:
        # ValueError: a device went and another came while we looked, and what was a file is a folder now.
        with self._lock, suppress(ValueError):
            if not self._finished:
                tree.add(text.Entry(path, value))


def _kept(answers: dict[K, T | OSError], key: K, ask: Callable[[], T]) -> T:
    """Return the answer and remember it, or the error that came instead."""
    try:
        answers[key] = answer = ask()
    except OSError as error:
        answers[key] = _copy(error)
        raise
    return answer


def _kept_as(snapshot: Snapshot, name: str, ask: Callable[[], T]) -> T:
    """Return the answer and remember it in a field of the snapshot, or the error that came instead."""
    try:
        answer = ask()
    except OSError as error:
        setattr(snapshot, name, _copy(error))
        raise
    setattr(snapshot, name, answer)
    return answer


def _copy(error: OSError) -> OSError:
    """Return the error without the frames that it came through."""
    number = error.errno or errno.EIO
    return OSError(number, os.strerror(number))


class _Recording(Generic[T]):
    def __init__(self, asked: T, snapshot: Snapshot) -> None:
        self._asked = asked
        self._snapshot = snapshot


class RecordingEthtool(_Recording[Ethtool]):
    """The ethtool ioctls."""

    def driver_info(self, netdev: str) -> DriverInfo:
        return _kept(self._snapshot.driver_info, netdev, lambda: self._asked.driver_info(netdev))

    def statistics(self, netdev: str) -> Statistics:
        return _kept(self._snapshot.statistics, netdev, lambda: self._asked.statistics(netdev))


class RecordingEthtoolNetlink(_Recording[EthtoolNetlink]):
    """The ethtool netlink family."""

    def link_state(self, netdev: str) -> LinkState:
        return _kept(self._snapshot.link_state, netdev, lambda: self._asked.link_state(netdev))

    def pause(self, netdev: str) -> Pause:
        return _kept(self._snapshot.pause, netdev, lambda: self._asked.pause(netdev))

    def fec(self, netdev: str) -> Fec:
        return _kept(self._snapshot.fec, netdev, lambda: self._asked.fec(netdev))

    def standard(self, netdev: str) -> Statistics:
        return _kept(self._snapshot.standard, netdev, lambda: self._asked.standard(netdev))


class RecordingDcb(_Recording[DcbReader]):
    """DCB over rtnetlink."""

    def get(self, netdev: str) -> Dcb:
        return _kept(self._snapshot.dcb, netdev, lambda: self._asked.get(netdev))


class RecordingRdma(_Recording[Rdma]):
    """RDMA netlink. Counters are remembered by the device's name, which outlives its index."""

    def devices(self) -> tuple[RdmaDevice, ...]:
        return _kept_as(self._snapshot, "rdma_devices", self._asked.devices)

    def links(self) -> tuple[RdmaLink, ...]:
        return _kept_as(self._snapshot, "rdma_links", self._asked.links)

    def namespaces(self) -> Literal["shared", "exclusive", ""]:
        return _kept_as(self._snapshot, "rdma_namespaces", self._asked.namespaces)

    def statistics(self, dev_index: int, port: int) -> Statistics:
        known = self._snapshot.rdma_devices
        devices = known if isinstance(known, tuple) else self.devices()
        name = next((device.name for device in devices if device.dev_index == dev_index), "")
        if not isinstance(self._snapshot.rdma_statistics, dict):
            self._snapshot.rdma_statistics = {}
        return _kept(self._snapshot.rdma_statistics, (name, port), lambda: self._asked.statistics(dev_index, port))


class RecordingDevlink(_Recording[Devlink]):
    """devlink health."""

    def health_reporters(self) -> tuple[HealthReporter, ...]:
        return _kept_as(self._snapshot, "health_reporters", self._asked.health_reporters)


class RecordingLinks(_Recording[Links]):
    """Interfaces and default routes."""

    def dump(self) -> tuple[Link, ...]:
        return _kept_as(self._snapshot, "links", self._asked.dump)

    def default_route_interfaces(self) -> tuple[str, ...]:
        return _kept_as(self._snapshot, "default_routes", self._asked.default_route_interfaces)

    def monitor(self) -> AsyncIterator[LinkEvent]:
        return self._asked.monitor()


class RecordingProcesses(_Recording[Processes]):
    """The processes that hold a GPU."""

    def holding_gpus(self) -> GpuProcesses:
        return _kept_as(self._snapshot, "gpu_processes", self._asked.holding_gpus)
