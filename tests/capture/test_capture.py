"""``capture``: what is saved is what was read, in a folder that is complete or not there."""

from __future__ import annotations

import argparse
import errno
import os
import stat
from pathlib import Path

import pytest

from exporter.capture import CONTEXT, matches, write_capture
from exporter.cli import capture
from exporter.config import Settings
from exporter.errors import CaptureError
from exporter.kernel import Kernel, Statistics
from exporter.kernel.captured import load_capture, open_capture
from exporter.kernel.live import open_kernel
from exporter.kernel.recording import record

SYSFS = """\
bus/pci/devices/0000:03:00.0 -> ../../../devices/pci0000:00/0000:03:00.0
class/net/bonding_masters: bond0
class/net/eth0 -> ../../devices/pci0000:00/0000:03:00.0/net/eth0
devices/pci0000:00/0000:03:00.0/net/eth0/address: 0c:42:a1:12:34:56
devices/pci0000:00/0000:03:00.0/net/eth0/device -> ../../../0000:03:00.0
devices/pci0000:00/0000:03:00.0/net/eth0/mtu: 9000
devices/pci0000:00/0000:03:00.0/net/eth0/queues/
devices/pci0000:00/0000:03:00.0/net/eth0/speed ! EINVAL
devices/pci0000:00/0000:03:00.0/vendor: 0x15b3
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    folder = tmp_path / "original"
    (folder / "ethtool").mkdir(parents=True)
    (folder / "sys.txt").write_text(SYSFS)
    (folder / "ethtool/eth0.txt").write_text("NIC statistics:\n     rx_packets: 5\n")
    (folder / "ethtool/eth1.txt").write_text("ERROR: 5\n")
    return open_capture(folder)


def error_of(call: object, *arguments: object) -> int | None:
    assert callable(call)
    with pytest.raises(OSError, match=r".") as caught:
        call(*arguments)
    return caught.value.errno


def test_a_recording_answers_and_remembers(kernel: Kernel) -> None:
    recording = record(kernel)
    asked = recording.kernel
    assert asked.sysfs.read("class/net/eth0/mtu") == "9000"
    assert asked.sysfs.read_bytes("class/net/eth0/device/vendor", 4) == b"0x15"
    assert asked.sysfs.resolve("class/net/eth0/device") == "devices/pci0000:00/0000:03:00.0"
    assert asked.sysfs.list("class/net") == ("bonding_masters", "eth0")
    assert asked.sysfs.exists("class/net/eth0/queues")
    assert not asked.sysfs.exists("class/net/eth9")
    assert error_of(asked.sysfs.read, "class/net/eth0/speed") == errno.EINVAL
    assert error_of(asked.sysfs.read, "class/net/eth0/duplex") == errno.ENOENT
    assert asked.ethtool.statistics("eth0") == Statistics(("rx_packets",), (5,))
    assert error_of(asked.ethtool.statistics, "eth1") == errno.EIO
    assert error_of(asked.rdma.devices) == errno.EPROTONOSUPPORT
    assert recording.sysfs.unread() == ("class/net/bonding_masters",)
    for path in recording.sysfs.unread():
        asked.sysfs.read(path)
    snapshot = recording.finish()
    assert [entry.path for entry in snapshot.sysfs.entries()] == [
        "class/net/bonding_masters",
        "class/net/eth0",
        "devices/pci0000:00/0000:03:00.0/net/eth0/device",
        "devices/pci0000:00/0000:03:00.0/net/eth0/mtu",
        "devices/pci0000:00/0000:03:00.0/net/eth0/queues",
        "devices/pci0000:00/0000:03:00.0/net/eth0/speed",
        "devices/pci0000:00/0000:03:00.0/vendor",
    ]
    assert snapshot.sysfs.read_bytes("class/net/bonding_masters") == b"bond0"  # listed, and read in the end
    assert set(snapshot.statistics) == {"eth0", "eth1"}


def exercise(kernel: Kernel) -> None:
    kernel.links.dump()
    kernel.sysfs.read("class/net/eth0/mtu")
    kernel.ethtool.statistics("eth0")
    assert error_of(kernel.ethtool.statistics, "eth1") == errno.EIO


def test_a_capture_answers_like_the_kernel_it_is_of(kernel: Kernel, tmp_path: Path) -> None:
    summary = write_capture(kernel, exercise, tmp_path / "capture")
    captured, problems = load_capture(tmp_path / "capture")
    assert problems == ()
    assert captured.sysfs.read("class/net/eth0/mtu") == "9000"
    assert captured.ethtool.statistics("eth0") == Statistics(("rx_packets",), (5,))
    assert error_of(captured.ethtool.statistics, "eth1") == errno.EIO
    address = captured.sysfs.read("class/net/eth0/address")  # context
    assert address.startswith("0c:42:a1:")
    assert address != "0c:42:a1:12:34:56"
    assert address == next(link.mac for link in captured.links.dump() if link.name == "eth0")
    assert str(summary) == "saved 4 sysfs files, 2 interfaces, 0 RDMA devices; masked 1 MAC address"
    assert stat.S_IMODE(os.stat(tmp_path / "capture").st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture", "original"]


def test_an_empty_folder_is_taken(kernel: Kernel, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    inode = folder.stat().st_ino
    write_capture(kernel, exercise, folder)
    assert load_capture(folder).problems == ()
    assert folder.stat().st_ino == inode, "the folder may be a mount point: it stays the same"
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert set(files.values()) == {0o600, 0o700}, files
    assert not [name for name in files if name.startswith(".")]


def test_nothing_is_left_of_a_capture_that_failed(kernel: Kernel, tmp_path: Path) -> None:
    def fail(_: Kernel) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_capture(kernel, fail, tmp_path / "capture")
    assert [path.name for path in tmp_path.iterdir()] == ["original"]


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("original", "original: not empty: expected a new or an empty folder"),
        ("original/sys.txt", "sys.txt: Not a directory: expected a new or an empty folder"),
        ("missing/capture", "missing/capture: cannot be made: No such file or directory"),
    ],
)
def test_where_no_capture_can_be_written(kernel: Kernel, tmp_path: Path, folder: str, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        write_capture(kernel, exercise, tmp_path / folder)


def test_context_is_found_by_pattern(kernel: Kernel) -> None:
    assert list(matches(kernel.sysfs, "class/net/*/mtu")) == ["class/net/bonding_masters/mtu", "class/net/eth0/mtu"]
    assert list(matches(kernel.sysfs, "class/none/*/mtu")) == []
    assert "module/mlx5_core/version" in CONTEXT


def test_the_verb_on_this_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The live kernel: the interfaces of the capture are those of the host, their addresses are not in it."""
    folder = tmp_path / "capture"
    arguments = argparse.Namespace(folder=str(folder))
    assert capture.run(arguments, Settings()) == 0
    assert capsys.readouterr().out.startswith(f"{folder}: saved ")
    live, captured = open_kernel().links.dump(), open_capture(folder).links.dump()
    assert (
        {link.ifindex for link in live if link.loopback}
        == {link.ifindex for link in captured if link.loopback}
        != set()
    )
    macs = {link.mac for link in live if link.mac.strip("0:") and link.mac.strip("f:")}
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any(mac in text for mac in macs for text in texts)
    with pytest.raises(CaptureError, match="not empty"):
        capture.run(arguments, Settings())
