"""Fixtures of the tests of following."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exporter.nccl.globs import LogRule
from exporter.storage import Storage
from tests.nccl_follow.counting import Hand, Handed


@pytest.fixture
def handed() -> Iterator[Handed]:
    """Makes followers that are driven by hand, and closes their files with the test."""
    made: list[Hand] = []

    def make(*rules: LogRule, storage: Storage | None = None, **options: Any) -> Hand:
        made.append(Hand(storage, *rules, **options))
        return made[-1]

    yield make
    for hand in made:
        hand.close()


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may look into: those of pytest are the tester's own."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
