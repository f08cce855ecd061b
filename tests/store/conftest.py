"""A home of its own for every test of the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crystal.store.home import Home
from crystal.store.sessions import SessionRecord, SessionStore


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that does not exist on disk yet."""
    return Home(root=tmp_path / "home")


@pytest.fixture
def store(home: Home) -> Iterator[SessionStore]:
    """An open store with one session, ``s1`` of ``/ws/one``."""
    opened = SessionStore.open(home)
    opened.create(SessionRecord(id="s1", workspace="/ws/one", created=100.0, updated=100.0))
    yield opened
    opened.close()
