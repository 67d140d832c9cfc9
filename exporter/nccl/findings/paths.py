"""Which path was taken: GPUDirect RDMA, host memory, sockets; and communicators that did not come up."""

from __future__ import annotations

from collections.abc import Iterator

from exporter.nccl.findings.finding import Case, Finding, names
from exporter.nccl.hca import parse, select_devices, select_interfaces
from exporter.nccl.verdicts import gdr_level, networks_between_hosts, one_host

PEERMEM_RELEASE = (2, 23, 0)
"""From here on NCCL looks for nvidia_peermem in /sys/module too."""
SUSPECT_INTERFACES = ("veth", "docker", "virbr", "cni", "flannel", "cali", "lo")
"""Beginnings of names of interfaces that lead to no other host."""


def sockets(case: Case) -> Iterator[Finding]:
    """Sockets between hosts are a fault where there is RDMA, and a fact where there is none."""
    evidence = case.evidence
    over = [network for network in networks_between_hosts(evidence) if network.endswith("Socket")]
    if not over or any(path != "socket" for *_, path in evidence.channels):
        return
    here = case.inventory is not None and bool(case.inventory.ports)
    interfaces = names(evidence.interfaces)
    reasons = list(_reasons(case))
    count = sum(count for (*_, path), count in evidence.channels.items() if path == "socket")
    yield Finding(
        "transport_fallback_socket",
        "confirmed",
        "critical" if here else "warning" if "FastSocket" not in over or reasons else "info",
        f"Traffic between hosts uses TCP{f' on {interfaces}' if interfaces else ''}, not RDMA"
        + (f": {reasons[0]}" if reasons else "")
        + ".",
        (f"{count} channels via NET/{over[0]}", *reasons[:6], *(["this host has RDMA ports"] if here else [])),
    )


def _reasons(case: Case) -> Iterator[str]:
    evidence = case.evidence
    if any(value not in {"", "0"} for value in case.setting("NCCL_IB_DISABLE")):
        yield "NCCL_IB_DISABLE turns RDMA off"
    if any(kind == "ibverbs" and outcome == "absent" for kind, *_, outcome in evidence.plugins):
        yield "libibverbs is missing where the job runs, so NCCL cannot use RDMA at all"
    if any("aws-ofi-nccl did not start" in what for _, what, *_ in evidence.failures):
        yield "aws-ofi-nccl did not start"
    if evidence.without_device:
        wanted = names(case.setting("NCCL_IB_HCA"))
        yield "NCCL found no RDMA device with an active port" + (
            f" that NCCL_IB_HCA={wanted} selects" if wanted else ""
        )
    if any(evidence.listed(devices) for devices, _ in evidence.hosts.values()):
        yield "RDMA devices were found all the same"


def suspect_interfaces(case: Case) -> Iterator[Finding]:
    """NCCL takes every interface that NCCL_SOCKET_IFNAME does not rule out."""
    suspect = [name for name in case.evidence.interfaces if name.startswith(SUSPECT_INTERFACES)]
    others = [name for name in case.evidence.interfaces if name not in suspect]
    if suspect and networks_between_hosts(case.evidence):
        yield Finding(
            "socket_interface_suspect",
            "likely",
            "warning",
            f"NCCL also uses {names(suspect)}, which leads to no other host: set NCCL_SOCKET_IFNAME"
            + (f"={others[0]}." if others else "."),
            tuple(f"NET/Socket uses {name}" for name in case.evidence.interfaces)[:8],
        )


def gdr_off(case: Case) -> Iterator[Finding]:
    """No channel of any NIC has /GDRDMA, or none of one."""
    if case.gdr.state == "off":
        yield _all_off(case)
    elif case.gdr.state == "mixed" and case.gdr.basis.startswith("channels"):
        yield from _some_off(case)


def _all_off(case: Case) -> Finding:
    evidence = case.evidence
    said = [case.gdr.basis]
    off = [name for _, _, name, enabled in evidence.gdr_devices if not enabled]
    why = ""
    if "LOC" in map(gdr_level, case.setting("NCCL_NET_GDR_LEVEL")):
        why = " (NCCL_NET_GDR_LEVEL is LOC)"
    elif off:
        why = f" (NCCL found no support for it on {names(off)})"
        said.append(f"GPU Direct RDMA Disabled for HCA {', '.join(dict.fromkeys(off))}")
        if case.release and case.release < PEERMEM_RELEASE:
            said.append(
                "before 2.23 NCCL does not see the nvidia_peermem of newer kernels in /sys/module: a possible reason"
            )
    if evidence.dma_buf:
        said.append("DMA-BUF is available: the GPU's side only, it does not mean that the NIC uses it")
    return Finding(
        "host_gdr_disabled" if off else "gdr_not_used",
        "confirmed",
        "warning",
        f"GPUDirect RDMA is not used{why}: all data between hosts goes through host memory.",
        tuple(said),
    )


