"""Every captured machine gives what it gave, and no more series than a host may have."""

from __future__ import annotations

import re
import subprocess

import golden
import pytest

from exporter.model import Profile


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


@pytest.mark.parametrize(
    ("name", "devices", "profile", "most"),
    [
        ("mlx5-roce-8nic", "mlx5_[0-7]", "core", 800),
        ("mlx5-roce-8nic", "mlx5_[0-7]", "full", 3000),
        ("h100-8xndr-bf3bond", "mlx5_[0-9]", "core", 800),
        ("efa-p5", "rdmap.*", "core", 1600),
        ("efa-p5", "rdmap.*", "full", 3000),
    ],
)
def test_a_host_has_no_more_series_than_it_may(name: str, devices: str, profile: Profile, most: int) -> None:
    """Eight NICs or 32 EFA devices, with what the exporter says of itself."""
    found = golden.samples(name, profile)
    own = [sample for sample in found if not {"device", "netdev"} & dict(sample.labels).keys()]
    ports = [sample for sample in found if re.fullmatch(devices, dict(sample.labels).get("device", ""))]
    assert len(own) + len(ports) <= most
