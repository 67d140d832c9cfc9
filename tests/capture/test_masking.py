"""Masks: of the same length, the same for the same, another for another; and nothing gets past them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.kernel import Link as Interface
from exporter.kernel import RdmaDevice, RdmaLink, Statistics
from exporter.kernel.snapshot import Snapshot
from exporter.kernel.tree import Entry, Failure, Link, Tree
from exporter.masking import Mask, mask_snapshot

KEY = b"a key that a test may know"
HEX = "0123456789abcdef"


def octets(count: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=count, max_size=count)


MACS = octets(6).map(lambda value: value.hex(":"))
GUIDS = octets(8).map(lambda value: value.hex(":", 2))
GIDS = octets(16).map(lambda value: value.hex(":", 2))
ADDRESSES = st.ip_addresses().map(str)
WORDS = st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=20)


@given(st.lists(st.one_of(MACS, GUIDS, GIDS, ADDRESSES, WORDS), max_size=6))
def test_length_and_order_stay(values: list[str]) -> None:
    text = " ".join(values)
    masked = Mask(KEY).text(text)
    assert len(masked) == len(text)
    assert Mask(KEY).text(text) == masked
    assert [len(part) for part in masked.split(" ")] == [len(part) for part in text.split(" ")]


@given(st.lists(MACS, min_size=2, max_size=20, unique=True))
def test_macs_keep_their_vendor_and_stay_apart(values: list[str]) -> None:
    mask = Mask(KEY)
    masked = [mask.text(value) for value in values]
    assert [value[:8] for value in masked] == [value[:8] for value in values]
    assert len(set(masked)) == len(values)
    assert [mask.text(value) for value in values] == masked
    assert all(
        new != old
        for new, old in zip(masked, values, strict=True)
        if old not in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")
    )


@given(
    st.lists(
        WORDS.filter(lambda word: re.search("[a-zA-Z]{4}", word) is not None), min_size=2, max_size=10, unique=True
    )
)
def test_words_stay_apart(values: list[str]) -> None:
    mask = Mask(KEY)
    masked = [mask.word("serial number", value) for value in values]
    assert len(set(masked)) == len(values)
    assert not set(masked) & set(values)


def test_one_device_has_one_mask_in_all_its_forms() -> None:
    """MAC address, GUIDs of both kinds, GID, IPoIB address and name of one port agree in their device's half."""
    mask = Mask(KEY)
    vendor, device = "0c:42:a1", mask.text("0c:42:a1:12:34:56")[9:].replace(":", "")
    assert device != "123456"
    forms = {
        "0c42:a103:0012:3456": f"0c42:a103:00{device[:2]}:{device[2:]}",
        "0e42:a1ff:fe12:3456": f"0e42:a1ff:fe{device[:2]}:{device[2:]}",
        "fe80:0000:0000:0000:0e42:a1ff:fe12:3456": f"fe80:0000:0000:0000:0e42:a1ff:fe{device[:2]}:{device[2:]}",
        "80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:12:34:56": "80:00:02:08:fe:80:00:00:00:00:00:00:"
        f"0c:42:a1:03:00:{device[:2]}:{device[2:4]}:{device[4:]}",
        "enx0c42a1123456": f"enx0c42a1{device}",
        "rocex0c42a10300123456": f"rocex0c42a10300{device}",
    }
    assert {form: mask.text(form) for form in forms} == forms
    assert vendor == mask.text("0c:42:a1:12:34:56")[:8]


def test_an_address_has_one_mask_as_text_and_as_gid() -> None:
    mask = Mask(KEY)
    masked = mask.text("10.12.130.7")
    assert re.fullmatch(r"10\.\d\d\.\d{3}\.\d", masked)
    assert masked != "10.12.130.7"
    packed = bytes(int(octet) for octet in masked.split("."))
    assert mask.text("0000:0000:0000:0000:0000:ffff:0a0c:8207") == "0000:0000:0000:0000:0000:ffff:" + packed.hex(":", 2)


