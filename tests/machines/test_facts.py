"""What was counted in the original files, by other means than this program, holds when they are read as a host."""

from __future__ import annotations

import errno
from typing import NamedTuple

import pytest
from machines import MACHINES, open_machine

from exporter.kernel import Kernel, Sysfs
from exporter.kernel.tree import Link, Tree


class Port(NamedTuple):
    """What an RDMA port's files say, and how many counters it has."""

    device: str
    port: int
    state: str = ""
    physical_state: str = ""
    rate: str = ""
    link_layer: str = ""
    counters: int = 0
    hw_counters: int = 0


class Rdma(NamedTuple):
    """A machine of sysfs lines: entries by kind, devices, ports, and the numeric counters' sum and number."""

    machine: str
    files: int
    links: int
    devices: tuple[str, ...]
    ports: tuple[Port, ...] = ()
    total: int = 0
    values: int = 0
    netdevs: tuple[str, ...] = ()


def active(
    device: str, rate: str, counters: int, hw_counters: int = 0, *, port: int = 1, layer: str = "InfiniBand"
) -> Port:
    return Port(device, port, "4: ACTIVE", "5: LinkUp", rate, layer, counters, hw_counters)


NDR = tuple(active(f"mlx5_{n}", "400 Gb/sec (4X NDR)", 21, 26) for n in (0, 1, 4, 5, 6, 7, 8, 9))
BASIC = (
    active("mlx5_0", "100 Gb/sec (4X EDR)", 2, 1),
    Port("mlx5_0", 2, "DOWN", "Disabled", "0 Gb/sec", "Ethernet", 1),
)

RDMA = (
    Rdma("efa-docs-g4-all-zero", 23, 0, ("rdmap0s31",), (Port("rdmap0s31", 1, hw_counters=23),), 12, 23),
    Rdma(
        "fixtures-node-exporter",
        506,
        15,
        ("i40iw0", "mlx4_0"),
        (
            active("i40iw0", "10 Gb/sec (4X)", 17),
            active("mlx4_0", "40 Gb/sec (4X QDR)", 16),
            active("mlx4_0", "40 Gb/sec (4X QDR)", 8, port=2),
        ),
        11135599365,
        24,
        ("bond0", "bonding_masters", "dmz", "eth0", "int"),
    ),
    Rdma(
        "h100-8xndr-bf3bond",
        486,
        0,
        (*(port.device for port in NDR), "mlx5_bond_0"),
        (*NDR, active("mlx5_bond_0", "200 Gb/sec (2X NDR)", 21, 26, layer="Ethernet")),
        4134883148757276,
        423,
    ),
    Rdma(
        "ionic-pollara-hwcounters",
        126,
        0,
        ("ionic_1", "rocep132s0", "rocep68s0"),
        tuple(Port(device, 1, hw_counters=42) for device in ("ionic_1", "rocep132s0", "rocep68s0")),
        6658733477,
        126,
    ),
    Rdma("node-2eth-no-rdma", 132, 12, (), netdevs=("enp96s0f0", "enp96s0f1")),
    Rdma(
        "node-mlx4-scif-mic",
        543,
        30,
        ("mlx4_0", "scif0"),
        (active("mlx4_0", "56 Gb/sec (4X FDR)", 17),),
        21307286,
        17,
        ("br0", "eth0", "eth0.1015", "eth1", "ib0", "lo", "mic0"),
    ),
    Rdma(
        "node-qib-4eth",
        403,
        38,
        ("qib0",),
        (active("qib0", "40 Gb/sec (4X QDR)", 17),),
        17179869180,
        17,
        ("eth0", "eth1", "eth2", "eth3", "ib0", "lo"),
    ),
    Rdma("rdma-exporter-basic", 15, 0, ("mlx5_0",), BASIC, 1379, 4),
    Rdma("rdma-exporter-efa", 7, 0, ("rdmap0s0",), (active("rdmap0s0", "100 Gb/sec (4X EDR)", 0, 2),), 579, 2),
    Rdma("rdma-exporter-symlink", 15, 1, ("mlx5_0",), BASIC, 1379, 4),
    Rdma("vm-virtio-only", 55, 6, (), netdevs=("ens3", "lo")),
)


