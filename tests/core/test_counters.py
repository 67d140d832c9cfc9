"""Filters act before the read: a counter that feeds no series is read once, to know its name."""

from __future__ import annotations

from collections.abc import Container

from exporter.kernel import Kernel, Sysfs, read_one_by_one
from exporter.kernel.captured import open_capture
from exporter.model import Profile, RdmaPort
from exporter.sources.base import Environment, Trouble
from exporter.sources.counters import RETRY_SECONDS, Pma, Rdma

PORT = RdmaPort("mlx5_0", 1, link_layer="InfiniBand")


class Watched:
    """A captured sysfs that notes which files are opened."""

    def __init__(self, sysfs: Sysfs) -> None:
        self._sysfs = sysfs
        self.opened: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._sysfs, name)

    def read_folder(self, path: str, skip: Container[str] = (), first: str = "") -> list[tuple[str, str | OSError]]:
        found = read_one_by_one(self._sysfs, path, skip, first)
        self.opened += [name for name, _ in found]
        return found

    def take(self) -> list[str]:
        opened, self.opened = self.opened, []
        return opened


def environment(profile: Profile) -> tuple[Environment, Watched, list[float]]:
    captured = open_capture("tests/machines/h100-8xndr-bf3bond")
    sysfs = Watched(captured.sysfs)
    kernel = Kernel(
        sysfs,  # type: ignore[arg-type]  # the rest is passed on
        captured.ethtool,
        captured.ethtool_netlink,
        captured.rdma,
        captured.dcb,
        captured.devlink,
        captured.links,
        captured.processes,
        live=False,
    )
    now = [0.0]
    return Environment(kernel, profile=profile, clock=lambda: now[0]), sysfs, now


def test_what_the_profile_does_not_serve_is_not_read_again() -> None:
    surroundings, sysfs, now = environment("core")
    source = Pma(surroundings)
    first = source.read(PORT, Trouble())
    assert len(sysfs.take()) == 21
    again = source.read(PORT, Trouble())
    opened = sysfs.take()
    assert "VL15_dropped" not in opened
    assert "port_rcv_data" in opened
    assert len(opened) == 13
    assert [*first[0].samples()] == [*again[0].samples()]
    now[0] = RETRY_SECONDS
    source.read(PORT, Trouble())
    assert len(sysfs.take()) == 21


def test_the_file_that_refreshes_the_others_is_read_first_though_it_is_not_served() -> None:
    surroundings, sysfs, _ = environment("core")
    source = Rdma(surroundings)
    for _ in range(3):
        source.read(PORT, Trouble())
        opened = sysfs.take()
        assert opened[0] == "rx_write_requests"
    assert "rx_read_requests" not in opened
    assert "out_of_sequence" in opened


def test_the_full_profile_reads_what_it_serves() -> None:
    surroundings, sysfs, _ = environment("full")
    source = Pma(surroundings)
    source.read(PORT, Trouble())
    sysfs.take()
    source.read(PORT, Trouble())
    assert len(sysfs.take()) == 21
