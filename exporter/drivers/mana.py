"""Microsoft Azure Network Adapter: mana and mana_ib.

Sources: drivers/net/ethernet/microsoft/mana/mana_ethtool.c, drivers/infiniband/hw/mana/counters.c.
"""

from __future__ import annotations

from exporter.catalogue import cloud, ethernet, ports, rdma
from exporter.drivers.entry import Driver, counter, family, left_out

ETHTOOL = (
    counter("hc_rx_discards_no_wqe", ethernet.HOST_DISCARDS),
    counter("hc_rx_err_vport_disabled", ethernet.HOST_DROPS, labels=(("kind", "rx_vport_disabled"),)),
    family(
        "hc_(?P<kind>tx_err_(?:gf_disabled|vport_disabled|inval_vportoffset_pkt|vlan_enforcement|eth_type_enforcement"
        "|sa_enforcement|sqpdid_enforcement|cqpdid_enforcement|mtu_violation|inval_oob|gdma))",
        ethernet.HOST_DROPS,
    ),
    counter("hc_rx_pkt_drop_phy", ethernet.RECEIVED_DISCARDS),
    counter("hc_tx_pkt_drop_phy", ethernet.TRANSMITTED_DISCARDS),
    left_out(
        "hc_tc[0-7]_(rx|tx)_(pkt|byte|pause)_phy",
        "the host's port by traffic class; which priorities a class carries is not told to a guest",
        pattern=True,
    ),
    left_out(
        "hc_(rx|tx)_((ucast|bcast|mcast)_)?(bytes|pkts)",
        "the interface's traffic as its host counts it; node_exporter and the interface's own counters have it",
        pattern=True,
    ),
    left_out("(stop|wake)_queue", "a full send queue for a moment: back pressure, nothing is lost", pattern=True),
    counter("tx_cq_err", ports.DRIVER_ERRORS, labels=(("kind", "tx_completion"),), width="sw64"),
    counter("tx_cqe_unknown_type", ports.DRIVER_ERRORS, labels=(("kind", "tx_completion_type"),), width="sw64"),
    counter("rx_cqe_unknown_type", ports.DRIVER_ERRORS, labels=(("kind", "rx_completion_type"),), width="sw64"),
    counter("rx_coalesced_err", ports.DRIVER_ERRORS, labels=(("kind", "rx_coalesced"),), width="sw64"),
    left_out("(rx|tx)_[0-9]+_[a-z0-9_]+", "statistics of single queues come and go with ethtool -L", pattern=True),
)

PORT = (
    counter("rx_bytes", rdma.RECEIVED_BYTES),
    counter("tx_bytes", rdma.TRANSMITTED_BYTES),
    counter("rx_packets", rdma.RECEIVED_PACKETS),
    counter("tx_packets", rdma.TRANSMITTED_PACKETS),
    family("rx_(?P<operation>send|write|read)_requests", rdma.REQUESTS_RECEIVED),
    counter("requester_timeout", rdma.ACK_TIMEOUTS),
    counter("requester_oos_nak", rdma.SEQUENCE_NAKS),
    counter("requester_implicit_nak", rdma.IMPLIED_NAKS),
    counter("requester_rnr_nak", rdma.RNR_NAKS),
    counter("responder_rnr_nak", rdma.RNR_NAKS_SENT),
    counter("responder_oos", rdma.OUT_OF_SEQUENCE),
    counter("responder_dup_request", rdma.DUPLICATE_REQUESTS),
    left_out("dup_rx_requests", "a second count of duplicate requests; responder_dup_request is served"),
    counter("requester_readresp_psn_mismatch", rdma.DROPS, labels=(("kind", "read_response_sequence"),)),
    counter("requester_rnr_nak_retries_exceeded", rdma.RNR_RETRIES_EXCEEDED),
    counter("requester_retries_exceeded", rdma.RETRIES_EXCEEDED),
    counter("responder_local_len_error", rdma.QP_ERRORS, labels=(("kind", "responder_local_length"),)),
    counter("responder_rem_access_error", rdma.QP_ERRORS, labels=(("kind", "responder_remote_access"),)),
    counter("responder_local_qp_error", rdma.QP_ERRORS, labels=(("kind", "responder_local_operation"),)),
    counter("responder_malformed_wqe", rdma.QP_ERRORS, labels=(("kind", "responder_malformed_request"),)),
    # The driver spells this one requestor.
    counter("requestor_local_prot_error", rdma.QP_ERRORS, labels=(("kind", "local_protection"),)),
    counter("general_hw_error", rdma.QP_ERRORS, labels=(("kind", "hardware"),)),
    counter("total_fatal_error", rdma.QP_ERRORS, labels=(("kind", "unrecoverable"),)),
    family("(?P<kind>nak_(?:inv_req|access_error|opp_error|inv_read))", rdma.QP_ERRORS),
    counter("received_cnps", rdma.CNP_HANDLED),
    counter("num_qps_congested", rdma.CONGESTED_QPS, labels=(("event", "slowed"),)),
    counter("num_qps_recovered", rdma.CONGESTED_QPS, labels=(("event", "recovered"),)),
    counter("rate_inc_events", rdma.CONGESTED_QPS, labels=(("event", "rate_increased"),)),
    counter("current_rate", cloud.CURRENT_RATE, width="gauge"),
)

DEVICE = (
    counter("sent_cnps", rdma.CNP_SENT),
    counter("received_ecns", rdma.ECN_MARKED),
    left_out("received_cnp_count", "received_cnps of the port counts them"),
    left_out("qp_(congested|recovered)_events|rate_inc_events", "the port counts the same events", pattern=True),
)
"""The adapter's own counters, on those that have them (MANA_IB_FEATURE_DEV_COUNTERS_SUPPORT)."""

DRIVER = Driver(
    name="mana",
    kernel_names=("mana", "mana_ib"),
    device_pattern="manae?_.+",
    ethtool=ETHTOOL,
    port=PORT,
    device=DEVICE,
    notes=(
        "Every read asks the host. The RDMA counters came after Linux 6.12.",
        "Marks received and CNPs sent are counted for the adapter (device hw_counters), which has one port; they are served "
        "under that port.",
        "received_cnps counts the CNPs received; whether each slowed a queue pair is not told.",
        "The driver does not state the unit of current_rate.",
    ),
)
