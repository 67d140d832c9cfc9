from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_testing import outcome

from exporter.kernel import Link, LinkEvent
from exporter.kernel.links import LiveLinks, decode_default_route, decode_link
from exporter.kernel.netlink import attribute
from tests.namespaces import Namespace


def by_name(namespace: Namespace) -> dict[str, Link]:
    return {link.name: link for link in namespace.inside(lambda: LiveLinks().dump())}


def printed(namespace: Namespace) -> dict[str, dict[str, Any]]:
    """What Debian's ``ip -details link`` says, by name."""
    return {link["ifname"]: link for link in json.loads(namespace.ip("-j -details link"))}


def test_links_are_those_that_ip_prints(namespace: Namespace) -> None:
    namespace.batch(
        [
            "link add v0 mtu 9000 type veth peer name w0",
            "link add b0 type bridge",
            "link set v0 up",
            "link set w0 up master b0",
            "link add i0 type ifb",
        ]
    )
    links, others = by_name(namespace), printed(namespace)
    assert links.keys() == others.keys()
    for name, link in links.items():
        other = others[name]
        assert link.ifindex == other["ifindex"]
        assert link.kind == other.get("linkinfo", {}).get("info_kind", "")
        assert link.mac == other["address"]
        assert link.mtu == other["mtu"]
        assert link.up == ("UP" in other["flags"])
        assert link.carrier == ("LOWER_UP" in other["flags"])
        assert link.operational_state == other["operstate"].lower()
        assert link.loopback == ("LOOPBACK" in other["flags"])
        assert link.master == (links[other["master"]].ifindex if "master" in other else 0)
        assert link.parent == (links[other["link"]].ifindex if "link" in other else 0)
        for count, file in ((link.carrier_up_count, "up"), (link.carrier_down_count, "down")):
            assert count == int(namespace.run(f"cat /sys/class/net/{name}/carrier_{file}_count"))
    assert links["w0"].master == links["b0"].ifindex
    assert links["w0"].parent == links["v0"].ifindex
    assert list(links) == sorted(links, key=lambda name: links[name].ifindex)


def test_flaps_are_counted_by_the_kernel(namespace: Namespace) -> None:
    namespace.batch(["link add v0 type veth peer name w0", "link set v0 up", "link set w0 up"])
    before = by_name(namespace)["v0"].carrier_down_count
    namespace.batch(["link set w0 down", "link set w0 up"] * 3)
    after = by_name(namespace)["v0"]
    assert before is not None
    assert after.carrier_down_count == before + 3
    assert after.carrier


def test_a_parent_in_another_namespace_is_none_of_ours(namespace: Namespace) -> None:
    with Namespace() as pod:
        namespace.ip(f"link add v0 type veth peer name w0 netns {pod.name}")
        assert by_name(namespace)["v0"].parent == 0


def test_a_list_longer_than_one_answer(namespace: Namespace) -> None:
    namespace.batch([f"link add v{number} type veth peer name w{number}" for number in range(60)])
    links = by_name(namespace)
    assert len(links) == 121
    assert len({link.ifindex for link in links.values()}) == 121


def test_default_routes_by_metric(namespace: Namespace) -> None:
    assert namespace.inside(lambda: LiveLinks().default_route_interfaces()) == ()
    for number in range(4):
        namespace.batch([f"link add v{number} type veth peer name w{number}", f"link set w{number} up"])
        namespace.batch(
            [f"addr add 10.0.{number}.1/24 dev v{number}", f"addr add fd00:{number}::1/64 dev v{number} nodad"]
        )
        namespace.ip(f"link set v{number} up")
    namespace.batch(
        [
            "route add default via 10.0.0.2 metric 300",
            "route add default metric 100 nexthop via 10.0.1.2 nexthop via 10.0.0.2",
            "route add default via 10.0.2.2 table 77",
            "route add 192.0.2.0/24 via 10.0.2.2",
            "route add unreachable default metric 4000",
        ]
    )
    namespace.ip("-6 route add default via fd00:3::2 metric 200")
    assert namespace.inside(lambda: LiveLinks().default_route_interfaces()) == ("v1", "v0", "v3")
    namespace.ip("link delete v1")  # takes its next hop along
    assert namespace.inside(lambda: LiveLinks().default_route_interfaces()) == ("v3", "v0")


class Follower:
    """Reads a monitor's events, one by one, keeping them all."""

    def __init__(self, namespace: Namespace, events: AsyncGenerator[LinkEvent, None]) -> None:
        self.namespace = namespace
        self.events = events
        self.seen: list[LinkEvent] = []

    async def begin(self) -> None:
        """Return as soon as the monitor tells of what happens now."""
        first = asyncio.ensure_future(anext(self.events))
        while not first.done():
            self.namespace.batch(["link add marker type bridge", "link delete marker"])
            await asyncio.sleep(0.02)
        self.seen.append(first.result())

    async def until(self, kind: str, name: str) -> LinkEvent:
        """Return the next event of that kind about that interface."""
        async with asyncio.timeout(20):
            while True:
                event = await anext(self.events)
                self.seen.append(event)
                if (event.kind, event.name) == (kind, name):
                    return event


