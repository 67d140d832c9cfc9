"""What rdma, ip, dcb and devlink print, read into the values of :mod:`exporter.kernel`.

Pure functions over text. Each raises ValueError with what was expected; keys that a tool prints and nobody here needs are
passed over. The JSON forms are those of iproute2 6.1 and ethtool 6.1 and newer.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import msgspec

from exporter.kernel import (
    Dcb,
    HealthReporter,
    Link,
    RdmaDevice,
    RdmaLink,
    Statistics,
)

T = TypeVar("T")

PORT_STATES = ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")
"""Names of ``rdma link`` by IBTA number (iproute2, rdma/link.c)."""
PHYSICAL_STATES = ("NOP", "SLEEP", "POLLING", "DISABLED", "ARMED", "LINK_UP", "LINK_ERROR_RECOVER", "PHY_TEST")
"""Names of ``rdma link`` by IBTA number (iproute2, rdma/link.c)."""
DCB_SELECTORS = {
    "ethtype_prio": 1,
    "stream_port_prio": 2,
    "dgram_port_prio": 3,
    "port_prio": 4,
    "dscp_prio": 5,
}
"""Keys of ``dcb app show`` by IEEE 802.1Qaz selector (include/uapi/linux/dcbnl.h)."""
DCBX_FLAGS = {"host": 1, "lld_managed": 2, "cee": 4, "ieee": 8, "static": 16}
"""Keys of ``dcb dcbx show`` by flag (DCB_CAP_DCBX_*, include/uapi/linux/dcbnl.h)."""


def documents(text: str, kind: type[T]) -> list[T]:
    """Return the JSON documents that stand one after the other in the text; a list's members count one by one.

    Raises ValueError where the text is not JSON or a document is not of the kind.
    """
    decoder, position, found = json.JSONDecoder(), 0, list[Any]()
    try:
        while (start := _skip_blanks(text, position)) < len(text):
            document, position = decoder.raw_decode(text, start)
            found += document if isinstance(document, list) else [document]
        return [msgspec.convert(document, kind) for document in found]
    except (ValueError, RecursionError) as error:  # JSONDecodeError and ValidationError are ValueErrors
        raise ValueError(f"expected the tool's JSON: {error}") from None


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


class NothingPrintedError(ValueError):
    """The tool had nothing to print: what it was asked for is not there."""


def only(found: list[T]) -> T:
    """Return the one document. Raises :class:`NothingPrintedError` when there is none, ValueError when there are several."""
    if not found:
        raise NothingPrintedError("expected one object, found none")
    if len(found) != 1:
        raise ValueError(f"expected one object, found {len(found)}")
    return found[0]


def named_counts(counts: Iterable[tuple[str, int]]) -> Statistics:
    """Return pairs of name and count as statistics."""
    pairs = list(counts)
    return Statistics(tuple(name for name, _ in pairs), tuple(count for _, count in pairs))


# --- rdma ----------------------------------------------------------------------------------------------------------------


class _RdmaDevice(msgspec.Struct):
    ifindex: int
    ifname: str
    fw: str = ""
    node_guid: str = ""
    protocol: str = ""
    ports: int = 0


def rdma_devices(text: str) -> tuple[RdmaDevice, ...]:
    """Return what ``rdma -j dev`` printed. It leaves out the number of ports: 0, unless a saved capture added ``ports``."""
    return tuple(
        RdmaDevice(found.ifindex, found.ifname, found.fw, found.node_guid, found.protocol, found.ports)
        for found in documents(text, _RdmaDevice)
    )


class _RdmaLink(msgspec.Struct):
    ifname: str
    port: int
    ifindex: int | None = None
    state: str | None = None
    physical_state: str | None = None
    netdev: str = ""
    netdev_index: int | None = None


_RDMA_LINK = re.compile(r"(?:\d+/\d+: |link )?(?P<device>[^\s/]+)/(?P<port>\d+):? (?P<rest>.*)")


def rdma_links(text: str) -> tuple[RdmaLink, ...]:
    """Return what ``rdma -j link`` or plain ``rdma link`` printed. Without indexes, devices are numbered as they come."""
    found = documents(text, _RdmaLink) if text.lstrip().startswith(("[", "{")) else _rdma_link_lines(text)
    order = {name: index for index, name in enumerate(dict.fromkeys(link.ifname for link in found))}
    return tuple(
        RdmaLink(
            dev_index=order[link.ifname] if link.ifindex is None else link.ifindex,
            device=link.ifname,
            port=link.port,
            state=_number(PORT_STATES, link.state),
            physical_state=_number(PHYSICAL_STATES, link.physical_state),
            ifindex=link.netdev_index,
            netdev=link.netdev,
        )
        for link in found
    )


def _rdma_link_lines(text: str) -> list[_RdmaLink]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _RDMA_LINK.fullmatch(line.strip())
        if match is None:
            raise ValueError(
                f"line {number}: expected 'link DEVICE/PORT state ...' as rdma link prints it, found {line[:60]!r}"
            )
        words = match["rest"].split()
        fields = dict(zip(words[::2], words[1::2], strict=False))
        found.append(
            _RdmaLink(
                ifname=match["device"],
                port=int(match["port"]),
                state=fields.get("state"),
                physical_state=fields.get("physical_state"),
                netdev=fields.get("netdev", ""),
            )
        )
    return found


def _number(names: tuple[str, ...], name: str | None) -> int | None:
    return names.index(name) if name in names else None


class _RdmaSystem(msgspec.Struct):
    netns: Literal["shared", "exclusive", ""] = ""


def rdma_namespaces(text: str) -> Literal["shared", "exclusive", ""]:
    """Return what ``rdma -j system`` says about network namespaces: ``shared``, ``exclusive`` or an empty text."""
    return only(documents(text, _RdmaSystem)).netns


def rdma_statistics(text: str) -> dict[tuple[str, int], Statistics | OSError]:
    """Return what ``rdma -j statistic`` printed, by device name and port. A saved capture adds ``errno`` where reading failed."""
    answer: dict[tuple[str, int], Statistics | OSError] = {}
    for found in documents(text, dict[str, Any]):
        device, port = msgspec.convert((found.pop("ifname", None), found.pop("port", None)), tuple[str, int])
        found.pop("ifindex", None)
        number = found.pop("errno", None)
        counts = ((name, count) for name, count in found.items() if isinstance(count, int))
        failed = isinstance(number, int) and number in errno.errorcode
        answer[device, port] = OSError(number, os.strerror(number)) if failed else named_counts(counts)
    return answer


# --- ip ------------------------------------------------------------------------------------------------------------------


class _LinkInfo(msgspec.Struct):
    info_kind: str = ""


class _IpLink(msgspec.Struct):
    ifindex: int
    ifname: str
    flags: list[str] | None = None
    mtu: int = 0
    operstate: str = ""
    address: str = ""
    link_type: str = ""
    master: str | None = None
    link: str | None = None
    linkinfo: _LinkInfo = msgspec.field(default_factory=_LinkInfo)
    carrier_up_count: int | None = None
    carrier_down_count: int | None = None


def ip_links(text: str) -> tuple[Link, ...]:
    """Return what ``ip -d -j link`` printed.

    ip does not print the carrier counts; a saved capture adds ``carrier_up_count`` and ``carrier_down_count``.
    """
    found = documents(text, _IpLink)
    index = {link.ifname: link.ifindex for link in found}
    return tuple(
        Link(
            ifindex=link.ifindex,
            name=link.ifname,
            kind=link.linkinfo.info_kind,
            master=index.get(link.master or "", 0),
            parent=index.get(link.link or "", 0),
            mac=link.address,
            mtu=link.mtu,
            up=None if link.flags is None else "UP" in link.flags,
            carrier=None if link.flags is None else "LOWER_UP" in link.flags,
            operational_state=link.operstate.lower(),
            carrier_up_count=link.carrier_up_count,
            carrier_down_count=link.carrier_down_count,
            loopback=link.link_type == "loopback",
        )
        for link in found
    )


class _Route(msgspec.Struct):
    dst: str = ""
    dev: str = ""
    metric: int = 0
    nexthops: list[dict[str, Any]] = []


def ip_default_routes(text: str) -> tuple[str, ...]:
    """Return the interfaces of the default routes that ``ip -j route`` (and ``ip -6 -j route`` after it) printed."""
    routes = sorted(
        (route for route in documents(text, _Route) if route.dst == "default"), key=lambda route: route.metric
    )
    names = [
        name for route in routes for name in (route.dev, *(str(hop.get("dev", "")) for hop in route.nexthops)) if name
    ]
    return tuple(dict.fromkeys(names))


# --- dcb and devlink -----------------------------------------------------------------------------------------------------


class _Dcb(msgspec.Struct):
    pfc_cap: int | None = None
    prio_pfc: list[bool] | None = None
    requests: tuple[int, ...] = ()
    indications: tuple[int, ...] = ()
    buffer_size: tuple[int, ...] = ()
    prio_buffer: tuple[int, ...] = ()
    default_prio: list[int] = []
    ethtype_prio: list[list[int | str]] = []
    stream_port_prio: list[list[int | str]] = []
    dgram_port_prio: list[list[int | str]] = []
    port_prio: list[list[int | str]] = []
    dscp_prio: list[list[int | str]] = []
    host: bool | None = None
    lld_managed: bool | None = None
    cee: bool | None = None
    ieee: bool | None = None
    static: bool | None = None


def dcb(text: str) -> Dcb:
    """Return what ``dcb -s -j pfc show``, ``app show``, ``dcbx show`` and ``buffer show`` printed, one after the other."""
    shown: dict[str, Any] = {}
    for document in documents(text, dict[str, Any]):
        shown.update(document)
    found = msgspec.convert(shown, _Dcb)
    flags = [(bit, getattr(found, key)) for key, bit in DCBX_FLAGS.items()]
    applications = [(1, priority, 0) for priority in found.default_prio]
    for key, selector in DCB_SELECTORS.items():
        for protocol, priority, *_ in getattr(found, key):  # some versions print a blank as a third
            applications.append((selector, priority, protocol))
    return Dcb(
        pfc_enabled=None if found.prio_pfc is None else sum(1 << bit for bit, on in enumerate(found.prio_pfc) if on),
        pfc_capacity=found.pfc_cap,
        applications=msgspec.convert(applications, tuple[tuple[int, int, int], ...]),
        dcbx=None if all(on is None for _, on in flags) else sum(bit for bit, on in flags if on),
        pfc_requests=found.requests,
        pfc_indications=found.indications,
        buffer_sizes=found.buffer_size,
        priority_buffers=found.prio_buffer,
    )


class _Reporter(msgspec.Struct):
    reporter: str
    state: str = ""
    error: int = 0
    recover: int = 0


class _Health(msgspec.Struct):
    health: dict[str, list[_Reporter]]


_HEALTHY = {"healthy": True, "error": False}


def devlink_health(text: str) -> tuple[HealthReporter, ...]:
    """Return what ``devlink -j health`` printed."""
    return tuple(
        HealthReporter(
            bus=bus,
            name=name,
            port=int(port) if port.isdecimal() else None,
            reporter=reporter.reporter,
            healthy=_HEALTHY.get(reporter.state),
            errors=reporter.error,
            recoveries=reporter.recover,
        )
        for document in documents(text, _Health)
        for handle, reporters in document.health.items()
        for bus, name, port in [(*handle.split("/"), "", "", "")[:3]]
        for reporter in reporters
    )
