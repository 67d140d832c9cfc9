"""Evidence from facts made by hand: channels, generations, duplicates, bounds, and any facts whatever."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.nccl import report
from exporter.nccl.evidence import Evidence
from exporter.nccl.facts import (
    AsyncEvent,
    Channel,
    Completion,
    Device,
    Devices,
    Fact,
    Failure,
    GdrDevice,
    Hardware,
    Init,
    Network,
    Record,
    Setting,
    Version,
    VirtualDevice,
)
from exporter.nccl.findings import find
from exporter.nccl.reader import Reader
from exporter.nccl.state import (
    MOST_COMMUNICATORS,
    MOST_ENDS,
    MOST_PROCESSES,
    News,
    Pair,
    Process,
    Way,
    line_of,
)
from exporter.nccl.verdicts import gdr, gdr_level

TWO = Devices(
    "IB",
    (Device(0, "mlx5_0", 1, "IB", (("mlx5_0", 1),)), Device(1, "mlx5_1", 1, "IB", (("mlx5_1", 1),))),
    True,
    "eth0",
    "192.0.2.1",
)


def line(host: str = "node-1", pid: int = 100, tid: int = 0, message: str = "", level: Any = "INFO") -> Record:
    return Record(level, message, host, pid, tid or pid, 0)


def channel(direction: Any, sender: int, receiver: int, *, device: int = 0, path: Any = "gdr", **more: Any) -> Channel:
    network = "Socket" if path == "socket" else "IB"
    return Channel(
        direction, network, device, path, more.pop("number", 0), more.pop("connection", 0), sender, receiver, **more
    )


def start(rank: int, pointer: str = "0xa", bus: str = "1b000", identity: str = "0x1", stage: Any = "start") -> Init:
    return Init(stage, pointer, rank, 16, rank % 8, rank % 8, bus, identity)


def taken(*pairs: tuple[Record, Fact], at: float = 1000.0) -> Evidence:
    evidence = Evidence()
    for record, fact in pairs:
        evidence.take(record, fact, at)
    return evidence


def process(evidence: Evidence, host: str = "node-1", pid: int = 100) -> Process:
    return evidence.processes[host, pid]


# Devices


def test_the_hca_of_a_channel_is_found_by_index_in_the_list_of_its_process() -> None:
    evidence = taken((line(), TWO), (line(), channel("send", 0, 8, device=1)), (line(pid=101), channel("send", 1, 9)))
    assert evidence.channels == {
        ("send", "IB", 1, "mlx5_1", "gdr"): 1,
        # another process of the host without a list of its own
        ("send", "IB", 0, "mlx5_0", "gdr"): 1,
    }


def test_a_merged_nic_is_its_members() -> None:
    evidence = taken(
        (line(), TWO), (line(), VirtualDevice(2, "mlx5_0+mlx5_1", 800000, 2)), (line(), channel("send", 0, 8, device=2))
    )
    assert evidence.channels == {("send", "IB", 2, "mlx5_0+mlx5_1", "gdr"): 1}
    said = report.as_json(report.ReadLog("x", Reader(), evidence), ())
    assert said["merged_devices"] == [{"index": 2, "name": "mlx5_0+mlx5_1", "members": ["mlx5_0:1", "mlx5_1:1"]}]
    assert [device["name"] for device in said["devices"]] == ["mlx5_0", "mlx5_1"]


def test_virtual_devices_may_come_before_the_list_and_change_the_index() -> None:
    evidence = taken(
        (line(), VirtualDevice(0, "mlx5_1", 400000, 1)),
        (line(), TWO),
        (line(), channel("send", 0, 8)),
        (line(), channel("send", 0, 8, device=1)),
    )
    assert [key[3] for key in evidence.channels] == ["mlx5_1", "mlx5_1"]


def test_where_there_is_no_list_the_lines_on_gdr_name_the_device() -> None:
    evidence = taken(
        (line(), GdrDevice("AWS Libfabric", 3, "rdmap155s0-rdm", True)),
        (line(), Channel("send", "AWS Libfabric", 3, "gdr", 0, 0, 0, 8)),
    )
    assert evidence.channels == {("send", "AWS Libfabric", 3, "rdmap155s0", "gdr"): 1}


def test_the_pci_address_is_the_end_of_the_path() -> None:
    path = "/sys/devices/pci0000:84/0000:84:00.0/0000:9b:00.0"
    evidence = taken(
        (line(), Hardware(0, "mlx5_0", 1, "RoCE", "Mlx5", 400000, path)), (line(), TWO), (line(), channel("send", 0, 8))
    )
    said = report.as_json(report.ReadLog("x", Reader(), evidence), ())
    assert said["gpu_nic_pairs"] == [
        {"host": "node-1", "gpu": None, "hca": "mlx5_0", "nic": "0000:9b:00.0", "count": 1}
    ]
    assert evidence.nics == {("node-1", "mlx5_0"): "0000:9b:00.0"}


# Communicators


def test_channels_belong_to_the_newest_communicator_of_their_rank() -> None:
    evidence = taken(
        (line(), TWO),
        (line(), start(4)),
        (line(), start(4, stage="complete")),
        (line(), channel("send", 4, 12)),
        (line(), start(1, "0xb", identity="0x2")),
        (line(), start(1, "0xb", identity="0x2", stage="complete")),
        (line(), channel("send", 1, 2)),
        (line(), channel("receive", 12, 4)),
    )
    one, other = process(evidence).communicators["0xa"], process(evidence).communicators["0xb"]
    assert sum(map(len, one.ends.values())) == 2
    assert sum(map(len, other.ends.values())) == 1
    evidence.take(line(), start(4, stage="destroyed"), 1001.0)
    assert list(process(evidence).communicators) == ["0xb"]
    assert (evidence.communicators, evidence.kept_ends) == (1, 1)
    # what was used is not forgotten
    assert evidence.pairs == {Pair("node-1", "1b000", "mlx5_0"): 2}
    assert sum(evidence.channels.values()) == 3


def test_before_2_16_a_communicator_is_named_after_its_channels() -> None:
    done = Init("complete", "0xa", 0, 4, 0, None, "10000", "")
    evidence = taken(
        (line(), TWO), (line(), channel("receive", 3, 0)), (line(), done), (line(), channel("receive", 3, 0))
    )
    communicators = process(evidence).communicators
    assert communicators["0xa"].bus == "10000"
    assert communicators["0xa"].stage == "complete"
    # the second channel came after it: the next communicator of the process
    assert [len(one.ends) for one in communicators.values()] == [1, 1]


def test_a_pointer_that_comes_again_is_another_communicator() -> None:
    evidence = taken((line(), start(0)), (line(), channel("send", 0, 8)), (line(), start(0)))
    assert evidence.starts == 2
    assert evidence.communicators == 1
    assert process(evidence).communicators["0xa"].ends == {}


def test_with_pxn_the_gpu_is_the_proxys() -> None:
    evidence = taken(
        (line(), TWO),
        (line(), start(2, bus="4e000")),
        (line(pid=101), start(1, "0xb", bus="5f000")),
        (line(), channel("send", 2, 9, device=1, proxy=1)),
        (line(), channel("send", 2, 10)),
    )
    assert report.pairs(evidence) == {Pair("node-1", "5f000", "mlx5_1"): 1, Pair("node-1", "4e000", "mlx5_0"): 1}


def test_a_process_that_ends_takes_its_communicators() -> None:
    evidence = taken((line(), start(0)), (line(), channel("send", 0, 8)))
    evidence.end_process("node-1", 100)
    assert (evidence.processes, evidence.communicators, evidence.kept_ends) == ({}, 0, 0)


@pytest.mark.parametrize(
    ("bus", "address"),
    [
        ("1c000", "0000:1c:00.0"),
        ("801000", "0008:01:00.0"),
        ("42000", "0000:42:00.0"),
        ("", ""),
        ("x", ""),
        ("f", "0000:00:00.f"),
    ],
)
def test_bus_ids(bus: str, address: str) -> None:
    assert report.pci_address(bus) == address


# What broke


def event(name: str = "port_error", hca: str = "mlx5_0") -> AsyncEvent:
    return AsyncEvent(name, hca, 1 if hca else None, False)


def count(evidence: Evidence) -> list[tuple[int, int]]:
    return [(flap.count, flap.raw) for flap in evidence.flaps.values()]


def test_an_event_that_eight_processes_tell_is_one() -> None:
    evidence = taken(*((line(pid=pid), event()) for pid in range(8)))
    assert count(evidence) == [(1, 8)]
    assert len(evidence.causes) == 1


def test_two_flaps_in_one_second_are_two_however_the_lines_are_mixed() -> None:
    evidence = Evidence()
    for pid in (1, 2, 1, 3, 3, 2):
        evidence.take(line(pid=pid), event(), 1000.0)
    assert count(evidence) == [(2, 6)]


def test_a_flap_later_is_another() -> None:
    evidence = Evidence()
    for at in (1000.0, 1001.5, 1010.0):
        evidence.take(line(pid=int(at)), event(), at)
    assert count(evidence) == [(2, 3)]


def test_events_of_hosts_ports_and_kinds_are_apart() -> None:
    evidence = taken(
        (line(), event()), (line("node-2"), event()), (line(), event(hca="mlx5_1")), (line(), event("port_active"))
    )
    assert [counts[0] for counts in count(evidence)] == [1, 1, 1, 1]
    assert [error.what for error in evidence.causes] == ["port_error"] * 3


def test_a_benign_event_is_no_cause_unless_it_is_fatal() -> None:
    assert taken((line(), event("gid_change"))).causes == []
    assert len(taken((line(), AsyncEvent("gid_change", "mlx5_0", 1, True))).causes) == 1


def completion(status: int = 12, hca: str = "mlx5_3", *, companion: bool = False) -> Completion:
    return Completion(status, "X", 129, "192.0.2.9", hca, companion=companion)


def test_the_second_line_of_an_error_is_not_counted() -> None:
    evidence = taken((line(), completion(companion=True)), (line(), completion()), (line(), completion(companion=True)))
    assert [tally.count for tally in evidence.completions.values()] == [1]
    assert evidence.news.completions == {("node-1", "mlx5_3", 12): [1, 1000.0]}
    assert find(evidence)[0].id == "fabric_path_or_peer"


def test_second_lines_without_their_first_say_that_something_failed() -> None:
    finding = find(taken((line(), completion(companion=True))))[0]
    assert (finding.id, finding.confidence) == ("completion_error", "insufficient")


def test_the_first_cause_is_the_first_that_is_no_flush() -> None:
    evidence = taken((line(), completion(5)), (line(), completion(10)), (line(), completion(12)))
    assert evidence.first_cause is not None
    assert (evidence.first_cause.status, evidence.first_cause.order) == (10, 2)
    assert [error.status for error in evidence.effects] == [5]


def test_a_process_that_uses_two_hcas_does_not_say_which_failed() -> None:
    evidence = taken(
        (line(), TWO),
        (line(), channel("send", 0, 8)),
        (line(), channel("send", 0, 8, device=1)),
        (line(), completion(hca="")),
    )
    assert list(evidence.news.completions) == [("node-1", "", 12)]


def test_a_failure_repeated_within_two_minutes_is_one() -> None:
    evidence = Evidence()
    failure = Failure("socket", "connecting failed", 113)
    for at in (0.0, 60.0, 170.0, 400.0):
        evidence.take(line(), failure, at)
    evidence.take(line(pid=7), failure, 400.0)
    (tally,) = evidence.failures.values()
    assert (tally.lines, tally.count) == (5, 3)
    assert evidence.news.failures == {"socket": [3, 400.0]}


def test_what_follows_is_not_counted() -> None:
    evidence = taken((line(), Failure("proxy", "the proxy cannot go on", consequence=True)))
    assert (evidence.failures, evidence.news.failures, evidence.causes) == ({}, {}, [])
    assert evidence.consequences == {("proxy", "the proxy cannot go on"): 1}


def test_news_are_handed_over_once_and_are_not_in_the_state() -> None:
    evidence = taken((line(), completion()))
    restored = Evidence.restore(evidence.state())
    assert restored == evidence
    assert restored.news.completions == {}
    assert evidence.drain().completions == {("node-1", "mlx5_3", 12): [1, 1000.0]}
    assert isinstance(evidence.news, News)
    assert evidence.news.completions == {}


def test_another_state_is_refused() -> None:
    with pytest.raises(ValueError, match="version 99"):
        Evidence.restore(msgspec.msgpack.encode((99, [])))
    for broken in (b"", b"\x00", b"\xc1", msgspec.msgpack.encode((1, {"a": 1}))):
        with pytest.raises(ValueError, match=r".+"):
            Evidence.restore(broken)


def test_the_line_kept_is_the_line_and_not_longer_than_500_bytes() -> None:
    record = Record("WARN", "NET/IB : x", "node-1", 1, 2, 3, "net_ib.cc:5", "2026-03-13 22:26:02")
    assert line_of(record) == "[2026-03-13 22:26:02] node-1:1:2 [3] net_ib.cc:5 NCCL WARN NET/IB : x"
    assert len(line_of(record._replace(message="ä" * 600)).encode()) <= 500
    line_of(record._replace(message="\udcff" * 600)).encode()


# GPUDirect RDMA


@pytest.mark.parametrize(
    ("value", "level"),
    [
        ("0", "LOC"),
        ("1", "PIX"),
        ("2", "PXB"),
        ("3", "PHB"),
        ("4", "SYS"),
        ("5", "SYS"),
        ("99", "SYS"),
        ("PXN", "PXN"),
        ("sys", ""),
        ("-1", ""),
    ],
)
def test_levels(value: str, level: str) -> None:
    assert gdr_level(value) == level


def test_verdicts_by_the_strongest_evidence() -> None:
    evidence = taken((line(), Setting("NCCL_NET_GDR_LEVEL", "LOC")))
    assert gdr(evidence).state == "off"
    evidence.gdr_devices["IB", 0, "mlx5_0", True] = 1
    assert gdr(evidence) == ("on", "devices: Enabled or Disabled for an HCA; no channel seen")
    evidence.rings_gdr[False] = 1
    assert gdr(evidence) == ("off", "rings: Connected all rings ... GDR n")
    evidence.take(line(), channel("send", 0, 8), 0.0)
    assert gdr(evidence) == ("on", "channels: 1 of 1 network channels with /GDRDMA")
    evidence.take(line(), channel("send", 0, 8, path="host"), 0.0)
    assert gdr(evidence).state == "mixed"


def test_dma_buf_proves_nothing() -> None:
    evidence = Evidence()
    evidence.dma_buf = 8
    assert gdr(evidence).state == "unknown"
    assert gdr(evidence).basis.startswith("DMA-BUF")


def test_sockets_have_no_gdr() -> None:
    assert gdr(taken((line(), channel("send", 0, 8, path="socket")))).state == "not_applicable"
    assert gdr(taken((line(), Network("FasTrak")))).state == "not_applicable"


# Whatever a log holds

_TEXT = st.one_of(
    st.sampled_from(["", "IB", "mlx5_0", "node-1", "0x1", "a+b", "NCCL_IB_HCA"]),
    st.text(max_size=40),
    st.just("x" * 600),
)
_NUMBER = st.one_of(st.integers(-2, 20), st.sampled_from([2**63, -(2**70), 10**30, 2**32]))


def _of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a type, of any size."""
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        return st.sampled_from(arguments)
    if get_origin(annotation) is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(_of(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*map(_of, arguments))
    if arguments:
        return st.one_of(*map(_of, arguments))
    if hasattr(annotation, "_fields"):
        return st.builds(annotation, **{name: _of(kind) for name, kind in get_type_hints(annotation).items()})
    return {str: _TEXT, int: _NUMBER, bool: st.booleans(), type(None): st.none()}[annotation]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_of(Record), _of(Fact), st.floats(0, 2e9)), max_size=30))
