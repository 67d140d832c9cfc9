"""Names of counters as the drivers list them, for the synthetic machines.

Braces are alternatives: ``{rx,tx}_bytes`` is ``rx_bytes`` and ``tx_bytes``, ``prio{0-2}`` is ``prio0`` to ``prio2``. A name
stands on its own line, since some hold blanks. Written from the drivers' sources, apart from the tables under test.
"""

from __future__ import annotations

import re
from itertools import product


def names(text: str) -> tuple[str, ...]:
    """Return all names that the lines stand for, in order."""
    return tuple(name for line in text.splitlines() if line.strip() for name in _expanded(line.strip()))


def _expanded(line: str) -> list[str]:
    parts = re.split(r"\{([^}]+)\}", line)
    choices = [_choices(part) if index % 2 else [part] for index, part in enumerate(parts)]
    return ["".join(chosen) for chosen in product(*choices)]


def _choices(text: str) -> list[str]:
    if match := re.fullmatch(r"(\d)-(\d)", text):
        return [str(number) for number in range(int(match[1]), int(match[2]) + 1)]
    return text.split(",")


MLX5_HEAD = names("""
rx_packets
rx_bytes
tx_packets
tx_bytes
rx_ecn_mark
tx_queue_{stopped,wake,dropped}
tx_recover
rx_recover
tx_cqe_err
rx_wqe_err
rx_buff_alloc_err
rx_oversize_pkts_sw_drop
ch_{poll,aff_change,eq_rearm}
rx_out_of_buffer
rx_if_down_packets
rx_steer_missed_packets
dev_internal_queue_oob
rx_oversize_pkts_buffer
{rx,tx}_vport_{unicast,multicast,broadcast}_{packets,bytes}
{rx,tx}_vport_rdma_{unicast,multicast}_{packets,bytes}
vport_loopback_{packets,bytes}
""")
MLX5_PHYSICAL = names("""
{tx,rx}_{packets,bytes}_phy
rx_crc_errors_phy
rx_in_range_len_errors_phy
rx_out_of_range_len_phy
rx_oversize_pkts_phy
rx_symbol_err_phy
{tx,rx}_{multicast,broadcast,mac_control}_phy
rx_unsupported_op_phy
{rx,tx}_pause_ctrl_phy
{rx,tx}_discards_phy
tx_errors_phy
rx_{undersize_pkts,fragments,jabbers}_phy
rx_{64,65_to_127,128_to_255,256_to_511,512_to_1023,1024_to_1518,1519_to_2047,2048_to_4095,4096_to_8191,8192_to_10239}_bytes_phy
link_down_events_phy
rx_pcs_symbol_err_phy
rx_corrected_bits_phy
rx_err_lane_{0-3}_phy
rx_buffer_passed_thres_phy
{rx,tx}_pci_signal_integrity
outbound_pci_buffer_overflow
outbound_pci_stalled_{rd,wr}
outbound_pci_stalled_{rd,wr}_events
pci_bw_{inbound,outbound}_{high,low}
{rx,tx}_prio{0-7}_{bytes,packets}
rx_prio{0-7}_discards
""")
MLX5_PFC = names("""
{rx,tx}_prio3_{pause,pause_duration}
rx_prio3_pause_transition
tx_pause_storm_{warning,error}_events
""")
MLX5_GLOBAL_PAUSE = names("""
{rx,tx}_global_{pause,pause_duration}
rx_global_pause_transition
tx_pause_storm_{warning,error}_events
""")
MLX5_TAIL = names("""
module_{unplug,bus_stuck,high_temp,bad_shorted}
rx{0-1}_{packets,bytes,csum_complete,cache_reuse}
tx{0-1}_{packets,bytes,cqe_err}
ch{0-1}_{events,poll}
rx_prio{0-7}_{buf_discard,cong_discard,marked}
""")
MLX5_RDMA = names("""
rx_{write,read,atomic}_requests
rx_dct_connect
out_of_buffer
out_of_sequence
duplicate_request
rnr_nak_retry_err
packet_seq_err
implied_nak_seq_err
local_ack_timeout_err
resp_local_length_error
{resp,req}_cqe_error
req_remote_invalid_request
{req,resp}_remote_access_errors
{resp,req}_cqe_flush_error
req_{transport,rnr}_retries_exceeded
roce_adp_retrans
roce_adp_retrans_to
roce_slow_restart
roce_slow_restart_cnps
roce_slow_restart_trans
rp_cnp_{ignored,handled}
np_ecn_marked_roce_packets
np_cnp_sent
rx_icrc_encapsulated
""")
MLX5_OPTIONAL = names("""
cc_rx_{ce,cnp}_pkts
cc_tx_cnp_pkts
rdma_{tx,rx}_{packets,bytes}
""")
PMA = names("""
symbol_error
link_error_recovery
link_downed
port_rcv_errors
port_rcv_remote_physical_errors
port_rcv_switch_relay_errors
port_xmit_discards
port_{xmit,rcv}_constraint_errors
local_link_integrity_errors
excessive_buffer_overrun_errors
VL15_dropped
port_xmit_wait
port_{xmit,rcv}_data
port_{xmit,rcv}_packets
{unicast,multicast}_{xmit,rcv}_packets
""")

