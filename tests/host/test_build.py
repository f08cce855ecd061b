"""A whole host: the built-in plugins first, then those given, what they bring, and what is left out on request."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from crystal.host.build import Host, HostOptionError, HostOptions, build_host
from crystal.host.sources.builtin import FoundPlugin
from crystal.types.model import ModelRequest, Purpose
from crystal.types.notes import NoteCode, Severity
from crystal.types.session import UserMessage
from crystal.types.tools import ToolCall, ToolContribution, ToolDefinition, ToolOutput
from tests.host.hosts import MadePlugin


class Echo:
    """A tool of a name."""

    def __init__(self, name: str) -> None:
        self.definition = ToolDefinition(name=name, description="Echo.", schema={"type": "object"})

    async def invoke(self, call: ToolCall, context: Any) -> ToolOutput:
        return ToolOutput(text="echo")


def bringing(*names: str) -> Callable[[], list[ToolContribution]]:
    """A hook that contributes tools of these names."""
    return lambda: [ToolContribution(name=name, tool=Echo(name)) for name in names]


def found(full_name: str, **hooks: Callable[..., Any]) -> FoundPlugin:
    """A plugin found under a full name; its display name is the last part."""
    return FoundPlugin(name=full_name, plugin=MadePlugin(full_name.rpartition("/")[2].rpartition(":")[2], **hooks))


def build(*extra: FoundPlugin, **options: Any) -> Host:
    """Build a host with these plugins behind the built-in ones."""
    return asyncio.run(build_host(HostOptions(**options), extra))


def test_the_built_in_plugins_come_first_and_bring_their_tools_without_a_note() -> None:
    host = build(found("plugin:home/Acme", contribute_tools=bringing("acme")))
    assert host.plugins.names[0] == "builtin:classifiers"
    assert host.plugins.names[-1] == "plugin:home/Acme"
    assert all(name.startswith("builtin:") for name in host.plugins.names[:-1])
    assert {"read", "edit", "write", "bash", "grep", "glob"} <= set(host.tools)
    assert host.tools["read"].is_builtin
    assert not host.tools["acme"].is_builtin
    assert host.notes.all == ()


def test_a_bad_contribution_of_one_plugin_is_noted_and_everything_else_is_there() -> None:
    host = build(
        found("plugin:home/Acme", contribute_tools=bringing("read", "acme")),
        found("plugin:home/Beta", contribute_tools=lambda: 7),
        found("plugin:home/Gamma", contribute_tools=bringing("gamma")),
    )
    assert {"acme", "gamma"} <= set(host.tools)
    assert host.tools["read"].is_builtin
    noted = {(note.code, note.source) for note in host.notes.all}
    assert noted == {(NoteCode.TOOL_RESERVED, "plugin:home/Acme"), (NoteCode.HOOK_RESULT, "plugin:home/Beta")}


@pytest.mark.parametrize("wanted", ["plugin:home/Acme", "home/Acme", "Acme"])
def test_a_plugin_is_left_out_by_its_full_name_or_its_last_part(wanted: str) -> None:
    host = build(
        found("plugin:home/Acme", contribute_tools=bringing("acme")),
        found("plugin:home/Beta", contribute_tools=bringing("beta")),
        blocked=(wanted,),
    )
    assert "plugin:home/Acme" not in host.plugins.names
    assert "acme" not in host.tools
    assert "beta" in host.tools
    assert host.notes.all == ()


@pytest.mark.parametrize("wanted", ["shell", "builtin:shell"])
def test_a_built_in_plugin_can_be_left_out(wanted: str) -> None:
    host = build(blocked=(wanted,))
    assert "builtin:shell" not in host.plugins.names
    assert "bash" not in host.tools


def test_several_plugins_can_be_left_out_at_once() -> None:
    host = build(found("package:acme"), found("plugin:home/Beta"), blocked=("acme", "Beta", "shell"))
    assert not {"package:acme", "plugin:home/Beta", "builtin:shell"} & set(host.plugins.names)


@pytest.mark.parametrize("wanted", ["nobody", "", "plugin:home/", "builtin", "acme", "Acm"])
def test_leaving_out_an_unknown_plugin_is_an_error_that_lists_the_known_ones(wanted: str) -> None:
    with pytest.raises(HostOptionError, match="there is no such plugin") as caught:
        build(found("plugin:home/Acme"), blocked=(wanted,))
    assert "plugin:home/Acme" in str(caught.value)
    assert "builtin:shell" in str(caught.value)
    assert caught.value.exit_code == 1


def test_a_last_part_that_two_plugins_share_is_an_error_that_names_both() -> None:
    plugins = (found("plugin:home/Acme"), FoundPlugin(name="package:Acme", plugin=MadePlugin("other")))
    with pytest.raises(HostOptionError) as caught:
        build(*plugins, blocked=("Acme",))
    assert "plugin:home/Acme" in str(caught.value)
    assert "package:Acme" in str(caught.value)
    assert "package:Acme" not in build(*plugins, blocked=("package:Acme",)).plugins.names


@pytest.mark.parametrize("wanted", ["classifiers", "builtin:classifiers"])
def test_the_built_in_classifiers_cannot_be_left_out(wanted: str) -> None:
    with pytest.raises(HostOptionError, match="classifiers"):
        build(blocked=(wanted,))


def test_a_disabled_built_in_tool_is_gone_and_its_name_stays_reserved() -> None:
    host = build(found("plugin:home/Acme", contribute_tools=bringing("bash")), disabled_tools=("bash",))
    assert "bash" not in host.tools
    assert "read" in host.tools
    assert [(note.code, note.source) for note in host.notes.all] == [(NoteCode.TOOL_RESERVED, "plugin:home/Acme")]


@pytest.mark.parametrize("wanted", ["acme", "nothing", "Bash", ""])
def test_disabling_a_tool_that_is_not_built_in_is_an_error_that_lists_the_built_in_ones(wanted: str) -> None:
    with pytest.raises(HostOptionError, match="there is no such built-in tool") as caught:
        build(found("plugin:home/Acme", contribute_tools=bringing("acme")), disabled_tools=(wanted,))
    assert "bash" in str(caught.value)


@pytest.mark.parametrize("hook", ["rebuild_model", "rewrite_prompt", "rewrite_compaction", "rewrite_approval"])
def test_each_plugin_with_a_raw_hook_is_named_in_one_note(hook: str) -> None:
    host = build(
        found("plugin:home/Acme", **{hook: lambda: None}, on_prompt=lambda: None),
        found("plugin:home/Beta", on_prompt=lambda: None, transform_model=lambda: None),
        found("plugin:home/Gamma", **dict.fromkeys(("rewrite_prompt", hook), lambda: None)),
    )
    raw = [note for note in host.notes.all if note.code is NoteCode.RAW_HOOK]
    assert [note.source for note in raw] == ["plugin:home/Acme", "plugin:home/Gamma"]
    assert all(note.source in note.text and note.severity is Severity.INFO for note in raw)
    assert len(host.notes.all) == 2


def test_a_plugin_that_fails_in_every_hook_keeps_no_other_from_loading() -> None:
    def failing() -> Any:
        raise SystemExit

    host = build(
        found(
            "plugin:home/Failing",
            contribute_tools=failing,
            contribute_protocols=failing,
            contribute_classifiers=failing,
            contribute_commands=failing,
            contribute_placeholders=failing,
            contribute_status_fields=failing,
        ),
        found("plugin:home/Acme", contribute_tools=bringing("acme")),
    )
    assert "acme" in host.tools
    assert [note.code for note in host.notes.all] == [NoteCode.HOOK_ERROR] * 6
    assert {note.source for note in host.notes.all} == {"plugin:home/Failing"}


def test_a_slow_contribution_is_cut_at_the_limit_of_the_options() -> None:
    async def for_ever() -> None:
        await asyncio.Event().wait()

    host = build(
        found("plugin:home/Slow", contribute_tools=for_ever),
        found("plugin:home/Acme", contribute_tools=bringing("acme")),
        hook_timeout=0.05,
    )
    assert "acme" in host.tools
    assert [(note.code, note.source) for note in host.notes.all] == [(NoteCode.HOOK_TIMEOUT, "plugin:home/Slow")]


def test_what_a_hook_is_shown_of_the_tools_cannot_be_changed_in_place() -> None:
    def mutate(request: Any) -> None:
        request.tools[0].schema["type"] = "string"

    host = build(found("plugin:home/Acme", rebuild_model=mutate))
    definitions = tuple(tool.definition for tool in host.tools.values())
    request = ModelRequest(purpose=Purpose.WORK, items=(), tools=definitions)
    asyncio.run(host.hooks.prepare_request(request))
    assert definitions[0].schema["type"] == "object"
    assert NoteCode.HOOK_ERROR in [note.code for note in host.notes.all]


async def ten_hosts() -> list[tuple[Host, str]]:
    """Build and use ten hosts at once; each has a plugin of the same name with its own word."""

    async def one(number: int) -> tuple[Host, str]:
        async def answer(message: UserMessage) -> str:
            await asyncio.sleep(0)
            return f"{message.text} {number}"

        plugin = found(
            "plugin:home/Acme", on_user_message=answer, contribute_tools=bringing(f"own{number}", *["read"] * number)
        )
        host = await build_host(HostOptions(), [plugin])
        message = await host.hooks.on_user_message(UserMessage(text="hello"))
        return host, message.text

    return list(await asyncio.gather(*(one(number) for number in range(10))))


def test_ten_hosts_in_one_process_share_nothing() -> None:
    for number, (host, text) in enumerate(asyncio.run(ten_hosts())):
        assert text == f"hello {number}"
        assert [name for name in host.tools if name.startswith("own")] == [f"own{number}"]
        assert [note.code for note in host.notes.all] == [NoteCode.TOOL_RESERVED] * number
        assert [record.calls for record in host.ledger if record.hook == "on_user_message"] == [1]


def test_a_host_that_is_gone_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    host = build(found("plugin:home/Acme", on_turn_started=lambda: None))
    watching = [thread for thread in threading.enumerate() if thread not in before]
    assert len(watching) == 1
    del host
    gc.collect()
    watching[0].join(60)
    assert not watching[0].is_alive()
