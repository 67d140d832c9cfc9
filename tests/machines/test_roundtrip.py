"""A capture of a machine gives the readings of that machine, and nothing of whose machine it was."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import golden
import pytest
from machines import MACHINES, machine_names, open_machine

from exporter import app
from exporter.capture import write_capture
from exporter.cli.capture import read_everything
from exporter.config import Settings
from exporter.kernel import Kernel
from exporter.kernel.captured import load_capture

SETTINGS = Settings(profile="full", raw=re.compile(""))
ADDRESS = re.compile(r"(?<![\w:])(?:(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|(?:[0-9a-f]{4}:){3}[0-9a-f]{4})(?![\w:])")
SAME_EVERYWHERE = re.compile(r"[0:]+|[f:]+")


def exercise(kernel: Kernel) -> None:
    asyncio.run(read_everything(kernel, SETTINGS))


def samples(folder: Path) -> dict[object, float]:
    settings = Settings(capture=str(folder), profile="full", raw=re.compile(""))
    readings = asyncio.run(app.once(settings))
    return {
        (sample.metric.name, sample.labels): sample.value
        for reading in readings
        for sample in reading.samples()
        if sample.metric not in golden.PASSING
    }


def addresses(folder: Path) -> set[str]:
    texts = [path.read_text() for path in folder.rglob("*") if path.suffix in (".txt", ".json")]
    return {found for text in texts for found in ADDRESS.findall(text) if not SAME_EVERYWHERE.fullmatch(found)}


@pytest.mark.parametrize("name", machine_names())
def test_a_capture_reads_like_its_machine(name: str, tmp_path: Path) -> None:
    write_capture(open_machine(name), exercise, tmp_path / "capture")
    assert load_capture(tmp_path / "capture").problems == ()
    expected = samples(MACHINES / name)
    assert len(expected) > 10
    assert samples(tmp_path / "capture") == expected
    assert addresses(tmp_path / "capture") & addresses(MACHINES / name) == set()
