"""RDMA netlink: answers of a real kernel (Linux 6.12 with rxe and siw) beside what `rdma` printed, and made-up ones."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netlink_testing import outcome, recorded

from exporter.kernel import RdmaDevice, RdmaLink, Statistics
from exporter.kernel.netlink import attribute, name_attribute, nested, number_attribute
from exporter.kernel.rdma import CounterDecoder, LiveRdma, decode_device, decode_link, decode_namespaces

STATES = ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")
PHYSICAL_STATES = ("NOP", "SLEEP", "POLLING", "DISABLED", "ARMED", "LINK_UP")

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40)
COUNTERS = st.dictionaries(NAMES, st.integers(0, 2**64 - 1), max_size=30)
PADDING = attribute(0, b"")  # before a u64 on machines that want it aligned


def counter(name: str, value: int, padding: bytes = b"") -> bytes:
    return nested(81, name_attribute(82, name), padding, attribute(83, struct.pack("=Q", value)))


def answer(counters: dict[str, int], *, port: int = 1, padding: bytes = b"") -> bytes:
    device = (number_attribute(1, 0), name_attribute(2, "mlx5_0"), number_attribute(3, port))
    return b"".join(device) + nested(80, *(counter(*item, padding) for item in counters.items()))


@pytest.mark.parametrize("case", ["rxe", "siw", "lab"])
def test_devices_are_those_that_rdma_dev_shows(case: str) -> None:
    told = recorded(f"rdma-dev-{case}")
    devices = [decode_device(body) for body in told.answers]
    assert [(d.dev_index, d.name, d.node_guid) for d in devices] == [
        (shown["ifindex"], shown["ifname"], shown["node_guid"]) for shown in told.json()
    ]
    assert {(d.protocol, d.ports, d.firmware_version) for d in devices if d.name != "siw0"} == {("roce", 1, "")}


def test_a_device_in_full() -> None:
    assert decode_device(recorded("rdma-dev-siw").answers[2]) == RdmaDevice(
        dev_index=2, name="siw0", firmware_version="", node_guid="5054:00ff:febb:0003", protocol="iw", ports=1
    )


@pytest.mark.parametrize("case", ["rxe", "siw", "down", "lab"])
def test_links_are_those_that_rdma_link_shows(case: str) -> None:
    """The devices were listed first, and each port asked for by itself."""
    told = recorded(f"rdma-link-{case}")
    shown = told.json()
    links = [decode_link(body) for body in told.answers[len(shown) :]]
    assert links == [
        RdmaLink(
            dev_index=link["ifindex"],
            device=link["ifname"],
            port=link["port"],
            state=STATES.index(link["state"]),
            physical_state=PHYSICAL_STATES.index(link["physical_state"]),
            ifindex=link["netdev_index"],
            netdev=link["netdev"],
        )
        for link in shown
    ]


def test_a_port_without_an_interface_has_none() -> None:
    body = number_attribute(1, 3) + name_attribute(2, "efa0") + number_attribute(3, 1) + attribute(12, b"\4")
    assert decode_link(body) == RdmaLink(3, "efa0", 1, state=4, physical_state=None, ifindex=None, netdev="")


@pytest.mark.parametrize(
    ("body", "mode"),
    [
        (recorded("rdma-system-shared").answers[0], "shared"),
        (attribute(66, b"\1"), "shared"),
        (attribute(66, b"\0"), "exclusive"),
        (b"", ""),
    ],
)
def test_how_namespaces_share_devices(body: bytes, mode: str) -> None:
    assert decode_namespaces(body) == mode


@pytest.mark.parametrize("case", ["rxe0", "rxe1", "lab0", "lab1"])
def test_counters_are_those_that_rdma_statistic_shows(case: str) -> None:
    told = recorded(f"rdma-statistic-{case}")
    (shown,) = told.json()
    decoder = CounterDecoder()
    for _ in range(2):  # with and without a layout
        statistics = decoder.decode(told.answers[0])
        assert dict(zip(*statistics, strict=True)) == {k: v for k, v in shown.items() if k not in ("ifname", "port")}


def test_all_64_bits_of_a_counter_are_kept() -> None:
    names, values = CounterDecoder().decode(recorded("rdma-statistic-lab0").answers[0])
    assert values[names.index("np_cnp_sent")] == 2**64 - 1


def test_ports_with_the_same_counters_share_their_names() -> None:
    decoder = CounterDecoder()
    first, second = (decoder.decode(recorded(f"rdma-statistic-{case}").answers[0]) for case in ("rxe0", "rxe1"))
    assert first.names is second.names
    assert first.values != second.values


def test_an_optional_counter_comes_and_goes() -> None:
    decoder = CounterDecoder()
    plain = {"rx_write_requests": 1, "out_of_sequence": 2}
    before = decoder.decode(answer(plain))
    during = decoder.decode(answer(plain | {"cc_rx_ce_pkts": 3}))
    after = decoder.decode(answer(plain))
    assert during == Statistics(("rx_write_requests", "out_of_sequence", "cc_rx_ce_pkts"), (1, 2, 3))
    assert after.names is before.names


def test_other_names_of_the_same_length_are_noticed() -> None:
    decoder = CounterDecoder()
    assert decoder.decode(answer({"aa": 1, "bb": 2})) == Statistics(("aa", "bb"), (1, 2))
    assert decoder.decode(answer({"aa": 3, "cc": 4})) == Statistics(("aa", "cc"), (3, 4))
    assert decoder.decode(answer({"aa": 5, "bb": 6})) == Statistics(("aa", "bb"), (5, 6))


@settings(deadline=None)
@given(COUNTERS, COUNTERS, st.sampled_from([b"", PADDING]))
def test_counters_come_back_as_they_were_put(first: dict[str, int], second: dict[str, int], padding: bytes) -> None:
    decoder = CounterDecoder()
    for counters in (first, second, first, {name: value // 2 for name, value in first.items()}):
        got = decoder.decode(answer(counters, padding=padding))
        assert got == Statistics(tuple(counters), tuple(counters.values()))


def test_no_counters_at_all() -> None:
    assert CounterDecoder().decode(answer({})) == Statistics((), ())


@pytest.mark.parametrize(
    "entry",
    [
        nested(81, name_attribute(82, "nameless value")),
        nested(81, attribute(83, bytes(8))),
        nested(81, name_attribute(82, "short"), attribute(83, bytes(4))),
    ],
)
def test_half_a_counter_is_refused(entry: bytes) -> None:
    with pytest.raises(OSError, match="a counter without a name or without a value of 8 bytes") as caught:
        CounterDecoder().decode(nested(80, counter("good", 1), entry))
    assert caught.value.errno == errno.EBADMSG


@settings(deadline=None)
@given(st.data())
def test_a_damaged_answer_is_read_alike_with_and_without_a_layout(data: st.DataObject) -> None:
    good = recorded("rdma-statistic-rxe0").answers[0]
    learned = CounterDecoder()
    learned.decode(good)
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    assert outcome(learned.decode, bytes(damaged)) == outcome(CounterDecoder().decode, bytes(damaged))


@settings(deadline=None)
@given(st.binary(max_size=120))
def test_no_bytes_raise_anything_but_bad_message(data: bytes) -> None:
    for decode in (decode_device, decode_link, decode_namespaces, CounterDecoder().decode):
        assert outcome(decode, data)[1] in (0, errno.EBADMSG)


def test_without_rdma_nothing_is_asked_and_no_module_loaded(tmp_path: Path) -> None:
    rdma = LiveRdma(str(tmp_path))
    for question in (rdma.devices, rdma.links, rdma.namespaces, lambda: rdma.statistics(0, 1)):
        with pytest.raises(OSError, match="RDMA netlink") as caught:
            question()
        assert caught.value.errno == errno.EPROTONOSUPPORT


def test_a_kernel_that_gets_rdma_later_is_asked(tmp_path: Path) -> None:
    if Path("/sys/class/infiniband").exists():
        pytest.skip("this kernel has RDMA")
    rdma = LiveRdma(str(tmp_path))
    with pytest.raises(OSError, match="RDMA netlink"):
        rdma.devices()
    (tmp_path / "class" / "infiniband").mkdir(parents=True)
    with pytest.raises(OSError, match=r"Protocol not supported$"):  # from socket()
        rdma.devices()
