from __future__ import annotations

import ctypes
import errno
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from exporter.kernel.sysfs import PAGE, LiveSysfs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small sysfs elsewhere than /sys: a NIC as the kernel lays it out, relative links only."""
    device = tmp_path / "sys/devices/pci0000:3a/0000:3b:00.0"
    (device / "net/eth0").mkdir(parents=True)
    (device / "net/eth0/mtu").write_text("9000\n")
    (device / "net/eth0/device").symlink_to("../..")
    (tmp_path / "sys/class/net").mkdir(parents=True)
    (tmp_path / "sys/class/net/eth0").symlink_to("../../devices/pci0000:3a/0000:3b:00.0/net/eth0")
    return tmp_path / "sys"


def errno_of(call: Callable[[], object]) -> int | None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is compared by the caller
        call()
    return caught.value.errno


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"4: ACTIVE\n", "4: ACTIVE"),
        (b"two\nlines\n", "two\nlines"),
        (b"no newline", "no newline"),
        (b"only one is removed\n\n", "only one is removed\n"),
        (b" blanks stay \n", " blanks stay "),
        (b"", ""),
        (b"S/N \xff\xfe\n", "S/N \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
        ("Größe\n".encode(), "Größe"),
        (b"x" * (PAGE + 1), "x" * PAGE),
    ],
)
def test_text_is_read_without_its_trailing_newline(tmp_path: Path, written: bytes, read: str) -> None:
    (tmp_path / "file").write_bytes(written)
    assert LiveSysfs(str(tmp_path)).read("file") == read


def test_reads_through_links_below_its_root(root: Path) -> None:
    assert LiveSysfs(f"{root}/").read("class/net/eth0/mtu") == "9000"
    assert LiveSysfs(str(root)).read("class/net/eth0/device/net/eth0/mtu") == "9000"


def test_bytes_come_as_they_are_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"\xb3\x15\x00\n")
    sysfs = LiveSysfs(str(tmp_path))
    assert sysfs.read_bytes("config") == b"\xb3\x15\x00\n"
    assert sysfs.read_bytes("config", 2) == b"\xb3\x15"


def test_lists_sorted_names_of_files_folders_and_links(root: Path) -> None:
    sysfs = LiveSysfs(str(root))
    assert sysfs.list("class/net/eth0") == ("device", "mtu")
    assert sysfs.list("class/net") == ("eth0",)
    assert errno_of(lambda: sysfs.list("class/infiniband")) == errno.ENOENT
    assert errno_of(lambda: sysfs.list("class/net/eth0/mtu")) == errno.ENOTDIR


def test_exists_follows_links(root: Path) -> None:
    (root / "class/net/gone").symlink_to("../../devices/gone")
    sysfs = LiveSysfs(str(root))
    assert sysfs.exists("class/net/eth0/mtu")
    assert sysfs.exists("class")
    assert not sysfs.exists("class/net/gone")
    assert not sysfs.exists("class/net/eth0/mtu/below-a-file")


def test_resolves_links_below_another_root(root: Path) -> None:
    sysfs = LiveSysfs(str(root))
    assert sysfs.resolve("class/net/eth0") == "devices/pci0000:3a/0000:3b:00.0/net/eth0"
    assert sysfs.resolve("class/net/eth0/device") == "devices/pci0000:3a/0000:3b:00.0"
    assert sysfs.resolve("class//net/./eth0/mtu") == "devices/pci0000:3a/0000:3b:00.0/net/eth0/mtu"
    assert sysfs.resolve("") == ""


@pytest.mark.parametrize("target", ["/sys/devices/nic", "{root}/devices/nic", "../../../../../../../../devices/nic"])
def test_resolves_absolute_links_and_those_that_climb_as_below_the_root(tmp_path: Path, target: str) -> None:
    (tmp_path / "devices/nic/net/eth0").mkdir(parents=True)
    (tmp_path / "class/net").mkdir(parents=True)
    (tmp_path / "class/net/nic").symlink_to(target.format(root=tmp_path))
    assert LiveSysfs(str(tmp_path)).resolve("class/net/nic/net/eth0") == "devices/nic/net/eth0"


def test_resolves_when_the_root_is_a_link_itself(root: Path) -> None:
    (root.parent / "link").symlink_to(root)
    sysfs = LiveSysfs(str(root.parent / "link"))
    assert sysfs.resolve("class/net/eth0/device") == "devices/pci0000:3a/0000:3b:00.0"


def test_resolve_raises_what_the_kernel_would(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    (root / "outside").symlink_to("/etc")
    sysfs = LiveSysfs(str(root))
    assert errno_of(lambda: sysfs.resolve("class/net/eth1")) == errno.ENOENT
    assert errno_of(lambda: sysfs.resolve("class/net/eth0/mtu/x")) == errno.ENOTDIR
    assert errno_of(lambda: sysfs.resolve("loop")) == errno.ELOOP
    assert errno_of(lambda: sysfs.resolve("outside")) == errno.ENOENT


@pytest.mark.parametrize("path", ["../secret", "class/net/../../../secret", "class/..", "class/net/eth0\0/mtu"])
def test_a_path_that_is_not_below_the_root_is_refused(root: Path, path: str) -> None:
    (root.parent / "secret").write_text("password")
    sysfs = LiveSysfs(str(root), str(root))
    assert errno_of(lambda: sysfs.read(path)) == errno.EINVAL
    assert errno_of(lambda: sysfs.read_bytes(path)) == errno.EINVAL
    assert errno_of(lambda: sysfs.read_proc(path)) == errno.EINVAL
    assert errno_of(lambda: sysfs.list(path)) == errno.EINVAL
    assert errno_of(lambda: sysfs.resolve(path)) == errno.EINVAL
    assert not sysfs.exists(path)


def test_two_dots_within_a_name_are_a_name(tmp_path: Path) -> None:
    (tmp_path / "eth..0").write_text("1\n")
    assert LiveSysfs(str(tmp_path)).read("eth..0") == "1"


def test_reads_all_of_a_file_of_procfs(tmp_path: Path) -> None:
    routes = "".join(f"eth0\t{number:08X}\n" for number in range(10_000))
    (tmp_path / "route").write_text(routes)
    assert LiveSysfs(procfs_root=str(tmp_path)).read_proc("route") == routes
    assert LiveSysfs().read_proc("version") == Path("/proc/version").read_text()


def test_reads_this_machine() -> None:
    sysfs = LiveSysfs()
    assert sysfs.read("class/net/lo/address") == "00:00:00:00:00:00"
    assert sysfs.resolve("class/net/lo") == "devices/virtual/net/lo"
    assert "lo" in sysfs.list("class/net")
    assert not sysfs.exists("class/net/lo/device")
    assert errno_of(lambda: sysfs.read("class/net")) == errno.EISDIR


def test_a_file_without_permission_is_eacces_and_the_others_are_read() -> None:
    seen: list[object] = []

    def read_as_nobody(sysfs: LiveSysfs) -> None:
        ctypes.CDLL(None).setfsuid(65534)  # of this thread only; changes nothing where the tests do not run as root
        seen.append(errno_of(lambda: sysfs.read("secret")))
        seen.append(sysfs.read("mtu"))

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "mtu").write_text("9000\n")
        (root / "secret").write_text("1\n")
        (root / "secret").chmod(0)
        thread = threading.Thread(target=read_as_nobody, args=(LiveSysfs(folder),))
        thread.start()
        thread.join()
    assert seen == [errno.EACCES, "9000"]


def test_a_file_that_blocks_holds_its_own_thread_only(root: Path) -> None:
    os.mkfifo(root / "class/fifo")
    sysfs = LiveSysfs(str(root))
    seen: list[str] = []
    stuck = threading.Thread(target=lambda: seen.append(sysfs.read("class/fifo")), daemon=True)
    stuck.start()
    stuck.join(0.3)
    assert stuck.is_alive()
    assert seen == []
    assert sysfs.read("class/net/eth0/mtu") == "9000"
    (root / "class/fifo").write_text("late\n")
    stuck.join()
    assert seen == ["late"]
