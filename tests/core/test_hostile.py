"""Whatever the kernel or a file of a capture says, the page can be read, and what is wrong costs itself."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from exporter.app import Exporter
from exporter.capture import write_capture
from exporter.cli.capture import read_everything
from exporter.config import Settings
from exporter.discovery import Filter
from exporter.kernel import DriverInfo, Kernel, Link, RdmaDevice, RdmaLink, Statistics, unsigned
from exporter.kernel.captured import open_capture
from exporter.kernel.live import open_kernel
from exporter.kernel.snapshot import Snapshot, kernel_of
from exporter.web.render import Renderer
from exporter.web.server import application

NAMES = (
    'a"b',
    "back\\slash",
    "%s%d%%",
    "{x}",
    "--help",
    "-c",
    "<b>&amp;",
    "fifteen-bytes-x",
    "żółć",
    "\x01ctl",
    "esc\x1b[31m",
    "bad\udcff\udcfe",
    "$(id)",
    "q'q",
    "\u202ertl",
    "nl\nnl",
    "~",
)
STATISTICS = ("rx_crc_errors_phy", 'q"', "nl\nnl", "nul\0x", "<script>", "%s", " lead", "a: b", "", "rx_crc_errors_phy")
EVERYTHING = Settings(
    profile="full",
    netdevs=Filter(include=re.compile(".*", re.DOTALL)),
    raw=re.compile(".*", re.DOTALL),
    config_file="",
)
Page = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def scraped(kernel: Kernel) -> tuple[Page, int]:
    """Return the samples of one scrape, as Prometheus' own client parses them, and the read errors that it counted."""
    exporter = Exporter(kernel, EVERYTHING)
    await exporter.first_read()
    readings = await exporter.scrape(None, asyncio.get_running_loop().time() + 20)
    text = Renderer().render(readings, openmetrics=False).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    page = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(page) == len(samples), "a series twice"
    errors = sum(value for (name, _), value in page.items() if name == "fabric_source_read_errors_total")
    return page, int(errors)


def netdev(name: str, ifindex: int) -> Link:
    return Link(ifindex, name, "", 0, 0, "02:00:00:00:00:01", 1500, True, True, "up", 1, 2, False)


def host() -> Kernel:
    """A host whose every name is hostile; its counters have hostile names, one of them twice."""
    return kernel_of(
        Snapshot(
            links=tuple(netdev(name, number) for number, name in enumerate(NAMES, 1)),
            statistics={name: Statistics(STATISTICS, tuple(range(len(STATISTICS)))) for name in NAMES},
            driver_info={name: DriverInfo("mlx5_core", 'v"', "fw\n1", "") for name in NAMES},
            rdma_devices=tuple(RdmaDevice(n, name, 'f"w', "", "ib", 1) for n, name in enumerate(NAMES)),
            rdma_links=tuple(RdmaLink(n, name, 1, 4, 5, n + 1, name) for n, name in enumerate(NAMES)),
            rdma_statistics={(name, 1): Statistics(("out_of_sequence",), (7,)) for name in NAMES},
            default_routes=(NAMES[0],),
        )
    )


