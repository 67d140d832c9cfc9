from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.namespaces import Namespace


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    if os.geteuid() != 0:
        pytest.skip("making a network namespace needs root")
    with Namespace() as made:
        yield made
