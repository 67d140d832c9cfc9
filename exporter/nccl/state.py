"""What the evidence of one log holds: small values that go into the state database as they are, and their bounds.

Nothing here grows with what a log says: every table has an upper number of keys, every text an upper length.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple, TypeVar

import msgspec

from exporter.nccl.facts import Record

BENIGN = frozenset(
    {
        "communication_established",
        "send_queue_drained",
        "path_migrated",
        "port_active",
        "lid_change",
        "pkey_change",
        "sm_change",
        "srq_limit_reached",
        "last_wqe_reached",
        "client_reregistration",
        "gid_change",
        "speed_change",
    }
)
"""Asynchronous events that are no fault by themselves, whatever the level of their line."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_KEYS = 256
"""Keys of a table of counts."""
MOST_PROCESSES = 1024
MOST_COMMUNICATORS = 1024
MOST_ENDS = 16384
"""Ends of network channels that are remembered one by one, so that a link is counted once."""
MOST_ERRORS = 64
MOST_CONSEQUENCES = 16
MOST_HOSTS = 64
LONGEST_TEXT = 256
LONGEST_LINE = 500
"""Bytes of a line that are kept with an error."""
LARGEST = (1 << 53) - 1
"""Numbers beyond are no numbers that a library prints."""
SAME_EVENT_SECONDS = 2.0
"""How far apart the lines of two processes about one event of a port may be."""
SAME_FAILURE_SECONDS = 120.0
"""How long a process repeats one failure: 34 retries to connect take 60 s (``NCCL_SOCKET_RETRY_CNT``)."""


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return the text, not longer than ``longest`` characters."""
    return text if len(text) <= longest else text[:longest]


def number(value: int | None) -> int | None:
    """Return the number if it can be one, else None."""
    return value if value is None or -LARGEST <= value <= LARGEST else None


def line_of(record: Record) -> str:
    """Return the line as NCCL wrote it, without wrappers, cut to :data:`LONGEST_LINE` bytes."""
    prefix = ""
    if record.pid or record.host:
        place = f" [{record.device}]" if record.device is not None else ""
        where = f" {record.location}" if record.location else ""
        stamp = f"[{record.timestamp}] " if record.timestamp else ""
        prefix = f"{stamp}{record.host}:{record.pid}:{record.tid}{place}{where} NCCL {record.level} "
    line = (prefix + record.message)[:LONGEST_LINE]
    return line.encode("utf-8", "replace")[:LONGEST_LINE].decode("utf-8", "ignore")


def add(counts: dict[K, int], key: K, n: int = 1) -> None:
    """Count a key, unless it is new and the table is full."""
    seen = counts.get(key)
    if seen is not None:
        counts[key] = seen + n
    elif len(counts) < MOST_KEYS:
        counts[key] = n


def put(table: dict[K, V], key: K, value: V, most: int = MOST_KEYS) -> None:
    """Set a key, unless it is new and the table is full."""
    if key in table or len(table) < most:
        table[key] = value


def renew(table: dict[K, V], key: K, value: V) -> None:
    """Set a key as the newest; the oldest makes room for it."""
    table.pop(key, None)
    table[key] = value
    if len(table) > MOST_KEYS:
        del table[next(iter(table))]


CompletionKey = tuple[int, str, int | None, str, str]
"""Status, its name, vendor error, HCA as printed, peer."""
ChannelKey = tuple[str, str, int, str, str]
"""Direction, network, the plugin's device index, HCA (empty: not known), path."""
FailureKey = tuple[str, str, int | None, str]
"""Class, what, code, HCA."""
PluginErrorKey = tuple[str, int | None, str, int | None]
"""Network, code, text, device index."""


class Pair(NamedTuple):
    """A GPU (busId as printed) and the HCA that its network channels use."""

    host: str
    gpu: str
    hca: str


class Way(NamedTuple):
    """What one end of a network channel goes through. ``hca`` is empty when not known, ``proxy`` the PXN rank or -1."""

    direction: Literal["send", "receive"]
    network: str
    device: int
    hca: str
    path: Literal["gdr", "host", "socket"]
    proxy: int = -1


def pack(channel: int, connection: int, sender: int, receiver: int) -> int:
    """Return what names a link in its communicator as one number below 2^60: there are tens to thousands of them."""
    return (channel & 0xFFF) << 48 | (connection & 0xFF) << 40 | (sender & 0xFFFFF) << 20 | receiver & 0xFFFFF


