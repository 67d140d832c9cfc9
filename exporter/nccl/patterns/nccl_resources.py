"""NCCL: memory, CUDA, NVLink, topology and the proxy (``shmutils.cc``, ``proxy.cc``, ...)."""

from __future__ import annotations

import re

from exporter.nccl.facts import Fact, Failure, Noise, Record, Report
from exporter.nccl.pattern import Pattern, failure, line, noise
from exporter.nccl.patterns.nccl_sockets import errno_of

_INT = r"-?\d+"


def _shm(match: re.Match[str], record: Record) -> Fact:
    if errno_of(match[0]) == 28:
        return Failure("shm", "shared memory is full", 28)
    return Failure("shm", "shared memory cannot be used", int(match[1]) if match[1] else None)


def _cuda(match: re.Match[str], record: Record) -> Fact:
    if record.level == "INFO":
        return Noise("NCCL tried something that CUDA refused, and goes on")
    return Failure("cuda", match[2], int(match[1]) if match[1] else None)


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="shm_extend",
        first="Error: failed to ",
        regex=re.compile(
            r"Error: failed to (?:extend \S{1,300} to \d+ bytes|create shared memory file \S{1,300})(?:, "
            r"error:? .{1,100}? \((\d+)\))?"
        ),
        make=_shm,
        examples=(
            "Error: failed to extend /dev/shm/nccl-Ab12Cd to 9637892 bytes, error: No space left on device (28)",
            "Error: failed to extend /dev/shm/nccl-Ab12Cd to 9637892 bytes",
            "Error: failed to create shared memory file /dev/shm/nccl-Ab12Cd, error Permission denied (13)",
        ),
    ),
    Pattern(
        name="shm_posix",
        first="Call to posix_fallocate failed : ",
        regex=re.compile(r"Call to posix_fallocate failed : .{0,80}()"),
        make=_shm,
        until="2.12.12",
        examples=("Call to posix_fallocate failed : No space left on device",),
    ),
    Pattern(
        name="shm_segment",
        first="Error while ",
        holds=" shared memory segment ",
        regex=re.compile(
            r"Error while (?:\w+ ){1,3}shared memory segment \S{1,300} \(size \d+\)(?:, error: .{1,100}? \((\d+)\))?"
        ),
        make=_shm,
        examples=(
            "Error while creating shared memory segment /dev/shm/nccl-Ab12Cd (size 9637888), error: No space "
            "left on device (28)",
            "Error while attaching to shared memory segment /dev/shm/nccl-Ab12Cd (size 9637888), error: No "
            "such file or directory (2)",
            "Error while creating shared memory segment nccl-shm-send-1 (size 9637888)",
        ),
    ),
    Pattern(
        name="shm_retry",
        first="fallocate: Failed to extend ",
        regex=re.compile(r"fallocate: Failed to extend \S{1,300} to "),
        make=noise("shared memory is tried again"),
        since="2.22.3",
        examples=(
            "fallocate: Failed to extend /dev/shm/nccl-Ab12Cd to 9637892 bytes, error: No space left on "
            "device (28) - retrying",
        ),
    ),
    Pattern(
        name="shm_unmap",
        first=("munmap of shared memory", "unlink shared memory"),
        holds=" shared memory ",
        regex=re.compile(r"(?:munmap|unlink)(?: of)? shared memory (?:\S{1,300} )?(?:size \d+ )?failed"),
        make=noise("shared memory could not be given back at the end"),
        examples=(
            "munmap of shared memory failed",
            "munmap of shared memory 0x7f2c size 4096 failed, error: Invalid argument (22)",
            "unlink shared memory /dev/shm/nccl-Ab12Cd failed, error: No such file or directory (2)",
        ),
    ),
    Pattern(
        name="cumem_host",
        first="cuMem host allocations do not appear to be working",
        regex=re.compile(r"cuMem host allocations do not appear to be working"),
        make=noise("the container runtime does not allow NUMA calls; /dev/shm is used"),
        since="2.26.3",
        examples=(
            "cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation. This "
            "could be due to the container runtime disabling NUMA support.",
        ),
    ),
    Pattern(
        name="cuda",
        first="Cuda failure ",
        regex=re.compile(r"Cuda failure (?:(\d+) )?'([^']{0,200})'"),
        make=_cuda,
        examples=(
            "Cuda failure 'out of memory'",
            "Cuda failure 2 'out of memory'",
        ),
    ),
    Pattern(
        name="nvls_bind",
        first="Failed to bind NVLink SHARP (NVLS) Multicast memory",
        regex=re.compile(r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory .{0,160}?CUDA error (\d+) '"),
        make=failure("nvlink", "NVLink SHARP memory cannot be bound: Fabric Manager or NVSwitch", code=1),
        since="2.27.3",
        examples=(
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4096 : CUDA error 401 'the operation "
            "cannot be performed'.",
            "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4096 at MC group 1 offset 0 : CUDA error 401 'x'.",
        ),
    ),
    Pattern(
        name="mnnvl_refused",
        first="MNNVL (cliqueSize ",
        regex=re.compile(r"MNNVL \(cliqueSize \d+\) is available but not (?:working|supported) on this system\."),
        make=failure("nvlink", "NVLink between hosts is there but does not work: check IMEX"),
        since="2.25.1",
        examples=(
            "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration "
            "(nvidia-imex-ctl -N). "
            "Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
            "MNNVL (cliqueSize 8) is available but not supported on this system. Check the IMEX configuration.",
        ),
    ),
    line(
        "mnnvl_unsupported",
        "MNNVL is not supported on this system",
        failure("nvlink", "NVLink between hosts was asked for and is not supported"),
        until="2.24.3",
        examples=("MNNVL is not supported on this system",),
    ),
    line(
        "mnnvl_degraded",
        "MNNVL busId 0x%x NVLink fabric health reports DEGRADED_BANDWIDTH",
        lambda match, record: Report("nvlink", record.message, True),
        since="2.32.3",
        examples=("MNNVL busId 0xf2000 NVLink fabric health reports DEGRADED_BANDWIDTH (healthMask 0x1)",),
    ),
    line(
        "mnnvl",
        "MNNVL busId 0x%x fabric UUID %s cliqueId 0x%x state %d healthMask 0x%x",
        lambda match, record: Report("nvlink", record.message, False),
        since="2.20.3",
        examples=(
            "MNNVL busId 0xf2000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x80",
            "MNNVL busId 0xf2000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x80 degradedBw no",
        ),
    ),
    Pattern(
        name="p2p_disabled",
        first="P2P is disabled between NVLINK connected GPUs ",
        regex=re.compile(r"P2P is disabled between NVLINK connected GPUs \d+ and \d+"),
        make=failure("nvlink", "P2P is disabled between GPUs with NVLink: a hardware fault is likely"),
        examples=(
            "P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case given their "
            "connectivity, and "
            "is probably due to a hardware issue.",
        ),
    ),
    Pattern(
        name="no_transport",
        first="No transport found for rank ",
        regex=re.compile(r"No transport found for rank \d+"),
        make=failure("topology", "no transport between two ranks"),
        examples=("No transport found for rank 0[1000] -> rank 1[2000]",),
    ),
    Pattern(
        name="duplicate_gpu",
        first="Duplicate GPU detected : rank ",
        regex=re.compile(r"Duplicate GPU detected : rank \d+ and rank \d+ both on CUDA device"),
        make=failure("setting", "two ranks use one GPU"),
        examples=("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000",),
    ),
    Pattern(
        name="links_lost",
        first="Could not find rev link for ",
        regex=re.compile(r"Could not find rev link for "),
        make=failure("topology", "a topology file is wrong"),
        examples=("Could not find rev link for 0/1 -> 0/2",),
    ),
    line(
        "sharp_shared",
        "Child comms (nRanks %d) fails to share parent comms (nRanks %d) sharp resources",
        noise("a child communicator has no SHARP"),
        since="2.18.1",
        examples=("Child comms (nRanks 4) fails to share parent comms (nRanks 8) sharp resources",),
    ),
    line(
        "collnet_fallback",
        "Cannot initialize CollNet, using point-to-point network instead",
        noise("SHARP is not there; the usual network is used"),
        examples=("Cannot initialize CollNet, using point-to-point network instead",),
    ),
    Pattern(
        name="proxy_operation",
        first=("[Proxy Service ", "[Service thread] "),
        holds="operation",
        regex=re.compile(
            rf"\[(?:Proxy Service {_INT}\] Failed to execute operation (?!Close)\w{{1,40}} from rank {_INT}, "
            rf"retcode ({_INT})"
            rf"|Service thread\] Error encountered progressing operation=(?!Close)\w{{1,40}}, res=({_INT}))"
        ),
        make=lambda match, record: Failure(
            "proxy", "an operation of the proxy failed", int(match[1] or match[2]), consequence=True
        ),
        examples=(
            "[Proxy Service 0] Failed to execute operation Connect from rank 0, retcode 2",
            "[Service thread] Error encountered progressing operation=Connect, res=3, closing connection",
        ),
    ),
    Pattern(
        name="proxy_close",
        first=("[Proxy Service ", "[Service thread] "),
        holds="Close",
        regex=re.compile(
            rf"\[(?:Proxy Service {_INT}\] Failed to execute operation Close from rank|Service "
            rf"thread\] Error encountered progressing operation=Close,)"
        ),
        make=noise("the proxy at the end of a process"),
        examples=(
            "[Proxy Service 3] Failed to execute operation Close from rank 3, retcode 3",
            "[Service thread] Error encountered progressing operation=Close, res=3, closing connection",
        ),
    ),
    Pattern(
        name="proxy_end",
        first="[Service thread] ",
        regex=re.compile(
            r"\[Service thread\] (?:Could not receive type from localRank |Accept failed |Connection closed by "
            r"localRank |Unknown command "
            r"|(?:shm close|shm unlink|proxy ops shm unlink) failed|Initialize peers\[\d+\]\.sock fails)"
        ),
        make=noise("the proxy at the end of a process"),
        examples=(
            "[Service thread] Could not receive type from localRank 3, res=3, closed=0",
            "[Service thread] Accept failed Resource temporarily unavailable",
            "[Service thread] Connection closed by localRank 4",
            "[Service thread] Unknown command 7 from localRank 3",
            "[Service thread] proxy ops shm unlink failed",
        ),
    ),
    Pattern(
        name="proxy_failed",
        first=(
            "[Proxy ",
            "Socket recv failed while polling ",
            "Proxy ",
            "Unable to post incomplete proxy ",
            "ncclProxy",
            "Could not allocate proxy ",
            "Mismatched response ",
            "Invalid proxy ",
        ),
        regex=re.compile(
            r"\[Proxy (?:[Ss]ervice|Progress)\] (?:Failed to set CUDA |Poll failed|WSAPoll failed|proxyDestroy "
            r"failed|Too many connections"
            r"|rejecting Init from localRank )"
            r"|Socket recv failed while polling for opId=|Proxy Call to rank \d+ failed|Unable to post "
            r"incomplete proxy op chain"
            r"|ncclProxyCallAsync\(\) - Saw abortFlag|ncclProxyClient\w{1,40} call to (?:top parent |tp)?[rR]ank -?\d+ "
            r"|ncclProxyConnect: \w{1,20} -?\d+ out of bounds|Could not allocate proxy response buffer"
            r"|Mismatched response size for opId="
            r"|Proxy (?:response buffer|state) (?:is|refCount is) |Invalid proxy connection "
        ),
        make=failure("proxy", "the proxy cannot go on", consequence=True),
        examples=(
            "Socket recv failed while polling for opId=0x78cf24649ae8",
            "[Proxy Service] Poll failed: Interrupted system call",
            "[Proxy Progress] Failed to set CUDA device 3",
            "[Proxy service] Too many connections (128 max)",
            "ncclProxyClientGetFd call to tpRank 3 handle 0x12 failed : 3",
            "Invalid proxy connection peer: 1 != 2",
        ),
    ),
    Pattern(
        name="plugin_limits",
        first=("sendProxySetup: ", "recvProxySetup: "),
        holds="ProxySetup: ",
        regex=re.compile(r"(?:send|recv)ProxySetup: (?:net|collnet) plugin returned invalid value for "),
        make=failure("plugin", "a plugin asks for sizes that NCCL does not allow"),
        since="2.24.3",
        examples=("sendProxySetup: net plugin returned invalid value for maxP2pBytes 0 [allowed range: 1 - 2]",),
    ),
    Pattern(
        name="abort",
        first=("Comm ", "ncclCommSetAsyncError: ", "commReclaim: ", "commDestroySync: ", "cleanup comm ", "comm 0x"),
        regex=re.compile(
            r"Comm \S{1,20} is in abort state|ncclCommSetAsyncError: error comm |commReclaim: (?:cleanup )?comm "
            r"|commDestroySync: comm |cleanup comm 0x[0-9a-f]+ rank |comm 0x[0-9a-f]+ rank \d+ "
            r"(?:commDestroySync|intranode barrier|proxy stop) error "
        ),
        make=failure("abort", "a communicator ends after an error", consequence=True),
        examples=(
            "Comm 0x7f2c is in abort state",
            "ncclCommSetAsyncError: error comm 0x7f2c sets state 6",
            "commReclaim: cleanup comm 0x7f2c rank 3 failed in destroy/abort, error 3",
            "commReclaim: comm 0x7f2c (rank = 3) in abort, error 3",
            "commDestroySync: comm 0x7f2c rank 3 intranode barrier error 3",
            "comm 0x7f2c rank 3 commDestroySync error 3",
        ),
    ),
)
