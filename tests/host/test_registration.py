"""Which plugins register, under which names, and which of their functions become hooks."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from crystal import hookimpl
from crystal.types.notes import NoteCode
from crystal.types.session import UserMessage
from tests.host.hosts import SECRET, MadePlugin, SmallHost, full_name, make_host


def user_text(host: SmallHost, text: str = "hello") -> str:
    """Return what the plugins make of an operator's message."""
    return asyncio.run(host.hooks.on_user_message(UserMessage(text=text))).text


def exclaim(message: UserMessage) -> str:
    """Add a mark to the message."""
    return message.text + "!"


class PluginClass:
    """A plugin as a class with a constructor without arguments."""

    name = "Class"

    @hookimpl
    def on_user_message(self, message: UserMessage) -> str:
        return exclaim(message)


def plugin_module() -> ModuleType:
    """A plugin as a module."""
    module = ModuleType("acme_plugin")
    module.name = "Module"  # type: ignore[attr-defined]
    module.on_user_message = hookimpl(lambda message: exclaim(message))  # type: ignore[attr-defined]
    return module


class StaticPlugin:
    """A plugin whose hooks need no instance."""

    name = "Static"

    @staticmethod
    @hookimpl
    def on_user_message(message: UserMessage) -> str:
        return exclaim(message)


@pytest.mark.parametrize("plugin", [PluginClass, PluginClass(), plugin_module(), StaticPlugin, StaticPlugin()])
def test_a_class_an_instance_and_a_module_are_plugins_alike(plugin: Any) -> None:
    host = make_host(plugin)
    assert user_text(host) == "hello!"
    assert host.notes.all == ()
    assert host.registry.names == (full_name(plugin.name),)
    assert host.registry.hooks_of(full_name(plugin.name)) == ("on_user_message",)


class NeedsArguments:
    """A class that cannot be made by the host."""

    name = "Needy"

    def __init__(self, something: str) -> None:
        self.something = something


class ExitsWhenMade:
    """A class whose constructor ends the program."""

    name = "Exiting"

    def __init__(self) -> None:
        raise SystemExit(SECRET)


class RaisesWhenMade:
    """A class whose constructor fails."""

    name = "Raising"

    def __init__(self) -> None:
        raise ValueError(SECRET)


@pytest.mark.parametrize("plugin", [NeedsArguments, ExitsWhenMade, RaisesWhenMade])
def test_a_class_that_cannot_be_made_is_skipped_with_a_note_and_the_next_plugin_loads(plugin: type) -> None:
    host = make_host(plugin, PluginClass)
    assert host.registry.names == (full_name("Class"),)
    assert host.only_note().code is NoteCode.PLUGIN_INVALID
    assert "without arguments" in host.only_note().text
    assert SECRET not in host.only_note().text


class NameRaises:
    """A plugin whose name cannot be read."""

    @property
    def name(self) -> str:
        raise RuntimeError(SECRET)


@pytest.mark.parametrize(
    "plugin",
    [MadePlugin(""), MadePlugin("  "), MadePlugin(None), MadePlugin(7), MadePlugin(b"Acme"), object(), NameRaises()],
)
def test_a_plugin_without_a_name_is_refused_with_a_note(plugin: Any) -> None:
    if isinstance(plugin, NameRaises):
        host = make_host()
        assert host.registry.register(full_name("number-0"), plugin) is False
    else:
        host = make_host(plugin)
    assert host.registry.names == ()
    assert host.noted() == [(NoteCode.PLUGIN_INVALID, full_name("number-0"))]
    assert "name" in host.only_note().text


def test_the_first_of_two_plugins_with_one_display_name_is_loaded() -> None:
    host = make_host()
    first = host.registry.register("plugin:home/one", MadePlugin("Acme", on_user_message=lambda: "first"))
    second = host.registry.register("plugin:home/two", MadePlugin("Acme", on_user_message=lambda: "second"))
    host.dispatcher.compile()
    assert (first, second) == (True, False)
    assert user_text(host) == "first"
    assert host.noted() == [(NoteCode.PLUGIN_DUPLICATE, "plugin:home/two")]
    assert "plugin:home/one" in host.only_note().text
    assert "Acme" in host.only_note().text


