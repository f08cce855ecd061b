"""A hook that fails is skipped with a note, the others run, the previous value stands: whatever it raises."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.items import UserItem
from crystal.types.model import ModelRequest, Purpose
from crystal.types.notes import NoteCode, Severity
from crystal.types.session import PromptFacts, PromptMode, UserMessage
from crystal.types.tools import ToolCall, ToolOutput
from tests.host.hosts import SECRET, MadePlugin, SmallHost, full_name, make_host


class OwnError(BaseException):
    """A plugin's own exception, which is not an ``Exception``."""


ERRORS = (
    ValueError(SECRET),
    KeyError(SECRET),
    RecursionError(SECRET),
    SystemExit(SECRET),
    SystemExit(0),
    OwnError(SECRET),
    GeneratorExit(SECRET),
    StopIteration(SECRET),
    StopAsyncIteration(SECRET),
    asyncio.CancelledError(SECRET),
)


def raising(error: BaseException) -> Callable[[], Any]:
    """A plain hook that raises."""

    def hook() -> Any:
        raise error

    return hook


def raising_later(error: BaseException) -> Callable[[], Any]:
    """A coroutine hook that raises after it was suspended."""

    async def hook() -> Any:
        await asyncio.sleep(0)
        raise error

    return hook


def raising_in_a_list(error: BaseException) -> Callable[[], Any]:
    """A generator hook, whose code runs only when its list is read."""

    def hook() -> Any:
        yield from ()
        raise error

    return hook


FAILING = tuple(make(type(error)(SECRET)) for error in ERRORS for make in (raising, raising_later))
FAILING_IDS = tuple(f"{type(error).__name__}-{make.__name__}" for error in ERRORS for make in (raising, raising_later))


def assert_one_note_names(host: SmallHost, plugin: str, hook: str, code: NoteCode = NoteCode.HOOK_ERROR) -> None:
    """The only note is a warning about this hook of this plugin, without any text of the plugin's."""
    note = host.only_note()
    assert (note.code, note.source, note.severity) == (code, full_name(plugin), Severity.WARNING)
    assert f"'{full_name(plugin)}'" in note.text
    assert f"'{hook}'" in note.text
    assert SECRET not in note.text


@pytest.mark.parametrize("failing", FAILING, ids=FAILING_IDS)
def test_a_fold_keeps_the_value_and_goes_on(failing: Callable[[], Any]) -> None:
    host = make_host(
        MadePlugin("Before", on_user_message=lambda message: f"{message.text} before"),
        MadePlugin("Failing", on_user_message=failing),
        MadePlugin("After", on_user_message=lambda message: f"{message.text} after"),
    )
    folded = asyncio.run(host.hooks.on_user_message(UserMessage(text=SECRET)))
    assert folded.text == f"{SECRET} before after"
    assert_one_note_names(host, "Failing", "on_user_message")


@pytest.mark.parametrize("failing", FAILING, ids=FAILING_IDS)
def test_an_append_goes_on_without_the_text(failing: Callable[[], Any]) -> None:
    host = make_host(
        MadePlugin("Before", on_prompt=lambda: "before"),
        MadePlugin("Failing", on_prompt=failing),
        MadePlugin("After", on_prompt=lambda: "after"),
    )
    composed = asyncio.run(host.hooks.compose_prompt(PromptFacts(mode=PromptMode.WORK, text="host")))
    assert composed == "host\n\nbefore\n\nafter"
    assert_one_note_names(host, "Failing", "on_prompt")


@pytest.mark.parametrize("failing", FAILING, ids=FAILING_IDS)
def test_a_notification_still_reaches_the_others(failing: Callable[[], Any]) -> None:
    told: list[str] = []
    host = make_host(
        MadePlugin("Before", on_turn_finished=lambda: told.append("before")),
        MadePlugin("Failing", on_turn_finished=failing),
        MadePlugin("After", on_turn_finished=lambda: told.append("after")),
    )
    asyncio.run(host.dispatcher.notify("on_turn_finished", None))
    assert told == ["before", "after"]
    assert_one_note_names(host, "Failing", "on_turn_finished")