@pytest.mark.parametrize(
    "text",
    [
        "0000:03:00.0",
        "pci0000:00",
        "4: ACTIVE",
        "400 Gb/sec (4X NDR)",
        "pci:v000015B3d00001021sv000015B3sd00000023bc02sc00i00",
        "DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:1021\nPCI_SLOT_NAME=0000:19:00.0",
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "0000:0000:0000:0000",
        "fe80:0000:0000:0000:0000:0000:0000:0000",
        "127.0.0.1",
        "0.0.0.0",
        "2026-12-02 01:33:21",
        "MT_0000000838",
        "mlx5_core.eth.0",
    ],
)
def test_what_tells_nothing_stays(text: str) -> None:
    assert Mask(KEY, ("gpu-017",)).text(text) == text


@pytest.mark.parametrize(
    ("path", "value", "pattern"),
    [
        ("class/dmi/id/product_serial", "J1234XYZ", r"[A-Z]\d{4}[A-Z]{3}"),
        ("class/dmi/id/product_serial", "12345678", r"\d{8}"),
        ("class/dmi/id/product_uuid", "4c4c4544-0031", r"\d[a-z]\d[a-z]\d{4}-\d{4}"),
        ("class/net/eth0/ifalias", "rack 12, port 3", r"[a-z]{4} \d\d, [a-z]{4} \d"),
        ("class/infiniband/mlx5_0/node_desc", "trainer HCA-1", r"[a-z]{7} HCA-1"),
        ("class/infiniband/mlx5_0/node_desc", "own-host-1 mlx5_0", r"[a-z]{3}-[a-z]{4}-\d mlx5_0"),
        ("class/infiniband/mlx5_0/node_desc", "on host here", r"on [a-z]{4} here"),
        ("sys/kernel/hostname", "gpu7.example.com", r"[a-z]{3}\d\.[a-z]{7}\.[a-z]{3}"),
        ("class/net/eth0/phys_switch_id", "0c42a10300123456", r"0c42a10300[0-9a-f]{6}"),
        ("class/net/eth0/phys_port_id", "0102030405", r"[0-9a-f]{10}"),
    ],
)
def test_attributes_are_masked_by_their_meaning(path: str, value: str, pattern: str) -> None:
    masked = Mask(KEY, ("host",)).attribute(path, value.encode()).decode()
    assert re.fullmatch(pattern, masked)
    assert masked != value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("class/infiniband/bnxt_re0/fw_ver", "230.2.49.0"),
        ("class/infiniband/mlx5_0/node_desc", "MT4129 ConnectX7   Mellanox Technologies"),
        ("module/mlx5_core/version", "24.10.1.1"),
        ("class/net/eth0/statistics/rx_bytes", "123456789012"),
        ("class/infiniband/mlx5_0/ports/1/rate", "host 400"),  # a host called "host" is a word everywhere else
    ],
)
def test_attributes_that_tell_nothing_stay(path: str, value: str) -> None:
    assert Mask(KEY, ("host",)).attribute(path, value.encode()) == value.encode()


def test_the_own_host_name_goes_wherever_it_stands() -> None:
    mask = Mask(KEY, ("gpu-017.dc1.example.com",))
    masked = mask.text("booted by GPU-017 for gpu-017.dc1.example.com, not for gpu-0171")
    assert re.fullmatch(
        r"booted by [a-z]{3}-\d{3} for [a-z]{3}-\d{3}\.[a-z]{2}\d\.[a-z]{7}\.[a-z]{3}, not for gpu-0171", masked
    )
    assert "gpu-017." not in masked
    first, second = masked.split()[2], masked.split()[4].partition(".")[0]
    assert first == second


def test_the_serial_number_in_pci_config_space() -> None:
    """A capability at 0x100 that leads to the Device Serial Number at 0x148, little endian."""
    config = bytearray(b"\x01" * 0x200)
    config[0x100:0x104] = (0x0001 | 1 << 16 | 0x148 << 20).to_bytes(4, "little")
    config[0x148:0x14C] = (0x0003 | 1 << 16).to_bytes(4, "little")
    config[0x14C:0x154] = bytes.fromhex("0c42a10300123456")[::-1]
    mask = Mask(KEY)
    masked = mask.attribute("devices/x/config", bytes(config))
    serial = bytes.fromhex(mask.text("0c42:a103:0012:3456").replace(":", ""))
    assert masked[0x14C:0x154] == serial[::-1]
    assert masked[:0x14C] == config[:0x14C]
    assert masked[0x154:] == config[0x154:]


