"""``ports/N/counters``: the port's performance management attributes, the same names on every driver that has them.

Sources: drivers/infiniband/core/sysfs.c (names and widths), IBTA PortCounters and PortCountersExtended (units). The error
fields stick at their maximum until they are cleared; the traffic fields count in words of four octets.
"""

from __future__ import annotations

from exporter.catalogue import infiniband, ports, rdma
from exporter.drivers.entry import WORDS, counter

ERRORS = (
    counter("symbol_error", infiniband.SYMBOL_ERRORS, width="sat16"),
    counter("link_error_recovery", infiniband.LINK_RECOVERIES, width="sat8"),
    counter("link_downed", ports.LINK_DOWNS, width="sat8"),
    counter("port_rcv_errors", infiniband.RECEIVE_ERRORS, width="sat16"),
    counter("port_rcv_remote_physical_errors", infiniband.REMOTE_PHYSICAL_ERRORS, width="sat16"),
    counter("port_rcv_switch_relay_errors", infiniband.SWITCH_RELAY_ERRORS, width="sat16"),
    counter("port_xmit_discards", infiniband.TRANSMIT_DISCARDS, width="sat16"),
    counter("port_xmit_constraint_errors", infiniband.TRANSMIT_CONSTRAINTS, width="sat8"),
    counter("port_rcv_constraint_errors", infiniband.RECEIVE_CONSTRAINTS, width="sat8"),
    counter("local_link_integrity_errors", infiniband.LOCAL_INTEGRITY, width="sat4"),
    counter("excessive_buffer_overrun_errors", infiniband.BUFFER_OVERRUNS, width="sat4"),
    counter("VL15_dropped", infiniband.VL15_DROPPED, width="sat16"),
    counter("port_xmit_wait", infiniband.XMIT_WAIT, width="sat32"),
)

DATA = (
    counter("port_rcv_data", rdma.RECEIVED_BYTES, scale=WORDS, width="ext64"),
    counter("port_xmit_data", rdma.TRANSMITTED_BYTES, scale=WORDS, width="ext64"),
)

PACKETS = (
    counter("port_rcv_packets", rdma.RECEIVED_PACKETS, width="ext64"),
    counter("port_xmit_packets", rdma.TRANSMITTED_PACKETS, width="ext64"),
    counter("multicast_rcv_packets", infiniband.MULTICAST_RECEIVED),
    counter("multicast_xmit_packets", infiniband.MULTICAST_TRANSMITTED),
)

UNICAST = (
    counter("unicast_rcv_packets", infiniband.UNICAST_RECEIVED),
    counter("unicast_xmit_packets", infiniband.UNICAST_TRANSMITTED),
)

PMA = (*ERRORS, *DATA, *PACKETS, *UNICAST)
