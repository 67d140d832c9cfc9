"""NVIDIA ConnectX-3: mlx4_en and mlx4_ib.

Sources: drivers/net/ethernet/mellanox/mlx4 (en_ethtool.c, en_port.c), drivers/infiniband/hw/mlx4/main.c (diag_basic, diag_ext,
diag_device_only). The diagnostic counters are 32 bits wide, per port where the firmware can, else per device.
"""

from __future__ import annotations

from functools import partial

from exporter.catalogue import ethernet, ports, rdma
from exporter.drivers.entry import Driver, counter, family, left_out

HOST = "traffic and errors of the interface as the kernel counts them; node_exporter has them"

port_counter = partial(counter, physical=True)
port_family = partial(family, physical=True)
diagnostic = partial(counter, width="mod32")

ETHTOOL = (
    port_counter("rx_crc_errors", ethernet.CRC_ERRORS, width="mod32"),
    port_counter("rx_fifo_errors", ethernet.RECEIVED_DISCARDS, width="mod32"),
    port_counter("rx_jabbers", ethernet.PHY_ERRORS, labels=(("kind", "jabber"),), width="mod32"),
    port_counter("rx_in_range_length_error", ethernet.PHY_ERRORS, labels=(("kind", "in_range_length"),)),
    port_counter("rx_out_range_length_error", ethernet.PHY_ERRORS, labels=(("kind", "out_of_range_length"),)),
    port_counter("rx_packets_phy", ethernet.RECEIVED_PACKETS),
    port_counter("tx_packets_phy", ethernet.TRANSMITTED_PACKETS),
    port_counter("rx_bytes_phy", ethernet.RECEIVED_BYTES),
    port_counter("tx_bytes_phy", ethernet.TRANSMITTED_BYTES),
    counter("tx_timeout", ports.WATCHDOG, width="sw64"),
    left_out("(rx|tx)_(packets|bytes|errors|dropped)|multicast|collisions", HOST, pattern=True),
    left_out("rx_(length|over|frame|missed)_errors", HOST, pattern=True),
    left_out("tx_(aborted|carrier|fifo|heartbeat|window)_errors", HOST, pattern=True),
    left_out("(pf_)?(rx|tx)_(multicast_|broadcast_|novlan_)?(packets|bytes)", HOST, pattern=True),
    left_out(
        "tso_packets|xmit_more|queue_stopped|wake_queue|rx_alloc_pages|rx_csum_(good|none|complete)|tx_chksum_offload",
        "the driver's ordinary work, no sign of a fault",
        pattern=True,
    ),
    port_family("rx_prio_(?P<priority>[0-7])_bytes", ethernet.PRIORITY_RECEIVED_BYTES),
    port_family("tx_prio_(?P<priority>[0-7])_bytes", ethernet.PRIORITY_TRANSMITTED_BYTES),
    port_family("rx_prio_(?P<priority>[0-7])_packets", ethernet.PRIORITY_RECEIVED_PACKETS),
    port_family("tx_prio_(?P<priority>[0-7])_packets", ethernet.PRIORITY_TRANSMITTED_PACKETS),
    port_family("rx_pause_prio_(?P<priority>[0-7])", ethernet.PFC_RECEIVED_FRAMES),
    port_family("tx_pause_prio_(?P<priority>[0-7])", ethernet.PFC_TRANSMITTED_FRAMES),
    port_family("rx_pause_duration_prio_(?P<priority>[0-7])", ethernet.PFC_RECEIVED_XOFF_TIME),
    port_family("tx_pause_duration_prio_(?P<priority>[0-7])", ethernet.PFC_TRANSMITTED_XOFF_TIME),
    port_family("rx_pause_transition_prio_(?P<priority>[0-7])", ethernet.PFC_RECEIVED_TRANSITIONS),
    port_family("tx_pause_transition_prio_(?P<priority>[0-7])", ethernet.PFC_TRANSMITTED_TRANSITIONS),
    port_counter("rx_pause", ethernet.GLOBAL_RECEIVED_FRAMES),
    port_counter("tx_pause", ethernet.GLOBAL_TRANSMITTED_FRAMES),
    port_counter("rx_pause_duration", ethernet.GLOBAL_RECEIVED_XOFF_TIME),
    port_counter("tx_pause_duration", ethernet.GLOBAL_TRANSMITTED_XOFF_TIME),
    port_counter("rx_pause_transition", ethernet.GLOBAL_RECEIVED_TRANSITIONS),
    port_counter("tx_pause_transition", ethernet.GLOBAL_TRANSMITTED_TRANSITIONS),
    left_out("rx_xdp_(drop|tx|tx_full)", "work of the host's own XDP programs", pattern=True),
    left_out("(rx|tx)[0-9]+_[a-z0-9_]+", "statistics of single queues come and go with ethtool -L", pattern=True),
)

