"""AMD Pensando (DSC, Pollara 400): ionic and its RDMA driver.

Sources: drivers/net/ethernet/pensando/ionic/ionic_stats.c and ionic_if.h, drivers/infiniband/hw/ionic/ionic_hw_stats.c. The
names of the RDMA counters come from the firmware; these are the ones of Pollara.
"""

from __future__ import annotations

from functools import partial

from exporter.catalogue import ethernet, ports, rdma
from exporter.drivers.entry import MICROSECONDS, Driver, counter, family, left_out

ALL_ONES = (1 << 64) - 1
"""What the RDMA driver gives for a counter that the firmware does not have where it said."""

port_counter = partial(counter, physical=True)
port_family = partial(family, physical=True)
rdma_counter = partial(counter, invalid=ALL_ONES)
rdma_family = partial(family, invalid=ALL_ONES)

PORT = (
    port_family("rx_pripause_(?P<priority>[0-7])_1us_count", ethernet.PFC_RECEIVED_PAUSE, scale=MICROSECONDS),
    port_family("tx_pripause_(?P<priority>[0-7])_1us_count", ethernet.PFC_TRANSMITTED_PAUSE, scale=MICROSECONDS),
    port_counter("rx_pause_1us_count", ethernet.GLOBAL_RECEIVED_PAUSE, scale=MICROSECONDS),
    port_counter("frames_rx_pripause", ethernet.PFC_PORT_RECEIVED_FRAMES),
    port_counter("frames_tx_pripause", ethernet.PFC_PORT_TRANSMITTED_FRAMES),
    port_counter("frames_rx_pause", ethernet.GLOBAL_RECEIVED_FRAMES),
    port_counter("frames_tx_pause", ethernet.GLOBAL_TRANSMITTED_FRAMES),
    port_family("frames_rx_pri_(?P<priority>[0-7])", ethernet.PRIORITY_RECEIVED_PACKETS),
    port_family("frames_tx_pri_(?P<priority>[0-7])", ethernet.PRIORITY_TRANSMITTED_PACKETS),
    port_counter("frames_rx_dropped", ethernet.RECEIVED_DISCARDS),
    port_counter("frames_rx_bad_fcs", ethernet.CRC_ERRORS),
    port_counter("frames_rx_stomped_crc", ethernet.STOMPED_CRC),
    port_counter("frames_rx_oversized", ethernet.OVERSIZE),
    port_counter("frames_rx_too_long", ethernet.PHY_ERRORS, labels=(("kind", "over_mtu"),)),
    port_counter("frames_rx_bad_length", ethernet.PHY_ERRORS, labels=(("kind", "length"),)),
    port_counter("frames_rx_undersized", ethernet.PHY_ERRORS, labels=(("kind", "undersize"),)),
    port_family("frames_rx_(?P<kind>fragments|jabber)", ethernet.PHY_ERRORS),
    port_counter("frames_tx_bad", ethernet.PHY_ERRORS, labels=(("kind", "transmit"),)),
    port_counter("frames_tx_truncated", ports.PCIE_UNDERRUNS),
    left_out("frames_rx_bad_all", "the sum of the faulty frames, which are served by kind"),
    port_counter("octets_rx_ok", ethernet.RECEIVED_BYTES),
    port_counter("octets_tx_ok", ethernet.TRANSMITTED_BYTES),
    port_counter("frames_rx_ok", ethernet.RECEIVED_PACKETS),
    port_counter("frames_tx_ok", ethernet.TRANSMITTED_PACKETS),
    left_out(
        "octets_(rx|tx)_(all|total)|frames_(rx|tx)_(all|unicast|multicast|broadcast|vlan|vlan_good)",
        "the same traffic with the faulty frames, or a part of it",
        pattern=True,
    ),
    left_out(
        "frames_(rx|tx)_(less_than_64b|64b|[0-9]+b_[0-9]+b|other)",
        "packet sizes: a histogram no question here needs",
        pattern=True,
    ),
)
"""The port's MAC. A virtual function shows the numbers of its physical function."""

HOST = (
    counter("hw_rx_over_errors", ethernet.HOST_DISCARDS),
    counter("hw_rx_dropped", ethernet.HOST_DROPS, labels=(("kind", "rx_dropped"),)),
    counter("hw_rx_missed_errors", ethernet.HOST_DROPS, labels=(("kind", "rx_missed"),)),
    counter("hw_tx_dropped", ethernet.HOST_DROPS, labels=(("kind", "tx_queue"),)),
    counter("hw_tx_aborted_errors", ports.DRIVER_ERRORS, labels=(("kind", "tx_aborted"),)),
    left_out(
        "(rx|tx)_(packets|bytes|tso|tso_bytes|csum|csum_none|csum_complete|csum_error)",
        "traffic of the kernel's own rings, RDMA not included; node_exporter has it",
        pattern=True,
    ),
    left_out("xdp_[a-z]+", "XDP programs of the host", pattern=True),
    left_out("(rx|tx)_[0-9]+_[a-z0-9_]+", "statistics of single queues come and go with ethtool -L", pattern=True),
)

