"""Walking a tree: every folder once, no link followed, no special file, the same order every time."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from crystal.workspace.admission import Admission
from crystal.workspace.fence import Fence
from crystal.workspace.ignore import IgnoreRules
from crystal.workspace.walk import walk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return Path(os.path.realpath(tmp_path / "ws"))


def paths_of(root: Path, **options: bool | int | None) -> list[str]:
    fence = Fence(workspace=root, home=root.parent / "home", user_home=root.parent / "user")
    admits = Admission(fence, str(root), frozenset())
    return [
        entry.path + "/" * entry.folder
        for entry in walk(str(root), IgnoreRules(str(root)), admits, **options)  # type: ignore[arg-type]
    ]


def test_a_walk_is_ordered_and_takes_hidden_files_and_leaves_out_ignored_ones(root: Path) -> None:
    for path in ("b/x", "a.py", ".github/w.yml", "b.txt", "node_modules/p/i.js", "Z", "é"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    assert paths_of(root) == [".github/w.yml", "Z", "a.py", "b/x", "b.txt", "é"]
    assert paths_of(root, max_depth=1, folders=True) == [".github/", "Z", "a.py", "b/", "b.txt", "é"]


def test_links_lead_nowhere_and_special_files_are_passed_over(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src" / "f").write_text("x")
    (root / "src" / "loop").symlink_to("..")
    (root / "alias").symlink_to("src/f")
    (root.parent / "secret").write_text("x")
    (root / "out").symlink_to(root.parent)
    (root / "leak").symlink_to(root.parent / "secret")
    (root / "dangling").symlink_to("nothing")
    (root / "zero").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "s"))
        assert paths_of(root) == ["src/f"]
        assert paths_of(root, with_links=True) == ["alias", "src/f"]


def test_credentials_and_a_crystal_home_in_the_workspace_are_passed_over(root: Path) -> None:
    for path in ("id_rsa", "keep", "state/config.json", "state/skills/x", ".crystal/plugins/p.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    fence = Fence(workspace=root, home=root / "state", user_home=root.parent / "user")
    rules = IgnoreRules(str(root))
    found = [entry.path for entry in walk(str(root), rules, Admission(fence, str(root), frozenset()))]
    assert found == [".crystal/plugins/p.py", "keep"]
    approved = frozenset({f"{root}/id_rsa"})
    assert "id_rsa" in [entry.path for entry in walk(str(root), rules, Admission(fence, str(root), approved))]
    inside_home = [entry.path for entry in walk(f"{root}/state", rules, Admission(fence, f"{root}/state", frozenset()))]
    assert inside_home == ["skills/x"]


def test_a_walk_ends_when_nobody_waits_for_it(root: Path) -> None:
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "f").write_text("x")
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 1

    rules = IgnoreRules(str(root))
    fence = Fence(workspace=root, home=root.parent / "home", user_home=root.parent / "user")
    admits = Admission(fence, str(root), frozenset())
    assert [entry.path for entry in walk(str(root), rules, admits, stopped=stopped)] == ["a/f"]
