"""Huawei Kunpeng (HIP08 and later): hns3 and hns_roce.

Sources: drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c, drivers/infiniband/hw/hns/hns_roce_main.c.
"""

from __future__ import annotations

from functools import partial

from exporter.catalogue import ethernet, rdma
from exporter.drivers.entry import Driver, counter, family, left_out

mac_counter = partial(counter, physical=True)
mac_family = partial(family, physical=True)

MAC = (
    mac_family("mac_rx_pfc_pri(?P<priority>[0-7])_pkt_num", ethernet.PFC_RECEIVED_FRAMES),
    mac_family("mac_tx_pfc_pri(?P<priority>[0-7])_pkt_num", ethernet.PFC_TRANSMITTED_FRAMES),
    mac_family("mac_rx_pfc_pri(?P<priority>[0-7])_xoff_time", ethernet.PFC_RECEIVED_XOFF_TIME),
    mac_family("mac_tx_pfc_pri(?P<priority>[0-7])_xoff_time", ethernet.PFC_TRANSMITTED_XOFF_TIME),
    mac_counter("mac_rx_pfc_pkt_num", ethernet.PFC_PORT_RECEIVED_FRAMES),
    mac_counter("mac_tx_pfc_pkt_num", ethernet.PFC_PORT_TRANSMITTED_FRAMES),
    mac_counter("mac_rx_mac_pause_num", ethernet.GLOBAL_RECEIVED_FRAMES),
    mac_counter("mac_tx_mac_pause_num", ethernet.GLOBAL_TRANSMITTED_FRAMES),
    mac_counter("mac_rx_pause_xoff_time", ethernet.GLOBAL_RECEIVED_XOFF_TIME),
    mac_counter("mac_tx_pause_xoff_time", ethernet.GLOBAL_TRANSMITTED_XOFF_TIME),
    mac_counter("mac_rx_fcs_err_pkt_num", ethernet.CRC_ERRORS),
    mac_counter("mac_rx_oversize_pkt_num", ethernet.OVERSIZE),
    mac_counter("mac_rx_undersize_pkt_num", ethernet.PHY_ERRORS, labels=(("kind", "undersize"),)),
    mac_counter("mac_rx_undermin_pkt_num", ethernet.PHY_ERRORS, labels=(("kind", "under_minimum"),)),
    mac_counter("mac_rx_fragment_pkt_num", ethernet.PHY_ERRORS, labels=(("kind", "fragments"),)),
    mac_counter("mac_rx_jabber_pkt_num", ethernet.PHY_ERRORS, labels=(("kind", "jabber"),)),
    mac_counter("mac_tx_err_all_pkt_num", ethernet.PHY_ERRORS, labels=(("kind", "transmit"),)),
    mac_counter("mac_rx_good_oct_num", ethernet.RECEIVED_BYTES),
    mac_counter("mac_tx_good_oct_num", ethernet.TRANSMITTED_BYTES),
    mac_counter("mac_rx_good_pkt_num", ethernet.RECEIVED_PACKETS),
    mac_counter("mac_tx_good_pkt_num", ethernet.TRANSMITTED_PACKETS),
    left_out("mac_(rx|tx)_[a-z0-9_]+_(pkt|oct)_num", "packet sizes, and parts of what is served", pattern=True),
    left_out("(rx|tx)q[0-9]+_[a-z0-9_]+", "statistics of single queues come and go with ethtool -L", pattern=True),
)

RDMA = (
    counter("rx_pkt", rdma.RECEIVED_PACKETS),
    counter("tx_pkt", rdma.TRANSMITTED_PACKETS),
    left_out("(rx|tx)_(rc|uc|ud|xrc)_pkt", "a part of rx_pkt and tx_pkt, by transport", pattern=True),
    counter("rx_err_pkt", rdma.DROPS, labels=(("kind", "receive_errors"),)),
    counter("tx_err_pkt", rdma.DROPS, labels=(("kind", "transmit_errors"),)),
    counter("trp_get_mpt_err_pkt", rdma.QP_ERRORS, labels=(("kind", "local_protection"),)),
    counter("trp_get_irrl_err_pkt", rdma.QP_ERRORS, labels=(("kind", "inbound_read_queue"),)),
    counter("tx_cnp_pkt", rdma.CNP_SENT),
    counter("rx_cnp_pkt", rdma.CNP_HANDLED),
    counter("ecn_doorbell", rdma.CONGESTED_QPS, labels=(("event", "ecn_doorbell"),)),
    counter("cmds", rdma.ADMIN_COMMANDS, width="sw64"),
    counter("cmds_err", rdma.ADMIN_COMMAND_ERRORS, width="sw64"),
    left_out("rx_buffer", "its meaning is not documented"),
    left_out("trp_rx_sof|cq_cqe|cq_poe|cq_notify", "work of the device's engines", pattern=True),
    left_out("aeqe|ceqe|posted_mbx|polled_mbx|mbx_event", "events and mailboxes of the driver", pattern=True),
    left_out(
        "[a-z]+_(create|modify|alloc|reg|rereg)_err|mmap_err", "verbs that failed; the program is told", pattern=True
    ),
)

DRIVER = Driver(
    name="hns",
    kernel_names=("hns3", "hns_roce_hw_v2", "hns_roce"),
    device_pattern="hns_.+",
    ethtool=MAC,
    port=RDMA,
    notes=(
        "The unit of xoff_time is not documented: it has families of its own and is never called seconds.",
        "MAC counters exist on the physical function only, RDMA counters neither on virtual functions nor on HIP08.",
        "RDMA packets are counted, bytes are not; nothing tells retransmission, sequence errors or timeouts.",
        "rx_cnp_pkt counts the CNPs received; whether each slowed a queue pair is not told.",
    ),
)