BNXT = names("""
[{0-1}]: rx_{ucast,mcast,bcast}_packets
[{0-1}]: rx_{discards,errors}
[{0-1}]: tx_{ucast,mcast,bcast}_packets
[{0-1}]: tx_{errors,discards}
rx_total_{l4_csum_errors,resets,buf_errors,oom_discards,netpoll_discards,ring_discards}
tx_total_{resets,ring_discards}
total_missed_irqs
rx_{64b,65b_127b,128b_255b,256b_511b,512b_1023b,1024b_1518b,good_vlan,1519b_2047b,2048b_4095b,4096b_9216b,9217b_16383b}_frames
rx_{total,ucast,mcast,bcast,fcs_err,ctrl,pause,pfc,align_err,ovrsz,jbr,mtu_err,tagged,double_tagged,good}_frames
rx_pfc_ena_frames_pri{0-7}
rx_undrsz_frames
rx_eee_lpi_{events,duration}
rx_{bytes,runt_bytes,runt_frames,stat_discard,stat_err}
tx_{64b,65b_127b,128b_255b,256b_511b,512b_1023b,1024b_1518b,good_vlan,1519b_2047b,2048b_4095b,4096b_9216b,9217b_16383b}_frames
tx_{good,total,ucast,mcast,bcast,pause,pfc,jabber,fcs_err}_frames
tx_{err,fifo_underruns}
tx_pfc_ena_frames_pri{0-7}
tx_eee_lpi_{events,duration}
tx_total_collisions
tx_{bytes,xthol_frames,stat_discard,stat_error}
link_down_events
{continuous,resume}_{pause,roce_pause}_events
rx_{bytes,packets}_cos{0-7}
pfc_pri{0-7}_rx_{duration_us,transitions}
rx_{bits,buffer_passed_threshold,pcs_symbol_err,corrected_bits}
rx_discard_{bytes,packets}_cos{0-7}
rx_fec_{corrected,uncorrectable}_blocks
rx_filter_miss
tx_{bytes,packets}_cos{0-7}
pfc_pri{0-7}_tx_{duration_us,transitions}
{rx,tx}_{bytes,packets}_pri{0-7}
""")
BNXT_RDMA = names("""
active_{pds,ahs,qps,rc_qps,ud_qps,srqs,cqs,mrs,mws}
watermark_{pds,ahs,qps,rc_qps,ud_qps,srqs,cqs,mrs,mws}
resize_cq_cnt
{rx,tx}_{pkts,bytes}
recoverable_errors
{rx,tx}_roce_{errors,discards}
to_retransmits
seq_err_naks_rcvd
max_retry_exceeded
rnr_naks_rcvd
missing_resp
unrecoverable_err
bad_resp_err
local_qp_op_err
local_protection_err
mem_mgmt_op_err
remote_{invalid_req,access,op}_err
dup_req
res_{exceed_max,length_mismatch,exceeds_wqe,opcode_err}
res_rx_{invalid_rkey,domain_err,no_perm,range_err}
res_tx_{invalid_rkey,domain_err,no_perm,range_err}
res_{irrq_oflow,unsup_opcode,unaligned_atomic,rem_inv_err,mem_err,srq_err,cmp_err,invalid_dup_rkey,wqe_format_err}
res_{cq_load_err,srq_load_err,tx_pci_err,rx_pci_err}
oos_drop_count
{tx,rx}_{atomic,read,write,send}_req
{tx,rx}_read_resp
{rx,tx}_roce_only_{pkts,bytes}
rx_roce_good_{pkts,bytes}
rx_out_of_buffer
{tx,rx}_cnp_pkts
rx_ecn_marked_pkts
pacing_{reschedule,complete,alerts}
db_fifo_register
""")
BNXT_OUT_OF_TREE = {
    "to_retransmits": "local_ack_timeout_err",
    "seq_err_naks_rcvd": "packet_seq_err",
    "rnr_naks_rcvd": "rnr_nak_retry_err",
    "missing_resp": "implied_nak_seq_err",
    "dup_req": "duplicate_request",
    "remote_invalid_req_err": "req_remote_invalid_request",
    "remote_access_err": "req_remote_access_errors",
    "res_length_mismatch": "resp_local_length_error",
    "oos_drop_count": "out_of_sequence",
    "rx_out_of_buffer": "out_of_buffer",
    "tx_cnp_pkts": "np_cnp_sent",
    "rx_cnp_pkts": "rp_cnp_handled",
    "rx_ecn_marked_pkts": "np_ecn_marked_roce_packets",
}
"""Upstream name -> the name that Broadcom's own builds of bnxt_re use."""
BNXT_OUT_OF_TREE_MORE = names("""
rp_cnp_ignored
rx_icrc_encapsulated
{req,resp}_cqe_error
{req,resp}_cqe_flush_error
roce_{adp_retrans,adp_retrans_to,slow_restart,slow_restart_cnps,slow_restart_trans}
""")

