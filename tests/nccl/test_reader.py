"""Lines of a log become facts: whatever wraps, cuts, joins or repeats them, and however the log is fed."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.nccl.facts import (
    AsyncEvent,
    Bootstrap,
    Channel,
    Completion,
    Connected,
    Fact,
    Failure,
    Local,
    Network,
    Record,
    Report,
    Setting,
    Trace,
    Version,
)
from exporter.nccl.reader import LONGEST, Reader

PREFIX = "gpu-1:100:101 [3]"
INFO = f"{PREFIX} NCCL INFO "
WARN = f"{PREFIX} net_ib.cc:2121 NCCL WARN "
RETRY = (
    "NET/IB: Got completion from peer 192.0.2.95<40112> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_3"
)
STAMP = "2026-04-22T21:34:20.10102030"
NET = "Channel 00/0 : 12[4] -> 4[4] [receive] via NET/IBext_v8/4"
SOCKET = Channel("receive", "Socket", 0, "socket", 0, 0, 15, 0)


def read(text: str | bytes, reader: Reader | None = None) -> list[tuple[Record, Fact]]:
    """All facts of a text."""
    return (reader or Reader()).feed(text if isinstance(text, bytes) else text.encode())


def facts(text: str | bytes, reader: Reader | None = None) -> list[Fact]:
    return [fact for _, fact in read(text, reader)]


def test_a_line_becomes_a_record_and_a_fact() -> None:
    reader = Reader()
    ((record, fact),) = read(INFO + NET + "/GDRDMA\n", reader)
    assert record == Record("INFO", NET + "/GDRDMA", "gpu-1", 100, 101, 3)
    assert fact == Channel("receive", "IBext_v8", 4, "gdr", 0, 0, 12, 4)
    ((record, fact),) = read(f"[2026-03-13 22:26:02] {WARN}{RETRY}\n", reader)
    assert record == Record("WARN", RETRY, "gpu-1", 100, 101, 3, "net_ib.cc:2121", "2026-03-13 22:26:02")
    assert fact == Completion(12, "RETRY_EXC_ERR", 129, "192.0.2.95", "mlx5_3", "Recv", network="IB")
    assert (reader.lines, reader.nccl_lines, reader.garbled) == (2, 2, 0)


def test_what_is_not_known_is_counted() -> None:
    reader = Reader()
    text = f"step 1 loss 2.0\n{INFO}Setting affinity for GPU 3 to ff\n\nNCCL_DEBUG=INFO\n{INFO}Using network IB"
    assert facts(text, reader) == [Network("IB")]
    assert (reader.lines, reader.nccl_lines, reader.garbled) == (5, 2, 0)


def test_a_warning_that_no_table_knows_is_a_failure() -> None:
    assert facts(f"{WARN}NET/New: the flux capacitor is empty\n") == [
        Failure("other", "NET/New: the flux capacitor is empty")
    ]
    assert facts(f"{INFO}NET/New: the flux capacitor is empty\n") == []
    assert facts(f"{WARN}\n{WARN}[Service thread] Accept failed Success\n") == []


# Wrappers


def wrapped(lines: list[str], before: str) -> str:
    return "".join(f"{before}{line}\n" for line in lines)


@pytest.mark.parametrize(
    "before",
    [
        f"{STAMP}Z stdout F ",
        "[1,13]<stdout>:",
        "[prterun-host-123@1,5]<stdout>: ",
        " 3: ",
        "[rank3]: ",
        "\x1b[36m(RayWorker pid=123, ip=192.0.2.4)\x1b[0m ",
        f"{STAMP}Z stdout F 12: [rank3]: ",
    ],
)
def test_wrapped_logs(before: str) -> None:
    lines = ["", f"{WARN}{RETRY}", f"{INFO}transport/net.cc:1298 -> 6", "NCCL version 2.18.6+cuda12.1", f"{INFO}{NET}"]
    reader = Reader()
    found = read(wrapped(lines, before), reader)
    assert [type(fact) for _, fact in found] == [Completion, Trace, Version, Channel]
    assert found[2] == (
        Record("VERSION", lines[3], timestamp=found[2][0].timestamp),
        Version("NCCL", "2.18.6", "cuda12.1"),
    )
    assert {record.host for record, _ in found} == {"gpu-1", ""}
    assert (reader.lines, reader.nccl_lines, reader.garbled) == (5, 3, 0)


def test_the_wrapper_may_change_in_the_middle() -> None:
    reader = Reader()
    text = f"{INFO}Using network A\n12: {INFO}Using network B\n{STAMP}Z stdout F {INFO}Using network C\n"
    assert facts(text * 2 + f"(Ray pid=1) {INFO}Using network D\n" + text, reader) == [
        Network(name) for name in "ABCABCDABC"
    ]
    assert facts(f"{STAMP}Z stdout F {INFO}Using network E\n{INFO}Using network F\n", reader) == [
        Network("E"),
        Network("F"),
    ]
    assert reader.garbled == 0


def test_the_runtimes_time_is_the_time_of_a_record() -> None:
    ((record, _),) = read(f"{STAMP}Z stdout F [2026-04-22 21:34:20] {WARN}{RETRY}\n")
    assert record.timestamp == STAMP + "Z"


def test_parts_of_a_line_are_joined_per_stream() -> None:
    reader = Reader()
    assert facts(f"{STAMP}1Z stdout P {INFO}Using net\n{STAMP}2Z stderr P {WARN}NET/IB : Got async \n", reader) == []
    reader = Reader.restore(reader.state())
    ((record, fact), (other, event)) = read(
        f"{STAMP}3Z stderr F event : port error\n{STAMP}4Z stdout F work AWS Libfabric\n", reader
    )
    assert (fact, record.timestamp) == (AsyncEvent("port_error", "", None, False), f"{STAMP}3Z")
    assert (event, other.message) == (Network("AWS Libfabric"), "Using network AWS Libfabric")


def test_a_line_cut_by_docker_is_joined() -> None:
    parts = [f"{INFO}Using", " network", " IB\n", f"{INFO}Connected all rings\n"]
    text = "".join(
        json.dumps({"log": part, "stream": "stdout", "time": STAMP}, separators=(",", ":")) + "\n" for part in parts
    )
    reader = Reader()
    noise = '{"log":"step\\n","stream":"stdout","time":"x"}\n' * 100
    assert facts(noise + text + noise, reader) == [Network("IB"), Connected("rings")]
    assert (reader.lines, reader.nccl_lines) == (204, 2)


def test_a_long_line_in_parts_is_read_whole() -> None:
    value = ",".join(f"mlx5_{i}" for i in range(900))
    assert len(value) < 8000
    line = f"{INFO}NCCL_IB_HCA set to {value}"
    parts = [line[i : i + 100] for i in range(0, len(line), 100)]
    text = "".join(
        f"{STAMP}Z stdout {'PF'[i == len(parts) - 1]} {part}\n{STAMP}Z stderr F x\n" for i, part in enumerate(parts)
    )
    assert facts(text) == [Setting("NCCL_IB_HCA", value)]


# Damage


def test_bytes_that_are_no_text() -> None:
    text = f"{INFO}Using network IB".encode()
    for damaged in (b"\0" * 5000 + text, text + b"\r", text[:10] + b"\0" + text[10:], b"\xff\xfe\n" + text):
        assert facts(damaged + b"\n") == [Network("IB")], damaged
    ((record, fact),) = read(f"{INFO}NCCL_NET set by environment to ".encode() + b"\xe4b\n")
    assert fact == Setting("NCCL_NET", "\ufffdb")
    assert record.host == "gpu-1"


def test_progress_bars() -> None:
    bar = "  2%|▏         | 20/1250 [00:06<05:39]"
    assert facts(f"{bar}\r{bar}\r{INFO}Using network IB\r{bar}\r\n{INFO}Using network A\r\n") == [
        Network("IB"),
        Network("A"),
    ]


def test_rays_count_is_no_part_of_a_message() -> None:
    text = f"(Ray pid=1) {INFO}NCCL_ALGO set by environment to Tree [repeated 3x across cluster]\n"
    assert facts(text) == [Setting("NCCL_ALGO", "Tree")]


def test_text_glued_to_half_a_row_of_nccl_tests() -> None:
    reader = Reader()
    read(f"{INFO}Using network IB\n", reader)
    row = "   268435456      67108864     float     sum      -1"
    ((record, fact),) = read(f"{row}{INFO}{NET}\n", reader)
    assert (record.host, record.pid, record.device) == ("gpu-1", 100, 3)
    assert isinstance(fact, Channel)
    ((record, _),) = read(f"{row}gpu-2:7:8 [1] NCCL INFO {NET}\n", reader)
    assert (record.host, record.pid) == ("", 7), "a host seen in damaged lines only is not believed"
    assert (reader.nccl_lines, reader.garbled) == (3, 2)


def test_two_records_in_one_line() -> None:
    reader = Reader()
    read(f"{INFO}Using network IB\n", reader)
    found = read(f"{INFO}Connected all trees{INFO}Using network A\n", reader)
    assert [(record.host, fact) for record, fact in found] == [("gpu-1", Connected("trees")), ("gpu-1", Network("A"))]
    assert (reader.nccl_lines, reader.garbled) == (2, 1)


def test_a_channel_that_lost_its_end_is_no_channel_through_host_memory() -> None:
    assert facts(f"{INFO}{NET}{INFO}Using network IB\n") == [Network("IB")]
    assert facts(f"{INFO}{NET}/GDSetting up Memory\n{INFO}{NET}Setting up\n") == []
    assert facts(f"{INFO}{NET} comm 0x3cf940e0 nRanks 16\n") == [Channel("receive", "IBext_v8", 4, "host", 0, 0, 12, 4)]


def test_lines_without_a_host() -> None:
    text = f"NCCL INFO {NET}\n[3] NCCL INFO {NET}\n{NET}\n"
    found = read(text)
    assert [(record.host, record.device) for record, _ in found] == [("", None), ("", 3)]


def test_long_lines_are_cut() -> None:
    reader = Reader()
    assert facts(f"{INFO}Using network IB{'x' * 10 * LONGEST}\n{INFO}Using network A\n", reader)[-1] == Network("A")
    assert reader.lines == 2
    assert reader.garbled >= 1
    assert facts("y" * 10 * LONGEST + f"{INFO}Using network IB\n{INFO}Using network A\n", reader) == [Network("A")]


# Errors that a framework repeats

PYTORCH = (
    "[rank3]: torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:2027, remote process exited or "
    "there was a network error, NCCL version 2.21.5\n[rank3]: ncclRemoteError: A call failed.\n[rank3]: Last error:\n"
    f"[rank3]: {RETRY}\n"
)


def test_an_error_that_was_logged_is_not_counted_again() -> None:
    reader = Reader()
    assert [type(fact) for fact in facts(f"{WARN}{RETRY}\n{INFO}net.cc:12 -> 6\n{PYTORCH}", reader)] == [
        Completion,
        Trace,
        Version,
    ]
    assert facts(PYTORCH, Reader.restore(reader.state())) == [Version("NCCL", "2.21.5")]


def test_an_error_that_was_not_logged_counts() -> None:
    (named, (record, fact)) = read(PYTORCH + "frame #0: c10::Error\n")
    assert named == (Record("", "NCCL version 2.21.5"), Version("NCCL", "2.21.5"))
    assert (record, fact) == (
        Record("", RETRY),
        Completion(12, "RETRY_EXC_ERR", 129, "192.0.2.95", "mlx5_3", "Recv", network="IB"),
    )


def test_an_error_is_counted_once_where_its_line_comes_late() -> None:
    reader = Reader()
    assert len(facts(PYTORCH, reader)) == 2
    assert facts(f"{WARN}{RETRY}\n", reader) == [], "standard output is flushed at the end"
    assert len(facts(f"{WARN}{RETRY}\n", reader)) == 1, "this is another one"


def test_nccl_tests_repeat_an_error() -> None:
    line = f"gpu-1: Test NCCL failure common.cu:958 'remote process exited / {RETRY}'\n .. gpu-1 pid 27200: Test failure x\n"
    assert [type(fact) for fact in facts(line)] == [Completion]
    assert [type(fact) for fact in facts(f"{WARN}{RETRY}\n{line}")] == [Completion]


def test_only_lines_right_after_last_error_are_taken_for_errors() -> None:
    noise = "step\n" * 5
    assert facts(f"Last error:\n{noise}{RETRY}\n") == []
    assert len(facts(f"Last error:\n\n{RETRY}\n")) == 1
    assert facts(f"{RETRY}\n") == []


def test_pytorchs_watchdog() -> None:
    line = (
        "[rank2]:[E512 10:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank 2] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds\n"
    )
    ((record, fact),) = read("step\n" * 100 + line)
    assert record.message.startswith("Watchdog caught")
    assert isinstance(fact, Failure)
    assert (fact.kind, fact.consequence) == ("timeout", True)


# However it is fed

POOL = (
    "",
    "step 12 loss 2.31 NCCL",
    "RCCL version : 2.22.3-HEAD:271856d",
    "NCCL version 2.18.6+cuda12.1",
    f"{INFO}{NET}/GDRDMA",
    f"{INFO}Channel 00/0 : 6[2] -> 7[3] via P2P/IPC",
    f"{INFO}Channel 01/0 : 6[2] -> 7[3] via P2P/IPC",
    f"{INFO}Channel 01/0 : 6[2] -> 7[3] via P2P/IPC comm 0x3cf940e0 nRanks 16",
    "gpu-2:7:8 [1] NCCL INFO Channel 00 : 2[0] -> 3[1] via SHM/direct/direct",
    f"{INFO}Setting affinity for GPU 3 to ff",
    f"{INFO}NCCL version 2.22.3+cuda12.6",
    f"gpu-2:7:8 [1] NCCL INFO {NET}",
    f"[3] NCCL INFO {NET}",
    f"[2026-03-13 22:26:02] {WARN}{RETRY}",
    f"{WARN}something new",
    "Last error:",
    RETRY,
    "[rank3]: Last error:",
    "socketProgress: Connection closed by remote peer a<1>",
    f"12: {INFO}Using network IB",
    f"row 1.0 0{INFO}Using network IB",
    f"{INFO}Connected all rings{INFO}Connected all trees",
    f"{PREFIX} NCCL CALL ncclAllReduce(1, 2)",
    "gpu-1:100 NCCL DIAG [INFO] NVLink: inactive link(s) on rank(s) 3 across 8 ranks in comm 0x1",
    "x: Test NCCL failure common.cu:958 'y / Cuda failure 2 'out of memory''",
)
RUNTIMES = (
    "{}",
    STAMP + "Z stdout F {}",
)


def line_by_line(found: list[tuple[Record, Fact]]) -> list[tuple[Record, Fact]]:
    """Channels inside a host are counted per block and thread: one for each line, without what it was exactly."""
    lines: list[tuple[Record, Fact]] = []
    for record, fact in found:
        if isinstance(fact, Local):
            lines += [(record._replace(message="", timestamp=""), fact._replace(lines=1))] * fact.lines
        else:
            lines.append((record, fact))
    return lines


@given(
    st.lists(st.sampled_from(POOL), max_size=40),
    st.sampled_from(RUNTIMES),
    st.integers(0, 60),
    st.integers(1, 12),
    st.booleans(),
)
@settings(deadline=None, max_examples=300)
def test_the_same_lines_say_the_same(lines: list[str], runtime: str, quiet: int, most: int, restored: bool) -> None:
    """One block or many, among many quiet lines or few: blocks are searched in different ways."""
    text = [runtime.format(line).encode() + b"\n" for line in lines] + [
        runtime.format("step 3").encode() + b"\n"
    ] * quiet
    one, other = Reader(), Reader()
    expected = one.feed(b"".join(text))
    found: list[tuple[Record, Fact]] = []
    for start in range(0, len(text), most):
        found += other.feed(b"".join(text[start : start + most]))
        if restored:
            other = Reader.restore(other.state())
    assert Counter(line_by_line(found)) == Counter(line_by_line(expected))
    assert [fact for _, fact in found if type(fact) is not Local] == [
        fact for _, fact in expected if type(fact) is not Local
    ]
    assert (one.lines, one.nccl_lines, one.garbled) == (other.lines, other.nccl_lines, other.garbled)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=200),
            st.sampled_from(POOL).map(str.encode),
            st.tuples(st.sampled_from(POOL), st.integers(0, 200), st.binary(max_size=4)).map(
                lambda cut: cut[0].encode()[: cut[1]] + cut[2] + cut[0].encode()[cut[1] :]
            ),
        ),
        max_size=30,
    )
)
@settings(deadline=None, max_examples=500)
def test_any_bytes_are_read(pieces: list[bytes]) -> None:
    reader = Reader()
    text = b"\n".join(pieces)
    for _, fact in reader.feed(text):
        assert type(fact) in Fact.__args__
    assert reader.lines == text.count(b"\n") + (not text.endswith(b"\n") and bool(text))
    assert 0 <= reader.nccl_lines <= reader.lines + text.count(b"\r")


def test_state_is_small_whatever_was_read() -> None:
    reader = Reader()
    for number in range(5000):
        host = f"host-{number}-" + "é" * 200
        reader.feed(
            f"{host}:{number}:1 [0] x.cc:1 NCCL WARN {'ü' * 500} {number}\nLast error:\n{RETRY}{number}\n".encode()
        )
    for stream in ("stdout", "stderr"):
        reader.feed(f"{STAMP}Z {stream} P {'ß' * 3 * LONGEST}\n".encode() * 3)
    state = reader.state()
    assert len(state) < 70_000
    assert Reader.restore(state).state() == state


def test_diagnostics_have_a_prefix_of_their_own() -> None:
    text = "[INFO] NVLink: inactive link(s) on rank(s) 3 across 8 ranks in comm 0x1"
    reader = Reader()
    assert read(f"gpu-1:100 NCCL DIAG {text}\ngpu-1:100 NCCL DIAG === NCCL Diagnostics ===\n", reader) == [
        (Record("DIAG", text, "gpu-1", 100), Report("diagnostics", text, True))
    ]
    assert facts(f"{PREFIX[:-4]} NCCL CALL ncclAllReduce(1, 2)\n", reader) == []
    assert (reader.lines, reader.nccl_lines, reader.garbled) == (3, 3, 0)


def test_channels_inside_a_host_are_counted_per_thread() -> None:
    line = f"{INFO}Channel {{:02d}}/0 : 6[2] -> 7[3] via P2P/CUMEM\n"
    found = read("".join(line.format(number) for number in range(24)) + line.format(0).replace("gpu-1", "gpu-2"))
    assert [(record.host, fact) for record, fact in found] == [
        ("gpu-1", Local("p2p", "CUMEM", 24)),
        ("gpu-2", Local("p2p", "CUMEM", 1)),
    ]
    assert found[0][0].message == "Channel 00/0 : 6[2] -> 7[3] via P2P/CUMEM"


def test_facts_of_a_small_job() -> None:
    """What a whole start prints, as a count of facts."""
    text = "\n".join(
        [
            f"{INFO}Bootstrap : Using eth0:192.0.2.41<0>",
            f"{INFO}NET/IB : No device found.",
            f"{INFO}NET/Socket : Using [0]eth0:192.0.2.41<0>",
            f"{INFO}Using network Socket",
            f"{INFO}Channel 00/0 : 15[7] -> 0[0] [receive] via NET/Socket/0",
            f"{INFO}Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
            f"{INFO}Connected all rings",
        ]
    )
    found = facts(text)
    assert Counter(type(fact).__name__ for fact in found) == Counter(
        ["Bootstrap", "NoDevice", "Devices", "Network", "Channel", "Local", "Connected"]
    )
    assert found[0] == Bootstrap("eth0", "192.0.2.41")
    assert SOCKET in found
    assert Local("p2p", "CUMEM/read") in found


PIECES: tuple[str, ...] = (
    *("a", "0", ":", "[", ")", " ", "1:1:1 [", "a-", "(pid=1", "[1,1", "\x1b[0", "NCCL INFO ", "NCCL error in: "),
    *("Last error:", "Test NCCL failure '", " / ", "\r", "€", '{"log":"', "[repeated ", "a:1:1 [0] NCCL WARN "),
    *("12: ", "[rank1]: ", "| "),
)


@pytest.mark.parametrize("before", ["", INFO, WARN, f"{STAMP}Z stdout F ", "Last error:\n", "NCCL error in: "])
def test_no_line_takes_long(before: str) -> None:
    """Each is read in some 15 ms; what grows with the square of a line's length would take minutes."""
    for piece in PIECES:
        for tail in ("", " NCCL INFO x", ", NCCL version 2."):
            begin = time.process_time()
            read(before + piece * (LONGEST // len(piece)) + tail)
            assert time.process_time() - begin < 5, piece
