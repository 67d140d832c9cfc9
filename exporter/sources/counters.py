"""Counters that drivers name: RDMA hw_counters (netlink, else sysfs), PMA, device counters, and ``ethtool -S``."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from exporter.catalogue.ethernet import RAW
from exporter.drivers import GENERIC, driver_for
from exporter.drivers.entry import Driver, Entry
from exporter.drivers.plan import Picker, Plan, picker
from exporter.drivers.pma import PMA
from exporter.kernel import not_there, unsigned
from exporter.model import Inventory, Labels, Metric, Netdev, RdmaPort, Reading, Series, Shape
from exporter.sources.base import Environment, Source, Trouble, Unit, same_device, same_netdev
from exporter.sources.ports import folder_of

RETRY_SECONDS = 600.0
"""After how long a counter that was "not there" is asked for again: firmware that restarts says so too."""
SKIPPED_FILES = frozenset({"lifespan"})
"""Files among the hw_counters that are settings (drivers/infiniband/core/sysfs.c)."""
NO_PMA = "N/A (no PMA)"
"""What kernels before 4.19 print for a counter that the port does not have."""
INFINIBAND_ONLY = "fabric_ib_"


def identity_of(port: RdmaPort) -> Labels:
    """Return the labels that the counters of an RDMA port may carry: P, and its interface where it has one."""
    return (*port.labels, ("netdev", port.netdev)) if port.netdev else port.labels


class Keeper:
    """Keeps the plan of one unit while the kernel lists the same names, and what need not be read.

    ``absent`` are the counters that the device does not have, ``unserved`` those that feed no series. Both are looked at anew
    every ten minutes. ``refused`` is the index of the device of which RDMA netlink told nothing: with a driver that is loaded
    again the device has another, and an index that is not in use any more is refused too.
    """

    __slots__ = ("absent", "driver", "names", "plan", "refused", "retry_at", "unserved")

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.driver: Driver | None = None
        self.names: tuple[str, ...] = ()
        self.absent: set[str] = set()
        self.unserved: set[str] = set()
        self.retry_at = 0.0
        self.refused: int | None = None

    def same(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the kept tuple when the names are the same, so that the plan is."""
        if names != self.names:
            self.names = names
        return self.names


class CounterSource(Source[RdmaPort]):
    """What the sources of RDMA counters share: files of numbers, plans, and what is not there."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.keepers: dict[str, Keeper] = {}

    def units(self, inventory: Inventory) -> Sequence[Unit[RdmaPort]]:
        units = [Unit(f"{port.device}:{port.port} {port.identity}", port) for port in inventory.ports]
        keys = {unit.key for unit in units}
        self.keepers = {key: keeper for key, keeper in self.keepers.items() if key in keys}
        return units

    def keeper(self, port: RdmaPort) -> Keeper:
        return self.keepers.setdefault(f"{port.device}:{port.port} {port.identity}", Keeper())

    def files(self, port: RdmaPort, folder: str, first: str, trouble: Trouble) -> tuple[tuple[str, ...], list[int]]:
        """Read a folder of counters, the file ``first`` before the others; return the names that gave a number, and these.

        Returns none when the device's name is another's by now.
        """
        keeper = self.keeper(port)
        now = self.environment.clock()
        if now >= keeper.retry_at:
            keeper.absent.clear()
            keeper.unserved.clear()
            keeper.retry_at = now + RETRY_SECONDS
        try:
            files = self.kernel.sysfs.read_folder(folder, keeper.absent | keeper.unserved | SKIPPED_FILES, first)
        except OSError as error:
            trouble.note(folder, error)
            return (), []
        if not same_device(self.kernel, port):
            return (), []
        found, values = [], []
        for name, text in files:
            value = unsigned(text) if isinstance(text, str) else None
            if value is not None:
                found.append(name)
                values.append(value)
            elif self.missing(f"{folder}/{name}", text, trouble):
                keeper.absent.add(name)
        return keeper.same(tuple(found)), values

    def missing(self, path: str, text: str | OSError, trouble: Trouble) -> bool:
        """Return True when a file that gave no number says that there is no such counter; a failure is noted."""
        if isinstance(text, OSError):
            return trouble.note(path, text)
        if text.strip() == NO_PMA:
            return True
        trouble.note(path, f"expected a number, got {text[:40]!r}")
        return False

    def planned(
        self,
        port: RdmaPort,
        keeper: Keeper,
        names: tuple[str, ...],
        table: Callable[[Driver], tuple[Entry, ...]],
        identity: Labels,
        *,
        keep: Callable[[Metric], bool] = lambda metric: True,
    ) -> Plan:
        """Return the unit's plan, compiled again when the names changed."""
        if keeper.plan is None or keeper.plan.names is not names or keeper.plan.identity != identity:
            earlier = keeper.plan if keeper.plan is not None and keeper.plan.identity == identity else None
            driver = keeper.driver or driver_for(port.driver, port.device, names)
            if driver is not GENERIC:
                # Told by its names, it must not be told anew by the few that are read from now on.
                keeper.driver = driver
            keeper.plan = Plan(
                table(driver),
                names,
                identity,
                profile=self.environment.profile,
                virtual=port.virtual,
                lag=bool(port.members),
                resets=self.environment.resets,
                earlier=earlier,
                keep=keep,
            )
            keeper.unserved.update(set(names) - keeper.plan.used - {driver.read_first})
        return keeper.plan