ICE = names("""
rx_{unicast,multicast,broadcast,bytes,dropped,unknown_protocol,alloc_fail,pg_alloc_fail}
tx_{unicast,multicast,broadcast,bytes,errors,linearize,busy,restart}
tx_queue_{0-1}_{packets,bytes}
rx_queue_{0-1}_{packets,bytes}
rx_{bytes,unicast,multicast,broadcast,dropped,crc_errors,oversize,undersize,fragments,jabber,csum_bad,eipe_error}.nic
tx_{bytes,unicast,multicast,broadcast,errors,timeout,dropped_link_down}.nic
{rx,tx}_size_{64,127,255,511,1023,1522,big}.nic
link_{xon,xoff}_{rx,tx}.nic
illegal_bytes.nic
mac_{local,remote}_faults.nic
fdir_sb_{match,status}.nic
tx_hwtstamp_{skipped,timeouts,flushed,discarded}
late_cached_phc_updates
tx_priority_{0-7}_{xon,xoff}.nic
rx_priority_{0-7}_{xon,xoff}.nic
""")
IRDMA_GEN2 = names("""
ip4In{Discards,TruncatedPkts}
ip4OutNoRoutes
ip6In{Discards,TruncatedPkts}
ip6OutNoRoutes
tcpRetransSegs
tcpIn{OptErrors,ProtoErrors}
rxVlanErrors
ip{4,6}In{Octets,Pkts,ReasmRqd,McastPkts,McastOctets}
ip{4,6}Out{Octets,Pkts,SegRqd,McastPkts,McastOctets}
tcp{In,Out}Segs
iw{In,Out}Rdma{Reads,Sends,Writes}
iwRdma{Bnd,Inv}
RxUDP
RxECNMrkd
cnp{Handled,Ignored}
TxUDP
cnpSent
""")
IRDMA_GEN3 = names("""
ip4In{Discards,TruncatedPkts}
ip4OutNoRoutes
ip6In{Discards,TruncatedPkts}
ip6OutNoRoutes
RetransSegs
In{OptErrors,ProtoErrors}
rxVlanErrors
ip{4,6}In{Octets,Pkts,ReasmRqd,McastPkts,McastOctets}
ip{4,6}Out{Octets,Pkts,SegRqd,McastPkts,McastOctets}
{In,Out}Segs
{In,Out}Rdma{Reads,Sends,Writes}
Rdma{Bnd,Inv}
RxUDP
RxECNMrkd
cnp{Handled,Ignored}
TxUDP
cnpSent
RNR {sent,received}
{ord,ird} limit count
{Rx,Tx} {atomics,ATS}
Nak Sequence Error
Nak Sequence Error Implied
RTO
Rcvd Out of order packets
CRC errors
""")

