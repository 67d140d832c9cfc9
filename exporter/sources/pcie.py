"""How each NIC hangs on PCI Express, and what devlink's health reporters say of its function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from exporter.catalogue import ports as catalogue
from exporter.kernel import unsigned
from exporter.model import Inventory, Labels, Reading, Series
from exporter.sources.base import Environment, Source, Trouble, Unit, series

SPEED = re.compile(r"(\d{1,6}(?:\.\d+)?) GT/s", re.ASCII)
"""``current_link_speed`` (drivers/pci/pci-sysfs.c): ``32.0 GT/s PCIe``; ``Unknown`` on virtual functions."""
WIDEST = 32
"""Lanes of the widest link (PCI Express Base Specification, 7.5.3.6)."""
AER = (
    ("correctable", "aer_dev_correctable", "TOTAL_ERR_COR"),
    ("nonfatal", "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
    ("fatal", "aer_dev_fatal", "TOTAL_ERR_FATAL"),
)
"""Kind, file and the line of its sum (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats)."""


class Function(NamedTuple):
    """A NIC's PCI function and the labels its series carry."""

    address: str
    labels: Labels


def functions(inventory: Inventory) -> tuple[Function, ...]:
    """Return each physical function once: with its interface's labels, else with its RDMA port's."""
    found: dict[str, Function] = {}
    for netdev in inventory.netdevs:
        if netdev.pci_address and netdev.function == "pf":
            found.setdefault(netdev.pci_address, Function(netdev.pci_address, netdev.labels))
    for port in inventory.ports:
        if port.pci_address and port.function == "pf":
            found.setdefault(port.pci_address, Function(port.pci_address, port.labels))
    return tuple(found.values())


def transfers(text: str) -> int | None:
    """Return transfers per second from ``32.0 GT/s PCIe``; None for ``Unknown`` and whatever else."""
    found = SPEED.match(text)
    return round(float(found[1]) * 1e9) if found else None


def width(text: str) -> int | None:
    """Return the number of lanes; None for 0, for 255 (unknown), and for 63, the register of a device off the bus."""
    lanes = unsigned(text)
    return lanes if lanes is not None and 0 < lanes <= WIDEST else None


def aer_total(text: str, total: str) -> int | None:
    """Return the sum that an AER file gives in its last line."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == total:
            return unsigned(value)
    return None


class Pcie(Source[Function]):
    """Link speed, link width and AER counts of each NIC."""

    name = "pcie"
    about = "PCI Express link and error counts of the NICs"
    max_age = 5.0

    def units(self, inventory: Inventory) -> Sequence[Unit[Function]]:
        return [Unit(f"{function.address} {function.labels}", function) for function in functions(inventory)]

    def read(self, subject: Function, trouble: Trouble) -> list[Reading]:
        folder = f"bus/pci/devices/{subject.address}"
        samples: list[tuple[Series, int | float]] = []
        for metric, name, parse in (
            (catalogue.PCIE_LINK_SPEED, "current_link_speed", transfers),
            (catalogue.PCIE_LINK_SPEED_MAX, "max_link_speed", transfers),
            (catalogue.PCIE_LINK_WIDTH, "current_link_width", width),
            (catalogue.PCIE_LINK_WIDTH_MAX, "max_link_width", width),
        ):
            value = parse(self.text(f"{folder}/{name}", trouble))
            if value is not None:
                samples.append((series(metric, subject.labels), value))
        for kind, name, total in AER:
            count = aer_total(self.text(f"{folder}/{name}", trouble), total)
            if count is not None:
                samples.append((series(catalogue.PCIE_AER_ERRORS, subject.labels, ("kind", kind)), count))
        return self.shapes.reading(samples)


class Devlink(Source[None]):
    """devlink health reporters of the NICs."""

    name = "devlink"
    about = "devlink health reporters of the NICs"
    max_age = 5.0

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.labels: dict[str, Labels] = {}

    def begin(self, inventory: Inventory, trouble: Trouble) -> None:
        self.labels = {function.address: function.labels for function in functions(inventory)}

    def units(self, inventory: Inventory) -> Sequence[Unit[None]]:
        return (Unit("reporters", None),)

    def read(self, subject: None, trouble: Trouble) -> list[Reading]:
        samples: list[tuple[Series, int | float]] = []
        seen = set()
        for reporter in self.kernel.devlink.health_reporters():
            identity = self.labels.get(reporter.name)
            name = reporter.reporter if reporter.port is None else f"{reporter.reporter}/{reporter.port}"
            if identity is None or (reporter.name, name) in seen:
                continue
            if reporter.port is not None and self.environment.profile == "core":
                continue  # a port's reporters watch the queues of the kernel's own traffic
            seen.add((reporter.name, name))
            extra = (("pci_address", reporter.name), ("reporter", name))
            if reporter.healthy is not None:
                samples.append((series(catalogue.HEALTHY, identity, *extra), int(reporter.healthy)))
            samples.append((series(catalogue.HEALTH_ERRORS, identity, *extra), reporter.errors))
            samples.append((series(catalogue.HEALTH_RECOVERIES, identity, *extra), reporter.recoveries))
        return self.shapes.reading(pair for pair in samples if self.environment.serves(pair[0].metric))