def test_the_first_of_two_plugins_with_one_full_name_is_loaded() -> None:
    host = make_host()
    assert host.registry.register("plugin:home/acme", MadePlugin("One", on_user_message=lambda: "first")) is True
    assert host.registry.register("plugin:home/acme", MadePlugin("Two", on_user_message=lambda: "second")) is False
    host.dispatcher.compile()
    assert user_text(host) == "first"
    assert host.noted() == [(NoteCode.PLUGIN_DUPLICATE, "plugin:home/acme")]
    assert host.registry.display_name("plugin:home/acme") == "One"


def test_a_refused_plugin_does_not_take_its_display_name_with_it() -> None:
    host = make_host(blocked=(full_name("Acme"),))
    assert host.registry.register(full_name("Acme"), MadePlugin("Acme", on_user_message=lambda: "blocked")) is False
    assert host.registry.register("plugin:home/other", MadePlugin("Acme", on_user_message=lambda: "other")) is True
    host.dispatcher.compile()
    assert user_text(host) == "other"
    assert host.notes.all == ()


class WithProperties:
    """A plugin with attributes that cannot be read; none of them is a hook."""

    name = "Properties"

    @property
    def broken(self) -> str:
        raise RuntimeError(SECRET)

    @property
    def exiting(self) -> str:
        raise SystemExit(SECRET)

    @hookimpl
    def on_user_message(self, message: UserMessage) -> str:
        return exclaim(message)


def test_attributes_that_cannot_be_read_do_not_keep_a_plugin_from_loading() -> None:
    host = make_host(WithProperties)
    assert user_text(host) == "hello!"
    assert host.notes.all == ()


class UnreadableNames:
    """A plugin whose list of attributes cannot be had."""

    name = "Unreadable"

    def __dir__(self) -> list[str]:
        raise RuntimeError(SECRET)


def test_a_plugin_that_cannot_be_looked_at_is_skipped_with_a_note_and_the_next_one_loads() -> None:
    host = make_host(UnreadableNames(), PluginClass)
    assert host.registry.names == (full_name("Class"),)
    assert host.noted() == [(NoteCode.PLUGIN_INVALID, full_name("Unreadable"))]
    assert SECRET not in host.only_note().text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on_toolcall", "on_tool_call"),
        ("on_tool_results", "on_tool_result"),
        ("contribute_tool", "contribute_tools"),
        ("on_session_start", "on_session_started"),
        ("rewrite_promt", "rewrite_prompt"),
    ],
)
def test_a_misspelt_hook_is_named_with_the_nearest_right_name_and_the_rest_loads(written: str, meant: str) -> None:
    host = make_host(MadePlugin("Acme", **{written: lambda: None}, on_user_message=exclaim))
    assert host.only_note().code is NoteCode.HOOK_UNKNOWN
    assert f"'{written}'" in host.only_note().text
    assert f"'{meant}'" in host.only_note().text
    assert host.only_note().source == full_name("Acme")
    assert user_text(host) == "hello!"


def test_an_unknown_hook_far_from_every_name_is_still_named() -> None:
    host = make_host(MadePlugin("Acme", zzz=lambda: None, on_user_message=exclaim))
    assert host.noted() == [(NoteCode.HOOK_UNKNOWN, full_name("Acme"))]
    assert "zzz" in host.only_note().text
    assert user_text(host) == "hello!"


@pytest.mark.parametrize(
    ("function", "argument", "mend"),
    [
        (lambda mesage: None, "mesage", "'message'"),
        (lambda message, extra: None, "extra", "message"),
        (lambda *, message: None, "message", "by position"),
        (lambda *, message=None: None, "message", "by position"),
    ],
)
def test_a_wrong_argument_is_named_with_the_mend_and_the_rest_loads(function: Any, argument: str, mend: str) -> None:
    host = make_host(MadePlugin("Acme", on_user_message=function, on_prompt=lambda: "kept"))
    assert host.only_note().code is NoteCode.HOOK_ARGUMENT
    assert f"'{argument}'" in host.only_note().text
    assert mend in host.only_note().text
    assert host.registry.hooks_of(full_name("Acme")) == ("on_prompt",)


def test_a_wrong_argument_of_a_hook_without_any_says_that_there_is_none() -> None:
    host = make_host(MadePlugin("Acme", contribute_tools=lambda context: []))
    assert host.noted() == [(NoteCode.HOOK_ARGUMENT, full_name("Acme"))]
    assert "none" in host.only_note().text


