"""Takes out of a capture what tells whose machine it is, and leaves what tells which machine it is.

Masked: the device's half of MAC addresses and GUIDs (the vendor's half stays), IP addresses and GIDs, serial numbers, host names,
interface aliases. Kept: names of devices, PCI addresses, board ids, firmware, every counter. A mask has the length of what it
hides; the same value has the same mask everywhere in one capture, and another value another one. It is made with a random key
that is forgotten with the :class:`Mask`, so it cannot be reversed, nor compared between captures.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import string
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from exporter.kernel.snapshot import Snapshot
from exporter.kernel.tree import Entry, Failure, Link, Tree

T = TypeVar("T")

SERIALS = re.compile(r"(?:.*_)?(?:serial|serial_number|uuid|asset_tag|vpd|unique_id)")
"""Attributes whose whole value is a serial number or as good as one (DMI, PCI, NVMe)."""
IDENTIFIERS = frozenset({"address", "permaddr", "phys_port_id", "phys_switch_id"})
"""Attributes that may hold a MAC address or GUID without separators."""
HOST_NAMES = frozenset({"hostname", "domainname"})
TEXTS = frozenset({"ifalias"})
"""Attributes that an administrator writes: sites, racks, circuits."""
VERSIONS = re.compile(r".*(?:version|fw_ver|hw_rev|osrelease).*")
"""Attributes whose dotted numbers are no addresses."""

ATTEMPTS = 256
"""Tries to find a mask that no other value has: short values have few."""

_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){4,32}")
_COLONS = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,19}[0-9a-fA-F]{0,4}(?![\w:]|\.\d)")
_DASHES = re.compile(r"(?<![\w-])[0-9a-fA-F]{2}(?:-[0-9a-fA-F]{2}){5}(?![\w-])")
_DOTTED = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_NAME = re.compile(r"(?<![a-z0-9])(?P<kind>enx|ibx|wlx|rocex|iwx)(?P<hex>[0-9a-f]{12}(?:[0-9a-f]{4})?)(?![0-9a-f])")
"""systemd and rdma-core may name devices by their MAC address or GUID."""
_NODE_DESCRIPTION = re.compile(r"(\S+)(\s+(?:HCA-\d+|[a-z0-9]+_\d+))")
"""``node_desc`` as rdma-ndd writes it: the host's name and the device."""
_FILLERS = (b"\xff\xfe", b"\x03\x00", b"\x00\x00")
"""What stands between the vendor's and the device's half where a GUID is made of a MAC address."""