HNS3 = names("""
mac_tx_{mac_pause_num,pfc_pkt_num}
mac_rx_{mac_pause_num,pfc_pkt_num}
mac_{tx,rx}_pfc_pri{0-7}_pkt_num
mac_{tx,rx}_pfc_pri{0-7}_xoff_time
mac_{tx,rx}_pause_xoff_time
mac_{tx,rx}_total_{pkt_num,oct_num}
mac_{tx,rx}_good_{pkt_num,oct_num}
mac_{tx,rx}_bad_{pkt_num,oct_num}
mac_{tx,rx}_{uni,multi,broad}_pkt_num
mac_rx_fcs_err_pkt_num
""")
HNS = names("""
rx_{rc,uc,ud,xrc}_pkt
rx_pkt
rx_err_pkt
rx_cnp_pkt
tx_{rc,uc,ud,xrc}_pkt
tx_pkt
tx_err_pkt
tx_cnp_pkt
trp_get_{mpt,irrl}_err_pkt
ecn_doorbell
rx_buffer
trp_rx_sof
cq_{cqe,poe,notify}
""")

MANA = names("""
stop_queue
wake_queue
tx_cq_err
tx_cqe_unknown_type
rx_coalesced_err
rx_cqe_unknown_type
hc_rx_{discards_no_wqe,err_vport_disabled,bytes}
hc_rx_{ucast,bcast,mcast}_{pkts,bytes}
hc_tx_err_{gf_disabled,vport_disabled,inval_vportoffset_pkt,vlan_enforcement,eth_type_enforcement,sa_enforcement}
hc_tx_err_{sqpdid_enforcement,cqpdid_enforcement,mtu_violation,inval_oob,gdma}
hc_tx_bytes
hc_tx_{ucast,bcast,mcast}_{pkts,bytes}
rx_{0-1}_{packets,bytes,xdp_drop}
tx_{0-1}_{packets,bytes}
""")
MANA_RDMA = names("""
requester_timeout
requester_oos_nak
requester_rnr_nak
responder_rnr_nak
responder_oos
responder_dup_request
requester_implicit_nak
requester_readresp_psn_mismatch
nak_inv_req
nak_access_error
nak_opp_error
nak_inv_read
responder_local_len_error
requestor_local_prot_error
responder_rem_access_error
responder_local_qp_error
responder_malformed_wqe
general_hw_error
requester_rnr_nak_retries_exceeded
requester_retries_exceeded
total_fatal_error
received_cnps
num_qps_{congested,recovered}
rate_inc_events
current_rate
dup_rx_requests
{tx,rx}_{bytes,packets}
rx_{send,write,read}_requests
""")
MANA_RDMA_DEVICE = names("""
sent_cnps
received_ecns
received_cnp_count
qp_congested_events
qp_recovered_events
rate_inc_events
""")

ERDMA = names("""
tx_{reqs,packets,bytes,disable_drop,bps_limit_drop,pps_limit_drop}_cnt
rx_{packets,bytes,disable_drop,bps_limit_drop,pps_limit_drop}_cnt
""")

EFA = names("""
tx_{bytes,pkts}
rx_{bytes,pkts,drops}
send_{bytes,wrs}
recv_{bytes,wrs}
rdma_read_{wrs,bytes,wr_err,resp_bytes}
rdma_write_{wrs,bytes,wr_err,recv_bytes}
retrans_{bytes,pkts,timeout_events}
impaired_remote_conn_events
unresponsive_remote_events
""")
EFA_DEVICE = names("""
{submitted,completed}_cmds
cmds_err
no_completion_cmds
keep_alive_rcvd
{alloc_pd,create_qp,create_cq,reg_mr,alloc_ucontext,create_ah,mmap,alloc_mr,get_dma_mr}_err
""")
ENA = names("""
total_resets
reset_fail
tx_timeout
suspend
resume
wd_expired
interface_{up,down}
admin_q_pause
{bad_tx_req_id,bad_rx_req_id,bad_rx_desc_num,missing_intr,missing_tx_cmpl,invalid_state,admin_to,device_request_reset}
{bw_in,bw_out,pps,conntrack,linklocal}_allowance_exceeded
conntrack_allowance_available
ena_srd_{mode,tx_pkts,eligible_tx_pkts,rx_pkts,resource_utilization}
queue_{0-1}_tx_{cnt,bytes,queue_stop,queue_wakeup,dma_mapping_err,napi_comp,tx_poll,doorbells,missed_tx}
queue_{0-1}_rx_{cnt,bytes,rx_copybreak_pkt,csum_good,refil_partial,page_alloc_fail,skb_alloc_fail,bad_desc_num}
ena_admin_q_{aborted_cmd,submitted_cmd,completed_cmd,out_of_space,no_completion}
""")
