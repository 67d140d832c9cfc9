"""Questions that hang or fail: what a device is known to be, and the other devices, are not lost."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.cli import main
from exporter.discovery import Rules, discover
from exporter.errors import KernelError
from exporter.kernel import DriverInfo, Kernel, Statistics
from exporter.kernel.live import open_kernel
from exporter.model import Inventory
from exporter.patience import Patience, Round

DEVICES = ("mlx5_0", "mlx5_1", "mlx5_2")
ONLY_RDMA = Rules()


class Tree:
    """A sysfs of three RDMA devices, where a file may be made to block whoever opens it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for device in DEVICES:
            for name, text in (
                ("fw_ver", "28.39.1002"),
                ("board_id", "MT_0000000838"),
                ("node_desc", "host mlx5"),
                ("node_guid", "0c42:a103:0012:3456"),
                ("ports/1/link_layer", "InfiniBand"),
            ):
                path = root / "class/infiniband" / device / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{text}\n")

    def block(self, name: str) -> None:
        path = self.root / name
        path.unlink()
        os.mkfifo(path)

    def release(self, name: str, text: str) -> None:
        """Let those that wait at the file have the text, as the kernel does when firmware answers at last."""
        with (self.root / name).open("w") as file:
            file.write(f"{text}\n")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "sys")


@pytest.fixture
def blocked(tree: Tree) -> Iterator[Callable[[str], None]]:
    """Block a file; the threads that wait at it are let go when the test ends."""
    names: list[str] = []

    def block(name: str) -> None:
        names.append(name)
        tree.block(name)

    yield block
    for name in names:
        # Opened for reading too, so that this waits for nobody.
        os.close(os.open(tree.root / name, os.O_RDWR))


async def look(patience: Patience, kernel: Kernel, previous: Inventory | None = None) -> Inventory:
    return await patience.run(kernel, lambda asked: discover(asked, ONLY_RDMA, previous))


def firmware(inventory: Inventory) -> dict[str, str]:
    return {port.device: port.firmware_version for port in inventory.ports}


FIRMWARE = dict.fromkeys(DEVICES, "28.39.1002")


@pytest.mark.parametrize(
    ("hangs", "known"),
    [
        ("mlx5_1/fw_ver", FIRMWARE | {"mlx5_1": ""}),
        ("mlx5_1/node_guid", FIRMWARE),
        ("mlx5_1/ports/1/link_layer", FIRMWARE),
    ],
)
async def test_a_device_that_hangs_when_first_looked_at_does_not_hide_the_others(
    tree: Tree, blocked: Callable[[str], None], hangs: str, known: dict[str, str]
) -> None:
    blocked(f"class/infiniband/{hangs}")
    patience = Patience("test", hangs_after=0.2)
    assert firmware(await look(patience, open_kernel(str(tree.root)))) == known
    assert patience.stuck == 1


async def test_a_question_that_hangs_is_answered_as_the_last_time_and_asked_again_when_it_has_returned(
    tree: Tree,
) -> None:
    patience, kernel = Patience("test", hangs_after=0.2), open_kernel(str(tree.root))
    before = await look(patience, kernel)
    name = "class/infiniband/mlx5_1/fw_ver"
    tree.block(name)
    for _ in range(3):
        assert firmware(await look(patience, kernel, before)) == FIRMWARE
        assert patience.stuck == 1, "asked again while it hangs"
    tree.release(name, "too late")
    (tree.root / name).unlink()
    (tree.root / name).write_text("28.40.1000\n")
    while patience.stuck:
        await asyncio.sleep(0.01)
    assert firmware(await look(patience, kernel, before)) == FIRMWARE | {"mlx5_1": "28.40.1000"}
    assert patience.stuck == 0


async def test_too_many_questions_that_hang_are_told_and_nothing_more_is_asked(
    tree: Tree, blocked: Callable[[str], None]
) -> None:
    for device in DEVICES:
        blocked(f"class/infiniband/{device}/fw_ver")
    patience = Patience("test", hangs_after=0.1, most=2)
    for _ in range(2):
        with pytest.raises(
            KernelError, match=r"^2 questions to the kernel hang, among them class/infiniband/mlx5_0/fw_ver$"
        ):
            await look(patience, open_kernel(str(tree.root)))
        assert patience.stuck == 2


