"""The ``ethtool`` generic netlink family: link, pause, FEC, and statistics that carry IEEE 802.3's own names.

include/uapi/linux/ethtool_netlink.h and ethtool.h, Documentation/networking/ethtool-netlink.rst. Needs no privilege; the
kernel holds RTNL while the driver answers.
"""

from __future__ import annotations

import errno

from exporter.kernel import Fec, LinkState, Pause, Statistics
from exporter.kernel.netlink import (
    TIMEOUT_SECONDS,
    GenericFamily,
    attribute,
    attributes,
    malformed,
    name_attribute,
    nested,
    number,
    number_attribute,
    optional_bool,
    optional_number,
    required,
    text,
)

_STRSET_GET, _LINKSTATE_GET, _PAUSE_GET, _FEC_GET, _STATS_GET = 1, 6, 21, 29, 32  # ETHTOOL_MSG_*
_WITH_STATISTICS = 1 << 2  # ETHTOOL_FLAG_STATS

_HEADER = 1  # ETHTOOL_A_*_HEADER of all messages used here but one:
_STATS_HEADER, _STATS_GROUPS, _STATS_GROUP = 2, 3, 4
_HEADER_NAME, _HEADER_FLAGS = 2, 3
_BITSET_NOMASK, _BITSET_SIZE, _BITSET_VALUE = 1, 2, 4
_GROUP_STRING_SET, _GROUP_STATISTIC = 3, 4
_STRSET_SETS, _SETS_SET, _SET_ID, _SET_STRINGS, _STRINGS_STRING, _STRING_INDEX, _STRING_VALUE = 2, 1, 1, 3, 1, 1, 2
_LINK, _EXT_STATE, _EXT_SUBSTATE, _EXT_DOWN_COUNT = 2, 5, 6, 7
_PAUSE_AUTONEG, _PAUSE_RX, _PAUSE_TX, _PAUSE_STATS, _PAUSE_TX_FRAMES, _PAUSE_RX_FRAMES = 2, 3, 4, 5, 2, 3
_FEC_ACTIVE, _FEC_STATS, _FEC_CORRECTED, _FEC_UNCORRECTABLE, _FEC_CORRECTED_BITS = 4, 5, 2, 3, 4

_GROUPS = 0b111  # ETHTOOL_STATS_ETH_PHY, _ETH_MAC, _ETH_CTRL
_STRING_SETS = (17, 18, 19)  # their ETH_SS_STATS_*
_FEC_MODES = {49: "None", 50: "RS", 51: "BASER", 74: "LLRS"}  # ETHTOOL_LINK_MODE_FEC_*_BIT


class LiveEthtoolNetlink:
    """The kernel's ethtool netlink."""

    def __init__(self, timeout: float = TIMEOUT_SECONDS) -> None:
        self._family = GenericFamily("ethtool", timeout)
        self._strings: dict[int, dict[int, str]] = {}
        self._names: dict[tuple[tuple[int, int], ...], tuple[str, ...]] = {}
        self._link_state_flags: tuple[int, ...] = (_WITH_STATISTICS, 0)

    def link_state(self, netdev: str) -> LinkState:
        """Return the link and why it is down, as far as the driver says. ENODEV: no such interface."""
        *preferred, last = self._link_state_flags
        for flags in preferred:
            try:
                return decode_link_state(self._get(_LINKSTATE_GET, "link state", netdev, flags))
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
        # Kernels before 6.2 have no down count and refuse the flag that asks for it.
        state = decode_link_state(self._get(_LINKSTATE_GET, "link state", netdev, last))
        self._link_state_flags = (last,)
        return state

    def pause(self, netdev: str) -> Pause:
        """Return 802.3x pause. EOPNOTSUPP: the driver has none."""
        return decode_pause(self._get(_PAUSE_GET, "pause", netdev, _WITH_STATISTICS))

    def fec(self, netdev: str) -> Fec:
        """Return the FEC mode and totals over all lanes. EOPNOTSUPP: the driver has none."""
        return decode_fec(self._get(_FEC_GET, "FEC", netdev, _WITH_STATISTICS))

    def standard(self, netdev: str) -> Statistics:
        """Return what the driver gives of the groups eth-phy, eth-mac and eth-ctrl, perhaps nothing."""
        groups = nested(
            _STATS_GROUPS,
            attribute(_BITSET_NOMASK, b""),
            number_attribute(_BITSET_SIZE, _GROUPS.bit_length()),
            number_attribute(_BITSET_VALUE, _GROUPS),
        )
        header = nested(_STATS_HEADER, name_attribute(_HEADER_NAME, netdev))
        return self._named(self._family.request(_STATS_GET, header + groups, f"statistics of {netdev}"))

    def _named(self, body: bytes) -> Statistics:
        keys, values = decode_standard(body)
        names = self._names.get(keys)
        if names is None:
            names = self._names.setdefault(keys, tuple(self._string(*key) for key in keys))
        return Statistics(names, values)

    def _get(self, command: int, what: str, netdev: str, flags: int) -> bytes:
        header = nested(_HEADER, name_attribute(_HEADER_NAME, netdev), number_attribute(_HEADER_FLAGS, flags))
        return self._family.request(command, header, f"{what} of {netdev}")

    def _string(self, string_set: int, index: int) -> str:
        # The names are the kernel's, so that a counter that a later kernel adds has one too. They are asked for once.
        if not self._strings:
            sets = (nested(_SETS_SET, number_attribute(_SET_ID, id)) for id in _STRING_SETS)
            body = nested(_HEADER) + nested(_STRSET_SETS, *sets)
            self._strings = decode_strings(self._family.request(_STRSET_GET, body, "names of standard statistics"))
        try:
            return self._strings[string_set][index]
        except KeyError:
            raise malformed(f"statistic {index} has no name in string set {string_set}") from None


