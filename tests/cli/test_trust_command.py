"""``crystal trust``: asks, names what would load, remembers what was shown."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crystal.cli.app import run_command_line
from crystal.store.home import Home
from crystal.store.trust import load_trust
from crystal.testing.crystaler import Crystaler
from tests.host.plugin_folders import make_plugin

Trust = Callable[..., int]


@pytest.fixture
def theirs(crystaler: Crystaler) -> Path:
    return crystaler.workspace / ".crystal" / "plugins"


@pytest.fixture
def trust(crystaler: Crystaler) -> Trust:
    """Run ``crystal trust`` for the workspace of the fixture."""

    def run(*options: str) -> int:
        return run_command_line(["trust", *options, "--home", str(crystaler.home), "-w", str(crystaler.workspace)])

    return run


@pytest.fixture
def trusted(crystaler: Crystaler) -> Callable[[], list[str]]:
    """Return the names of what is trusted in the workspace of the fixture."""

    def read() -> list[str]:
        workspace = str(crystaler.workspace.resolve())
        return sorted(load_trust(Home(root=crystaler.home)).get(workspace, {}))

    return read


def on_terminal(monkeypatch: pytest.MonkeyPatch, typed: bytes) -> Callable[[], str]:
    """Make stdin and stderr a terminal on which something is typed; returns a function that reads what was shown."""
    master, slave = os.openpty()
    monkeypatch.setattr(sys, "stdin", os.fdopen(os.dup(slave), encoding="utf-8"))
    monkeypatch.setattr(sys, "stderr", os.fdopen(os.dup(slave), "w", encoding="utf-8"))
    os.close(slave)
    os.write(master, typed)

    def shown() -> str:
        sys.stdin.close()
        sys.stderr.close()
        pieces = []
        with contextlib.suppress(OSError):  # Linux says so when the other side is closed
            while piece := os.read(master, 65536):
                pieces.append(piece)
        os.close(master)
        return b"".join(pieces).decode().replace("\r\n", "\n")

    return shown


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"YES\n", 0), (b"\n", 4), (b"n\n", 4), (b"\x04", 4)])
def test_the_terminal_is_asked_once_and_the_default_is_no(
    crystaler: Crystaler,
    theirs: Path,
    trust: Trust,
    trusted: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    typed: bytes,
    code: int,
) -> None:
    make_plugin(crystaler.home / "plugins", "Acme")
    make_plugin(theirs, "Acme")
    make_plugin(theirs, "Beta", {"module": "b.py", "enabled": False})
    make_plugin(theirs, "Cece", b"{")
    shown = on_terminal(monkeypatch, typed)
    assert trust() == code
    text = shown()
    assert "plugins/Acme (new): takes the place of the home's plugin and runs acme.py\n" in text
    assert "plugins/Beta (new): is not loaded, its manifest says enabled: false" in text
    assert "plugins/Cece (new): is not loaded, plugin.json, line 1" in text
    assert text.count("Trust these 3? [y/N]") == 1
    assert trusted() == (["plugins/Acme", "plugins/Beta", "plugins/Cece"] if code == 0 else [])


def test_only_what_is_new_or_changed_is_asked_about(
    theirs: Path, trust: Trust, trusted: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_plugin(theirs, "Acme")
    make_plugin(theirs, "Beta")
    assert trust("--yes") == 0
    (theirs / "Beta" / "acme.py").write_text("x = 1\n")
    shown = on_terminal(monkeypatch, b"n\n")
    assert trust() == 4
    text = shown()
    assert "plugins/Beta (changed): runs acme.py" in text
    assert "plugins/Acme" not in text
    assert trusted() == ["plugins/Acme", "plugins/Beta"]


def test_what_changes_while_the_question_stands_is_not_trusted(
    crystaler: Crystaler,
    theirs: Path,
    trust: Trust,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = make_plugin(theirs, "Acme")

    class Typist:
        """Answers yes after changing what was shown."""

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            (folder / "acme.py").write_text("stolen = True\n")
            return "y\n"

    monkeypatch.setattr(sys, "stdin", Typist())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert trust() == 0
    capsys.readouterr()
    assert trust("--list", "--format", "json") == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["entry"], row["state"]) == ("plugins/Acme", "changed")


def test_without_a_terminal_yes_is_needed(
    theirs: Path, trust: Trust, trusted: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    make_plugin(theirs, "Acme")
    assert trust() == 1
    assert "no terminal to ask on; look with --list, then give --yes" in capsys.readouterr().err
    assert trusted() == []
    assert trust("--yes") == 0
    assert "Trusted in" in capsys.readouterr().out
    assert trusted() == ["plugins/Acme"]
    assert trust() == 0
    assert "Nothing to trust" in capsys.readouterr().out


def test_a_workspace_without_code_has_nothing_to_trust(
    crystaler: Crystaler, trust: Trust, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trust() == 0
    assert "No code of its own in" in capsys.readouterr().out
    assert not crystaler.home.exists()


def test_what_cannot_be_trusted_is_named_and_left_out(
    theirs: Path, trust: Trust, trusted: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    make_plugin(theirs, "Acme")
    (theirs / "Beta").symlink_to("/")
    assert trust("--yes") == 0
    assert "plugins/Beta cannot be trusted: a link that leaves the plugins folder" in capsys.readouterr().err
    assert trusted() == ["plugins/Acme"]


def test_never_is_never(
    crystaler: Crystaler,
    theirs: Path,
    trust: Trust,
    trusted: Callable[[], list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_plugin(theirs, "Acme")
    crystaler.makeconfig(projectTrust="never")
    assert trust("--yes") == 1
    assert "projectTrust is never in config.json" in capsys.readouterr().err
    assert trusted() == []


@pytest.mark.parametrize("form", ["table", "text", "json"])
def test_the_list_says_how_every_entry_stands(
    crystaler: Crystaler, theirs: Path, trust: Trust, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    for name in ("Acme", "Beta", "Gone"):
        make_plugin(theirs, name)
    assert trust("--yes") == 0
    (theirs / "Beta" / "x.py").write_text("")
    (theirs / "Gone").rename(crystaler.workspace / "Gone")
    make_plugin(theirs, "New")
    capsys.readouterr()
    assert trust("--list", "--format", form) == 0
    shown = capsys.readouterr().out
    for word in ("trusted", "changed", "gone", "new"):
        assert word in shown
    if form == "json":
        rows: list[dict[str, Any]] = json.loads(shown)
        assert [(row["entry"], row["state"]) for row in rows] == [
            ("plugins/Acme", "trusted"),
            ("plugins/Beta", "changed"),
            ("plugins/Gone", "gone"),
            ("plugins/New", "new"),
        ]


def test_trust_can_be_taken_back_also_where_the_workspace_is_gone(
    crystaler: Crystaler,
    theirs: Path,
    trust: Trust,
    trusted: Callable[[], list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_plugin(theirs, "Acme")
    assert trust("--yes") == 0
    crystaler.workspace.rename(crystaler.workspace.parent / "moved")
    capsys.readouterr()
    assert trust("--revoke") == 0
    assert "No longer trusted in" in capsys.readouterr().out
    assert trusted() == []
    assert trust("--revoke") == 0
    assert "Nothing was trusted in" in capsys.readouterr().out


def test_a_broken_trust_file_is_exit_1_and_stays(
    crystaler: Crystaler, theirs: Path, trust: Trust, capsys: pytest.CaptureFixture[str]
) -> None:
    make_plugin(theirs, "Acme")
    crystaler.home.mkdir()
    file = crystaler.home / "trust.json"
    file.write_text('{"workspaces": 5}')
    for options in ((), ("--yes",), ("--list",), ("--revoke",)):
        assert trust(*options) == 1
        error = capsys.readouterr().err
        assert "trust.json, line 1, field workspaces: expected an object, found a number" in error
        assert error.count("\n") == 1
    assert file.read_text() == '{"workspaces": 5}'


def test_options_that_exclude_one_another_are_refused(trust: Trust, capsys: pytest.CaptureFixture[str]) -> None:
    assert trust("--yes", "--revoke") == 1
    assert "exclude one another" in capsys.readouterr().err


def test_hostile_text_is_shown_harmless_and_pushes_nothing_out_of_sight(
    theirs: Path, trust: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = " " * 3000
    make_plugin(theirs, "Acme", {"module": "a.py", "type": "\x1b[2J\u202e\x07"})
    make_plugin(theirs, "Beta", f'{{"{long}\u202e": 1, "{long}\u202e": 2}}'.encode())
    shown = on_terminal(monkeypatch, b"n\n")
    assert trust() == 4
    text = shown()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert len(text) < 2000
