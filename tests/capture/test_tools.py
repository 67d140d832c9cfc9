"""What the tools print is read, what is written in their form is read again, and garbage is told in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.kernel import (
    Dcb,
    DriverInfo,
    Fec,
    HealthReporter,
    Link,
    LinkState,
    Pause,
    RdmaDevice,
    RdmaLink,
    Statistics,
    ethtool_output,
    tool_format,
    tool_output,
)

WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)
COUNTER = WORD.map(lambda word: f"rx {word}")
U64 = st.integers(0, (1 << 64) - 1)
MAYBE = st.none() | U64
FLAG = st.none() | st.booleans()
EIGHT = st.tuples(*[U64] * 8)
STATISTICS = st.dictionaries(COUNTER, U64, max_size=6).map(
    lambda found: Statistics(tuple(found), tuple(found.values()))
)

READERS: tuple[Callable[[str], object], ...] = (
    ethtool_output.statistics,
    ethtool_output.driver_info,
    ethtool_output.pause,
    ethtool_output.fec,
    ethtool_output.link_state,
    ethtool_output.groups,
    tool_output.rdma_devices,
    tool_output.rdma_links,
    tool_output.rdma_namespaces,
    tool_output.rdma_statistics,
    tool_output.ip_links,
    tool_output.ip_default_routes,
    tool_output.dcb,
    tool_output.devlink_health,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "ifname",
                    "ifindex",
                    "port",
                    "health",
                    "prio_pfc",
                    "dscp_prio",
                    "statistics",
                    "dst",
                    "flags",
                    "netns",
                    "x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("reader", READERS)
@given(text=st.text(max_size=100) | JSON.map(json.dumps))
def test_garbage_is_a_value_error(reader: Callable[[str], object], text: str) -> None:
    """Whatever stands in a file, reading it gives a value or a ValueError: nothing else comes out of a capture."""
    with suppress(ValueError):
        reader(text)


@given(STATISTICS)
def test_ethtool_statistics_round_trip(statistics: Statistics) -> None:
    assert ethtool_output.statistics(tool_format.ethtool_statistics(statistics)) == statistics
    assert ethtool_output.groups(tool_format.ethtool_groups(statistics)) == statistics
    both: dict[tuple[str, int], Statistics | OSError] = {("mlx5_0", 1): statistics, ("mlx5_0", 2): statistics}
    assert tool_output.rdma_statistics(tool_format.rdma_statistics(both)) == both


@given(st.builds(DriverInfo, WORD, WORD, WORD, st.just("")))
def test_driver_info_round_trip(info: DriverInfo) -> None:
    assert ethtool_output.driver_info(tool_format.ethtool_driver_info(info)) == info


@given(
    st.builds(LinkState, FLAG, MAYBE, MAYBE, MAYBE),
    st.builds(Pause, FLAG, FLAG, FLAG, MAYBE, MAYBE),
    st.builds(Fec, st.sampled_from(["RS", "BASER", "None", "LLRS", ""]), MAYBE, MAYBE, MAYBE),
)
def test_ethtool_netlink_round_trip(state: LinkState, pause: Pause, fec: Fec) -> None:
    assert ethtool_output.link_state(tool_format.link_state(state)) == state
    assert ethtool_output.pause(tool_format.ethtool_pause(pause)) == pause
    assert ethtool_output.fec(tool_format.ethtool_fec(fec)) == fec


@given(
    st.builds(RdmaDevice, st.integers(0, 99), WORD, WORD, WORD, WORD, st.integers(1, 2)),
    st.builds(
        RdmaLink,
        st.integers(0, 99),
        WORD,
        st.integers(1, 2),
        st.none() | st.integers(0, 5),
        st.none() | st.integers(0, 7),
        st.none() | st.integers(1, 99),
        WORD,
    ),
)
def test_rdma_round_trip(device: RdmaDevice, link: RdmaLink) -> None:
    assert tool_output.rdma_devices(tool_format.rdma_devices([device])) == (device,)
    assert tool_output.rdma_links(tool_format.rdma_links([link])) == (link,)


def link(ifindex: int, name: str, master: int = 0, parent: int = 0, kind: str = "") -> Link:
    return Link(ifindex, name, kind, master, parent, "02:00:00:00:00:01", 9000, True, False, "down", 3, None, False)


def test_links_round_trip() -> None:
    links = (
        link(1, "lo")._replace(loopback=True),
        link(2, "eth0", master=4),
        link(3, "eth0.7", parent=2, kind="vlan"),
        link(4, "bond0", kind="bond"),
        link(5, "unknown")._replace(up=None, carrier=None),
    )
    assert tool_output.ip_links(tool_format.ip_links(links)) == links
    assert tool_output.ip_default_routes(tool_format.ip_default_routes(["bond0", "eth0"])) == ("bond0", "eth0")


@given(
    st.builds(
        Dcb,
        st.none() | st.integers(0, 255),
        st.none() | st.integers(0, 8),
        st.lists(st.tuples(st.just(5), st.integers(0, 7), st.integers(0, 63)), max_size=4).map(tuple),
        st.none() | st.integers(0, 31),
        EIGHT | st.just(()),
        EIGHT,
        EIGHT | st.just(()),
        EIGHT,
    ).map(
        lambda dcb: dcb._replace(
            pfc_indications=dcb.pfc_indications if dcb.pfc_requests else (),
            priority_buffers=dcb.priority_buffers if dcb.buffer_sizes else (),
        )
    )
)
def test_dcb_round_trip(dcb: Dcb) -> None:
    assert tool_output.dcb(tool_format.dcb(dcb)) == dcb


@given(
    st.lists(
        st.builds(
            HealthReporter,
            st.just("pci"),
            st.just("0000:03:00.0"),
            st.none() | st.integers(0, 9),
            WORD,
            FLAG,
            st.integers(0, 99),
            st.integers(0, 99),
        ),
        max_size=3,
    )
)
def test_devlink_round_trip(reporters: list[HealthReporter]) -> None:
    assert sorted(tool_output.devlink_health(tool_format.devlink_health(reporters)), key=str) == sorted(
        reporters, key=str
    )


def test_ip_routes_of_both_families() -> None:
    """IPv4 and IPv6 output one after the other; multipath routes; other routes are passed over."""
    text = (
        '[{"dst":"default","gateway":"10.0.0.1","dev":"eth1","metric":200},{"dst":"10.0.0.0/24","dev":"eth9"}]\n'
        '[{"dst":"default","metric":100,"nexthops":[{"dev":"eth2"},{"dev":"eth1"}]}]\n'
    )
    assert tool_output.ip_default_routes(text) == ("eth2", "eth1")


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("     rx_packets: 18446744073709551615", "rx_packets", 18446744073709551615),
        ("\t\t[0]: rx_ucast_packets: 276347403", "[0]: rx_ucast_packets", 276347403),
        ("     duplicate metric: 1", "duplicate metric", 1),
        ("     rx_priority_0_xoff.nic : 5 \r", "rx_priority_0_xoff.nic ", 5),
    ],
)
def test_a_statistic_is_named_up_to_the_last_colon(line: str, name: str, value: int) -> None:
    text = f"# ethtool -S eth0\nNIC statistics:\n{line}\n\n"
    assert ethtool_output.statistics(text) == Statistics((name,), (value,))


@pytest.mark.parametrize(
    "text", ["no stats available\n", "NIC statistics:\n", "", "NIC statistics:\nno stats available\n"]
)
def test_an_interface_without_statistics(text: str) -> None:
    assert ethtool_output.statistics(text) == Statistics((), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NIC statistics:\n  rx: ten\n", "line 2: expected '  name: value' as ethtool -S prints it, found '  rx: ten'"),
        ("  rx: 18446744073709551616", "line 1: expected '  name: value' as ethtool -S prints it"),
    ],
)
def test_what_is_no_statistic_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ethtool_output.statistics(text)


def test_rdma_link_of_an_old_rdma() -> None:
    """The text form before iproute2 5.0 numbers the devices: ``1/1: mlx5_0/1: state ACTIVE ...``."""
    text = "0/1: mlx5_0/1: state ACTIVE physical_state LINK_UP\n1/1: mlx5_1/1: state DOWN physical_state DISABLED\n"
    assert tool_output.rdma_links(text) == (
        RdmaLink(0, "mlx5_0", 1, 4, 5, None, ""),
        RdmaLink(1, "mlx5_1", 1, 1, 3, None, ""),
    )


def test_fec_as_ethtool_prints_it() -> None:
    """ethtool's words for the modes are not the kernel's; lanes are passed over."""
    text = """[ {
        "ifname": "eth0",
        "config": [ "Auto","Off","BaseR" ],
        "active": [ "BaseR" ],
        "statistics": {
            "corrected_blocks": {
                "total": 256,
                "lanes": [ 255,1 ]
            },
            "uncorrectable_blocks": {
                "total": 145
            }
        }
    } ]
"""
    assert ethtool_output.fec(text) == Fec("BASER", 256, 145, None)
    assert ethtool_output.fec(text.replace('"BaseR" ],\n        "s', '"Off" ],\n        "s')).active == "None"


def test_dcb_as_several_commands_print_it() -> None:
    """Objects one after the other; entries of two or, in some versions, three members; no DCBX shown: not known."""
    text = (
        '{"pfc_cap":8,"macsec_bypass":false,"delay":0,"prio_pfc":[false,false,false,true,false,false,false,false]}\n'
        '{"dscp_prio":[[26,3," "],[48,6]],"default_prio":[0]}\n'
    )
    assert tool_output.dcb(text) == Dcb(8, 8, ((1, 0, 0), (5, 3, 26), (5, 6, 48)), None)