def names(sysfs: Sysfs, path: str) -> tuple[str, ...]:
    return sysfs.list(path) if sysfs.exists(path) else ()


def text(sysfs: Sysfs, path: str) -> str:
    return sysfs.read(path) if sysfs.exists(path) else ""


def ports(sysfs: Sysfs) -> tuple[Port, ...]:
    found = []
    for device in names(sysfs, "class/infiniband"):
        for number in names(sysfs, f"class/infiniband/{device}/ports"):
            folder = f"class/infiniband/{device}/ports/{number}"
            state, physical_state, rate, link_layer = (
                text(sysfs, f"{folder}/{name}") for name in ("state", "phys_state", "rate", "link_layer")
            )
            counters, hw_counters = (len(names(sysfs, f"{folder}/{kind}")) for kind in ("counters", "hw_counters"))
            found.append(Port(device, int(number), state, physical_state, rate, link_layer, counters, hw_counters))
    return tuple(found)


def numbers(sysfs: Sysfs) -> list[int]:
    found = []
    for port in ports(sysfs):
        for kind in ("counters", "hw_counters"):
            folder = f"class/infiniband/{port.device}/ports/{port.port}/{kind}"
            values = (sysfs.read(f"{folder}/{name}") for name in names(sysfs, folder))
            found += [int(value) for value in values if value.isdecimal()]
    return found


def entries(machine: str) -> tuple[int, int]:
    problems: list[str] = []
    tree = Tree.parse((MACHINES / machine / "sys.txt").read_text(), problems, "sys.txt")
    assert problems == []
    values = [entry.value for entry in tree.entries()]
    return sum(isinstance(value, bytes) for value in values), sum(isinstance(value, Link) for value in values)


@pytest.mark.parametrize("fact", RDMA, ids=lambda fact: fact.machine)
def test_sysfs(fact: Rdma) -> None:
    sysfs = open_machine(fact.machine).sysfs
    assert entries(fact.machine) == (fact.files, fact.links)
    assert names(sysfs, "class/infiniband") == fact.devices
    assert ports(sysfs) == fact.ports
    found = numbers(sysfs)
    assert (sum(found), len(found)) == (fact.total, fact.values)
    if fact.netdevs:
        assert names(sysfs, "class/net") == fact.netdevs


class Ethtool(NamedTuple):
    """One output of ``ethtool -S``: statistics, names that are not zero, the first, last and largest, the sum."""

    machine: str
    netdev: str
    statistics: int
    not_zero: int
    first: tuple[str, int]
    last: tuple[str, int]
    largest: tuple[str, int]
    total: int


