"""What the ports and interfaces are, whether they are up and how fast."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from functools import lru_cache

from exporter.catalogue import ports as catalogue
from exporter.kernel import Link, RdmaLink, unsigned
from exporter.model import Inventory, Labels, Metric, Netdev, RdmaPort, Reading, Series
from exporter.sources.base import Environment, Source, Trouble, Unit, same_device, series

ACTIVE, LINK_UP = 4, 5
"""IBTA logical state ACTIVE and physical state LinkUp (include/rdma/ib_verbs.h, IBTA PortInfo)."""
STATES = {"NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4, "ACTIVE_DEFER": 5}
PHYSICAL_STATES = {
    "Sleep": 1,
    "Polling": 2,
    "Disabled": 3,
    "PortConfigurationTraining": 4,
    "LinkUp": 5,
    "LinkErrorRecovery": 6,
    "Phy Test": 7,
}
RATE = re.compile(r"(\d{1,6}(?:\.\d+)?) Gb/sec", re.ASCII)
"""``rate`` of a port (drivers/infiniband/core/sysfs.c); the width and speed words that follow mean little on Ethernet."""
RATE_AGE = 30.0
"""Seconds for which a rate is served again while the link stays up. Reading it is a firmware command (RDMA) or waits for RTNL
(interfaces), and it changes only when the link comes up again."""
BYTES_PER_GIGABIT = 125_000_000
BYTES_PER_MEGABIT = 125_000


def folder_of(port: RdmaPort) -> str:
    """Return the port's folder in sysfs."""
    return f"class/infiniband/{port.device}/ports/{port.port}"


def state_number(text: str, names: dict[str, int]) -> int | None:
    """Return the number of a state as sysfs prints it (``4: ACTIVE``) or as tools do (``ACTIVE``); None when it is neither."""
    number, colon, name = text.partition(":")
    printed = unsigned(number) if colon else None
    if printed is not None:
        return printed
    return names.get((name or number).strip())


def rate_bytes(text: str) -> int | None:
    """Return a port's rate in bytes per second from ``400 Gb/sec (4X NDR)``; None when it is not of that form."""
    found = RATE.match(text)
    return round(float(found[1]) * BYTES_PER_GIGABIT) if found else None


def info(metric: Metric, identity: Labels, described: dict[str, str]) -> Series:
    """Return an info series; labels whose value is not known are left out."""
    return series(metric, identity, *((label, value) for label, value in described.items() if value))


@lru_cache(maxsize=1024)
def port_info(port: RdmaPort) -> Series:
    """Return the series of ``fabric_port_info``."""
    identity = (*port.labels, ("netdev", port.netdev)) if port.netdev else port.labels
    return info(
        catalogue.PORT_INFO,
        identity,
        {
            "driver": port.driver,
            "pci_address": port.pci_address,
            "pcie_root": port.pcie_root,
            "numa_node": "" if port.numa_node is None else str(port.numa_node),
            "link_layer": port.link_layer,
            "firmware_version": port.firmware_version,
            "board_id": port.board_id,
            "function": port.function,
            "role": port.role,
            "rail": port.rail,
            "plane": port.plane,
        },
    )


@lru_cache(maxsize=1024)
def netdev_info(netdev: Netdev) -> Series:
    """Return the series of ``fabric_netdev_info``."""
    return info(
        catalogue.NETDEV_INFO,
        netdev.labels,
        {
            "driver": netdev.driver,
            "pci_address": netdev.pci_address,
            "numa_node": "" if netdev.numa_node is None else str(netdev.numa_node),
            "firmware_version": netdev.firmware_version,
            "function": netdev.function,
            "master": netdev.master,
            "role": netdev.role,
        },
    )