@pytest.mark.parametrize("failing", FAILING, ids=FAILING_IDS)
def test_contributions_of_the_others_are_kept(failing: Callable[[], Any]) -> None:
    host = make_host(
        MadePlugin("Before", contribute_tools=lambda: ["before"]),
        MadePlugin("Failing", contribute_tools=failing),
        MadePlugin("After", contribute_tools=lambda: ["after"]),
    )
    collected = asyncio.run(host.hooks.contributions("contribute_tools"))
    assert [found.entry for found in collected] == ["before", "after"]
    assert_one_note_names(host, "Failing", "contribute_tools")


LISTS = [error for error in ERRORS if not isinstance(error, (StopIteration, GeneratorExit))]


@pytest.mark.parametrize("error", LISTS, ids=lambda error: type(error).__name__)
def test_a_list_that_raises_while_it_is_read_is_skipped_like_a_hook_that_raises(error: BaseException) -> None:
    failing = raising_in_a_list(type(error)(SECRET))
    item = UserItem(id="u", text="hello")
    host = make_host(MadePlugin("Failing", transform_model=failing))
    request = ModelRequest(purpose=Purpose.WORK, items=(item,))
    assert asyncio.run(host.hooks.prepare_request(request)).request.items == (item,)
    assert_one_note_names(host, "Failing", "transform_model")
    host = make_host(MadePlugin("Failing", contribute_tools=failing), MadePlugin("B", contribute_tools=lambda: ["b"]))
    collected = asyncio.run(host.hooks.contributions("contribute_tools"))
    assert [found.entry for found in collected] == ["b"]
    assert_one_note_names(host, "Failing", "contribute_tools")


def test_the_note_gives_the_type_of_the_exception_and_its_place_but_not_its_message() -> None:
    host = make_host(MadePlugin("Failing", on_user_message=raising(ValueError(SECRET))))
    asyncio.run(host.hooks.on_user_message(UserMessage(text=SECRET)))
    text = host.only_note().text
    assert "ValueError" in text
    assert "line" in text
    assert Path(__file__).name in text
    assert str(Path(__file__).parent) not in text
    assert SECRET not in text


@pytest.mark.parametrize("make", [raising, raising_later, raising_in_a_list])
def test_the_operators_interrupt_passes_through(make: Callable[[BaseException], Callable[[], Any]]) -> None:
    after: list[str] = []
    host = make_host(
        MadePlugin("A", rebuild_model=make(KeyboardInterrupt())),
        MadePlugin("B", rebuild_model=lambda: after.append("ran")),
    )
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(host.hooks.prepare_request(ModelRequest(purpose=Purpose.WORK, items=())))
    assert after == []
    assert host.notes.all == ()


class ExplodingIterator:
    """Looks like a list and is none."""

    def __iter__(self) -> Any:
        raise ValueError(SECRET)


@pytest.mark.parametrize("junk", [7, True, b"bytes", ["text"], {"text": "x"}, object(), UserMessage(text="x"), print])
def test_junk_is_refused_with_a_note_and_the_next_hook_sees_the_previous_value(junk: Any) -> None:
    host = make_host(
        MadePlugin("Junk", on_user_message=lambda: junk),
        MadePlugin("After", on_user_message=lambda message: f"{message.text} after"),
    )
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="hello"))).text == "hello after"
    assert_one_note_names(host, "Junk", "on_user_message", NoteCode.CONTRACT_REFUSED)
    assert type(junk).__name__ in host.only_note().text


@pytest.mark.parametrize("junk", [7, True, b"bytes", ["text"], object()])
def test_junk_instead_of_a_text_to_append_is_skipped_with_a_note(junk: Any) -> None:
    host = make_host(MadePlugin("Junk", on_prompt=lambda: junk), MadePlugin("After", on_prompt=lambda: "after"))
    composed = asyncio.run(host.hooks.compose_prompt(PromptFacts(mode=PromptMode.WORK, text="host")))
    assert composed == "host\n\nafter"
    assert_one_note_names(host, "Junk", "on_prompt", NoteCode.HOOK_RESULT)