def test_keys_give_other_masks() -> None:
    assert Mask(KEY).text("0c:42:a1:12:34:56") != Mask(b"another").text("0c:42:a1:12:34:56")


def test_a_snapshot_is_masked_in_all_its_parts() -> None:
    sysfs = Tree()
    sysfs.add(Entry("class/net/enx0c42a1123456", Link("../../devices/virtual/net/enx0c42a1123456")))
    sysfs.add(Entry("devices/virtual/net/enx0c42a1123456/address", b"0c:42:a1:12:34:56"))
    sysfs.add(Entry("devices/virtual/net/enx0c42a1123456/speed", Failure(22)))
    sysfs.add(Entry("devices/virtual/net/enx0c42a1123456/queues", None))
    name, mac, guid = "enx0c42a1123456", "0c:42:a1:12:34:56", "0c42:a103:0012:3456"
    rocex = "rocex0c42a1123456"
    counters = Statistics(("rx_packets",), (7,))
    snapshot = Snapshot(
        sysfs=sysfs,
        statistics={name: counters},
        rdma_statistics={(rocex, 1): counters},
        rdma_devices=(RdmaDevice(0, rocex, "28.41.1000", guid, "ib", 1),),
        rdma_links=(RdmaLink(0, rocex, 1, 4, 5, 2, name),),
        links=(Interface(2, name, "", 0, 0, mac, 1500, True, True, "up", 1, 1, False),),
        default_routes=(name,),
    )
    mask = Mask(KEY)
    masked = mask_snapshot(snapshot, mask)
    (enx,) = masked.statistics
    assert re.fullmatch("enx0c42a1[0-9a-f]{6}", enx)
    assert enx != name
    half = enx[-6:]
    assert masked.sysfs.list("class/net") == (enx,)
    assert masked.sysfs.read_bytes(f"class/net/{enx}/address") == f"0c:42:a1:{half[:2]}:{half[2:4]}:{half[4:]}".encode()
    assert isinstance(masked.links, tuple)
    assert isinstance(masked.rdma_devices, tuple)
    assert masked.links[0].name == enx
    assert masked.links[0].mac.replace(":", "") == f"0c42a1{half}"
    assert masked.rdma_links == (RdmaLink(0, f"rocex0c42a1{half}", 1, 4, 5, 2, enx),)
    assert masked.rdma_devices[0] == RdmaDevice(
        0, f"rocex0c42a1{half}", "28.41.1000", f"0c42:a103:00{half[:2]}:{half[2:]}", "ib", 1
    )
    assert masked.rdma_statistics == {(f"rocex0c42a1{half}", 1): counters}
    assert masked.default_routes == (enx,)
    assert mask.counts == {"MAC address": 1, "GUID": 1}


def test_a_mac_address_may_be_written_with_dashes() -> None:
    mask = Mask(KEY)
    assert mask.text("at B8-3F-D2-AA-BB-CD").replace("-", ":") == f"at {mask.text('b8:3f:d2:aa:bb:cd')}"


def test_the_host_in_the_name_of_a_device_is_masked_everywhere_alike() -> None:
    mask = Mask(KEY, ("gpu-rack7-n042.example",))
    tree = Tree()
    tree.add(Entry("class/infiniband/gpu-rack7-n042/fw_ver", b"28.39.1002"))
    masked = mask_snapshot(Snapshot(sysfs=tree, rdma_devices=(RdmaDevice(0, "gpu-rack7-n042", "", "", "ib", 1),)), mask)
    (name,) = masked.sysfs.list("class/infiniband")
    assert name != "gpu-rack7-n042"
    assert isinstance(masked.rdma_devices, tuple)
    assert masked.rdma_devices[0].name == name
