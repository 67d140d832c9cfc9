"""Amazon's two adapters: ENA, the interface, and EFA, the RDMA device of the fabric. They share nothing but the machine.

Sources: drivers/infiniband/hw/efa/efa_verbs.c, drivers/net/ethernet/amazon/ena/ena_ethtool.c, and the same files of Amazon's own
(out-of-tree) drivers, which are ahead of the kernel's.
"""

from __future__ import annotations

from exporter.catalogue import cloud, ports, rdma
from exporter.drivers.entry import PERCENT, Driver, counter, family, left_out

EFA_PORT = (
    counter("rx_bytes", rdma.RECEIVED_BYTES),
    counter("tx_bytes", rdma.TRANSMITTED_BYTES),
    counter("rx_pkts", rdma.RECEIVED_PACKETS),
    counter("tx_pkts", rdma.TRANSMITTED_PACKETS),
    counter("rx_drops", cloud.EFA_RECEIVED_DROPS),
    counter("retrans_pkts", rdma.RETRANSMITTED_PACKETS),
    counter("retrans_bytes", rdma.RETRANSMITTED_BYTES),
    counter("retrans_timeout_events", cloud.EFA_RETRANSMIT_TIMEOUTS),
    counter("impaired_remote_conn_events", cloud.EFA_IMPAIRED),
    counter("unresponsive_remote_events", cloud.EFA_UNRESPONSIVE),
    family("(?P<operation>rdma_read|rdma_write)_wr_err", cloud.EFA_REQUEST_ERRORS),
    family("(?P<operation>send|recv|rdma_read|rdma_write)_wrs", cloud.EFA_REQUESTS),
    family("(?P<operation>send|recv|rdma_read|rdma_read_resp|rdma_write|rdma_write_recv)_bytes", cloud.EFA_BYTES),
)

EFA_DEVICE = (
    counter("submitted_cmds", cloud.EFA_COMMANDS_SUBMITTED),
    counter("completed_cmds", cloud.EFA_COMMANDS_COMPLETED),
    counter("cmds_err", cloud.EFA_COMMAND_ERRORS),
    counter("no_completion_cmds", cloud.EFA_ADMIN_TIMEOUTS),
    counter("keep_alive_rcvd", cloud.EFA_KEEPALIVES),
    family(
        "(?P<verb>alloc_pd|create_qp|create_cq|reg_mr|alloc_ucontext|create_ah|mmap|alloc_mr|get_dma_mr)_err",
        cloud.EFA_VERB_ERRORS,
    ),
)

EFA = Driver(
    name="efa",
    kernel_names=("efa",),
    device_pattern="efa_.+|rdma[oPps].+",
    port=EFA_PORT,
    device=(*EFA_DEVICE, *EFA_PORT),  # before Linux 5.14 the counters of the only port are in the device's directory
    notes=(
        "Loss shows in the retransmitted packets: SRD repairs it, so rx_drops (no receive posted, bad queue pair) stays still. "
        "The five counters of retransmission need Amazon's own driver, 2.17.0 or later, and a recent Nitro card.",
        "The state is always ACTIVE and LinkUp: it does not tell whether the link is healthy.",
        "Counters of RDMA reads and writes stay 0 on devices that cannot do them.",
        "Every refresh costs 3 to 5 administrative commands, and these are counted: submitted_cmds grows by our reading.",
        "There is no interface, no ethtool and no counters directory. ENA's counters say nothing about EFA's traffic.",
    ),
)

ENA_ETHTOOL = (
    family("(?P<allowance>bw_in|bw_out|pps|conntrack|linklocal)_allowance_exceeded", cloud.ALLOWANCE_EXCEEDED),
    counter("conntrack_allowance_available", cloud.CONNTRACK_AVAILABLE, width="gauge"),
    counter("ena_srd_mode", cloud.SRD_MODE, width="gauge"),
    counter("ena_srd_resource_utilization", cloud.SRD_UTILIZATION, scale=PERCENT, width="gauge"),
    counter("ena_srd_rx_pkts", cloud.SRD_RECEIVED),
    counter("ena_srd_tx_pkts", cloud.SRD_TRANSMITTED),
    counter("ena_srd_eligible_tx_pkts", cloud.SRD_ELIGIBLE),
    counter("tx_timeout", ports.WATCHDOG, width="sw64"),
    counter("total_resets", ports.DEVICE_RESETS, width="sw64"),
    counter("wd_expired", ports.DRIVER_ERRORS, labels=(("kind", "keepalive_missing"),), width="sw64"),
    counter("reset_fail", ports.DRIVER_ERRORS, labels=(("kind", "reset_failed"),), width="sw64"),
    counter("admin_q_pause", ports.DRIVER_ERRORS, labels=(("kind", "admin_unusable"),), width="sw64"),
    counter("ena_admin_q_aborted_cmd", ports.DRIVER_ERRORS, labels=(("kind", "admin_aborted"),), width="sw64"),
    counter("ena_admin_q_out_of_space", ports.DRIVER_ERRORS, labels=(("kind", "admin_full"),), width="sw64"),
    counter("ena_admin_q_no_completion", ports.DRIVER_ERRORS, labels=(("kind", "admin_timeout"),), width="sw64"),
    family(
        "(?P<kind>bad_tx_req_id|bad_rx_req_id|bad_rx_desc_num|missing_intr|missing_first_intr|missing_admin_interrupt"
        "|missing_tx_cmpl|suspected_poll_starvation|rx_desc_malformed|tx_desc_malformed|invalid_state|os_netdev_wd|admin_to"
        "|device_request_reset)",
        ports.DRIVER_ERRORS,
        width="sw64",
    ),
    left_out("ena_admin_q_(submitted|completed)_cmd", "administrative commands: ordinary work", pattern=True),
    left_out("interface_(up|down)", "administrative changes; the kernel counts carrier changes", pattern=True),
    left_out("suspend|resume", "power management", pattern=True),
    left_out("phc_[a-z]+", "clock (PTP)", pattern=True),
    left_out(
        "queue_[0-9]+_(rx|tx|xdp_tx)_[a-z_]+",
        "statistics of single queues come and go with ethtool -L",
        pattern=True,
    ),
)

ENA = Driver(
    name="ena",
    kernel_names=("ena",),
    ethtool=ENA_ETHTOOL,
    notes=(
        "Allowances are limits of the instance: packets over them were queued or dropped by the cloud, not by the fabric. Old "
        "drivers and some instances lack them.",
        "The reasons of resets (bad_tx_req_id, missing_tx_cmpl, ...) are among the driver's errors; total_resets has all resets.",
        "Every ethtool -S costs an administrative command.",
    ),
)
