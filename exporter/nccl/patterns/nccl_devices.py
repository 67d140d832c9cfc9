"""NCCL: which devices a network has (``transport/net_ib/init.cc``, ``net_socket.cc``, ``graph/topo.cc``)."""

from __future__ import annotations

import re
from functools import lru_cache

from exporter.nccl.facts import Device, Devices, Fact, Failure, Hardware, NoDevice, Noise, Record, VirtualDevice
from exporter.nccl.pattern import Pattern, failure, line, noise

# one item: [0]mlx5_0:1/IB, [0]mlx5_0:1:rail:plane/IB/SHARP, or a merged NIC [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}
_ITEM = re.compile(r"\[(\d+)\](?:=\{([^}]{0,1000})\}|([^\s:]{1,64}):(\d+)[^\s/]{0,40}/(\w{1,20}))")
_MEMBER = re.compile(r"([^\s:\[\],]{1,64}):(\d+)[^\s/]{0,40}/(\w{1,20})")
_INTERFACE = re.compile(r"\[(\d+)\]([^\s:]{1,64}):([^\s<]{1,64})(?:<\d+>)?")
_INCOMPATIBLE = "[%d]%s:%d/%s and [%d]%s:%d/%s. Try selecting NICs of only one link type using NCCL_IB_HCA"


@lru_cache(maxsize=64)
def _listed(text: str) -> tuple[Device, ...]:
    """The devices of a list; all processes of a host print the same."""
    devices = []
    for number, merged, name, port, link_layer in _ITEM.findall(text):
        found = _MEMBER.findall(merged) or [(name, port, link_layer)]
        members = tuple((name, int(port)) for name, port, _ in found)
        devices.append(Device(int(number), "+".join(name for name, _ in members), members[0][1], found[0][2], members))
    return tuple(devices)


def _using(match: re.Match[str], record: Record) -> Fact:
    network, listed, interface, address = match.groups()
    devices = listed.removesuffix("[RO]")
    return Devices(network, _listed(devices), devices != listed, interface, address.partition("<")[0])


def _interfaces(match: re.Match[str], record: Record) -> Fact:
    found = _INTERFACE.findall(match[2])
    devices = tuple(Device(int(number), name, 0, "", ((name, 0),)) for number, name, _ in found)
    return Devices(match[1], devices, None, found[0][1] if found else "", found[0][2] if found else "")


def _virtual(match: re.Match[str], record: Record) -> Fact:
    return VirtualDevice(int(match[1]), match[2], int(match[3]), int(match[4]))


def _hardware(match: re.Match[str], record: Record) -> Fact:
    number, name, port, link_layer, provider, speed, pci_path = match.groups()
    return Hardware(int(number), name, int(port), link_layer, provider, int(speed), pci_path or "")


