from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from crystal.store.home import Home, HomeFileError, locate_home, write_private


def test_option_beats_variable_beats_default(tmp_path: Path) -> None:
    environ = {"HOME": "/users/ada", "CRYSTAL_HOME": "/elsewhere"}
    assert locate_home("/chosen", environ).root == Path("/chosen")
    assert locate_home(Path("/chosen"), environ).root == Path("/chosen")
    assert locate_home(None, environ).root == Path("/elsewhere")
    assert locate_home(None, {"HOME": "/users/ada"}).root == Path("/users/ada/.crystal")


def test_empty_choices_count_as_absent() -> None:
    assert locate_home("", {"HOME": "/users/ada", "CRYSTAL_HOME": ""}).root == Path("/users/ada/.crystal")


def test_a_tilde_is_expanded_and_a_relative_path_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate_home("~/other", {"HOME": "/users/ada"}).root == Path("/users/ada/other")
    assert locate_home(None, {"HOME": "/users/ada", "CRYSTAL_HOME": "~"}).root == Path("/users/ada")
    assert locate_home("sub/../here", {}).root == tmp_path / "here"


def test_looking_at_a_home_makes_nothing(home: Home) -> None:
    assert home.config_file == home.root / "config.json"
    assert not home.root.exists()


def test_folders_and_files_are_the_owners_alone_whatever_the_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        home.write_private(home.cache / "thing.json", b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.cache.stat().st_mode) == 0o700
    assert stat.S_IMODE((home.cache / "thing.json").stat().st_mode) == 0o600


def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    shared.chmod(0o755)
    Home(root=shared).write_private(shared / "config.json", b"{}")
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_a_write_replaces_the_file_and_leaves_nothing_beside_it(home: Home) -> None:
    home.write_private(home.config_file, b"old")
    home.write_private(home.config_file, b"new")
    assert home.config_file.read_bytes() == b"new"
    assert os.listdir(home.root) == ["config.json"]


def test_a_write_through_a_link_keeps_the_link(home: Home, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_bytes(b"old")
    home.ensure()
    home.config_file.symlink_to(kept)
    home.write_private(home.config_file, b"new")
    assert home.config_file.is_symlink()
    assert kept.read_bytes() == b"new"


def test_a_write_that_cannot_happen_says_so_and_leaves_no_trace(home: Home) -> None:
    home.config_file.mkdir(parents=True)
    with pytest.raises(HomeFileError) as raised:
        write_private(home.config_file, b"new")
    assert str(raised.value) == f"{home.config_file}: cannot be written: is a directory"
    assert os.listdir(home.root) == ["config.json"]


def test_a_file_in_the_place_of_the_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(HomeFileError, match="a folder is needed here"):
        Home(root=tmp_path / "home").ensure()


def test_the_sentence_names_file_line_and_field() -> None:
    error = HomeFileError(Path("/h/providers.json"), "expected a positive integer, found 0", line=3, field="a.b")
    assert str(error) == "/h/providers.json, line 3, field a.b: expected a positive integer, found 0"
    assert (error.path, error.line, error.field, error.exit_code) == (
        Path("/h/providers.json"),
        3,
        "a.b",
        1,
    )
