"""Runtime directories of extensions: made where they belong, never through a link."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from crystal.workspace.data_directories import LinkInPath, ignore_in_git, make_data_directory

NAMES = (".crystal", "data", "plugins", "Acme")


def test_folders_are_made_and_made_again(tmp_path: Path) -> None:
    made = make_data_directory(tmp_path, NAMES)
    assert made == tmp_path.joinpath(*NAMES)
    assert made.is_dir()
    (made / "state").write_text("kept")
    assert make_data_directory(tmp_path, NAMES) == made
    assert (made / "state").read_text() == "kept"


def test_private_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    made = make_data_directory(tmp_path, ("data", "plugins"), private=True)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (made, made.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("depth", range(len(NAMES)))
@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_anywhere_in_the_path_refuses_the_folder(tmp_path: Path, depth: int, dangling: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    base = tmp_path / "workspace"
    base.joinpath(*NAMES[:depth]).mkdir(parents=True)
    if not dangling:
        elsewhere.mkdir()
    link = base.joinpath(*NAMES[: depth + 1])
    link.symlink_to(elsewhere)
    with pytest.raises(LinkInPath, match=str(link)):
        make_data_directory(base, NAMES)
    assert not elsewhere.exists() or not list(elsewhere.iterdir())


def test_a_base_that_is_reached_through_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    make_data_directory(tmp_path / "link", NAMES)
    assert (tmp_path / "real").joinpath(*NAMES).is_dir()


def test_a_file_in_the_way_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / ".crystal").write_text("mine")
    with pytest.raises(NotADirectoryError):
        make_data_directory(tmp_path, NAMES)
    assert (tmp_path / ".crystal").read_text() == "mine"


def test_git_ignores_the_data_and_an_own_rule_stays(tmp_path: Path) -> None:
    ignore_in_git(tmp_path)
    ignore = tmp_path / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.write_text("!keep\n")
    ignore_in_git(tmp_path)
    assert ignore.read_text() == "!keep\n"


def test_a_link_in_the_place_of_the_ignore_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".gitignore").symlink_to(tmp_path / "target")
    ignore_in_git(tmp_path / "data")
    assert not (tmp_path / "target").exists()
