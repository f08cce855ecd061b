"""A built host with one plugin that replies what a test says, and one behind it that remembers what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from crystal import hookimpl
from crystal.hookspecs import ContractRefused, JunkReturned
from crystal.host.build import Host, HostOptions, build_host
from crystal.host.sources.builtin import FoundPlugin
from crystal.types.notes import Note

REPLYING = "plugin:home/Replying"
WITNESS = "plugin:home/Witness"
REFUSED = "the contract refused it"
JUNK = "it is not even of the right kind"


class Replying:
    """Answers every hook with what the test put into ``replies``."""

    name = "Replying"

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}

    @hookimpl
    def on_user_message(self) -> Any:
        return self.replies.get("on_user_message")

    @hookimpl
    def on_prompt(self) -> Any:
        return self.replies.get("on_prompt")

    @hookimpl
    def rewrite_prompt(self) -> Any:
        return self.replies.get("rewrite_prompt")

    @hookimpl
    def on_compaction(self) -> Any:
        return self.replies.get("on_compaction")

    @hookimpl
    def rewrite_compaction(self) -> Any:
        return self.replies.get("rewrite_compaction")

    @hookimpl
    def rebuild_model(self) -> Any:
        return self.replies.get("rebuild_model")

    @hookimpl
    def transform_model(self) -> Any:
        return self.replies.get("transform_model")

    @hookimpl
    def on_tool_call(self) -> Any:
        return self.replies.get("on_tool_call")

    @hookimpl
    def on_tool_result(self) -> Any:
        return self.replies.get("on_tool_result")

    @hookimpl
    def on_approval(self) -> Any:
        return self.replies.get("on_approval")

    @hookimpl
    def rewrite_approval(self) -> Any:
        return self.replies.get("rewrite_approval")


class Witness:
    """Changes nothing and remembers the value each hook showed it."""

    name = "Witness"

    def __init__(self) -> None:
        self.shown: dict[str, Any] = {}

    @hookimpl
    def on_user_message(self, message: Any) -> None:
        self.shown["on_user_message"] = message

    @hookimpl
    def on_prompt(self, prompt: Any) -> None:
        self.shown["on_prompt"] = prompt

    @hookimpl
    def rewrite_prompt(self, composed: Any) -> None:
        self.shown["rewrite_prompt"] = composed

    @hookimpl
    def rewrite_compaction(self, text: Any) -> None:
        self.shown["rewrite_compaction"] = text

    @hookimpl
    def rebuild_model(self, request: Any) -> None:
        self.shown["rebuild_model"] = request

    @hookimpl
    def transform_model(self, request: Any) -> None:
        self.shown["transform_model"] = request

    @hookimpl
    def on_tool_call(self, call: Any) -> None:
        self.shown["on_tool_call"] = call

    @hookimpl
    def on_tool_result(self, result: Any) -> None:
        self.shown["on_tool_result"] = result

    @hookimpl
    def on_approval(self, facts: Any) -> None:
        self.shown["on_approval"] = facts

    @hookimpl
    def rewrite_approval(self, facts: Any, require_prompt: Any) -> None:
        self.shown["rewrite_approval"] = (facts, require_prompt)


class ReplyingHost:
    """A host from ``build_host`` with the two plugins above behind the built-in ones."""

    def __init__(self) -> None:
        self.plugin = Replying()
        self.witness = Witness()
        found = [
            FoundPlugin(name=REPLYING, plugin=self.plugin),
            FoundPlugin(name=WITNESS, plugin=self.witness),
        ]
        self.host: Host = asyncio.run(build_host(HostOptions(), found))

    def run(
        self, replies: dict[str, Any], call: Callable[[Host], Coroutine[Any, Any, Any]]
    ) -> tuple[Any, tuple[Note, ...]]:
        """Make one call while the plugin replies so; return its value and the notes it made."""
        before = len(self.host.notes.all)
        self.plugin.replies = replies
        self.witness.shown = {}
        value = asyncio.run(call(self.host))
        return value, self.host.notes.all[before:]


def judge(accept: Callable[[Any, Any, Any], Any], previous: Any, replacement: Any, facts: Any = None) -> Any:
    """Return what the contract accepts, or one of the two words for a refusal."""
    try:
        return accept(previous, replacement, facts)
    except JunkReturned:
        return JUNK
    except ContractRefused:
        return REFUSED
