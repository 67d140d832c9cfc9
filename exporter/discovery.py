"""Finds the ports and interfaces of this host, what they hang on and how they join.

Sysfs says most; RDMA netlink adds what a container's sysfs lacks and what is cheaper there; rtnetlink lists the links. What one
source cannot say, another may; what none says stays empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from exporter.kernel import Kernel, Link, RdmaLink, not_there, pci, unsigned
from exporter.model import Function, Inventory, Netdev, RdmaPort, Role

SUBFUNCTION = re.compile(r"[a-z0-9_]+\.sf\.\d+")
REPRESENTOR = re.compile(r"(c\d+)?pf\d+((vf|sf)\d+)?")
"""``phys_port_name`` of a port that stands for another function (net/devlink/port.c; the uplink itself is ``p0``)."""
LINK_UP = 5
"""IBTA physical port state."""
GID_SLOTS = 16
"""How many GID slots are looked at for the interface of a RoCE port: its own address is in the first ones."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Include and exclude expressions, each matched against the whole name; no expression includes everything."""

    include: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None

    def wants(self, name: str) -> bool:
        """True when the name is included and not excluded."""
        if self.exclude is not None and self.exclude.fullmatch(name):
            return False
        return self.include is None or self.include.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class PortRule:
    """What the configuration says of the ports whose device or interface matches."""

    match: re.Pattern[str]
    role: Role | None = None
    rail: str = ""
    plane: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator wants found: filters for RDMA devices and interfaces, and roles, rails and planes."""

    devices: Filter = field(default_factory=Filter)
    netdevs: Filter = field(default_factory=Filter)
    ports: tuple[PortRule, ...] = ()

    def of(self, *names: str) -> PortRule | None:
        """Return the first rule that matches one of the names."""
        return next((rule for rule in self.ports for name in names if name and rule.match.fullmatch(name)), None)


def discover(kernel: Kernel, rules: Rules | None = None, previous: Inventory | None = None) -> Inventory:
    """Return what this host has now.

    ``previous`` is the inventory before: ports that were there and are gone become ``missing``, and a role once found stays,
    since a port that lost its carrier is still a fabric port. Raises nothing; what could not be asked is in ``problems``.
    """
    return _Discovery(kernel, rules or Rules(), previous or Inventory()).run()


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Device:
    """One RDMA device before its ports."""

    name: str
    dev_index: int | None
    ports: tuple[int, ...]
    resolved: str
    where: pci.Place
    driver: str
    numa_node: int | None
    firmware: str
    board: str
    function: Function
    identity: str
    guid: str


class _Discovery:
    """One discovery: the pieces share what was asked once."""

    def __init__(self, kernel: Kernel, rules: Rules, previous: Inventory) -> None:
        self.kernel = kernel
        self.sysfs = kernel.sysfs
        self.rules = rules
        self.previous = previous
        self.problems: list[str] = []

    def run(self) -> Inventory:
        links = self.ask("links", self.kernel.links.dump)
        default = self.ask("default routes", self.kernel.links.default_route_interfaces)
        gpus = self.ask("PCI devices", lambda: pci.gpus(self.sysfs))
        rdma_links = self.ask("RDMA links", self.kernel.rdma.links)
        namespaces = "".join(self.ask("RDMA namespaces", lambda: (self.kernel.rdma.namespaces(),)))
        found = (port for device in self.devices() for port in self.ports_of(device, rdma_links))
        ports = [port for port in found if not self.is_representor(port.netdev)]
        netdevs = self.netdevs(links, ports)
        ports = [self.with_members(port, netdevs) for port in ports]
        netdevs = [self.joined(netdev, ports, netdevs) for netdev in netdevs]
        ports = [self.with_netdev(port, netdevs) for port in ports]
        by_name = {netdev.name: netdev for netdev in netdevs}
        carrier = {link.name for link in links if link.carrier}
        up = {(link.device, link.port) for link in rdma_links if link.physical_state == LINK_UP}
        gpu_roots = {gpu.root for gpu in gpus if gpu.root}
        ports = [self.with_role(port, default, gpu_roots, carrier, up) for port in ports]
        roles = {(port.device, port.port): port.role for port in ports}
        kept = []
        for netdev in netdevs:
            if not self.wanted(netdev, by_name, ports):
                continue
            role = roles.get((netdev.device, netdev.port or 0), "unknown")
            # Only now: the question takes RTNL, and a host may have thousands of interfaces that are not read.
            driver, firmware = self.driver_of_netdev(netdev.name, f"class/net/{netdev.name}")
            role = self.netdev_role(netdev, role, default)
            kept.append(replace(netdev, driver=driver, firmware_version=firmware, role=role))
        return Inventory(
            ports=tuple(sorted(ports, key=lambda port: (port.device, port.port))),
            netdevs=tuple(sorted(kept, key=lambda netdev: netdev.name)),
            missing=missing(self.previous, ports),
            gpus=tuple(gpu.address for gpu in gpus),
            rdma_namespaces=namespaces,
            problems=tuple(self.problems),
        )

    def ask(self, what: str, call: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        """Return the answer, empty where the kernel has no such thing or fails (which is noted)."""
        try:
            return call()
        except OSError as error:
            if not not_there(error):
                self.problems.append(f"{what}: {error.strerror or error}")
            return ()

    def text(self, path: str) -> str:
        """Return a file's text, empty where it cannot be read: an identity that is not known is left out."""
        try:
            return self.sysfs.read(path)
        except OSError:
            return ""

    def names(self, path: str) -> tuple[str, ...]:
        try:
            return self.sysfs.list(path)
        except OSError:
            return ()

    # RDMA devices

    def devices(self) -> list[_Device]:
        """Return the RDMA devices that are wanted, from sysfs and netlink together."""
        known = {device.name: device for device in self.ask("RDMA devices", self.kernel.rdma.devices)}
        names = sorted({*self.names("class/infiniband"), *known})
        found = []
        for name in names:
            if not self.rules.devices.wants(name):
                continue
            folder = f"class/infiniband/{name}"
            netlink = known.get(name)
            resolved = self.resolve(f"{folder}/device")
            where = pci.place(resolved)
            firmware = self.text(f"{folder}/fw_ver") or (netlink.firmware_version if netlink else "")
            guid = self.text(f"{folder}/node_guid") or (netlink.node_guid if netlink else "")
            numbers = {number for name in self.names(f"{folder}/ports") if (number := unsigned(name)) is not None}
            if netlink is not None:
                numbers.update(range(1, netlink.ports + 1))
            found.append(
                _Device(
                    name=name,
                    dev_index=netlink.dev_index if netlink else None,
                    ports=tuple(sorted(numbers)),
                    resolved=resolved,
                    where=where,
                    driver=self.driver(f"{folder}/device"),
                    numa_node=self.numa_node(f"{folder}/device"),
                    firmware=firmware,
                    board=self.text(f"{folder}/board_id").strip(),
                    function=self.function(f"{folder}/device", resolved, where.address),
                    identity=f"{where.address or self.text(f'{folder}/parent') or name} {guid}".strip(),
                    guid=guid,
                )
            )
        return found

    def ports_of(self, device: _Device, rdma_links: Iterable[RdmaLink]) -> Iterable[RdmaPort]:
        by_port = {link.port: link for link in rdma_links if link.device == device.name}
        for number in device.ports:
            folder = f"class/infiniband/{device.name}/ports/{number}"
            link = by_port.get(number)
            yield RdmaPort(
                device=device.name,
                port=number,
                index=device.dev_index,
                identity=device.identity,
                node_guid=device.guid,
                netdev=(link.netdev if link else "") or self.netdev_of(device, number, folder),
                driver=device.driver,
                pci_address=device.where.address,
                pcie_root=device.where.root,
                pci_path=device.where.path,
                numa_node=device.numa_node,
                link_layer=self.text(f"{folder}/link_layer"),
                firmware_version=device.firmware,
                board_id=device.board,
                function=device.function,
            )

    def netdev_of(self, device: _Device, number: int, folder: str) -> str:
        """Return the interface of a port: by its GIDs, a software device's parent, or the PCI function's interfaces."""
        for slot in self.names(f"{folder}/gid_attrs/ndevs")[:GID_SLOTS]:
            name = self.text(f"{folder}/gid_attrs/ndevs/{slot}")
            if name:
                return name
        parent = self.text(f"class/infiniband/{device.name}/parent")
        if parent:
            return parent
        base = f"class/infiniband/{device.name}/device/net"
        for name in self.names(base):
            port = unsigned(self.text(f"{base}/{name}/dev_port") or self.text(f"class/net/{name}/dev_port"))
            if port is not None and port + 1 == number:
                return name
        return ""

    def with_netdev(self, port: RdmaPort, netdevs: list[Netdev]) -> RdmaPort:
        """Return the port with the interface that found it, where it did not find one itself (IPoIB of old drivers)."""
        if port.netdev:
            return port
        found = [netdev.name for netdev in netdevs if (netdev.device, netdev.port) == (port.device, port.port)]
        return replace(port, netdev=found[0]) if found else port

    def with_members(self, port: RdmaPort, netdevs: list[Netdev]) -> RdmaPort:
        bond = next((netdev for netdev in netdevs if netdev.name == port.netdev), None)
        return replace(port, members=bond.members) if bond is not None and bond.members else port

    def with_role(
        self,
        port: RdmaPort,
        default: tuple[str, ...],
        gpu_roots: set[str],
        carrier: set[str],
        up: set[tuple[str, int]],
    ) -> RdmaPort:
        """Return the port with its role: configured, else known from before, else by the default route and the GPUs."""
        rule = self.rules.of(port.device, port.netdev)
        role: Role = "unknown"
        if rule is not None:
            port = replace(port, rail=rule.rail, plane=rule.plane)
        before = next((old for old in self.previous.ports if same_port(old, port)), None)
        if rule is not None and rule.role is not None:
            role = rule.role
        elif default and {port.netdev, *port.members} & set(default[:1]):
            role = "frontend"
        elif before is not None and before.role != "unknown":
            role = before.role
        elif port.pcie_root in gpu_roots and port.function != "vf":
            lit = (port.device, port.port) in up or port.netdev in carrier or self.is_up(port)
            role = "fabric" if lit else "unknown"
        return replace(port, role=role)

    def is_up(self, port: RdmaPort) -> bool:
        return self.text(f"class/infiniband/{port.device}/ports/{port.port}/phys_state").endswith("LinkUp")

    # Interfaces

    def netdevs(self, links: Iterable[Link], ports: list[RdmaPort]) -> list[Netdev]:
        """Return all interfaces but loopback, before they are filtered and joined with the RDMA ports."""
        links = [link for link in links if not link.loopback]
        by_index = {link.ifindex: link for link in links}
        found = []
        for link in links:
            folder = f"class/net/{link.name}"
            master = by_index.get(link.master) if link.master else None
            resolved = self.resolve(f"{folder}/device")
            where = pci.place(resolved)
            slaves = self.text(f"{folder}/bonding/slaves").split()
            members = tuple(
                sorted({*slaves, *(other.name for other in links if link.ifindex and other.master == link.ifindex)})
            )
            found.append(
                Netdev(
                    name=link.name,
                    ifindex=link.ifindex,
                    identity=f"{link.ifindex} {where.address} {link.mac}",
                    pci_address=where.address,
                    numa_node=self.numa_node(f"{folder}/device"),
                    function=self.function(f"{folder}/device", resolved, where.address),
                    kind="bond" if slaves else link.kind,
                    master=master.name if master is not None else self.base(f"{folder}/master"),
                    members=members,
                    physical=bool(resolved) or (not self.kernel.live and not self.sysfs.exists(folder)),
                    mac=link.mac,
                )
            )
        return found

    def driver_of_netdev(self, name: str, folder: str) -> tuple[str, str]:
        """Return (driver, firmware version): by ioctl, else the driver link."""
        try:
            info = self.kernel.ethtool.driver_info(name)
        except OSError:
            return self.driver(f"{folder}/device"), ""
        firmware = info.firmware_version.strip()
        return info.driver, "" if firmware == "N/A" else firmware

    def joined(self, netdev: Netdev, ports: list[RdmaPort], netdevs: list[Netdev]) -> Netdev:
        """Return the interface with its RDMA port: its own, its bond's, or the one of its PCI function."""
        own = [port for port in ports if netdev.name == port.netdev or netdev.name in port.members]
        if not own and netdev.kind != "vlan":
            wanted = (unsigned(self.text(f"class/net/{netdev.name}/dev_port")) or 0) + 1
            devices = self.names(f"class/net/{netdev.name}/device/infiniband")
            taken = {other.name for other in netdevs}
            own = [
                port
                for port in ports
                if port.device in devices and port.port == wanted and (not port.netdev or port.netdev not in taken)
            ]
        return replace(netdev, device=own[0].device, port=own[0].port) if own else netdev

    def wanted(self, netdev: Netdev, by_name: dict[str, Netdev], ports: list[RdmaPort]) -> bool:
        """True for the interfaces that are read: with an include expression those it names, else hardware and what sits on it."""
        if not self.rules.netdevs.wants(netdev.name):
            return False
        if self.rules.netdevs.include is not None:
            return True
        if self.is_representor(netdev.name):
            return False
        if netdev.physical or any(netdev.name == port.netdev for port in ports):
            return True
        return netdev.kind == "bond" and any(
            member in by_name and by_name[member].physical for member in netdev.members
        )

    def is_representor(self, netdev: str) -> bool:
        """True for an interface that stands for another function of the card. A port without an interface stands for itself."""
        return bool(netdev) and REPRESENTOR.fullmatch(self.text(f"class/net/{netdev}/phys_port_name")) is not None

    def netdev_role(self, netdev: Netdev, role: Role, default: tuple[str, ...]) -> Role:
        rule = self.rules.of(netdev.name)
        if rule is not None and rule.role is not None:
            return rule.role
        if default and (netdev.name == default[0] or netdev.master == default[0]):
            return "frontend"
        return role

    # What both have

    def resolve(self, path: str) -> str:
        """Return the resolved path, empty when there is no such link."""
        try:
            return self.sysfs.resolve(path) if self.sysfs.exists(path) else ""
        except OSError:
            return ""

    def base(self, path: str) -> str:
        return self.resolve(path).rpartition("/")[2]

    def driver(self, device: str) -> str:
        return self.base(f"{device}/driver")

    def numa_node(self, device: str) -> int | None:
        """Return the NUMA node; None where the kernel says -1 (unknown) or nothing."""
        return unsigned(self.text(f"{device}/numa_node"))

    def function(self, device: str, resolved: str, address: str) -> Function:
        """Return whether a device is a physical or virtual function or a subfunction; empty where it is not on PCI."""
        if any(SUBFUNCTION.fullmatch(part) for part in resolved.split("/")):
            return "sf"
        if not address:
            return ""
        return "vf" if self.sysfs.exists(f"{device}/physfn") else "pf"


def same_port(one: RdmaPort, other: RdmaPort) -> bool:
    """True when both are the same port of the same device, whatever the device is called now."""
    return one.port == other.port and one.identity == other.identity


def missing(previous: Inventory, now: Iterable[RdmaPort]) -> tuple[RdmaPort, ...]:
    """Return the physical ports known before that are gone. A renamed device is not gone, a VF or software device may go."""
    present = {(port.identity, port.port) for port in now}
    names = {(port.device, port.port) for port in now}
    return tuple(
        port
        for port in (*previous.ports, *previous.missing)
        if port.function == "pf" and (port.identity, port.port) not in present and (port.device, port.port) not in names
    )
