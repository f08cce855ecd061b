"""The record of hook calls: who ran, how often, and what came of it."""

from __future__ import annotations

import asyncio
from typing import Any

from crystal.host.ledger import Ledger
from crystal.types.session import PromptFacts, PromptMode, UserMessage
from crystal.types.tools import ToolCall
from tests.host.hosts import MadePlugin, SmallHost, full_name, make_host


def figures(host: SmallHost, hook: str) -> dict[str, tuple[int, int, int, int]]:
    """Calls, changes, refusals and failures of each plugin that implements ``hook``."""
    return {
        record.plugin.rpartition("/")[2]: (record.calls, record.changes, record.refusals, record.failures)
        for record in host.ledger
        if record.hook == hook
    }


def raising() -> Any:
    raise ValueError


async def changing_later(message: UserMessage) -> str:
    await asyncio.sleep(0)
    return f"{message.text}!"


def test_calls_changes_refusals_and_failures_are_counted_for_each_plugin() -> None:
    host = make_host(
        MadePlugin("Silent", on_user_message=lambda: None),
        MadePlugin("Changing", on_user_message=changing_later),
        MadePlugin("Same", on_user_message=lambda message: message.text),
        MadePlugin("Junk", on_user_message=lambda: 7),
        MadePlugin("Raising", on_user_message=raising),
    )
    for _ in range(3):
        asyncio.run(host.hooks.on_user_message(UserMessage(text="hello")))
    assert figures(host, "on_user_message") == {
        "Silent": (3, 0, 0, 0),
        "Changing": (3, 3, 0, 0),
        "Same": (3, 0, 0, 0),
        "Junk": (3, 0, 3, 0),
        "Raising": (3, 0, 0, 3),
    }
    assert all(record.seconds > 0 for record in host.ledger)


def test_appending_notifying_and_collecting_hooks_are_counted_too() -> None:
    host = make_host(
        MadePlugin("A", on_prompt=lambda: "text", on_turn_started=lambda: None, contribute_tools=lambda: ["x"]),
        MadePlugin("B", on_prompt=lambda: 7, on_turn_started=raising, contribute_tools=lambda: 7),
        MadePlugin("C", on_prompt=lambda: "  "),
    )

    async def run() -> None:
        await host.hooks.compose_prompt(PromptFacts(mode=PromptMode.WORK, text="host"))
        await host.dispatcher.notify("on_turn_started", None)
        await host.hooks.contributions("contribute_tools")

    asyncio.run(run())
    assert figures(host, "on_prompt") == {"A": (1, 1, 0, 0), "B": (1, 0, 0, 1), "C": (1, 0, 0, 0)}
    assert figures(host, "on_turn_started") == {"A": (1, 0, 0, 0), "B": (1, 0, 0, 1)}
    assert figures(host, "contribute_tools") == {"A": (1, 0, 0, 0), "B": (1, 0, 0, 1)}


def test_a_hook_that_was_never_called_stands_in_the_record_with_nothing() -> None:
    host = make_host(MadePlugin("A", on_tool_call=lambda: None))
    assert figures(host, "on_tool_call") == {"A": (0, 0, 0, 0)}


def test_the_trace_listener_hears_each_call_and_what_came_of_it_in_order() -> None:
    heard: list[tuple[str, str, str]] = []
    seconds: list[float] = []

    def listen(hook: str, plugin: str, took: float, outcome: str) -> None:
        heard.append((hook, plugin.rpartition("/")[2], outcome))
        seconds.append(took)

    call = ToolCall(id="c1", name="read")
    host = make_host(
        MadePlugin("A", on_tool_call=lambda: None),
        MadePlugin("B", on_tool_call=lambda: ToolCall(id="c1", name="grep")),
        MadePlugin("C", on_tool_call=lambda: ToolCall(id="other", name="grep")),
        MadePlugin("D", on_tool_call=raising),
    )
    host.ledger.trace = listen
    asyncio.run(host.hooks.on_tool_call(call, ("read", "grep")))
    assert heard == [
        ("on_tool_call", "A", "ran"),
        ("on_tool_call", "B", "ran"),
        ("on_tool_call", "B", "changed"),
        ("on_tool_call", "C", "ran"),
        ("on_tool_call", "C", "refused"),
        ("on_tool_call", "D", "ran"),
        ("on_tool_call", "D", "failed"),
    ]
    assert all(took >= 0 for took in seconds)


def test_a_record_is_made_once_and_then_the_same() -> None:
    ledger = Ledger()
    record = ledger.record("on_prompt", "plugin:home/A")
    record.calls += 1
    assert ledger.record("on_prompt", "plugin:home/A") is record
    assert ledger.record("on_prompt", "plugin:home/B") is not record
    assert [(found.plugin, found.calls) for found in ledger] == [("plugin:home/A", 1), ("plugin:home/B", 0)]


def test_compiling_again_for_a_new_plugin_keeps_the_figures() -> None:
    host = make_host(MadePlugin("A", on_user_message=changing_later))
    asyncio.run(host.hooks.on_user_message(UserMessage(text="hello")))
    host.registry.register(full_name("B"), MadePlugin("B", on_user_message=lambda message: message.text + "?"))
    host.dispatcher.compile()
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="hello"))).text == "hello!?"
    assert figures(host, "on_user_message") == {"A": (2, 2, 0, 0), "B": (1, 1, 0, 0)}
