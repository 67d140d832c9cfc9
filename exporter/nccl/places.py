"""Whose device a name in a log is: the ports of this host, or nobody's that is known."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from exporter.model import Inventory


class Port(NamedTuple):
    """``device`` and ``port`` of a series, as in ``fabric_port_info``; both empty when not known."""

    device: str
    port: str


UNKNOWN = Port("", "")


def local(host: str, hosts: Collection[str], hostname: str) -> bool:
    """True when a line's host is this one. A log to which one host wrote is ours, whatever a container calls it.

    ``hosts`` are those that wrote to the log, ``hostname`` is what this host calls itself.
    """
    return len(hosts) <= 1 or host == hostname.partition(".")[0]


def ports_of(hca: str, inventory: Inventory, port: int | None = None) -> tuple[Port, ...]:
    """Return the ports of this host that an HCA's name in a log stands for.

    ``mlx5_0:1`` is split, a merged NIC (``mlx5_0+mlx5_1``) is its members, a data-direct twin (``mlx5_0_dma``) its device. The
    only port of a device needs no number. A name that this host does not have is :data:`UNKNOWN`: it may be another host's, or
    a name inside a container.
    """
    found = []
    for member in hca.split("+"):
        name, _, number = member.partition(":")
        wanted = number or (str(port) if port is not None else "")
        found.append(_port(name, wanted, inventory) or _port(name.removesuffix("_dma"), wanted, inventory) or UNKNOWN)
    return tuple(dict.fromkeys(found))


def _port(device: str, number: str, inventory: Inventory) -> Port | None:
    ports = [str(one.port) for one in (*inventory.ports, *inventory.missing) if one.device == device]
    if not ports:
        return None
    if number in ports:
        return Port(device, number)
    return Port(device, ports[0] if len(ports) == 1 else "")
