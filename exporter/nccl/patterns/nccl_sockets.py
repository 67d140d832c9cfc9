"""NCCL: sockets and bootstrap (``misc/socket.cc``, ``os/linux.cc``, ``bootstrap.cc``, ``transport/net_socket.cc``).

A peer is an address or, where NCCL looks it up, a host name; its port is left out.
"""

from __future__ import annotations

import re

from exporter.nccl.facts import Bootstrap, Fact, Failure, Record
from exporter.nccl.pattern import Make, Pattern, failure, line, noise

_PEER = r"([^\s<]{1,255})(?:<\d+>)?"
_CODES = {
    "Connection timed out": 110,
    "Connection refused": 111,
    "No route to host": 113,
    "Network is unreachable": 101,
    "Connection reset by peer": 104,
    "Broken pipe": 32,
    "Operation not permitted": 1,
    "Cannot assign requested address": 99,
    "Address already in use": 98,
    "Too many open files": 24,
    "No such file or directory": 2,
    "Cannot allocate memory": 12,
    "No space left on device": 28,
    "Invalid argument": 22,
    "No such device": 19,
    "Bad address": 14,
}
"""errno by what ``strerror`` says of it (Linux)."""


def errno_of(text: str) -> int | None:
    """The errno whose text is contained in a message, or None."""
    return next((code for name, code in _CODES.items() if name in text), None)


