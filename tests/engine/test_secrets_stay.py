"""A configured secret never leaves by any door: formats, events, requests, store, logs, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crystal.engine.answers import Deny
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from tests.engine.runs import DONE, Operator, bash, calls, no_wait, read

KEY = "sk-acme/0123456789+abcdef"
HEADER = "hdr-9876543210-zyxw"
ENVIRONMENT = "sk-env-openai-5555666677"
SECRETS = (KEY, HEADER, ENVIRONMENT)


@pytest.fixture
def guarded(crystaler: Crystaler) -> Crystaler:
    """A home with a key, a secret header and a key in the environment, none of which the run itself uses."""
    crystaler.makeproviders(
        acme={
            "protocol": "openai",
            "baseUri": "http://127.0.0.1:9/v1",
            "apiKey": KEY,
            "headers": {"X-Api-Key": HEADER},
            "models": {"m": {"contextWindow": 1000}},
        }
    )
    crystaler.environ["OPENAI_API_KEY"] = ENVIRONMENT
    crystaler.makefile("leak.txt", "\n".join(SECRETS) + "\n")
    return crystaler


def everything_written(home: Path) -> bytes:
    """The bytes of every file of the home but the one that the operator wrote the secrets into."""
    files = (path for path in home.rglob("*") if path.is_file() and path.name != "providers.json")
    return b"\n".join(path.read_bytes() for path in files)


def assert_nothing_leaks(crystaler: Crystaler, result: RunResult) -> None:
    places = {
        "stdout": result.stdout,
        "stderr": result.stderr,
        "events": repr(result.events),
        "requests": repr(result.requests),
        "home": everything_written(crystaler.home).decode("utf-8", "replace"),
    }
    for secret in SECRETS:
        forms = {secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/")}
        assert [place for place, text in places.items() if any(form in text for form in forms)] == []


ALL = " ".join(SECRETS)


@pytest.mark.parametrize("form", ["default", "json", "final"])
@pytest.mark.parametrize("chunk", [0, 3])
def test_no_secret_of_a_turn_leaves_by_any_door(guarded: Crystaler, form: str, chunk: int) -> None:
    cut = {"chunk": chunk} if chunk else {}
    guarded.script(
        [
            {"reasoning": f"I know {ALL}.", "text": f"They are {ALL}.", **calls(read("leak.txt")), **cut},
            calls(bash(f"cat leak.txt; echo {ALL}; cat leak.txt >&2"), ("nothing", {"value": ALL}), **cut),
            calls(("todowrite", {"todos": [{"id": "1", "content": ALL, "status": "pending"}]}), **cut),
            {"text": f"Done with {ALL}", **cut},
        ]
    )
    result = guarded.run(f"use {ALL}", "--approval", "full", "--format", form, "--show-thinking", "--verbose")
    assert result.exit_code == 0, result.stderr
    assert "[redacted:acme.apiKey]" in result.stdout
    assert "[redacted:acme.X-Api-Key]" in repr(result.requests)
    assert "[redacted:OPENAI_API_KEY]" in repr(result.events)
    assert_nothing_leaks(guarded, result)


def test_a_shown_approval_and_a_title_hold_no_secret(guarded: Crystaler) -> None:
    guarded.script([calls(bash(f"echo {ALL}")), DONE])
    result = guarded.run(ALL, operator=Operator(Deny()))
    assert result.exit_code == 4
    assert_nothing_leaks(guarded, result)
    listed = guarded.command("sessions", "list", "--format", "json")
    assert "[redacted:" in json.loads(listed.stdout)[0]["title"]


@pytest.mark.parametrize("status", [401, 500])
def test_an_error_of_the_provider_holds_no_secret(guarded: Crystaler, status: int) -> None:
    failing = {
        "text": f"half {ALL}",
        "error": {"status": status, "body": {"error": {"message": f"bad key {ALL}"}}, "after": 1},
    }
    guarded.script([failing] * 6)
    result = guarded.run("do", "--format", "json", sleep=no_wait)
    assert result.exit_code == 2
    assert "[redacted:acme.apiKey]" in result.stderr
    assert_nothing_leaks(guarded, result)


def test_a_tool_that_fails_with_a_secret_in_its_message_leaks_none(guarded: Crystaler) -> None:
    guarded.makeplugin(
        "Acme",
        f"""
        from crystal import Risk, ToolContribution, ToolDefinition, hookimpl

        class Acme:
            definition = ToolDefinition(name="acme", description="A sample.", schema={{"type": "object"}})

            async def invoke(self, call, context):
                context.progress("using {KEY}")
                raise ValueError("refused {KEY}")

        @hookimpl
        def contribute_tools():
            return [ToolContribution(name="acme", tool=Acme(), risk=Risk.READ)]
        """,
    )
    guarded.script([calls(("acme", {})), DONE])
    result = guarded.run("do")
    assert "refused [redacted:acme.apiKey]" in result.calls[0].output
    assert_nothing_leaks(guarded, result)


def test_the_call_that_a_tool_makes_shows_no_secret(guarded: Crystaler) -> None:
    guarded.makeplugin(
        "Acme",
        f"""
        from crystal import Risk, ToolContribution, ToolDefinition, hookimpl

        class Acme:
            definition = ToolDefinition(name="acme", description="A sample.", schema={{"type": "object"}})

            async def invoke(self, call, context):
                return await context.call("bash", {{"command": "echo {KEY}"}})

        @hookimpl
        def contribute_tools():
            return [ToolContribution(name="acme", tool=Acme(), risk=Risk.READ)]
        """,
    )
    guarded.script([calls(("acme", {})), DONE])
    result = guarded.run("do", "--approval", "full", "--format", "json")
    assert result.exit_code == 0
    assert len(result.calls) == 2
    assert_nothing_leaks(guarded, result)


@pytest.mark.parametrize("escaped", [KEY.replace("/", "\\/"), f"\\u0073{KEY[1:]}"])
def test_a_secret_that_json_escapes_hide_is_found(guarded: Crystaler, escaped: str) -> None:
    guarded.script([calls(("bash", f'{{"command": "echo {escaped}"}}')), DONE])
    result = guarded.run("do", "--approval", "full", "--format", "json")
    assert_nothing_leaks(guarded, result)


@pytest.mark.parametrize("shift", range(0, len(KEY), 4))
def test_the_cut_of_a_long_output_leaves_no_half_of_a_secret(guarded: Crystaler, shift: int) -> None:
    guarded.makeplugin(
        "Acme",
        f"""
        from crystal import Risk, ToolContribution, ToolDefinition, ToolOutput, hookimpl

        class Acme:
            definition = ToolDefinition(name="acme", description="A sample.", schema={{"type": "object"}})

            async def invoke(self, call, context):
                return ToolOutput(text="a" * {49_950 + shift} + "{KEY} " * 4 + "z" * 100_000)

        @hookimpl
        def contribute_tools():
            return [ToolContribution(name="acme", tool=Acme(), risk=Risk.READ)]
        """,
    )
    guarded.script([calls(("acme", {})), DONE])
    [call] = guarded.run("do").calls
    assert len(call.output) <= 100_000
    assert [KEY[:size] for size in range(8, len(KEY) + 1) if KEY[:size] in call.output] == []


def test_a_client_that_cannot_be_made_says_so_without_the_key(guarded: Crystaler) -> None:
    guarded.makeplugin(
        "Acme",
        """
        from crystal import hookimpl

        class Factory:
            protocols = ("acme",)

            def create(self, request):
                raise ValueError(f"cannot use {request.api_key}")

        @hookimpl
        def contribute_protocols():
            return [Factory()]
        """,
    )
    guarded.makeproviders(
        acme={
            "protocol": "acme",
            "baseUri": "http://127.0.0.1:9",
            "apiKey": KEY,
            "models": {"m": {"contextWindow": 1000}},
        }
    )
    result = guarded.run("do", "-p", "acme", "--format", "json")
    assert result.exit_code == 1
    assert "plugin:test/Acme" in result.stderr
    assert_nothing_leaks(guarded, result)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write", {"path": "b.txt", "content": "key = [redacted:acme.apiKey]"}),
        ("edit", {"path": "leak.txt", "old_string": HEADER[:3], "new_string": "[redacted:acme.X-Api-Key]"}),
    ],
)
def test_text_that_would_destroy_a_secret_is_not_written(
    guarded: Crystaler, name: str, arguments: dict[str, str]
) -> None:
    before = (guarded.workspace / "leak.txt").read_bytes()
    guarded.script([calls((name, arguments)), DONE])
    result = guarded.run("do", "--approval", "full")
    assert result.calls[0].failed
    assert "a mark that stands for a secret" in result.calls[0].output
    assert (guarded.workspace / "leak.txt").read_bytes() == before
    assert not (guarded.workspace / "b.txt").exists()
