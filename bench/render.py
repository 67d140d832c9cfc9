"""Rendering against prometheus_client's encoders: the same 5,000 samples in 8 shapes, in one run, alternating.

Run: python -m bench.render
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from prometheus_client import Metric as Family
from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.registry import Collector

from exporter.catalogue import METRICS
from exporter.model import Metric, Reading, Series, Shape
from exporter.web.render import Renderer

SHAPES, SERIES, ROUNDS = 8, 625, 15


def readings() -> list[Reading]:
    """Return one reading per device: three labels per series, nine integers for each float."""
    metrics = [metric for metric in METRICS if set(metric.labels) >= {"device", "port"}]
    made = []
    for device in range(SHAPES):
        shape = Shape(
            Series(metrics[n % len(metrics)], (("device", f"mlx5_{device}"), ("port", "1"), ("item", str(n))))
            for n in range(SERIES)
        )
        made.append(Reading(shape, values()))
    return made


def values() -> tuple[int | float, ...]:
    return tuple(
        random.random() * 1e6 if n % 10 == 0 else random.getrandbits(random.choice((8, 32, 63))) for n in range(SERIES)
    )


class Registry(Collector):
    """The same samples, as prometheus_client wants them."""

    def __init__(self, readings: list[Reading]) -> None:
        self.readings = readings

    def collect(self) -> Iterator[Family]:
        families: dict[Metric, Family] = {}
        for reading in self.readings:
            for metric, labels, value in reading.samples():
                if (family := families.get(metric)) is None:
                    name = metric.name.removesuffix("_total") if metric.type == "counter" else metric.name
                    family = families[metric] = Family(name, metric.help, metric.type)
                family.add_sample(metric.name, dict(labels), value)
        yield from families.values()


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    renderer = Renderer()
    current = readings()
    first = milliseconds(partial(renderer.render, current, openmetrics=True))
    again = milliseconds(partial(Renderer().render, current, openmetrics=True))
    rows: dict[str, tuple[list[float], list[float]]] = {"text 0.0.4": ([], []), "OpenMetrics 1.0.0": ([], [])}
    for _ in range(ROUNDS):
        current = [Reading(reading.shape, values()) for reading in current]
        registry = Registry(current)
        for name, (ours, theirs) in rows.items():
            openmetrics = name.startswith("Open")
            encode = openmetrics_exposition.generate_latest if openmetrics else exposition.generate_latest
            ours.append(milliseconds(partial(renderer.render, current, openmetrics=openmetrics)))
            theirs.append(milliseconds(partial(encode, registry)))
    print(f"{SHAPES * SERIES} samples in {SHAPES} shapes, medians of {ROUNDS} rounds")
    print(f"first page {first:.1f} ms, page after a change of shapes {again:.1f} ms")
    for name, (ours, theirs) in rows.items():
        print(
            f"{name:18} ours {median(ours):6.2f} ms   prometheus_client {median(theirs):6.2f} ms"
            f"   ratio {median(theirs) / median(ours):.1f}"
        )


if __name__ == "__main__":
    main()
