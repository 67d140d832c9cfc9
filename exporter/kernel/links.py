"""Interfaces, default routes and news of links over rtnetlink (rtnetlink(7), include/uapi/linux/if_link.h).

Decoding only the attributes that are needed takes 0.4 ms for 21 links; pyroute2's dump took 3 ms, after an import of
13 MB. Nothing is shared between calls: a dump that waits for RTNL holds up only the thread that asked.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import os
import socket
import struct
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from exporter.kernel import Link, LinkEvent
from exporter.kernel.netlink import (
    Netlink,
    attributes,
    malformed,
    messages,
    number,
    number_attribute,
    optional_number,
    required,
    text,
)

_T = TypeVar("_T")

_NETLINK_ROUTE = 0
_NEWLINK, _DELLINK, _GETLINK, _GETROUTE = 16, 17, 18, 26  # RTM_*
_LINK_GROUP = 1  # RTMGRP_LINK

_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change mask
_UP, _LOOPBACK, _LOWER_UP = 0x1, 0x8, 0x10000  # IFF_*
_ADDRESS, _NAME, _MTU, _PARENT, _MASTER, _OPERATIONAL_STATE = 1, 3, 4, 5, 10, 16  # IFLA_*; IFLA_LINK is the parent
_INFO, _EXTENDED_MASK, _PARENT_NAMESPACE, _UP_COUNT, _DOWN_COUNT = 18, 29, 37, 47, 48  # IFLA_*
_INFO_KIND = 1  # IFLA_INFO_KIND
_SKIP_STATISTICS = 8  # RTEXT_FILTER_SKIP_STATS: else the kernel asks every driver for them

_ROUTE = struct.Struct("=8BI")  # struct rtmsg: family, bits, source bits, tos, table, protocol, scope, type, flags
_INTERFACE, _PRIORITY, _MULTIPATH, _TABLE = 4, 6, 9, 15  # RTA_*; RTA_OIF is the interface
_NEXT_HOP = struct.Struct("=HBBi")  # struct rtnexthop: length, flags, hops, interface
_MAIN = 254  # RT_TABLE_MAIN
_UNICAST = 1  # RTN_UNICAST

OPERATIONAL_STATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")
"""IF_OPER_* of include/uapi/linux/if.h, in the words of /sys/class/net/*/operstate."""

_DATAGRAM_BYTES = 65536


class DefaultRoute(NamedTuple):
    """One next hop of a default route."""

    metric: int
    ifindex: int


class LiveLinks:
    """The links of this network namespace.

    ``backlog`` bytes are asked for as the monitor's socket buffer; the kernel gives net.core.rmem_max at most.
    """

    def __init__(self, backlog: int = 1 << 20) -> None:
        self._netlink = Netlink(_NETLINK_ROUTE)
        self._backlog = backlog

    def dump(self) -> tuple[Link, ...]:
        """Return all interfaces by index. Raises EINTR when they kept changing meanwhile: better no list than one with gaps."""
        request = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + number_attribute(_EXTENDED_MASK, _SKIP_STATISTICS)
        links = [link for body in self._netlink.dump(_GETLINK, request, "links") if (link := decode_link(body))]
        return tuple(sorted(links, key=lambda link: link.ifindex))

    def default_route_interfaces(self) -> tuple[str, ...]:
        """Return the interfaces of the IPv4 and IPv6 default routes of the main table, the lowest metric first."""
        request = _ROUTE.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0, 0, 0)
        routes = [
            route for body in self._netlink.dump(_GETROUTE, request, "routes") for route in decode_default_route(body)
        ]
        names: dict[str, None] = {}
        for route in sorted(routes, key=lambda route: route.metric):
            with suppress(OSError):  # gone since the dump
                names[socket.if_indextoname(route.ifindex)] = None
        return tuple(names)

    async def monitor(self) -> AsyncGenerator[LinkEvent, None]:
        """Yield what changes from now on; the socket closes with the iterator.

        A link that is renamed or moves to another master is ``new`` once more, with the same index. ``resync`` is followed
        by what differs from before. Flaps faster than about one a second are merged by the kernel
        (net/core/link_watch.c): count with ``carrier_down_count``.
        """
        known: dict[int, Link] | None = None
        while True:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_ROUTE) as news:
                news.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._backlog)
                news.bind((0, _LINK_GROUP))  # before the dump, so that nothing falls between the two
                links = await _in_thread(self.dump)
                if known is None:
                    known = {link.ifindex: link for link in links}
                else:
                    yield LinkEvent("resync", 0, "", None)
                    for event in differences(known, links):
                        yield event
                while (told := await _receive(news)) is not None:
                    for link, deleted in told:
                        for event in changes(known, link, deleted=deleted):
                            yield event


def decode_link(body: bytes) -> Link | None:
    """Return the link of an RTM_NEWLINK or RTM_DELLINK message, None for one of a bridge about its port.

    ``carrier`` is IFF_LOWER_UP: set up by the administrator *and* a signal on the wire. ``parent`` is 0 when it lives in
    another network namespace, where its index means another interface. Raises OSError(EBADMSG).
    """
    if len(body) < _LINK.size:
        raise malformed(f"link of {len(body)} bytes, expected at least {_LINK.size}")
    family, _, ifindex, flags, _ = _LINK.unpack_from(body)
    if family != socket.AF_UNSPEC:  # AF_BRIDGE; a port that leaves its bridge is told as a DELLINK
        return None
    table = dict(attributes(body[_LINK.size :]))
    state = optional_number(table.get(_OPERATIONAL_STATE), 1) or 0
    return Link(
        ifindex=ifindex,
        name=os.fsdecode(required(table, _NAME, "interface name").partition(b"\0")[0]),
        kind=text(dict(attributes(table.get(_INFO, b""))).get(_INFO_KIND, b"")),
        master=optional_number(table.get(_MASTER), 4) or 0,
        parent=0 if _PARENT_NAMESPACE in table else optional_number(table.get(_PARENT), 4) or 0,
        mac=table.get(_ADDRESS, b"").hex(":"),
        mtu=optional_number(table.get(_MTU), 4) or 0,
        up=bool(flags & _UP),
        carrier=bool(flags & _LOWER_UP),
        operational_state=OPERATIONAL_STATES[state] if state < len(OPERATIONAL_STATES) else str(state),
        carrier_up_count=optional_number(table.get(_UP_COUNT), 4),
        carrier_down_count=optional_number(table.get(_DOWN_COUNT), 4),
        loopback=bool(flags & _LOOPBACK),
    )


def decode_default_route(body: bytes) -> Iterator[DefaultRoute]:
    """Yield the next hops of an RTM_NEWROUTE message that is a unicast default route of the main table. Raises EBADMSG."""
    if len(body) < _ROUTE.size:
        raise malformed(f"route of {len(body)} bytes, expected at least {_ROUTE.size}")
    family, bits, source_bits, _, _, _, _, kind, _ = _ROUTE.unpack_from(body)
    if family not in (socket.AF_INET, socket.AF_INET6) or bits or source_bits or kind != _UNICAST:
        return
    table = dict(attributes(body[_ROUTE.size :]))
    if optional_number(table.get(_TABLE), 4) != _MAIN:
        return
    metric = optional_number(table.get(_PRIORITY), 4) or 0
    if _INTERFACE in table:
        yield DefaultRoute(metric, number(table[_INTERFACE], 4))
    hops = table.get(_MULTIPATH, b"")
    while hops:
        if len(hops) < _NEXT_HOP.size or (length := _NEXT_HOP.unpack_from(hops)[0]) < _NEXT_HOP.size:
            raise malformed(f"next hops end in {len(hops)} bytes")
        yield DefaultRoute(metric, _NEXT_HOP.unpack_from(hops)[3])
        hops = hops[length + 3 & ~3 :]


def changes(known: dict[int, Link], link: Link, *, deleted: bool) -> Iterator[LinkEvent]:
    """Yield what a message about a link tells beyond what is ``known`` by index, and remember it there."""
    if deleted:
        known.pop(link.ifindex, None)
        yield LinkEvent("deleted", link.ifindex, link.name, None)
        return
    before = known.get(link.ifindex)
    known[link.ifindex] = link
    if before is None or (before.name, before.master) != (link.name, link.master):
        yield LinkEvent("new", link.ifindex, link.name, link.carrier)
    if before is not None and before.carrier != link.carrier:
        yield LinkEvent("carrier", link.ifindex, link.name, link.carrier)


def differences(known: dict[int, Link], links: tuple[Link, ...]) -> Iterator[LinkEvent]:
    """Yield what a whole list of links tells beyond what is ``known`` by index, and remember it there."""
    for ifindex in known.keys() - {link.ifindex for link in links}:
        yield from changes(known, known[ifindex], deleted=True)
    for link in links:
        yield from changes(known, link, deleted=False)


async def _receive(news: socket.socket) -> list[tuple[Link, bool]] | None:
    """Return the next links that are told of and whether they were deleted; None when something was lost.

    A socket that overran goes on losing without a word until it has been emptied (net/netlink/af_netlink.c,
    netlink_overrun): it is of no more use.
    """
    try:
        datagram = await asyncio.get_running_loop().sock_recv(news, _DATAGRAM_BYTES)
    except OSError as error:
        if error.errno == errno.ENOBUFS:
            return None
        raise
    return [
        (link, message.type == _DELLINK)
        for message in messages(datagram)
        if message.type in (_NEWLINK, _DELLINK) and (link := decode_link(message.body))
    ]


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Return what ``work`` returns, done in a thread that nothing waits for: it may wait for RTNL, the loop must not."""
    outcome: concurrent.futures.Future[_T] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()  # cancelling the waiter leaves the thread to end by itself

    def run() -> None:
        try:
            outcome.set_result(work())
        except OSError as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name="fabric-links", daemon=True).start()
    return await asyncio.wrap_future(outcome)
