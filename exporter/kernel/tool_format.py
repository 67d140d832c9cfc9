"""The values of :mod:`exporter.kernel` written as the tools print them: the inverse of ``tool_output`` and ``ethtool_output``.

A capture holds what people know and can paste, not a format of its own. Where a tool leaves out what the exporter reads, a key is
added: ``ports`` of an RDMA device, ``errno`` of counters that could not be read, ``carrier_up_count`` and
``carrier_down_count`` of an interface.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from exporter.kernel import (
    Dcb,
    DriverInfo,
    Fec,
    HealthReporter,
    Link,
    LinkState,
    Pause,
    RdmaDevice,
    RdmaLink,
    Statistics,
)
from exporter.kernel.ethtool_output import FEC_MODES
from exporter.kernel.tool_output import DCB_SELECTORS, DCBX_FLAGS, PHYSICAL_STATES, PORT_STATES

_PRIORITIES = 8


def _json(document: object) -> str:
    # ASCII: an interface's name may be any bytes, and what is no UTF-8 among them (a lone surrogate here) survives as \uDCxx.
    return json.dumps(document, separators=(",", ":")) + "\n"


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without those that are not known: absent is not zero."""
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def ethtool_statistics(statistics: Statistics) -> str:
    """Return the statistics as ``ethtool -S`` prints them."""
    if not statistics.names:
        return "no stats available\n"
    return "".join(["NIC statistics:\n", *(f"     {name}: {value}\n" for name, value in zip(*statistics, strict=True))])


def ethtool_driver_info(info: DriverInfo) -> str:
    """Return the driver as ``ethtool -i`` prints it."""
    names = ("driver", "version", "firmware-version", "bus-info")
    return "".join(f"{name}: {value}\n" for name, value in zip(names, info, strict=True))


def link_state(state: LinkState) -> str:
    """Return the link state in the exporter's own form."""
    return _json([_known(state._asdict())])


def ethtool_pause(pause: Pause) -> str:
    """Return the pause settings as ``ethtool --json -I -a`` prints them."""
    frames = _known({"tx_pause_frames": pause.transmitted_frames, "rx_pause_frames": pause.received_frames})
    return _json(
        [
            {
                **_known({"autonegotiate": pause.autoneg, "rx": pause.receive, "tx": pause.transmit}),
                "exact": True,
                "statistics": frames,
            }
        ]
    )


def ethtool_fec(fec: Fec) -> str:
    """Return the FEC mode and totals as ``ethtool --json -I --show-fec`` prints them."""
    totals = _known(
        {
            "corrected_blocks": fec.corrected_blocks,
            "uncorrectable_blocks": fec.uncorrectable_blocks,
            "corrected_bits": fec.corrected_bits,
        }
    )
    statistics = {name: {"total": total} for name, total in totals.items()}
    active = [FEC_MODES.get(mode, mode) for mode in fec.active.split()]
    return _json([{"active": active, "statistics": statistics}])


def ethtool_groups(statistics: Statistics) -> str:
    """Return the standard statistics as ``ethtool --json -S NETDEV --groups ...`` prints them, in one group."""
    return _json([{"eth": dict(zip(*statistics, strict=True))}])


def rdma_devices(devices: Iterable[RdmaDevice]) -> str:
    """Return the RDMA devices as ``rdma -j dev`` prints them."""
    return _json(
        [
            _known(
                {
                    "ifindex": device.dev_index,
                    "ifname": device.name,
                    "fw": device.firmware_version,
                    "node_guid": device.node_guid,
                    "protocol": device.protocol,
                    "ports": device.ports,
                }
            )
            for device in devices
        ]
    )


def rdma_links(links: Iterable[RdmaLink]) -> str:
    """Return the RDMA ports as ``rdma -j link`` prints them."""
    return _json(
        [
            _known(
                {
                    "ifindex": link.dev_index,
                    "ifname": link.device,
                    "port": link.port,
                    "state": _name(PORT_STATES, link.state),
                    "physical_state": _name(PHYSICAL_STATES, link.physical_state),
                    "netdev": link.netdev,
                    "netdev_index": link.ifindex,
                }
            )
            for link in links
        ]
    )


