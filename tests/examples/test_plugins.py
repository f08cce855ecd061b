"""The example plugins do what they say."""

from __future__ import annotations

from pathlib import Path

from crystal.testing.crystaler import Crystaler

PLUGINS = Path(__file__).parents[2] / "examples" / "plugins"


def test_house_rules(crystaler: Crystaler) -> None:
    crystaler.makeplugin("house-rules", PLUGINS / "house_rules.py")
    commit = {"toolCalls": [{"name": "bash", "arguments": {"command": "git commit -m x"}}]}
    crystaler.script([{"toolCalls": [{"name": "bash", "arguments": {"command": "ls"}}]}, commit, {"text": "Done."}])
    result = crystaler.run("commit it", "--approval", "full", "--allow", "bash")
    assert result.exit_code == 4
    assert [call.failed for call in result.calls] == [False, True]
    assert result.calls[1].approval is not None
    assert result.calls[1].approval["rule"] == 2
    assert "House rule" in result.requests[0].items[0].text  # type: ignore[union-attr]


def test_word_count(crystaler: Crystaler) -> None:
    crystaler.makeplugin("word-count", PLUGINS / "word_count.py")
    crystaler.makefile("a.txt", "one two three\n")
    calls = [{"name": "count_words", "arguments": {"path": path}} for path in ("a.txt", "../outside.txt")]
    crystaler.script([{"toolCalls": calls}, {"text": "Done."}])
    result = crystaler.run("count")
    assert result.calls[0].output == "a.txt has 3 words."
    assert result.calls[1].approval is not None
    assert result.calls[1].approval["class"] == "Read + Workspace + OutsideWorkspace"
    assert result.calls[1].approval["answeredBy"] == "nobody"


def test_echo_protocol(crystaler: Crystaler) -> None:
    crystaler.makeplugin("echo", PLUGINS / "echo_protocol.py")
    crystaler.makeproviders(
        parrot={
            "protocol": "echo",
            "baseUri": "http://127.0.0.1:9",
            "requiresApiKey": False,
            "models": {"bird": {"contextWindow": 1000}},
        }
    )
    assert crystaler.run("say it", "-p", "parrot", "--format", "final").stdout == "say it\n"


def test_every_example_is_listed_and_run() -> None:
    page = (PLUGINS.parent / "README.md").read_text("utf-8")
    tested = Path(__file__).read_text("utf-8")
    for path in PLUGINS.glob("*.py"):
        assert f"`plugins/{path.name}`" in page
        assert path.name in tested
