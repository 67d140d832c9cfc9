"""Omni-Path: hfi1.

Source: drivers/infiniband/hw/hfi1/mad.c. It answers the IBTA's port counters from the chip's own: data in flits of eight octets
where the IBTA asks for words of four, and no unicast packets (always 0).
"""

from __future__ import annotations

from exporter.catalogue import rdma
from exporter.drivers.entry import Driver, counter, left_out
from exporter.drivers.pma import ERRORS, PACKETS

FLITS = 8
"""Factor from Omni-Path flits to bytes."""

OWN = (
    counter("port_rcv_data", rdma.RECEIVED_BYTES, scale=FLITS),
    counter("port_xmit_data", rdma.TRANSMITTED_BYTES, scale=FLITS),
    left_out("unicast_(rcv|xmit)_packets", "always 0 on this driver", pattern=True),
)

NAMES_OF_THE_CHIP = (
    left_out(
        ".+",
        "hundreds of the chip's internal counters, named by the driver at run time; PSM traffic is not in the RDMA ones",
        pattern=True,
    ),
)

DRIVER = Driver(
    name="hfi1",
    kernel_names=("hfi1",),
    device_pattern=r"hfi1_.+|opap.+",
    port=NAMES_OF_THE_CHIP,
    device=NAMES_OF_THE_CHIP,
    pma=(*ERRORS, *OWN, *PACKETS),
    notes=("port_xmit_data and port_rcv_data count flits of eight octets, not words of four as on InfiniBand.",),
)
