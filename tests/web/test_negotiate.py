from __future__ import annotations

import gzip as standard_gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.exposition import choose_encoder

from exporter.web.negotiate import accepts_gzip, choose_format, gzip

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", TEXT),
        ("image/png", TEXT),
        (PROMETHEUS_2_42, OPENMETRICS),
        (PROMETHEUS_3, f"{OPENMETRICS}; escaping=allow-utf-8"),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
            + PROMETHEUS_3,
            f"{OPENMETRICS}; escaping=allow-utf-8",
        ),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1", "application/openmetrics-text; version=0.0.1; charset=utf-8"),
        ('application/openmetrics-text; version="1.0.0"', OPENMETRICS),
        ("Application/OpenMetrics-Text; Version=1.0.0", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0;escaping=dots", f"{OPENMETRICS}; escaping=underscores"),
        ("application/openmetrics-text;version=2.0.0,text/plain;q=0.1", TEXT),
        ("application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;q=0.1", OPENMETRICS),
        ("text/plain,application/openmetrics-text;q=0.9", TEXT),
        ("text/plain;q=0.5,application/openmetrics-text;q=0.9", OPENMETRICS),
        ("application/openmetrics-text;q=0,text/plain;q=0.1", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=much", TEXT),
        ("application/openmetrics-text;q=nan", TEXT),
        ("text/plain;version=1.0.0", TEXT),
    ],
)
def test_format(accept: str, content_type: str) -> None:
    chosen = choose_format(accept)
    assert chosen.content_type == content_type
    assert chosen.openmetrics == content_type.startswith("application/openmetrics-text")


@pytest.mark.parametrize("accept", [PROMETHEUS_3, "application/openmetrics-text", "*/*", ""])
def test_agrees_with_prometheus_client_where_it_heeds_all_of_the_header(accept: str) -> None:
    assert choose_format(accept).content_type == choose_encoder(accept)[1]


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, *", False),
        ("*", True),
        ("*;q=0", False),
        ("deflate, br", False),
        ("x-gzip", True),
        ("identity", False),
        ("identity, gzip;q=0.5", False),
        ("identity;q=0.5, gzip;q=1.0", True),
        ("gzip;q=", False),
    ],
)
def test_gzip_is_used_where_it_is_wanted(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


@given(st.text(alphabet='*/;,=q01.ae-gzip "ity\t', max_size=60))
def test_any_header_is_answered(header: str) -> None:
    assert "charset=utf-8" in choose_format(header).content_type
    assert accepts_gzip(header) in (True, False)


def test_gzip() -> None:
    page = b"fabric_up 1\n" * 1000
    assert standard_gzip.decompress(gzip(page)) == page
    assert len(gzip(page)) < len(page) / 20
