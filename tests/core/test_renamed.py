"""Names are swapped between a discovery and a scrape: nothing may be served under the name of another device."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.catalogue import ethernet, infiniband, ports
from exporter.catalogue.rdma import OUT_OF_BUFFER
from exporter.kernel import Kernel, RdmaLink, Statistics
from exporter.kernel.captured import open_capture
from exporter.kernel.sysfs import LiveSysfs
from exporter.model import Inventory, Metric, Netdev, RdmaPort, Reading
from exporter.sources.base import Environment, Trouble
from exporter.sources.counters import Pma, Rdma
from exporter.sources.ethernet import Dcb
from exporter.sources.ports import Ports

FIRST = RdmaPort("mlx5_0", 1, index=0, identity="0000:23:00.0 5054:00ff:febb:0001", node_guid="5054:00ff:febb:0001")


class Links:
    """RDMA netlink's answers to PORT_GET, as they are at the moment."""

    def __init__(self, *links: RdmaLink) -> None:
        self.answers = links

    def links(self) -> tuple[RdmaLink, ...]:
        return self.answers


class Counters:
    """RDMA netlink's answers to STAT_GET of the one device that there is."""

    def __init__(self, index: int) -> None:
        self.index = index

    def statistics(self, dev_index: int, port: int) -> Statistics:
        if dev_index != self.index:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return Statistics(("out_of_buffer",), (1001,))


def link(index: int, device: str, state: int) -> RdmaLink:
    return RdmaLink(index, device, 1, state, 5, None, "")


def kernel(root: Path, rdma: object) -> Kernel:
    captured = open_capture("tests/machines/rxe-lab")
    return replace(captured, sysfs=LiveSysfs(str(root)), rdma=rdma, live=True)  # type: ignore[arg-type]  # links only


def device(root: Path, name: str, guid: str, errors: int, rate: int) -> Path:
    folder = root / "class/infiniband" / name
    counters = folder / "ports/1/counters"
    counters.mkdir(parents=True)
    (folder / "node_guid").write_text(f"{guid}\n")
    (folder / "ports/1/rate").write_text(f"{rate} Gb/sec (4X)\n")
    (counters / "symbol_error").write_text(f"{errors}\n")
    return folder


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def values(readings: list[Reading], metric: Metric) -> list[float]:
    return [sample.value for reading in readings for sample in reading.samples() if sample.metric is metric]


def test_files_of_a_device_that_took_over_the_name_are_not_served(tmp_path: Path) -> None:
    first = device(tmp_path, "mlx5_0", FIRST.node_guid, 1001, 400)
    second = device(tmp_path, "mlx5_1", "5054:00ff:febb:0002", 1002, 100)
    source = Pma(Environment(kernel(tmp_path, Links()), profile="full"))
    assert values(source.read(FIRST, Trouble()), infiniband.SYMBOL_ERRORS) == [1001]
    swap(first, second)
    assert source.read(FIRST, Trouble()) == []


def test_netlink_is_asked_again_when_the_driver_was_loaded_again(tmp_path: Path) -> None:
    """An index that is not in use any more is refused with EINVAL, like a device without counters."""
    rdma = Counters(4)
    source = Rdma(Environment(kernel(tmp_path, rdma)))
    source.read(replace(FIRST, index=4), Trouble())
    rdma.index = 5
    assert source.read(replace(FIRST, index=4), Trouble()) == []
    readings = source.read(replace(FIRST, index=5), Trouble())
    assert values(readings, OUT_OF_BUFFER) == [1001]


def test_state_follows_the_device_and_the_rate_is_not_read_under_a_name_that_is_not_its_own(tmp_path: Path) -> None:
    first = device(tmp_path, "mlx5_0", FIRST.node_guid, 0, 400)
    second = device(tmp_path, "mlx5_1", "5054:00ff:febb:0002", 0, 100)
    swap(first, second)
    source = Ports(Environment(kernel(tmp_path, Links(link(0, "mlx5_1", 4), link(1, "mlx5_0", 1)))))
    source.read(None, Trouble())
    readings = source.read(FIRST, Trouble())
    assert values(readings, ports.PORT_STATE) == [4]
    assert values(readings, ports.PORT_SPEED) == []


@pytest.mark.parametrize(
    ("now", "outdated"),
    [
        ((link(0, "mlx5_0", 4), link(1, "mlx5_1", 1)), False),
        ((link(0, "mlx5_1", 4), link(1, "mlx5_0", 4)), True),
        ((link(0, "mlx5_0", 4),), True),
        ((link(0, "mlx5_0", 4), link(1, "mlx5_1", 4), link(2, "mlx5_2", 4)), True),
    ],
    ids=["a link went down", "swapped", "gone", "plugged in"],
)
def test_devices_that_come_go_or_change_their_names_are_looked_for(
    tmp_path: Path, now: tuple[RdmaLink, ...], outdated: bool
) -> None:
    rdma = Links(link(0, "mlx5_0", 4), link(1, "mlx5_1", 4))
    environment = Environment(kernel(tmp_path, rdma))
    source = Ports(environment)
    [unit] = source.units(Inventory())
    source.read(unit.subject, Trouble())
    assert not environment.outdated
    rdma.answers = now
    source.read(unit.subject, Trouble())
    assert environment.outdated is outdated


def test_an_answer_of_an_interface_that_took_over_the_name_is_not_served(tmp_path: Path) -> None:
    folder = tmp_path / "class/net/sim1"
    folder.mkdir(parents=True)
    (folder / "ifindex").write_text("8\n")
    source = Dcb(Environment(kernel(tmp_path, Links()), profile="full"))
    netdev = Netdev("sim1", ifindex=8)
    assert values(source.read(netdev, Trouble()), ethernet.PFC_ENABLED) == [0, 0, 0, 1, 0, 0, 0, 0]
    (folder / "ifindex").write_text("9\n")
    assert source.read(netdev, Trouble()) == []