RDMA = (
    # A packet goes to one address or to several: the two add up.
    rdma_family("rx_rdma_(ucast|mcast)_bytes", rdma.RECEIVED_BYTES, sums=True),
    rdma_family("tx_rdma_(ucast|mcast)_bytes", rdma.TRANSMITTED_BYTES, sums=True),
    rdma_family("rx_rdma_(ucast|mcast)_pkts", rdma.RECEIVED_PACKETS, sums=True),
    rdma_family("tx_rdma_(ucast|mcast)_pkts", rdma.TRANSMITTED_PACKETS, sums=True),
    rdma_counter("tx_rdma_cnp_pkts", rdma.CNP_SENT),
    rdma_counter("rx_rdma_cnp_pkts", rdma.CNP_HANDLED),
    rdma_counter("rx_rdma_ecn_pkts", rdma.ECN_MARKED),
    rdma_counter("rx_rdma_mtu_discard_pkts", rdma.DROPS, labels=(("kind", "over_mtu"),)),
    rdma_counter("req_rx_pkt_seq_err", rdma.SEQUENCE_NAKS),
    rdma_counter("req_rx_impl_nak_seq_err", rdma.IMPLIED_NAKS),
    rdma_counter("req_rx_rnr_retry_err", rdma.RNR_NAKS),
    rdma_counter("req_tx_retry_excd_err", rdma.RETRIES_EXCEEDED),
    rdma_counter("req_rx_dup_response", rdma.DROPS, labels=(("kind", "duplicate_response"),)),
    rdma_counter("req_rx_inval_pkts", rdma.DROPS, labels=(("kind", "invalid"),)),
    rdma_counter("req_rx_cqe_err", rdma.COMPLETION_ERRORS, labels=(("side", "requester"),)),
    rdma_counter("req_rx_cqe_flush", rdma.FLUSHED_COMPLETIONS, labels=(("side", "requester"),)),
    rdma_counter("req_rx_rmt_req_err", rdma.QP_ERRORS, labels=(("kind", "remote_invalid_request"),)),
    rdma_counter("req_rx_rmt_acc_err", rdma.QP_ERRORS, labels=(("kind", "remote_access"),)),
    rdma_counter("req_rx_oper_err", rdma.QP_ERRORS, labels=(("kind", "remote_operation"),)),
    rdma_counter("req_tx_loc_acc_err", rdma.QP_ERRORS, labels=(("kind", "local_protection"),)),
    rdma_counter("req_tx_loc_oper_err", rdma.QP_ERRORS, labels=(("kind", "local_operation"),)),
    rdma_counter("req_tx_loc_sgl_inv_err", rdma.QP_ERRORS, labels=(("kind", "local_sgl"),)),
    rdma_counter("req_tx_mem_mgmt_err", rdma.QP_ERRORS, labels=(("kind", "memory_management"),)),
    rdma_counter("resp_rx_dup_request", rdma.DUPLICATE_REQUESTS),
    rdma_counter("resp_rx_outof_buf", rdma.OUT_OF_BUFFER),
    # The firmware's own spelling, and the one it may mean.
    rdma_family("resp_rx_out(ouf|of)_seq", rdma.OUT_OF_SEQUENCE),
    rdma_counter("resp_tx_pkt_seq_err", rdma.SEQUENCE_NAKS_SENT),
    rdma_counter("resp_tx_rnr_retry_err", rdma.RNR_NAKS_SENT),
    rdma_counter("resp_rx_cqe_err", rdma.COMPLETION_ERRORS, labels=(("side", "responder"),)),
    rdma_counter("resp_rx_cqe_flush", rdma.FLUSHED_COMPLETIONS, labels=(("side", "responder"),)),
    rdma_counter("resp_rx_loc_len_err", rdma.QP_ERRORS, labels=(("kind", "responder_local_length"),)),
    rdma_counter("resp_rx_loc_oper_err", rdma.QP_ERRORS, labels=(("kind", "responder_local_operation"),)),
    rdma_counter("resp_rx_inval_request", rdma.QP_ERRORS, labels=(("kind", "responder_invalid_request"),)),
    rdma_counter("resp_rx_outof_atomic", rdma.QP_ERRORS, labels=(("kind", "responder_out_of_atomics"),)),
    rdma_counter("resp_rx_s0_table_err", rdma.QP_ERRORS, labels=(("kind", "responder_table"),)),
    rdma_counter("resp_tx_loc_sgl_inv_err", rdma.QP_ERRORS, labels=(("kind", "responder_local_sgl"),)),
    rdma_counter("resp_tx_rmt_inval_req_err", rdma.QP_ERRORS, labels=(("kind", "responder_remote_invalid_request"),)),
    rdma_counter("resp_tx_rmt_acc_err", rdma.QP_ERRORS, labels=(("kind", "responder_remote_access"),)),
    rdma_counter("resp_tx_rmt_oper_err", rdma.QP_ERRORS, labels=(("kind", "responder_remote_operation"),)),
)
"""``req_``: this host asked; ``resp_``: it was asked. ``rx_``: learned from a packet; ``tx_``: found or told while sending."""

DRIVER = Driver(
    name="ionic",
    kernel_names=("ionic", "ionic_rdma"),
    device_pattern="ionic_.+",
    ethtool=(*PORT, *HOST),
    port=RDMA,
    notes=(
        "Pause is counted in ticks of one microsecond. There is no tick count of the 802.3x pause that this port sent.",
        "A virtual function shows the MAC counters of its physical function: they are not served twice.",
        "While its firmware resets, ethtool -S succeeds with numbers that were never written.",
        "The names of the RDMA counters come from the firmware: a name that this table lacks has no series. They came "
        "with Linux 6.18.",
        "A counter with all bits set is one the firmware does not have: it has no series.",
        "frames_rx_stomped_crc counts frames that a switch before this link had found corrupt: look for the fault there.",
        "rx_rdma_cnp_pkts counts the CNPs received; whether each slowed a queue pair is not told.",
        "Acknowledgement timeouts are not counted; exhausted retries are.",
    ),
)