@pytest.mark.parametrize("mark", [{"wrapper": True}, {"hookwrapper": True}])
def test_a_wrapper_is_refused_with_a_note_and_the_plugins_other_hooks_stay(mark: dict[str, bool]) -> None:
    class Wrapping:
        name = "Wrapping"

        @hookimpl(**mark)
        def on_tool_call(self) -> Any:
            yield

        @hookimpl
        def on_user_message(self, message: UserMessage) -> str:
            return exclaim(message)

    host = make_host(Wrapping)
    assert host.noted() == [(NoteCode.HOOK_WRAPPER, full_name("Wrapping"))]
    assert "on_tool_call" in host.only_note().text
    assert host.registry.hooks_of(full_name("Wrapping")) == ("on_user_message",)
    assert user_text(host) == "hello!"


def test_functions_without_the_mark_are_no_hooks() -> None:
    plugin = MadePlugin("Acme")
    plugin.on_user_message = lambda message: "changed"  # type: ignore[attr-defined]
    host = make_host(plugin)
    assert user_text(host) == "hello"
    assert host.registry.hooks_of(full_name("Acme")) == ()


def test_an_implementation_of_another_name_may_say_which_hook_it_means() -> None:
    host = make_host(MadePlugin("Acme", shout=hookimpl(specname="on_user_message")(lambda message: exclaim(message))))
    assert user_text(host) == "hello!"
    assert host.registry.hooks_of(full_name("Acme")) == ("on_user_message",)


def unmarked_module(name: str, function: Any) -> ModuleType:
    module = ModuleType("acme_plugin")
    function.__module__ = module.__name__
    module.name = "Acme"  # type: ignore[attr-defined]
    setattr(module, name, function)
    return module


@pytest.mark.parametrize(
    ("name", "function", "noted"),
    [
        ("on_user_message", lambda message: None, True),
        ("attach", lambda environment: None, True),
        ("attach", lambda debugger, port: None, False),
        ("attach", lambda: None, False),
        ("contribute_tools", lambda: [None], True),
        ("on_user_messages", lambda message: None, False),
    ],
)
def test_a_function_that_is_meant_for_a_hook_and_lacks_its_mark_is_noted(name: str, function: Any, noted: bool) -> None:
    host = make_host(unmarked_module(name, function))
    assert [note.code for note in host.notes.all] == [NoteCode.HOOK_UNMARKED] * noted


def test_a_function_that_is_only_imported_is_not_taken_for_a_forgotten_hook() -> None:
    module = unmarked_module("on_user_message", lambda message: None)
    module.on_user_message.__module__ = "elsewhere"
    assert make_host(module).notes.all == ()


def _wrapped(message: UserMessage, *more: object) -> str:
    return exclaim(message)


_wrapped.__wrapped__ = lambda message, wrong: ""  # type: ignore[attr-defined]


class Bound:
    """Its methods have a first parameter that is not the hook's."""

    def with_self(message: UserMessage) -> str:  # noqa: N805  # what a method's first parameter is called says nothing
        return "the plugin itself"

    def right(message: object, facts: UserMessage) -> str:  # noqa: N805
        return "not reached"


FUNCTIONS: list[tuple[Any, bool]] = [
    (lambda message: exclaim(message), True),
    (lambda message, more=1: exclaim(message), True),
    (lambda message, more: exclaim(message), False),
    (lambda message, /: exclaim(message), True),
    (lambda message, *more: exclaim(message), True),
    (lambda message, **more: exclaim(message), True),
    (lambda message, *, more=1: exclaim(message), True),
    (lambda message, *, more: exclaim(message), False),
    (lambda *, message: exclaim(message), False),
    (lambda messages: "", False),
    (_wrapped, False),
    (Bound().with_self, True),
    (Bound().right, False),
]


@pytest.mark.parametrize("order", [1, -1])
def test_functions_that_are_nearly_alike_are_told_apart_in_one_host(order: int) -> None:
    plugins = [
        (MadePlugin(f"Plugin{number}", on_user_message=_marked(function)), accepted)
        for number, (function, accepted) in enumerate(FUNCTIONS)
    ]
    host = make_host(*(plugin for plugin, _ in plugins[::order]))
    refused = {note.source for note in host.notes.all}
    assert refused == {full_name(plugin.name) for plugin, accepted in plugins if not accepted}  # type: ignore[arg-type]


def _marked(function: Any) -> Any:
    hookimpl(getattr(function, "__func__", function))
    return function
