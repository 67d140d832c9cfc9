"""What runtimes, launchers and frameworks put around a line is taken off, whatever is nested in what."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.nccl.unwrap import WRAPPERS, Line, plain, runtime, unwrap

MESSAGE = "gpu-1:100:101 [3] NCCL INFO Connected all rings"
STAMP = "2026-04-22T21:34:20.101020304Z"
CRI = f"{STAMP} stdout F "
ANSI = "\x1b[36m(RayWorkerWrapper pid=248, ip=192.0.2.112)\x1b[0m "


def docker(text: str) -> str:
    """A line as Docker's json-file driver writes it."""
    return json.dumps({"log": text, "stream": "stderr", "time": STAMP})


@pytest.mark.parametrize(
    ("before", "wrappers"),
    [
        ("", ()),
        (CRI, ("cri",)),
        ("2026-04-22T23:34:20.1+02:00 stderr F ", ("cri",)),
        ("[pod/trainer-0/main] ", ("kubectl",)),
        (f"[pod/trainer-0/main] {STAMP} ", ("kubectl",)),
        (f"{STAMP} ", ("timestamp",)),
        ("2024-03-05T08:00:00.123Z: [1,3]<stdout>:", ("timestamp", "openmpi")),
        ("trainer-7f9c-abcde main ", ("stern",)),
        ("[1,13]<stdout>:", ("openmpi",)),
        ("[1,5]<stdout>: ", ("openmpi",)),
        ("[prterun-host-123@1,5]<stderr>: ", ("openmpi",)),
        ("[1,5][node-3:4711]<stdout>: ", ("openmpi",)),
        ("Tue Mar  5 08:00:00 2024[1,3]<stdout>:", ("openmpi",)),
        ("0: ", ("srun",)),
        ("12: ", ("srun",)),
        (" 3: ", ("srun",)),
        ("[5] ", ("hydra",)),
        ("[rank3]: ", ("torchrun",)),
        ("[default0]:", ("torchrun",)),
        ("(RayWorker pid=123, ip=192.0.2.4) ", ("ray",)),
        ("(RayWorkerVllm pid=4095) ", ("ray",)),
        ("(W pid=768) ", ("ray",)),
        (ANSI, ("ray",)),
        ("│ ", ("pager",)),
        (CRI + "12: [rank3]: " + ANSI, ("cri", "srun", "torchrun", "ray")),
        ("12: " + CRI, ("srun", "timestamp")),
    ],
)
def test_wrappers_come_off(before: str, wrappers: tuple[str, ...]) -> None:
    line = unwrap(before + MESSAGE)
    if wrappers == ("srun", "timestamp"):  # a runtime's mark is only one at the start of a line
        assert line.text == "stdout F " + MESSAGE
    else:
        assert line.text == MESSAGE
    assert line.wrappers == wrappers
    assert bool(line.stamp) == any(digit in before for digit in ("T21", "T23", "T08"))


def test_each_wrapper_shows_an_example_of_itself() -> None:
    for wrapper in WRAPPERS:
        assert unwrap(wrapper.example) == Line("text", *unwrap(wrapper.example)[1:])
        assert unwrap(wrapper.example).wrappers == (wrapper.name,)


def test_the_runtime_says_when_the_line_goes_on() -> None:
    assert runtime(f"{STAMP} stdout P half") == Line("half", STAMP, "stdout", True, ("cri",))
    assert runtime(f"{STAMP} stdout F rest") == Line("rest", STAMP, "stdout", False, ("cri",))
    assert runtime(f"{STAMP} stdout F ") == Line("", STAMP, "stdout", False, ("cri",))
    assert runtime(docker("half")) == Line("half", STAMP, "stderr", True, ("docker",))
    assert runtime(docker("rest\n")) == Line("rest", STAMP, "stderr", False, ("docker",))
    assert runtime('{"log": 3}') is None
    assert runtime(MESSAGE) is None


def test_dockers_escapes_are_read() -> None:
    line = unwrap(docker('\x1b[32m[rank0]: say "hä"\x1b[0m\r\n'))
    assert line == Line('say "hä"', STAMP, "stderr", False, ("docker", "torchrun"))


@pytest.mark.parametrize(
    "text",
    [
        MESSAGE,
        "[3] NCCL INFO Connected all rings",  # the host was lost: this is a CUDA device, no rank
        "[2026-03-13 22:26:02] gpu-1:100:101 [3] init.cc:12 NCCL WARN text",
        "...-48:31000:31058 [0] transport/net_ib.cc:93 NCCL WARN text",
        "NCCL version 2.18.6+cuda12.1",
        "loss 2.31: fine",
    ],
)
def test_what_is_no_wrapper_stays(text: str) -> None:
    assert unwrap(text) == Line(text)


def test_codes_of_a_terminal_and_rays_count_go() -> None:
    assert plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07text\0") == "red text"
    assert plain("Using network Socket [repeated 3x across cluster]") == "Using network Socket"
    assert plain("a [repeated 3x across cluster] b]") == "a [repeated 3x across cluster] b]"


@given(st.text(), st.sampled_from(["", CRI, "12: ", "[rank3]: ", ANSI, "[1,5]<stdout>:"]))
def test_any_text_is_unwrapped_to_an_end_of_itself(text: str, before: str) -> None:
    line = unwrap(before + text)
    assert (before + plain(text.rstrip("\r\n"))).endswith(line.text) or line.wrappers[:1] == ("docker",)
    assert len(line.wrappers) <= 7
