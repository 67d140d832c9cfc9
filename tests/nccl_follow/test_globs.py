"""Patterns of paths against real folders."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from exporter.errors import ConfigError
from exporter.nccl.globs import Glob, LogRule


def listed(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def found(pattern: str) -> list[str]:
    """Return the files that a pattern names."""
    glob = Glob(pattern, "gpu-7.example.org", "here")
    folders = {folder for folder, logs in glob.folders(listed) if logs}
    paths = sorted(entry.path for folder in folders for entry in listed(folder) if glob.matches(entry.name))
    assert all(glob.names(path) for path in paths)
    return paths


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "nccl.gpu-7.12",
        "nccl.gpu-8.13",
        "nccl.gpu-7.12.gz",
        ".nccl.hidden",
        "a/x.log",
        "a/.x.log",
        "b/x.log",
        "b/c/x.log",
        "b/c/d/x.log",
        ".e/x.log",
        "b/[1].log",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "linked").symlink_to("b/c")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("nccl.*", ["nccl.gpu-7.12", "nccl.gpu-8.13"]),
        ("nccl.{hostname}.*", ["nccl.gpu-7.12"]),
        ("nccl.gpu-7.12", ["nccl.gpu-7.12"]),
        ("*/x.log", ["a/x.log", "b/x.log", "linked/x.log"]),
        ("[!a]/?.log", ["b/x.log"]),
        ("b/[[]1].log", ["b/[1].log"]),
        ("**/x.log", ["a/x.log", "b/c/d/x.log", "b/c/x.log", "b/x.log"]),
        ("b/**/c/*.log", ["b/c/x.log"]),
        (".*/*.log", [".e/x.log"]),
        ("none/*/x.log", []),
    ],
)
def test_a_pattern_names_files(tree: Path, pattern: str, names: list[str]) -> None:
    assert found(f"{tree}/{pattern}") == [f"{tree}/{name}" for name in names]


@pytest.mark.parametrize("pattern", ["", "logs/*", "/logs/", "/logs/../x", "/a/**", "/a/b**/x", "/a\0/x"])
def test_what_is_no_pattern_of_files_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"^here: expected "):
        Glob(pattern, "host", "here")


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        (None, ""),
        (r"job-(\d+)", "42"),
        (r"(?P<rank>r\d).*job-(?P<key>\d+)|job-(?P<x>\d+)", ""),
        (r"job-\d+", "job-42"),
        (r"/jobs?/(no)?", ""),
        (r"nothing", ""),
    ],
)
def test_the_key_of_a_log_is_taken_from_its_path(pattern: str | None, key: str) -> None:
    rule = LogRule(glob=Glob("/x", "", ""), key=re.compile(pattern) if pattern else None)
    assert rule.key_of("/jobs/job-42/nccl.7") == key


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        ("/a/**/x.*", "/a/x.1", True),
        ("/a/**/x.*", "/a/b/c/x.1", True),
        ("/a/**/x.*", "/a/.b/x.1", False),
        ("/a/*/x.*", "/a/b/c/x.1", False),
        ("/a/*/x.*", "/b/b/x.1", False),
        ("/a/*/x.*", "/a/b/x.1.gz", False),
        ("/a/x.{hostname}", "/a/x.gpu-7", True),
    ],
)
def test_a_path_is_known_without_looking(pattern: str, path: str, named: bool) -> None:
    assert Glob(pattern, "gpu-7.example.org", "here").names(path) is named
