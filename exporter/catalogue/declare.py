"""How a metric is declared, and the label sets that identify things."""

from __future__ import annotations

from exporter.model import Metric, Profile

P = ("device", "port")
"""What RDMA knows."""
N = ("device", "port", "netdev")
"""What the NIC driver knows. ``device`` and ``port`` are left out without an RDMA device, ``netdev`` without an interface."""
NP = (*N, "priority")
SOURCE = ("source",)


def counter(
    name: str, labels: tuple[str, ...], help: str, *, profile: Profile = "core", sources: tuple[str, ...] = ()
) -> Metric:
    """Return a counter. Its name ends in ``_total``."""
    return Metric(name, "counter", help, labels, profile, sources)


def gauge(
    name: str, labels: tuple[str, ...], help: str, *, profile: Profile = "core", sources: tuple[str, ...] = ()
) -> Metric:
    """Return a gauge."""
    return Metric(name, "gauge", help, labels, profile, sources)


def unknown(name: str, labels: tuple[str, ...], help: str, *, profile: Profile = "core") -> Metric:
    """Return a metric whose type the kernel does not tell (``untyped`` in the text format)."""
    return Metric(name, "unknown", help, labels, profile)
