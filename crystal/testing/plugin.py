"""The pytest plugin, found through the entry point ``pytest11``. It imports nothing of Crystal until a test asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from crystal.testing.crystaler import Crystaler


@pytest.fixture
def crystaler(tmp_path: object) -> Iterator[Crystaler]:
    """A fresh home and workspace with the means to script a model, register plugins and run tasks."""
    from pathlib import Path

    from crystal.testing.crystaler import Crystaler

    kit = Crystaler(Path(str(tmp_path)))
    yield kit
    kit.close()