def decode_link_state(body: bytes) -> LinkState:
    """Return what an answer to LINKSTATE_GET says. Raises OSError(EBADMSG)."""
    table = dict(attributes(body))
    return LinkState(
        link=optional_bool(table.get(_LINK)),
        ext_state=optional_number(table.get(_EXT_STATE), 1),
        ext_substate=optional_number(table.get(_EXT_SUBSTATE), 1),
        down_count=optional_number(table.get(_EXT_DOWN_COUNT), 4),
    )


def decode_pause(body: bytes) -> Pause:
    """Return what an answer to PAUSE_GET says. Raises OSError(EBADMSG)."""
    table = dict(attributes(body))
    frames = dict(attributes(table.get(_PAUSE_STATS, b"")))
    return Pause(
        autoneg=optional_bool(table.get(_PAUSE_AUTONEG)),
        receive=optional_bool(table.get(_PAUSE_RX)),
        transmit=optional_bool(table.get(_PAUSE_TX)),
        received_frames=optional_number(frames.get(_PAUSE_RX_FRAMES), 8),
        transmitted_frames=optional_number(frames.get(_PAUSE_TX_FRAMES), 8),
    )


def decode_fec(body: bytes) -> Fec:
    """Return what an answer to FEC_GET says. Raises OSError(EBADMSG)."""
    table = dict(attributes(body))
    active = optional_number(table.get(_FEC_ACTIVE), 4)
    totals = dict(attributes(table.get(_FEC_STATS, b"")))
    return Fec(
        active="" if active is None else _FEC_MODES.get(active, ""),
        corrected_blocks=_total(totals.get(_FEC_CORRECTED, b"")),
        uncorrectable_blocks=_total(totals.get(_FEC_UNCORRECTABLE, b"")),
        corrected_bits=_total(totals.get(_FEC_CORRECTED_BITS, b"")),
    )


def _total(counts: bytes) -> int | None:
    # u64 each: the total, then one per lane; empty when the driver has none.
    return number(counts[:8], 8) if counts else None


def decode_standard(body: bytes) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Return (string set, index) and value of each statistic in an answer to STATS_GET. Raises OSError(EBADMSG)."""
    keys, values = [], []
    for type, group in attributes(body):
        if type != _STATS_GROUP:
            continue
        members = list(attributes(group))
        string_set = number(required(dict(members), _GROUP_STRING_SET, "string set"), 4)
        for member, statistic in members:
            if member == _GROUP_STATISTIC:
                for index, value in attributes(statistic):
                    keys.append((string_set, index))
                    values.append(number(value, 8))
    return tuple(keys), tuple(values)


def decode_strings(body: bytes) -> dict[int, dict[int, str]]:
    """Return the strings of an answer to STRSET_GET, by string set and index. Raises OSError(EBADMSG)."""
    sets = {}
    for _, set_body in attributes(dict(attributes(body)).get(_STRSET_SETS, b"")):
        table = dict(attributes(set_body))
        strings = {}
        for _, string_body in attributes(table.get(_SET_STRINGS, b"")):
            string = dict(attributes(string_body))
            index = number(required(string, _STRING_INDEX, "string index"), 4)
            strings[index] = text(required(string, _STRING_VALUE, "string"))
        sets[number(required(table, _SET_ID, "string set"), 4)] = strings
    return sets
