"""Google Cloud's plugins: gIB (RDMA), GPUDirect-TCPX, GPUDirect-TCPXO (FasTrak), FastSocket, and the check of settings."""

from __future__ import annotations

import re

from exporter.nccl.facts import BadSetting, Plugin, Report
from exporter.nccl.pattern import Library, Pattern, failure, noise

GOOGLE = Library(
    name="google",
    source="google/nccl-plugin-gpudirecttcpx 2024-07, google/nccl-fastsocket 2023-11, manifests of container-engine-accelerators",
    patterns=(
        Pattern(
            name="gib_version",
            first="NET/gIB : Initializing gIB ",
            regex=re.compile(r"NET/gIB : Initializing gIB (\S{1,40})"),
            make=lambda match, record: Plugin("net", "gIB", match[1], "loaded"),
            examples=("NET/gIB : Initializing gIB v1.0.6",),
        ),
        Pattern(
            name="tcpx_version",
            first="NET/GPUDirectTCPX ver. ",
            regex=re.compile(r"NET/GPUDirectTCPX ver\. (\S{1,40}?)\.?(?!\S)"),
            make=lambda match, record: Plugin("net", "GPUDirectTCPX", match[1], "loaded"),
            examples=("NET/GPUDirectTCPX ver. 3.1.8.",),
        ),
        Pattern(
            name="fastrak_version",
            first="NET/FasTrak ",
            holds="Initializing network FasTrak, version: ",
            regex=re.compile(r"NET/FasTrak \S{1,64} Initializing network FasTrak, version: (\S{1,40})"),
            make=lambda match, record: Plugin("net", "FasTrak", match[1], "loaded"),
            examples=(
                "NET/FasTrak 2026-07-28T11:09:08.733195619+00:00: Initializing network FasTrak, version: 1.0.17",
            ),
        ),
        Pattern(
            name="fastrak_timeout",
            first="NET/FasTrak ",
            holds="Timeout: RxDM not ready on ",
            regex=re.compile(r"NET/FasTrak \S{1,64} .{0,80}?Timeout: RxDM not ready on (\S{1,255}) after"),
            make=failure("plugin", "the receive data path manager (RxDM) is not ready", peer=1),
            examples=(
                "NET/FasTrak 2026-07-28T11:09:08.733195619+00:00: Timeout: RxDM not ready on 10.0.0.7 after 60 seconds",
            ),
        ),
        Pattern(
            name="fastrak_waiting",
            first="NET/FasTrak ",
            holds="RxDM not ready after ",
            regex=re.compile(r"NET/FasTrak \S{1,64} .{0,80}?RxDM not ready after \d+ seconds"),
            make=noise("the receive data path manager is waited for"),
            examples=("NET/FasTrak 2026-07-28T11:09:08.733195619+00:00: RxDM not ready after 10 seconds, retrying",),
        ),
        Pattern(
            name="shim_enforced",
            first="NCCL/NET (shim) mismatch enforced: ",
            regex=re.compile(r"NCCL/NET \(shim\) mismatch enforced: (\w{1,100})=(\S{0,200})"),
            make=lambda match, record: BadSetting(match[1], match[2]),
            examples=("NCCL/NET (shim) mismatch enforced: NCCL_PROTO=LL (expected Simple)",),
        ),
        Pattern(
            name="shim_recommended",
            first="NCCL/NET (shim) mismatch recommended: ",
            regex=re.compile(r"NCCL/NET \(shim\) mismatch recommended: (.{1,300})"),
            make=lambda match, record: Report("setting", match[1], False),
            examples=("NCCL/NET (shim) mismatch recommended: NCCL_NVLS_ENABLE=1 (expected unset)",),
        ),
        Pattern(
            name="fastsocket_cpu",
            first=("Cannot get incoming CPU", "NET/FastSocket"),
            holds="Cannot get incoming CPU",
            regex=re.compile(r"(?:NET/FastSocket ?: )?Cannot get incoming CPU"),
            make=noise("harmless"),
            examples=("Cannot get incoming CPU", "NET/FastSocket : Cannot get incoming CPU"),
        ),
    ),
)
