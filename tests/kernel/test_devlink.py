"""devlink health: answers of a real kernel (Linux 6.12, netdevsim) beside what `devlink` printed, and made-up ones."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netlink_testing import outcome, recorded

from exporter.kernel import HealthReporter
from exporter.kernel.devlink import LiveDevlink, decode_reporter
from exporter.kernel.netlink import attribute, name_attribute, nested, number_attribute


def reporter(state: int, *, port: bytes = b"", name: str = "fw_fatal") -> bytes:
    counts = attribute(117, struct.pack("=Q", 3)) + attribute(118, struct.pack("=Q", 2))
    device = name_attribute(1, "pci") + name_attribute(2, "0000:23:00.0") + port
    return device + nested(114, name_attribute(115, name), attribute(116, bytes([state])), counts)


def test_reporters_are_those_that_devlink_shows() -> None:
    told = recorded("devlink-health")
    shown = told.json()["health"]
    assert [decode_reporter(answer[4:]) for answer in told.answers] == [
        HealthReporter(
            bus=handle.split("/")[0],
            name=handle.split("/")[1],
            port=None,
            reporter=one["reporter"],
            healthy=one["state"] == "healthy",
            errors=one["error"],
            recoveries=one["recover"],
        )
        for handle, reporters in shown.items()
        for one in reporters
    ]
    assert told.printed.count('"recover":1') == 1


@pytest.mark.parametrize(("state", "healthy"), [(0, True), (1, False), (2, None)])
def test_states(state: int, healthy: bool | None) -> None:
    assert decode_reporter(reporter(state)) == HealthReporter(
        "pci", "0000:23:00.0", None, "fw_fatal", healthy, errors=3, recoveries=2
    )


def test_a_reporter_of_a_port() -> None:
    assert decode_reporter(reporter(0, port=number_attribute(3, 65535), name="tx")).port == 65535


def test_a_reporter_without_a_state_is_refused() -> None:
    body = name_attribute(1, "pci") + name_attribute(2, "x") + nested(114, name_attribute(115, "fw"))
    with pytest.raises(OSError, match=r"attribute 116 \(state\) is missing") as caught:
        decode_reporter(body)
    assert caught.value.errno == errno.EBADMSG


@settings(deadline=None)
@given(st.binary(max_size=120))
def test_no_bytes_raise_anything_but_bad_message(data: bytes) -> None:
    assert outcome(decode_reporter, data)[1] in (0, errno.EBADMSG)


def test_this_kernel_has_devlink_or_says_that_it_has_not() -> None:
    reporters, error = outcome(LiveDevlink().health_reporters)
    assert error == errno.ENOENT or isinstance(reporters, tuple)
