"""What each captured machine must give: ``expected.prom``, written by ``python tests/machines/golden.py`` and read by eye."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from exporter import app
from exporter.catalogue import itself
from exporter.config import Settings
from exporter.model import Metric, Profile, Reading, Sample
from exporter.web.render import Renderer

FOLDER = Path(__file__).parent
PASSING: frozenset[Metric] = frozenset(
    {
        itself.SOURCE_DURATION,
        itself.SOURCE_LAST_READ,
        itself.CONFIG_TIMESTAMP,
        itself.DISCOVERY_TIMESTAMP,
        itself.DISCOVERY_DURATION,
        itself.BUILD_INFO,
    }
)
"""Metrics that differ from run to run; they are left out."""


def readings(name: str, profile: Profile) -> Sequence[Reading]:
    """Return what the exporter reads from a captured machine."""
    return asyncio.run(app.once(Settings(capture=str(FOLDER / name), profile=profile)))


def samples(name: str, profile: Profile) -> list[Sample]:
    """Return the samples that must be the same at every run."""
    return [
        sample for reading in readings(name, profile) for sample in reading.samples() if sample.metric not in PASSING
    ]


def page(name: str, profile: Profile = "full") -> str:
    """Return the exposition of a machine, without what differs from run to run."""
    dropped = {metric.name for metric in PASSING}
    lines = Renderer().render(readings(name, profile), openmetrics=False).decode().splitlines(keepends=True)
    return "".join(line for line in lines if family(line) not in dropped)


def family(line: str) -> str:
    """Return the name that a line of the text format is about."""
    if line.startswith("#"):
        return line.split(" ", 3)[2]
    return line.partition("{")[0].partition(" ")[0]


def names() -> tuple[str, ...]:
    """Return the machines."""
    return tuple(sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith("_")))


if __name__ == "__main__":
    for machine in sys.argv[1:] or names():
        (FOLDER / machine / "expected.prom").write_text(page(machine))
        print(machine)
