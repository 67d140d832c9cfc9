"""Alibaba Elastic RDMA (drivers/infiniband/hw/erdma/erdma_verbs.c; Alibaba's own driver puts ``hw_`` before the same names)."""

from __future__ import annotations

from exporter.catalogue import cloud, rdma
from exporter.drivers.entry import Driver, family, left_out

DRIVER = Driver(
    name="erdma",
    kernel_names=("erdma",),
    device_pattern="erdma_.+",
    port=(
        family("(hw_)?rx_bytes_cnt", rdma.RECEIVED_BYTES),
        family("(hw_)?tx_bytes_cnt", rdma.TRANSMITTED_BYTES),
        family("(hw_)?rx_packets_cnt", rdma.RECEIVED_PACKETS),
        family("(hw_)?tx_packets_cnt", rdma.TRANSMITTED_PACKETS),
        left_out("(hw_)?tx_reqs_cnt", "requests of all kinds together; the packets are served", pattern=True),
        family("(hw_)?rx_disable_drop_cnt", rdma.DROPS, labels=(("kind", "receive_disabled"),)),
        family("(hw_)?tx_disable_drop_cnt", rdma.DROPS, labels=(("kind", "transmit_disabled"),)),
        family("(hw_)?(?P<limit>(?:rx|tx)_(?:bps|pps))_limit_drop_cnt", cloud.THROTTLED),
        left_out(
            "(listen|accept|reject|connect|cmdq|verbs)_[a-z0-9_]+_cnt|reject_cnt",
            "connections and commands of the driver; the program is told of what fails",
            pattern=True,
        ),
    ),
    notes=(
        "Drops by bps and pps limits are limits of the instance, not of the fabric.",
        "Nothing tells retransmission, sequence errors or timeouts.",
    ),
)
