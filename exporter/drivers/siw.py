"""Soft-iWARP: no counters of any kind (drivers/infiniband/sw/siw)."""

from __future__ import annotations

from exporter.drivers.entry import Driver

DRIVER = Driver(
    name="siw",
    kernel_names=("siw",),
    device_pattern=r"siw.*",
    notes=("Has neither counters nor hw_counters; only the port's state is known.",),
)
