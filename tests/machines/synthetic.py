"""Makes the synthetic machines: hosts of which no real capture is at hand. ``python tests/machines/synthetic.py`` writes them.

Every counter of a machine is another prime, so that a value that lands under the wrong name shows. Nothing else is meant by the
values; only what a name limits is kept (percent, fields of 4 and 8 bits).
"""

from __future__ import annotations

import errno
import itertools
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import synthetic_names as listed

from exporter.kernel import Dcb, DriverInfo, Fec, HealthReporter, LinkState, Pause, RdmaDevice, RdmaLink, Statistics
from exporter.kernel import Link as Interface
from exporter.kernel.captured import capture_files
from exporter.kernel.snapshot import Snapshot
from exporter.kernel.tree import Entry, Failure, Link

MACHINES = Path(__file__).parent
PERCENT = frozenset({"outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "ena_srd_resource_utilization"})
FOUR_BITS = frozenset({"local_link_integrity_errors", "excessive_buffer_overrun_errors"})
EIGHT_BITS = frozenset(
    {"link_error_recovery", "link_downed", "port_xmit_constraint_errors", "port_rcv_constraint_errors"}
)
UP = ("4: ACTIVE", "5: LinkUp")
DOWN = ("1: DOWN", "3: Disabled")
MLX5_PHYSICAL_NAMES = (*listed.MLX5_PHYSICAL, *listed.MLX5_TAIL)
QUIET = frozenset(name for name in MLX5_PHYSICAL_NAMES if re.match(r"[rt]x_prio[12457]_", name))
"""A RoCE host has traffic on few priorities: 0 for the kernel, 3 for data, 6 for CNPs."""
PHYSICAL_ONLY = frozenset(MLX5_PHYSICAL_NAMES)


def primes(start: int) -> Iterator[int]:
    return (
        number
        for number in itertools.count(start)
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1))
    )


