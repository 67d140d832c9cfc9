"""Messages, attributes, and the talk with a real kernel."""

from __future__ import annotations

import errno
import re
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netlink_testing import outcome

from exporter.kernel import netlink
from exporter.kernel.netlink import GenericFamily, Netlink, answers, attribute, attributes, messages, nested, text

TYPES = st.integers(0, 0x3FFF)
PORT = 4711


def message(type: int, body: bytes = b"", *, flags: int = 0, sequence: int = 1, port: int = PORT) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), type, flags, sequence, port) + body + bytes(-len(body) % 4)


def error(code: int) -> bytes:
    return message(2, struct.pack("=i", code))


MULTI, INTERRUPTED = 2, 0x10
DONE = message(3, bytes(4), flags=MULTI)


@settings(deadline=None)
@given(st.lists(st.tuples(TYPES, st.binary(max_size=40))))
def test_attributes_come_back_as_they_were_put(pairs: list[tuple[int, bytes]]) -> None:
    assert list(attributes(b"".join(attribute(*pair) for pair in pairs))) == pairs


def test_a_nest_is_found_under_its_plain_type() -> None:
    ((type, inner),) = attributes(nested(80, attribute(1, b"a"), attribute(2, b"bc")))
    assert type == 80
    assert list(attributes(inner)) == [(1, b"a"), (2, b"bc")]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x05\x00\x01", "3 bytes where an attribute of at least 4 is due"),
        (b"\x03\x00\x01\x00", "attribute 1 of length 3 in 4 bytes"),
        (b"\x00\x00\x01\x00", "attribute 1 of length 0 in 4 bytes"),
        (b"\x09\x00\x01\x00aaaa", "attribute 1 of length 9 in 8 bytes"),
        (attribute(1, b"aa") + b"\xff\xff\x02\x00", "attribute 2 of length 65535 in 4 bytes"),
    ],
)
def test_an_attribute_that_does_not_fit_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(OSError, match=re.escape(complaint)) as caught:
        list(attributes(data))
    assert caught.value.errno == errno.EBADMSG


@pytest.mark.parametrize("data", [b"\x10", message(1)[:15], b"\x0f" + message(1)[1:], b"\x14" + message(1)[1:]])
def test_a_message_that_does_not_fit_is_refused(data: bytes) -> None:
    with pytest.raises(OSError, match="malformed netlink message") as caught:
        list(messages(data))
    assert caught.value.errno == errno.EBADMSG


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_bad_message(data: bytes) -> None:
    for walk in (messages, attributes):
        assert outcome(lambda walk=walk: list(walk(data)))[1] in (0, errno.EBADMSG)
    assert outcome(lambda: list(answers([data], PORT, "noise")))[1] >= 0


def test_a_name_ends_at_its_nul_and_keeps_its_blanks() -> None:
    assert text(b" RDMA write\t\0junk") == " RDMA write\t"
    assert text(b"eth\xff\0") == "eth\\xff"


def test_a_single_answer_is_not_waited_beyond() -> None:
    def datagrams() -> Iterator[bytes]:
        yield message(30, b"yes")
        pytest.fail("asked for more after the answer")

    assert list(answers(datagrams(), PORT, "test")) == [b"yes"]


def test_a_dump_lasts_until_it_is_done_and_passes_over_what_is_not_ours() -> None:
    stray = message(30, b"port", flags=MULTI, port=PORT + 1) + message(30, b"seq", flags=MULTI, sequence=2)
    datagrams = [message(30, b"a", flags=MULTI) + message(1) + stray, message(30, b"b", flags=MULTI), DONE, error(-1)]
    assert list(answers(datagrams, PORT, "test")) == [b"a", b"b"]


def test_an_empty_end_is_an_end() -> None:
    assert list(answers([message(30, b"a", flags=MULTI), message(3, flags=MULTI)], PORT, "test")) == [b"a"]


@pytest.mark.parametrize(
    ("datagram", "expected"),
    [
        (error(-errno.EOPNOTSUPP), errno.EOPNOTSUPP),
        (message(3, struct.pack("=i", -errno.ENODEV), flags=MULTI), errno.ENODEV),
        (message(30, b"a", flags=MULTI | INTERRUPTED), errno.EINTR),
        (error(5), errno.EBADMSG),
        (error(-(2**31)), errno.EBADMSG),
    ],
)
def test_an_error_carries_the_kernels_errno(datagram: bytes, expected: int) -> None:
    with pytest.raises(OSError, match="test") as caught:
        list(answers([datagram], PORT, "test"))
    assert caught.value.errno == expected


def test_an_interrupted_dump_is_asked_again() -> None:
    class Changing(Netlink):
        asked = 0

        def _ask(self, type: int, flags: int, body: bytes, what: str) -> list[bytes]:
            self.asked += 1
            if self.asked < 3:
                raise InterruptedError(errno.EINTR, "changed", what)
            return [b"at last"]

    assert Changing(0).dump(18, b"", "links") == [b"at last"]


def test_a_lost_answer_is_not_waited_for_for_ever() -> None:
    """The kernel does not answer NLMSG_NOOP."""
    with pytest.raises(TimeoutError, match="nothing") as caught:
        Netlink(socket.NETLINK_ROUTE, timeout=0.05).request(1, b"", "nothing")
    assert caught.value.errno == errno.ETIMEDOUT


def test_a_cut_off_answer_is_an_error() -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.sendto(message(18, bytes(16), flags=0x301, port=0), (0, 0))  # RTM_GETLINK
        with pytest.raises(OSError, match="links") as caught:
            next(netlink._datagrams(link, "links", limit=64))
    assert caught.value.errno == errno.EMSGSIZE


def test_a_protocol_that_the_kernel_lacks() -> None:
    with pytest.raises(OSError, match="not supported") as caught:
        Netlink(31).request(16, b"", "nothing")
    assert caught.value.errno == errno.EPROTONOSUPPORT


def test_a_family_that_the_kernel_lacks() -> None:
    with pytest.raises(OSError, match="no such generic netlink family: 'nosuch'") as caught:
        GenericFamily("nosuch").request(1, b"", "nothing")
    assert caught.value.errno == errno.ENOENT


def test_threads_share_one_family() -> None:
    family = GenericFamily("nlctrl")
    wanted = family.request(3, attribute(2, b"nlctrl\0"), "controller")
    wrong: list[bytes] = []

    def ask() -> None:
        wrong.extend(got for _ in range(50) if (got := family.request(3, attribute(2, b"nlctrl\0"), "x")) != wanted)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(attributes(wanted))[2] == b"nlctrl\0"
    assert wrong == []
