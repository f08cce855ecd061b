"""The fixture that opens contexts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.loading.folders import Load, loading


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Write folders below the test's own and open contexts on them."""
    with loading(tmp_path.resolve()) as opener:
        yield opener
