"""Processes that hold GPUs: real processes with real descriptors, of files that look like the devices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exporter.kernel import GpuProcess, GpuProcesses
from exporter.kernel.processes import LiveProcesses, read_processes, write_processes

HOLDER = "import sys; held = [open(path) for path in sys.argv[1:]]; print('ready', flush=True); sys.stdin.read()"


@contextmanager
def holding(*paths: str | Path, wrapper: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """A process that has the paths open."""
    process = subprocess.Popen(
        [*wrapper, sys.executable, "-c", HOLDER, *map(str, paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


@pytest.fixture
def devices() -> Iterator[list[str]]:
    """Device nodes that any driver refuses to open are of no use: these are files of their names."""
    names = ["/dev/nvidia-uvm", "/dev/nvidia6", "/dev/nvidia7", "/dev/nvidiactl"]
    if any(os.path.exists(name) for name in names):
        pytest.skip("this machine has GPUs")
    for name in names:
        Path(name).touch()
    yield names
    for name in names:
        os.unlink(name)


def test_who_computes_and_what_it_writes(devices: list[str], tmp_path: Path) -> None:
    log = tmp_path / "nccl.host.1"
    log.touch()
    with holding(*devices, log) as process:
        (found,) = LiveProcesses().holding_gpus().processes
    assert (found.pid, found.inner_pid) == (process.pid, process.pid)
    assert found.devices == ("nvidia6", "nvidia7")
    assert ("nccl.host.1", log.stat().st_ino) in found.files


def test_a_monitor_does_not_compute(devices: list[str]) -> None:
    with holding("/dev/nvidia6", "/dev/nvidiactl"):
        assert LiveProcesses().holding_gpus().processes == ()


def test_a_process_in_a_namespace_knows_itself_by_another_pid(devices: list[str]) -> None:
    with holding(*devices, wrapper=("unshare", "--pid", "--fork", "--mount-proc")):
        (found,) = LiveProcesses().holding_gpus().processes
    assert found.inner_pid == 1
    assert found.pid != 1


def test_what_is_hidden_is_not_taken_for_absent(tmp_path: Path) -> None:
    (tmp_path / "7/fd").mkdir(parents=True)
    (tmp_path / "2").mkdir()
    (tmp_path / "2/comm").write_text("bash\n")
    (tmp_path / "2/fd").mkdir()
    assert LiveProcesses(str(tmp_path)).holding_gpus() == GpuProcesses((), complete=False), "a container's own list"
    (tmp_path / "2/comm").write_text("kthreadd\n")
    assert LiveProcesses(str(tmp_path)).holding_gpus() == GpuProcesses((), complete=True)


def test_descriptors_of_others_cannot_be_seen(tmp_path: Path) -> None:
    program = "from exporter.kernel.processes import LiveProcesses; print(LiveProcesses().holding_gpus().complete)"
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
    done = subprocess.run([*nobody, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if "Permission denied" in done.stderr:
        pytest.skip("the interpreter is not for everybody")
    assert done.stdout == "False\n", done.stderr


def test_a_capture_keeps_what_is_needed_and_no_name_of_a_file() -> None:
    answer = GpuProcesses((GpuProcess(4711, 1, ("nvidia0",), (("secret-project.log", 12),)),), complete=True)
    text = write_processes(answer)
    assert "secret" not in text
    assert read_processes(text) == GpuProcesses((GpuProcess(4711, 1, ("nvidia0",)),), complete=True)