async def test_a_failure_does_not_lose_what_was_known(tree: Tree) -> None:
    """A process without free file descriptors would take every device to be off the bus."""
    kernel = open_kernel(str(tree.root))

    class Exhausted:
        on = False

        def __getattr__(self, name: str) -> Callable[..., object]:
            def ask(*arguments: object) -> object:
                if self.on and name != "exists":
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                return getattr(kernel.sysfs, name)(*arguments)

            return ask

    exhausted = Exhausted()
    patience = Patience("test")
    host = replace(kernel, sysfs=exhausted)  # type: ignore[arg-type]  # passes everything on
    before = await look(patience, host)
    exhausted.on = True
    for _ in range(2):
        assert await look(patience, host, before) == before
    assert [port.device for port in before.ports] == list(DEVICES)


async def test_what_is_gone_is_gone(tree: Tree) -> None:
    patience, kernel = Patience("test"), open_kernel(str(tree.root))
    before = await look(patience, kernel)
    (tree.root / "class/infiniband/mlx5_1/fw_ver").unlink()
    assert firmware(await look(patience, kernel, before)) == FIRMWARE | {"mlx5_1": ""}


async def test_nothing_is_kept_of_earlier_rounds(tree: Tree) -> None:
    patience, kernel = Patience("test"), open_kernel(str(tree.root))

    def rounds() -> int:
        gc.collect()
        return sum(isinstance(thing, Round) for thing in gc.get_objects())

    before = rounds()
    for _ in range(5):
        await look(patience, kernel)
    assert rounds() - before <= 1


async def test_interfaces_do_not_wait_one_after_another_for_an_ioctl_that_hangs(tree: Tree) -> None:
    class Busy:
        """What ethtool answers while an earlier call has not returned, after seconds of waiting each time."""

        asked = 0

        def driver_info(self, netdev: str) -> DriverInfo:
            self.asked += 1
            raise OSError(errno.EBUSY, "an earlier ethtool call has not returned")

        def statistics(self, netdev: str) -> Statistics:
            raise AssertionError("discovery reads no counters")

    busy = Busy()
    kernel = replace(open_kernel(str(tree.root)), ethtool=busy)

    def drivers(asked: Kernel) -> list[str]:
        found = []
        for name in ("eth0", "eth1", "eth2"):
            try:
                found.append(asked.ethtool.driver_info(name).driver)
            except OSError as error:
                found.append(errno.errorcode[error.errno or 0])
        return found

    assert await Patience("test").run(kernel, drivers) == ["EBUSY", "ETIMEDOUT", "ETIMEDOUT"]
    assert busy.asked == 1


async def test_a_fault_of_ours_is_raised(tree: Tree) -> None:
    def fail(kernel: Kernel) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Patience("test").run(open_kernel(str(tree.root)), fail)


def test_once_and_capture_of_a_host_that_hangs(
    tree: Tree, blocked: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # node_desc is of the context that only a capture reads, board_id is read by discovery.
    blocked("class/infiniband/mlx5_1/board_id")
    blocked("class/infiniband/mlx5_2/node_desc")
    threads = threading.active_count()
    assert main(["once", f"--path.sysfs={tree.root}", "-o", str(tmp_path / "once.prom")]) == 0
    page = (tmp_path / "once.prom").read_text()
    assert [page.count(f'fabric_port_info{{device="{device}"') for device in DEVICES] == [1, 1, 1]
    assert main(["capture", f"--path.sysfs={tree.root}", str(tmp_path / "capture")]) == 0
    saved = (tmp_path / "capture/sys.txt").read_text()
    assert "class/infiniband/mlx5_0/fw_ver: 28.39.1002" in saved
    assert "class/infiniband/mlx5_2/fw_ver: 28.39.1002" in saved
    assert threading.active_count() > threads, "nothing hung"
