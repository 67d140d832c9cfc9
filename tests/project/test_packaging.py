"""The container image and the systemd unit, as far as they can be tried without Docker and without a running systemd."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
UNIT = ROOT / "deploy/fabric-exporter.service"


def run(*command: str | Path, **options: str | dict[str, str] | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]  # options of run
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return str(done.stdout + done.stderr)


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions as (keyword, rest), continued lines joined."""
    joined = re.sub(r"\\\n\s*", "", DOCKERFILE)
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [(keyword, rest) for keyword, _, rest in (line.partition(" ") for line in lines)]


def test_hadolint_finds_nothing() -> None:
    assert run(Path(sys.executable).with_name("hadolint"), ROOT / "Dockerfile") == ""


def test_everything_copied_is_there_and_not_ignored() -> None:
    kept = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.M))
    copied = {
        source
        for keyword, rest in instructions()
        if keyword == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert copied == kept
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_image_runs_as_nobody_and_checks_its_health() -> None:
    final = dict(instructions()[[keyword for keyword, _ in instructions()].index("LABEL") :])
    assert final["USER"] == "65534:65534"
    assert final["ENTRYPOINT"] == '["fabric-exporter"]'
    assert final["HEALTHCHECK"].endswith('CMD ["fabric-exporter", "ping"]')
    assert final["EXPOSE"] == "10073"


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may look into: those of pytest are the tester's own."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.mark.long
def test_image_steps_give_a_program_that_nobody_can_run(public_folder: Path) -> None:
    """The build stage's commands in a folder with what .dockerignore lets through, then the program as nobody."""
    source, target = public_folder / "src", public_folder / "fabric-exporter"
    source.mkdir()
    for name in re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.M):
        original = ROOT / name
        if original.is_dir():
            shutil.copytree(original, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(original, source / name)
    venv.create(public_folder / "python", with_pip=True)
    environment = {**os.environ, "PATH": f"{public_folder}/python/bin:{os.environ['PATH']}", "PIP_NO_CACHE_DIR": "1"}
    for command in [rest for keyword, rest in instructions() if keyword == "RUN"]:
        run("bash", "-euc", command.replace("/opt/fabric-exporter", str(target)), cwd=source, env=environment)
    assert not (target / "bin/pip").exists()
    as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all")
    read_only = 'mount --make-rprivate / && mount -o bind,ro / /; exec "$@"'
    printed = run(
        *(
            "unshare",
            "--mount",
            "bash",
            "-c",
            read_only,
            "bash",
            *as_nobody,
            target / "bin/fabric-exporter",
            "--version",
        ),
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]},
    )
    assert re.search(r"^fabric-exporter[ ,].*\d+\.\d+\.\d+", printed, re.M), printed


def unit_with_this_program(tmp_path: Path) -> Path:
    """Return a copy of the unit that starts the program under test: verify wants it to exist."""
    unit = tmp_path / UNIT.name
    program = str(Path(sys.executable).with_name("fabric-exporter"))
    unit.write_text(UNIT.read_text().replace("/opt/fabric-exporter/bin/fabric-exporter", program))
    return unit


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    assert run("systemd-analyze", "verify", unit_with_this_program(tmp_path)) == ""


def test_unit_leaves_little_exposed(tmp_path: Path) -> None:
    """systemd's own rating: 0 is nothing exposed, 10 everything. What is left is the network and one address family."""
    run(
        "systemd-analyze",
        "security",
        "--offline=true",
        "--threshold=15",
        "--no-pager",
        unit_with_this_program(tmp_path),
    )


def test_unit_hides_nothing_that_is_read() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.M))
    assert "PrivateNetwork" not in settings
    assert "ProcSubset" not in settings
    assert {"AF_NETLINK", "AF_INET"} <= set(settings["RestrictAddressFamilies"].split())
