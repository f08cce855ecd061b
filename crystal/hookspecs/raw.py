"""Raw hooks: privileged and low-level. The host refuses only what it cannot represent, and names in a note each plugin
that registers one. They run before (``rebuild_model``) or after (the others) their ordinary counterparts."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from crystal.hookspecs._items import images_of, read_items
from crystal.hookspecs._kinds import ContractRefused, JunkReturned, fold
from crystal.types.approval import ApprovalFacts, Authority, Classification, Risk
from crystal.types.items import (
    AssistantItem,
    ImageRef,
    ModelItem,
    ReasoningItem,
    ToolCallItem,
    ToolResultItem,
)
from crystal.types.model import ModelRequest
from crystal.types.session import CompactionPhase, PromptFacts
from crystal.types.tools import ToolCall


def accept_rebuilt(previous: ModelRequest, replacement: object, session_images: Collection[ImageRef]) -> ModelRequest:
    """Return the request with the new items, made representable.

    Provider-bound state stays only on an item whose id, kind and content are the host's own; a tool result that is new
    takes its name from its call.

    :param session_images: the references of the request before any hook.
    :raises ContractRefused: for a repeated id, empty reasoning, or an image that cannot be carried.
    """
    items = read_items(replacement)
    known = {item.id: item for item in previous.items}
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise ContractRefused(f"repeats the item id {item.id!r}")
        seen.add(item.id)
        # The host's own reasoning may be nothing but provider-bound state; keeping it returns nothing empty.
        if isinstance(item, ReasoningItem) and not item.text and item != known.get(item.id):
            raise ContractRefused(f"has empty reasoning text in item {item.id!r}")
        for image in images_of(item):
            if not previous.accepts_images:
                raise ContractRefused("adds an image to a request that cannot carry images")
            if image not in session_images:
                raise ContractRefused("names an image that is not in the request, or changes its type")
    # A call that this replacement drops still names its result.
    names = {item.call_id: item.name for item in (*previous.items, *items) if isinstance(item, ToolCallItem)}
    return dataclasses.replace(previous, items=tuple(_representable(item, known.get(item.id), names) for item in items))


def _representable(item: ModelItem, original: ModelItem | None, names: dict[str, str]) -> ModelItem:
    if item is original:
        return item
    is_new = type(item) is not type(original)
    if isinstance(item, ToolResultItem):
        return dataclasses.replace(item, name=names.get(item.call_id, item.name)) if is_new else item
    if isinstance(item, (AssistantItem, ReasoningItem, ToolCallItem)):
        own_state = getattr(original, "state", None)
        unchanged = not is_new and item == dataclasses.replace(original, state=item.state)  # type: ignore[type-var]
        return dataclasses.replace(item, state=own_state if unchanged and item.state is not None else None)
    return item


def accept_text(previous: str, replacement: object, facts: object) -> str:
    """Return any text, an empty one included.

    :raises ContractRefused: when the replacement is not a text.
    """
    if not isinstance(replacement, str):
        raise ContractRefused(f"is {type(replacement).__name__}, not a text")
    return replacement


def accept_classification(previous: ApprovalFacts, replacement: object, facts: object) -> ApprovalFacts:
    """Return the facts with the new classification, its prompt requirement included.

    :raises JunkReturned: when it is not a well-formed :class:`Classification`.
    """
    if not isinstance(replacement, Classification):
        raise JunkReturned(f"is {type(replacement).__name__}, not a Classification")
    well_formed = (
        isinstance(replacement.risk, Risk)
        and isinstance(replacement.authority, Authority)
        and bool(replacement.authority)
        and isinstance(replacement.summary, str)
        and type(replacement.require_prompt) is bool
    )
    if not well_formed:
        raise JunkReturned("has fields of the wrong types")
    return dataclasses.replace(previous, classification=replacement, require_prompt=replacement.require_prompt)


@fold(
    "Refused only: a repeated item id, empty reasoning text, an image the request did not hold, an image on a request "
    "that cannot carry images.",
    folds="request",
    accept=accept_rebuilt,
    raw=True,
)
def rebuild_model(request: ModelRequest) -> Sequence[ModelItem] | None:
    """Called before each request and before every ``transform_model``, to rebuild what is sent on this one call.

    May drop, reorder, add or rewrite items of any kind, the system prompt included, and may split a call from its
    result; what the provider accepts is not checked. An item keeps its id; a new one needs an id the request does not
    use; an id that returns on another kind of item counts as new. New reasoning carries no provider state, and
    rewritten text loses it. The stored transcript stays as it was.

    :param request: ``purpose``, ``items`` and ``accepts_images``.
    :return: the items to send, or ``None`` to keep them.
    """


@fold("Any text, an empty one included.", folds="composed", accept=accept_text, raw=True)
def rewrite_prompt(prompt: PromptFacts, composed: str) -> str | None:
    """Called after ``on_prompt``, to replace the composed system text for work, plan, review or compaction.

    Work and plan text becomes the live system message and is stored. May not write the operator's prompt files.

    :param prompt: the mode, and the host's text before anything was appended.
    :param composed: the whole text so far.
    :return: the new text, or ``None`` to keep it.
    """


@fold("Any text, an empty one included.", folds="text", accept=accept_text, raw=True)
def rewrite_compaction(phase: CompactionPhase, text: str) -> str | None:
    """Called after ``on_compaction``, to replace the compaction prompt or the summary body that is stored.

    May not choose which history is folded.

    :return: the new text, or ``None`` to keep it.
    """


@fold(
    "Any classification; the policy still runs. An implementation that raises, returns junk or outlasts its limit "
    "makes this call require the operator.",
    folds="facts",
    accept=accept_classification,
    guard=True,
    raw=True,
    derived={"require_prompt": lambda facts: facts.require_prompt},
)
def rewrite_approval(call: ToolCall, facts: ApprovalFacts, require_prompt: bool) -> Classification | None:
    """Called after every ``on_approval``, to set risk, authority, summary and prompt requirement, also lower ones.

    The policy then decides by the result. The host's class and the rewritten one stand side by side in the approval
    card and in the trace. May not skip the policy, nor waive a requirement that a failed guard made.

    :param call: the call as it would run.
    :param facts: the classification so far and the mode.
    :param require_prompt: whether a prompt is required so far.
    :return: the new classification, or ``None`` to keep it.
    """
