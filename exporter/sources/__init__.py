"""What to ask for. One list of sources serves the ``source`` label, ``--collector.NAME``, ``collect[]`` and ``exclude[]``."""

from __future__ import annotations

from typing import Any

from exporter.catalogue import ethernet as on_ethernet
from exporter.catalogue import ports as on_ports
from exporter.model import Metric
from exporter.sources.base import Source
from exporter.sources.counters import Ethtool, Pma, Rdma, RdmaDevice
from exporter.sources.ethernet import Dcb, Fec, LinkState, Pause, Standard
from exporter.sources.pcie import Devlink, Pcie
from exporter.sources.ports import Netdevs, Ports

SOURCES: tuple[type[Source[Any]], ...] = (
    Ports,
    Netdevs,
    Rdma,
    Pma,
    RdmaDevice,
    Dcb,
    Ethtool,
    LinkState,
    Pause,
    Fec,
    Standard,
    Pcie,
    Devlink,
)
"""All sources, in the order in which they are shown. ``dcb`` comes before ``ethtool``: it tells which priorities have PFC on."""

FED: frozenset[Metric] = frozenset(
    {
        on_ports.PORT_INFO,
        on_ports.NETDEV_INFO,
        on_ports.PORT_UP,
        on_ports.PORT_STATE,
        on_ports.PORT_PHYSICAL_STATE,
        on_ports.PORT_SPEED,
        on_ports.PORT_MISSING,
        on_ports.NETDEV_UP,
        on_ports.NETDEV_SPEED,
        on_ports.LINK_DOWNS,
        on_ports.CARRIER_CHANGES,
        on_ports.LAST_DOWN,
        on_ports.LINK_EXT_STATE,
        on_ports.PCIE_LINK_SPEED,
        on_ports.PCIE_LINK_SPEED_MAX,
        on_ports.PCIE_LINK_WIDTH,
        on_ports.PCIE_LINK_WIDTH_MAX,
        on_ports.PCIE_AER_ERRORS,
        on_ports.HEALTHY,
        on_ports.HEALTH_ERRORS,
        on_ports.HEALTH_RECOVERIES,
        on_ports.SATURATED,
        on_ports.COUNTER_RESETS,
        on_ethernet.GLOBAL_RECEIVED_FRAMES,
        on_ethernet.GLOBAL_TRANSMITTED_FRAMES,
        on_ethernet.GLOBAL_RECEIVE_ENABLED,
        on_ethernet.GLOBAL_TRANSMIT_ENABLED,
        on_ethernet.FEC_CORRECTED_BLOCKS,
        on_ethernet.FEC_UNCORRECTABLE_BLOCKS,
        on_ethernet.FEC_CORRECTIONS,
        on_ethernet.FEC_INFO,
        on_ethernet.CRC_ERRORS,
        on_ethernet.OVERSIZE,
        on_ethernet.PFC_ENABLED,
        on_ethernet.DSCP_TRUSTED,
        on_ethernet.DSCP_PRIORITY,
        on_ethernet.DCBX_FIRMWARE,
        on_ethernet.PRIORITY_BUFFER,
        on_ethernet.RAW,
    }
)
"""The metrics that sources feed by themselves, without a driver's table."""
