"""The prefix of every version of NCCL, and of lines that are damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.nccl.prefix import Head, Parsed, parse, records

CPP = "virtual int nccl_net_ofi::Endpoint<T>::post(int, void*) [with T = int]:123"


@pytest.mark.parametrize(
    ("left", "head"),
    [
        ("gpu-1:100:101 [3]", Head("gpu-1", 100, 101, 3)),
        ("gpu-1:100:101 [-1]", Head("gpu-1", 100, 101, -1)),
        ("gpu-1:100:101 [3] transport/net_ib.cc:2121", Head("gpu-1", 100, 101, 3, "transport/net_ib.cc:2121")),
        ("gpu-1:100:101 [3] proxy.cc:12 (progress)", Head("gpu-1", 100, 101, 3, "proxy.cc:12 (progress)")),
        ("gpu-1:100:101 [5] ofi_process_cq:1039", Head("gpu-1", 100, 101, 5, "ofi_process_cq:1039")),
        (f"gpu-1:100:101 [5] {CPP}", Head("gpu-1", 100, 101, 5, CPP)),
        ("gpu-1:100:101 [0] showVersion, 544", Head("gpu-1", 100, 101, 0, "showVersion, 544")),
        ("[2026-03-13 22:26:02] gpu-1:100:101 [5]", Head("gpu-1", 100, 101, 5, "", "2026-03-13 22:26:02")),
        ("2026-03-13 22:26:02.123 gpu-1:100:101 [5]", Head("gpu-1", 100, 101, 5, "", "2026-03-13 22:26:02.123")),
        ("[22:26:02] gpu-1:100:101 [5] a.cc:1", Head("gpu-1", 100, 101, 5, "a.cc:1", "22:26:02")),
        ("12: [2026-03-13 22:26:02] gpu-1:100:101 [5]", Head("gpu-1", 100, 101, 5, "", "2026-03-13 22:26:02")),
        ("[1,13]<stdout>:worker-1:35:89 [5]", Head("worker-1", 35, 89, 5)),
        ("\x1b[36m(Ray pid=1)\x1b[0m gpu-1:100:101 [5]", Head("gpu-1", 100, 101, 5)),
        ("2026-04-22T21:34:20.1Z stdout F gpu-1:1:2 [0]", Head("gpu-1", 1, 2, 0, "", "2026-04-22T21:34:20.1Z")),
        ("...-48:31000:31058 [0] transport/net_ib.cc:93", Head("...-48", 31000, 31058, 0, "transport/net_ib.cc:93")),
        (":31000:31058 [0]", Head("", 31000, 31058, 0)),
        ("[3]", Head("", 0, 0, 3)),
        ("[3] transport/net_ib.cc:93", Head("", 0, 0, 3, "transport/net_ib.cc:93")),
        ("0: [3]", Head("", 0, 0, 3)),
        ("", Head()),
        (
            "[3/16][2024-10-01 10:00:00,123] [misc/socket.cc:52] [gpu-1:pid=77]",
            Head("gpu-1", 77, 0, None, "misc/socket.cc:52", "2024-10-01 10:00:00,123"),
        ),
    ],
)
def test_prefixes(left: str, head: Head) -> None:
    parsed = parse(left)
    assert parsed.head == head
    assert parsed.foreign == ""


def test_prefixes_without_a_thread_or_a_device() -> None:
    assert parse("gpu-1:100:101", "CALL").head == Head("gpu-1", 100, 101)
    assert parse("gpu-1:100", "DIAG").head == Head("gpu-1", 100)


@pytest.mark.parametrize(
    ("left", "host", "foreign"),
    [
        (
            "   268435456  67108864  float  sum   -1train01:402100:402135 [3]",
            "-1train01",
            "268435456  67108864  float  sum",
        ),
        ("  343.10       038dcf168f605:1505:1505 [0]", "038dcf168f605", "343.10"),
        ("Setting up Memory gpu-1:1:2 [0]", "gpu-1", "Setting up Memory"),
    ],
)
def test_text_before_a_prefix_is_told(left: str, host: str, foreign: str) -> None:
    parsed = parse(left)
    assert (parsed.head.host, parsed.foreign) == (host, foreign)
    assert left[parsed.start :].startswith(host)


def test_two_records_in_one_line() -> None:
    first, second = records("a:1:1 [0] NCCL INFO Connected all ringsb:2:2 [1] x.cc:1 NCCL WARN Cuda failure 1 'x'")
    assert (first.level, first.parsed.head, first.cut) == ("INFO", Head("a", 1, 1, 0), True)
    assert second.parsed.head == Head("ringsb", 2, 2, 1, "x.cc:1")  # only a reader that knows b can cut it right
    assert (second.level, second.message, second.cut) == ("WARN", "Cuda failure 1 'x'", False)


def test_a_record_cut_right_after_its_prefix() -> None:
    first, second = records("node-a:1:1 [6] NCCL INFO node-a:2:3 [7] NCCL INFO Ring 04 : 1 -> 2 -> 3")
    assert first.message == ""
    assert second == ("INFO", Parsed(Head("node-a", 2, 3, 7), "", 0), "Ring 04 : 1 -> 2 -> 3", False)


@pytest.mark.parametrize(
    "message",
    ["NCCL version 2.27.7+cuda13.0", "see NCCL INFO lines", "set NCCL WARN or NCCL INFO, not NCCL TRACE here"],
)
def test_a_message_may_speak_of_nccl(message: str) -> None:
    (record,) = records("a:1:1 [0] NCCL INFO " + message)
    assert (record.message, record.cut) == (message, False)


def test_a_line_full_of_prefixes_is_not_read_again_and_again() -> None:
    many = records("a:1:1 [0] NCCL INFO " * 3000)
    assert len(many) == 32
    assert len(records("NCCL INFO " * 6000)) == 1


def test_no_record() -> None:
    assert records("NCCL version 2.18.6+cuda12.1") == []
    assert records("NCCL error in: x.cpp:12") == []


@given(st.text(max_size=300), st.sampled_from(["", "a:1:1 [0]", "[3]", ":1:1 [", "a:1:1 [0] x"]), st.text(max_size=300))
def test_any_text_is_parsed(before: str, prefix: str, after: str) -> None:
    parsed = parse(before + prefix + after)
    assert 0 <= parsed.start <= len(before + prefix + after)
    for record in records(f"{before}{prefix} NCCL INFO {after}"):
        assert len(record.message) <= len(after) + len(before) + len(prefix) + 11
