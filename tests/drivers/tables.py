"""What the tests of driver tables share: captured machines, and what a table makes of the counters of one device."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from exporter.drivers.entry import Entry
from exporter.drivers.plan import Plan
from exporter.kernel import Kernel, Statistics
from exporter.kernel.captured import open_capture
from exporter.model import Labels, Profile

NETDEV: Labels = (("device", "rdma0"), ("port", "1"), ("netdev", "eth0"))
PORT: Labels = (("device", "rdma0"), ("port", "1"))
DEVICE: Labels = (("device", "rdma0"),)


@cache
def machine(name: str) -> Kernel:
    """Return a captured machine's kernel."""
    return open_capture(Path(__file__).parent.parent / "machines" / name)


def raw(statistics: Statistics) -> dict[str, int]:
    """Return the raw counters by name."""
    return dict(zip(*statistics, strict=True))


def served(
    table: tuple[Entry, ...],
    counters: Mapping[str, int],
    identity: Labels = NETDEV,
    *,
    virtual: bool = False,
    profile: Profile = "full",
    pfc_enabled: int = 0xFF,
) -> dict[str, int | float]:
    """Return the series as ``name{labels}`` without the labels of ``identity``; every raw name must be known to the table."""
    plan = Plan(table, tuple(counters), identity, virtual=virtual, profile=profile)
    assert plan.unmatched == ()
    samples = list(plan.reading(tuple(counters.values()), pfc_enabled=pfc_enabled).samples())
    series = {}
    for sample in samples:
        labels = ",".join(f'{key}="{value}"' for key, value in sample.labels if (key, value) not in identity)
        series[sample.metric.name + (f"{{{labels}}}" if labels else "")] = sample.value
    assert len(series) == len(samples)
    return series