class Mask:
    """Masks values. ``counts`` says how many different ones of each kind were hidden."""

    def __init__(self, key: bytes, host_names: tuple[str, ...] = ()) -> None:
        self._key = key
        self._made: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()
        self._counted: set[tuple[str, str | bytes]] = set()
        names = {part for name in host_names for part in (name, name.partition(".")[0]) if part and part != "localhost"}
        # A host called "node" or "up" cannot be told from a word: it is masked only where people write host names.
        self._host = _any_of(names)
        self._telling_host = _any_of({name for name in names if len(name) > 3 and re.search(r"[-.0-9]", name)})

    @property
    def counts(self) -> Counter[str]:
        """How many different values of each kind were masked."""
        return Counter(kind for kind, _ in self._counted)

    # One kind each

    def mac(self, value: bytes) -> bytes:
        """Mask 6 bytes: the last three."""
        if value in (bytes(6), b"\xff" * 6):
            return value
        self._counted.add(("MAC address", value))
        return value[:3] + self._device_half(value[:3], value[3:])

    def guid(self, value: bytes) -> bytes:
        """Mask 8 bytes: the last three as in the MAC address of the same port, and those before them unless they are filler."""
        if not any(value):
            return value
        self._counted.add(("GUID", value))
        vendor, filler, device = value[:3], value[3:5], value[5:]
        if filler not in _FILLERS:
            filler = self._bytes("filler", vendor.hex(), filler)
        return vendor + filler + self._device_half(vendor, device)

    def _device_half(self, vendor: bytes, device: bytes) -> bytes:
        # The universal bit may be turned round where a GUID is made of a MAC address (RFC 4291, appendix A).
        return self._bytes("device", f"{vendor[0] & ~2:02x}{vendor[1:].hex()}", device)

    def ipv4(self, value: bytes) -> bytes:
        """Mask 4 bytes; each keeps its number of digits, and a private network stays one.

        Addresses that mean the same everywhere stay.
        """
        address = ipaddress.IPv4Address(value)
        if address.is_loopback or address.is_multicast or value[0] in (0, 255):
            return value
        self._counted.add(("IP address", value))
        kept = 0 if address.is_global else 1 if value[0] == 10 else 2
        make = partial(_masked_ipv4, kept)
        return ipaddress.IPv4Address(self._unique("IPv4", str(address), make)).packed

    def ipv6(self, value: bytes) -> bytes:
        """Mask 16 bytes, an IPv6 address or a GID: a mapped IPv4 address as such, an interface id as a GUID."""
        address = ipaddress.IPv6Address(value)
        if address.is_unspecified or address.is_loopback or address.is_multicast:
            return value
        if address.ipv4_mapped is not None:
            return value[:12] + self.ipv4(value[12:])
        self._counted.add(("IP address", value))
        network = (
            value[:8] if address.is_link_local else value[:2] + self._bytes("network", value[:2].hex(), value[2:8])
        )
        return network + self.guid(value[8:])

    def word(self, kind: str, value: str) -> str:
        """Mask letters by letters and digits by digits."""
        if not any(character.isalnum() for character in value):
            return value
        self._counted.add((kind, value))
        return self._unique(kind, value, _scrambled)

    def host(self, name: str) -> str:
        """Mask a host name, each part of its domain by itself."""
        return ".".join(self.word("host name", part) for part in name.lower().split("."))

    # Text

    def name(self, text: str) -> str:
        """Mask the MAC address, GUID or host name in the name of a device, in a path or a link's target."""
        text = _NAME.sub(lambda match: match["kind"] + self._packed(bytes.fromhex(match["hex"])).hex(), text)
        return self._telling_host.sub(lambda match: self.host(match[0]), text)

    def text(self, text: str, *, dotted: bool = True) -> str:
        """Mask all addresses, names and host names in a text; dotted numbers only where they are no versions."""
        text = _DASHES.sub(self._dashes, _COLONS.sub(self._colons, text))
        if dotted:
            text = _DOTTED.sub(self._dots, text)
        return self.name(text)

    def attribute(self, path: str, value: bytes) -> bytes:
        """Mask the value of a file of sysfs or procfs, as its name demands."""
        name = path.rpartition("/")[2]
        text = value.decode("utf-8", "surrogateescape")
        if SERIALS.fullmatch(name):
            text = self.word("serial number", text)
        elif name in IDENTIFIERS and _HEX.fullmatch(text):
            text = self._packed(bytes.fromhex(text)).hex()
        elif value.isdigit():
            return value
        elif name in TEXTS:
            text = self.word("alias", text)
        elif name in HOST_NAMES:
            text = self.host(text)
        elif name == "node_desc":
            match = _NODE_DESCRIPTION.fullmatch(text)
            text = self.host(match[1]) + match[2] if match else self._host.sub(lambda found: self.host(found[0]), text)
        elif name == "config":
            return self._config(value)
        else:
            text = self.text(text, dotted=not VERSIONS.fullmatch(name))
        return text.encode("utf-8", "surrogateescape")

    def _packed(self, value: bytes) -> bytes:
        if len(value) == 6:
            return self.mac(value)
        return self.guid(value) if len(value) == 8 else self._bytes("identifier", "", value)

    def _colons(self, match: re.Match[str]) -> str:
        """Mask hexadecimal groups by their number and width; what is of no known shape stays (PCI addresses, times)."""
        token = match[0]
        groups = token.split(":")
        widths = {len(group) for group in groups}
        if widths == {2} and len(groups) == 6:
            return self.mac(bytes.fromhex("".join(groups))).hex(":")
        if widths == {2} and len(groups) == 20:  # IPoIB: flags and queue pair, then the GID
            value = bytes.fromhex("".join(groups))
            return (value[:4] + self.ipv6(value[4:])).hex(":")
        if widths == {4} and len(groups) == 4:
            return self.guid(bytes.fromhex("".join(groups))).hex(":", 2)
        if widths == {4} and len(groups) == 8:
            return self.ipv6(bytes.fromhex("".join(groups))).hex(":", 2)
        try:
            value = ipaddress.IPv6Address(token).packed
        except ValueError:
            return token
        return token if self.ipv6(value) == value else self._unique("IPv6", token, _masked_hex)

    def _dashes(self, match: re.Match[str]) -> str:
        return self.mac(bytes.fromhex(match[0].replace("-", ""))).hex("-")

    def _dots(self, match: re.Match[str]) -> str:
        try:
            return str(ipaddress.IPv4Address(self.ipv4(ipaddress.IPv4Address(match[0]).packed)))
        except ValueError:
            return match[0]

    def _config(self, value: bytes) -> bytes:
        """Mask the Device Serial Number capability of a PCI function (PCI Express Base Specification, 7.9.3)."""
        at = 0x100
        while at and at + 12 <= len(value):
            header = int.from_bytes(value[at : at + 4], "little")
            if header & 0xFFFF == 3:
                serial = self.guid(value[at + 4 : at + 12][::-1])[::-1]
                value = value[: at + 4] + serial + value[at + 12 :]
            following = header >> 20 & 0xFFC
            at = following if following > at else 0
        return value

    # Masks

    def _bytes(self, kind: str, scope: str, value: bytes) -> bytes:
        """Mask bytes: each value of a scope (a vendor) by another one."""
        return bytes.fromhex(self._unique(f"{kind} {scope}", value.hex(), _masked_hex))

    def _unique(self, kind: str, value: str, make: Callable[[str, bytes], str]) -> str:
        """Return the mask of a value, for every value of the kind another one as long as there are any."""
        if (kind, value) not in self._made:
            made = value
            for attempt in range(ATTEMPTS):
                if made != value and (kind, made) not in self._taken:
                    break
                digest = hashlib.shake_256(self._key + f"{kind} {value} {attempt}".encode(errors="surrogateescape"))
                made = make(value, digest.digest(len(value)))
            self._taken.add((kind, made))
            self._made[kind, value] = made
        return self._made[kind, value]


