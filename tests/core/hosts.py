"""Hosts put together for one trait each, and what the exporter gives of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from exporter import app
from exporter.config import Settings


def served(tmp_path: Path, lines: list[str], **files: str) -> dict[str, float]:
    """Return what a host gives in the full profile: values by ``name{labels}``."""
    (tmp_path / "sys.txt").write_text("\n".join(lines) + "\n")
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".json").write_text(text)
    settings = Settings(capture=str(tmp_path), profile="full")
    readings = asyncio.run(app.once(settings))
    return {
        f"{sample.metric.name}{{{','.join('='.join(pair) for pair in sample.labels)}}}": sample.value
        for reading in readings
        for sample in reading.samples()
    }


def interface(name: str, index: int, folder: str, *more: str) -> list[str]:
    lines = (f"ifindex: {index}", "carrier: 1", "flags: 0x1003", "carrier_down_count: 4", "carrier_up_count: 5", *more)
    return [f"class/net/{name}/device -> ../../../{folder}", *(f"class/net/{name}/{line}" for line in lines)]
