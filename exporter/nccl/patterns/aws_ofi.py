"""aws-ofi-nccl: NCCL over libfabric (EFA, Slingshot). Every message begins with ``NET/OFI``.

A request fails with a code of libfabric or of the provider, which is no verbs status.
"""

from __future__ import annotations

import re

from exporter.nccl.facts import Fact, GdrSupport, Plugin, PluginError, Record, Report
from exporter.nccl.pattern import Library, Pattern, failure, line, noise

_DEVICE = re.compile(r"\bdev: (\d+)")


def _request(match: re.Match[str], record: Record) -> Fact:
    device = _DEVICE.search(record.message)
    return PluginError("OFI", int(match["code"]), (match["text"] or "").strip(), int(device[1]) if device else None)


AWS_OFI = Library(
    name="aws-ofi-nccl",
    source="aws/aws-ofi-nccl v1.3.0 to v1.21.1",
    patterns=(
        Pattern(
            name="ofi_version",
            first="NET/OFI ",
            holds="aws-ofi-nccl ",
            regex=re.compile(r"NET/OFI (?:Using|Initializing) aws-ofi-nccl (\d\S{0,40})"),
            make=lambda match, record: Plugin("ofi", "aws-ofi-nccl", match[1], "loaded"),
            examples=("NET/OFI Using aws-ofi-nccl 1.4.0aws", "NET/OFI Initializing aws-ofi-nccl 1.13.2-aws"),
        ),
        line(
            "ofi_libfabric",
            "NET/OFI Using Libfabric version %s",
            lambda match, record: Plugin("libfabric", "libfabric", match[1], "loaded"),
            since="1.9.0",
            examples=("NET/OFI Using Libfabric version 1.22",),
        ),
        Pattern(
            name="ofi_provider",
            first="NET/OFI Selected ",
            regex=re.compile(r"NET/OFI Selected [Pp]rovider is ([^\s,]{1,40})"),
            make=lambda match, record: Plugin("provider", match[1], "", "loaded"),
            examples=(
                "NET/OFI Selected Provider is efa",
                "NET/OFI Selected Provider is cxi (found 2 nics)",
                "NET/OFI Selected provider is efa, fabric is efa (found 4 nics)",
            ),
        ),
        line(
            "ofi_platform",
            "NET/OFI Running on %s platform,",
            lambda match, record: Report("platform", match[1], False),
            examples=(
                "NET/OFI Running on p4d.24xlarge platform, Setting NCCL_TOPO_FILE environment variable to /opt/x.xml",
                "NET/OFI Running on p5.48xlarge platform, topology file /opt/x.xml",
            ),
        ),
        Pattern(
            name="ofi_no_gdr",
            first="NET/OFI ",
            holds="GDR",
            regex=re.compile(
                r"NET/OFI ((?:Could not disable CUDA API usage for HMEM, disabling GDR"
                r"|GDR disabled on GDR-supported instance type|GDR support reported to NCCL but then couldn't be configured"
                r"|Need to force simple protocol: GDR not supported).{0,120})"
            ),
            make=lambda match, record: GdrSupport(False, match[1]),
            examples=(
                "NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR",
                "NET/OFI GDR disabled on GDR-supported instance type p4d.24xlarge",
                "NET/OFI GDR support reported to NCCL but then couldn't be configured on an endpoint. Cannot continue.",
                "NET/OFI Need to force simple protocol: GDR not supported",
            ),
        ),
        line(
            "ofi_gdr",
            "NET/OFI Set endpoint option FI_OPT_CUDA_API_PERMITTED. GDR Supported",
            lambda match, record: GdrSupport(True, "FI_OPT_CUDA_API_PERMITTED"),
            examples=("NET/OFI Set endpoint option FI_OPT_CUDA_API_PERMITTED. GDR Supported",),
        ),
        Pattern(
            name="ofi_request_text",
            first="NET/OFI ",
            holds=" completed with error. RC: ",
            regex=re.compile(
                r"NET/OFI (?:Request \S{1,20}|Remote write) completed with error\. RC: (?P<code>-?\d+)\. "
                r"Error: (?!\d+ \()(?P<text>.{0,200}?)\. Completed length: "
            ),
            make=_request,
            until="1.9.2",
            examples=(
                "NET/OFI Request 0x756e6a0257a9 completed with error. RC: 20. Error: unknown error. Completed length: 0, "
                "Request: { buffer_index: 255, dev: 1, size: 0, state: CREATED, direction: SEND }",
            ),
        ),
        Pattern(
            name="ofi_request_code",
            first="NET/OFI ",
            holds=" completed with error. RC: ",
            regex=re.compile(
                r"NET/OFI (?:Request \S{1,20}(?: seq \d+)?|Remote write) completed with error\. RC: (?P<code>-?\d+)\. "
                r"(?:Flags: -?\d+\. )?Error: \d+ \((?P<text>.{0,200}?)\)\. Completed length: "
            ),
            make=_request,
            since="1.11.0",
            until="1.20",
            examples=(
                "NET/OFI Request 0x7f2c completed with error. RC: 113. Error: 4113 (Unreachable remote). "
                "Completed length: 0, "
                "Request: { dev: 3, size: 8, state: CREATED, type: SEND }",
                "NET/OFI Request 0x7f2c seq 9 completed with error. RC: 113. Error: 4113 (x). Completed "
                "length: 0, Request: { dev: 3 }",
                "NET/OFI Remote write completed with error. RC: 5. Flags: 1032. Error: 9 (x). Completed length: 0",
            ),
        ),
        Pattern(
            name="ofi_request",
            first="NET/OFI Request ",
            holds=" completed with error: err: ",
            regex=re.compile(
                r"NET/OFI Request \S{1,20} \(.{0,300}?\) completed with error: err: (?P<code>-?\d+), flags: -?\d+, "
                r"prov_errno: -?\d+, strerror: (?P<text>.{0,200}?), len: "
            ),
            make=_request,
            since="1.21.1",
            examples=(
                "NET/OFI Request 0x7f2c ({ dev: 3, type: SEND }) completed with error: err: 113, flags: 1032, "
                "prov_errno: 4113, strerror: Unreachable remote, len: 0",
            ),
        ),
        Pattern(
            name="ofi_init_failed",
            first=("NET/OFI ", "aws-ofi-nccl "),
            holds="aws-ofi-nccl initialization failed",
            regex=re.compile(r"(?:NET/OFI )?aws-ofi-nccl initialization failed"),
            make=failure("plugin", "aws-ofi-nccl did not start: NCCL takes another network"),
            examples=("NET/OFI aws-ofi-nccl initialization failed",),
        ),
        Pattern(
            name="ofi_tuner",
            first="NET/OFI ",
            holds="uner",
            regex=re.compile(
                r"NET/OFI (?:NCCL_OFI_TUNER is not available for platform|Tuner init: |Region base Tuner is chosen)"
            ),
            make=noise("which tuner is used"),
            examples=(
                "NET/OFI NCCL_OFI_TUNER is not available for platform : g6e.48xlarge, Fall back to NCCL's tuner",
            ),
        ),
    ),
)
