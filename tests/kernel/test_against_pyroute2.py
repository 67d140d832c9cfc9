"""Netlink decoded twice: by us and by pyroute2, whose messages and attribute tables are nothing of ours."""

from __future__ import annotations

from typing import Any

import pytest
from netlink_testing import recorded
from pyroute2 import IPRoute
from pyroute2.netlink.generic.ethtool import NlEthtool

from bench.rdma_decode import pyroute2_decode
from exporter.kernel import Link
from exporter.kernel.ethtool_netlink import LiveEthtoolNetlink
from exporter.kernel.links import LiveLinks
from exporter.kernel.rdma import CounterDecoder
from tests.namespaces import Namespace

UP, LOOPBACK, LOWER_UP = 0x1, 0x8, 0x10000
"""IFF_UP, IFF_LOOPBACK and IFF_LOWER_UP (include/uapi/linux/if.h)."""


@pytest.fixture
def lab(namespace: Namespace) -> Namespace:
    """A namespace with v0 up, its peer w0 in a bridge, u0 up whose peer x0 is down, and two default routes."""
    namespace.batch(
        [
            "link add b0 type bridge",
            "link add v0 mtu 9000 type veth peer name w0",
            "link add u0 type veth peer name x0",
            "link set w0 up master b0",
            "link set v0 up",
            "link set u0 up",
            "addr add 10.0.0.1/24 dev v0",
            "addr add 10.0.1.1/24 dev b0",
            "link set b0 up",
            "link set w0 down",
            "link set w0 up",
            "route add default via 10.0.0.2 metric 300",
            "route add default via 10.0.1.2 metric 100",
        ]
    )
    return namespace


def link_of(message: Any) -> Link:
    """Return a link as pyroute2 decoded it."""
    get = message.get_attr
    flags, info = message["flags"], get("IFLA_LINKINFO")
    return Link(
        ifindex=message["index"],
        name=get("IFLA_IFNAME"),
        kind=info.get_attr("IFLA_INFO_KIND") if info else "",
        master=get("IFLA_MASTER") or 0,
        parent=get("IFLA_LINK") or 0,
        mac=get("IFLA_ADDRESS"),
        mtu=get("IFLA_MTU"),
        up=bool(flags & UP),
        carrier=bool(flags & LOWER_UP),
        operational_state=get("IFLA_OPERSTATE").lower(),
        carrier_up_count=get("IFLA_CARRIER_UP_COUNT"),
        carrier_down_count=get("IFLA_CARRIER_DOWN_COUNT"),
        loopback=bool(flags & LOOPBACK),
    )


def test_links(lab: Namespace) -> None:
    def asked() -> tuple[tuple[Link, ...], list[Any]]:
        """Return both lists from a moment in which nothing changed: carriers settle a while after the commands."""
        links = LiveLinks()
        with IPRoute() as route:
            while True:
                before, theirs = links.dump(), list(route.get_links())
                if links.dump() == before:
                    return before, theirs

    ours, theirs = lab.inside(asked)
    assert {link.ifindex: link for link in ours} == {message["index"]: link_of(message) for message in theirs}
    assert {link.name for link in ours} == {"lo", "b0", "v0", "w0", "u0", "x0"}


def test_default_routes(lab: Namespace) -> None:
    def asked() -> tuple[tuple[str, ...], list[Any], dict[int, str]]:
        with IPRoute() as route:
            names = {message["index"]: message.get_attr("IFLA_IFNAME") for message in route.get_links()}
            return LiveLinks().default_route_interfaces(), list(route.get_default_routes()), names

    ours, theirs, names = lab.inside(asked)
    by_metric = sorted(theirs, key=lambda message: message.get_attr("RTA_PRIORITY"))
    assert ours == tuple(names[message.get_attr("RTA_OIF")] for message in by_metric) == ("b0", "v0")


def test_link_state(lab: Namespace) -> None:
    def asked() -> list[tuple[bool | None, int]]:
        ours = LiveEthtoolNetlink()
        with NlEthtool() as theirs:
            return [
                (ours.link_state(name).link, theirs.get_linkstate(name)[0].get_attr("ETHTOOL_A_LINKSTATE_LINK"))
                for name in ("v0", "u0")
            ]

    assert lab.inside(asked) == [(True, 1), (False, 0)]


@pytest.mark.parametrize("case", ["rxe0", "rxe1", "lab0", "lab1"])
def test_rdma_counters(case: str) -> None:
    """Answers of a real kernel; pyroute2 brings the codec, the attributes are declared for it in ``bench.rdma_decode``."""
    (answer,) = recorded(f"rdma-statistic-{case}").answers
    assert CounterDecoder().decode(answer) == pyroute2_decode(answer)