def _some_off(case: Case) -> Iterator[Finding]:
    ends: dict[tuple[str, str], dict[str, int]] = {}
    for (direction, network, device, hca, path), count in case.evidence.channels.items():
        if path != "socket":
            for key in ((hca or f"device {device} of {network}", ""), ("", direction)):
                table = ends.setdefault(key, {})
                table[path] = table.get(path, 0) + count
    if "gdr" not in ends.get(("", "send"), {"gdr": 1}) and "host" not in ends.get(("", "receive"), {"host": 1}):
        by_hand = "0" in case.setting("NCCL_NET_GDR_READ")
        yield Finding(
            "gdr_read_off",
            "confirmed" if by_hand else "possible",
            "warning",
            "GPUDirect RDMA is used to receive but not to send"
            + (
                ", because NCCL_NET_GDR_READ is 0."
                if by_hand
                else ": NCCL_NET_GDR_READ, or a GPU for which it is off by default."
            ),
            (case.gdr.basis,),
        )
        return
    without = {name: counts["host"] for (name, _), counts in ends.items() if name and "gdr" not in counts}
    found = {name: count for name, count in without.items() if count >= 2}
    if found:
        yield Finding(
            "gdr_off_on_device",
            "possible",
            "warning",
            f"GPUDirect RDMA is used, but on no channel of {names(found)}: too far from its GPU, or without support.",
            (case.gdr.basis, *(f"{name}: 0 of {count} channels" for name, count in found.items()))[:8],
        )
        return
    yield Finding(
        "gdr_partial",
        "confirmed",
        "info",
        "Some channels go through host memory, as is usual for a GPU and a NIC that are far apart.",
        (case.gdr.basis,),
    )


def interface_names(case: Case) -> Iterator[Finding]:
    """NCCL_SOCKET_IFNAME against the host's interfaces. A container with a network of its own has others."""
    if case.inventory is None or not case.inventory.netdevs:
        return
    for value in case.setting("NCCL_SOCKET_IFNAME"):
        if not select_interfaces(value, case.inventory).selected:
            yield Finding(
                "socket_ifname_no_match",
                "possible",
                "info",
                f"NCCL_SOCKET_IFNAME={value} selects none of the interfaces known on this host "
                f"({names(netdev.name for netdev in case.inventory.netdevs)}); a container may have others.",
            )


def device_names(case: Case) -> Iterator[Finding]:
    """NCCL_IB_HCA against the devices that there are: those of the host, else those that NCCL lists."""
    evidence = case.evidence
    for value in case.setting("NCCL_IB_HCA"):
        if case.inventory is not None and case.inventory.ports:
            selection = select_devices(value, case.inventory)
            there = names(port.device for port in case.inventory.ports)
            if not selection.selected:
                yield Finding(
                    "ib_hca_no_match",
                    "confirmed",
                    "critical",
                    f"NCCL_IB_HCA={value} selects none of this host's RDMA devices ({there}): NCCL will use sockets.",
                )
            elif selection.idle and not parse(value).exclude:
                yield Finding(
                    "ib_hca_no_match",
                    "confirmed",
                    "warning",
                    f"NCCL_IB_HCA={value} names {names(selection.idle)}, which this host does not have ({there}).",
                )
            wide = selection.wide
        else:
            listed = {device.name for which, _ in evidence.hosts.values() for device in evidence.listed(which)}
            wide = tuple(
                (
                    entry.name,
                    tuple(sorted(name for name in listed if name != entry.name and name.startswith(entry.name))),
                )
                for entry in parse(value).names
                if entry.name in listed and not parse(value).exact
            )
        for name, others in wide:
            if others:
                yield Finding(
                    "ib_hca_prefix",
                    "confirmed",
                    "warning",
                    f"NCCL_IB_HCA={value} lists beginnings: {name} also stands for {names(others)}. ={name} is one device.",
                    (f"NCCL_IB_HCA set to {value}",),
                )


def incomplete(case: Case) -> Iterator[Finding]:
    """START without COMPLETE: bootstrap or connecting hangs or failed, or the log ends there."""
    waiting = [
        (process, one)
        for process in case.evidence.processes.values()
        for one in process.communicators.values()
        if one.stage == "start" and not one.ends
    ]
    if not waiting:
        return
    failed = {(error.host, error.pid) for error in case.evidence.causes}
    broken = [process for process, _ in waiting if (process.host, process.pid) in failed]
    yield Finding(
        "init_incomplete",
        "confirmed" if broken else "insufficient",
        "warning" if broken else "info",
        f"{len(waiting)} communicator(s) on {names((process.host for process, _ in waiting), 'a host')} began and "
        + (
            "did not come up after an error."
            if broken
            else "are not up where the log ends: they hang, or the log is cut."
        ),
        tuple(
            f"{process.host}:{process.pid} rank {one.rank} of {one.ranks}: Init START only" for process, one in waiting
        )[:8],
    )


def unused_devices(case: Case) -> Iterator[Finding]:
    """A rank uses the NICs near its GPU: other ranks may use the others."""
    evidence = case.evidence
    used = {hca for *_, hca, path in evidence.channels if path != "socket" and hca}
    listed = {device.name for which, _ in evidence.hosts.values() for device in evidence.listed(which)}
    if used and len(used) < len(listed):
        yield Finding(
            "devices_unused",
            "confirmed",
            "info",
            f"{len(listed)} HCAs are listed, the channels in this log use {len(used)} ({names(sorted(used))}): a rank uses those "
            "near its GPU.",
        )


def coverage(case: Case) -> Iterator[Finding]:
    """What the log cannot tell."""
    evidence = case.evidence
    told = (
        evidence.networks
        or evidence.channels
        or evidence.local
        or evidence.connected
        or evidence.lists
        or evidence.gdr_devices
        or evidence.settings
        or evidence.starts
        or evidence.completes
    )
    if case.nccl_lines == 0 and not evidence.order:
        yield Finding(
            "no_nccl_lines",
            "insufficient",
            "info",
            "There is no line of NCCL here: NCCL_DEBUG=INFO makes it tell its path.",
        )
    elif not told:
        yield Finding(
            "path_not_told",
            "insufficient",
            "info",
            "Only warnings are logged, so the path that was taken is not known: NCCL_DEBUG=INFO makes NCCL tell it.",
        )
    elif one_host(evidence):
        yield Finding("one_host", "confirmed", "info", "All ranks are on one host: the network is not used.")


CHECKS = (sockets, suspect_interfaces, gdr_off, device_names, interface_names, incomplete, unused_devices, coverage)