@pytest.mark.parametrize("junk", [7, "tools", b"bytes", {"read": 1}, object(), print])
def test_junk_instead_of_a_list_of_contributions_is_skipped_with_a_note(junk: Any) -> None:
    host = make_host(
        MadePlugin("Junk", contribute_tools=lambda: junk), MadePlugin("After", contribute_tools=lambda: ["after"])
    )
    collected = asyncio.run(host.hooks.contributions("contribute_tools"))
    assert [found.entry for found in collected] == ["after"]
    assert_one_note_names(host, "Junk", "contribute_tools", NoteCode.HOOK_RESULT)


def test_a_list_that_cannot_be_read_is_skipped_with_a_note() -> None:
    host = make_host(MadePlugin("Junk", transform_model=lambda: ExplodingIterator()))
    request = ModelRequest(purpose=Purpose.WORK, items=())
    assert asyncio.run(host.hooks.prepare_request(request)).request == request
    assert_one_note_names(host, "Junk", "transform_model")


CALL = ToolCall(
    id="c1", name="read", arguments=read_only({"path": SECRET, "list": ["a", ["b"]], "object": {"deep": {"x": 1}}})
)


def set_name(call: Any) -> None:
    call.name = "bash"


def delete_id(call: Any) -> None:
    del call.id


def set_argument(call: Any) -> None:
    call.arguments["path"] = "other"


def delete_argument(call: Any) -> None:
    del call.arguments["path"]


def update_arguments(call: Any) -> None:
    call.arguments.update(path="other")


def merge_arguments(call: Any) -> None:
    arguments = call.arguments
    arguments |= {"path": "other"}


def pop_argument(call: Any) -> None:
    call.arguments.pop("path")


def append_to_a_nested_list(call: Any) -> None:
    call.arguments["list"][1].append("c")


def extend_a_list(call: Any) -> None:
    call.arguments["list"] += ["c"]


def sort_a_list(call: Any) -> None:
    call.arguments["list"].sort(key=str)


def set_in_a_nested_object(call: Any) -> None:
    call.arguments["object"]["deep"]["x"] = 2


MUTATIONS = (
    set_name,
    delete_id,
    set_argument,
    delete_argument,
    update_arguments,
    merge_arguments,
    pop_argument,
    append_to_a_nested_list,
    extend_a_list,
    sort_a_list,
    set_in_a_nested_object,
)


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_arguments_cannot_be_changed_in_place(mutate: Callable[[Any], None]) -> None:
    before = repr(CALL)
    shown: list[str] = []
    host = make_host(
        MadePlugin("Mutating", on_tool_call=lambda call: mutate(call)),
        MadePlugin("After", on_tool_call=lambda call: shown.append(repr(call))),
    )
    assert asyncio.run(host.hooks.on_tool_call(CALL, ("read",))) is CALL
    assert shown == [before]
    assert repr(CALL) == before
    assert_one_note_names(host, "Mutating", "on_tool_call")


def test_a_hook_that_changes_the_working_directory_disturbs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    host = make_host(
        MadePlugin("Moving", on_tool_result=lambda: os.chdir(elsewhere)),
        MadePlugin("After", on_tool_result=lambda result: ToolOutput(text=result.text + " after")),
    )
    outcome = asyncio.run(host.hooks.on_tool_result(CALL, ToolOutput(text="text"), False))
    assert outcome == ToolOutput(text="text after")
    assert host.notes.all == ()


def test_a_refusal_names_plugin_hook_and_reason_and_quotes_no_arguments() -> None:
    changed = ToolCall(id="another", name="read", arguments=read_only({"path": SECRET}))
    host = make_host(MadePlugin("Acme", on_tool_call=lambda: changed))
    assert asyncio.run(host.hooks.on_tool_call(CALL, ("read",))) is CALL
    assert_one_note_names(host, "Acme", "on_tool_call", NoteCode.CONTRACT_REFUSED)
    assert "call id" in host.only_note().text


def test_a_result_that_is_awaitable_in_its_own_way_is_awaited() -> None:
    class Promise:
        def __await__(self) -> Any:
            yield
            return "kept"

    host = make_host(MadePlugin("Acme", on_user_message=lambda: Promise()))
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="hello"))).text == "kept"
