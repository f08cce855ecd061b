"""Ignore rules: git's own answers are the measure, for nested files and for what a file cannot say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from crystal.workspace.ignore import IGNORED_FOLDERS, IgnoreRules


def fill(root: Path, rules: dict[str, str], paths: list[str]) -> None:
    for path, text in rules.items():
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path / ".gitignore").write_text(text)
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


@pytest.mark.parametrize(
    "rules",
    [
        {"": "*.log\n", "src/c": "build/\n!keep.log\n"},
        {"": "/a.txt\nsrc/*.txt\n"},
        {"": "*\n!*/\n!*.py\n"},
        {"": "/*\n!/src/\n"},
        {"": "src/c/\n", "src/c": "!*\n"},
        {"": "build\n!build/x\n"},
        {"": "**/deep/**\n!**/deep/keep.log\n"},
        {"": "# comment\n\\#odd\n  \n*.txt  \n!\n/\n"},
        {"": "\ufeff*.txt\r\nb[a-u]ild/\r\n"},
        {"src": "/c/\n"},
        {"": "*.py\n", "src": "!/main.py\n"},
        {"": "foo/*\n!foo/bar/\n"},
        {"": "deep/**\n"},
        {"": "src/*\n!src/c\nfoo/**/x\n"},
        {"": "*.txt\n!a.txt\na.tx?\n!src/c/a.txt\n"},
        {"": "**/c/*.log\nfoo**r\n/**/build/\n"},
        {"": "*.txt\n!b.txt\nb.*\n!src\n*.log\n!keep.log\nno.log\n"},
        {"": "keep.log\n!*.log\n", "src": "*.log\n!keep.*\n"},
        {"": "c/\n!c\nbuild\n!build/\nx\n", "x": "!x\n"},
        {"": "*a*a*i*\n!*m*a*i*\n[!a-z]odd\nma[hi]n.py\n"},
        {"": "*.*.*\n*t\n!*xt\n.txt\n"},
    ],
)
def test_nested_ignore_files_mean_what_they_mean_to_git(tmp_path: Path, rules: dict[str, str]) -> None:
    root = Path(os.path.realpath(tmp_path))
    paths = ["a.txt", "#odd", "main.py", "build/x", "src/main.py", "src/b.txt", "src/c/build/x", "src/c/keep.log"]
    paths += ["src/c/no.log", "src/c/a.txt", "x/deep/keep.log", "x/deep/y/z", "src/deep/a", "foo/bar/x", "foo/x.py"]
    fill(root, rules, paths)
    environment = {"PATH": os.environ["PATH"], "HOME": str(root / "nobody"), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q"], cwd=root, check=True, env=environment)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=root, check=True, env=environment, capture_output=True, text=True,
    ).stdout.split("\n")  # fmt: skip
    ours = IgnoreRules(str(root))
    assert {path: not ours.ignores(f"{root}/{path}", folder=False) for path in paths} == {
        path: path in listed for path in paths
    }


def test_a_line_break_in_a_name_is_a_character_like_others(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    fill(root, {"": "*.[lt]*g\n/a/*.o\nname?\n"}, ["n\nl/x.log", "a/b\nc.o", "keep\nx", "a/x.o\n", "namex\n", "name\n"])
    rules = IgnoreRules(str(root))
    ignored = {path for path in ("n\nl/x.log", "a/b\nc.o", "keep\nx", "a/x.o\n", "namex\n", "name\n")
               if rules.ignores(f"{root}/{path}", folder=False)}  # fmt: skip
    assert ignored == {"n\nl/x.log", "a/b\nc.o", "name\n"}


@pytest.mark.parametrize("name", IGNORED_FOLDERS)
def test_the_named_folders_are_ignored_at_any_depth_without_an_ignore_file(tmp_path: Path, name: str) -> None:
    root = os.path.realpath(tmp_path)
    rules = IgnoreRules(root)
    assert rules.ignores(f"{root}/a/{name}/b/x", folder=False)
    assert rules.ignores(f"{root}/{name}", folder=True)
    assert rules.ignores(f"{root}/{name}", folder=False) == (name == ".git")
    assert not rules.ignores(f"{root}/a/{name}.txt", folder=False)


def test_a_folder_named_on_purpose_is_searched_though_it_is_ignored(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    fill(root, {"": "gen/\n*.tmp\n", "gen": "*.o\n"}, ["gen/a/x", "gen/a/x.o", "gen/a.tmp", "gen/node_modules/x"])
    rules = IgnoreRules.for_search(str(root), f"{root}/gen")
    ignored = {
        path: rules.ignores(f"{root}/gen/{path}", folder=False) for path in ("a/x", "a/x.o", "a.tmp", "node_modules/x")
    }
    assert ignored == {"a/x": False, "a/x.o": True, "a.tmp": False, "node_modules/x": True}


def test_rules_above_the_searched_folder_count_and_those_above_the_workspace_do_not(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    fill(root, {"": "*\n", "ws": "*.log\n/src/gen\n"}, ["ws/src/a.log", "ws/src/a.py", "ws/src/gen/x"])
    rules = IgnoreRules.for_search(f"{root}/ws", f"{root}/ws/src")
    assert [rules.ignores(f"{root}/ws/src/{path}", folder=False) for path in ("a.log", "a.py", "gen/x")] == [
        True, False, True,
    ]  # fmt: skip


def test_an_ignore_file_that_is_a_pipe_or_a_link_has_no_rules(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    os.mkfifo(root / ".gitignore")
    (root / "sub").mkdir()
    (root / "rules").write_text("*\n")
    (root / "sub" / ".gitignore").symlink_to(root / "rules")
    assert not IgnoreRules(str(root)).ignores(f"{root}/sub/x", folder=False)