def test_any_facts_are_taken_kept_and_reported(facts: list[tuple[Record, Fact, float]]) -> None:
    evidence = Evidence()
    for record, fact, now in facts:
        evidence.take(record, fact, now)
    state = evidence.state()
    assert Evidence.restore(state) == evidence
    assert len(state) < 100_000
    log = report.ReadLog("x", Reader(), evidence)
    found = find(evidence)
    msgspec.json.encode(report.as_json(log, found))
    assert report.as_text(log, found)
    assert [finding.severity for finding in found] == sorted(
        (finding.severity for finding in found), key=("critical", "warning", "info").index
    )


def test_hostile_content_does_not_grow_it() -> None:
    evidence = Evidence()
    for n in range(30_000):
        record = line(f"host-{n}", n, message="x" * 1000, level="WARN")
        evidence.take(record, start(n, f"0x{n:x}", identity=f"0x{n:x}"), float(n))
        evidence.take(record, channel("send", n, n + 1, number=n), float(n))
        evidence.take(record, event(f"event-{n}", f"hca{n}"), float(n))
        evidence.take(record, completion(n, f"hca{n}"), float(n))
        evidence.take(record, Failure(f"kind{n}", f"what{n}", n), float(n))
        evidence.take(record, Setting(f"VAR{n}", "x" * 10000), float(n))
        evidence.take(record, Version(f"lib{n}", str(n)), float(n))
        evidence.take(record, TWO._replace(devices=(Device(0, f"d{n}", 1, "IB", ((f"d{n}", 1),)),)), float(n))
    assert len(evidence.processes) <= MOST_PROCESSES
    assert evidence.communicators <= MOST_COMMUNICATORS
    assert evidence.kept_ends <= MOST_ENDS
    assert len(evidence.news.events) <= 256
    assert len(evidence.state()) < 600_000
    # the newest are still there
    assert ("host-29999", 29999) in evidence.processes


def test_one_process_with_endless_channels() -> None:
    evidence = taken((line(), start(0)))
    for n in range(40_000):
        evidence.take(line(), channel("send", 0, n), 0.0)
    assert evidence.kept_ends == MOST_ENDS
    assert sum(evidence.channels.values()) == 40_000
    assert list(process(evidence).communicators["0xa"].ends) == [Way("send", "IB", 0, "", "gdr")]