# fmt: off
ETHTOOL = (
    Ethtool("aws-gateway", "eth0", 91, 22,
            ("tx_timeout", 0), ("ena_admin_q_no_completion", 0), ("queue_0_rx_bytes", 262838443),
            294747481),
    Ethtool("gcp-vm", "eth0", 40, 20,
            ("rx_packets", 1039), ("adminq_set_driver_parameter_cnt", 0), ("rx_bytes", 822071),
            1044560),
    Ethtool("mi300-ionic", "enp132s0", 607, 85,
            ("tx_packets", 29), ("rx_15_xdp_redirect", 0), ("octets_tx_ok", 103623222172110),
            358993353831306),
    Ethtool("mi300-ionic", "enp132s0v0", 173, 52,
            ("tx_packets", 32438), ("rx_1_xdp_redirect", 0), ("octets_tx_ok", 103623222172110),
            358993348409757),
    Ethtool("mi300-ionic", "enp68s0", 607, 89,
            ("tx_packets", 25), ("rx_15_xdp_redirect", 0), ("octets_tx_ok", 509011967971838),
            1633982627708709),
    Ethtool("mlx5-xdp-k515", "eth0", 101, 62,
            ("rx_packets", 333854100), ("rx0_xdp_tx_cqes", 87229139), ("rx_bytes_phy", 6211329423080),
            16406900707313),
    Ethtool("node-exporter-fixture", "eth0", 16, 9,
            ("tx_packets", 961500), ("duplicate_metric", 2), ("rx_packets", 1260062),
            3494056),
    Ethtool("sos-openstack", "ens3", 13, 6,
            ("rx_queue_0_packets", 25933187), ("tx_queue_0_kicks", 24869415), ("rx_queue_0_bytes", 23782563032),
            36314407618),
    Ethtool("sos-openstack", "veth0d284c32", 4, 1,
            ("peer_ifindex", 28), ("rx_queue_0_xdp_drops", 0), ("peer_ifindex", 28),
            28),
    Ethtool("srv-bnxt", "eth0", 397, 119,
            ("[0]: rx_ucast_packets", 276347403), ("tx_packets_pri7", 0), ("rx_bits", 58069568243688),
            104475104471177),
    Ethtool("srv-i40e-0", "eth0", 677, 520,
            ("rx_packets", 258269468302), ("port.rx_priority_7_xon_2_xoff", 0), ("port.rx_bytes", 263842031063331),
            1677241251308309),
    Ethtool("srv-i40e-1", "eth0", 308, 233,
            ("rx_packets", 2946091121154), ("port.rx_priority_7_xon_2_xoff", 0), ("rx_bytes", 2005843568778348),
            5054078986913921),
    Ethtool("srv-igb", "eth0", 115, 15,
            ("rx_packets", 666), ("rx_queue_7_alloc_failed", 0), ("rx_queue_1_bytes", 4523452345),
            4962936569),
    Ethtool("srv-ixgbe-busy", "eth0", 729, 270,
            ("rx_packets", 207139908164), ("rx_pb_7_pxoff", 0), ("tx_bytes_nic", 106815819798370),
            606032149224296),
    Ethtool("tg3-docs", "eth0", 13, 4,
            ("rx_octets", 808488730), ("rx_jabbers", 0), ("rx_octets", 808488730),
            810688134),
)
# fmt: on


@pytest.mark.parametrize("fact", ETHTOOL, ids=lambda fact: f"{fact.machine}-{fact.netdev}")
def test_ethtool(fact: Ethtool) -> None:
    found = open_machine(fact.machine).ethtool.statistics(fact.netdev)
    pairs = list(zip(found.names, found.values, strict=True))
    assert len(pairs) == len(set(found.names)) == fact.statistics
    assert sum(value != 0 for value in found.values) == fact.not_zero
    assert (pairs[0], pairs[-1]) == (fact.first, fact.last)
    assert max(pairs, key=lambda pair: pair[1])[1] == fact.largest[1]
    assert fact.largest in pairs
    assert sum(found.values) == fact.total


def test_a_driver_that_refuses_its_statistics() -> None:
    kernel = open_machine("node-exporter-fixture")
    with pytest.raises(PermissionError) as caught:
        kernel.ethtool.statistics("bond0")
    assert caught.value.errno == errno.EPERM


def test_rdma_netlink_of_tool_output() -> None:
    """``rdma link`` as text and ``rdma -j statistic`` give devices, interfaces and the counters of each port."""
    kernel = open_machine("mi300-ionic")
    assert [(link.device, link.port, link.state, link.physical_state, link.netdev) for link in kernel.rdma.links()] == [
        ("rocep68s0", 1, 4, 5, "enp68s0"),
        ("rocep132s0", 1, 4, 5, "enp132s0"),
        ("ionic_1", 1, 4, 5, "enp132s0v0"),
    ]
    assert received_bytes(kernel) == {"rocep68s0": 0, "rocep132s0": 0, "ionic_1": 3087001744}


def received_bytes(kernel: Kernel) -> dict[str, int]:
    found = {}
    for device in kernel.rdma.devices():
        statistics = kernel.rdma.statistics(device.dev_index, 1)
        found[device.name] = dict(zip(*statistics, strict=True))["rx_rdma_ucast_bytes"]
    return found


def test_errors_are_kept() -> None:
    """A speed that the kernel refuses (virtio without one) is refused by the capture in the same way."""
    kernel = open_machine("rxe-stock")
    for path in ("class/net/lo/speed", "class/infiniband/rxe0/ports/1/gid_attrs/types/3"):
        with pytest.raises(OSError, match="Invalid argument") as caught:
            kernel.sysfs.read(path)
        assert caught.value.errno == errno.EINVAL
