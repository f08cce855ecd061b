"""One typed function for each hook: what the engine calls. Nothing else names a hook in a string."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from pathlib import Path

from crystal.hookspecs._items import images_of
from crystal.host.dispatch import Collected, Dispatcher, Folded
from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalFacts
from crystal.types.environment import Environment, ModelClients, SessionModels, StatusUpdates
from crystal.types.model import ModelRequest, ModelResponse
from crystal.types.session import PromptFacts, SessionFacts, TurnFacts, UserMessage
from crystal.types.tools import ToolCall, ToolOutput


class RequestRebuilt(Frozen):
    """A request after the model hooks; ``raw_plugins`` changed it by raw hooks."""

    request: ModelRequest
    raw_plugins: tuple[str, ...]


class ApprovalHeard(Frozen):
    """The facts after the approval hooks.

    :param failed_guards: plugins whose guard failed; the call then requires the operator, whatever other hooks say.
    :param changes: one line for each plugin that changed the facts.
    """

    facts: ApprovalFacts
    failed_guards: tuple[str, ...]
    changes: tuple[str, ...]


class Hooks:
    """The hooks of one host, ready to be called. Those of every round and call ask first whether anybody listens."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def contributions(self, hook: str) -> tuple[Collected, ...]:
        """Gather the entries of one ``contribute_*`` hook."""
        return await self._dispatcher.collect(hook)

    async def attach(self, environment: Environment) -> None:
        """Run :func:`crystal.hookspecs.lifecycle.attach`."""
        await self._dispatcher.notify("attach", environment)

    async def attach_session(self, models: SessionModels) -> None:
        """Run :func:`crystal.hookspecs.lifecycle.attach_session`."""
        await self._dispatcher.notify("attach_session", models)

    def plugins_with(self, hook: str) -> tuple[str, ...]:
        """Return the plugins that implement an attach hook whose arguments are each plugin's own."""
        return self._dispatcher.implementers(hook)

    async def attach_clients(self, plugin: str, clients: ModelClients) -> None:
        """Run :func:`crystal.hookspecs.lifecycle.attach_clients` of one plugin."""
        await self._dispatcher.notify_one("attach_clients", plugin, clients)

    async def attach_data_directories(self, plugin: str, everywhere: Path, project: Path) -> None:
        """Run :func:`crystal.hookspecs.lifecycle.attach_data_directories` of one plugin."""
        await self._dispatcher.notify_one("attach_data_directories", plugin, everywhere, project)

    async def attach_status(self, plugin: str, updates: StatusUpdates) -> bool:
        """Run :func:`crystal.hookspecs.lifecycle.attach_status` of one plugin; return whether it did not fail."""
        return await self._dispatcher.notify_one("attach_status", plugin, updates)

    async def on_session_started(self, session: SessionFacts) -> None:
        """Run :func:`crystal.hookspecs.lifecycle.on_session_started`."""
        await self._dispatcher.notify("on_session_started", session)

    async def on_session_ended(self, session: SessionFacts) -> None:
        """Run :func:`crystal.hookspecs.lifecycle.on_session_ended`."""
        await self._dispatcher.notify("on_session_ended", session)

    async def compose_prompt(self, prompt: PromptFacts) -> str:
        """Run ``on_prompt``, which appends, and then ``rewrite_prompt``."""
        appended = await self._dispatcher.append("on_prompt", prompt)
        composed = "\n\n".join((prompt.text, *appended)) if appended else prompt.text
        folded = await self._dispatcher.fold("rewrite_prompt", (prompt, composed))
        text: str = folded.value
        return text

    async def on_user_message(self, message: UserMessage) -> UserMessage:
        """Run :func:`crystal.hookspecs.turn.on_user_message`."""
        if not self._dispatcher.has("on_user_message"):
            return message
        folded = await self._fold("on_user_message", message)
        accepted: UserMessage = folded.value
        return accepted

    async def on_turn_started(self, turn: TurnFacts) -> None:
        """Run :func:`crystal.hookspecs.turn.on_turn_started`."""
        if self._dispatcher.has("on_turn_started"):
            await self._dispatcher.notify("on_turn_started", turn)

    async def on_turn_finished(self, turn: TurnFacts) -> None:
        """Run :func:`crystal.hookspecs.turn.on_turn_finished`."""
        if self._dispatcher.has("on_turn_finished"):
            await self._dispatcher.notify("on_turn_finished", turn)

    async def prepare_request(self, request: ModelRequest) -> RequestRebuilt:
        """Run every ``rebuild_model``, then every ``transform_model``."""
        rebuilt = Folded(value=request)
        if self._dispatcher.has("rebuild_model"):
            images = frozenset(image for item in request.items for image in images_of(item))
            rebuilt = await self._dispatcher.fold("rebuild_model", (request,), images)
        transformed = await self._fold("transform_model", rebuilt.value)
        return RequestRebuilt(request=transformed.value, raw_plugins=rebuilt.changed_by)

    async def on_model_response(self, response: ModelResponse) -> None:
        """Run :func:`crystal.hookspecs.model.on_model_response`."""
        if self._dispatcher.has("on_model_response"):
            await self._dispatcher.notify("on_model_response", response)

    async def on_tool_call(self, call: ToolCall, catalog: Collection[str]) -> ToolCall:
        """Run :func:`crystal.hookspecs.tool.on_tool_call`; ``catalog`` holds the names a new call may take."""
        if not self._dispatcher.has("on_tool_call"):
            return call
        folded = await self._fold("on_tool_call", call, facts=catalog)
        accepted: ToolCall = folded.value
        return accepted

    async def on_tool_result(self, call: ToolCall, result: ToolOutput, accepts_images: bool) -> ToolOutput:
        """Run :func:`crystal.hookspecs.tool.on_tool_result`."""
        if not self._dispatcher.has("on_tool_result"):
            return result
        folded = await self._fold("on_tool_result", call, result, facts=accepts_images)
        accepted: ToolOutput = folded.value
        return accepted

    async def on_approval(self, call: ToolCall, facts: ApprovalFacts) -> ApprovalHeard:
        """Run every ``on_approval``, then every ``rewrite_approval``."""
        advised = await self._fold("on_approval", call, facts)
        so_far = _with_requirement(advised.value)
        rewritten = await self._fold("rewrite_approval", call, so_far, so_far.require_prompt)
        return ApprovalHeard(
            facts=rewritten.value,
            failed_guards=(*advised.guard_failed, *rewritten.guard_failed),
            changes=(
                *(f"{plugin}: on_approval" for plugin in advised.changed_by),
                *(f"{plugin}: rewrite_approval" for plugin in rewritten.changed_by),
            ),
        )

    async def _fold(self, hook: str, *arguments: object, facts: object = None) -> Folded:
        return await self._dispatcher.fold(hook, arguments, facts)


def _with_requirement(facts: ApprovalFacts) -> ApprovalFacts:
    """Say the prompt requirement on the classification too: a raw hook that replaces one field of it keeps the rest."""
    required = facts.require_prompt or facts.classification.require_prompt
    classification = facts.classification
    if required != classification.require_prompt:
        classification = dataclasses.replace(classification, require_prompt=required)
    return dataclasses.replace(facts, classification=classification, require_prompt=required)