def _refused(match: re.Match[str], record: Record) -> Fact:
    """At INFO NCCL only asks until it is refused. A framework's last error is one all the same."""
    if record.level == "INFO":
        return Noise("virtual NICs are counted by asking for one more")
    return Failure("topology", "a virtual NIC cannot be made")


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="using",
        first="NET/",
        holds="; OOB ",
        regex=re.compile(r"NET/(\S{1,40}?) ?: Using([^;]{0,3900}); OOB ([^\s:]{1,64}):(\S{1,128})"),
        make=_using,
        examples=(
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.1<0>",
            "NET/IB : Using [0]mlx5_0:1/RoCE ; OOB ib0:fe80::a00:27ff:fe00:a1%ib0<0>",
            "NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]; OOB eth0:192.0.2.1<0>",
            "NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB/SHARP ; OOB ib0:10.10.0.45<0>",
            "NET/IB : Using [0]mlx5_0:1::2/RoCE [RO]; OOB eth0:192.0.2.1<0>",
            "NET/IB : Using [RO]; OOB eth0:192.0.2.1<0>",
        ),
    ),
    Pattern(
        name="using_interfaces",
        first="NET/",
        holds=" : Using",
        regex=re.compile(r"NET/(\S{1,40}?) : Using ?((?:\[\d+\](?!.{0,3900}; OOB ).*)?)$"),
        make=_interfaces,
        examples=(
            "NET/Socket : Using [0]eth0:192.0.2.41<0>",
            "NET/Socket : Using [0]eth0:192.0.2.111<0> [1]veth3a1:fe80::a00:27ff:fe00:c3%veth3a1<0>",
            "NET/FastSocket : Using [0]eth0:192.0.2.41<0>",
            "NET/GPUDirectTCPX : Using [0]eth1:192.0.2.42<0> [1]eth2:192.0.2.43<0>",
        ),
    ),
    Pattern(
        name="no_device",
        first="NET/",
        holds=" : No device found",
        regex=re.compile(r"NET/(\S{1,40}?) : No device found"),
        make=lambda match, record: NoDevice(match[1]),
        examples=("NET/IB : No device found.",),
    ),
    line(
        "virtual_device",
        "NET/IB : Made virtual device [%d] name=%s speed=%d ndevs=%d",
        _virtual,
        since="2.24.3",
        examples=(
            "NET/IB : Made virtual device [0] name=mlx5_0+mlx5_1 speed=800000 ndevs=2",
            "NET/IB : Made virtual device [3] name=mlx5_3 speed=400000 ndevs=1 rail=3 plane=0",
        ),
    ),
    Pattern(
        name="hardware",
        first="NET/IB: [",
        holds=" provider=",
        regex=re.compile(
            r"NET/IB: \[(\d+)\] (\S{1,64}?):[^\s:]{1,64}:(\d+)/(\S{1,20}) provider=(\S{1,40}) speed=(\d+)"
            r"(?: context=\S{1,40})?(?: pciPath=(\S{1,500}))?"
        ),
        make=_hardware,
        since="2.27.3",
        examples=(
            "NET/IB: [0] mlx5_0:uverbs0:1/RoCE provider=Mlx5 speed=400000 context=0x55d5 "
            "pciPath=/sys/devices/pci0000:84/0000:84:00.0/0000:9b:00.0 ar=0",
            "NET/IB: [1] mlx5_1:uverbs1:1/IB provider=Mlx5 speed=400000 context=0x55d5 "
            "pciPath=/sys/devices/pci0000:84/0000:84:00.0/0000:9c:00.0 ar=1 oooRqSize=64",
            "NET/IB: [0] mlx5_0:uverbs0:1/RoCE provider=Mlx5 speed=400000",
        ),
    ),
    line(
        "open_device",
        "NET/IB : Unable to open device %s",
        failure("device", "an RDMA device cannot be opened", hca=1),
        examples=("NET/IB : Unable to open device mlx5_9",),
    ),
    line(
        "query_device",
        "NET/IB : Unable to query device %s",
        failure("device", "an RDMA device cannot be queried", hca=1),
        examples=("NET/IB : Unable to query device mlx5_9",),
    ),
    Pattern(
        name="query_port",
        first="NET/IB : Unable to query port",
        regex=re.compile(r"NET/IB : Unable to query port(?:_num)? (\d+)"),
        make=failure("device", "a port of an RDMA device cannot be queried"),
        examples=("NET/IB : Unable to query port 1", "NET/IB : Unable to query port_num 1"),
    ),
    line(
        "no_oob_interface",
        "NET/IB : No IP interface found.",
        failure("bootstrap", "no interface for out-of-band traffic"),
        examples=("NET/IB : No IP interface found.",),
    ),
    line(
        "no_real_path",
        "Could not find real path of %s (%s)",
        noise("a device without a PCI function: a soft or virtual one"),
        examples=("Could not find real path of rxe0 (/sys/class/infiniband/rxe0/device)",),
    ),
    line(
        "incompatible_merge",
        f"NET/IB : Attempted to merge incompatible devices: {_INCOMPATIBLE}",
        failure("topology", "NICs of different link types cannot be merged", hca=2),
        since="2.26.2",
        examples=(
            "NET/IB : Attempted to merge incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE. "
            "Try selecting NICs of only one link type using NCCL_IB_HCA",
        ),
    ),
    line(
        "incompatible_connect",
        f"NET/IB : Attempted to connect incompatible devices: {_INCOMPATIBLE}",
        failure("topology", "NICs of different link types cannot be connected", hca=2),
        since="2.26.2",
        examples=(
            "NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE. "
            "Try selecting NICs of only one link type using NCCL_IB_HCA",
        ),
    ),
    line(
        "incompatible_remote",
        "NET/IB : Remote %s device is incompatible with the local [%d]%s:%d/%s. "
        "Try selecting NICs of only one link type using NCCL_IB_HCA",
        failure("topology", "the peer's NIC has another link type", hca=3),
        since="2.26.2",
        examples=(
            "NET/IB : Remote RoCE device is incompatible with the local [0]mlx5_0:1/IB. "
            "Try selecting NICs of only one link type using NCCL_IB_HCA",
        ),
    ),
    Pattern(
        name="incompatible_old",
        first="NET/IB : Can't ",
        holds=" net devices with different link_layer.",
        regex=re.compile(r"NET/IB : Can't (?:merge|connect) net devices with different link_layer\."),
        make=failure("topology", "NICs of different link types cannot be connected"),
        since="2.20.3",
        until="2.25.1",
        examples=(
            "NET/IB : Can't merge net devices with different link_layer. "
            "i=0 remMeta.ndevs=2 link_layer=1 rem_link_layer=2",
            "NET/IB : Can't connect net devices with different link_layer. "
            "i=0 remMeta.ndevs=2 link_layer=1 rem_link_layer=2",
        ),
    ),
    Pattern(
        name="merged_count",
        first="NET/IB : Local mergedDev",
        regex=re.compile(r"NET/IB : Local mergedDev[ =](\S{1,255}) has a different number of devices=\d+ as remote"),
        make=failure("topology", "a merged NIC has another number of members than the peer's", hca=1),
        since="2.20.3",
        examples=(
            "NET/IB : Local mergedDev mlx5_0+mlx5_1 has a different number of devices=2 as remote mlx5_0 1",
            "NET/IB : Local mergedDev=mlx5_0+mlx5_1 has a different number of devices=2 as remoteDev=mlx5_0 nRemDevs=1",
        ),
    ),
    line(
        "mismatched_rails",
        "NET/IB : There are mismatched physical devices between local (%s) and remote (%s). "
        "To disable this warning, set NCCL_IB_WARN_RAIL_LOCAL=0",
        failure("topology", "traffic crosses rails: the two ends use different devices", hca=1),
        since="2.24.3",
        examples=(
            "NET/IB : There are mismatched physical devices between local (mlx5_0) and remote (mlx5_3). "
            "To disable this warning, set NCCL_IB_WARN_RAIL_LOCAL=0",
        ),
    ),
    Pattern(
        name="mixed_counts",
        first="Detected mixed local Net device counts across ranks ",
        regex=re.compile(r"Detected mixed local Net device counts across ranks \(min \d+, max \d+\)"),
        make=failure("topology", "ranks have different numbers of network devices"),
        since="2.30.3",
        examples=(
            "Detected mixed local Net device counts across ranks (min 7, max 8). "
            "Set NCCL_IGNORE_NET_MISMATCH=1 to continue.",
            "Detected mixed local Net device counts across ranks (min 7, max 8). "
            "Ignoring due to NCCL_IGNORE_NET_MISMATCH.",
        ),
    ),
    Pattern(
        name="merge_refused",
        first="NET/IB : Trying to ",
        regex=re.compile(
            r"NET/IB : Trying to (?:merge multiple devices together |use non-exist[ae]nt virtual device )"
        ),
        make=failure("topology", "NICs cannot be merged"),
        since="2.24.3",
        examples=(
            "NET/IB : Trying to merge multiple devices together when NCCL_IB_MERGE_NICS=0. "
            "Please enable it or disable device merging in NCCL.",
            "NET/IB : Trying to merge multiple devices together with different link_layer properties "
            "mlx5_0 -> 1, mlx5_1 -> 2. Try only selecting NICs with one type of link using NCCL_IB_HCA",
            "NET/IB : Trying to use non-existent virtual device 3",
            "NET/IB : Trying to use non-existant virtual device 3",
        ),
    ),
    Pattern(
        name="virtual_device_refused",
        first="NET/IB : ",
        regex=re.compile(
            r"NET/IB : (?:Can't make virtual NIC with 0 devices|Cannot allocate any more virtual devices \("
            r"|Cannot use physical device \d+, max |Requested properties for vNic \d+, only )"
        ),
        make=_refused,
        since="2.24.3",
        examples=(
            "NET/IB : Can't make virtual NIC with 0 devices",
            "NET/IB : Cannot allocate any more virtual devices (32)",
            "NET/IB : Cannot use physical device 33, max 32",
            "NET/IB : Requested properties for vNic 9, only 8 vNics have been created",
        ),
    ),
    Pattern(
        name="merge_failed",
        first="TOPO/NET : Tried merging multiple devices together and failed.",
        regex=re.compile(r"TOPO/NET : Tried merging multiple devices together and failed\."),
        make=failure("topology", "NICs cannot be merged"),
        since="2.24.3",
        examples=(
            "TOPO/NET : Tried merging multiple devices together and failed. Try setting NCCL_NET_MERGE_LEVEL=LOC",
            "TOPO/NET : Tried merging multiple devices together and failed. vProps={ndevs=2, devs=[0 1 0 0]}. "
            "Set NCCL_NET_MERGE_LEVEL=LOC to disable NIC fusion.",
        ),
    ),
    line(
        "inconsistent_rail",
        "TOPO/NET : Inconsistent rail/plane for net %s: existing %d/%d, new %d/%d.",
        failure("topology", "rail or plane of a NIC is not the same everywhere", hca=1),
        since="2.32.3",
        examples=("TOPO/NET : Inconsistent rail/plane for net mlx5_0: existing 0/0, new 1/0.",),
    ),
    Pattern(
        name="index_changed",
        first="TOPO/NET : Changing ",
        holds=" dev index from ",
        regex=re.compile(r"TOPO/NET : Changing \S{1,255} dev index from \d+ to \d+\."),
        make=noise("the device is shared by plugins"),
        since="2.31.2",
        examples=(
            "TOPO/NET : Changing mlx5_0 dev index from 0 to 1. This device is shared by NET GIN RMA plugin(s). "
            "This can be due to outdated plugin or topology xml file.",
        ),
    ),
    Pattern(
        name="plane_refused",
        first="NCCL cannot use ",
        holds=" plane ID",
        regex=re.compile(r"NCCL cannot use (?:a plane ID that is -?\d+|more than \d+ plane IDs)\."),
        make=failure("topology", "a plane of NCCL_IB_HCA cannot be used"),
        since="2.30.7",
        examples=("NCCL cannot use a plane ID that is -1.", "NCCL cannot use more than 4 plane IDs."),
    ),
    line(
        "data_direct",
        "NET/IB: Error in mlx5dv_get_data_direct_sysfs_path with device %s",
        failure("device", "the Data Direct function of a device cannot be found", hca=1),
        since="2.28.3",
        examples=("NET/IB: Error in mlx5dv_get_data_direct_sysfs_path with device mlx5_0",),
    ),
    Pattern(
        name="address_range",
        first="NET/IB: Ip address ",
        regex=re.compile(r"NET/IB: Ip address (?:mask )?'[^']{0,80}' is invalid for family \S{1,20}, ignoring "),
        make=failure("setting", "NCCL_IB_ADDR_RANGE is not an address range"),
        since="2.21.5",
        examples=(
            "NET/IB: Ip address '10.0.0' is invalid for family AF_INET, ignoring address",
            "NET/IB: Ip address mask '33' is invalid for family AF_INET, ignoring mask",
        ),
    ),
)