class Host:
    """One machine in the making."""

    def __init__(self) -> None:
        self.snapshot = Snapshot(
            rdma_devices=(), rdma_links=(), rdma_namespaces="shared", rdma_statistics={}, links=(), default_routes=()
        )
        self.values = primes(1009)
        self.eight_bits = primes(17)
        self.four_bits = itertools.cycle(range(1, 15))
        self.percents = itertools.cycle(range(1, 100))

    def value(self, name: str) -> int:
        if name in PERCENT:
            return next(self.percents)
        if name in FOUR_BITS:
            return next(self.four_bits)
        if name in EIGHT_BITS:
            return next(self.eight_bits)
        return next(self.values)

    # sysfs

    def add(self, path: str, value: str | Link | Failure | None) -> None:
        self.snapshot.sysfs.add(Entry(path, value.encode() if isinstance(value, str) else value))

    def files(self, folder: str, **values: str | int) -> None:
        for name, value in values.items():
            self.add(f"{folder}/{name}", str(value))

    def link(self, path: str, target: str) -> None:
        """Add a link to another path of sysfs, relative as the kernel makes them."""
        up = "../" * path.count("/")
        self.add(path, Link(f"{up}{target}"))

    def counters(self, folder: str, names: tuple[str, ...], *, lifespan: bool = True) -> Statistics:
        statistics = Statistics(names, tuple(self.value(name) for name in names))
        for name, value in zip(*statistics, strict=True):
            self.add(f"{folder}/{name}", str(value))
        if lifespan:
            self.add(f"{folder}/lifespan", "10")
        return statistics

    def function(
        self,
        path: str,
        pci_class: str,
        vendor: str,
        device: str,
        *,
        driver: str = "",
        numa: int = 0,
        speed: str = "32.0",
    ) -> str:
        """Add a PCI function; return its folder."""
        folder = f"devices/{path}"
        self.files(folder, vendor=vendor, device=device, numa_node=numa)
        self.add(f"{folder}/class", pci_class)
        for limit in ("current", "max"):
            self.add(f"{folder}/{limit}_link_speed", f"{speed} GT/s PCIe")
            self.add(f"{folder}/{limit}_link_width", "16")
        if driver:
            self.link(f"{folder}/driver", f"bus/pci/drivers/{driver}")
        self.link(f"bus/pci/devices/{path.rpartition('/')[2]}", folder)
        return folder

    def aer(self, folder: str) -> None:
        for kind, names in (
            ("correctable", ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr")),
            ("nonfatal", ("DLP", "TLP", "UnsupReq")),
            ("fatal", ("DLP", "TLP", "MalfTLP")),
        ):
            counts = [(name, self.value(name)) for name in names]
            kind_name = {"correctable": "COR", "nonfatal": "NONFATAL", "fatal": "FATAL"}[kind]
            counts.append((f"TOTAL_ERR_{kind_name}", sum(count for _, count in counts)))
            self.add(f"{folder}/aer_dev_{kind}", "\n".join(f"{name} {count}" for name, count in counts))

    # interfaces

    def netdev(
        self,
        name: str,
        folder: str,
        driver: str,
        statistics: tuple[str, ...] = (),
        *,
        mac: str,
        speed: int = 400000,
        up: bool = True,
        master: int = 0,
        port: int = 0,
        kind: str = "",
        firmware: str = "",
        silent: frozenset[str] = frozenset(),
    ) -> int:
        """Add an interface below a device's folder (empty: a virtual one); return its index. ``silent`` statistics stay 0."""
        before = self.snapshot.links if isinstance(self.snapshot.links, tuple) else ()
        index = len(before) + 2
        place = f"{folder or 'devices/virtual'}/net/{name}"
        self.files(place, address=mac, dev_port=port, ifindex=index, iflink=index, mtu=9000, type=1)
        self.files(place, operstate="up" if up else "down", carrier=int(up), flags="0x1003")
        self.files(place, carrier_changes=index + 3, carrier_up_count=index + 1, carrier_down_count=index + 2)
        self.add(f"{place}/speed", str(speed) if up else "-1")
        if folder:
            self.link(f"{place}/device", folder)
        self.link(f"class/net/{name}", place)
        flaps = (index + 1, index + 2)
        state = "up" if up else "down"
        link = Interface(index, name, kind, master, 0, mac, 9000, True, up, state, *flaps, loopback=False)
        self.snapshot.links = (*before, link)
        bus = folder.rpartition("/")[2]
        self.snapshot.driver_info[name] = DriverInfo(driver, "6.12.0", firmware, bus)
        values = [self.value(counter) for counter in statistics]
        shown = tuple(0 if counter in silent else value for counter, value in zip(statistics, values, strict=True))
        self.snapshot.statistics[name] = Statistics(statistics, shown)
        return index

    def lossless(self, name: str, *, up: bool = True) -> None:
        """PFC on priority 3 and RoCE's DSCP 26 on it, RS-FEC, no 802.3x pause."""
        on_three = tuple(self.value(name) if priority == 3 else 0 for priority in range(8))
        self.snapshot.dcb[name] = Dcb(
            pfc_enabled=1 << 3,
            pfc_capacity=8,
            applications=((5, 3, 26), (5, 6, 48)),
            dcbx=1 + 8,
            pfc_requests=on_three,
            pfc_indications=on_three[::-1],
            buffer_sizes=(262016, 262016, 0, 0, 0, 0, 0, 0),
            priority_buffers=(0, 0, 0, 1, 0, 0, 0, 0),
        )
        self.snapshot.pause[name] = Pause(False, False, False, self.value(name), self.value(name))
        self.snapshot.fec[name] = Fec("RS" if up else "None", self.value(name), self.value(name), None)
        self.snapshot.link_state[name] = LinkState(up, None if up else 4, None, self.value(name))

    # RDMA

    def rdma(
        self,
        name: str,
        folder: str,
        hw_counters: tuple[str, ...] = (),
        *,
        guid: str,
        netdev: str = "",
        ifindex: int | None = None,
        rate: str = "400 Gb/sec (4X NDR)",
        state: tuple[str, str] = UP,
        link_layer: str = "Ethernet",
        pma: tuple[str, ...] = (),
        device_counters: tuple[str, ...] = (),
        optional: tuple[str, ...] = (),
        firmware: str = "",
        board: str = "",
        hca: str = "",
    ) -> None:
        """Add an RDMA device with one port, in sysfs and on RDMA netlink."""
        place = f"{folder or 'devices/virtual'}/infiniband/{name}"
        known = {"fw_ver": firmware, "board_id": board, "hca_type": hca, "node_desc": name}
        self.files(place, node_guid=guid, sys_image_guid=guid, node_type="1: CA")
        self.files(place, **{attribute: value for attribute, value in known.items() if value})
        if folder:
            self.link(f"{place}/device", folder)
        self.link(f"class/infiniband/{name}", place)
        port = f"{place}/ports/1"
        self.files(port, state=state[0], phys_state=state[1], rate=rate, link_layer=link_layer)
        statistics = Statistics((), ())
        if hw_counters:
            statistics = self.counters(f"{port}/hw_counters", hw_counters)
        if pma:
            self.counters(f"{port}/counters", pma, lifespan=False)
        if device_counters:
            self.counters(f"{place}/hw_counters", device_counters)
        if netdev:
            for slot in range(4):
                self.add(f"{port}/gid_attrs/ndevs/{slot}", netdev if slot < 2 else Failure(errno.EINVAL))
                self.add(
                    f"{port}/gid_attrs/types/{slot}",
                    "RoCE v2" if slot == 1 else "IB/RoCE v1" if slot == 0 else Failure(errno.EINVAL),
                )
        self._netlink(name, guid, firmware, statistics, optional, netdev, ifindex, state)

    def _netlink(
        self,
        name: str,
        guid: str,
        firmware: str,
        statistics: Statistics,
        optional: tuple[str, ...],
        netdev: str,
        ifindex: int | None,
        state: tuple[str, str],
    ) -> None:
        devices, links, counters = self.snapshot.rdma_devices, self.snapshot.rdma_links, self.snapshot.rdma_statistics
        assert isinstance(devices, tuple)
        assert isinstance(links, tuple)
        assert isinstance(counters, dict)
        index = len(devices)
        self.snapshot.rdma_devices = (*devices, RdmaDevice(index, name, firmware, guid, "ib", 1))
        numbers = (int(state[0][0]), int(state[1][0]))
        self.snapshot.rdma_links = (*links, RdmaLink(index, name, 1, *numbers, ifindex, netdev))
        if statistics.names:
            more = tuple(self.value(counter) for counter in optional)
            counters[name, 1] = Statistics((*statistics.names, *optional), (*statistics.values, *more))


def mac(vendor: str, number: int) -> str:
    return f"{vendor}:00:00:{number:02x}"


def guid(vendor: str, number: int) -> str:
    oui = vendor.replace(":", "")
    return f"{oui[:4]}:{oui[4:]}ff:fe00:{number:04x}"


MELLANOX, BROADCOM, INTEL, HISILICON, CLOUD = "0c:42:a1", "00:0a:f7", "b4:96:91", "00:18:82", "02:00:00"
NVIDIA_GPU = ("0x030200", "0x10de", "0x2330")
BRIDGE = ("0x060400", "0x1000", "0xc030")
NIC = "0x020000"


def gpu_and_slots(host: Host, bus: str, numa: int, slots: int) -> list[str]:
    """Add a root port, a PCIe switch with a GPU below it, and ``slots`` more downstream ports; return those ports' paths."""
    start = int(bus, 16)

    def at(offset: int, device: int = 0) -> str:
        return f"0000:{start + offset:02x}:{device:02x}.0"

    root = f"pci0000:{bus}/{at(0, 1)}"
    upstream = f"{root}/{at(1)}"
    for path in (root, upstream):
        host.function(path, *BRIDGE, driver="pcieport", numa=numa)
    ports = [f"{upstream}/{at(2, device)}" for device in range(slots + 1)]
    for path in ports:
        host.function(path, *BRIDGE, driver="pcieport", numa=numa)
    gpu = host.function(f"{ports[0]}/{at(3)}", *NVIDIA_GPU, driver="nvidia", numa=numa)
    host.aer(gpu)
    return [f"{port}/0000:{start + 4 + number:02x}:00" for number, port in enumerate(ports[1:])]


BUSES = ("15", "26", "3a", "4d", "97", "a9", "bc", "d0")
MLX5_REPORTERS = ((None, "fw"), (None, "fw_fatal"), (None, "vnic"), (65535, "tx"), (65535, "rx"))
"""devlink health reporters of a physical function: three of the device, two of its port."""


def mlx5_roce() -> Host:
    host = Host()
    ethtool = (*listed.MLX5_HEAD, *listed.MLX5_PHYSICAL, *listed.MLX5_PFC, *listed.MLX5_TAIL)
    slots = []
    for number, bus in enumerate(BUSES):
        (slot,) = gpu_and_slots(host, bus, number // 4, 1)
        slots.append(slot)
        folder = host.function(f"{slot}.0", NIC, "0x15b3", "0x1021", driver="mlx5_core", numa=number // 4)
        host.aer(folder)
        name, up = f"ens{number + 1}f0np0", number != 7
        address = mac(MELLANOX, number)
        index = host.netdev(name, folder, "mlx5_core", ethtool, mac=address, up=up, firmware="28.41.1000", silent=QUIET)
        host.lossless(name, up=up)
        host.rdma(
            f"mlx5_{number}",
            folder,
            listed.MLX5_RDMA,
            guid=guid(MELLANOX, number),
            netdev=name,
            ifindex=index,
            rate="400 Gb/sec (4X NDR)" if up else "40 Gb/sec (4X QDR)",
            state=UP if up else DOWN,
            pma=listed.PMA,
            optional=listed.MLX5_OPTIONAL if number == 0 else (),
            firmware="28.41.1000",
            board="MT_0000000838",
            hca="MT4129",
        )
        if number == 0:
            virtual_function(host, slot, folder)
    bond(host)
    host.snapshot.default_routes = ("bond0",)
    addresses = [f"{slot.rpartition('/')[2]}.0" for slot in slots]
    broken = (addresses[7], "fw_fatal")
    host.snapshot.health_reporters = tuple(
        HealthReporter(
            "pci", address, port, name, (address, name) != broken, host.value("error"), host.value("recover")
        )
        for address in addresses
        for port, name in MLX5_REPORTERS
    )
    return host


def virtual_function(host: Host, slot: str, physical: str) -> None:
    folder = host.function(f"{slot}.2", NIC, "0x15b3", "0x101e", driver="mlx5_core")
    host.link(f"{folder}/physfn", physical)
    ethtool = (*listed.MLX5_HEAD, *listed.MLX5_PHYSICAL, *listed.MLX5_TAIL)
    index = host.netdev(
        "ens1f0v0", folder, "mlx5_core", ethtool, mac=mac(MELLANOX, 0x80), silent=PHYSICAL_ONLY, firmware="28.41.1000"
    )
    host.rdma(
        "mlx5_8",
        folder,
        tuple(name for name in listed.MLX5_RDMA if not name.startswith(("rp_cnp", "np_"))),
        guid=guid(MELLANOX, 0x80),
        netdev="ens1f0v0",
        ifindex=index,
        pma=listed.PMA,
        firmware="28.41.1000",
        board="MT_0000000838",
        hca="MT4130",
    )


def bond(host: Host) -> None:
    """Two ports of one card in one bond: the RDMA device is that of the first function, its interface is the bond."""
    host.function("pci0000:e0/0000:e0:01.0", *BRIDGE, driver="pcieport", numa=1)
    members = ("ens9f0np0", "ens9f1np1")
    index = host.netdev("bond0", "", "bonding", mac=mac(MELLANOX, 0x20), speed=400000, kind="bond")
    host.files("devices/virtual/net/bond0/bonding", slaves=" ".join(members), mode="802.3ad 4", mii_status="up")
    ethtool = (*listed.MLX5_HEAD, *listed.MLX5_PHYSICAL, *listed.MLX5_GLOBAL_PAUSE, *listed.MLX5_TAIL)
    for number, name in enumerate(members):
        path = f"pci0000:e0/0000:e0:01.0/0000:e1:00.{number}"
        folder = host.function(path, NIC, "0x15b3", "0xa2dc", driver="mlx5_core", numa=1)
        host.aer(folder)
        host.netdev(
            name,
            folder,
            "mlx5_core",
            ethtool,
            mac=mac(MELLANOX, 0x20),
            speed=200000,
            master=index,
            firmware="32.41.1000",
            silent=QUIET,
        )
        host.link(f"{folder}/net/{name}/master", "devices/virtual/net/bond0")
    host.rdma(
        "mlx5_bond_0",
        "devices/pci0000:e0/0000:e0:01.0/0000:e1:00.0",
        listed.MLX5_RDMA,
        guid=guid(MELLANOX, 0x20),
        netdev="bond0",
        ifindex=index,
        rate="200 Gb/sec (2X NDR)",
        pma=listed.PMA,
        firmware="32.41.1000",
        board="MT_0000000884",
        hca="MT41692",
    )


def efa_p5() -> Host:
    host = Host()
    for root, bus in enumerate(BUSES):
        for slot in gpu_and_slots(host, bus, root // 4, 4):
            path = f"{slot}.0"
            folder = host.function(path, NIC, "0x1d0f", "0xefa2", driver="efa", numa=root // 4, speed="16.0")
            bus_number = int(path.rpartition("/")[2].split(":")[1], 16)
            host.rdma(
                f"rdmap{bus_number}s0",
                folder,
                listed.EFA,
                guid="0000:0000:0000:0000",
                rate="100 Gb/sec (4X EDR)",
                link_layer="Unknown",
                device_counters=listed.EFA_DEVICE,
                firmware="0.0.0.0",
            )
    folder = host.function("pci0000:10/0000:10:1f.0", NIC, "0x1d0f", "0xec20", driver="ena")
    host.netdev("enp16s31", folder, "ena", listed.ENA, mac=mac(CLOUD, 1), speed=100000)
    host.snapshot.statistics["enp16s31"] = with_value(host.snapshot.statistics["enp16s31"], "ena_srd_mode", 1)
    host.snapshot.default_routes = ("enp16s31",)
    return host


def with_value(statistics: Statistics | OSError, name: str, value: int) -> Statistics:
    assert isinstance(statistics, Statistics)
    values = tuple(value if each == name else old for each, old in zip(*statistics, strict=True))
    return Statistics(statistics.names, values)


def bnxt(hw_counters: tuple[str, ...], pma: tuple[str, ...]) -> Host:
    host = Host()
    for number, bus in enumerate(BUSES[:2]):
        (slot,) = gpu_and_slots(host, bus, number, 1)
        folder = host.function(f"{slot}.0", NIC, "0x14e4", "0x1760", driver="bnxt_en", numa=number)
        name = f"ens{number + 1}np0"
        index = host.netdev(
            name, folder, "bnxt_en", listed.BNXT, mac=mac(BROADCOM, number), firmware="230.2.49.0/pkg 230.2.52.0"
        )
        host.lossless(name)
        host.rdma(
            f"bnxt_re{number}",
            folder,
            hw_counters,
            guid=guid(BROADCOM, number),
            netdev=name,
            ifindex=index,
            pma=pma,
            firmware="230.2.49.0",
        )
    return host


def bnxt_upstream() -> Host:
    return bnxt(listed.BNXT_RDMA, ())


def bnxt_out_of_tree() -> Host:
    renamed = tuple(listed.BNXT_OUT_OF_TREE.get(name, name) for name in listed.BNXT_RDMA)
    return bnxt((*renamed, *listed.BNXT_OUT_OF_TREE_MORE), listed.PMA)


def irdma(driver: str, device: str, hw_counters: tuple[str, ...], ethtool: tuple[str, ...]) -> Host:
    host = Host()
    for number in range(2):
        path = f"pci0000:ae/0000:ae:00.0/0000:af:00.{number}"
        if number == 0:
            host.function("pci0000:ae/0000:ae:00.0", *BRIDGE, driver="pcieport", numa=1)
        folder = host.function(path, NIC, "0x8086", device, driver=driver, numa=1, speed="16.0")
        host.aer(folder)
        name = f"ens785f{number}"
        index = host.netdev(
            name, folder, driver, ethtool, mac=mac(INTEL, number), speed=100000, firmware="4.60 0x8001e8b2 1.3682.0"
        )
        host.snapshot.fec[name] = Fec("RS", host.value(name), host.value(name), None)
        host.rdma(
            f"rocep175s0f{number}",
            folder,
            hw_counters,
            guid=guid(INTEL, number),
            netdev=name,
            ifindex=index,
            rate="100 Gb/sec (4X EDR)",
            firmware="1.71",
        )
    return host


def irdma_gen2() -> Host:
    return irdma("ice", "0x1592", listed.IRDMA_GEN2, listed.ICE)


def irdma_gen3() -> Host:
    return irdma("idpf", "0x1452", listed.IRDMA_GEN3, ())


def hns() -> Host:
    host = Host()
    host.function("pci0000:7c/0000:7c:00.0", *BRIDGE, driver="pcieport")
    folder = host.function("pci0000:7c/0000:7c:00.0/0000:7d:00.0", NIC, "0x19e5", "0xa222", driver="hns3", speed="16.0")
    index = host.netdev(
        "enp125s0f0", folder, "hns3", listed.HNS3, mac=mac(HISILICON, 1), speed=100000, firmware="1.9.40.24"
    )
    host.rdma(
        "hns_0",
        folder,
        listed.HNS,
        guid=guid(HISILICON, 1),
        netdev="enp125s0f0",
        ifindex=index,
        rate="100 Gb/sec (4X EDR)",
        firmware="1.9.40.24",
    )
    return host


def mana() -> Host:
    """The PCI function hangs below VMBus, not below the root of the host."""
    host = Host()
    bus = "LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/00000001-7870-47b5-b203-907d12ca697e/pci7870:00/7870:00:00.0"
    folder = host.function(bus, NIC, "0x1414", "0x00ba", driver="mana", speed="8.0")
    index = host.netdev("enP30832p0s0", folder, "mana", listed.MANA, mac=mac(CLOUD, 2), speed=200000)
    host.rdma(
        "mana_0",
        folder,
        listed.MANA_RDMA,
        guid=guid(CLOUD, 2),
        netdev="enP30832p0s0",
        ifindex=index,
        rate="200 Gb/sec (4X HDR)",
        device_counters=listed.MANA_RDMA_DEVICE,
    )
    return host


def erdma() -> Host:
    """The interface of an erdma device is the virtio one with the same address, another PCI function."""
    host = Host()
    virtio = host.function("pci0000:00/0000:00:05.0", NIC, "0x1af4", "0x1000", driver="virtio-pci", speed="8.0")
    host.link(f"{virtio}/virtio1/driver", "bus/virtio/drivers/virtio_net")
    index = host.netdev("eth0", f"{virtio}/virtio1", "virtio_net", mac=mac(CLOUD, 3), speed=100000)
    folder = host.function("pci0000:00/0000:00:07.0", "0x020700", "0x1ded", "0x107f", driver="erdma", speed="8.0")
    host.rdma(
        "erdma_0",
        folder,
        listed.ERDMA,
        guid=guid(CLOUD, 3),
        netdev="eth0",
        ifindex=index,
        rate="100 Gb/sec (4X EDR)",
        firmware="0.2.0",
    )
    host.snapshot.default_routes = ("eth0",)
    return host


def siw() -> Host:
    """Software iWARP: neither ``counters/`` nor ``hw_counters/``, and netlink has no counters either."""
    host = Host()
    index = host.netdev("v0", "", "veth", mac=mac(CLOUD, 4), speed=10000, kind="veth")
    host.rdma("siw_v0", "", guid=guid(CLOUD, 4), netdev="v0", ifindex=index, rate="2.5 Gb/sec (1X SDR)")
    host.add("devices/virtual/infiniband/siw_v0/parent", "v0")
    return host


SYNTHETIC: dict[str, tuple[Callable[[], Host], str]] = {
    "mlx5-roce-8nic": (
        mlx5_roce,
        "eight 400G ConnectX-7 and eight GPUs, a pair below each PCIe switch; PFC on priority 3, traffic on 0, 3 and 6;\n"
        "  `mlx5_7` without a cable (its rate then reads 40 Gb/sec); a virtual function `mlx5_8`; `mlx5_bond_0` over two\n"
        "  ports with 802.3x pause, which carries the default route; optional counters on `mlx5_0`;\n"
        "  devlink health reporters, that of `mlx5_7`'s firmware in error",
    ),
    "efa-p5": (
        efa_p5,
        "32 EFA devices and eight GPUs, four devices and a GPU below each PCIe switch; one ENA interface",
    ),
    "bnxt-upstream": (bnxt_upstream, "two bnxt_en/bnxt_re ports with the names of the upstream driver; no `counters/`"),
    "bnxt-out-of-tree": (
        bnxt_out_of_tree,
        "the same with the names of Broadcom's own build, which are those of mlx5, and with `counters/`",
    ),
    "irdma-gen2": (irdma_gen2, "two E810 ports: ice with names ending in `.nic`, irdma of generation 2"),
    "irdma-gen3": (
        irdma_gen3,
        "irdma of generation 3: names without `tcp` and `iw`, names with blanks; idpf interfaces",
    ),
    "hns": (hns, "hns3 and hns_roce"),
    "mana": (mana, "mana and mana_ib, counters of the port and of the device; a PCI function below VMBus"),
    "erdma": (erdma, "erdma whose interface is a virtio one on another PCI function"),
    "siw": (siw, "software iWARP, which counts nothing"),
}


def files(name: str) -> dict[str, str]:
    """Return the files of a synthetic machine."""
    make, special = SYNTHETIC[name]
    readme = f"# {name}\n\n- source: **synthetic**, written by `synthetic.py`; the values mean nothing\n- special: {special}\n"
    return {**capture_files(make().snapshot), "README.md": readme}


def write(name: str) -> None:
    """Write one machine. An ``expected.prom`` that is there stays."""
    folder = MACHINES / name
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "expected.prom":
            path.unlink()
    for file, text in files(name).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)


if __name__ == "__main__":
    for machine in sys.argv[1:] or SYNTHETIC:
        write(machine)
