"""Intel E800 (ice), E2000 (idpf) and X722 (i40e), with irdma of all three generations.

Sources: drivers/net/ethernet/intel/ice/ice_ethtool.c, drivers/infiniband/hw/irdma/verbs.c; the third generation of irdma drops
the prefixes ``tcp`` and ``iw`` and adds names with blanks.
"""

from __future__ import annotations

from functools import partial

from exporter.catalogue import ethernet, ports, rdma
from exporter.drivers.entry import Driver, counter, family, left_out

port_counter = partial(counter, width="acc64", physical=True)
port_family = partial(family, width="acc64", physical=True)
rdma_counter = partial(counter, width="acc64")
rdma_family = partial(family, width="acc64")

PORT = (
    port_family(r"rx_priority_(?P<priority>[0-7])_xoff\.nic", ethernet.PFC_RECEIVED_FRAMES),
    port_family(r"tx_priority_(?P<priority>[0-7])_xoff\.nic", ethernet.PFC_TRANSMITTED_FRAMES),
    port_family(r"rx_priority_(?P<priority>[0-7])_xon\.nic", ethernet.PFC_RECEIVED_XON),
    port_family(r"tx_priority_(?P<priority>[0-7])_xon\.nic", ethernet.PFC_TRANSMITTED_XON),
    port_counter("link_xoff_rx.nic", ethernet.GLOBAL_RECEIVED_FRAMES),
    port_counter("link_xoff_tx.nic", ethernet.GLOBAL_TRANSMITTED_FRAMES),
    port_counter("link_xon_rx.nic", ethernet.GLOBAL_RECEIVED_XON),
    port_counter("link_xon_tx.nic", ethernet.GLOBAL_TRANSMITTED_XON),
    port_counter("rx_dropped.nic", ethernet.RECEIVED_DISCARDS),
    port_counter("tx_dropped_link_down.nic", ethernet.TRANSMITTED_DISCARDS),
    port_counter("rx_crc_errors.nic", ethernet.CRC_ERRORS),
    port_counter("illegal_bytes.nic", ethernet.SYMBOL_ERRORS),
    port_counter("rx_oversize.nic", ethernet.OVERSIZE),
    port_counter("mac_local_faults.nic", ethernet.PHY_ERRORS, labels=(("kind", "local_fault"),)),
    port_counter("mac_remote_faults.nic", ethernet.PHY_ERRORS, labels=(("kind", "remote_fault"),)),
    port_family(r"rx_(?P<kind>undersize|fragments|jabber)\.nic", ethernet.PHY_ERRORS),
    port_counter("rx_csum_bad.nic", ethernet.PHY_ERRORS, labels=(("kind", "l4_checksum"),)),
    port_counter("rx_eipe_error.nic", ethernet.PHY_ERRORS, labels=(("kind", "outer_ip_checksum"),)),
    port_counter("tx_errors.nic", ethernet.PHY_ERRORS, labels=(("kind", "transmit"),)),
    counter("tx_timeout.nic", ports.WATCHDOG, width="sw64", physical=True),
    port_counter("rx_bytes.nic", ethernet.RECEIVED_BYTES),
    port_counter("tx_bytes.nic", ethernet.TRANSMITTED_BYTES),
    # A frame is of exactly one of the three kinds.
    port_family(r"rx_(unicast|multicast|broadcast)\.nic", ethernet.RECEIVED_PACKETS, sums=True),
    port_family(r"tx_(unicast|multicast|broadcast)\.nic", ethernet.TRANSMITTED_PACKETS, sums=True),
    left_out(
        r"(rx|tx)_size_(64|127|255|511|1023|1522|big)\.nic",
        "packet sizes: a histogram no question here needs",
        pattern=True,
    ),
    left_out(
        r"fdir_sb_(match|status)\.nic", "flow director: ordinary work, and a state that counts nothing", pattern=True
    ),
)
"""``.nic``: the port, on its physical function only."""

HOST = (
    rdma_counter("rx_dropped", ethernet.HOST_DISCARDS),
    rdma_counter("tx_errors", ethernet.HOST_DROPS, labels=(("kind", "tx_error"),)),
    rdma_counter("rx_unknown_protocol", ethernet.HOST_DROPS, labels=(("kind", "unknown_protocol"),)),
    counter("rx_alloc_fail", ports.DRIVER_ERRORS, labels=(("kind", "rx_allocation"),), width="sw64"),
    counter("rx_pg_alloc_fail", ports.DRIVER_ERRORS, labels=(("kind", "rx_page_allocation"),), width="sw64"),
    left_out("tx_(busy|restart)", "a full send queue for a moment: back pressure, nothing is lost", pattern=True),
    left_out("tx_linearize", "packets copied together before they were sent: ordinary work"),
    left_out("tx_hwtstamp_(skipped|timeouts|flushed|discarded)|late_cached_phc_updates", "clock (PTP)", pattern=True),
    left_out(
        "(rx|tx)_(unicast|multicast|broadcast|bytes)",
        "traffic of the kernel's own rings, RDMA not included; node_exporter has it",
        pattern=True,
    ),
    left_out(
        "(rx|tx)_queue_[0-9]+_(packets|bytes)",
        "statistics of single queues come and go with ethtool -L",
        pattern=True,
    ),
)
"""The function's own rings (VSI)."""

