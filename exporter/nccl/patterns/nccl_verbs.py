"""NCCL: calls of the verbs library and what becomes of queue pairs (``misc/ibvwrap.cc``, ``net_ib.cc``)."""

from __future__ import annotations

import re

from exporter.nccl.facts import Fact, Failure, Noise, Record
from exporter.nccl.pattern import Pattern, failure, line, noise
from exporter.nccl.patterns.nccl_sockets import errno_of

_REGISTERS = re.compile(r"ibv_(?:reg_|create_)")
_MEMLOCK = "memory cannot be locked: the limit on locked memory (memlock) is too low"
_INT = r"-?\d+"


def _verbs(match: re.Match[str], record: Record) -> Fact:
    call, error = match[1], match[2] or ""
    code = errno_of(error)
    if record.level == "INFO":
        return Noise("a call that devices and kernels need not have")
    if code == 12 and _REGISTERS.match(call):
        return Failure("memlock", _MEMLOCK, code)
    return Failure("verbs", f"{call} failed", code)


def _modify(match: re.Match[str], record: Record) -> Fact:
    code, hca, retrying = match.groups()
    if retrying:
        return Noise("a queue pair is tried again")
    return Failure("verbs", "ibv_modify_qp failed", int(code), "", hca or "")


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="modify_qp",
        first="Call to ibv_modify_qp failed with ",
        regex=re.compile(
            r"Call to ibv_modify_qp failed with (\d+) (?:.{0,120}? on dev ([^\s:]{1,64}):\d+)?(?:.{0,500}?(, "
            r"retrying \d+/\d+ after ))?"
        ),
        make=_modify,
        since="2.24.3",
        examples=(
            "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_5:1, curr state INIT, next state RTR, "
            "local GID index 3, local GID ::ffff:198.18.105.11, remote GID ::ffff:198.18.104.12",
            "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_5:1, curr state INIT, next state RTR, "
            "local GID index 3, local GID ::ffff:198.18.105.11, remote GID ::ffff:198.18.104.12, "
            "retrying 1/34 after 100 msec of sleep",
            "Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_5:1, curr state INIT, next state RTR",
        ),
    ),
    Pattern(
        name="verbs_call",
        first=("Call to ", "NET/MLX5: "),
        holds="Call to ",
        regex=re.compile(
            r"(?:NET/MLX5: )?Call to ((?:ibv|mlx5dv|mlx5)_\w{1,60})(?:\(\))? (?:failed|returned)(?! with "
            r"\d)(?: with error (.{1,200}))?"
        ),
        make=_verbs,
        examples=(
            "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
            "Call to ibv_create_cq failed with error Cannot allocate memory errno 12",
            "Call to ibv_open_device failed",
            "Call to ibv_poll_cq() returned -1",
            "Call to ibv_query_pkey failed with error Invalid argument errno 22",
            "NET/MLX5: Call to mlx5dv_internal_get_data_direct_sysfs_path failed with error No such device errno 19",
        ),
    ),
    Pattern(
        name="verbs_post",
        first="ibv_post_",
        regex=re.compile(r"(ibv_post_(?:send|recv))\(\) failed with error (.{1,100})"),
        make=_verbs,
        examples=(
            "ibv_post_send() failed with error Invalid argument, Bad WR 0x7f2c, First WR 0x7f2c",
            "ibv_post_recv() failed with error Cannot allocate memory",
        ),
    ),
    Pattern(
        name="verbs_library",
        first=("lib wrapper ", "NET/MLX5: "),
        regex=re.compile(r"(?:NET/MLX5: )?lib wrapper not initialized\."),
        make=failure("device", "libibverbs cannot be used"),
        examples=("lib wrapper not initialized.", "NET/MLX5: lib wrapper not initialized."),
    ),
    Pattern(
        name="verbs_symbol",
        first="dlvsym failed on ",
        regex=re.compile(r"dlvsym failed on "),
        make=noise("an older libibverbs lacks a symbol"),
        examples=(
            "dlvsym failed on mlx5dv_get_data_direct_sysfs_path - /lib/libmlx5.so: undefined symbol version MLX5_1.25",
        ),
    ),
    line(
        "mlx5_create_qp",
        "NET/IB: %Fmlx5dv_create_qp failed to create QP: %S",
        lambda match, record: (
            Failure("memlock", _MEMLOCK, 12)
            if errno_of(match[1]) == 12
            else Failure("verbs", "mlx5dv_create_qp failed", errno_of(match[1]))
        ),
        since="2.30.3",
        examples=("NET/IB: mlx5dv_create_qp failed to create QP: Cannot allocate memory",),
    ),
    Pattern(
        name="roce_version",
        first="NET/IB: ",
        holds=" failed in ncclIbRoceGetVersionNum: ",
        regex=re.compile(r"NET/IB: (?:open|read) failed in ncclIbRoceGetVersionNum: (.{1,200})"),
        make=lambda match, record: Failure("device", "the RoCE version of a GID cannot be read", errno_of(match[1])),
        since="2.23.4",
        examples=("NET/IB: open failed in ncclIbRoceGetVersionNum: No such file or directory",),
    ),
    Pattern(
        name="ib_internal",
        first="NET/IB",
        regex=re.compile(
            r"NET/IB(?:/GIN)? ?: (?:\w{1,80}: )?(?:unable to allocate requests|could not find mr "
            r"|ncclIbI(?:recv|send)\(\) called when "
            r"|sendReq\(|wc->opcode == IBV|Invalid (?:request index|device index|local device count|remote "
            r"device count|memory registration size) "
            r"|\w{1,20} comm could not retr?ei?ve a request|No format specified|(?:Receiver|Sender) expected a "
            r"'|Unknown completion \("
            r"|CTS QP is NULL|Failed QP index |QP (?:count \d|is NULL)|Work completion status is |n(?:DataQps"
            r"|qps) is not initialized"
            r"|allgather failed )"
        ),
        make=failure("protocol", "the InfiniBand transport found its own state wrong"),
        examples=(
            "NET/IB : unable to allocate requests",
            "NET/IB: could not find mr 0x7f2c inside cache of 3 entries",
            "NET/IB: ncclIbIsend() called when comm->base.ready == 0",
            "NET/IB: ncclIbTest: Unknown completion (req=0x7f2c, comm=0x7f2d, id=1)",
            "NET/IB: Work completion status is IBV_WC_GENERAL_ERR(21), expected IBV_WC_SUCCESS(0)",
            "NET/IB/GIN: allgather failed (res=6) on rank 1/8 at step 2/3",
        ),
    ),
    Pattern(
        name="out_of_order",
        first="NET/IB: ",
        holds="OOO RQ is force enabled",
        regex=re.compile(r"NET/IB: (?:\w{1,80}: )?OOO RQ is force enabled but "),
        make=failure("setting", "NCCL_IB_OOO_RQ asks for what the device or the peer cannot do"),
        since="2.30.3",
        examples=(
            "NET/IB: OOO RQ is force enabled but AR is not enabled, which is required for OOO RQ (device=mlx5_0)",
            "NET/IB: ncclIbInitQp: OOO RQ is force enabled but size 64 is less than the required recv work request size "
            "128 on device:mlx5_0",
        ),
    ),
    line(
        "prepost",
        "NET/IB: %FResiliency requires pre-posted receive work requests.",
        noise("a setting follows from another"),
        since="2.29.7",
        until="2.29.7",
        examples=("NET/IB: ncclIbInit: Resiliency requires pre-posted receive work requests. Enabling pre-posting.",),
    ),
    line(
        "flid",
        "Warning: remote FLID configured as zero even when endpoints are on different subnets, using dlid as fallback",
        failure("setting", "the subnet manager gave no FLID though the ends are in different subnets"),
        since="2.22.3",
        examples=(
            "Warning: remote FLID configured as zero even when endpoints are on different subnets, using dlid as fallback",
        ),
    ),
    Pattern(
        name="connected_twice",
        first=("Error: trying ", "ncclGinIbProxyIPutSignal: "),
        regex=re.compile(
            r"Error: trying to connect already connected sendComm|ncclGinIbProxyIPutSignal: Unsupported signalOp "
        ),
        make=failure("protocol", "the InfiniBand transport found its own state wrong"),
        examples=(
            "Error: trying to connect already connected sendComm",
            "ncclGinIbProxyIPutSignal: Unsupported signalOp 7",
        ),
    ),
)
