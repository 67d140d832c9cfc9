from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.namespaces import Namespace


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    with Namespace() as made:
        yield made
