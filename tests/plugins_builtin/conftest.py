"""Fixtures of tests that run commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.plugins_builtin.process_marks import MARK


@pytest.fixture
def no_login_files(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The login files of whoever runs the tests take longer than most commands of tests."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A text that every process of the test carries in its environment."""
    text = f"{tmp_path.name}-{os.getpid()}-{os.urandom(8).hex()}"
    monkeypatch.setenv(MARK, text)
    return text
