"""Fixtures of the tests from end to end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.stage import Namespace, Stage, made_namespace


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    with made_namespace() as space:
        yield space


@pytest.fixture
def stage(namespace: Namespace, tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(namespace, tmp_path, stack)
