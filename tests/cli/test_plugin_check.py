"""``crystal plugins check``: what is fine, what is broken and where, from one scripted session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crystal.cli.app import run_command_line
from tests.host.plugin_folders import make_plugin

GOOD = """
from crystal import Risk, hookimpl, tool

name = "Acme"

@tool(risk=Risk.READ)
def acme_word() -> str:
    \"\"\"Say a word.\"\"\"
    return "word"

@hookimpl
def contribute_tools():
    return [acme_word]

@hookimpl
def on_tool_result(call, result):
    return None

@hookimpl
def on_compaction(compaction):
    return None
"""


def check(folder: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run_command_line(["plugins", "check", str(folder), "--format", "json"]) == code
    shown = capsys.readouterr()
    assert shown.err == ""
    rows: list[dict[str, Any]] = json.loads(shown.out)
    return rows


def plugin(tmp_path: Path, source: str, manifest: dict[str, Any] | bytes | None = None) -> Path:
    make_plugin(tmp_path, "Acme", manifest or {"module": "acme.py"})
    (tmp_path / "Acme" / "acme.py").write_text(source)
    return tmp_path / "Acme"


def test_a_good_plugin_passes_and_its_folder_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = plugin(tmp_path, GOOD)
    before = sorted(path.name for path in folder.rglob("*"))
    results = {row["check"]: row for row in check(folder, capsys)}
    assert {name: row["result"] for name, row in results.items() if row["result"] != "slow"} == {
        "manifest": "ok",
        "load": "ok",
        "tools": "ok",
        "contribute_tools": "ok",
        "on_tool_result": "ok",
        "on_compaction": "not reached",
    }
    assert results["tools"]["detail"] == "acme_word"
    assert "5 calls" in results["on_tool_result"]["detail"]
    assert "compaction" in results["on_compaction"]["detail"]
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        (GOOD.replace("return None", "raise ValueError('private')", 1), "on_tool_result", "5 failed"),
        (GOOD.replace("return None", "return 5", 1), "on_tool_result", "5 refused"),
        (GOOD.replace("on_tool_result", "on_tool_resutl"), "note", "on_tool_result"),
        (GOOD.replace("(call, result)", "(call, outcome)"), "note", "outcome"),
        (GOOD.replace("acme_word", "read"), "note", "'read'"),
        (GOOD + "import no_such_thing\n", "note", "no_such_thing"),
        (GOOD + "raise SystemExit\n", "note", "SystemExit"),
        ("x = (\n", "note", "line 1"),
    ],
)
def test_what_is_broken_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, place: str, words: str
) -> None:
    broken = [row for row in check(plugin(tmp_path, source), capsys, code=1) if row["result"] == "broken"]
    assert any(row["check"] == place and words in row["detail"] for row in broken), broken


def test_a_broken_manifest_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = check(plugin(tmp_path, GOOD, b'{"module": "acme.py",}'), capsys, code=1)
    assert [(row["check"], row["result"]) for row in rows] == [("manifest", "broken")]
    assert "plugin.json, line 1, column 21" in rows[0]["detail"]


def test_a_plugin_that_is_switched_off_is_checked_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = plugin(tmp_path, GOOD, {"module": "acme.py", "enabled": False})
    assert {row["check"]: row["result"] for row in check(folder, capsys)}["load"] == "ok"
    assert json.loads((folder / "plugin.json").read_text())["enabled"] is False


@pytest.mark.parametrize("name", ["nothing", "1st"])
def test_a_folder_that_is_no_plugin_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / name).mkdir()
    if name == "1st":
        (tmp_path / name / "plugin.json").write_text("{}")
    assert run_command_line(["plugins", "check", str(tmp_path / name)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_failing_hook_is_counted_once_a_call_and_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = 'from crystal import hookimpl\nname = "Acme"\n\n@hookimpl\ndef on_turn_started():\n    raise ValueError\n'
    rows = check(plugin(tmp_path, source), capsys, 1)
    [row] = [row for row in rows if row["check"] == "on_turn_started"]
    assert row["result"] == "broken"
    assert row["detail"].startswith("1 call, ")
    assert row["detail"].endswith(", 1 failed")
    assert len([row for row in rows if row["check"] == "note"]) == 1


def test_a_contribution_that_raises_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = check(plugin(tmp_path, GOOD.replace("return [acme_word]", "raise ValueError")), capsys, 1)
    assert [row["result"] for row in rows if row["check"] == "contribute_tools"] == ["broken"]


@pytest.mark.parametrize("odd", ["fifo", "link"])
def test_a_folder_that_no_session_would_read_is_broken_and_not_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    folder = plugin(tmp_path, GOOD)
    if odd == "fifo":
        os.mkfifo(folder / "pipe")
    else:
        (folder / "out").symlink_to(tmp_path)
    [row] = check(folder, capsys, 1)
    assert (row["check"], row["result"]) == ("folder", "broken")
