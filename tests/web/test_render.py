"""The oracle: prometheus_client's encoders and parsers. Equal means equal after parsing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import Metric as Family
from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import Collector

from exporter.catalogue import METRICS
from exporter.model import Metric, MetricType, Reading, Series, Shape
from exporter.web.render import KEPT, Renderer

BYTES = Metric("fabric_bytes_total", "counter", 'Bytes, "quoted" \\ 100 % of it.\nSecond line.', ("device", "port"))
UP = Metric("fabric_up", "gauge", "Whether it is up.", ("device", "port"))
RAW = Metric("fabric_raw", "unknown", "Raw.", ("netdev", "stat"))
OWN = (BYTES, UP, RAW)
FORMATS = pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])


class Registry(Collector):
    def __init__(self, readings: Sequence[Reading], metrics: Sequence[Metric]) -> None:
        self.readings, self.metrics = readings, metrics

    def collect(self) -> Iterator[Family]:
        for metric in self.metrics:
            name = metric.name.removesuffix("_total") if metric.type == "counter" else metric.name
            family = Family(name, metric.help, metric.type)
            for reading in self.readings:
                for sample in reading.samples():
                    if sample.metric is metric:
                        family.add_sample(metric.name, dict(sample.labels), sample.value)
            if family.samples:
                yield family


def parsed(page: bytes, *, openmetrics: bool) -> list[tuple[str, str, str, list[tuple[str, dict[str, str], str]]]]:
    parse = parse_openmetrics if openmetrics else parse_text
    return [
        (
            family.name,
            family.type,
            family.documentation,
            [(s.name, s.labels, repr(float(s.value))) for s in family.samples],
        )
        for family in parse(page.decode())
    ]


def theirs(readings: Sequence[Reading], metrics: Sequence[Metric], *, openmetrics: bool) -> bytes:
    encode = openmetrics_exposition.generate_latest if openmetrics else exposition.generate_latest
    return encode(Registry(readings, metrics))


label_values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12) | st.sampled_from(
    ["eth0", 'a"b', "a\\", "\\n", "\n", "100%", "%s", "%d%%", "{}", "é", "网卡", "\u2028", " x ", "a=b,c", "\r", "\x00"]
)
counts = (
    st.integers(0, 2**64 - 1) | st.floats(0) | st.sampled_from([0, 2**53 + 1, 2**64 - 1, 0.1, 1e16, 1e-7, math.inf])
)
# A counter below zero or not a number is refused by prometheus_client's own OpenMetrics parser.
numbers = counts | st.integers(-(2**63), 2**63) | st.floats() | st.sampled_from([-0.0, -math.inf, math.nan])


@st.composite
def some_metrics(draw: st.DrawFn) -> tuple[Metric, ...]:
    # Outer blanks of HELP do not survive prometheus_client's parsers, nor does the text parser undo \" (it is never written).
    helps = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), max_size=20).map(str.strip)
    types: st.SearchStrategy[MetricType] = st.sampled_from(["counter", "gauge", "unknown"])
    return tuple(
        Metric(f"m{n}_total" if type == "counter" else f"m{n}", type, draw(helps))
        for n, type in enumerate(draw(st.lists(types, min_size=1, max_size=4)))
    )


@st.composite
def scrapes(draw: st.DrawFn) -> tuple[tuple[Metric, ...], list[list[Reading]]]:
    """Return metrics and two scrapes: the same shapes, other values."""
    metrics = draw(some_metrics())
    keys = draw(st.lists(st.tuples(st.sampled_from(metrics), label_values), min_size=1, max_size=12, unique=True))
    cut = draw(st.integers(0, len(keys)))
    shapes = [
        Shape(Series(metric, (("zone", "1"), ("device", value))) for metric, value in part)
        for part in (keys[:cut], keys[cut:])
    ]
    return metrics, [
        [
            Reading(shape, tuple(draw(counts if metric.type == "counter" else numbers) for metric, _ in shape.series))
            for shape in shapes
        ]
        for _ in range(2)
    ]


@FORMATS
@settings(deadline=None)
@given(scrapes())
def test_equals_prometheus_client_after_parsing(
    openmetrics: bool, drawn: tuple[tuple[Metric, ...], list[list[Reading]]]
) -> None:
    metrics, rounds = drawn
    renderer = Renderer(metrics)
    for readings in rounds:
        ours = renderer.render(readings, openmetrics=openmetrics)
        expected = theirs(readings, metrics, openmetrics=openmetrics)
        assert parsed(ours, openmetrics=openmetrics) == parsed(expected, openmetrics=openmetrics)


DEVICE = (("device", "mlx5_0"), ("port", "1"))
OTHER = (("device", "mlx5_1"), ("port", "1"))


def test_text() -> None:
    first = Shape([Series(UP, DEVICE), Series(BYTES, DEVICE)])
    second = Shape([Series(BYTES, OTHER), Series(RAW, ())])
    page = Renderer(OWN).render([Reading(first, (1, 2**64 - 1)), Reading(second, (7, 0.5))], openmetrics=False)
    assert page.decode() == (
        '# HELP fabric_bytes_total Bytes, "quoted" \\\\ 100 % of it.\\nSecond line.\n'
        "# TYPE fabric_bytes_total counter\n"
        'fabric_bytes_total{device="mlx5_0",port="1"} 18446744073709551615\n'
        'fabric_bytes_total{device="mlx5_1",port="1"} 7\n'
        "# HELP fabric_up Whether it is up.\n"
        "# TYPE fabric_up gauge\n"
        'fabric_up{device="mlx5_0",port="1"} 1\n'
        "# HELP fabric_raw Raw.\n"
        "# TYPE fabric_raw untyped\n"
        "fabric_raw 0.5\n"
    )


def test_openmetrics() -> None:
    shape = Shape([Series(UP, DEVICE), Series(BYTES, DEVICE), Series(RAW, ())])
    page = Renderer(OWN).render([Reading(shape, (1, 3, 1e300))], openmetrics=True)
    assert page.decode() == (
        '# HELP fabric_bytes Bytes, \\"quoted\\" \\\\ 100 % of it.\\nSecond line.\n'
        "# TYPE fabric_bytes counter\n"
        'fabric_bytes_total{device="mlx5_0",port="1"} 3\n'
        "# HELP fabric_up Whether it is up.\n"
        "# TYPE fabric_up gauge\n"
        'fabric_up{device="mlx5_0",port="1"} 1\n'
        "# HELP fabric_raw Raw.\n"
        "# TYPE fabric_raw unknown\n"
        "fabric_raw 1e+300\n"
        "# EOF\n"
    )


@pytest.mark.parametrize(("openmetrics", "page"), [(False, b""), (True, b"# EOF\n")])
def test_nothing(openmetrics: bool, page: bytes) -> None:
    assert Renderer().render([], openmetrics=openmetrics) == page
    assert Renderer().render([Reading(Shape([]), ())], openmetrics=openmetrics) == page


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0, "0"),
        (True, "1"),
        (2**53 + 1, "9007199254740993"),
        (-1, "-1"),
        (0.1, "0.1"),
        (1e22, "1e+22"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (1.5e308, "1.5e+308"),
    ],
)
def test_numbers(value: float, printed: str) -> None:
    # Two of each: the sum of two huge numbers is infinite while they are not.
    shape = Shape([Series(UP, DEVICE), Series(UP, OTHER)])
    lines = Renderer(OWN).render([Reading(shape, (value, value))], openmetrics=False).decode().splitlines()
    assert [line.split()[-1] for line in lines[2:]] == [printed, printed]


def test_values_may_change_between_integer_float_and_infinity() -> None:
    renderer, shape = Renderer(OWN), Shape([Series(UP, DEVICE)])
    pages = [renderer.render([Reading(shape, (value,))], openmetrics=False) for value in (1, 0.5, math.inf, 2)]
    assert [page.split()[-1] for page in pages] == [b"1", b"0.5", b"+Inf", b"2"]


@FORMATS
def test_the_first_of_two_equal_series_is_served(openmetrics: bool) -> None:
    first = Shape([Series(UP, DEVICE), Series(BYTES, DEVICE)])
    # The order of labels and an empty label make no other series.
    second = Shape(
        [Series(UP, (("port", "1"), ("netdev", ""), ("device", "mlx5_0"))), Series(UP, OTHER), Series(UP, OTHER)]
    )
    renderer = Renderer(OWN)
    page = renderer.render([Reading(first, (1, 2)), Reading(second, (3, 4, 5))], openmetrics=openmetrics)
    assert [line for line in page.decode().splitlines() if line.startswith("fabric_up")] == [
        'fabric_up{device="mlx5_0",port="1"} 1',
        'fabric_up{device="mlx5_1",port="1"} 4',
    ]
    assert sum(renderer.dropped) == renderer.dropped[1] == 2
    # Alone, the second shape is served again.
    page = renderer.render([Reading(second, (3, 4, 5))], openmetrics=openmetrics)
    assert b'fabric_up{port="1",netdev="",device="mlx5_0"} 3\n' in page
    assert sum(renderer.dropped) == 1


def test_names_that_are_not_utf8_are_served_as_unicode() -> None:
    name = b"eth\xff".decode("utf-8", "surrogateescape")
    shape = Shape([Series(RAW, (("netdev", name), ("stat", "x")))])
    assert 'netdev="eth\ufffd"'.encode() in Renderer(OWN).render([Reading(shape, (1,))], openmetrics=True)


def test_a_metric_that_the_catalogue_lacks_comes_last() -> None:
    extra = Metric("fabric_extra", "gauge", "Extra.")
    shape = Shape([Series(extra, ()), Series(UP, DEVICE)])
    page = Renderer(OWN).render([Reading(shape, (1, 2))], openmetrics=False).decode()
    assert [line for line in page.splitlines() if not line.startswith("#")] == [
        'fabric_up{device="mlx5_0",port="1"} 2',
        "fabric_extra 1",
    ]


def test_shapes_that_come_and_go() -> None:
    shapes = [Shape([Series(UP, (("device", f"mlx5_{n}"),))]) for n in range(KEPT + 3)]
    renderer = Renderer(OWN)
    for _ in range(2):
        for n, shape in enumerate(shapes):
            page = renderer.render([Reading(shapes[0], (-1,)), Reading(shape, (n,))], openmetrics=False).decode()
            assert page.count("\nfabric_up") == (1 if n == 0 else 2)
            assert n == 0 or page.endswith(f'fabric_up{{device="mlx5_{n}"}} {n}\n')


def test_too_few_values_are_refused() -> None:
    shape = Shape([Series(UP, DEVICE), Series(UP, OTHER)])
    with pytest.raises(ValueError, match=r"^1 values for 2 series, .*fabric_up"):
        Renderer(OWN).render([Reading(shape, (1,)), Reading(shape, (1, 2, 3))], openmetrics=False)


@FORMATS
def test_the_whole_catalogue(openmetrics: bool) -> None:
    """No two families clash, and prometheus_client reads what it would write."""
    shape = Shape(Series(metric, tuple((name, "x") for name in metric.labels)) for metric in METRICS)
    readings = [Reading(shape, tuple(range(len(shape))))]
    ours = parsed(Renderer().render(readings, openmetrics=openmetrics), openmetrics=openmetrics)
    assert [family[0] for family in ours] == [
        metric.name.removesuffix("_total") if metric.type == "counter" else metric.name for metric in METRICS
    ]
    assert ours == parsed(theirs(readings, METRICS, openmetrics=openmetrics), openmetrics=openmetrics)
