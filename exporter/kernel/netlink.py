"""Netlink: one question, its answer, and nothing that outlives it.

Messages and attributes are those of include/uapi/linux/netlink.h and genetlink.h, in the host's byte order; every
attribute begins at a multiple of four bytes.

Every question opens its own socket and closes it. That costs 13 microseconds and buys a lot: no answer can be taken for
that of an earlier question, a thread that the kernel keeps holds no lock that another one needs, and the modules behind
a socket can be unloaded (an open RDMA socket pins ``ib_core``).

Why not pyroute2's sockets: it has no RDMA family, no DCB, and of ethtool neither extended link state nor pause, FEC or
statistics; it serves the thread that made it; and the one question it shares with us, the link state of an interface,
took 508 microseconds of CPU through it and takes 18 through this module, after an import that took 21 MB of memory.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple, NoReturn

TIMEOUT_SECONDS = 5.0
"""How long a lost answer is waited for. The kernel works while we send, so that waiting for an answer is never normal."""

_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port id
_ATTRIBUTE = struct.Struct("=HH")  # struct nlattr: length, type
_GENERIC = struct.Struct("=BBH")  # struct genlmsghdr: command, version, reserved
_ERRNO = struct.Struct("=i")
_TIMEVAL = struct.Struct("@ll")

_REQUEST = 0x1  # NLM_F_REQUEST
_MULTI = 0x2  # NLM_F_MULTI
_DUMP_INTERRUPTED = 0x10  # NLM_F_DUMP_INTR
_DUMP = 0x300  # NLM_F_DUMP
_ERRNO_LARGEST = 4095  # MAX_ERRNO
_NOOP, _ERROR, _DONE = 1, 2, 3  # NLMSG_*
_NESTED = 0x8000  # NLA_F_NESTED
_TYPE_MASK = 0x3FFF  # NLA_TYPE_MASK

_NETLINK_GENERIC = 16
_VERSION = 1  # of ethtool, devlink and the controller
_CONTROLLER, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2  # GENL_ID_CTRL, CTRL_CMD_*, CTRL_ATTR_*

_SEQUENCE = 1  # of the only question that a socket sees
_DATAGRAM_BYTES = 64 * 1024  # the kernel fills at most 32 KiB of a dump at once
_DUMP_ATTEMPTS = 3


class Message(NamedTuple):
    """One netlink message; ``body`` is what follows struct nlmsghdr."""

    type: int
    flags: int
    sequence: int
    port_id: int
    body: bytes


def malformed(what: str) -> OSError:
    """Return the error for bytes that are no netlink message: EBADMSG with what is wrong."""
    return OSError(errno.EBADMSG, f"malformed netlink message: {what}")


def messages(datagram: bytes) -> Iterator[Message]:
    """Yield the messages of one datagram. Raises OSError(EBADMSG) when one does not fit into it."""
    offset, end = 0, len(datagram)
    while offset < end:
        if end - offset < _HEADER.size:
            raise malformed(f"{end - offset} bytes where a header of {_HEADER.size} is due")
        length, type, flags, sequence, port_id = _HEADER.unpack_from(datagram, offset)
        if not _HEADER.size <= length <= end - offset:
            raise malformed(f"length {length} in {end - offset} bytes")
        yield Message(type, flags, sequence, port_id, datagram[offset + _HEADER.size : offset + length])
        offset += length + 3 & ~3


def spans(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield (type, start, end) of each attribute's payload in ``data[start:end]``, flags removed from the type.

    Raises OSError(EBADMSG) when an attribute does not fit.
    """
    offset, end = start, len(data) if end is None else end
    while offset < end:
        if end - offset < _ATTRIBUTE.size:
            raise malformed(f"{end - offset} bytes where an attribute of at least {_ATTRIBUTE.size} is due")
        length, type = _ATTRIBUTE.unpack_from(data, offset)
        if not _ATTRIBUTE.size <= length <= end - offset:
            raise malformed(f"attribute {type & _TYPE_MASK} of length {length} in {end - offset} bytes")
        yield type & _TYPE_MASK, offset + _ATTRIBUTE.size, offset + length
        offset += length + 3 & ~3


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, payload) of each attribute, flags removed from the type. Raises OSError(EBADMSG).

    ``dict(attributes(data))`` keeps the last of a type, as the kernel's own parser does.
    """
    return ((type, data[start:end]) for type, start, end in spans(data))


def attribute(type: int, payload: bytes) -> bytes:
    """Return an attribute, filled up to four bytes."""
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, type) + payload + bytes(-length % 4)


def nested(type: int, *members: bytes) -> bytes:
    """Return an attribute that holds attributes."""
    return attribute(type | _NESTED, b"".join(members))


def name_attribute(type: int, name: str) -> bytes:
    """Return an attribute that holds a name and its final NUL."""
    return attribute(type, os.fsencode(name) + b"\0")


def number_attribute(type: int, number: int) -> bytes:
    """Return an attribute that holds a u32."""
    return attribute(type, struct.pack("=I", number))


def text(payload: bytes) -> str:
    """Return the text before the first NUL, as it is, blanks included; what is not UTF-8 is escaped."""
    return payload.partition(b"\0")[0].decode(errors="backslashreplace")


def number(payload: bytes, size: int) -> int:
    """Return the unsigned number of ``size`` bytes that is the payload. Raises OSError(EBADMSG) for another length."""
    if len(payload) != size:
        raise malformed(f"a number of {len(payload)} bytes, expected {size}")
    return int.from_bytes(payload, sys.byteorder)


def optional_number(payload: bytes | None, size: int) -> int | None:
    """Return the number, or None for an attribute that is not there."""
    return None if payload is None else number(payload, size)


def optional_bool(payload: bytes | None) -> bool | None:
    """Return the u8 as a truth value, or None for an attribute that is not there."""
    return None if payload is None else number(payload, 1) != 0


def required(table: dict[int, bytes], type: int, what: str) -> bytes:
    """Return the payload of an attribute that the kernel always sends. Raises OSError(EBADMSG) without it."""
    try:
        return table[type]
    except KeyError:
        raise malformed(f"attribute {type} ({what}) is missing") from None


def answers(datagrams: Iterable[bytes], port_id: int, what: str) -> Iterator[bytes]:
    """Yield the bodies of the messages that answer us: one, or all parts of a dump up to its end.

    Messages for another port id or question are passed over. Raises OSError with the kernel's errno for an error
    message and for a dump that ends in one, EINTR for a dump whose subject changed under it, and EBADMSG.
    """
    for datagram in datagrams:
        for message in messages(datagram):
            if message.port_id != port_id or message.sequence != _SEQUENCE or message.type == _NOOP:
                continue
            if message.flags & _DUMP_INTERRUPTED:
                _fail(errno.EINTR, what)
            if message.type in (_ERROR, _DONE):
                # An error message begins with the negative errno. So does the end of a dump, or it is empty (old kernels).
                code = -_ERRNO.unpack_from(message.body)[0] if len(message.body) >= _ERRNO.size else 0
                if not 0 <= code <= _ERRNO_LARGEST:
                    raise malformed(f"{what}: error {code}")
                if code:
                    _fail(code, what)
                return
            yield message.body
            if not message.flags & _MULTI:
                return


class Netlink:
    """Questions to one netlink protocol. Safe to share among threads: it holds no socket.

    Both methods raise OSError: the kernel's errno; EPROTONOSUPPORT without the protocol, ETIMEDOUT without an answer,
    EMSGSIZE for a longer one than we take, EBADMSG for one that makes no sense. ``what`` names the question in errors.
    """

    def __init__(self, protocol: int, timeout: float = TIMEOUT_SECONDS) -> None:
        self._protocol = protocol
        seconds, fraction = divmod(timeout, 1)
        self._timeout = _TIMEVAL.pack(int(seconds), int(fraction * 1_000_000))

    def request(self, type: int, body: bytes, what: str) -> bytes:
        """Return the body of the one message that answers."""
        for answer in self._ask(type, _REQUEST, body, what):
            return answer
        raise malformed(f"{what}: an acknowledgement where an answer is due")

    def dump(self, type: int, body: bytes, what: str) -> list[bytes]:
        """Return the bodies of all messages of a dump, asked again when its subject changed under it (in the end EINTR)."""
        for _ in range(_DUMP_ATTEMPTS - 1):
            try:
                return self._ask(type, _REQUEST | _DUMP, body, what)
            except InterruptedError:
                continue
        return self._ask(type, _REQUEST | _DUMP, body, what)

    def _ask(self, type: int, flags: int, body: bytes, what: str) -> list[bytes]:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, self._protocol) as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, self._timeout)
            link.bind((0, 0))
            port_id = link.getsockname()[0]
            link.sendto(_HEADER.pack(_HEADER.size + len(body), type, flags, _SEQUENCE, 0) + body, (0, 0))
            return list(answers(_datagrams(link, what), port_id, what))


def _datagrams(link: socket.socket, what: str, limit: int = _DATAGRAM_BYTES) -> Iterator[bytes]:
    while True:
        try:
            data, _, flags, sender = link.recvmsg(limit)
        except BlockingIOError:  # SO_RCVTIMEO
            _fail(errno.ETIMEDOUT, what)
        if sender[0] != 0:  # not from the kernel
            continue
        if flags & socket.MSG_TRUNC:
            _fail(errno.EMSGSIZE, what)
        yield data


def _fail(code: int, what: str) -> NoReturn:
    raise OSError(code, os.strerror(code), what)


class GenericFamily:
    """A generic netlink family, by name. Its number is asked for once and kept; its absence is not kept."""

    def __init__(self, name: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self._name = name
        self._netlink = Netlink(_NETLINK_GENERIC, timeout)
        self._known: int | None = None

    def request(self, command: int, body: bytes, what: str) -> bytes:
        """Return the attributes of the answer. Raises as :class:`Netlink`, and ENOENT for a kernel without the family."""
        return _payload(self._netlink.request(self._number(), _GENERIC.pack(command, _VERSION, 0) + body, what))

    def dump(self, command: int, what: str) -> list[bytes]:
        """Return the attributes of every message of a dump. Raises as `request`."""
        return list(map(_payload, self._netlink.dump(self._number(), _GENERIC.pack(command, _VERSION, 0), what)))

    def _number(self) -> int:
        if self._known is None:
            self._known = self._look_up()
        return self._known

    def _look_up(self) -> int:
        # All families are listed, because asking for one by name makes a kernel that lacks it run modprobe.
        question = _GENERIC.pack(_GET_FAMILY, _VERSION, 0)
        for body in self._netlink.dump(_CONTROLLER, question, "generic netlink families"):
            family = dict(attributes(_payload(body)))
            if text(required(family, _FAMILY_NAME, "family name")) == self._name:
                return number(required(family, _FAMILY_ID, "family id"), 2)
        raise OSError(errno.ENOENT, "the kernel has no such generic netlink family", self._name)


def _payload(body: bytes) -> bytes:
    if len(body) < _GENERIC.size:
        raise malformed(f"{len(body)} bytes where a generic header of {_GENERIC.size} is due")
    return body[_GENERIC.size :]
