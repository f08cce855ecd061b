"""Replacing files whole: modes and links stay, nothing is left behind."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from crystal.workspace.atomic_write import atomic_write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o644, 0o4755])
def test_an_existing_file_keeps_its_mode(root: Path, mode: int) -> None:
    file = root / "f"
    file.write_text("old")
    file.chmod(mode)
    status = atomic_write(file, b"new", durable=True)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new", mode)
    assert (status.st_ino, status.st_size) == (file.stat().st_ino, 3)
    assert os.listdir(root) == ["f"]


def test_a_new_file_gets_what_the_umask_leaves(root: Path) -> None:
    before = os.umask(0o022)
    try:
        atomic_write(root / "f", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o644


def test_a_link_stays_a_link_and_its_target_is_replaced(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "target").write_text("old")
    (root / "link").symlink_to("sub/target")
    atomic_write(root / "link", b"new")
    assert (root / "link").is_symlink()
    assert (root / "sub" / "target").read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_old_file_and_no_other(root: Path) -> None:
    (root / "f").mkdir()
    with pytest.raises(IsADirectoryError):
        atomic_write(root / "f", b"x")
    assert os.listdir(root) == ["f"]
