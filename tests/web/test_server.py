from __future__ import annotations

import asyncio
import gzip
import re

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families as parse_text

from exporter.model import Inventory, Netdev, RdmaPort, Reading, Series, Shape
from exporter.web.server import answer_within
from tests.web.served import UP, Host, serving

HOSTILE = '<script>alert("1")</script>&'


async def test_metrics() -> None:
    async with serving() as site, site.client.get(site.url + "/metrics") as response:
        assert response.status == 200
        assert response.headers.getall("Content-Type") == ["text/plain; version=0.0.4; charset=utf-8"]
        (family,) = parse_text(await response.text())
        assert {sample.labels["device"]: sample.value for sample in family.samples} == {"ethtool": 1, "rdma": 1}


async def test_openmetrics_is_negotiated() -> None:
    accept = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8,text/plain;q=0.5"
    async with serving() as site, site.client.get(site.url + "/metrics", headers={"Accept": accept}) as response:
        content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
        assert response.headers.getall("Content-Type") == [content_type]
        assert (await response.text()).endswith("# EOF\n")


@pytest.mark.parametrize("series", [1, 5000])
async def test_gzip(series: int) -> None:
    shape = Shape(Series(UP, (("device", f"mlx5_{n}"),)) for n in range(series))
    host = Host(extra=(Reading(shape, tuple(range(series))),))
    async with serving(host) as site:
        identity = await site.get(headers={"Accept-Encoding": "identity"})
        session = site.client
        headers = {"Accept-Encoding": "gzip"}
        async with session.get(site.url + "/metrics", headers=headers, auto_decompress=False) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            assert gzip.decompress(await response.read()).decode() == identity[1]
        async with session.get(site.url + "/metrics", headers={"Accept-Encoding": "gzip;q=0"}) as response:
            assert "Content-Encoding" not in response.headers


@pytest.mark.parametrize(
    ("query", "sources"),
    [
        ("", None),
        ("?collect[]=rdma", {"rdma"}),
        ("?collect[]=rdma&collect[]=ethtool", {"rdma", "ethtool"}),
        ("?exclude[]=rdma", {"ethtool"}),
        ("?collect[]=rdma&collect[]=ethtool&exclude[]=rdma", {"ethtool"}),
        ("?exclude[]=rdma&exclude[]=ethtool", set()),
        ("?other=1", None),
    ],
)
async def test_sources_are_chosen(query: str, sources: set[str] | None) -> None:
    host = Host()
    async with serving(host) as site:
        assert (await site.get("/metrics" + query))[0] == 200
    assert host.asked[0][0] == sources


@pytest.mark.parametrize("key", ["collect[]", "exclude[]"])
async def test_an_unknown_source_is_told(key: str) -> None:
    host = Host()
    async with serving(host) as site:
        answer = await site.get(f"/metrics?collect[]=rdma&{key}=infiniband")
    assert answer == (400, "unknown source 'infiniband', expected one of ethtool, rdma\n")
    assert host.asked == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("10", 9.5),
        ("2.5", 2.0),
        ("1", 0.5),
        ("0.6", 0.3),
        ("", 9.5),
        ("soon", 9.5),
        ("-1", 9.5),
        ("0", 9.5),
        ("nan", 9.5),
        ("inf", 9.5),
        ("1e300", 9.5),
    ],
)
def test_deadline(header: str, seconds: float) -> None:
    assert answer_within(header) == pytest.approx(seconds)


async def test_the_deadline_reaches_the_scraper() -> None:
    host = Host()
    async with serving(host) as site:
        await site.get(headers={"X-Prometheus-Scrape-Timeout-Seconds": "60"})
        await site.get()
    assert 9.5 < host.asked[0][1] <= 59.5
    assert host.asked[1][1] <= 9.5


async def test_health() -> None:
    host = Host(ready=False)
    async with serving(host) as site:
        assert await site.get("/-/healthy") == (200, "healthy\n")
        assert await site.get("/-/ready") == (503, "not ready, sources are being read for the first time\n")
        host.ready = True
        assert await site.get("/-/ready") == (200, "ready\n")


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/nothing", 404, "404: Not Found"),
        ("POST", "/metrics", 405, "405: Method Not Allowed"),
        ("DELETE", "/-/ready", 405, "405: Method Not Allowed"),
        ("HEAD", "/metrics", 200, ""),
        ("HEAD", "/", 200, ""),
    ],
)
async def test_other_methods_and_paths(method: str, path: str, status: int, body: str) -> None:
    async with serving() as site:
        assert await site.get(path, method=method) == (status, body)


async def test_a_head_is_as_long_as_its_get() -> None:
    async with serving() as site:
        headers = {"Accept-Encoding": "identity"}
        _, body = await site.get(headers=headers)
        async with site.client.head(site.url + "/metrics", headers=headers) as response:
            assert int(response.headers["Content-Length"]) == len(body)


async def test_no_more_than_so_many_at_once() -> None:
    host = Host(gate=asyncio.Event())
    async with serving(host, max_requests=2) as site:
        running = [asyncio.create_task(site.get()) for _ in range(2)]
        await host.asked_for(2)
        assert await site.get() == (503, "2 requests are being answered, try again later\n")
        assert (await site.get("/-/healthy"))[0] == 200
        assert host.gate is not None
        host.gate.set()
        assert [status for status, _ in await asyncio.gather(*running)] == [200, 200]
        assert (await site.get())[0] == 200


async def test_a_failure_of_ours_is_one_line_and_logged() -> None:
    host = Host(extra=(Reading(Shape([Series(UP, ())]), ()),))
    with structlog.testing.capture_logs() as logs:
        async with serving(host) as site:
            assert await site.get() == (500, "internal error, see the exporter's log\n")
    (entry,) = logs
    assert (entry["log_level"], entry["event"], entry["path"]) == ("error", "request failed", "/metrics")
    assert entry["exc_info"]


async def test_the_landing_page_shows_ports_and_escapes_what_it_shows() -> None:
    port = RdmaPort(HOSTILE, 1, netdev="bond0", members=("ens1", "ens2"), driver="mlx5_core", role="fabric", rail="3")
    gone = RdmaPort("mlx5_7", 1, driver="mlx5_core")
    netdev = Netdev("eth0", driver="virtio_net", role="frontend")
    host = Host(inventory_=Inventory(ports=(port,), netdevs=(netdev,), missing=(gone,)))
    async with serving(host, telemetry_path="/fabric") as site, site.client.get(site.url + "/") as response:
        assert response.content_type == "text/html"
        page = await response.text()
        policy = response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    rows = [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(<td>.*?)</tr>", page)]
    assert rows == [
        ["mlx5_7", "1", "", "mlx5_core", "", "unknown", "", "", "missing"],
        [
            "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;",
            "1",
            "bond0 (ens1, ens2)",
            "mlx5_core",
            "",
            "fabric",
            "3",
            "",
            "",
        ],
        ["eth0", "", "virtio_net", "frontend", "", ""],
    ]
    assert '<a href="/fabric">' in page


async def test_the_landing_page_of_a_host_without_devices_that_is_not_ready() -> None:
    async with serving(Host(ready=False)) as site:
        status, page = await site.get("/")
    assert status == 200
    assert page.count("None found.") == 2
    assert "Devices are being looked for" in page


async def test_the_telemetry_path_may_be_the_root() -> None:
    async with serving(telemetry_path="/") as site:
        assert (await site.get("/"))[1].startswith("# HELP fabric_port_up")
        assert (await site.get("/metrics"))[0] == 404
