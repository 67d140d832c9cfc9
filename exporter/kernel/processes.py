"""Which processes hold a GPU, from the file descriptors below /proc (proc(5)).

A process that computes holds ``nvidia-uvm`` beside its GPUs; monitors and nvidia-persistenced hold the GPUs alone. AMD's compute
driver has one device for all, ``kfd``.
"""

from __future__ import annotations

import json
import os
import re

import msgspec

from exporter.kernel import GpuProcess, GpuProcesses

COMPUTING = ("/dev/nvidia-uvm", "/dev/kfd")
_DEVICE = re.compile(r"/dev/(nvidia[0-9]+|dri/renderD[0-9]+)")
_INNER_PID = re.compile(r"^NSpid:.*?([0-9]+)$", re.MULTILINE)
_INODE = re.compile(r"^ino:\s*([0-9]+)$", re.MULTILINE)


class LiveProcesses:
    """The processes of the running Linux that a mount of procfs shows."""

    def __init__(self, procfs_root: str = "/proc") -> None:
        self._root = procfs_root.rstrip("/")

    def holding_gpus(self) -> GpuProcesses:
        """Return the processes that hold a GPU. Other users' descriptors cannot be seen without CAP_SYS_PTRACE."""
        # Without the kernel's own threads it is a container's list, or one that hidepid= has made shorter.
        complete = _text(f"{self._root}/2/comm").strip() == "kthreadd"
        found = []
        for pid in os.listdir(self._root):
            if not pid.isdecimal():
                continue
            try:
                process = self._process(pid)
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                continue
            except PermissionError:
                complete = False
                continue
            if process is not None:
                found.append(process)
        return GpuProcesses(tuple(sorted(found)), complete)

    def _process(self, pid: str) -> GpuProcess | None:
        folder = f"{self._root}/{pid}/fd"
        links = {}
        for number in os.listdir(folder):
            try:
                links[number] = os.readlink(f"{folder}/{number}")
            except FileNotFoundError:  # closed meanwhile
                continue
        if not any(link in COMPUTING for link in links.values()):
            return None
        devices = {match[1] for link in links.values() if (match := _DEVICE.fullmatch(link))}
        files = set()
        for number, link in links.items():
            if link.startswith("/") and not link.startswith(("/dev/", "/memfd:")):
                # Not stat: it would ask the file system, which may be a network's that does not answer.
                inode = _INODE.search(_text(f"{self._root}/{pid}/fdinfo/{number}"))
                if inode:
                    files.add((link.rpartition("/")[2], int(inode[1])))
        inner = _INNER_PID.search(_text(f"{self._root}/{pid}/status"))
        return GpuProcess(int(pid), int(inner[1]) if inner else int(pid), tuple(sorted(devices)), tuple(sorted(files)))


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


class _Process(msgspec.Struct):
    pid: int
    inner_pid: int
    devices: list[str] = []


class _Processes(msgspec.Struct):
    complete: bool
    processes: list[_Process]


def read_processes(text: str) -> GpuProcesses:
    """Return the processes of a capture's file. Raises ValueError for what is none."""
    known = msgspec.json.decode(text, type=_Processes)
    processes = (GpuProcess(one.pid, one.inner_pid, tuple(one.devices)) for one in known.processes)
    return GpuProcesses(tuple(processes), known.complete)


def write_processes(answer: GpuProcesses) -> str:
    """Return the processes as a capture has them: without the names of their files."""
    processes = [
        {"pid": process.pid, "inner_pid": process.inner_pid, "devices": process.devices} for process in answer.processes
    ]
    return json.dumps({"complete": answer.complete, "processes": processes}, separators=(",", ":")) + "\n"