def _name(names: tuple[str, ...], number: int | None) -> str | None:
    return names[number] if number is not None and number < len(names) else None


def rdma_namespaces(mode: str) -> str:
    """Return the network namespace mode as ``rdma -j system`` prints it."""
    return _json([_known({"netns": mode})])


def rdma_statistics(statistics: Mapping[tuple[str, int], Statistics | OSError]) -> str:
    """Return the counters of RDMA ports as ``rdma -j statistic`` prints them."""
    return _json(
        [
            {
                "ifname": device,
                "port": port,
                **({"errno": answer.errno} if isinstance(answer, OSError) else dict(zip(*answer, strict=True))),
            }
            for (device, port), answer in statistics.items()
        ]
    )


def ip_links(links: Iterable[Link]) -> str:
    """Return the interfaces as ``ip -d -j link`` prints them."""
    listed = tuple(links)
    names = {link.ifindex: link.name for link in listed}
    return _json([_ip_link(link, names) for link in listed])


def _ip_link(link: Link, names: Mapping[int, str]) -> dict[str, Any]:
    flags = [name for name, on in (("LOOPBACK", link.loopback), ("UP", link.up), ("LOWER_UP", link.carrier)) if on]
    says = link.up is not None and link.carrier is not None
    return _known(
        {
            "ifindex": link.ifindex,
            "ifname": link.name,
            "flags": flags if says else None,
            "mtu": link.mtu,
            "master": names.get(link.master),
            "link": names.get(link.parent),
            "operstate": link.operational_state.upper(),
            "link_type": "loopback" if link.loopback else None,
            "address": link.mac,
            "linkinfo": {"info_kind": link.kind} if link.kind else None,
            "carrier_up_count": link.carrier_up_count,
            "carrier_down_count": link.carrier_down_count,
        }
    )


def ip_default_routes(interfaces: Iterable[str]) -> str:
    """Return the default routes as ``ip -j route show default`` prints them, the preferred first."""
    return _json([{"dst": "default", "dev": name, "metric": metric} for metric, name in enumerate(interfaces)])


def dcb(dcb: Dcb) -> str:
    """Return PFC, applications, DCBX and buffers as the ``dcb -s -j ... show`` commands print them, one after the other."""
    pfc: dict[str, Any] = {}
    if dcb.pfc_enabled is not None:
        pfc["prio_pfc"] = [bool(dcb.pfc_enabled >> priority & 1) for priority in range(_PRIORITIES)]
    pfc |= _known({"pfc_cap": dcb.pfc_capacity})
    pfc |= {"requests": dcb.pfc_requests, "indications": dcb.pfc_indications} if dcb.pfc_requests else {}
    applications: dict[str, list[tuple[int, int]]] = {}
    for key, number in DCB_SELECTORS.items():
        entries = [(protocol, priority) for selector, priority, protocol in dcb.applications if selector == number]
        applications |= {key: entries} if entries else {}
    modes = {} if dcb.dcbx is None else {name: bool(dcb.dcbx & bit) for name, bit in DCBX_FLAGS.items()}
    buffers = {"prio_buffer": dcb.priority_buffers, "buffer_size": dcb.buffer_sizes} if dcb.buffer_sizes else {}
    return "".join(_json(shown) for shown in (pfc, applications, modes, buffers) if shown) or _json({})


def devlink_health(reporters: Iterable[HealthReporter]) -> str:
    """Return the health reporters as ``devlink -j health`` prints them."""
    health: dict[str, list[dict[str, Any]]] = {}
    for reporter in reporters:
        handle = "/".join([reporter.bus, reporter.name, *([] if reporter.port is None else [str(reporter.port)])])
        health.setdefault(handle, []).append(
            _known(
                {
                    "reporter": reporter.reporter,
                    "state": {True: "healthy", False: "error", None: None}[reporter.healthy],
                    "error": reporter.errors,
                    "recover": reporter.recoveries,
                }
            )
        )
    return _json({"health": health})
