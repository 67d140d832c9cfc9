"""Soft-RoCE: RDMA over any Ethernet interface, in software (drivers/infiniband/sw/rxe/rxe_hw_counters.c)."""

from __future__ import annotations

from exporter.catalogue import ports, rdma
from exporter.drivers.entry import Driver, counter, left_out

DRIVER = Driver(
    name="rxe",
    kernel_names=("rdma_rxe", "rxe"),
    device_pattern=r"rxe.*",
    port=(
        counter("sent_pkts", rdma.TRANSMITTED_PACKETS, width="sw64"),
        counter("rcvd_pkts", rdma.RECEIVED_PACKETS, width="sw64"),
        counter("duplicate_request", rdma.DUPLICATE_REQUESTS, width="sw64"),
        counter("out_of_seq_request", rdma.OUT_OF_SEQUENCE, width="sw64"),
        counter("rcvd_rnr_err", rdma.RNR_NAKS, width="sw64"),
        counter("send_rnr_err", rdma.RNR_NAKS_SENT, width="sw64"),
        counter("rcvd_seq_err", rdma.SEQUENCE_NAKS, width="sw64"),
        left_out("ack_deferred", "acknowledgements put off: ordinary work"),
        counter("retry_exceeded_err", rdma.RETRIES_EXCEEDED, width="sw64"),
        counter("retry_rnr_exceeded_err", rdma.RNR_RETRIES_EXCEEDED, width="sw64"),
        counter("completer_retry_err", rdma.ACK_TIMEOUTS, width="sw64"),
        counter("send_err", rdma.DROPS, labels=(("kind", "send_failed"),), width="sw64"),
        counter("link_downed", ports.LINK_DOWNS, width="sw64"),
        counter("rdma_sends", rdma.REQUESTS_TRANSMITTED, labels=(("operation", "send"),), width="sw64"),
        counter("rdma_recvs", rdma.REQUESTS_RECEIVED, labels=(("operation", "receive"),), width="sw64"),
    ),
    notes=(
        "Has no ports/N/counters, so packets but no bytes.",
        "completer_retry_err counts the retries of the requester, after a timeout and after a sequence NAK alike.",
    ),
)