class Rates:
    """Remembers the rate of each link: an answer is served again while what it depends on is the same, up to RATE_AGE."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[str, tuple[object, float, int | None]] = {}

    def get(self, key: str, depends_on: object, read: Callable[[], int | None]) -> int | None:
        """Return the rate, from ``read`` when it is not known any more."""
        now = self._clock()
        known = self._known.get(key)
        if known is None or known[0] != depends_on or now - known[1] >= RATE_AGE:
            known = self._known[key] = (depends_on, now, read())
        return known[2]

    def keep(self, keys: Container[str]) -> None:
        """Forget the links that are gone."""
        self._known = {key: known for key, known in self._known.items() if key in keys}

    def forget(self, key: str) -> None:
        """Forget the rate of a link that is down."""
        self._known.pop(key, None)


class Ports(Source[RdmaPort | None]):
    """State, rate and identity of each RDMA port, those that vanished included."""

    name = "ports"
    about = "state, rate and identity of the RDMA ports"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.links: dict[tuple[int | None, int], RdmaLink] = {}
        self.devices: frozenset[tuple[int, str]] | None = None
        self.rates = Rates(environment.clock)
        self.missing: tuple[RdmaPort, ...] = ()

    def begin(self, inventory: Inventory, trouble: Trouble) -> None:
        self.links = {}
        self.missing = inventory.missing
        self.rates.keep({folder_of(port) for port in inventory.ports})

    def units(self, inventory: Inventory) -> Sequence[Unit[RdmaPort | None]]:
        """One unit for what netlink tells of all ports at once, then one per port."""
        ports = [Unit[RdmaPort | None](f"{port.device}:{port.port}", port) for port in inventory.ports]
        return (Unit("netlink", None), *ports)

    def read(self, subject: RdmaPort | None, trouble: Trouble) -> list[Reading]:
        if subject is None:
            readings = self.shapes.reading(
                pair
                for port in self.missing
                for pair in (
                    (port_info(port), 1),
                    (series(catalogue.PORT_UP, port.labels), 0),
                    (series(catalogue.PORT_MISSING, port.labels), 1),
                )
            )
            try:
                links = self.kernel.rdma.links()
            except OSError as error:
                if not trouble.note("RDMA links", error):
                    return readings
                links = ()
            self.links = {(link.dev_index, link.port): link for link in links}
            devices = frozenset((link.dev_index, link.device) for link in links)
            if self.devices is not None and devices != self.devices:
                self.environment.outdated = True
            self.devices = devices
            return readings
        return self.read_port(subject, trouble)

    def read_port(self, port: RdmaPort, trouble: Trouble) -> list[Reading]:
        folder = folder_of(port)
        link = self.links.get((port.index, port.port))
        state = link.state if link is not None else None
        physical = link.physical_state if link is not None else None
        if state is None:
            state = state_number(self.file(port, "state", trouble), STATES)
        if physical is None:
            physical = state_number(self.file(port, "phys_state", trouble), PHYSICAL_STATES)
        samples: list[tuple[Series, int | float]] = [(port_info(port), 1)]
        if port.function == "pf":
            samples.append((series(catalogue.PORT_MISSING, port.labels), 0))
        if state is not None:
            up = state == ACTIVE and physical in (None, LINK_UP)
            samples.append((series(catalogue.PORT_UP, port.labels), int(up)))
            samples.append((series(catalogue.PORT_STATE, port.labels), state))
            rate = None
            if up:
                rate = self.rates.get(folder, port.identity, lambda: rate_bytes(self.file(port, "rate", trouble)))
            else:
                self.rates.forget(folder)
            if rate:
                samples.append((series(catalogue.PORT_SPEED, port.labels), rate))
        if physical is not None:
            samples.append((series(catalogue.PORT_PHYSICAL_STATE, port.labels), physical))
        return self.shapes.reading(samples)

    def file(self, port: RdmaPort, name: str, trouble: Trouble) -> str:
        """Return the text of a port's file, empty where there is none or the device's name is another's by now."""
        text = self.text(f"{folder_of(port)}/{name}", trouble)
        return text if same_device(self.kernel, port) else ""


class Netdevs(Source[Netdev]):
    """Carrier, speed, flaps and identity of each interface."""

    name = "netdevs"
    about = "carrier, speed and flaps of the interfaces (rtnetlink, sysfs)"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.links: dict[str, Link] = {}
        self.rates = Rates(environment.clock)

    def begin(self, inventory: Inventory, trouble: Trouble) -> None:
        self.links = {}
        self.rates.keep({netdev.name for netdev in inventory.netdevs})
        if not inventory.netdevs:
            return
        try:
            self.links = {link.name: link for link in self.kernel.links.dump()}
        except OSError as error:
            trouble.note("links", error)

    def units(self, inventory: Inventory) -> Sequence[Unit[Netdev]]:
        return [Unit(f"{netdev.name} {netdev.identity}", netdev) for netdev in inventory.netdevs]

    def read(self, subject: Netdev, trouble: Trouble) -> list[Reading]:
        samples: list[tuple[Series, int | float]] = [(netdev_info(subject), 1)]
        identity = subject.labels
        link = self.links.get(subject.name)
        if link is not None and link.ifindex == subject.ifindex:
            up = False if link.up is False else link.carrier
            if up is not None:
                samples.append((series(catalogue.NETDEV_UP, identity), int(up)))
            speed = None
            if up:
                ups = (subject.identity, link.carrier_up_count)
                speed = self.rates.get(subject.name, ups, lambda: self.speed(subject.name, trouble))
            else:
                self.rates.forget(subject.name)
            if speed:
                samples.append((series(catalogue.NETDEV_SPEED, identity), speed))
            downs = link.carrier_down_count
            if link.carrier_up_count is not None and downs is not None:
                samples.append((series(catalogue.CARRIER_CHANGES, identity), link.carrier_up_count + downs))
            if downs is not None:
                samples.append((series(catalogue.LINK_DOWNS, identity), downs))
        last_down = self.environment.last_down.get(subject.ifindex)
        if last_down is not None:
            samples.append((series(catalogue.LAST_DOWN, identity), last_down))
        return self.shapes.reading(samples)

    def speed(self, name: str, trouble: Trouble) -> int | None:
        """Return bytes per second. Virtual interfaces say -1 or EINVAL: no series."""
        text = self.text(f"class/net/{name}/speed", trouble)
        megabits = unsigned(text)
        return None if megabits is None else megabits * BYTES_PER_MEGABIT
