"""One file per NIC driver: raw counter -> catalogue metric. :data:`DRIVERS` lists them, :func:`driver_for` picks one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from exporter.drivers import aws, bnxt, erdma, gve, hfi1, hns, intel, ionic, mana, mlx4, mlx5, rxe, siw
from exporter.drivers.entry import Driver
from exporter.drivers.generic import GENERIC
from exporter.drivers.plan import match
from exporter.drivers.pma import PMA

DRIVERS: tuple[Driver, ...] = (
    mlx5.DRIVER,
    mlx4.DRIVER,
    bnxt.DRIVER,
    intel.DRIVER,
    aws.EFA,
    aws.ENA,
    gve.DRIVER,
    mana.DRIVER,
    ionic.DRIVER,
    hns.DRIVER,
    erdma.DRIVER,
    hfi1.DRIVER,
    rxe.DRIVER,
    siw.DRIVER,
)
"""Every driver with a table of its own, in the order of the documents."""

SURE = 3
"""So many exact names must be known before a list of names tells its driver."""

__all__ = ["DRIVERS", "GENERIC", "PMA", "driver_for"]


def driver_for(kernel_name: str, device: str = "", names: Iterable[str] = ()) -> Driver:
    """Return the driver of a device, :data:`GENERIC` when nothing tells.

    ``kernel_name`` decides (``device/driver`` or ETHTOOL_GDRVINFO), else the RDMA device's own name where only one driver
    gives such names, else ``names``: the raw names of one list of counters. A list belongs to the table that knows most of
    it, if that is at least half of it with three exact names, and no other table knows as much.
    """
    for driver in DRIVERS:
        if kernel_name in driver.kernel_names:
            return driver
    named = [driver for driver in DRIVERS if driver.device_pattern and re.fullmatch(driver.device_pattern, device)]
    if len(named) == 1:
        return named[0]
    raw = set(names) - {entry.name for entry in PMA}
    known = sorted(((_known(driver, raw), driver) for driver in DRIVERS), key=lambda pair: pair[0], reverse=True)
    (most, best), (next_most, _) = known[0], known[1]
    return best if most > next_most and 2 * most >= len(raw) else GENERIC


def _known(driver: Driver, names: set[str]) -> int:
    """Return how many of the names the best fitting table of the driver knows, 0 below :data:`SURE` exact ones."""
    best = 0
    for table in (driver.ethtool, driver.port, driver.device):
        exact = {entry.name for entry in table if entry.pattern is None}
        if len(exact & names) >= SURE:
            best = max(best, sum(match(table, name) is not None for name in names))
    return best
