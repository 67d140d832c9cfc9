"""What to ask for. One list of sources serves the ``source`` label, ``--collector.NAME``, ``collect[]`` and ``exclude[]``."""

from __future__ import annotations

from typing import Any

from exporter.catalogue import ethernet, ports
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
    Ethtool,
    LinkState,
    Pause,
    Fec,
    Standard,
    Dcb,
    Pcie,
    Devlink,
)
"""All sources, in the order in which they are shown. ``dcb`` tells ``ethtool`` which priorities have PFC on."""

FED: frozenset[Metric] = frozenset(
    {
        ports.PORT_INFO,
        ports.NETDEV_INFO,
        ports.PORT_UP,
        ports.PORT_STATE,
        ports.PORT_PHYSICAL_STATE,
        ports.PORT_SPEED,
        ports.PORT_MISSING,
        ports.NETDEV_UP,
        ports.NETDEV_SPEED,
        ports.LINK_DOWNS,
        ports.CARRIER_CHANGES,
        ports.LAST_DOWN,
        ports.LINK_EXT_STATE,
        ports.PCIE_LINK_SPEED,
        ports.PCIE_LINK_SPEED_MAX,
        ports.PCIE_LINK_WIDTH,
        ports.PCIE_LINK_WIDTH_MAX,
        ports.PCIE_AER_ERRORS,
        ports.HEALTHY,
        ports.HEALTH_ERRORS,
        ports.HEALTH_RECOVERIES,
        ports.SATURATED,
        ports.COUNTER_RESETS,
        ethernet.GLOBAL_RECEIVED_FRAMES,
        ethernet.GLOBAL_TRANSMITTED_FRAMES,
        ethernet.GLOBAL_RECEIVE_ENABLED,
        ethernet.GLOBAL_TRANSMIT_ENABLED,
        ethernet.FEC_CORRECTED_BLOCKS,
        ethernet.FEC_UNCORRECTABLE_BLOCKS,
        ethernet.FEC_CORRECTIONS,
        ethernet.FEC_INFO,
        ethernet.CRC_ERRORS,
        ethernet.OVERSIZE,
        ethernet.PFC_ENABLED,
        ethernet.DSCP_TRUSTED,
        ethernet.DSCP_PRIORITY,
        ethernet.DCBX_FIRMWARE,
        ethernet.PRIORITY_BUFFER,
        ethernet.RAW,
    }
)
"""The metrics that sources feed by themselves, without a driver's table."""