def _any_of(names: set[str]) -> re.Pattern[str]:
    """Return what matches one of the names as a whole word, the longest first; nothing without names."""
    choices = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?:{choices or '(?!)'})(?![\w-])", re.IGNORECASE)


def _masked_ipv4(kept: int, text: str, seed: bytes) -> str:
    octets = text.split(".")
    return ".".join([*octets[:kept], *map(_octet, octets[kept:], seed)])


def _octet(text: str, seed: int) -> str:
    low, high = {1: (0, 9), 2: (10, 99), 3: (100, 255)}[len(text)]
    return str(low + seed % (high - low + 1))


def _scrambled(text: str, seed: bytes) -> str:
    return "".join(map(_scrambled_character, text, seed))


def _scrambled_character(character: str, seed: int) -> str:
    if character.isdecimal():
        return string.digits[seed % 10]
    if character.isalnum():
        return (string.ascii_uppercase if character.isupper() else string.ascii_lowercase)[seed % 26]
    return character


def _masked_hex(text: str, seed: bytes) -> str:
    return "".join(c if c == ":" else string.hexdigits[s % 16] for c, s in zip(text, seed, strict=True))


def mask_snapshot(snapshot: Snapshot, mask: Mask) -> Snapshot:
    """Return the snapshot with everything masked that tells whose machine it is."""

    def whole(answer: tuple[T, ...] | OSError | None, change: Callable[[T], T]) -> tuple[T, ...] | OSError | None:
        return tuple(map(change, answer)) if isinstance(answer, tuple) else answer

    def named(answers: dict[str, T]) -> dict[str, T]:
        return {mask.name(netdev): answer for netdev, answer in answers.items()}

    statistics = snapshot.rdma_statistics
    if isinstance(statistics, dict):
        statistics = {(mask.name(device), port): answer for (device, port), answer in statistics.items()}
    return replace(
        snapshot,
        sysfs=_mask_tree(snapshot.sysfs, mask),
        proc=_mask_tree(snapshot.proc, mask),
        statistics=named(snapshot.statistics),
        driver_info=named(snapshot.driver_info),
        link_state=named(snapshot.link_state),
        pause=named(snapshot.pause),
        fec=named(snapshot.fec),
        standard=named(snapshot.standard),
        dcb=named(snapshot.dcb),
        rdma_statistics=statistics,
        rdma_devices=whole(
            snapshot.rdma_devices, lambda d: d._replace(name=mask.name(d.name), node_guid=mask.text(d.node_guid))
        ),
        rdma_links=whole(
            snapshot.rdma_links,
            lambda link: link._replace(device=mask.name(link.device), netdev=mask.name(link.netdev)),
        ),
        links=whole(snapshot.links, lambda link: link._replace(name=mask.name(link.name), mac=mask.text(link.mac))),
        default_routes=whole(snapshot.default_routes, mask.name),
    )


def _mask_tree(tree: Tree, mask: Mask) -> Tree:
    masked = Tree()
    for path, value in tree.entries():
        match value:
            case Link(target):
                masked.add(Entry(mask.name(path), Link(mask.name(target))))
            case Failure() | None:
                masked.add(Entry(mask.name(path), value))
            case bytes():
                masked.add(Entry(mask.name(path), mask.attribute(path, value)))
    return masked
