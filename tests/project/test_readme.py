"""README and docs/operations.md say what the program does: flags, verbs, sources, sample output, configuration samples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import bcrypt
import pytest
import trustme
import yaml

from exporter.cli import VERBS
from exporter.cli.flags import FLAGS
from exporter.config import PortSettings
from exporter.drivers import DRIVERS
from exporter.sources import SOURCES
from exporter.web.webconfig import load_web_config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
OPERATIONS = (ROOT / "docs/operations.md").read_text()
PROGRAM = Path(sys.executable).with_name("fabric-exporter")
NAMES = [source.name for source in SOURCES]


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the tables' rows, heads and rules left out."""
    lines = [
        line
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith(("| flag", "| verb", "| source", "| key"))
    ]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def test_flags_are_the_programs() -> None:
    stated = {row[0]: row[1:] for row in rows(section(README, "Flags")) if row[0].startswith("`--")}
    expected = {
        f"`--{flag.name}`": [
            f"`{flag.default}`" if flag.default else "",
            flag.about + (f" ({', '.join(flag.choices)})" if flag.choices else ""),
        ]
        for flag in FLAGS
    }
    assert stated.pop("`--no-collector.NAME`")[-1] == "turn a source off: " + ", ".join(f"`{name}`" for name in NAMES)
    assert stated.pop("`--config.check`") == ["", "check the configuration files and exit"]
    assert stated == expected


def test_verbs_are_the_programs() -> None:
    stated = [row for row in rows(section(README, "Flags")) if not row[0].startswith("`--")]
    assert stated == [["(none)", "serve"], *([f"`{name}`", module.ABOUT] for name, module in VERBS.items())]


@pytest.mark.parametrize("text", [section(README, "What it reads"), section(OPERATIONS, "What each source costs")])
def test_every_source_has_its_place(text: str) -> None:
    stated = [name for row in rows(text) for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(stated) == sorted(NAMES)


def test_maximum_ages_are_the_sources() -> None:
    stated = {
        name: float(row[2].split()[0])
        for row in rows(section(OPERATIONS, "What each source costs"))
        for name in re.findall(r"`(\w+)`", row[0])
    }
    assert stated == {source.name: source.max_age for source in SOURCES}


def test_drivers_are_those_with_a_table() -> None:
    sentence = re.findall(r"^Drivers with a table of their own: (.*?)\.", README, re.M | re.S)[0]
    assert sorted(re.split(r",\s+", re.sub(r" \(.*?\)", "", sentence))) == sorted(driver.name for driver in DRIVERS)


def test_sample_is_what_the_program_prints() -> None:
    verb, capture = re.findall(r"`\.venv/bin/fabric-exporter (once) --capture (\S+)`", README)[0]
    printed = subprocess.run([PROGRAM, verb, "--capture", ROOT / capture], check=True, capture_output=True, text=True)
    (sample,) = blocks("text")
    assert [line for line in sample.splitlines() if line not in printed.stdout.splitlines()] == []


def test_prometheus_samples_are_good(tmp_path: Path) -> None:
    samples = [block for block in blocks("yaml") if block.startswith("# prometheus.yml")]
    assert len(samples) == 3
    for name in ("ca.crt", "prometheus.crt", "prometheus.key", "fabric-password"):
        (tmp_path / name).touch()
    certificate = trustme.CA().issue_cert("prometheus")
    certificate.private_key_pem.write_to_path(tmp_path / "prometheus.key")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "prometheus.crt")
    for sample in samples:
        path = tmp_path / "prometheus.yml"
        path.write_text(sample.replace("/etc/prometheus", str(tmp_path)))
        done = subprocess.run(["promtool", "check", "config", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_web_configuration_sample_is_good(tmp_path: Path) -> None:
    (sample,) = [block for block in blocks("yaml") if block.startswith("# web.yml")]
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    certificate = authority.issue_cert("gpu-0001")
    certificate.private_key_pem.write_to_path(tmp_path / "host.key")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "host.crt")
    path = tmp_path / "web.yml"
    path.write_text(sample.replace("/etc/fabric-exporter", str(tmp_path)))
    assert bcrypt.checkpw(b"change-me", yaml.safe_load(sample)["basic_auth_users"]["prometheus"].encode())
    load_web_config(str(path))
    done = subprocess.run(["promtool", "check", "web-config", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_configuration_sample_gives_roles_and_rails(tmp_path: Path) -> None:
    """Of a host whose mlx5_6 and mlx5_7 are ens7f0np0 and ens8f0np0, and whose bond carries the default route."""
    (sample,) = [block for block in blocks("yaml", OPERATIONS) if block.startswith("# fabric.yml")]
    path = tmp_path / "fabric.yml"
    path.write_text(sample)
    command: list[str | Path] = [
        PROGRAM,
        "once",
        "--config.file",
        path,
        "--capture",
        ROOT / "tests/machines/mlx5-roce-8nic",
    ]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    said = {
        labels["device"]: (labels["role"], labels.get("rail"), labels.get("plane"))
        for line in re.findall(r"^fabric_port_info\{(.*)\} 1$", printed, re.M)
        if (labels := dict(re.findall(r'(\w+)="([^"]*)"', line)))
    }
    assert said == {
        "mlx5_0": ("fabric", "0", "a"),
        "mlx5_1": ("fabric", "1", "a"),
        **{f"mlx5_{number}": ("fabric", None, None) for number in range(2, 6)},
        "mlx5_6": ("storage", None, None),
        "mlx5_7": ("storage", None, None),
        "mlx5_8": ("unknown", None, None),
        "mlx5_bond_0": ("frontend", None, None),
    }


def test_keys_of_the_configuration_file_are_documented() -> None:
    stated = [
        name for row in rows(section(OPERATIONS, "Roles, rails and planes")) for name in re.findall(r"`(\w+)`", row[0])
    ]
    assert stated == list(PortSettings.__struct_fields__)
