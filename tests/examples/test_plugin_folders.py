"""The example plugins that are folders do what they say, loaded as an operator would load them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.types.events import ToolCallFinished
from crystal.types.items import ToolResultItem

PLUGINS = Path(__file__).parents[2] / "examples" / "plugins"
TOKEN = "ghp_" + "a1B2" * 9
FORMATTER = """\
#!/bin/sh
for file; do :; done
case "$file" in *bad.py) echo no >&2; exit 2;; esac
printf "x = 1\\n" > "$file"
"""


def call(tool: str, **arguments: object) -> dict[str, object]:
    return {"toolCalls": [{"name": tool, "arguments": arguments}]}


def test_the_redactor_keeps_a_token_of_a_file_from_the_model(crystaler: Crystaler) -> None:
    crystaler.installplugin(PLUGINS / "redactor")
    crystaler.makefile("notes.txt", f"token: {TOKEN}\nurl: https://me:hunter2@host/x\n")
    crystaler.script([call("read", path="notes.txt"), {"text": "Done."}])
    result = crystaler.run(f"look, my token is {TOKEN}")
    sent = "".join(getattr(item, "text", "") for request in result.requests for item in request.items)
    assert TOKEN not in sent
    assert "hunter2" not in sent
    assert "[secret:github-token]" in sent
    [shown] = [item for item in result.requests[1].items if isinstance(item, ToolResultItem)]
    assert "https://[secret:url-password]@host/x" in shown.text
    assert result.notes == ()


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (call("bash", command="git   push origin main"), "nothing is published"),
        (call("write", path=".github/workflows/ci.yml", content="on: push\n"), "CI definitions"),
        (call("write", path="app/migrations/0001.py", content="x\n"), "migrations"),
        (call("write", path="uv.lock", content="x\n"), "lock files"),
        (call("write", path="app/models.py", content="x\n"), None),
        (call("bash", command="git status"), None),
    ],
)
def test_the_policy_guard_asks_whatever_the_mode_says(
    crystaler: Crystaler, made: dict[str, object], reason: str | None
) -> None:
    crystaler.installplugin(PLUGINS / "policy_guard")
    crystaler.script([made, {"text": "Done."}])
    result = crystaler.run("go", "--approval", "full", "--allow", "bash")
    approval = result.calls[0].approval
    assert approval is not None
    assert result.exit_code == (0 if reason is None else 4)
    if reason is not None:
        assert approval["rule"] == 2
        judged = [event.approval for event in result.events if isinstance(event, ToolCallFinished)]
        assert judged[0] is not None
        assert reason in judged[0].final.summary


def test_the_formatter_formats_what_was_written_and_says_so(
    crystaler: Crystaler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "ruff"
    program.parent.mkdir()
    program.write_text(FORMATTER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    crystaler.installplugin(PLUGINS / "formatter")
    crystaler.script(
        [
            call("write", path="a.py", content="x=1\n"),
            call("write", path="b.txt", content="x=1\n"),
            call("write", path="bad.py", content="x=1\n"),
            {"text": "Done."},
        ]
    )
    result = crystaler.run("go", "--approval", "full")
    assert (crystaler.workspace / "a.py").read_text() == "x = 1\n"
    assert "ruff formatted it" in result.calls[0].output
    assert "ruff" not in result.calls[1].output
    assert "refused the file: no" in result.calls[2].output
    assert result.notes == ()


def test_every_folder_is_listed_and_run() -> None:
    page = (PLUGINS.parent / "README.md").read_text("utf-8")
    tested = Path(__file__).read_text("utf-8")
    for manifest in PLUGINS.glob("*/plugin.json"):
        assert f"`plugins/{manifest.parent.name}/`" in page
        assert f'"{manifest.parent.name}"' in tested
