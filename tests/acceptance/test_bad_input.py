"""Bad input ends with exit 1 and one sentence that names the file and the place; nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler

GOOD = {"here": {"protocol": "openai", "baseUri": "http://127.0.0.1:9/v1", "models": {"m": {"contextWindow": 1000}}}}


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file but the cache, which remembers only that a file was found valid and may be deleted at any time."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "cache")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def check(crystaler: Crystaler, *options: str, expected: tuple[str, ...]) -> None:
    before = snapshot(crystaler.home) if crystaler.home.exists() else {}
    result = crystaler.command("run", "do it", *options)
    assert result.exit_code == 1, result.stdout + result.stderr
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    for word in expected:
        assert word in lines[0]
    after = snapshot(crystaler.home) if crystaler.home.exists() else {}
    assert after == before, "something was written"


def write_home(crystaler: Crystaler, name: str, text: str) -> None:
    crystaler.home.mkdir(exist_ok=True)
    (crystaler.home / name).write_text(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (json.dumps(GOOD, indent=1)[:60], "line"),
        ('{\n "here": {"protocol": "openai" // comment\n}}', "line 2"),
        ('{\n "here": {"protocol": "openai",}\n}', "line 2"),
        (json.dumps({"here": {**GOOD["here"], "models": {"m": {"contextWindow": "big"}}}}), "contextWindow"),
        (json.dumps({"here": {**GOOD["here"], "baseUri": "ftp://x"}}), "baseUri"),
        ("", "empty"),
        ("[]", "object"),
    ],
)
def test_broken_providers(crystaler: Crystaler, text: str, place: str) -> None:
    write_home(crystaler, "providers.json", text)
    check(crystaler, "-p", "here", expected=("providers.json", place))


def test_broken_config(crystaler: Crystaler) -> None:
    write_home(crystaler, "config.json", '{"approval": "sometimes"}')
    check(crystaler, "-p", "scripted", expected=("config.json", "approval"))


def test_unknown_provider_names_the_nearest(crystaler: Crystaler) -> None:
    check(crystaler, "-p", "opnai", expected=("opnai", "openai", "providers.json"))


def test_unknown_model(crystaler: Crystaler) -> None:
    crystaler.makeproviders(**GOOD)
    check(crystaler, "-p", "here", "-m", "nope", expected=("nope", "here", "providers.json"))


def test_no_provider_at_all(crystaler: Crystaler) -> None:
    check(crystaler, expected=("provider", "-p", "config.json"))


def test_missing_key_names_the_places(crystaler: Crystaler) -> None:
    check(crystaler, "-p", "openai", expected=("openai", "OPENAI_API_KEY", "credentials.json"))


def test_protocol_that_nothing_serves(crystaler: Crystaler) -> None:
    crystaler.makeproviders(here={**GOOD["here"], "protocol": "telepathy"})
    check(crystaler, "-p", "here", expected=("telepathy", "openai"))


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_workspace_that_is_no_folder(crystaler: Crystaler, kind: str) -> None:
    path = crystaler.workspace / "x"
    if kind == "file":
        path.write_text("")
    check(crystaler, "-w", str(path), "-p", "scripted", expected=(str(path), "-w"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"rounds": [', ("line 1",)),
        ('{"rounds": {}}', ("rounds",)),
        ('{"rounds": [{"text": "a"}, {"toolCalls": [{"arguments": {}}]}]}', ("name",)),
        ('{"rounds": [{"for": "fun"}]}', ("for",)),
        ("\x00", ("script.json",)),
    ],
)
def test_broken_script(crystaler: Crystaler, text: str, expected: tuple[str, ...]) -> None:
    path = crystaler.makefile("script.json", text.encode())
    check(crystaler, "--script", str(path), expected=("script.json", *expected))


def test_script_that_is_not_there_or_not_utf8(crystaler: Crystaler) -> None:
    check(crystaler, "--script", "nowhere.json", expected=("nowhere.json",))
    path = crystaler.makefile("latin.json", b'{"rounds": [{"text": "\xe9"}]}')
    check(crystaler, "--script", str(path), expected=("latin.json", "UTF-8"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--no-such-option"], ("--no-such-option",)),
        (["--format", "xml"], ("xml",)),
        (["--duration", "soon"], ("soon",)),
        (["--model-calls", "many"], ("many",)),
        (["--disable-tool", "raed"], ("raed", "read")),
        (["--no-plugin", "nobody"], ("nobody", "builtin:files")),
        (["--no-plugin", "classifiers"], ("classifiers",)),
        (["--approval", "review", "--approval-provider", "nowhere"], ("nowhere", "--approval-provider", "config.json")),
        (["--approval-model-id", "nothing"], ("nothing", "providers.json")),
        (["-r", "a", "-c"], ("-r", "-c")),
        (["-r", "nothing"], ("session",)),
        (["-c"], ("session",)),
        (["--ask"], ("--ask", "terminal")),
        (["--image", "nowhere.png"], ("nowhere.png",)),
    ],
)
def test_bad_options(crystaler: Crystaler, options: list[str], expected: tuple[str, ...]) -> None:
    script = crystaler.makefile("s.json", '{"rounds": [{"text": "Done."}]}')
    check(crystaler, "--script", str(script), *options, expected=expected)


def test_a_slash_verb_is_no_task(crystaler: Crystaler) -> None:
    result = crystaler.command("run", "/clear now", "-p", "scripted")
    assert result.exit_code == 1
    assert "/clear" in result.stderr


def test_an_image_that_is_none(crystaler: Crystaler) -> None:
    script = crystaler.makefile("s.json", '{"rounds": [{"text": "Done."}]}')
    path = crystaler.makefile("x.png", "not an image")
    check(crystaler, "--script", str(script), "--image", str(path), expected=("x.png", "image"))


def test_json_format_says_it_in_json_too(crystaler: Crystaler) -> None:
    result = crystaler.command("run", "do it", "-p", "openai", "--format", "json")
    assert result.exit_code == 1
    lines: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["stopped", "session"]
    assert lines[0]["exitCode"] == lines[1]["exitCode"] == 1
    assert "OPENAI_API_KEY" in lines[0]["detail"]


def test_a_working_directory_that_is_gone(crystaler: Crystaler) -> None:
    import subprocess
    import sys

    script = crystaler.makefile("s.json", '{"rounds": [{"text": "Done."}]}')
    main = (
        "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); from crystal.cli.main import main; main()"
    )
    finished = subprocess.run(
        [sys.executable, "-P", "-c", main, "run", "do it", "--script", str(script)],
        cwd=crystaler.workspace,
        env={**crystaler.environ, "CRYSTAL_HOME": str(crystaler.home)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 1
    assert b"working directory does not exist" in finished.stderr
    assert len(finished.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["", "nosuch", "nosuch:ls"])
def test_a_grant_for_no_tool(crystaler: Crystaler, name: str) -> None:
    script = crystaler.makefile("s.json", '{"rounds": [{"text": "Done."}]}')
    check(crystaler, "--script", str(script), "--allow", name, expected=("--allow", "no such tool", "bash"))


@pytest.mark.parametrize("text", ['{"rounds": [{"delayMs": 1e999}]}', '{"rounds": [{"chunk": ' + "9" * 5000 + "}]}"])
def test_numbers_that_no_script_can_mean(crystaler: Crystaler, text: str) -> None:
    path = crystaler.makefile("script.json", text)
    check(crystaler, "--script", str(path), expected=("script.json",))


def test_options_that_cannot_be_used_are_said_in_json_too(crystaler: Crystaler) -> None:
    result = crystaler.command("run", "do it", "--script", "nowhere.json", "--format", "json")
    assert result.exit_code == 1
    assert [json.loads(line)["type"] for line in result.stdout.splitlines()] == ["stopped", "session"]
