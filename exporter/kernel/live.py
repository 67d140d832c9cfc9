"""The kernel of the machine we run on."""

from __future__ import annotations

from exporter.kernel import Kernel
from exporter.kernel.dcb import LiveDcb
from exporter.kernel.devlink import LiveDevlink
from exporter.kernel.ethtool import LiveEthtool
from exporter.kernel.ethtool_netlink import LiveEthtoolNetlink
from exporter.kernel.links import LiveLinks
from exporter.kernel.processes import LiveProcesses
from exporter.kernel.rdma import LiveRdma
from exporter.kernel.sysfs import LiveSysfs


def open_kernel(sysfs: str = "/sys", procfs: str = "/proc") -> Kernel:
    """Return the live kernel, with sysfs and procfs mounted there. Nothing is opened or asked before it is used."""
    return Kernel(
        sysfs=LiveSysfs(sysfs, procfs),
        ethtool=LiveEthtool(),
        ethtool_netlink=LiveEthtoolNetlink(),
        rdma=LiveRdma(sysfs),
        dcb=LiveDcb(),
        devlink=LiveDevlink(),
        links=LiveLinks(),
        processes=LiveProcesses(procfs),
    )