def as_shown(name: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", name)


async def test_any_name_is_served_as_it_is() -> None:
    page, errors = await scraped(host())
    assert errors == 0
    for name in map(as_shown, NAMES):
        port = frozenset({("device", name), ("port", "1")})
        assert page["fabric_rdma_out_of_sequence_packets_total", port] == 7, name
        labels = frozenset({*port, ("netdev", name)})
        assert page["fabric_phy_crc_errors_total", labels] == 0, name
        for value, raw in enumerate(STATISTICS[:-1]):
            assert page["fabric_ethtool_raw", frozenset({("netdev", name), ("stat", raw)})] == value, raw


async def test_any_name_is_shown_by_the_landing_page() -> None:
    exporter = Exporter(host(), EVERYTHING)
    await exporter.first_read()
    async with TestClient(TestServer(application(exporter, None))) as client:
        answer = await client.get("/")
        text = await answer.text()
    assert answer.status == 200
    assert "<td>&lt;b&gt;&amp;amp;</td>" in text
    assert "<td>bad??</td>" in text


def test_any_name_can_be_captured(tmp_path: Path) -> None:
    """But for names of counters with a newline, which the text of ``ethtool -S`` cannot hold."""
    kernel = host()
    write_capture(kernel, lambda asked: asyncio.run(read_everything(asked, EVERYTHING)), tmp_path / "capture")
    captured = open_capture(tmp_path / "capture")
    assert [link.name for link in captured.links.dump()] == list(NAMES)
    for name in NAMES:
        assert captured.ethtool.driver_info(name).driver == "mlx5_core", name
    assert captured.rdma.statistics(3, 1) == Statistics(("out_of_sequence",), (7,))


VALUES: tuple[tuple[bytes, int | None], ...] = (
    (b"0", 0),
    (b" 12 ", 12),
    (b"18446744073709551615", 2**64 - 1),
    (b"18446744073709551616", None),
    (b"9" * 300, None),
    (b"9" * 4000, None),
    (b"1" * 1_000_000, None),
    (b"-1", None),
    (b"+5", None),
    (b"1_000", None),
    (b"0x10", None),
    (b"1.5", None),
    (b"1e3", None),
    (b"NaN", None),
    (b"inf", None),
    (b"", None),
    (b"12\0", None),
    (b"1\n2", None),
    ("٣".encode(), None),
    ("²".encode(), None),
    (b"\xff", None),
)


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[repr(text[:20]) for text, _ in VALUES])
async def test_what_is_no_counter_is_no_series_and_an_error(tmp_path: Path, text: bytes, value: int | None) -> None:
    for device, symbols in (("mlx5_0", text), ("mlx5_1", b"3")):
        port = tmp_path / "class/infiniband" / device / "ports/1"
        for name, content in (
            ("counters/symbol_error", symbols),
            ("counters/port_xmit_data", symbols),
            ("hw_counters/out_of_sequence", symbols),
            ("link_layer", b"InfiniBand"),
            ("state", b"4: ACTIVE"),
            ("rate", b"400 Gb/sec (4X NDR)"),
        ):
            (port / name).parent.mkdir(parents=True, exist_ok=True)
            (port / name).write_bytes(content + b"\n")
    page, errors = await scraped(open_kernel(str(tmp_path)))

    def of(device: str, name: str) -> float | None:
        return page.get((name, frozenset({("device", device), ("port", "1")})))

    assert of("mlx5_0", "fabric_ib_symbol_errors_total") == value
    assert of("mlx5_0", "fabric_rdma_out_of_sequence_packets_total") == value
    assert of("mlx5_0", "fabric_rdma_transmitted_bytes_total") == (None if value is None else 4 * value)
    assert of("mlx5_1", "fabric_ib_symbol_errors_total") == 3
    assert of("mlx5_0", "fabric_port_up") == 1
    assert (errors > 0) == (value is None)


@pytest.mark.parametrize("text", [text for text, value in VALUES if value is None], ids=lambda text: repr(text[:20]))
@pytest.mark.parametrize("name", ["state", "phys_state", "rate", "link_layer"])
async def test_what_is_no_state_is_no_series(tmp_path: Path, name: str, text: bytes) -> None:
    port = tmp_path / "class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    for file, content in (
        ("state", b"4: ACTIVE"),
        ("phys_state", b"5: LinkUp"),
        ("rate", b"400 Gb/sec (4X NDR)"),
        (name, text + b": ACTIVE"),
        (name, text + b" Gb/sec"),
    ):
        (port / file).write_bytes(content + b"\n")
        page, _ = await scraped(open_kernel(str(tmp_path)))
        for metric in ("fabric_port_state_id", "fabric_port_physical_state_id", "fabric_port_up"):
            value = page.get((metric, frozenset({("device", "mlx5_0"), ("port", "1")})))
            assert value in (None, 0, 1, 4, 5), (metric, content)


def test_a_number_is_what_the_kernel_prints() -> None:
    assert [unsigned(text.decode("utf-8", "replace")) for text, _ in VALUES] == [value for _, value in VALUES]