RDMA = (
    # IPv4 and IPv6 are counted apart by one engine: a packet is in one of the two.
    rdma_family("ip[46]InOctets", rdma.RECEIVED_BYTES, sums=True),
    rdma_family("ip[46]OutOctets", rdma.TRANSMITTED_BYTES, sums=True),
    rdma_family("ip[46]InPkts", rdma.RECEIVED_PACKETS, sums=True),
    rdma_family("ip[46]OutPkts", rdma.TRANSMITTED_PACKETS, sums=True),
    rdma_family("ip[46]InDiscards", rdma.DROPS, labels=(("kind", "receive_discards"),), sums=True),
    rdma_family("ip[46]InTruncatedPkts", rdma.DROPS, labels=(("kind", "truncated"),), sums=True),
    rdma_family("ip[46]OutNoRoutes", rdma.DROPS, labels=(("kind", "no_route"),), sums=True),
    rdma_family("(tcp)?InOptErrors", rdma.DROPS, labels=(("kind", "option_error"),)),
    rdma_family("(tcp)?InProtoErrors", rdma.DROPS, labels=(("kind", "protocol_error"),)),
    rdma_counter("rxVlanErrors", rdma.DROPS, labels=(("kind", "vlan"),)),
    rdma_family("(tcp)?RetransSegs", rdma.RETRANSMITTED_PACKETS),
    rdma_family("(iw)?InRdmaReads", rdma.REQUESTS_RECEIVED, labels=(("operation", "read"),)),
    rdma_family("(iw)?InRdmaSends", rdma.REQUESTS_RECEIVED, labels=(("operation", "send"),)),
    rdma_family("(iw)?InRdmaWrites", rdma.REQUESTS_RECEIVED, labels=(("operation", "write"),)),
    rdma_counter("Rx atomics", rdma.REQUESTS_RECEIVED, labels=(("operation", "atomic"),)),
    rdma_family("(iw)?OutRdmaReads", rdma.REQUESTS_TRANSMITTED, labels=(("operation", "read"),)),
    rdma_family("(iw)?OutRdmaSends", rdma.REQUESTS_TRANSMITTED, labels=(("operation", "send"),)),
    rdma_family("(iw)?OutRdmaWrites", rdma.REQUESTS_TRANSMITTED, labels=(("operation", "write"),)),
    rdma_counter("Tx atomics", rdma.REQUESTS_TRANSMITTED, labels=(("operation", "atomic"),)),
    # An earlier spelling of the same two counters.
    rdma_counter("Rx ATS", rdma.REQUESTS_RECEIVED, labels=(("operation", "atomic"),), alternative=True),
    rdma_counter("Tx ATS", rdma.REQUESTS_TRANSMITTED, labels=(("operation", "atomic"),), alternative=True),
    left_out("(iw)?Rdma(Bnd|Inv)", "memory keys bound and taken back: ordinary work of the host", pattern=True),
    left_out(
        "ip[46](In|Out)(ReasmRqd|SegRqd|McastPkts|McastOctets)|(tcp)?(In|Out)Segs|(Rx|Tx)UDP",
        "a part of the IP packets and bytes, which are served",
        pattern=True,
    ),
    rdma_counter("cnpSent", rdma.CNP_SENT),
    rdma_counter("cnpHandled", rdma.CNP_HANDLED),
    rdma_counter("cnpIgnored", rdma.CNP_IGNORED),
    rdma_counter("RxECNMrkd", rdma.ECN_MARKED),
    rdma_counter("RNR sent", rdma.RNR_NAKS_SENT),
    rdma_counter("RNR received", rdma.RNR_NAKS),
    rdma_counter("Nak Sequence Error", rdma.SEQUENCE_NAKS),
    rdma_counter("Nak Sequence Error Implied", rdma.IMPLIED_NAKS),
    rdma_counter("RTO", rdma.ACK_TIMEOUTS),
    rdma_counter("Rcvd Out of order packets", rdma.OUT_OF_SEQUENCE),
    rdma_counter("CRC errors", rdma.ICRC_ERRORS),
    # ORD: READs that this host may have outstanding; IRD: READs that it accepts.
    rdma_counter("ord limit count", rdma.READ_LIMIT, labels=(("side", "requester"),)),
    rdma_counter("ird limit count", rdma.READ_LIMIT, labels=(("side", "responder"),)),
)

DRIVER = Driver(
    name="ice",
    kernel_names=("ice", "irdma", "idpf"),
    device_pattern="irdma.+",
    ethtool=(*PORT, *HOST),
    port=RDMA,
    notes=(
        "Pause is counted in XOFF and XON frames, without any duration: a paused share cannot be told.",
        "FEC blocks are read by netlink (ethtool --show-fec), they are not in ethtool -S.",
        "Names with .nic exist on the physical function only; a virtual function runs iavf, which has few names of its own.",
        "illegal_bytes.nic counts packets that held a code no symbol stands for.",
        "tcpRetransSegs counts the retransmissions of RoCE on cards that speak it.",
        "Only the third generation of irdma tells sequence errors, timeouts and receiver-not-ready apart.",
        "The driver widens narrow counters when they are read and once a minute.",
    ),
)
