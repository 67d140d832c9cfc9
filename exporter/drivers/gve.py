"""Google's virtual NIC (drivers/net/ethernet/google/gve/gve_ethtool.c)."""

from __future__ import annotations

from exporter.catalogue import ethernet, ports
from exporter.drivers.entry import Driver, counter, family, left_out

# A packet is dropped on one queue: the queues of an interface add up.
NIC_REPORT = (
    family(r"rx_no_buffers_posted\[[0-9]+\]", ethernet.HOST_DISCARDS, sums=True),
    family(r"rx_queue_drop_cnt\[[0-9]+\]", ethernet.HOST_DROPS, labels=(("kind", "device_queue"),), sums=True),
    family(r"rx_drops_packet_over_mru\[[0-9]+\]", ethernet.OVERSIZE, sums=True),
    family(r"rx_drops_invalid_checksum\[[0-9]+\]", ethernet.PHY_ERRORS, labels=(("kind", "l4_checksum"),), sums=True),
)
"""What the device reports every 20 s, by queue."""

DRIVER_COUNTS = (
    counter("rx_skb_alloc_fail", ethernet.HOST_DROPS, labels=(("kind", "rx_skb_allocation"),), width="sw64"),
    counter("rx_buf_alloc_fail", ethernet.HOST_DROPS, labels=(("kind", "rx_allocation"),), width="sw64"),
    counter("rx_desc_err_dropped_pkt", ethernet.HOST_DROPS, labels=(("kind", "rx_descriptor"),), width="sw64"),
    left_out("rx_dropped", "the sum of rx_skb_alloc_fail, rx_buf_alloc_fail and rx_desc_err_dropped_pkt"),
    counter("tx_dropped", ethernet.HOST_DROPS, labels=(("kind", "tx_queue"),), width="sw64"),
    counter("page_alloc_fail", ports.DRIVER_ERRORS, labels=(("kind", "page_allocation"),), width="sw64"),
    counter("dma_mapping_error", ports.DRIVER_ERRORS, labels=(("kind", "dma_mapping"),), width="sw64"),
    counter("adminq_cmd_fail", ports.DRIVER_ERRORS, labels=(("kind", "admin_failed"),), width="sw64"),
    counter("adminq_timeouts", ports.DRIVER_ERRORS, labels=(("kind", "admin_timeout"),), width="sw64"),
    counter("tx_timeouts", ports.WATCHDOG, width="sw64"),
    counter("reset_cnt", ports.DEVICE_RESETS, width="sw64"),
    left_out("interface_(up|down)_cnt", "administrative changes; the kernel counts carrier changes", pattern=True),
    left_out("(rx|tx)_(packets|bytes)", "node_exporter and the interface's own counters have it", pattern=True),
    left_out("rx_hsplit_(pkt|unsplit_pkt)", "packets whose header was split off: ordinary work", pattern=True),
    left_out("stats_report_trigger_cnt", "times the driver asked for a report"),
    left_out("adminq_[a-z_]+", "administrative commands by kind: ordinary work", pattern=True),
    left_out(
        r"(rx|tx)_[a-z_]+\[[0-9]+\]",
        "statistics of single queues come and go with ethtool -L; the drops are served as sums",
        pattern=True,
    ),
)

DRIVER = Driver(
    name="gve",
    kernel_names=("gve", "gvnic"),
    ethtool=(*NIC_REPORT, *DRIVER_COUNTS),
    refresh_seconds=20,
    notes=(
        "Drops that the device reports (no buffer posted, over the MRU, bad checksum, queue drops) are 20 s old at most; they "
        "stay 0 while the private flag report-stats is off. What the driver counts itself is fresh.",
        "The network behind this interface is the cloud's: there is no pause, no FEC and no physical layer to see.",
    ),
)