class Rdma(CounterSource):
    """hw_counters of each RDMA port."""

    name = "rdma"
    about = "RDMA counters of each port (RDMA netlink, else hw_counters in sysfs)"

    def read(self, subject: RdmaPort, trouble: Trouble) -> list[Reading]:
        keeper = self.keeper(subject)
        names: tuple[str, ...] = ()
        values: Sequence[int] = ()
        if subject.index is not None and subject.index != keeper.refused:
            try:
                names, values = self.kernel.rdma.statistics(subject.index, subject.port)
            except OSError as error:
                if not not_there(error) and error.errno != errno.EMSGSIZE:
                    raise
                keeper.refused = subject.index
        if not names:
            folder = f"{folder_of(subject)}/hw_counters"
            driver = keeper.driver or driver_for(subject.driver, subject.device)
            names, values = self.files(subject, folder, driver.read_first, trouble)
        if not names:
            return []
        plan = self.planned(subject, keeper, names, lambda driver: driver.port, identity_of(subject))
        return [plan.reading(values)] if len(plan.shape) else []


class Pma(CounterSource):
    """PMA counters of each port."""

    name = "pma"
    about = "port counters of the IBTA's performance management (counters/ in sysfs)"

    def read(self, subject: RdmaPort, trouble: Trouble) -> list[Reading]:
        keeper = self.keeper(subject)
        folder = f"{folder_of(subject)}/counters"
        names, values = self.files(subject, folder, "", trouble)
        if not names:
            return []
        ethernet = subject.link_layer == "Ethernet" and self.environment.profile == "core"
        plan = self.planned(
            subject,
            keeper,
            names,
            lambda driver: driver.pma or PMA,
            identity_of(subject),
            keep=lambda metric: not (ethernet and metric.name.startswith(INFINIBAND_ONLY)),
        )
        return [plan.reading(values)] if len(plan.shape) else []


class RdmaDevice(CounterSource):
    """hw_counters of each RDMA device as a whole."""

    name = "rdma_device"
    about = "counters of RDMA devices as a whole (EFA commands and keep-alives, mana congestion control)"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.several_ports: frozenset[str] = frozenset()

    def units(self, inventory: Inventory) -> Sequence[Unit[RdmaPort]]:
        first: dict[str, Unit[RdmaPort]] = {}
        several = set()
        for unit in super().units(inventory):
            if first.setdefault(unit.subject.device, unit) is not unit:
                several.add(unit.subject.device)
        self.several_ports = frozenset(several)
        return tuple(first.values())

    def read(self, subject: RdmaPort, trouble: Trouble) -> list[Reading]:
        """What a device with one port counts is that port's: mana's congestion control, mlx5 in switchdev mode, old EFA."""
        identity = subject.labels[:1] if subject.device in self.several_ports else subject.labels
        keeper = self.keeper(subject)
        names, values = self.files(subject, f"class/infiniband/{subject.device}/hw_counters", "", trouble)
        if not names:
            return []
        plan = self.planned(subject, keeper, names, lambda driver: driver.device, identity)
        return [plan.reading(values)] if len(plan.shape) else []


class RawPlan:
    """The ``ethtool -S`` names of one interface that are served as they are."""

    def __init__(self, names: tuple[str, ...], netdev: str, wanted: Callable[[str], object]) -> None:
        self.names = names
        positions: dict[str, int] = {}
        for position, name in enumerate(names):
            if wanted(name):
                positions.setdefault(name, position)
        self.shape = Shape(Series(RAW, (("netdev", netdev), ("stat", name))) for name in positions)
        self.take: Picker = picker(tuple(positions.values()))


class Ethtool(Source[Netdev]):
    """``ethtool -S`` of each interface."""

    name = "ethtool"
    about = "statistics of the NIC driver (ethtool -S)"
    max_age = 5.0
    exclusive = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.plans: dict[str, tuple[Netdev, Plan, RawPlan | None]] = {}

    def units(self, inventory: Inventory) -> Sequence[Unit[Netdev]]:
        units = [Unit(f"{netdev.name} {netdev.identity}", netdev) for netdev in inventory.netdevs]
        keys = {unit.key for unit in units}
        self.plans = {key: plan for key, plan in self.plans.items() if key in keys}
        return units

    def read(self, subject: Netdev, trouble: Trouble) -> list[Reading]:
        names, values = self.kernel.ethtool.statistics(subject.name)
        if not names or not same_netdev(self.kernel, subject):
            return []
        key = f"{subject.name} {subject.identity}"
        kept = self.plans.get(key)
        if kept is None or kept[1].names is not names or kept[0].labels != subject.labels:
            kept = self.plans[key] = self.compile(subject, names, kept)
        _, plan, raw = kept
        readings = []
        if len(plan.shape):
            readings.append(plan.reading(values, pfc_enabled=self.environment.pfc.get(subject.name, 0)))
        if raw is not None and len(raw.shape):
            readings.append(Reading(raw.shape, raw.take(values)))
        return readings

    def compile(
        self, netdev: Netdev, names: tuple[str, ...], kept: tuple[Netdev, Plan, RawPlan | None] | None
    ) -> tuple[Netdev, Plan, RawPlan | None]:
        environment = self.environment
        driver: Driver = driver_for(netdev.driver, "", names)
        plan = Plan(
            driver.ethtool,
            names,
            netdev.labels,
            profile=environment.profile,
            virtual=netdev.virtual,
            infiniband=netdev.infiniband,
            resets=environment.resets,
            earlier=kept[1] if kept is not None and kept[1].identity == netdev.labels else None,
        )
        raw = RawPlan(names, netdev.name, environment.raw) if environment.raw is not None else None
        return netdev, plan, raw
