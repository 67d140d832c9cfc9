"""What README, Makefile, lock files and licence promise, held to."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/operations.md")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))


def pinned(name: str) -> dict[str, Version]:
    """Return what a lock file pins, by canonical name. Every requirement there must be exact and carry hashes."""
    found = {}
    for block in re.split(r"\n(?=\S)", (ROOT / name).read_text()):
        if block.startswith("#"):
            continue
        requirement, *hashes = [line.strip(" \\") for line in block.strip().split("\n")]
        parsed = Requirement(requirement)
        (exact,) = parsed.specifier
        assert exact.operator == "==", requirement
        assert hashes, f"{requirement} has no hashes"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", item) for item in hashes), requirement
        found[parsed.name.lower().replace("_", "-")] = Version(exact.version)
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_targets_that_documents_name_exist(document: str) -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z-]+)", (ROOT / document).read_text()))
    named &= {
        match for match in named if re.search(rf"`make {match}|^\$ make {match}", (ROOT / document).read_text(), re.M)
    }
    assert named <= make_targets()


def test_make_help_lists_every_target() -> None:
    head = re.findall(r"^# make ([a-z-]+)", (ROOT / "Makefile").read_text(), re.M)
    phony = re.findall(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.M)[0].split()
    assert {*head, "tools"} == {*phony}
    assert {*phony} <= make_targets()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_local_links_of_documents_lead_somewhere(document: str) -> None:
    path = ROOT / document
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", path.read_text())
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.txt", PROJECT["project"]["dependencies"]),
        (
            "requirements-dev.txt",
            PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"],
        ),
        ("requirements-build.txt", PROJECT["build-system"]["requires"]),
    ],
)
def test_lock_files_satisfy_pyproject(lock: str, wanted: list[str]) -> None:
    versions = pinned(lock)
    for requirement in map(Requirement, wanted):
        name = requirement.name.lower().replace("_", "-")
        assert name in versions, f"{name} is not in {lock}: make lock"
        assert requirement.specifier.contains(versions[name]), f"{lock} pins {name} {versions[name]}: make lock"


def third_party_imports(folder: Path) -> set[str]:
    """Return the distributions that the modules of a package import, wherever in them, by canonical name."""
    imported: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    distributions = packages_distributions()
    return {
        distributions[name][0].lower().replace("_", "-") for name in imported - sys.stdlib_module_names - {folder.name}
    }


def test_dependencies_are_what_the_program_imports() -> None:
    declared = {Requirement(line).name.lower() for line in PROJECT["project"]["dependencies"]}
    assert third_party_imports(ROOT / "exporter") == declared


def test_nothing_brings_rich_along() -> None:
    """structlog imports rich where it is installed, and the daemon would carry 7 MB that it never uses."""
    assert "rich" not in pinned("requirements.txt")


def test_tests_run_what_is_shipped() -> None:
    runtime, development = pinned("requirements.txt"), pinned("requirements-dev.txt")
    assert {name: development.get(name) for name in runtime} == runtime


def test_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert text.rstrip().endswith("limitations under the License.")
    assert PROJECT["project"]["license"] == "Apache-2.0"


FORBIDDEN = (
    rb"/wo" rb"rk/(?:main|shared|tmp|\.)",
    rb"files\.python" rb"hosted|pypi" rb"\.org|registry\.npm" rb"js|deb\.debian" rb"\.org|proxy\.golang" rb"\.org",
    rb"index" rb"-url|trusted" rb"-host",
)


def test_no_machine_paths_or_package_hosts_are_tracked() -> None:
    hits = []
    for path in tracked():
        content = path.read_bytes()
        for pattern in FORBIDDEN:
            hits += [f"{path.relative_to(ROOT)}: {match[0].decode()}" for match in re.finditer(pattern, content)]
    assert hits == []


def test_scripts_are_executable() -> None:
    scripts = [path for path in tracked() if path.read_bytes()[:2] == b"#!"]
    assert ROOT / ".ci/run" in scripts
    assert [path for path in scripts if not path.stat().st_mode & 0o100] == []


def test_python_modules_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked()
        if path.suffix == ".py"
        and path.is_relative_to(ROOT / "exporter")
        and (lines := path.read_bytes().count(b"\n")) > 450
    }
    assert long == {}
