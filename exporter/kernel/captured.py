"""A captured kernel: the interfaces of :mod:`exporter.kernel`, answered from a folder of text files (docs/capture.md).

The files are what an operator can paste: lines of sysfs, and the output of ethtool, ip, rdma, dcb and devlink. A file that is not
there gives the errno by which the kernel says "no such thing". A file whose text is ``ERROR: 5`` gives that errno.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from exporter.errors import CaptureError
from exporter.kernel import (
    Dcb,
    DriverInfo,
    Fec,
    HealthReporter,
    Kernel,
    Link,
    LinkEvent,
    LinkState,
    Pause,
    RdmaDevice,
    RdmaLink,
    Statistics,
    tool_output,
)
from exporter.kernel.tree import Tree

T = TypeVar("T")

_ERROR = re.compile(r"\s*ERROR: ([0-9]+)\s*")


class Capture(NamedTuple):
    """A captured kernel, and a line for each file or line of the capture that could not be used."""

    kernel: Kernel
    problems: tuple[str, ...]


def open_capture(path: str | Path) -> Kernel:
    """Return the kernel of a capture (see :func:`load_capture`)."""
    return load_capture(path).kernel


def load_capture(path: str | Path) -> Capture:
    """Return the kernel of a capture: a folder, or one file of sysfs lines.

    What cannot be used costs itself only, and is named in ``problems``. Raises CaptureError when nothing can be used.
    """
    folder = Path(path)
    problems: list[str] = []
    if folder.is_dir():
        files = _Files(folder, problems)
        tree = Tree.parse(files.text("sys.txt") or "", problems, "sys.txt")
        proc = Tree.parse(files.text("proc.txt") or "", problems, "proc.txt")
        kernel = _kernel(tree, proc, files)
        used = bool(tree or proc or files.used)
    else:
        files = _Files(folder.parent, problems, frozenset())
        tree = Tree.parse(_read(folder), problems, folder.name)
        kernel = _kernel(tree, Tree(), files)
        used = bool(tree)
    if not used:
        reason = problems[0] if problems else "expected sys.txt, ethtool/NETDEV.txt or another file of docs/capture.md"
        raise CaptureError(f"{path}: no capture: {reason}")
    return Capture(kernel, tuple(problems))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror}: expected a capture folder or a file of sysfs lines") from None


class _Files:
    """The files of a capture folder: each is read once, when the capture is opened."""

    def __init__(self, folder: Path, problems: list[str], only: frozenset[str] | None = None) -> None:
        self._folder = folder
        self._problems = problems
        self._only = only
        self.used = False

    def text(self, name: str) -> str | None:
        """Return the text of a file, None when there is none."""
        if self._only is not None and name not in self._only:
            return None
        try:
            return _read(self._folder / name) if (self._folder / name).exists() else None
        except CaptureError as error:
            self._problems.append(str(error))
            return None

    def answer(self, name: str, parse: Callable[[str], T]) -> T | OSError | None:
        """Return what a file says: a value, the error that was captured, or None when it is not there or of no use."""
        text = self.text(name)
        if text is None:
            return None
        if match := _ERROR.fullmatch(text):
            self.used = True
            return OSError(number := int(match[1]), os.strerror(number))
        try:
            value = parse(text.replace("\r\n", "\n"))
        except ValueError as error:
            self._problems.append(f"{name}: {error}")
            return None
        self.used = True
        return value

    def answers(self, folder: str, suffix: str, parse: Callable[[str], T]) -> dict[str, T | OSError]:
        """Return what the files of a folder say, by interface name."""
        path = self._folder / folder
        if self._only is not None or not path.is_dir():
            return {}
        names = sorted(file.name.removesuffix(suffix) for file in path.iterdir() if file.name.endswith(suffix))
        found = {name: self.answer(f"{folder}/{name}{suffix}", parse) for name in names}
        return {name: answer for name, answer in found.items() if answer is not None}


def _kernel(tree: Tree, proc: Tree, files: _Files) -> Kernel:
    statistics = files.answers("ethtool", ".txt", tool_output.ethtool_statistics)
    return Kernel(
        sysfs=CapturedSysfs(tree, proc),
        ethtool=CapturedEthtool(statistics, files.answers("ethtool-i", ".txt", tool_output.ethtool_driver_info)),
        ethtool_netlink=CapturedEthtoolNetlink(
            link_states=files.answers("ethtool-link", ".json", tool_output.link_state),
            pauses=files.answers("ethtool-pause", ".json", tool_output.ethtool_pause),
            fecs=files.answers("ethtool-fec", ".json", tool_output.ethtool_fec),
            standard=files.answers("ethtool-groups", ".json", tool_output.ethtool_groups),
        ),
        rdma=_rdma(files),
        dcb=CapturedDcb(files.answers("dcb", ".json", tool_output.dcb)),
        devlink=CapturedDevlink(files.answer("devlink-health.json", tool_output.devlink_health)),
        links=CapturedLinks(
            _links(files.answer("ip-link.json", tool_output.ip_links), tree, tuple(statistics)),
            files.answer("ip-route.json", tool_output.ip_default_routes),
        ),
        live=False,
    )


def _given(answer: T | OSError | None, absent: int) -> T:
    """Return a captured answer, raise a captured error; without either raise ``absent``."""
    if answer is None:
        raise OSError(absent, os.strerror(absent))
    if isinstance(answer, OSError):
        raise OSError(answer.errno, answer.strerror)
    return answer


class CapturedSysfs:
    """Sysfs and procfs from their lines."""

    def __init__(self, tree: Tree, proc: Tree) -> None:
        self._tree = tree
        self._proc = proc

    def read(self, path: str) -> str:
        return self._tree.read_bytes(path).decode("utf-8", "replace")

    def read_bytes(self, path: str, limit: int = 4096) -> bytes:
        return self._tree.read_bytes(path)[:limit]

    def list(self, path: str) -> tuple[str, ...]:
        return self._tree.list(path)

    def exists(self, path: str) -> bool:
        return self._tree.exists(path)

    def resolve(self, path: str) -> str:
        return self._tree.resolve(path)

    def read_proc(self, path: str) -> str:
        return self._proc.read_bytes(path).decode("utf-8", "replace")


class CapturedEthtool:
    """``ethtool/NETDEV.txt`` and ``ethtool-i/NETDEV.txt``."""

    def __init__(self, statistics: dict[str, Statistics | OSError], drivers: dict[str, DriverInfo | OSError]) -> None:
        self._statistics = statistics
        self._drivers = drivers

    def driver_info(self, netdev: str) -> DriverInfo:
        return _given(self._drivers.get(netdev), errno.EOPNOTSUPP)

    def statistics(self, netdev: str) -> Statistics:
        return _given(self._statistics.get(netdev), errno.EOPNOTSUPP)


class CapturedEthtoolNetlink:
    """``ethtool-link``, ``ethtool-pause``, ``ethtool-fec`` and ``ethtool-groups``."""

    def __init__(
        self,
        link_states: dict[str, LinkState | OSError],
        pauses: dict[str, Pause | OSError],
        fecs: dict[str, Fec | OSError],
        standard: dict[str, Statistics | OSError],
    ) -> None:
        self._link_states = link_states
        self._pauses = pauses
        self._fecs = fecs
        self._standard = standard

    def link_state(self, netdev: str) -> LinkState:
        return _given(self._link_states.get(netdev), errno.EOPNOTSUPP)

    def pause(self, netdev: str) -> Pause:
        return _given(self._pauses.get(netdev), errno.EOPNOTSUPP)

    def fec(self, netdev: str) -> Fec:
        return _given(self._fecs.get(netdev), errno.EOPNOTSUPP)

    def standard(self, netdev: str) -> Statistics:
        return _given(self._standard.get(netdev), errno.EOPNOTSUPP)


class CapturedRdma:
    """``rdma-dev.json``, ``rdma-link.json`` (or ``.txt``), ``rdma-system.json`` and ``rdma-statistic.json``."""

    def __init__(
        self,
        devices: tuple[RdmaDevice, ...] | OSError | None,
        links: tuple[RdmaLink, ...] | OSError | None,
        namespaces: Literal["shared", "exclusive", ""] | OSError | None,
        statistics: dict[tuple[str, int], Statistics] | OSError | None,
    ) -> None:
        self._devices = devices
        self._links = links
        self._namespaces = namespaces
        self._statistics = statistics

    def devices(self) -> tuple[RdmaDevice, ...]:
        return _given(self._devices, errno.EPROTONOSUPPORT)

    def links(self) -> tuple[RdmaLink, ...]:
        return _given(self._links, errno.EPROTONOSUPPORT)

    def namespaces(self) -> Literal["shared", "exclusive", ""]:
        return _given(self._namespaces, errno.EPROTONOSUPPORT)

    def statistics(self, dev_index: int, port: int) -> Statistics:
        statistics = _given(self._statistics, errno.EPROTONOSUPPORT)
        name = next((device.name for device in self.devices() if device.dev_index == dev_index), "")
        return _given(statistics.get((name, port)), errno.EINVAL)


def _rdma(files: _Files) -> CapturedRdma:
    """Return RDMA netlink; devices and links that no file lists are known by their statistics and by each other."""
    statistics = files.answer("rdma-statistic.json", tool_output.rdma_statistics)
    links = files.answer("rdma-link.json", tool_output.rdma_links) or files.answer(
        "rdma-link.txt", tool_output.rdma_links
    )
    if links is None and isinstance(statistics, dict):
        order = {name: index for index, name in enumerate(dict.fromkeys(name for name, _ in statistics))}
        links = tuple(RdmaLink(order[name], name, port, None, None, None, "") for name, port in statistics)
    ports: dict[str, int] = {}
    for link in links if isinstance(links, tuple) else ():
        ports[link.device] = max(link.port, ports.get(link.device, 0))
    devices = files.answer("rdma-dev.json", lambda text: tool_output.rdma_devices(text, ports))
    if devices is None and isinstance(links, tuple):
        index = {link.device: link.dev_index for link in links}
        devices = tuple(RdmaDevice(index[name], name, "", "", "", count) for name, count in ports.items())
    namespaces = files.answer("rdma-system.json", tool_output.rdma_namespaces)
    return CapturedRdma(devices, links, namespaces, statistics)


class CapturedDcb:
    """``dcb/NETDEV.json``."""

    def __init__(self, answers: dict[str, Dcb | OSError]) -> None:
        self._answers = answers

    def get(self, netdev: str) -> Dcb:
        return _given(self._answers.get(netdev), errno.EOPNOTSUPP)


class CapturedDevlink:
    """``devlink-health.json``."""

    def __init__(self, reporters: tuple[HealthReporter, ...] | OSError | None) -> None:
        self._reporters = reporters

    def health_reporters(self) -> tuple[HealthReporter, ...]:
        return _given(self._reporters, errno.EOPNOTSUPP)


class CapturedLinks:
    """``ip-link.json`` and ``ip-route.json``, else what sysfs and the names of the other files tell."""

    def __init__(self, links: tuple[Link, ...] | OSError, routes: tuple[str, ...] | OSError | None) -> None:
        self._links = links
        self._routes = routes

    def dump(self) -> tuple[Link, ...]:
        return _given(self._links, errno.EOPNOTSUPP)

    def default_route_interfaces(self) -> tuple[str, ...]:
        return _given(() if self._routes is None else self._routes, errno.EOPNOTSUPP)

    async def monitor(self) -> AsyncIterator[LinkEvent]:
        nothing: tuple[LinkEvent, ...] = ()
        for event in nothing:
            yield event


def _links(
    answer: tuple[Link, ...] | OSError | None, tree: Tree, others: tuple[str, ...]
) -> tuple[Link, ...] | OSError:
    """Return the interfaces: those that ip printed, else those of class/net, and any that only other files name.

    ip does not print the carrier counts; sysfs has them.
    """
    if isinstance(answer, OSError):
        return answer
    in_sysfs = {link.name: link for link in _links_of_sysfs(tree)}
    links = list(in_sysfs.values())
    if answer is not None:
        links = [_with_counts(link, in_sysfs.get(link.name)) for link in answer]
    known = {link.name for link in links}
    links += [_unknown_link(name) for name in others if name not in known]
    return tuple(links)


def _with_counts(link: Link, in_sysfs: Link | None) -> Link:
    if in_sysfs is None or link.carrier_down_count is not None:
        return link
    return link._replace(
        carrier_up_count=in_sysfs.carrier_up_count, carrier_down_count=in_sysfs.carrier_down_count
    )


def _unknown_link(name: str) -> Link:
    return Link(0, name, "", 0, 0, "", 0, None, None, "", None, None, loopback=False)


_IFF_UP = 1
_ARPHRD_LOOPBACK = 772
_DEVTYPE = re.compile(r"^DEVTYPE=(.+)$", re.MULTILINE)


def _links_of_sysfs(tree: Tree) -> list[Link]:
    """Return the interfaces of ``class/net`` (Documentation/ABI/testing/sysfs-class-net)."""

    def text(name: str, attribute: str) -> str:
        try:
            return tree.read_bytes(f"class/net/{name}/{attribute}").decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def number(name: str, attribute: str) -> int | None:
        try:
            return int(text(name, attribute), 0)
        except ValueError:
            return None

    def index_of(name: str) -> int:
        return number(name, "ifindex") or 0

    def link(name: str) -> Link:
        index, below = index_of(name), number(name, "iflink") or 0
        flags, carrier = number(name, "flags"), number(name, "carrier")
        master = tree.resolve(f"class/net/{name}/master") if tree.exists(f"class/net/{name}/master") else ""
        device_type = _DEVTYPE.search(text(name, "uevent"))
        is_bond = tree.exists(f"class/net/{name}/bonding")
        return Link(
            ifindex=index,
            name=name,
            kind="bond" if is_bond else device_type[1] if device_type else "",
            master=index_of(master.rpartition("/")[2]) if master else 0,
            parent=below if below != index else 0,
            mac=text(name, "address"),
            mtu=number(name, "mtu") or 0,
            up=None if flags is None else bool(flags & _IFF_UP),
            carrier=None if carrier is None else carrier == 1,
            operational_state=text(name, "operstate"),
            carrier_up_count=number(name, "carrier_up_count"),
            carrier_down_count=number(name, "carrier_down_count"),
            loopback=number(name, "type") == _ARPHRD_LOOPBACK,
        )

    try:
        names = tree.list("class/net")
    except OSError:
        return []
    return [link(name) for name in names if _is_folder(tree, f"class/net/{name}")]


def _is_folder(tree: Tree, path: str) -> bool:
    """True unless the path is a file (``class/net/bonding_masters``)."""
    try:
        tree.list(path)
    except OSError as error:
        return error.errno != errno.ENOTDIR
    return True
