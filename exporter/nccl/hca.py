"""NCCL_IB_HCA and NCCL_SOCKET_IFNAME: what a list of names selects.

Grammar (``src/misc/utils.cc``, NCCL's documentation of its environment): an optional ``^`` excludes, an optional ``=`` after
it matches whole names instead of beginnings, then names divided by commas. A name of NCCL_IB_HCA may carry a port, and from
2.30.7 a rail and a plane: ``name[:port[:rail[:plane]]]``. No blanks are trimmed; empty names are skipped; an empty list
selects everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from exporter.model import Inventory

MOST_NAMES = 256
"""Names of a list that are looked at. NCCL itself takes 32 devices and 16 interfaces."""


class Name(NamedTuple):
    """One entry of a list. ``port`` None is any; ``rail`` and ``plane`` are given to what matches, they select nothing."""

    name: str
    port: int | None = None
    rail: int | None = None
    plane: int | None = None


class Filter(NamedTuple):
    """A parsed list."""

    exclude: bool
    exact: bool
    names: tuple[Name, ...]

    def hits(self, entry: Name, name: str, port: int | None = None) -> bool:
        """True when the entry of the list stands for that name and port (None: not known)."""
        named = name == entry.name if self.exact else name.startswith(entry.name)
        return named and (entry.port is None or port is None or entry.port == port)

    def selects(self, name: str, port: int | None = None) -> bool:
        """True when NCCL may use the device or interface."""
        if not self.names:
            return True
        return any(self.hits(entry, name, port) for entry in self.names) != self.exclude


class Selection(NamedTuple):
    """What a list does to the names that there are.

    ``selected`` are the (name, port) that remain, ``idle`` the entries that stand for nothing there is, ``wide`` the entries
    that name something whole and by prefix stand for more: entry -> the others (``mlx5_1`` -> mlx5_10, mlx5_11).
    """

    selected: tuple[tuple[str, int | None], ...]
    idle: tuple[str, ...]
    wide: tuple[tuple[str, tuple[str, ...]], ...]


def parse(value: str, *, ports: bool = True) -> Filter:
    """Parse a value as NCCL does; whatever it holds, it is a list. Without ``ports`` a colon is part of the name (aliases)."""
    exclude = value.startswith("^")
    value = value.removeprefix("^")
    exact = value.startswith("=")
    items = value.removeprefix("=").split(",", MOST_NAMES)[:MOST_NAMES]
    names = [_name(item) if ports else Name(item) for item in items]
    return Filter(exclude, exact, tuple(name for name in names if name.name))


def _name(item: str) -> Name:
    name, *numbers = item.split(":")
    port, rail, plane = (*(_number(text) for text in numbers[:3]), None, None, None)[:3]
    return Name(name, port, rail, plane)


def _number(text: str) -> int | None:
    """``atoi``: the digits that the text begins with; none is "any", as is a negative number."""
    digits = re.match(r"[0-9]{1,9}", text)
    return int(digits[0]) if digits else None


def select(filter: Filter, there: Iterable[tuple[str, int | None]]) -> Selection:
    """Apply a list to the (name, port) that there are."""
    there = tuple(there)
    names = sorted({name for name, _ in there})
    idle = []
    wide = []
    for entry in filter.names:
        matched = {name for name, port in there if filter.hits(entry, name, port)}
        if not matched:
            idle.append(entry.name)
        elif entry.name in matched and len(matched) > 1:
            wide.append((entry.name, tuple(name for name in names if name in matched and name != entry.name)))
    return Selection(tuple(item for item in there if filter.selects(*item)), tuple(idle), tuple(wide))


def select_devices(value: str, inventory: Inventory) -> Selection:
    """Resolve NCCL_IB_HCA against the RDMA ports of a host."""
    return select(parse(value), ((port.device, port.port) for port in inventory.ports))


def select_interfaces(value: str, inventory: Inventory) -> Selection:
    """Resolve NCCL_SOCKET_IFNAME against the interfaces of a host."""
    return select(parse(value, ports=False), ((netdev.name, None) for netdev in inventory.netdevs))
