"""From readings to a page: Prometheus text 0.0.4 and OpenMetrics 1.0.0.

What a page says apart from its numbers stays the same from scrape to scrape, so it is made once: a ``%`` template of all lines,
and the order in which the values go into it. A scrape is then one pick of the values and one ``%``.

Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ and
https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import itemgetter

from exporter.catalogue import METRICS
from exporter.model import Labels, Metric, Reading, Series, Shape

KEPT = 4
"""How many sequences of shapes a renderer remembers."""

_PLAIN = {int, float}
_GREATEST = int(sys.float_info.max)
_SURROGATES = re.compile("[\ud800-\udfff]")


class Renderer:
    """Renders readings; keeps what it derived as long as the same shapes come in the same order.

    Families come in the order of ``metrics``, each once, with all its lines together. A series that an earlier reading (or the
    same one) already has is left out: Prometheus would refuse the whole page.
    """

    def __init__(self, metrics: Iterable[Metric] = METRICS) -> None:
        self._rank = {metric: rank for rank, metric in enumerate(metrics)}
        self._plan = _Plan((), self._rank)
        self._plans: dict[tuple[Shape, ...], _Plan] = {}

    @property
    def dropped(self) -> tuple[int, ...]:
        """How many series of each reading of the last :meth:`render` were left out because they had been there before."""
        return self._plan.dropped

    def render(self, readings: Sequence[Reading], *, openmetrics: bool) -> bytes:
        """Return the page in UTF-8: OpenMetrics 1.0.0, or text 0.0.4.

        Integers are printed as integers, floats by their shortest digits. Raises :class:`ValueError` when a reading has not as
        many values as its shape has series.
        """
        for shape, values in readings:
            if len(values) != len(shape):
                raise ValueError(f"{len(values)} values for {len(shape)} series, the first of them {shape.series[:1]}")
        self._plan = self._planned(tuple([reading.shape for reading in readings]))
        values = tuple(chain.from_iterable([reading.values for reading in readings]))
        if not _plain(values):
            return self._plan.page([number(value) for value in values], openmetrics=openmetrics)
        return self._plan.page(values, openmetrics=openmetrics)

    def _planned(self, shapes: tuple[Shape, ...]) -> _Plan:
        """Return the plan of these very shapes. A few are kept: scrapers ask for different sources in turn."""
        plan = self._plans.pop(shapes, None) or _Plan(shapes, self._rank)
        self._plans[shapes] = plan
        if len(self._plans) > KEPT:
            del self._plans[next(iter(self._plans))]
        return plan


def _plain(values: Sequence[float]) -> bool:
    """Return whether ``%s`` prints all values as :func:`number` does: a bool would print as True, an infinity as inf."""
    try:
        return _PLAIN.issuperset(map(type, values)) and math.isfinite(sum(values))
    except OverflowError:
        return False


class _Plan:
    """The page of one sequence of shapes, without its numbers."""

    def __init__(self, shapes: tuple[Shape, ...], rank: dict[Metric, int]) -> None:
        lines: dict[Metric, list[str]] = {}
        positions: dict[Metric, list[int]] = {}
        dropped = []
        seen: set[object] = set()
        position = 0
        for shape in shapes:
            again = 0
            for series, line in zip(shape.series, _lines(shape), strict=True):
                identity = _identity(series)
                if identity in seen:
                    again += 1
                else:
                    seen.add(identity)
                    lines.setdefault(series.metric, []).append(line)
                    positions.setdefault(series.metric, []).append(position)
                position += 1
            dropped.append(again)
        self.dropped = tuple(dropped)
        # sorted() is stable: metrics that the catalogue lacks come last, in the order in which they were met.
        order = sorted(lines, key=lambda metric: rank.get(metric, len(rank)))
        self._families = [(metric, lines[metric]) for metric in order]
        self._pick = _picker([position for metric in order for position in positions[metric]])
        self._templates: dict[bool, str] = {}

    def page(self, values: Sequence[int | float | str], *, openmetrics: bool) -> bytes:
        template = self._templates.get(openmetrics)
        if template is None:
            head, end = (openmetrics_head, "# EOF\n") if openmetrics else (text_head, "")
            parts = [part for metric, lines in self._families for part in (head(metric).replace("%", "%%"), *lines)]
            template = self._templates[openmetrics] = "".join(parts) + end
        return (template % self._pick(values)).encode()


def text_head(metric: Metric) -> str:
    """Return the family's HELP and TYPE lines in text 0.0.4."""
    help = metric.help.replace("\\", r"\\").replace("\n", r"\n")
    type = "untyped" if metric.type == "unknown" else metric.type
    return f"# HELP {metric.name} {help}\n# TYPE {metric.name} {type}\n"


def openmetrics_head(metric: Metric) -> str:
    """Return the family's HELP and TYPE lines in OpenMetrics, where a counter's family has no ``_total``."""
    name = metric.name.removesuffix("_total") if metric.type == "counter" else metric.name
    return f"# HELP {name} {_escape(metric.help)}\n# TYPE {name} {metric.type}\n"


def number(value: float) -> str:
    """Return the value as both formats print it. An integer that no float64 holds is an infinity to Prometheus too."""
    if isinstance(value, int):
        return str(int(value)) if abs(value) <= _GREATEST else "+Inf" if value > 0 else "-Inf"
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escape(value: str) -> str:
    """Escape as in a quoted string. What is no Unicode (bytes of a file name that are not UTF-8) becomes U+FFFD."""
    return _unicode(value).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _unicode(value: str) -> str:
    return value if value.isascii() else _SURROGATES.sub("\ufffd", value)


def _lines(shape: Shape) -> list[str]:
    """Return the line of each series with ``%s`` for its value, made once per shape; equal labels are printed once."""
    if not isinstance(shape.rendered, list):
        printed = {labels: _labels(labels) for labels in {series.labels for series in shape.series}}
        shape.rendered = [f"{series.metric.name}{printed[series.labels]} %s\n" for series in shape.series]
    return shape.rendered


def _labels(labels: Labels) -> str:
    inner = ",".join([f'{name}="{_escape(value)}"' for name, value in labels])
    return f"{{{inner}}}".replace("%", "%%") if inner else ""


def _identity(series: Series) -> object:
    """Return what makes the series one to Prometheus: neither the order of labels nor an empty label does."""
    return series.metric, frozenset([(name, _unicode(value)) for name, value in series.labels if value])


def _picker(positions: Sequence[int]) -> Callable[[Sequence[int | float | str]], object]:
    """Return a function that picks those values, as the right side of a ``%``."""
    return itemgetter(*positions) if positions else lambda values: ()
