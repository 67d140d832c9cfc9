"""Every captured machine gives what it gave, and no more series than a host may have."""

from __future__ import annotations

import subprocess

import golden
import pytest


@pytest.mark.parametrize("name", golden.names())
def test_a_machine_gives_what_is_expected(name: str) -> None:
    assert golden.page(name) == (golden.FOLDER / name / "expected.prom").read_text()


@pytest.mark.parametrize("name", golden.names())
def test_promtool_finds_nothing_to_say(name: str) -> None:
    page = (golden.FOLDER / name / "expected.prom").read_bytes()
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


@pytest.mark.parametrize("name", golden.names())
def test_the_core_profile_is_a_part_of_the_full_one(name: str) -> None:
    full = {(sample.metric.name, sample.labels): sample.value for sample in golden.samples(name, "full")}
    core = {(sample.metric.name, sample.labels): sample.value for sample in golden.samples(name, "core")}
    assert core.items() <= full.items()