def follow(namespace: Namespace, links: LiveLinks, steps: Callable[[Follower], Awaitable[None]]) -> None:
    async def run() -> None:
        async with aclosing(links.monitor()) as events:
            follower = Follower(namespace, events)
            await follower.begin()
            await steps(follower)

    namespace.inside(lambda: asyncio.run(run()))


def test_the_monitor_tells_what_happens_to_links(namespace: Namespace) -> None:
    namespace.batch(
        [
            "link add v0 type veth peer name w0",
            "link add b0 type bridge",
            "link set b0 up",
            "link set v0 up",
            "link set w0 up",
        ]
    )
    index = by_name(namespace)["v0"].ifindex

    async def steps(follower: Follower) -> None:
        namespace.ip("link set w0 down")
        assert await follower.until("carrier", "v0") == ("carrier", index, "v0", False)
        namespace.ip("link set w0 up")
        assert await follower.until("carrier", "v0") == ("carrier", index, "v0", True)
        namespace.ip("link set v0 down")
        assert await follower.until("carrier", "v0") == ("carrier", index, "v0", False)
        namespace.ip("link set v0 name v7")
        assert await follower.until("new", "v7") == ("new", index, "v7", False)
        namespace.ip("link set v7 master b0")
        assert await follower.until("new", "v7") == ("new", index, "v7", False)
        namespace.ip("link set v7 nomaster")
        assert await follower.until("new", "v7") == ("new", index, "v7", False)
        namespace.ip("link add x0 type bridge")
        added = await follower.until("new", "x0")
        assert not [event for event in follower.seen if event.kind == "deleted" and event.name != "marker"]
        namespace.batch(["link delete x0", "link delete v7"])
        assert await follower.until("deleted", "x0") == ("deleted", added.ifindex, "x0", None)
        assert await follower.until("deleted", "v7") == ("deleted", index, "v7", None)

    follow(namespace, LiveLinks(), steps)


def test_what_does_not_concern_us_is_no_event(namespace: Namespace) -> None:
    namespace.batch(["link add v0 type veth peer name w0", "link set v0 up", "link set w0 up"])

    async def steps(follower: Follower) -> None:
        namespace.batch(["link set v0 mtu 9000", "link set v0 alias rail0", "link set v0 txqueuelen 7"])
        namespace.ip("link add end type bridge")
        await follower.until("new", "end")
        assert {event.name for event in follower.seen} <= {"marker", "end"}

    follow(namespace, LiveLinks(), steps)


def test_lost_events_are_told_and_made_up_for(namespace: Namespace) -> None:
    namespace.batch(["link add v0 type veth peer name w0", "link add u0 type bridge", "link add x type bridge"])
    namespace.batch(["link set v0 up", "link set w0 up"])

    async def steps(follower: Follower) -> None:
        namespace.batch([f"link set x{number or ''} name x{number + 1}" for number in range(100)])
        namespace.batch(["link set w0 down", "link delete u0"])
        assert await follower.until("resync", "") == ("resync", 0, "", None)
        assert (await follower.until("deleted", "u0")).carrier is None
        assert (await follower.until("carrier", "v0")).carrier is False
        assert (await follower.until("new", "x100")).carrier is False
        namespace.ip("link set w0 up")
        assert (await follower.until("carrier", "v0")).carrier is True

    follow(namespace, LiveLinks(backlog=32768), steps)


def test_a_cancelled_monitor_closes_its_socket(namespace: Namespace) -> None:
    def sockets() -> int:
        links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
        return sum(os.readlink(link).startswith("socket:") for link in links if os.path.islink(link))

    async def run() -> None:
        seen = asyncio.Event()

        async def consume() -> None:
            async for _ in LiveLinks().monitor():
                seen.set()

        before = sockets()
        consumer = asyncio.ensure_future(consume())
        while not seen.is_set():
            namespace.batch(["link add marker type bridge", "link delete marker"])
            await asyncio.sleep(0.02)
        assert sockets() == before + 1
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        assert sockets() == before

    namespace.inside(lambda: asyncio.run(run()))


messages = st.one_of(
    st.binary(max_size=200),
    st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=40))).map(
        lambda pairs: bytes(16) + b"".join(attribute(kind, payload) for kind, payload in pairs)
    ),
)


@given(messages)
def test_any_bytes_are_a_link_or_malformed(body: bytes) -> None:
    result, code = outcome(decode_link, body)
    assert code in {0, errno.EBADMSG}
    assert result is None or isinstance(result, Link)


@given(messages)
def test_any_bytes_are_a_route_or_malformed(body: bytes) -> None:
    _, code = outcome(lambda: list(decode_default_route(body)))
    assert code in {0, errno.EBADMSG}
