"""DCB: answers of a real kernel (Linux 6.12, netdevsim) beside what `dcb` printed, and this machine's kernel."""

from __future__ import annotations

import errno
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netlink_testing import outcome, recorded

from exporter.kernel import Dcb
from exporter.kernel.dcb import LiveDcb, decode_dcb
from exporter.kernel.netlink import attribute, nested
from tests.namespaces import Namespace

SELECTORS = {"ethtype_prio": 1, "stream_port_prio": 2, "dgram_port_prio": 3, "port_prio": 4, "dscp_prio": 5}
MODES = {"host": 1, "lld_managed": 2, "cee": 4, "ieee": 8, "static": 16}
HEADER = struct.pack("=BBH", 0, 21, 0)

U64S = st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8).map(tuple)
APPLICATIONS = st.lists(st.tuples(st.integers(0, 255), st.integers(0, 7), st.integers(0, 65535))).map(tuple)


@pytest.mark.parametrize("case", ["set", "default"])
def test_what_dcb_shows(case: str) -> None:
    told = recorded(f"dcb-{case}")
    pfc, applications, buffers, modes = map(json.loads, told.printed.splitlines())
    dcb = decode_dcb(told.answers[0])
    assert dcb.pfc_enabled == sum(1 << priority for priority, on in enumerate(pfc["prio_pfc"]) if on)
    assert dcb.pfc_capacity == pfc["pfc_cap"]
    assert dcb.pfc_requests == tuple(pfc["requests"])
    assert dcb.pfc_indications == tuple(pfc["indications"])
    assert dcb.buffer_sizes == tuple(buffers["buffer_size"])
    assert dcb.priority_buffers == tuple(buffers["prio_buffer"])
    assert dcb.dcbx == sum(MODES[mode] for mode, on in modes.items() if on)
    assert set(dcb.applications) == {
        (SELECTORS[kind], priority, protocol) for kind, pairs in applications.items() for protocol, priority in pairs
    }


def test_a_priority_with_pfc_and_its_dscp() -> None:
    dcb = decode_dcb(recorded("dcb-set").answers[0])
    assert (dcb.pfc_enabled, dcb.pfc_requests[3], dcb.pfc_indications[5]) == (0b1000, 55, 2**64 - 1)
    assert (5, 3, 26) in dcb.applications


@settings(deadline=None)
@given(st.integers(0, 255), st.integers(0, 255), U64S, U64S, APPLICATIONS, st.sampled_from([1, 2]))
def test_dcb_comes_back_as_it_was_put(
    enabled: int,
    capacity: int,
    requests: tuple[int, ...],
    indications: tuple[int, ...],
    applications: tuple[tuple[int, int, int], ...],
    kind: int,
) -> None:
    pfc = struct.pack("@BBBH8Q8Q", capacity, enabled, 1, 7, *requests, *indications)  # aligned as the compiler does
    assert len(pfc) == 136
    table = (attribute(kind, struct.pack("=BBH", *application)) for application in applications)
    body = HEADER + nested(13, attribute(2, pfc), nested(3, *table))
    assert decode_dcb(body) == Dcb(
        pfc_enabled=enabled,
        pfc_capacity=capacity,
        applications=applications,
        dcbx=None,
        pfc_requests=requests,
        pfc_indications=indications,
    )


def test_a_driver_without_pfc_tells_none() -> None:
    assert decode_dcb(HEADER + nested(13, nested(3)) + attribute(14, b"\x05")) == Dcb(None, None, (), dcbx=5)


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        (attribute(2, bytes(135)), "PFC of 135 bytes, expected 136"),
        (attribute(10, bytes(43)), "buffers of 43 bytes, expected 44"),
        (nested(3, attribute(1, bytes(3))), "application of 3 bytes, expected 4"),
    ],
)
def test_a_short_structure_is_refused(attributes: bytes, complaint: str) -> None:
    with pytest.raises(OSError, match=complaint) as caught:
        decode_dcb(HEADER + nested(13, attributes))
    assert caught.value.errno == errno.EBADMSG


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_bad_message(data: bytes) -> None:
    assert outcome(decode_dcb, data)[1] in (0, errno.EBADMSG)


def test_a_veth_has_no_dcb(namespace: Namespace) -> None:
    namespace.ip("link add v0 type veth peer name v1")
    dcb = LiveDcb()
    for name, expected in (("v0", errno.EOPNOTSUPP), ("nosuch0", errno.ENODEV)):
        with pytest.raises(OSError, match=f"DCB of {name}") as caught:
            namespace.inside(lambda name=name: dcb.get(name))  # type: ignore[misc] # mypy cannot infer the default
        assert caught.value.errno == expected
