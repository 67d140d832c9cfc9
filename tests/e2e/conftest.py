"""Fixtures of the tests from end to end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.stage import Lab, Stage


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as space:
        yield space


@pytest.fixture
def stage(lab: Lab, tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(lab, tmp_path, stack)
