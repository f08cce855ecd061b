"""The search tool: plain words, the best file first, with the lines that show why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crystal.types.tools import ToolOutput
from plugins_builtin.search.tools import SearchTool
from tests.plugins_builtin.tool_calls import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def test_names_count_more_than_contents_and_all_words_more_than_one(session: Session) -> None:
    session.write("src/retry_policy.py", "class Policy:\n    pass\n")
    session.write("src/client.py", "# retry\n" * 30)
    session.write("src/backoff.py", "import time\n\ndef retry(policy):\n    ...\n")
    session.write("docs/other.md", "nothing here\n")
    text = session.call(SearchTool(), query="Retry policy").text
    assert [line for line in text.split("\n") if not line.startswith(" ")] == [
        "src/retry_policy.py", "src/backoff.py", "src/client.py",
    ]  # fmt: skip
    assert "  3: def retry(policy):" in text
    assert text.count("# retry") == 3


def test_signs_of_a_regular_expression_are_plain_characters(session: Session) -> None:
    session.write("a", "call(x)\n")
    assert session.call(SearchTool(), query="call.* (").text == "a\n  1: call(x)"
    assert session.call(SearchTool(), query="(*").failed
    assert session.call(SearchTool(), query="zebra") == ToolOutput(text="No file in . holds a word of zebra.")


def test_ignored_binary_credential_and_outside_files_are_not_shown(session: Session) -> None:
    for path in ("node_modules/x", "id_rsa", "keep"):
        session.write(path)
    session.write("b.bin", b"needle\0needle")
    other = session.workspace.parent / "other"
    other.mkdir()
    (other / "f").write_text("needle")
    (session.workspace / "out").symlink_to(other)
    assert session.call(SearchTool(), query="needle").text == "keep\n  1: needle"
    assert session.call(SearchTool(), query="needle", path="out").failed


def test_a_limit_is_kept_and_said(session: Session) -> None:
    for number in range(12):
        session.write(f"f{number:02}", "needle\n")
    text = session.call(SearchTool(), query="needle", limit=2).text
    assert text == "f00\n  1: needle\nf01\n  1: needle\n(2 of 12 files that hold a word; a higher limit shows more.)"
