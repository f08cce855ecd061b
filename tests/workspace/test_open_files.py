"""Opening what was decided on: nothing blocks, nothing is led elsewhere."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from crystal.workspace.open_files import FileMissing, FileRefused, open_folder, open_regular, read_bytes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def test_a_regular_file_is_read_whole_or_to_the_limit(root: Path) -> None:
    (root / "f").write_bytes(b"x" * 3_000_000)
    with open_regular(f"{root}/f", "f") as opened:
        assert len(read_bytes(opened, 10_000_000)) == 3_000_000
    with open_regular(f"{root}/f", "f") as opened:
        assert len(read_bytes(opened, 2_500_000)) == 2_500_000
        assert len(read_bytes(opened, 2_500_000)) == 500_000


def test_what_is_no_regular_file_is_named_and_refused_before_it_is_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    (root / "link").symlink_to("f")
    (root / "f").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "s"))
        for path, kind in (("pipe", "a named pipe"), ("s", "a socket"), ("folder", "a folder"), ("link", "a link")):
            with pytest.raises(FileRefused, match=f"{path} is {kind}"), open_regular(f"{root}/{path}", path):
                pass
    with pytest.raises(FileRefused, match="a device"), open_regular("/dev/null", "/dev/null"):
        pass
    for missing in ("nothing", "f/x"):
        with pytest.raises(FileMissing, match=missing), open_regular(f"{root}/{missing}", missing):
            pass


def test_a_folder_swapped_for_a_link_after_the_decision_is_not_followed(root: Path) -> None:
    (root / "ws" / "sub").mkdir(parents=True)
    (root / "other").mkdir()
    (root / "other" / "f").write_text("secret")
    (root / "ws" / "sub" / "f").write_text("mine")
    decided = f"{root}/ws/sub/f"
    (root / "ws" / "sub").rename(root / "ws" / "old")
    (root / "ws" / "sub").symlink_to(root / "other")
    with pytest.raises(FileRefused, match="changed its place"), open_regular(decided, "sub/f"):
        pass
    for folder in ("sub", "sub/new", "sub/new/deep"):
        with pytest.raises(FileRefused), open_folder(f"{root}/ws/{folder}", folder, create=True):
            pass
    assert sorted(os.listdir(root / "other")) == ["f"]


def test_missing_folders_are_made_only_when_asked_for(root: Path) -> None:
    with pytest.raises(FileRefused, match="no folder"), open_folder(f"{root}/a/b", "a/b"):
        pass
    with open_folder(f"{root}/a/b", "a/b", create=True) as folder:
        assert os.path.samestat(os.fstat(folder), os.stat(root / "a" / "b"))
    (root / "f").write_text("x")
    for path in ("f", "f/x"):
        with pytest.raises(FileRefused, match="not a folder"), open_folder(f"{root}/{path}", path, create=True):
            pass
