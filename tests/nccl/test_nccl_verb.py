"""``fabric-exporter nccl``: files, standard input, gzip, bad input, a terminal."""

from __future__ import annotations

import gzip
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exporter.cli import main
from exporter.nccl import report

CASES = Path(__file__).with_name("failures")
FLAP = CASES / "04-port-flap-then-retry-exceeded.log"
PROGRAM = [sys.executable, "-m", "exporter", "nccl"]
KEYS = {
    "file": str,
    "lines": int,
    "nccl_lines": int,
    "versions": list,
    "networks": dict,
    "devices": list,
    "channels": dict,
    "completion_errors": list,
    "flush_errors": int,
    "async_events": list,
    "settings": dict,
    "gdr": dict,
    "findings": list,
}


def told(output: str) -> list[dict[str, Any]]:
    document = json.loads(output)
    assert list(document) == ["logs"]
    logs: list[dict[str, Any]] = document["logs"]
    return logs


def test_json_has_the_keys_that_are_promised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nccl", "--json", *map(str, sorted(CASES.glob("*.log")))]) == 0
    logs = told(capsys.readouterr().out)
    assert len(logs) == 15
    for log in logs:
        assert {key: type(log[key]) for key in KEYS} == KEYS
        for device in log["devices"]:
            assert list(device) == ["index", "name", "port", "link_layer"]
        for direction in ("send", "receive"):
            for channel in log["channels"][direction]:
                assert list(channel) == ["net", "device", "hca", "path", "count"]
        assert isinstance(log["channels"]["p2p"], int)
        assert isinstance(log["channels"]["shm"], int)
        for error in log["completion_errors"]:
            assert list(error) == ["status", "name", "vendor_error", "hca", "peer", "count"]
        for event in log["async_events"]:
            assert list(event) == ["event", "device", "port", "count", "raw_count"]
        assert list(log["gdr"]) == ["state", "basis"]
        for finding in log["findings"]:
            assert {"id", "confidence", "summary", "evidence"} <= set(finding)
            assert finding["confidence"] in {"confirmed", "likely", "possible", "insufficient"}


def test_a_report_is_short_and_says_the_gravest_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nccl", str(FLAP)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{FLAP}: 20 lines of NCCL in 40"
    assert lines[1] == "  hosts      ...-48 and ...-51"
    assert [line for line in lines if line.startswith("  CRITICAL: ")]
    assert len(lines) < 20


def test_standard_input_and_gzip_say_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(FLAP.read_bytes()))
    outputs = []
    for arguments, data in (
        ([str(FLAP)], b""),
        ([str(packed)], b""),
        (["-"], FLAP.read_bytes()),
        (["-"], packed.read_bytes()),
    ):
        done = subprocess.run([*PROGRAM, "--json", *arguments], input=data, capture_output=True, check=True)
        (log,) = told(done.stdout.decode())
        del log["file"]
        outputs.append(log)
    assert outputs[1:] == outputs[:1] * 3


def test_what_cannot_be_read_is_one_line_and_the_rest_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(FLAP.read_bytes())[:100])
    assert main(["nccl", "--json", str(tmp_path / "none"), str(FLAP), str(tmp_path), str(broken)]) == 2
    captured = capsys.readouterr()
    assert [log["file"] for log in told(captured.out)] == [str(FLAP)]
    assert captured.err.count("\n") == 1
    for name, why in (("none", "No such file"), (tmp_path.name, "Is a directory"), ("broken.gz", "cannot be read")):
        assert name in captured.err
        assert why in captured.err


def test_without_a_file_it_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nccl"]) == 2
    assert "FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\0" * 4096, os.urandom(100_000), b"NCCL INFO " * 200_000, b"x" * 3_000_000, b"\xff\xfe\n" * 1000],
)
def test_whatever_a_file_holds_there_is_a_report(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    assert main(["nccl", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: ")


def test_a_line_broken_over_blocks_is_one(tmp_path: Path) -> None:
    line = b"node-1:1:1 [0] NCCL INFO Using network IB\n"
    path = tmp_path / "log"
    path.write_bytes((line * (3 * report.BLOCK // len(line)))[:-1])
    with path.open("rb") as stream:
        log = report.read("log", stream)
    assert log.evidence.networks == {"IB": 3 * report.BLOCK // len(line)}
    assert log.reader.lines == 3 * report.BLOCK // len(line)


def test_a_log_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"node-1:1:1 [0] NCCL INFO NCCL_IB_HCA set to \x1b]0;gone\x07\x9b2J\xe2\x80\xae\n")
    assert main(["nccl", str(path)]) == 0
    output = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in output)


def test_a_large_file_shows_its_progress_on_a_terminal_only(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    path.write_bytes(b"step 1 loss 2.0, nothing to see here\n" * (40_000_000 // 37))
    ours, theirs = pty.openpty()
    done = subprocess.run([*PROGRAM, "--json", str(path)], stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "large.log [" in shown
    assert shown.endswith("\033[K")
    assert told(done.stdout.decode())[0]["lines"] == 40_000_000 // 37
    quiet = subprocess.run([*PROGRAM, "--json", str(path)], capture_output=True, check=True)
    assert quiet.stderr == b""


def test_a_log_of_this_host_is_compared_with_its_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"node-1:1:1 [0] NCCL INFO NCCL_IB_HCA set to bnxt_re0\n")
    machine = CASES.parents[1] / "machines/h100-8xndr-bf3bond"
    assert main(["nccl", str(path)]) == 0
    assert "ib_hca_no_match" not in capsys.readouterr().out
    assert main(["nccl", "--this-host", "--capture", str(machine), str(path)]) == 0
    assert "NCCL_IB_HCA=bnxt_re0 selects none of this host's RDMA devices" in capsys.readouterr().out


def test_the_daemon_does_not_import_what_reads_saved_logs() -> None:
    code = "import exporter.cli, sys; print([name for name in sys.modules if name in ('exporter.nccl.report', 'rich')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
