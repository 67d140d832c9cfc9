"""What to ask for. One list of sources serves the ``source`` label, ``--collector.NAME``, ``collect[]`` and ``exclude[]``."""

from __future__ import annotations

from typing import Any

from exporter.sources.base import Source
from exporter.sources.counters import Ethtool, Pma, Rdma, RdmaDevice
from exporter.sources.ethernet import Dcb, Fec, LinkState, Pause, Standard
from exporter.sources.nccl import Nccl
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
    Nccl,
)
"""All sources, in the order in which they are shown. ``dcb`` comes before ``ethtool``: it tells which priorities have PFC on."""
