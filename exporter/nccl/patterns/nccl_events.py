"""NCCL: asynchronous events of devices (``transport/net_ib/common.cc``), port failover and recovery (``p2p_resiliency*.cc``).

The event thread never sets a CUDA device, so the number in the prefix of these lines is no GPU.
"""

from __future__ import annotations

import re
from typing import Literal

from exporter.nccl.facts import EVENTS, AsyncEvent, Fact, Record, Resiliency
from exporter.nccl.pattern import Make, Pattern, failure, line, noise

TEXTS = {
    "CQ error": "cq_error",
    "local work queue catastrophic error": "qp_fatal",
    "invalid request local work queue error": "qp_request_error",
    "local access violation work queue error": "qp_access_error",
    "communication established": "communication_established",
    "send queue drained": "send_queue_drained",
    "path migrated": "path_migrated",
    "path migration request error": "path_migration_error",
    "local catastrophic error": "device_fatal",
    "port active": "port_active",
    "port error": "port_error",
    "LID change": "lid_change",
    "P_Key change": "pkey_change",
    "SM change": "sm_change",
    "SRQ catastrophic error": "srq_error",
    "SRQ limit reached": "srq_limit_reached",
    "last WQE reached": "last_wqe_reached",
    "client reregistration": "client_reregistration",
    "GID table change": "gid_change",
    "WQ fatal": "wq_fatal",
    "device speed change": "speed_change",
}
"""``ibv_event_type_str`` (rdma-core v64), in the order of :data:`~exporter.nccl.facts.EVENTS`."""
FATAL = frozenset(
    ("cq_error", "qp_fatal", "qp_request_error", "qp_access_error", "device_fatal", "srq_error", "wq_fatal")
)
UNKNOWN = "unknown"

_PORT = r"(?P<hca>[^\s:]{1,64}):(?P<port>\d+)"
_TEXT = r"(?P<text>[A-Za-z_][A-Za-z_ ]{1,60}[a-z])"
_FUNCTION = r"(?:\w{1,80}: )?"


def named(text: str) -> str:
    """The name of an event, from what libibverbs calls it; more text may follow."""
    return TEXTS.get(text) or next((name for begin, name in TEXTS.items() if text.startswith(begin)), UNKNOWN)


def _event(event: str = "", fatal: bool = False) -> Make:
    def make(match: re.Match[str], record: Record) -> Fact:
        group = match.groupdict()
        name = event or named(group["text"])
        port = group.get("port")
        return AsyncEvent(name, group.get("hca") or "", int(port) if port else None, fatal or name in FATAL)

    return make


def _numbered(match: re.Match[str], record: Record) -> Fact:
    number = int(match["number"])
    name = EVENTS[number] if number < len(EVENTS) else UNKNOWN
    return AsyncEvent(name, match["hca"], int(match["port"]), name in FATAL)


