"""The ethtool family: recorded answers beside what ethtool printed, made-up ones, and this machine's kernel."""

from __future__ import annotations

import errno
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netlink_testing import outcome, recorded

from exporter.kernel import Fec, LinkState, Pause, Statistics
from exporter.kernel.ethtool_netlink import (
    LiveEthtoolNetlink,
    decode_fec,
    decode_link_state,
    decode_pause,
    decode_standard,
    decode_strings,
)
from exporter.kernel.netlink import attribute, nested, number_attribute
from tests.namespaces import Namespace


@pytest.fixture
def lab(namespace: Namespace) -> Namespace:
    """A namespace with the veth pair v0 (up) and v1 (down)."""
    namespace.ip("link add v0 type veth peer name v1")
    namespace.ip("link set v0 up")
    return namespace


def u64(*values: int) -> bytes:
    return struct.pack(f"={len(values)}Q", *values)


def statistic(index: int, value: int) -> bytes:
    return nested(4, attribute(index, u64(value)))


def group(number: int, string_set: int, *members: bytes) -> bytes:
    return nested(4, number_attribute(2, number), number_attribute(3, string_set), *members)


def test_pause_as_ethtool_shows_it() -> None:
    for case, expected in (
        ("pause-igb", Pause(True, True, True, received_frames=None, transmitted_frames=None)),
        ("pause-netdevsim", Pause(False, False, False, received_frames=77, transmitted_frames=78)),
    ):
        told = recorded(case)
        pause = decode_pause(told.attributes)
        assert pause == expected
        shown = dict(line.split(":") for line in told.printed.splitlines()[1:])
        assert [shown[name].strip() == "on" for name in ("Autonegotiate", "RX", "TX")] == list(pause[:3])
        for name, frames in (("rx", pause.received_frames), ("tx", pause.transmitted_frames)):
            assert shown.get(f"  {name}_pause_frames", "None").strip() == str(frames)


def test_fec_as_ethtool_shows_it() -> None:
    told = recorded("fec-rs")
    (shown,) = told.json()
    assert decode_fec(told.attributes) == Fec(
        active=shown["active"][0],
        corrected_blocks=shown["statistics"]["corrected_blocks"]["total"],
        uncorrectable_blocks=shown["statistics"]["uncorrectable_blocks"]["total"],
        corrected_bits=None,
    )


def test_a_fec_mode_that_the_driver_does_not_tell_is_empty() -> None:
    """Where the kernel leaves the active mode out, `ethtool --show-fec` prints None, as it does for FEC switched off."""
    assert decode_fec(recorded("fec-default").attributes).active == ""


@pytest.mark.parametrize(("bit", "name"), [(49, "None"), (50, "RS"), (51, "BASER"), (74, "LLRS"), (3, "")])
def test_fec_modes(bit: int, name: str) -> None:
    assert decode_fec(number_attribute(4, bit)).active == name


def test_the_first_of_the_fec_counts_is_the_total_and_lanes_follow() -> None:
    pad = attribute(1, b"")
    stats = nested(5, attribute(2, u64(10, 4, 6)), pad, attribute(3, u64(2**64 - 2)), attribute(4, b""))
    assert decode_fec(stats) == Fec("", corrected_blocks=10, uncorrectable_blocks=2**64 - 2, corrected_bits=None)


@pytest.mark.parametrize(("case", "detected"), [("link-igb-down", "no"), ("link-igb-up", "yes")])
def test_link_as_ethtool_shows_it(case: str, detected: str) -> None:
    told = recorded(case)
    assert f"Link detected: {detected}" in told.printed
    assert decode_link_state(told.attributes) == LinkState(detected == "yes", None, None, None)


def test_why_a_link_is_down() -> None:
    """ETHTOOL_LINK_EXT_STATE_LINK_TRAINING_FAILURE is 1, of its substates ..._LT_KR_LINK_INHIBIT_TIMEOUT 2."""
    body = attribute(2, b"\0") + attribute(5, b"\1") + attribute(6, b"\2") + number_attribute(7, 12)
    assert decode_link_state(body) == LinkState(link=False, ext_state=1, ext_substate=2, down_count=12)