def _socket(what: str, error: int, peer: int = 0, consequence: bool = False) -> Make:
    """A failed socket call; ``error`` and ``peer`` are the numbers of the groups that hold them."""

    def make(match: re.Match[str], record: Record) -> Fact:
        return Failure("socket", what, errno_of(match[error]), match[peer] or "" if peer else "", "", consequence)

    return make


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="bootstrap",
        first="Bootstrap",
        holds=": Using",
        regex=re.compile(r"Bootstrap ?: Using ?(?:\[\d+\])?([^\s:]{1,64}):([^\s<]{1,64})"),
        make=lambda match, record: Bootstrap(match[1], match[2]),
        examples=(
            "Bootstrap : Using eth0:192.0.2.1<0>",
            "Bootstrap: Using eno1:198.51.100.20<0>",
            "Bootstrap : Using [0]ib0:10.148.0.76<0> [1]ib1:10.149.0.76<0>",
            "Bootstrap : Using ib0:fe80::a00:27ff:fe00:a1%ib0<0>",
            "Bootstrap: Using mlx5_0:1",
        ),
    ),
    line(
        "bootstrap_no_interface",
        "Bootstrap : no socket interface found",
        failure("bootstrap", "no interface matches NCCL_SOCKET_IFNAME"),
        examples=("Bootstrap : no socket interface found",),
    ),
    Pattern(
        name="bootstrap_root",
        first="Bootstrap Root : ",
        regex=re.compile(
            r"Bootstrap Root : (?:rank \d+ of \d+ ranks has already checked in|mismatch in |localId -?\d+ is out of range)"
        ),
        make=failure("bootstrap", "ranks disagree: a rank twice, or two jobs with one id"),
        examples=(
            "Bootstrap Root : rank 3 of 16 ranks has already checked in",
            "Bootstrap Root : mismatch in rank count from procs 16 : 8",
            "Bootstrap Root : mismatch in info from procs, nranks 16 vs 8, nroots 1 vs 1, iroot 0 vs 0",
            "Bootstrap Root : localId 9 is out of range",
        ),
    ),
    Pattern(
        name="bootstrap_truncated",
        first="Message truncated : received ",
        regex=re.compile(r"Message truncated : received "),
        make=failure("bootstrap", "a bootstrap message was cut: two jobs or two versions with one id"),
        examples=(
            "Message truncated : received 16 bytes instead of 8",
            "Message truncated : received 16,4 bytes instead of 8,4",
        ),
    ),
    Pattern(
        name="bootstrap_no_device",
        first="no device found ",
        regex=re.compile(r"no device found (?:matching|after excluding) "),
        make=failure("bootstrap", "no device matches NCCL_OOB_NET_IFNAME"),
        since="2.23.4",
        examples=(
            "no device found matching eth9, verify NCCL_OOB_NET_IFNAME",
            "no device found after excluding eth0, verify NCCL_OOB_NET_IFNAME",
            "no device found matching NCCL_OOB_NET_IFNAME=eth9, ignoring",
        ),
    ),
    Pattern(
        name="bootstrap_follow_up",
        first="bootstrap",
        regex=re.compile(
            r"bootstrap(?:Close: an asynchronous bootstrap send failed|Recv: an earlier asynchronous bootstrap send failed"
            r"|Send: (?:an earlier asynchronous send to peer \d+ failed|bootstrap state is closing))"
        ),
        make=failure("bootstrap", "a bootstrap message was not sent", consequence=True),
        since="2.32.3",
        examples=(
            "bootstrapClose: an asynchronous bootstrap send failed",
            "bootstrapRecv: an earlier asynchronous bootstrap send failed",
            "bootstrapSend: an earlier asynchronous send to peer 3 failed",
            "bootstrapSend: bootstrap state is closing",
        ),
    ),
    Pattern(
        name="bootstrap_misuse",
        first=("Unexpected connections ", "bcastGrowHandle: ", "ncclCommGetUniqueId should "),
        regex=re.compile(
            r"(?:Unexpected connections are not empty|bcastGrowHandle: parent comm and handle must be provided"
            r"|ncclCommGetUniqueId should not be called when NCCL_COMM_ID is set)(?!\S)"
        ),
        make=failure("bootstrap", "wrong use of the library"),
        examples=(
            "Unexpected connections are not empty",
            "ncclCommGetUniqueId should not be called when NCCL_COMM_ID is set",
            "bcastGrowHandle: parent comm and handle must be provided",
        ),
    ),
    Pattern(
        name="no_interface",
        first=("NET/", "RMA/"),
        holds=" interface found",
        regex=re.compile(r"(?:NET|RMA)/\S{1,40} : (?:no|No usable listening) interface found"),
        make=failure("socket", "no interface to use"),
        examples=("NET/Socket : no interface found", "NET/Socket : No usable listening interface found"),
    ),
    Pattern(
        name="closed_by_peer",
        first=("Net : Connection ", "socketProgress: ", "ncclOsSocketProgress: ", "cryptSocketProgressRaw: "),
        holds="onnection closed by remote peer ",
        regex=re.compile(
            r"(?:Net : |(?:ncclOs)?[sS]ocketProgress: |cryptSocketProgressRaw: )Connection closed by remote peer "
            + _PEER
        ),
        make=failure("socket", "the peer closed a connection", peer=1, consequence=True),
        examples=(
            "socketProgress: Connection closed by remote peer gpu-node1.labs.example<45074>",
            "Net : Connection closed by remote peer 192.0.2.9<40001>",
            "cryptSocketProgressRaw: Connection closed by remote peer 192.0.2.9<40001>",
        ),
    ),
    Pattern(
        name="call_failed",
        first=("ncclOsSocketProgressOpt: ", "socketProgressOpt: ", "Net : Call "),
        holds=": Call to ",
        regex=re.compile(
            r"(?:ncclOsSocketProgressOpt|socketProgressOpt|Net ?): Call to (?:recv|send)(?: from| to)? "
            + _PEER
            + r" failed : (.*)"
        ),
        make=_socket("receiving or sending failed", 2, 1),
        examples=(
            "socketProgressOpt: Call to recv from 192.0.2.9<40001> failed : Connection reset by peer",
            "ncclOsSocketProgressOpt: Call to send to 192.0.2.9<40001> failed : Broken pipe",
            "Net : Call to recv from 192.0.2.9<40001> failed : Connection timed out",
        ),
    ),
    Pattern(
        name="connect_retry",
        first=("Call to connect ", "socket", "ncclOsSocket", "ncclSocket"),
        holds="onnect",
        regex=re.compile(
            r"(?:Call to connect|\w{1,60}: connect(?: to "
            + _PEER
            + r")?) returned (.{1,100}?), retrying(?: \(\d+/\d+\))?"
        ),
        make=noise("a connection is tried again"),
        examples=(
            "socketPollConnect: connect returned No route to host, retrying (1/34) after sleep for 100 msec",
            "socketPollConnect: connect to 192.0.2.9<40001> returned Connection refused, retrying (1/34) "
            "after sleep for 100 msec",
            "Call to connect returned Connection refused, retrying",
        ),
    ),
    Pattern(
        name="connect_exceeded",
        first=("socket", "ncclOsSocket", "ncclSocket"),
        holds=", exceeded error retry count",
        regex=re.compile(r"\w{1,60}: connect(?: to " + _PEER + r")? returned (.{1,100}?), exceeded error retry count"),
        make=_socket("connecting failed after all retries", 2, 1),
        since="2.24.3",
        examples=(
            "socketPollConnect: connect returned No route to host, exceeded error retry count (34)",
            "socketPollConnect: connect to 192.0.2.9<40001> returned Connection timed out, exceeded error retry count "
            "after 34 attempts",
        ),
    ),
    Pattern(
        name="connect_failed",
        first=("socket", "ncclOsSocket", "ncclSocket", "Net : Connect "),
        holds="onnect to ",
        regex=re.compile(
            r"(?:Net ?|\w{1,60}): Connect to "
            + _PEER
            + r" (?:failed : (.{1,100})|returned -?\d+\(.{0,100}?\) errno \d+\(.{0,100}?\))"
        ),
        make=lambda match, record: Failure("socket", "connecting failed", errno_of(match[0]), match[1]),
        until="2.26.6",
        examples=(
            "socketStartConnect: Connect to 192.0.2.9<40001> failed : Network is unreachable",
            "Net : Connect to 192.0.2.9<40001> failed : No route to host",
            "socketPollConnect: Connect to 192.0.2.9<40001> returned 113(No route to host) errno "
            "115(Operation now in progress)",
        ),
    ),
    Pattern(
        name="connect_poll",
        first="socketPollConnect ",
        regex=re.compile(
            r"socketPollConnect (?:poll\(\) (?:failed with error (.{1,100})|returned )|to "
            + _PEER
            + r" failed with error (.{1,100}))"
        ),
        make=lambda match, record: Failure("socket", "connecting failed", errno_of(match[0]), match[2] or ""),
        since="2.16.5",
        until="2.28.9",
        examples=(
            "socketPollConnect poll() failed with error Connection refused",
            "socketPollConnect poll() returned 1",
            "socketPollConnect to 192.0.2.9<40001> failed with error Connection refused",
        ),
    ),
    Pattern(
        name="connect_gave_up",
        first="socket",
        holds=": exceeded ",
        regex=re.compile(r"socket(?:Poll|Start)Connect: exceeded (?:retries|timeouts) \(\d+\)"),
        make=failure("socket", "connecting failed after all retries"),
        since="2.16.2",
        until="2.23.4",
        examples=("socketPollConnect: exceeded retries (20000)", "socketStartConnect: exceeded timeouts (20000)"),
    ),
    Pattern(
        name="accept_failed",
        first="socketTryAccept: ",
        regex=re.compile(
            r"socketTryAccept: (?:Accept failed: (.{1,100})|get errno (\d+) |exceeded error retry count(?: "
            r"\(\d+\)| after \d+ attempts), (.{1,100}))"
        ),
        make=lambda match, record: Failure(
            "socket", "accepting a connection failed", int(match[2]) if match[2] else errno_of(match[0])
        ),
        since="2.16.2",
        until="2.28.9",
        examples=(
            "socketTryAccept: Accept failed: Too many open files",
            "socketTryAccept: get errno 24 that is not EAGAIN or EWOULDBLOCK",
            "socketTryAccept: exceeded error retry count (34), Connection reset by peer",
            "socketTryAccept: exceeded error retry count after 34 attempts, Connection reset by peer",
        ),
    ),
    Pattern(
        name="stray",
        first=("socketFinalizeAccept", "Handshake receive ", "Peer ", "Socket magic ", "Wrong socket type "),
        regex=re.compile(
            r"(?:socketFinalizeAccept(?: from "
            + _PEER
            + r")?: (?:wrong (?:magic|type|socket type)|socket magic mismatch|"
            r"handshake receive from \S{1,255} failed|peer \S{1,255} closed before magic)"
            r"|Handshake receive from \S{1,255} failed, discarding|Peer \S{1,255} closed before socket hello"
            r"|Socket magic mismatch from |Wrong socket type from )"
        ),
        make=noise("a connection of somebody else: a scanner, a health probe or an old job"),
        since="2.16.2",
        examples=(
            "socketFinalizeAccept: wrong magic 1 != 2",
            "socketFinalizeAccept from 192.0.2.9<40001>: wrong type 1 != 2",
            "socketFinalizeAccept from 192.0.2.9<40001>: socket magic mismatch (peer 0x1 != expected 0x2), "
            "discarding peer connection",
            "socketFinalizeAccept: handshake receive from 192.0.2.9<40001> failed, discarding peer connection",
            "socketFinalizeAccept: peer 192.0.2.9<40001> closed before magic handshake, discarding",
            "Handshake receive from 192.0.2.9<40001> failed, discarding peer connection",
            "Peer 192.0.2.9<40001> closed before socket hello, discarding",
            "Socket magic mismatch from 192.0.2.2<42630> (peer 0x1 != expected 0x2), discarding peer connection",
            "Wrong socket type from 192.0.2.2<42630> (peer 1 != expected 2 -- peer connected to wrong NCCL socket), "
            "discarding peer connection",
        ),
    ),
    Pattern(
        name="truncated",
        first="NET/Socket : peer ",
        holds=" message truncated",
        regex=re.compile(r"NET/Socket : peer " + _PEER + r" message truncated : "),
        make=failure("protocol", "ranks run different collectives: a message has another size", peer=1),
        examples=(
            "NET/Socket : peer 192.0.2.9<40001> message truncated : receiving 16 bytes instead of 8",
            "NET/Socket : peer 192.0.2.9<40001> message truncated : receiving 16 bytes instead of 8. If you believe your "
            "socket network is in a healthy state, there may be a mismatch in collective sizes or environment settings "
            "(e.g. NCCL_PROTO, NCCL_ALGO) between ranks",
        ),
    ),
    Pattern(
        name="no_subnet",
        first="Net : No interface found in the same subnet as remote address ",
        regex=re.compile(r"Net : No interface found in the same subnet as remote address " + _PEER),
        make=failure("bootstrap", "no interface in the subnet of NCCL_COMM_ID", peer=1),
        until="2.26.6",
        examples=("Net : No interface found in the same subnet as remote address 192.0.2.9<40001>",),
    ),
    Pattern(
        name="bad_address",
        first="Net : ",
        regex=re.compile(
            r"Net : (?:No valid |error encountered when getting address info |[Uu]nsupported (?:IP family"
            r"|address family type)"
            r"|connecting to address |Socket creation failed )"
        ),
        make=failure("socket", "an address cannot be used"),
        examples=(
            "Net : No valid <IPv4_or_hostname>:<port> pair found",
            "Net : error encountered when getting address info : Name or service not known",
            "Net : unsupported IP family",
            "Net : Unsupported address family type",
            "Net : Socket creation failed : Too many open files",
        ),
    ),
    Pattern(
        name="socket_misuse",
        first="ncclSocket",
        regex=re.compile(
            r"ncclSocket(?:Connect|Listen): (?:file descriptor is -1|socket is invalid)"
            r"|ncclSocketInit: (?:connecting to address |Socket creation failed)|ncclSocketMultiOp: invalid arguments "
        ),
        make=failure("socket", "a socket cannot be used"),
        since="2.16.2",
        examples=(
            "ncclSocketConnect: file descriptor is -1",
            "ncclSocketListen: socket is invalid",
            "ncclSocketInit: Socket creation failed : Too many open files",
            "ncclSocketMultiOp: invalid arguments ops=(nil) numOps=0",
        ),
    ),
    Pattern(
        name="socket_transport",
        first=("NET/", "RMA/"),
        regex=re.compile(
            r"(?:NET|RMA)/(?!IB)\S{1,40} : (?:socket progress error|unable to allocate (?:requests|subtasks)"
            r"|ncclNetSocketListen dev="
            r"|invalid listen device dev=|finalize called with zero reference count|peer sent invalid or "
            r"duplicate socket index)"
        ),
        make=failure("socket", "the socket network cannot go on"),
        examples=(
            "NET/Socket : socket progress error",
            "NET/Socket : unable to allocate requests",
            "NET/Socket : ncclNetSocketListen dev=3 ncclNetIfs=2",
            "NET/Socket : invalid listen device dev=3 ncclNetIfs=2",
            "NET/Socket : finalize called with zero reference count",
            "NET/Socket : peer sent invalid or duplicate socket index 9 (nSocks 4)",
        ),
    ),
    Pattern(
        name="tls",
        first=("NCCL was built ", "ncclCrypt", "ncclGetCrypt"),
        regex=re.compile(
            r"(?:NCCL was built without TLS support|ncclCrypt(?:Socket(?:Recv|Send) called|: TLS \w+ "
            r"requested) without TLS support"
            r"|ncclGetCryptConnectionMode: unsupported encryption mode )"
        ),
        make=failure("setting", "a key is set but this build has no TLS"),
        since="2.32.3",
        examples=(
            "NCCL was built without TLS support but a pre-shared key was configured",
            "ncclCrypt: TLS connection requested without TLS support",
            "ncclCryptSocketRecv called without TLS support",
            "ncclGetCryptConnectionMode: unsupported encryption mode 7",
        ),
    ),
)