DIAGNOSTICS = (
    diagnostic("rq_num_oos", rdma.OUT_OF_SEQUENCE),
    diagnostic("sq_num_oos", rdma.SEQUENCE_NAKS),
    diagnostic("rq_num_dup", rdma.DUPLICATE_REQUESTS),
    diagnostic("sq_num_to", rdma.ACK_TIMEOUTS),
    diagnostic("sq_num_rnr", rdma.RNR_NAKS),
    diagnostic("rq_num_rnr", rdma.RNR_NAKS_SENT),
    diagnostic("sq_num_tree", rdma.RETRIES_EXCEEDED),
    diagnostic("sq_num_rree", rdma.RNR_RETRIES_EXCEEDED),
    diagnostic("rq_num_wrfe", rdma.FLUSHED_COMPLETIONS, labels=(("side", "responder"),)),
    diagnostic("sq_num_wrfe", rdma.FLUSHED_COMPLETIONS, labels=(("side", "requester"),)),
    diagnostic("rq_num_lle", rdma.QP_ERRORS, labels=(("kind", "responder_local_length"),)),
    diagnostic("sq_num_lle", rdma.QP_ERRORS, labels=(("kind", "requester_local_length"),)),
    diagnostic("rq_num_lqpoe", rdma.QP_ERRORS, labels=(("kind", "responder_local_operation"),)),
    diagnostic("sq_num_lqpoe", rdma.QP_ERRORS, labels=(("kind", "requester_local_operation"),)),
    diagnostic("rq_num_lpe", rdma.QP_ERRORS, labels=(("kind", "responder_local_protection"),)),
    diagnostic("sq_num_lpe", rdma.QP_ERRORS, labels=(("kind", "requester_local_protection"),)),
    diagnostic("sq_num_mwbe", rdma.QP_ERRORS, labels=(("kind", "memory_window_bind"),)),
    diagnostic("sq_num_bre", rdma.QP_ERRORS, labels=(("kind", "bad_response"),)),
    diagnostic("sq_num_rire", rdma.QP_ERRORS, labels=(("kind", "remote_invalid_request"),)),
    diagnostic("rq_num_rire", rdma.QP_ERRORS, labels=(("kind", "responder_invalid_request"),)),
    diagnostic("sq_num_rae", rdma.QP_ERRORS, labels=(("kind", "remote_access"),)),
    diagnostic("rq_num_rae", rdma.QP_ERRORS, labels=(("kind", "responder_remote_access"),)),
    diagnostic("sq_num_roe", rdma.QP_ERRORS, labels=(("kind", "remote_operation"),)),
    diagnostic("num_cqovf", rdma.QP_ERRORS, labels=(("kind", "completion_queue_overflow"),)),
    diagnostic("rq_num_udsdprd", rdma.DROPS, labels=(("kind", "ud_no_receive_request"),)),
)

DRIVER = Driver(
    name="mlx4",
    kernel_names=("mlx4_core", "mlx4_en", "mlx4_ib"),
    device_pattern=r"mlx4_.+",
    ethtool=ETHTOOL,
    port=DIAGNOSTICS,
    device=DIAGNOSTICS,
    notes=(
        "The driver's source does not state the unit of pause durations: they are not served as seconds.",
        "Firmware that counts for the whole device only gives no port to its series.",
        "Drivers of the vendor's older packages show these counters in diag_counters; that folder is not read.",
    ),
)
