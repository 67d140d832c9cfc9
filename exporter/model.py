"""The values that flow from the kernel to the page: ports, series, readings.

Everything here is immutable and knows nothing of files, sockets or clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MetricType = Literal["counter", "gauge", "unknown"]
Profile = Literal["core", "full"]
Function = Literal["pf", "vf", "sf", ""]
VIRTUAL: tuple[Function, ...] = ("vf", "sf")
Role = Literal["fabric", "frontend", "storage", "unknown"]
Labels = tuple[tuple[str, str], ...]
"""Label names with their values, in the order in which they are printed. A label that does not apply is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric family, declared once in :mod:`exporter.catalogue`.

    ``name`` is the name of the samples (a counter's ends in ``_total``), ``labels`` the labels it may carry, ``sources``
    the sources that may feed it, the preferred first (empty: the driver entry alone decides), ``profile`` whether it
    is served by default (``core``) or with ``--metrics.profile=full`` only. Compared by identity: there is one of each.
    """

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    profile: Profile = "core"
    sources: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"


class Series(NamedTuple):
    """One time series: a metric and the values of its labels."""

    metric: Metric
    labels: Labels


class Shape:
    """An ordered set of series: what the numbers of a reading mean.

    Made once per device and kept as long as the kernel lists the same counters, so that rendering can keep what it
    derives from it (``rendered``). Two shapes are equal only when they are the same object.
    """

    __slots__ = ("rendered", "series")

    def __init__(self, series: Iterable[Series]) -> None:
        self.series: tuple[Series, ...] = tuple(series)
        self.rendered: object = None

    def __len__(self) -> int:
        return len(self.series)


class Reading(NamedTuple):
    """The values of a shape at one moment, in the shape's order. Integers stay integers (u64 is kept exactly)."""

    shape: Shape
    values: tuple[int | float, ...]

    def samples(self) -> Iterator[Sample]:
        """Yield one :class:`Sample` per series: for tests, JSON and whoever is not in a hurry."""
        for series, value in zip(self.shape.series, self.values, strict=True):
            yield Sample(series.metric, series.labels, value)


class Sample(NamedTuple):
    """One series with its value."""

    metric: Metric
    labels: Labels
    value: int | float


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port of an RDMA device, with everything it hangs on.

    ``netdev`` is the bond's name for a bond. Text that is not known is empty, a number that is not known is None.
    ``index`` is the RDMA netlink device index (None: seen in sysfs only); ``identity`` names the device itself, across
    renames: another device that takes over the name has another identity.
    """

    device: str
    port: int
    index: int | None = None
    identity: str = ""
    node_guid: str = ""
    netdev: str = ""
    members: tuple[str, ...] = ()
    driver: str = ""
    pci_address: str = ""
    pcie_root: str = ""
    pci_path: tuple[str, ...] = ()
    numa_node: int | None = None
    link_layer: str = ""
    firmware_version: str = ""
    board_id: str = ""
    function: Function = ""
    role: Role = "unknown"
    rail: str = ""
    plane: str = ""

    @property
    def labels(self) -> Labels:
        """What RDMA knows: ``device`` and ``port``."""
        return (("device", self.device), ("port", str(self.port)))

    @property
    def virtual(self) -> bool:
        """True for a virtual function or a subfunction, which shares its port with others and does not see it."""
        return self.function in VIRTUAL


@dataclass(frozen=True, slots=True)
class Netdev:
    """One network interface: its identity and, where an RDMA device stands behind it, that device's port."""

    name: str
    ifindex: int = 0
    identity: str = ""
    driver: str = ""
    pci_address: str = ""
    numa_node: int | None = None
    firmware_version: str = ""
    function: Function = ""
    kind: str = ""
    master: str = ""
    members: tuple[str, ...] = ()
    device: str = ""
    port: int | None = None
    role: Role = "unknown"
    physical: bool = False
    mac: str = ""

    @property
    def labels(self) -> Labels:
        """What the NIC driver knows: ``device``, ``port``, ``netdev``; the first two left out without an RDMA device."""
        if self.device and self.port is not None:
            return (("device", self.device), ("port", str(self.port)), ("netdev", self.name))
        return (("netdev", self.name),)

    @property
    def virtual(self) -> bool:
        """True for a virtual function or a subfunction, which shares its port with others and does not see it."""
        return self.function in VIRTUAL

    @property
    def infiniband(self) -> bool:
        """True for IP over InfiniBand: hardware addresses of 20 bytes (INFINIBAND_ALEN, include/linux/if_infiniband.h)."""
        return self.mac.count(":") == 19


@dataclass(frozen=True, slots=True)
class Inventory:
    """What this host has: the result of one discovery.

    ``ports`` and ``netdevs`` are sorted by name and port number. ``missing`` are physical ports that an earlier discovery
    found and this one did not: a NIC off the bus. ``gpus`` are the PCI addresses of the GPUs. ``rdma_namespaces`` is
    ``shared``, ``exclusive`` or empty when the kernel does not say.
    """

    ports: tuple[RdmaPort, ...] = ()
    netdevs: tuple[Netdev, ...] = ()
    missing: tuple[RdmaPort, ...] = ()
    gpus: tuple[str, ...] = ()
    rdma_namespaces: str = ""
    problems: tuple[str, ...] = ()
    _by_name: dict[str, Netdev] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._by_name.update((netdev.name, netdev) for netdev in self.netdevs)

    def netdev(self, name: str) -> Netdev | None:
        """Return the interface of that name, or None."""
        return self._by_name.get(name)
