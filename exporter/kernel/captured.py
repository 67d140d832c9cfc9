"""A capture: a folder of text files that answers like the host it was made on (docs/capture.md).

The files are what an operator can paste: lines of sysfs, and the output of ethtool, ip, rdma, dcb and devlink. A file that is not
there gives the errno by which the kernel says "no such thing". A file whose text is ``ERROR: 5`` gives that errno.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from exporter.errors import CaptureError
from exporter.kernel import Kernel, Link, RdmaDevice, RdmaLink, ethtool_output, tool_format, tool_output
from exporter.kernel.processes import read_processes, write_processes
from exporter.kernel.snapshot import Snapshot, kernel_of
from exporter.kernel.tree import Tree, format_entry


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """One file of a capture: which answer of a snapshot it holds, and how its text is read and written.

    ``name`` with a ``*`` stands for one file per interface. Where ``write`` is None the file is read only. ``absent`` is the
    errno that its absence gives (:mod:`exporter.kernel.snapshot`).
    """

    name: str
    answer: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] | None
    absent: int = errno.EOPNOTSUPP


_NO_RDMA = errno.EPROTONOSUPPORT

FILES = (
    CaptureFile("ethtool/*.txt", "statistics", ethtool_output.statistics, tool_format.ethtool_statistics),
    CaptureFile("ethtool-i/*.txt", "driver_info", ethtool_output.driver_info, tool_format.ethtool_driver_info),
    CaptureFile("ethtool-link/*.json", "link_state", ethtool_output.link_state, tool_format.link_state),
    CaptureFile("ethtool-pause/*.json", "pause", ethtool_output.pause, tool_format.ethtool_pause),
    CaptureFile("ethtool-fec/*.json", "fec", ethtool_output.fec, tool_format.ethtool_fec),
    CaptureFile("ethtool-groups/*.json", "standard", ethtool_output.groups, tool_format.ethtool_groups),
    CaptureFile("dcb/*.json", "dcb", tool_output.dcb, tool_format.dcb),
    CaptureFile(
        "rdma-statistic.json", "rdma_statistics", tool_output.rdma_statistics, tool_format.rdma_statistics, _NO_RDMA
    ),
    CaptureFile("rdma-link.txt", "rdma_links", tool_output.rdma_links, None),
    CaptureFile("rdma-link.json", "rdma_links", tool_output.rdma_links, tool_format.rdma_links, _NO_RDMA),
    CaptureFile("rdma-dev.json", "rdma_devices", tool_output.rdma_devices, tool_format.rdma_devices, _NO_RDMA),
    CaptureFile(
        "rdma-system.json", "rdma_namespaces", tool_output.rdma_namespaces, tool_format.rdma_namespaces, _NO_RDMA
    ),
    CaptureFile("devlink-health.json", "health_reporters", tool_output.devlink_health, tool_format.devlink_health),
    CaptureFile("gpu-processes.json", "gpu_processes", read_processes, write_processes),
    CaptureFile("ip-link.json", "links", tool_output.ip_links, tool_format.ip_links),
    CaptureFile("ip-route.json", "default_routes", tool_output.ip_default_routes, tool_format.ip_default_routes),
)

_ERROR = re.compile(r"\s*ERROR: ([0-9]{1,4})\s*")


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
    place = Path(path)
    problems: list[str] = []
    snapshot = Snapshot()
    if place.is_dir():
        used = _read_folder(place, snapshot, problems)
    else:
        snapshot.sysfs = Tree.parse(_read(place), problems, place.name)
        used = bool(snapshot.sysfs)
    if not used:
        reason = problems[0] if problems else "expected sys.txt, ethtool/NETDEV.txt or another file of docs/capture.md"
        raise CaptureError(f"{path}: no capture: {reason}")
    _complete(snapshot)
    return Capture(kernel_of(snapshot), tuple(problems))


def capture_files(snapshot: Snapshot) -> dict[str, str]:
    """Return the files of a capture that answers as the snapshot does: their text by relative name."""
    files = {
        f"{name}.txt": "".join(f"{format_entry(entry)}\n" for entry in tree.entries())
        for name, tree in (("sys", snapshot.sysfs), ("proc", snapshot.proc))
        if tree
    }
    for file in FILES:
        answers = getattr(snapshot, file.answer)
        if file.write is None or answers is None:
            continue
        each = answers.items() if "*" in file.name else [("", answers)]
        for netdev, answer in each:
            if isinstance(answer, OSError) and answer.errno == file.absent:  # said by the file's absence
                continue
            text = f"ERROR: {answer.errno}\n" if isinstance(answer, OSError) else file.write(answer)
            files[file.name.replace("*", netdev)] = text
    return files


def _read_folder(folder: Path, snapshot: Snapshot, problems: list[str]) -> bool:
    """Read all files of a folder into the snapshot; True when one was of use."""
    used = False
    for name in ("sys.txt", "proc.txt"):
        if (folder / name).exists():
            tree = Tree.parse(_text(folder / name, problems), problems, name)
            setattr(snapshot, "sysfs" if name == "sys.txt" else "proc", tree)
            used |= bool(tree)
    for file in FILES:
        prefix, per_netdev, suffix = file.name.partition("*")
        for path in sorted(folder.glob(file.name)):
            name = path.relative_to(folder).as_posix()
            try:
                answer = _answer(_text(path, problems), file.read)
            except tool_output.NothingPrintedError:
                continue
            except ValueError as error:
                problems.append(f"{name}: {error}")
                continue
            used = True
            if per_netdev:
                getattr(snapshot, file.answer)[name.removeprefix(prefix).removesuffix(suffix)] = answer
            else:
                setattr(snapshot, file.answer, answer)
    return used


def _answer(text: str, read: Callable[[str], Any]) -> Any:
    if match := _ERROR.fullmatch(text):
        number = int(match[1])
        return OSError(number, os.strerror(number))
    return read(text.replace("\r\n", "\n"))


def _text(path: Path, problems: list[str]) -> str:
    try:
        return _read(path)
    except CaptureError as error:
        problems.append(str(error))
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror}: expected a capture folder or a file of sysfs lines") from None


def _complete(snapshot: Snapshot) -> None:
    """Conclude what no file says from what others do: RDMA devices from their statistics, interfaces from sysfs."""
    statistics = snapshot.rdma_statistics
    if snapshot.rdma_links is None and isinstance(statistics, dict):
        order = {name: index for index, name in enumerate(dict.fromkeys(name for name, _ in statistics))}
        snapshot.rdma_links = tuple(
            RdmaLink(order[name], name, port, None, None, None, "") for name, port in statistics
        )
    ports: dict[str, int] = {}
    index: dict[str, int] = {}
    for link in snapshot.rdma_links if isinstance(snapshot.rdma_links, tuple) else ():
        ports[link.device] = max(link.port, ports.get(link.device, 0))
        index[link.device] = link.dev_index
    if isinstance(snapshot.rdma_devices, tuple):
        devices = snapshot.rdma_devices
        snapshot.rdma_devices = tuple(
            device if device.ports else device._replace(ports=ports.get(device.name, 1)) for device in devices
        )
    elif snapshot.rdma_devices is None and isinstance(snapshot.rdma_links, tuple):
        snapshot.rdma_devices = tuple(RdmaDevice(index[name], name, "", "", "", count) for name, count in ports.items())
    if snapshot.default_routes is None:
        snapshot.default_routes = ()
    if not isinstance(snapshot.links, OSError):
        snapshot.links = _links(snapshot.links, snapshot.sysfs, tuple(snapshot.statistics))


def _links(printed: tuple[Link, ...] | None, sysfs: Tree, others: tuple[str, ...]) -> tuple[Link, ...]:
    """Return the interfaces: those that ip printed, else those of class/net, and any that only other files name.

    ip does not print the carrier counts; sysfs has them.
    """
    in_sysfs = {link.name: link for link in _links_of_sysfs(sysfs)}
    links = list(in_sysfs.values())
    if printed is not None:
        links = [_with_counts(link, in_sysfs.get(link.name)) for link in printed]
    known = {link.name for link in links}
    links += [_unknown_link(name) for name in others if name not in known]
    return tuple(links)


def _with_counts(link: Link, in_sysfs: Link | None) -> Link:
    if in_sysfs is None or link.carrier_down_count is not None:
        return link
    return link._replace(carrier_up_count=in_sysfs.carrier_up_count, carrier_down_count=in_sysfs.carrier_down_count)


def _unknown_link(name: str) -> Link:
    return Link(0, name, "", 0, 0, "", 0, None, None, "", None, None, loopback=False)


_IFF_UP = 1
_ARPHRD_LOOPBACK = 772
_DEVTYPE = re.compile(r"^DEVTYPE=(.+)$", re.MULTILINE)


def _links_of_sysfs(sysfs: Tree) -> list[Link]:
    """Return the interfaces of ``class/net`` (Documentation/ABI/testing/sysfs-class-net)."""
    try:
        names = sysfs.list("class/net")
    except OSError:
        return []
    return [_link_of_sysfs(sysfs, name) for name in names if _is_folder(sysfs, f"class/net/{name}")]


def _link_of_sysfs(sysfs: Tree, name: str) -> Link:
    def text(attribute: str, netdev: str = name) -> str:
        try:
            return sysfs.read_bytes(f"class/net/{netdev}/{attribute}").decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def number(attribute: str, netdev: str = name) -> int | None:
        try:
            return int(text(attribute, netdev), 0)
        except ValueError:
            return None

    index, below = number("ifindex") or 0, number("iflink") or 0
    flags, carrier = number("flags"), number("carrier")
    up = None if flags is None else bool(flags & _IFF_UP)
    lit = None if carrier is None else carrier == 1
    has_master = sysfs.exists(f"class/net/{name}/master")
    master = sysfs.resolve(f"class/net/{name}/master").rpartition("/")[2] if has_master else ""
    kind = _DEVTYPE.search(text("uevent"))
    return Link(
        ifindex=index,
        name=name,
        kind="bond" if sysfs.exists(f"class/net/{name}/bonding") else kind[1] if kind else "",
        master=number("ifindex", master) or 0 if master else 0,
        parent=below if below != index else 0,
        mac=text("address"),
        mtu=number("mtu") or 0,
        up=up,
        carrier=False if up is False else lit,  # while down, the file gives EINVAL
        operational_state=text("operstate"),
        carrier_up_count=number("carrier_up_count"),
        carrier_down_count=number("carrier_down_count"),
        loopback=number("type") == _ARPHRD_LOOPBACK,
    )


def _is_folder(sysfs: Tree, path: str) -> bool:
    """True unless the path is a file (``class/net/bonding_masters``)."""
    try:
        sysfs.list(path)
    except OSError as error:
        return error.errno != errno.ENOTDIR
    return True