def _resiliency(
    what: Literal["failed", "recovered", "recovery_failed", "permanent", "fatal", "replaced"], device: int = 0
) -> Make:
    return lambda match, record: Resiliency(what, int(match[device]) if device else None)


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="event_no_device",
        first="NET/IB : Got async event : ",
        regex=re.compile(r"NET/IB : Got async event : " + _TEXT),
        make=_event(),
        until="2.19.4",
        examples=("NET/IB : Got async event : port error", "NET/IB : Got async event : client reregistration"),
    ),
    Pattern(
        name="event",
        first="NET/IB : ",
        holds=" Got async event : ",
        regex=re.compile(rf"NET/IB : {_PORT} Got async event : {_TEXT}"),
        make=_event(),
        since="2.20.3",
        until="2.22.3",
        examples=("NET/IB : mlx5_0:1 Got async event : port active",),
    ),
    Pattern(
        name="event_error",
        first="NET/IB : ",
        holds=" Got async error event: ",
        regex=re.compile(rf"NET/IB : {_PORT} Got async error event: {_TEXT}"),
        make=_event(),
        since="2.23.4",
        until="2.28.3",
        examples=("NET/IB : mlx5_0:1 Got async error event: port error",),
    ),
    Pattern(
        name="event_non_fatal",
        first="NET/IB : ",
        holds=" Got non-fatal async event: ",
        regex=re.compile(rf"NET/IB : {_PORT} Got non-fatal async event: [^()]{{1,80}}\((?P<number>\d+)\)"),
        make=_numbered,
        since="2.28.7",
        examples=("NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)",),
    ),
    Pattern(
        name="event_unknown",
        first="NET/IB : ",
        holds=" unknown event type (",
        regex=re.compile(rf"NET/IB : {_PORT} unknown event type \((?P<number>\d+)\)"),
        make=_numbered,
        since="2.23.4",
        examples=("NET/IB : mlx5_0:1 unknown event type (18)",),
    ),
    Pattern(
        name="event_fatal",
        first="NET/IB : ",
        holds=" async fatal event: ",
        regex=re.compile(rf"NET/IB : {_PORT} async fatal event: {_TEXT}"),
        make=_event(fatal=True),
        since="2.23.4",
        examples=("NET/IB : mlx5_0:1 async fatal event: local catastrophic error",),
    ),
    Pattern(
        name="event_fatal_object",
        first="NET/IB : ",
        holds=" async fatal event on ",
        regex=re.compile(rf"NET/IB : {_PORT} async fatal event on (?:CQ|QP|SRQ)[^:]{{0,200}}: {_TEXT}"),
        make=_event(fatal=True),
        since="2.23.4",
        examples=(
            "NET/IB : mlx5_0:1 async fatal event on CQ (0x7f2c14000b60): CQ error",
            "NET/IB : mlx5_0:1 async fatal event on CQ (0x7f2c14000b60) handle=3 cqe=512: CQ error",
            "NET/IB : mlx5_0:1 async fatal event on QP (0x7f2c14000b60): local work queue catastrophic error",
            "NET/IB : mlx5_0:1 async fatal event on QP (0x7f2c14000b60) qpn=77 handle=1 send_cq=2 recv_cq=2 state=6 "
            "sq_psn=0 rq_psn=0: invalid request local work queue error",
            "NET/IB : mlx5_0:1 async fatal event on SRQ, unused for now (0x7f2c14000b60): SRQ catastrophic error",
        ),
    ),
    Pattern(
        name="event_gid",
        first="NET/IB",
        holds="GID table changed",
        regex=re.compile(
            rf"NET/IB ?: (?:{_PORT} GID table changed|{_FUNCTION}GID table changed on "
            rf"(?P<hca2>[^\s:]{{1,64}}):(?P<port2>\d+))"
        ),
        make=lambda match, record: AsyncEvent(
            "gid_change", match["hca"] or match["hca2"], int(match["port"] or match["port2"]), False
        ),
        since="2.28.3",
        examples=(
            "NET/IB : mlx5_0:1 GID table changed",
            "NET/IB: ncclIbAsyncThreadMain: GID table changed on mlx5_0:1",
        ),
    ),
    Pattern(
        name="event_gid_fatal",
        first="NET/IB : ",
        holds=" marking device with fatal error after GID-change",
        regex=re.compile(rf"NET/IB : {_PORT} marking device with fatal error after GID-change"),
        make=_event("gid_change", fatal=True),
        since="2.31.2",
        examples=("NET/IB : mlx5_0:1 marking device with fatal error after GID-change event handler failed",),
    ),
    Pattern(
        name="event_gid_query",
        first="NET/IB : ",
        holds=" during GID change",
        regex=re.compile(rf"NET/IB : {_PORT} (?:query_port failed|GID info query failed \(-?\d+\)) during GID change"),
        make=failure("device", "a port cannot be queried after its GIDs changed", hca=1),
        since="2.31.2",
        examples=(
            "NET/IB : mlx5_0:1 query_port failed during GID change (res=5)",
            "NET/IB : mlx5_0:1 GID info query failed (5) during GID change",
        ),
    ),
    Pattern(
        name="event_gid_handled",
        first="NET/IB : ",
        holds="GID ",
        regex=re.compile(rf"NET/IB : {_PORT} (?:GID refreshed: |link is not Ethernet; ignoring GID change)"),
        make=noise("a changed GID was looked at"),
        since="2.31.2",
        examples=(
            "NET/IB : mlx5_0:1 GID refreshed: idx 3 -> 5, gid ::ffff:192.0.2.1 -> ::ffff:192.0.2.9",
            "NET/IB : mlx5_0:1 link is not Ethernet; ignoring GID change",
        ),
    ),
    Pattern(
        name="event_speed",
        first="NET/IB : ",
        holds=" speed change detected: ",
        regex=re.compile(rf"NET/IB : {_PORT} speed change detected: \d+ -> \d+ Mbps"),
        make=_event("speed_change"),
        since="2.30.7",
        examples=("NET/IB : mlx5_0:1 speed change detected: 400000 -> 200000 Mbps",),
    ),
    line(
        "communicator_fatal",
        "communicator encountered a fatal error (detected in %s)",
        failure("abort", "a communicator ends after a fatal event of a device", consequence=True),
        since="2.23.4",
        examples=("communicator encountered a fatal error (detected in ncclIbTest)",),
    ),
    line(
        "device_failed",
        "NET/IB: %FDevice %d marked as failed.",
        _resiliency("failed", 1),
        since="2.29.7",
        examples=(
            "NET/IB: ncclIbResiliencyHandle: Device 1 marked as failed. (Send comm=0x7f2c)",
            "NET/IB: Device 1 marked as failed. Initiating recovery? yes (Send comm=0x7f2c, outstandingRecovery=1)",
        ),
    ),
    line(
        "qp_replaced",
        "NET/IB: %FReplacing QP: qpIndex=%d (qp_num=%d, devIndex=%d) to",
        _resiliency("replaced", 3),
        since="2.29.7",
        examples=(
            "NET/IB: ncclIbReplaceQp: Replacing QP: qpIndex=0 (qp_num=77, devIndex=0) to qpIndex=1 "
            "(qp_num=78, devIndex=1) on Send communicator (comm=0x7f2c)",
        ),
    ),
    line(
        "device_recovered",
        "NET/IB: %FDevice %d has been recovered",
        _resiliency("recovered", 1),
        since="2.30.3",
        examples=(
            "NET/IB: ncclIbRecovered: Device 1 has been recovered for resiliency context "
            "(Send comm=0x7f2c, outstandingRecovery=0)",
        ),
    ),
    line(
        "recovery_failed",
        "NET/IB: %FPort recovery failed for %S comm=%p devIndex=%d",
        _resiliency("recovery_failed", 3),
        since="2.30.3",
        examples=("NET/IB: ncclIbRecoveryProgress: Port recovery failed for Send comm=0x7f2c devIndex=1",),
    ),
    line(
        "permanent",
        "NET/IB: %FMarking device %d as permanently failed",
        _resiliency("permanent", 1),
        since="2.30.3",
        examples=("NET/IB: ncclIbPermanent: Marking device 1 as permanently failed (Send comm=0x7f2c)",),
    ),
    line(
        "several_failed",
        "NET/IB: %FFatal error. Detected %d failed devices out of %d devices on the",
        _resiliency("fatal"),
        since="2.30.3",
        examples=(
            "NET/IB: Fatal error. Detected 2 failed devices out of 2 devices on the Send communicator (comm=0x7f2c). "
            "No support for more than a single failed device.",
        ),
    ),
    line(
        "resiliency_fatal",
        "NET/IB: %FThe error is fatal (%S). Cannot continue.",
        _resiliency("fatal"),
        since="2.29.7",
        examples=(
            "NET/IB: ncclIbResiliencyHandle: The error is fatal (Resiliency is disabled). Cannot continue.",
            "NET/IB: The error is fatal (Resiliency is disabled). Cannot continue.",
        ),
    ),
    Pattern(
        name="resiliency_stuck",
        first="NET/IB: ",
        regex=re.compile(
            rf"NET/IB: {_FUNCTION}(?:Unsupported completion status |Maximum number of probing attempts \("
            r"|Could not find a (?:replacement QP for the failed QP|functional device to post the probe) )"
        ),
        make=failure("resiliency", "port failover cannot go on"),
        since="2.29.7",
        examples=(
            "NET/IB: Unsupported completion status IBV_WC_GENERAL_ERR (21)",
            "NET/IB: Maximum number of probing attempts (3) reached for request 0x7f2c (id=1). Cannot post another probe.",
            "NET/IB: Could not find a replacement QP for the failed QP with qpIndex=0 (devIndex=1)",
            "NET/IB: ncclIbProbe: Could not find a functional device to post the probe for request 0x7f2c (id=1)",
        ),
    ),
    Pattern(
        name="resiliency_step_failed",
        first="NET/IB: ",
        regex=re.compile(
            rf"NET/IB: {_FUNCTION}(?:(?:ECE|Init|RTR|RTS|Reset|Post recv WR) failed \(-?\d+\) for |QP "
            rf"reconfiguration failed for "
            r"|Failed to (?:reconfigure probing|restore Flush) QP |Resiliency QPs reconfigure failed; )"
        ),
        make=noise("one step of a port recovery, told as a whole by recovery_failed"),
        since="2.31.2",
        examples=(
            "NET/IB: ncclIbReconfigure: RTR failed (110) for QP devIndex=1 qp_num=77 localGidIndex=3 "
            "(port still down or GID not yet registered) (Send comm=0x7f2c)",
            "NET/IB: ncclIbReconfigure: Failed to restore Flush QP on device 1 (comm=0x7f2c)",
            "NET/IB: ncclIbReconfigure: Resiliency QPs reconfigure failed; failing port recovery for Send "
            "comm=0x7f2c devIndex=1",
        ),
    ),
    Pattern(
        name="resiliency_told",
        first="NET/IB: ",
        regex=re.compile(
            rf"NET/IB: {_FUNCTION}(?:Device \d+ (?:was already marked as failed|will not be attempted to be "
            rf"recovered any more)"
            r"|Port recovery (?:succeeded for devIndex=|is (?:enabled|disabled) for the resiliency context|async thread )"
            r"|(?:Starting|Shutting down) port recovery async thread|Re(?:covery for device \d+ failed due to max attempts|"
            r"configuring (?:port-recovery UC|probing) QP )|Resiliency is (?:being enabled|disabled|enabled) on (?:a|the) "
            r"|StartDelay elapsed; |The error is not fatal\.)"
        ),
        make=noise("what port failover does, told by other lines"),
        since="2.29.7",
        examples=(
            "NET/IB: ncclIbResiliencyHandle: Device 1 was already marked as failed.",
            "NET/IB: ncclIbRecoveryProgress: Port recovery succeeded for devIndex=1 (Send comm=0x7f2c)",
            "NET/IB: ncclIbRecoveryProgress: Recovery for device 1 failed due to max attempts reached (Send comm=0x7f2c)",
            "NET/IB: ncclIbResiliencyInit: Resiliency is disabled on the Send communicator (comm=0x7f2c)",
            "NET/IB: ncclIbResiliencyHandle: The error is not fatal. Trying to continue...",
        ),
    ),
    Pattern(
        name="resiliency_protocol",
        first="NET/IB: ",
        regex=re.compile(
            rf"NET/IB: {_FUNCTION}(?:Receiver expected (?:RECV|SEND|final ACK)|Sender (?:expected (?:ACK|RECV"
            rf"|SEND)|received duplicate) )"
        ),
        make=noise("messages of a port recovery that came out of order"),
        since="2.31.2",
        examples=(
            "NET/IB: Receiver expected RECV completion for alive message on device 1 (comm=0x7f2c), got IBV_WC_SEND(0)",
            "NET/IB: Sender received duplicate SEND completion for alive messages on device 1 (comm=0x7f2c)",
        ),
    ),
    Pattern(
        name="resiliency_internal",
        first="NET/IB: ",
        regex=re.compile(
            r"NET/IB: (?:\d+ port recovery (?:close requests|inbox entries|queue entries) remain |(?:CQ|RQ) size "
            r"|Device \d+ state is |Dummy receive completion |Invalid (?:RQ size|remote completion record"
            r"|resiliency device) "
            r"|Outstanding probe count |Port recovery (?:QP count|context|is disabled while) |Prob(?:e "
            r"completion|ing QP) count "
            r"|Remote completion records |Request completion output |Resiliency (?:base communicator|context) "
            r"|Sender port recovery QP count )"
        ),
        make=failure("protocol", "port failover found its own state wrong"),
        since="2.31.2",
        examples=(
            "NET/IB: Resiliency context is NULL",
            "NET/IB: Port recovery QP count 9 exceeds maximum 8",
            "NET/IB: 2 port recovery queue entries remain when stopping recovery thread",
        ),
    ),
)