def test_standard_statistics_have_the_kernels_names() -> None:
    histogram = nested(5, number_attribute(7, 0), number_attribute(8, 64), attribute(9, u64(99)))
    body = (
        number_attribute(5, 0)
        + group(0, 17, attribute(1, b""), statistic(0, 11))
        + group(1, 18, statistic(4, 2**64 - 2), statistic(1, 5), histogram)
        + group(2, 19, statistic(1, 7))
    )
    ethtool = LiveEthtoolNetlink()
    first, second = ethtool._named(body), ethtool._named(body)
    assert first == Statistics(
        ("SymbolErrorDuringCarrier", "FrameCheckSequenceErrors", "SingleCollisionFrames", "MACControlFramesReceived"),
        (11, 2**64 - 2, 5, 7),
    )
    assert first.names is second.names


def test_a_statistic_without_a_name_is_refused() -> None:
    with pytest.raises(OSError, match="statistic 999 has no name in string set 18") as caught:
        LiveEthtoolNetlink()._named(group(1, 18, statistic(999, 1)))
    assert caught.value.errno == errno.EBADMSG


def test_no_standard_statistics() -> None:
    told = recorded("standard-igb")
    assert told.json() == [{"ifname": "nic1", "eth-phy": {}, "eth-mac": {}, "eth-ctrl": {}}]
    assert decode_standard(told.attributes) == ((), ())


@settings(deadline=None)
@given(st.binary(max_size=120))
def test_no_bytes_raise_anything_but_bad_message(data: bytes) -> None:
    for decode in (decode_link_state, decode_pause, decode_fec, decode_standard, decode_strings):
        assert outcome(decode, data)[1] in (0, errno.EBADMSG)


def test_link_of_a_veth(lab: Namespace) -> None:
    ethtool = LiveEthtoolNetlink()
    for state, detected in (("up", "yes"), ("down", "no")):
        lab.ip(f"link set v1 {state}")
        assert f"Link detected: {detected}" in lab.run("ethtool v0")
        assert lab.inside(lambda: ethtool.link_state("v0")) == LinkState(detected == "yes", None, None, None)


def test_what_a_veth_has_not(lab: Namespace) -> None:
    ethtool = LiveEthtoolNetlink()
    for question in (ethtool.fec, ethtool.pause):
        with pytest.raises(OSError, match="v0") as caught:
            lab.inside(lambda question=question: question("v0"))  # type: ignore[misc] # mypy cannot infer the default
        assert caught.value.errno == errno.EOPNOTSUPP
    shown = json.loads(lab.run("ethtool --json -S v0 --groups eth-phy eth-mac eth-ctrl"))
    assert shown == [{"ifname": "v0", "eth-phy": {}, "eth-mac": {}, "eth-ctrl": {}}]
    assert lab.inside(lambda: ethtool.standard("v0")) == Statistics((), ())


def test_an_interface_that_is_not_there(lab: Namespace) -> None:
    ethtool = LiveEthtoolNetlink()
    for question in (ethtool.link_state, ethtool.pause, ethtool.fec, ethtool.standard):
        with pytest.raises(OSError, match="nosuch0") as caught:
            lab.inside(lambda question=question: question("nosuch0"))  # type: ignore[misc] # as above
        assert caught.value.errno == errno.ENODEV


def test_a_kernel_that_refuses_the_flag_for_down_counts_is_asked_without_it() -> None:
    """This kernel knows that flag; it refuses one that no kernel knows in the same way."""
    ethtool = LiveEthtoolNetlink()
    ethtool._link_state_flags = (1 << 31, *ethtool._link_state_flags[1:])
    assert ethtool.link_state("lo").link is True
    assert ethtool._link_state_flags == (0,)
    assert ethtool.link_state("lo").link is True