class Communicator(msgspec.Struct, array_like=True):
    """One rank's communicator, from its first line to Destroy or Abort.

    ``stage`` is ``open`` while only its channels were seen (up to 2.15 nothing is printed before). ``identity`` is the commId,
    equal on all ranks; empty up to 2.15. ``ends`` are its network channels: what they go through -> packed links.
    """

    rank: int = -1
    ranks: int = 0
    identity: str = ""
    bus: str = ""
    stage: Literal["open", "start", "complete"] = "open"
    nodes: int = 0
    started: float = 0.0
    ends: dict[Way, set[int]] = {}


class Process(msgspec.Struct, array_like=True):
    """One process that writes to the log.

    ``fresh`` is True once a line of it was read while it was written (not replayed at start). ``devices`` and ``virtual`` are
    the numbers of its lists of HCAs (:attr:`Evidence.lists`), -1 for none. ``current`` is the communicator that a rank's
    channels belong to, by its pointer.
    """

    host: str
    pid: int
    last: float = 0.0
    fresh: bool = False
    network: str = ""
    devices: int = -1
    virtual: int = -1
    communicators: dict[str, Communicator] = {}
    current: dict[int, str] = {}


class Tally(msgspec.Struct, array_like=True):
    """How often something was printed, how often it happened (a process repeats itself), and on which hosts."""

    lines: int = 0
    count: int = 0
    hosts: list[str] = []


class Error(msgspec.Struct, array_like=True, kw_only=True):
    """One error for people: what, where, when, with whom, and the line. ``order`` numbers the facts of the log."""

    kind: Literal["completion", "event", "failure", "plugin"]
    what: str
    order: int
    at: float
    timestamp: str
    host: str
    pid: int
    status: int | None = None
    vendor_error: int | None = None
    code: int | None = None
    hca: str = ""
    port: int | None = None
    peer: str = ""
    local_gid: str = ""
    remote_gid: str = ""
    consequence: bool = False
    line: str = ""


class Flap(msgspec.Struct, array_like=True):
    """One event of one port: lines, physical events, and who has reported how often since it began."""

    raw: int = 0
    count: int = 0
    last: float = 0.0
    top: int = 0
    reporters: dict[tuple[int, int], int] = {}


class FlapKey(NamedTuple):
    """``device`` is empty up to 2.19, which does not print it."""

    host: str
    device: str
    port: int | None
    event: str


class News:
    """What was counted since it was last asked: [how often, when last]. Bounded like all else."""

    __slots__ = ("completions", "events", "failures", "flushes")

    def __init__(self) -> None:
        self.completions: dict[tuple[str, str, int], list[float]] = {}
        """By host, HCA, status."""
        self.flushes: dict[tuple[str, str, int], list[float]] = {}
        self.events: dict[tuple[FlapKey, tuple[int, int]], list[float]] = {}
        """By event and the thread that told it: lines, not physical events."""
        self.failures: dict[str, list[float]] = {}
        """By class."""


def count_news(table: dict[K, list[float]], key: K, now: float) -> None:
    """Count one."""
    entry = table.get(key)
    if entry is not None:
        entry[0] += 1
        entry[1] = max(entry[1], now)
    elif len(table) < MOST_KEYS:
        table[key] = [1, now]


def report(flaps: dict[FlapKey, Flap], key: FlapKey, reporter: tuple[int, int], at: float, n: int = 1) -> int:
    """Note ``n`` lines of one thread about an event; return how many physical events are new.

    Every process of a host prints every event of a port it has open, one line each, within moments of the others. So what
    happened as often as one thread says happened that often: the others' lines are copies. A pause begins anew.
    """
    flap = flaps.get(key)
    if flap is None:
        if len(flaps) >= MOST_KEYS:
            return 0
        flap = flaps[key] = Flap()
    if at - flap.last > SAME_EVENT_SECONDS:
        flap.reporters.clear()
        flap.top = 0
    flap.last = max(flap.last, at)
    flap.raw += n
    said = flap.reporters.get(reporter, 0) + n
    put(flap.reporters, reporter, said)
    new = max(said - flap.top, 0)
    flap.top += new
    flap.count += new
    return new
