"""The ``scripted`` protocol plays what the script says, to whom it says it, and fails as it says."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.items import ModelItem
from crystal.types.model import (
    CallDelta,
    ClientFactory,
    ClientRequest,
    FinishDelta,
    FinishReason,
    ModelClient,
    ModelDelta,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelSettings,
    Purpose,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageDelta,
)
from crystal.types.tools import ToolDefinition
from plugins_builtin.protocols import scripted
from plugins_builtin.protocols.script import parse_script
from plugins_builtin.protocols.script_player import ScriptPlayer
from plugins_builtin.protocols.scripted import ScriptedFactory
from tests.plugins_builtin.protocols.transcripts import calls, load_image, result, says, system, user

READ = ToolDefinition(name="read", description="", schema=read_only({"type": "object"}))


def client(*rounds: Any, factory: ScriptedFactory | None = None, **options: Any) -> ModelClient:
    given = options or {"script": {"rounds": list(rounds)}}
    request = ClientRequest(
        provider="scripted",
        protocol="scripted",
        base_uri="",
        api_key="",
        model=ModelSettings(name="m", context_window=1000),
        options=given,
    )
    return (factory or ScriptedFactory()).create(request)


def asked(
    *items: ModelItem, purpose: Purpose = Purpose.WORK, tools: tuple[ToolDefinition, ...] = (READ,)
) -> ModelRequest:
    return ModelRequest(purpose=purpose, items=items or (user("hi"),), tools=tools)


def play(source: ModelClient, request: ModelRequest | None = None) -> list[ModelDelta]:
    async def inside() -> list[ModelDelta]:
        return [delta async for delta in source.stream(request or asked(), load_image)]

    return asyncio.run(inside())


def text(source: ModelClient, request: ModelRequest | None = None) -> str:
    return "".join(delta.text for delta in play(source, request) if isinstance(delta, TextDelta))


def failure(source: ModelClient, request: ModelRequest | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        play(source, request)
    return caught.value


def test_it_contributes_one_factory_for_its_protocol() -> None:
    assert scripted.name == "scripted"
    [factory] = scripted.contribute_protocols()
    assert isinstance(factory, ClientFactory)
    assert factory.protocols == ("scripted",)


def test_a_round_streams_reasoning_text_calls_usage_and_its_finish() -> None:
    calls_of_round = [
        {"name": "read", "arguments": {"path": "a"}, "id": "c1"},
        {"name": "read", "arguments": "{broken"},
    ]
    usage = {"input": 3, "output": 2, "cached": 1}
    assert play(client({"reasoning": "hm", "text": "hi", "toolCalls": calls_of_round, "usage": usage})) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="hi"),
        CallDelta(key="1", call_id="c1", name="read", arguments='{"path": "a"}'),
        CallDelta(key="2", call_id="call_1_2", name="read", arguments="{broken"),
        UsageDelta(usage=Usage(input=3, output=2, cached=1)),
        FinishDelta(reason=FinishReason.TOOL_CALLS, raw="tool_calls"),
    ]


def test_chunks_cut_every_text_and_lose_nothing() -> None:
    entry = {"text": "hello", "chunk": 2, "toolCalls": [{"name": "read", "arguments": "{}}", "id": "c"}]}
    assert play(client(entry)) == [
        TextDelta(text="he"),
        TextDelta(text="ll"),
        TextDelta(text="o"),
        CallDelta(key="1", call_id="c", name="read", arguments="{}"),
        CallDelta(key="1", arguments="}"),
        FinishDelta(reason=FinishReason.TOOL_CALLS, raw="tool_calls"),
    ]


def test_the_finish_is_what_the_script_says_or_what_the_round_means() -> None:
    assert play(client({"text": "a"}))[-1] == FinishDelta(reason=FinishReason.STOP, raw="stop")
    assert play(client({"text": "a", "finish": "length"}))[-1] == FinishDelta(reason=FinishReason.LENGTH, raw="length")
    assert play(client({}))[-1] == FinishDelta(reason=FinishReason.STOP, raw="stop")


def test_a_delay_waits_before_every_delta() -> None:
    async def inside() -> list[float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        return [
            loop.time() - began
            async for _ in client({"text": "ab", "chunk": 1, "delayMs": 5}).stream(asked(), load_image)
        ]

    moments = asyncio.run(inside())
    assert len(moments) == 3
    assert all(moment >= 0.005 * number * 0.9 for number, moment in enumerate(moments, 1))


def test_every_purpose_takes_its_own_rounds_in_order() -> None:
    source = client(
        {"text": "t1"},
        {"for": "review", "text": "r1"},
        {"text": "t2"},
        {"for": "topic", "text": "n1"},
        {"text": "t3"},
    )
    spoken = [
        text(source, asked(purpose=purpose))
        for purpose in (Purpose.TOPIC, Purpose.WORK, Purpose.PLAN, Purpose.REVIEW, Purpose.WORK)
    ]
    assert spoken == ["n1", "t1", "t2", "r1", "t3"]


@pytest.mark.parametrize("purpose", [Purpose.REVIEW, Purpose.COMPACTION, Purpose.SIDE, Purpose.TOPIC, Purpose.PLUGIN])
def test_a_script_that_runs_out_says_for_what(purpose: Purpose) -> None:
    error = failure(client({"text": "a"}), asked(purpose=purpose))
    assert error.kind is ModelErrorKind.SCRIPT
    assert f'"{purpose.value}"' in error.message


def test_a_client_made_again_in_the_same_process_goes_on() -> None:
    factory = ScriptedFactory()
    rounds = ({"text": "one"}, {"text": "two"})
    assert text(client(*rounds, factory=factory)) == "one"
    assert text(client(*rounds, factory=factory)) == "two"
    assert failure(client(*rounds, factory=factory)).kind is ModelErrorKind.SCRIPT
    assert text(client(*rounds)) == "one"
    assert text(client({"text": "other"}, factory=factory)) == "other"


def test_a_player_may_be_shared_by_the_caller() -> None:
    player = ScriptPlayer(parse_script('{"rounds": [{"text": "one"}, {"text": "two"}]}', "demo.json"))
    assert [text(client(script=player)), text(client(script=player))] == ["one", "two"]
    assert "demo.json" in failure(client(script=player)).message


CONVERSATION = (
    system("You are terse."),
    user("find it"),
    calls("c1", '{"path":"notes"}'),
    result("c1", "42 lines"),
)


@pytest.mark.parametrize(
    "expect",
    [
        {"contains": "find it"},
        {"contains": ["terse", "42", "notes"]},
        {"tools": ["read"]},
        {"lastResult": "42 lines"},
        {},
    ],
)
def test_a_met_expectation_lets_the_round_play(expect: dict[str, Any]) -> None:
    assert text(client({"text": "ok", "expect": expect}), asked(*CONVERSATION)) == "ok"


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        (
            {"contains": "lost"},
            'round 1: expected the request to contain "lost", but the last text is "42 lines"',
        ),
        ({"tools": "bash"}, "expected the tool 'bash' to be offered, but the tools are read"),
        ({"lastResult": "43"}, 'expected the last tool result to contain "43", but it is "42 lines"'),
    ],
)
def test_an_expectation_that_is_not_met_says_how(expect: dict[str, Any], message: str) -> None:
    error = failure(client({"text": "ok", "expect": expect}), asked(*CONVERSATION))
    assert error.kind is ModelErrorKind.SCRIPT
    assert message in error.message


def test_only_the_last_result_counts_as_the_last() -> None:
    items = (*CONVERSATION, says("x"), calls("c2"), result("c2", "later"))
    assert "later" in failure(client({"expect": {"lastResult": "42"}}), asked(*items)).message
    assert "there is no result" in failure(client({"expect": {"lastResult": "42"}}), asked()).message
    assert "the tools are none" in failure(client({"expect": {"tools": "read"}}), asked(tools=())).message


@pytest.mark.parametrize(
    ("error", "kind", "status", "wait"),
    [
        ({"status": 429, "retryAfter": 2}, ModelErrorKind.RATE, 429, 2.0),
        ({"status": 429, "body": {"error": {"code": "insufficient_quota"}}}, ModelErrorKind.QUOTA, 429, None),
        ({"status": 500, "body": "oops"}, ModelErrorKind.SERVER, 500, None),
        ({"status": 400, "body": "prompt is too long"}, ModelErrorKind.OVERFLOW, 400, None),
        ({}, ModelErrorKind.INCOMPLETE, None, None),
        (
            {"body": {"error": {"type": "overloaded_error", "message": "m"}}},
            ModelErrorKind.SERVER,
            None,
            None,
        ),
        ({"body": "words"}, ModelErrorKind.SERVER, None, None),
    ],
)
def test_an_error_is_what_a_provider_would_have_made_of_it(
    error: dict[str, Any], kind: ModelErrorKind, status: int | None, wait: float | None
) -> None:
    raised = failure(client({"error": error}))
    assert (raised.kind, raised.status, raised.retry_after) == (kind, status, wait)


def test_an_error_may_come_after_some_deltas_and_the_next_try_gets_the_next_round() -> None:
    async def first_try() -> None:
        stream = source.stream(asked(), load_image)
        heard.append(await anext(stream))
        heard.append(await anext(stream))
        await anext(stream)

    heard: list[ModelDelta] = []
    source = client({"text": "abcd", "chunk": 1, "error": {"after": 2}}, {"text": "whole"})
    with pytest.raises(ModelError) as caught:
        asyncio.run(first_try())
    assert caught.value.kind is ModelErrorKind.INCOMPLETE
    assert heard == [TextDelta(text="a"), TextDelta(text="b")]
    assert text(source) == "whole"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"script": None}, "no script"),
        ({"other": 1}, "no script"),
        ({"script": [], "scriptSource": "demo.json"}, "demo.json"),
        ({"script": {"rounds": [{"txet": 1}]}, "scriptSource": "demo.json"}, "demo.json, round 1"),
    ],
)
def test_a_script_that_cannot_be_read_is_refused_before_anything_starts(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        client(**options)
    assert caught.value.kind is ModelErrorKind.SCRIPT


def test_a_script_handed_over_read_only_plays_too() -> None:
    script = read_only({"rounds": [{"text": "a", "toolCalls": [{"name": "read", "arguments": {"p": [1]}}]}]})
    assert text(client(script=script)) == "a"


def test_playing_needs_no_heavy_library() -> None:
    code = (
        "import sys, asyncio; from plugins_builtin.protocols.scripted import ScriptedFactory; "
        "from crystal.types.model import *; "
        "c = ScriptedFactory().create(ClientRequest(provider='p', protocol='scripted', base_uri='', api_key='', "
        "model=ModelSettings(name='m', context_window=1), options={'script': {'rounds': [{'text': 'a'}]}}))\n"
        "async def f():\n"
        "    return [d async for d in c.stream(ModelRequest(purpose=Purpose.WORK, items=()), None)]\n"
        "print(len(asyncio.run(f()))); print(sorted({'httpx', 'pydantic', 'jsonschema'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["2", "[]"]
