"""NCCL: variables as it reads them (``misc/param.cc``, ``graph/paths.cc`` and where they are used)."""

from __future__ import annotations

import re

from exporter.nccl.facts import BadSetting, Fact, Record, Setting
from exporter.nccl.pattern import Pattern, line, noise

_NUMBER_AND_DOT = re.compile(r"-?\d+\.$")


def setting(match: re.Match[str], record: Record) -> Fact:
    """A variable and its value; integer parameters are echoed with a dot that is no part of the number."""
    name, value = match[1], match[2].strip()
    return Setting(name, value[:-1] if _NUMBER_AND_DOT.match(value) else value)


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="set_by_environment",
        first=("NCCL_", "NET/IB: NCCL_", "RCCL_"),
        holds=" set by environment to ",
        regex=re.compile(r"(?:NET/IB: )?(\w{1,100}) set by environment to (.*)"),
        make=setting,
        examples=(
            "NCCL_IB_TIMEOUT set by environment to 18.",
            "NCCL_NET_GDR_LEVEL set by environment to PIX",
            "NCCL_SOCKET_IFNAME set by environment to ib0,ib3",
            "NET/IB: NCCL_IB_RAIL_POLICY set by environment to strict",
            "NCCL_NET_MERGE_POLICY set by environment to RAIL",
        ),
    ),
    Pattern(
        name="set_to",
        first="NCCL_",
        holds=" set to ",
        regex=re.compile(r"(NCCL_[A-Z0-9_]{1,100}) set to (.*)"),
        make=setting,
        examples=(
            "NCCL_IB_HCA set to mlx5_0,mlx5_1",
            "NCCL_SOCKET_IFNAME set to nonexistent0",
            "NCCL_OOB_NET_IFNAME set to eth0",
        ),
    ),
    Pattern(
        name="invalid_value",
        first="Invalid value ",
        holds=", using default ",
        regex=re.compile(r"Invalid value (.{0,200}?) for (\w{1,100}), using default "),
        make=lambda match, record: BadSetting(match[2], match[1]),
        examples=("Invalid value yes for NCCL_IB_DISABLE, using default 0.",),
    ),
    line(
        "invalid_rail_policy",
        "NET/IB: Unrecognized NCCL_IB_RAIL_POLICY=%s, ignoring.",
        lambda match, record: BadSetting("NCCL_IB_RAIL_POLICY", match[1]),
        since="2.32.3",
        examples=("NET/IB: Unrecognized NCCL_IB_RAIL_POLICY=loose, ignoring.",),
    ),
    line(
        "invalid_prefix_length",
        "NET/IB: NCCL_IB_SUBNET_PREFIX_LEN=%d is out of range",
        lambda match, record: BadSetting("NCCL_IB_SUBNET_PREFIX_LEN", match[1]),
        since="2.30.7",
        examples=("NET/IB: NCCL_IB_SUBNET_PREFIX_LEN=64 is out of range [1,32]",),
    ),
    line(
        "invalid_pkey",
        "NET/IB: NCCL_IB_PKEY_VALUE=0x%x not found in PKey table",
        lambda match, record: BadSetting("NCCL_IB_PKEY_VALUE", "0x" + match[1]),
        since="2.31.2",
        examples=("NET/IB: NCCL_IB_PKEY_VALUE=0x8001 not found in PKey table (pkey_tbl_len=128, port=1)",),
    ),
    line(
        "invalid_comm_id",
        "Invalid NCCL_COMM_ID, please use format: %S$",
        lambda match, record: BadSetting("NCCL_COMM_ID", ""),
        examples=("Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or <hostname>:<port>",),
    ),
    line(
        "invalid_gdrcopy",
        "Invalid NCCL_GDRCOPY_USE_INTERNAL_DMABUF=%d; expected",
        lambda match, record: BadSetting("NCCL_GDRCOPY_USE_INTERNAL_DMABUF", match[1]),
        since="2.31.2",
        examples=("Invalid NCCL_GDRCOPY_USE_INTERNAL_DMABUF=7; expected 0, 1, or 2",),
    ),
    Pattern(
        name="invalid_magic",
        first="NCCL_SOCKET_MAGIC invalid value ",
        regex=re.compile(r'NCCL_SOCKET_MAGIC invalid value "([^"]{0,100})"'),
        make=lambda match, record: BadSetting("NCCL_SOCKET_MAGIC", match[1]),
        since="2.30.7",
        examples=('NCCL_SOCKET_MAGIC invalid value "x", using built-in default',),
    ),
    Pattern(
        name="ignored_value",
        first=("Env var for ", "NCCL_"),
        holds=" ignored because ",
        regex=re.compile(r"(?:Env var for )?(\w{1,100})=(-?\d+) is (?:being )?ignored because "),
        make=lambda match, record: BadSetting(match[1], match[2]),
        since="2.31.2",
        examples=(
            "Env var for minCTAs=99 is ignored because value out of bound min/max=[1, 64]",
            "NCCL_WORK_FIFO_BYTES=1000 is being ignored because it is not a power of 2",
        ),
    ),
    Pattern(
        name="clamped_socket_setting",
        first="NET/Socket : ",
        holds=" is greater than the maximum allowed, setting ",
        regex=re.compile(
            r"NET/Socket : (?:NCCL_SOCKET_NTHREADS|the total number of sockets) is greater than the maximum allowed, "
            r"setting (?:to|NCCL_NSOCKS_PERTHREAD to) (\d+)"
        ),
        make=noise("a number of sockets was lowered to the maximum"),
        examples=(
            "NET/Socket : NCCL_SOCKET_NTHREADS is greater than the maximum allowed, setting to 16",
            "NET/Socket : the total number of sockets is greater than the maximum allowed, setting "
            "NCCL_NSOCKS_PERTHREAD to 4",
        ),
    ),
    Pattern(
        name="cta_policies",
        first="Both NCCL_CTA_POLICY_ZERO and NCCL_CTA_POLICY_EFFICIENCY are set",
        regex=re.compile(r"Both NCCL_CTA_POLICY_ZERO and NCCL_CTA_POLICY_EFFICIENCY are set"),
        make=noise("one of two policies was taken"),
        since="2.31.2",
        examples=(
            "Both NCCL_CTA_POLICY_ZERO and NCCL_CTA_POLICY_EFFICIENCY are set in CTAPolicy (3). Unsetting POLICY_EFFICIENCY",
        ),
    ),
)
