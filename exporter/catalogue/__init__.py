"""Every metric once: name, type, unit, labels, help. This is the public contract.

Drivers, sources, rules, dashboards and documents refer to the constants of this package, one module per room. Units are
seconds, bytes and ratios; received and transmitted are apart; HELP gives the meaning, while the raw counters behind a
metric are listed, driver by driver, in the generated ``docs/metrics.md``.
"""

from __future__ import annotations

from exporter.catalogue import cloud, ethernet, infiniband, itself, ports, rdma
from exporter.model import Metric

ROOMS = (ports, rdma, ethernet, infiniband, cloud, itself)
"""The modules that declare metrics, in the order in which families are served and documented."""

METRICS: tuple[Metric, ...] = tuple(
    value for room in ROOMS for value in vars(room).values() if isinstance(value, Metric)
)
"""All metrics, in that order."""
