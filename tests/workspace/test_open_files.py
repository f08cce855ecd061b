"""Opening what was decided on: nothing blocks, nothing is led elsewhere."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from crystal.workspace.open_files import FileMissing, FileRefused, enter_folder, open_folder, open_regular, read_bytes
from tests.workspace.moments import before_call


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
        for create in (False, True):
            with (
                pytest.raises(FileRefused, match="changed its place"),
                enter_folder(f"{root}/ws/{folder}", folder, create=create),
            ):
                pass
        with pytest.raises(FileRefused, match="changed its place"), open_folder(f"{root}/ws/{folder}", folder):
            pass
    assert sorted(os.listdir(root / "other")) == ["f"]


def test_no_moment_is_left_in_which_a_swapped_file_or_folder_is_followed(root: Path) -> None:
    other, sub = root / "other", root / "ws" / "sub"
    other.mkdir()
    (root / "ws").mkdir()
    (other / "f").write_text("secret")
    for swapped in (sub, sub / "f"):
        number = 0
        while True:
            number += 1
            shelf = root / f"{swapped.name}{number}"
            shelf.mkdir()
            sub.mkdir()
            (sub / "f").write_text("mine")

            def swap(shelf: Path = shelf, swapped: Path = swapped) -> None:
                swapped.rename(shelf / "kept")
                swapped.symlink_to(other / "f" if swapped.name == "f" else other)

            with (
                before_call(number, swap) as calls,
                suppress(FileRefused),
                open_regular(f"{sub}/f", "sub/f") as opened,
            ):
                assert read_bytes(opened, 100) == b"mine"
            sub.rename(shelf / "sub")
            if len(calls) < number:
                break
        assert number > 5


def test_missing_folders_are_made_only_when_asked_for(root: Path) -> None:
    with pytest.raises(FileRefused, match="no folder"), enter_folder(f"{root}/a/b", "a/b", create=False):
        pass
    with pytest.raises(FileRefused, match="no folder"), open_folder(f"{root}/a/b", "a/b"):
        pass
    with enter_folder(f"{root}/a/b", "a/b", create=True) as folder:
        assert os.path.samestat(os.fstat(folder), os.stat(root / "a" / "b"))
    (root / "f").write_text("x")
    for path in ("f", "f/x"):
        with pytest.raises(FileRefused, match="not a folder"), enter_folder(f"{root}/{path}", path, create=True):
            pass
        with pytest.raises(FileRefused, match="not a folder"), open_folder(f"{root}/{path}", path):
            pass


def test_folders_made_for_work_that_fails_are_removed_again_and_others_stay(root: Path) -> None:
    (root / "a").mkdir()
    with pytest.raises(RuntimeError), enter_folder(f"{root}/a/b/c", "a/b/c", create=True):
        raise RuntimeError
    assert os.listdir(root / "a") == []

    def work() -> None:
        with enter_folder(f"{root}/a/b/c", "a/b/c", create=True):
            (root / "a" / "b" / "theirs").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert os.listdir(root / "a" / "b") == ["theirs"]


def test_no_descriptor_is_left_open_whatever_happens(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "f").write_text("x")

    def use() -> None:
        with open_regular(f"{root}/sub/f", "f"), open_folder(f"{root}/sub", "sub"):
            pass
        with enter_folder(f"{root}/sub/new/deep", "new", create=True):
            raise OSError

    def fail() -> None:
        raise OSError

    with pytest.raises(OSError), before_call(0, fail) as calls:  # noqa: PT011 - any fault will do
        use()
    # A close that fails has closed all the same, which cannot be played here.
    moments = [number for number, name in enumerate(calls, 1) if name != "close"]
    assert len(moments) > 20
    for number in moments:
        before = os.listdir("/dev/fd")
        with pytest.raises(OSError), before_call(number, fail):  # noqa: PT011 - any fault will do
            use()
        assert len(os.listdir("/dev/fd")) == len(before)


def test_a_folder_that_may_be_passed_but_not_read_is_passed(root: Path) -> None:
    (root / "gate" / "in").mkdir(parents=True)
    (root / "gate" / "in" / "f").write_text("x")
    (root / "gate").chmod(0o311)
    try:
        with open_regular(f"{root}/gate/in/f", "f") as opened:
            assert read_bytes(opened, 10) == b"x"
    finally:
        (root / "gate").chmod(0o755)


@pytest.mark.parametrize("path", ["/", "/proc/self", "/proc/self/cwd", "/dev/fd/0"])
def test_the_root_and_links_bound_to_a_process_are_no_regular_files(path: str) -> None:
    with pytest.raises(FileRefused), open_regular(path, path):
        pass
