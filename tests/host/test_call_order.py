"""The order of implementations, and which arguments each one gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal import hookimpl
from crystal.types.approval import ApprovalFacts, ApprovalMode, Classification, Risk
from crystal.types.model import ModelRequest, Purpose
from crystal.types.session import PromptFacts, PromptMode, SessionFacts, UserMessage
from crystal.types.tools import ToolCall
from tests.host.hosts import MadePlugin, make_host

MARKS = {
    "first": {"tryfirst": True},
    "plain": {},
    "last": {"trylast": True},
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(MARKS)), max_size=8))
def test_tryfirst_runs_first_and_trylast_last_each_in_registration_order(marks: list[str]) -> None:
    called: list[int] = []
    plugins = [
        MadePlugin(f"P{number}", on_turn_started=hookimpl(**MARKS[mark])(lambda number=number: called.append(number)))
        for number, mark in enumerate(marks)
    ]
    asyncio.run(make_host(*plugins).dispatcher.notify("on_turn_started", None))
    wanted = [number for kind in ("first", "plain", "last") for number, mark in enumerate(marks) if mark == kind]
    assert called == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(MARKS)), min_size=1, max_size=6))
def test_a_fold_passes_each_replacement_to_the_next_in_that_order(marks: list[str]) -> None:
    plugins = [
        MadePlugin(
            f"P{number}",
            on_user_message=hookimpl(**MARKS[mark])(lambda message, number=number: f"{message.text}{number}"),
        )
        for number, mark in enumerate(marks)
    ]
    folded = asyncio.run(make_host(*plugins).hooks.on_user_message(UserMessage(text=">")))
    wanted = [number for kind in ("first", "plain", "last") for number, mark in enumerate(marks) if mark == kind]
    assert folded.text == ">" + "".join(map(str, wanted))


def test_plugins_are_named_in_registration_order() -> None:
    host = make_host(MadePlugin("B"), MadePlugin("A"), MadePlugin("C"))
    assert host.registry.names == ("plugin:home/B", "plugin:home/A", "plugin:home/C")


CALL = ToolCall(id="c1", name="read")
FACTS = ApprovalFacts(classification=Classification(risk=Risk.READ), mode=ApprovalMode.DEFAULT)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda seen: lambda: seen.append(()), ()),
        (lambda seen: lambda call: seen.append((call,)), (CALL,)),
        (lambda seen: lambda facts: seen.append((facts,)), (FACTS,)),
        (lambda seen: lambda require_prompt: seen.append((require_prompt,)), (False,)),
        (lambda seen: lambda call, facts, require_prompt: seen.append((call, facts)), (CALL, FACTS)),
        (lambda seen: lambda require_prompt, call: seen.append((require_prompt, call)), (False, CALL)),
        (lambda seen: lambda facts, call: seen.append((facts, call)), (FACTS, CALL)),
        (lambda seen: lambda call, mine=7: seen.append((call, mine)), (CALL, 7)),
        (lambda seen: lambda mine=7, facts=None: seen.append((mine, facts)), (7, FACTS)),
        (lambda seen: lambda facts=None: seen.append((facts,)), (FACTS,)),
        (lambda seen: lambda call, /: seen.append((call,)), (CALL,)),
        (lambda seen: lambda *call: seen.append(call), ()),
        (lambda seen: lambda **call: seen.append(call), {}),
        (lambda seen: lambda call, *more, **facts: seen.append((call, more, facts)), (CALL, (), {})),
    ],
)
def test_an_implementation_gets_the_arguments_it_names_wherever_it_names_them(make: Any, wanted: Any) -> None:
    seen: list[Any] = []
    host = make_host(MadePlugin("Acme", rewrite_approval=make(seen)))
    asyncio.run(host.hooks.on_approval(CALL, FACTS))
    assert seen == [wanted]
    assert host.notes.all == ()


def test_plain_and_async_implementations_mix_in_order() -> None:
    async def second(message: UserMessage) -> str:
        await asyncio.sleep(0)
        return f"{message.text} two"

    host = make_host(
        MadePlugin("A", on_user_message=lambda message: f"{message.text} one"),
        MadePlugin("B", on_user_message=second),
        MadePlugin("C", on_user_message=lambda message: f"{message.text} three"),
    )
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="zero"))).text == "zero one two three"


def test_none_keeps_the_previous_value() -> None:
    async def nothing(message: UserMessage) -> None:
        await asyncio.sleep(0)

    host = make_host(
        MadePlugin("A", on_user_message=lambda: "replaced"),
        MadePlugin("B", on_user_message=lambda: None),
        MadePlugin("C", on_user_message=nothing),
    )
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="hello"))).text == "replaced"


def test_every_appended_text_joins_the_prompt_and_raw_hooks_see_the_whole() -> None:
    host = make_host(
        MadePlugin("Raw", rewrite_prompt=lambda prompt, composed: f"[{prompt.text}|{composed}]"),
        MadePlugin("A", on_prompt=lambda prompt: f"{prompt.mode.value} facts"),
        MadePlugin("B", on_prompt=lambda: "more"),
    )
    composed = asyncio.run(host.hooks.compose_prompt(PromptFacts(mode=PromptMode.PLAN, text="host")))
    assert composed == "[host|host\n\nplan facts\n\nmore]"


def test_a_collect_keeps_the_order_of_plugins_and_of_their_entries() -> None:
    async def later() -> tuple[str, ...]:
        await asyncio.sleep(0)
        return ("d",)

    host = make_host(
        MadePlugin("A", contribute_tools=lambda: ["a", "b"]),
        MadePlugin("B", contribute_tools=lambda: None),
        MadePlugin("C", contribute_tools=lambda: (entry for entry in "c")),
        MadePlugin("D", contribute_tools=later),
    )
    collected = asyncio.run(host.hooks.contributions("contribute_tools"))
    assert [(found.plugin, found.entry) for found in collected] == [
        ("plugin:home/A", "a"),
        ("plugin:home/A", "b"),
        ("plugin:home/C", "c"),
        ("plugin:home/D", "d"),
    ]


def test_without_implementations_every_value_passes_as_it_is() -> None:
    host = make_host(MadePlugin("Acme"))
    request = ModelRequest(purpose=Purpose.WORK, items=())
    assert asyncio.run(host.hooks.on_tool_call(CALL, ())) is CALL
    assert asyncio.run(host.hooks.prepare_request(request)).request is request
    assert asyncio.run(host.hooks.compose_prompt(PromptFacts(mode=PromptMode.WORK, text="host"))) == "host"
    assert host.notes.all == ()


def test_a_notification_reaches_everyone_and_its_results_do_not_matter(tmp_path: Any) -> None:
    told: list[Any] = []
    session = SessionFacts(id="s1", workspace=tmp_path, approval=ApprovalMode.EDIT)
    host = make_host(
        MadePlugin("A", on_session_started=lambda session: told.append(session) or "ignored"),
        MadePlugin("B", on_session_started=lambda session: told.append(session) or 7),
    )
    asyncio.run(host.hooks.on_session_started(session))
    assert told == [session, session]
    assert host.notes.all == ()
