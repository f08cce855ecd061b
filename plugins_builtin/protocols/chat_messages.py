"""Turns transcript items into chat messages. Pure: the same items give the same bytes.

A round is what one answer of the model said and called, then the results, then what the operator said before
the next answer; rounds do not depend on each other, so a transcript that grows only needs its last round
encoded again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crystal.types._frozen import Frozen
from crystal.types.items import (
    AssistantItem,
    ImageRef,
    ModelItem,
    ReasoningItem,
    SystemItem,
    ToolCallItem,
    ToolResultItem,
    UserItem,
)
from crystal.types.model import ImageLoader

EMPTY_RESULT = "(no output)"
MISSING_RESULT = "Error: this call has no result; it was interrupted."
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
_UNSAFE_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LENGTH = 64
_ANSWER = (AssistantItem, ReasoningItem, ToolCallItem)
_CALL_KEYS = frozenset({"id", "type", "function"})


class MessageDialect(Frozen):
    """How one endpoint wants messages.

    :param state_tag: the key of provider-bound data that this endpoint gave and gets back.
    :param accepts_images: whether images are sent; otherwise their name, type and size stand for them.
    :param replays_reasoning: whether every assistant message carries ``reasoning_content``.
    """

    state_tag: str
    accepts_images: bool = False
    replays_reasoning: bool = False


def system_message(items: Iterable[ModelItem]) -> dict[str, Any] | None:
    """Return the one system message: some chat templates insist that it is first and alone."""
    texts = [item.text for item in items if isinstance(item, SystemItem) and item.text.strip()]
    return {"role": "system", "content": "\n\n".join(texts)} if texts else None


def split_rounds(items: Sequence[ModelItem]) -> list[tuple[ModelItem, ...]]:
    """Cut items, system items left out, before every answer that says or calls something.

    An answer without text and calls has no message of its own; it stays in the round before it. So does one that
    nothing sendable separates from the answer before it: two answers in a row are one message.
    """
    starts = [0]
    position = 0
    is_separated = False
    while position < len(items):
        end = _answer_end(items, position)
        answer = items[position:end]
        if is_separated and any(map(_speaks, answer)):
            starts.append(position)
            is_separated = False
        is_separated = is_separated or any(isinstance(item, ToolCallItem) for item in answer)
        if end == position:
            is_separated = is_separated or _is_heard(items[position])
            end += 1
        position = end
    return [
        tuple(items[start:end]) for start, end in zip(starts, [*starts[1:], len(items)], strict=True) if end > start
    ]


def opens_round(items: Sequence[ModelItem], position: int) -> bool:
    """Whether :func:`split_rounds`, having cut at ``position`` once, still would with other items after it."""
    return position == 0 or any(map(_speaks, items[position : _answer_end(items, position)]))


def round_messages(
    items: Sequence[ModelItem], dialect: MessageDialect, load_image: ImageLoader, *, is_last: bool = False
) -> list[dict[str, Any]]:
    """Return the messages of one round.

    Every call gets exactly one tool message, directly after the answer and in call order; images of results
    and the operator's texts follow in one user message. A result without its call is left out.

    :param is_last: the request ends with this round; text that ends it loses its trailing white space, which
        some providers refuse.
    """
    calls = [item for item in items if isinstance(item, ToolCallItem)]
    assistant = _assistant_message(items, calls, dialect)
    tools, parts = _tool_messages(items, calls, dialect, load_image)
    for item in items:
        if isinstance(item, UserItem):
            if item.text.strip():
                parts.append({"type": "text", "text": item.text})
            parts += [_image_part(image, dialect, load_image) for image in item.images]
    messages = [assistant] if assistant else []
    messages += tools
    if parts:
        messages.append({"role": "user", "content": _content(parts)})
    elif is_last and assistant and not tools:
        assistant["content"] = assistant["content"].rstrip()
    return messages


def safe_call_id(call_id: str) -> str:
    """Return an id that every provider takes: the same for a call and its result, and for every request."""
    if _SAFE_ID.match(call_id):
        return call_id
    # Few sessions hold a foreign id, and the import takes a millisecond.
    import hashlib

    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def safe_tool_name(name: str) -> str:
    """Return a name that a provider takes back, for a model that called something impossible."""
    return _UNSAFE_NAME.sub("_", name)[:_NAME_LENGTH] or "unknown"


def sendable_arguments(text: str) -> str:
    """Return argument text that a provider takes back: as it came when it is a JSON object, else ``{}``."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return "{}"
    return text if isinstance(value, dict) else "{}"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _answer_end(items: Sequence[ModelItem], position: int) -> int:
    """Return where the run of assistant items that begins at ``position`` ends."""
    while position < len(items) and isinstance(items[position], _ANSWER):
        position += 1
    return position


def _speaks(item: ModelItem) -> bool:
    return isinstance(item, ToolCallItem) or (isinstance(item, AssistantItem) and bool(item.text.strip()))


def _is_heard(item: ModelItem) -> bool:
    """Whether an item makes a user message."""
    return isinstance(item, UserItem) and bool(item.text.strip() or item.images)


def _assistant_message(
    items: Sequence[ModelItem], calls: list[ToolCallItem], dialect: MessageDialect
) -> dict[str, Any] | None:
    texts = [item.text for item in items if isinstance(item, AssistantItem) and item.text.strip()]
    if not texts and not calls:
        return None
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) if texts else None}
    reasoning = [item for item in items if isinstance(item, ReasoningItem)]
    if dialect.replays_reasoning:
        message["reasoning_content"] = "".join(item.text for item in reasoning)
    details = [detail for item in reasoning for detail in _state(item, dialect).get("reasoning_details", ())]
    if details:
        message["reasoning_details"] = details
    if calls:
        message["tool_calls"] = [
            _call_entry(call, call_id, dialect) for call, call_id in zip(calls, _sent_ids(calls), strict=True)
        ]
    return message


def _sent_ids(calls: list[ToolCallItem]) -> list[str]:
    """Return the id of each call of one answer as it is sent; a repeated one is told apart by its place."""
    ids: list[str] = []
    for call in calls:
        call_id = safe_call_id(call.call_id)
        ids.append(call_id if call_id not in ids else safe_call_id(f"{call.call_id} again at {len(ids)}"))
    return ids


def _call_entry(call: ToolCallItem, call_id: str, dialect: MessageDialect) -> dict[str, Any]:
    extras = {key: value for key, value in _state(call, dialect).items() if key not in _CALL_KEYS}
    function = {"name": safe_tool_name(call.name), "arguments": sendable_arguments(call.arguments)}
    return {"id": call_id, "type": "function", "function": function, **extras}


def _state(item: ReasoningItem | ToolCallItem, dialect: MessageDialect) -> Mapping[str, Any]:
    state = item.state.get(dialect.state_tag) if item.state else None
    return state if isinstance(state, Mapping) else {}


def _tool_messages(
    items: Sequence[ModelItem], calls: list[ToolCallItem], dialect: MessageDialect, load_image: ImageLoader
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the tool messages in call order, and the parts that show the images of the results."""
    waiting: dict[str, list[ToolResultItem]] = {}
    for item in items:
        if isinstance(item, ToolResultItem):
            waiting.setdefault(item.call_id, []).append(item)
    messages = []
    parts: list[dict[str, Any]] = []
    for call, call_id in zip(calls, _sent_ids(calls), strict=True):
        results = waiting.get(call.call_id)
        result = results.pop(0) if results else None
        content = _result_text(result) if result else MISSING_RESULT
        messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
        if result and result.images:
            parts.append({"type": "text", "text": f"Images from the result of {result.name}:"})
            parts += [_image_part(image, dialect, load_image) for image in result.images]
    return messages, parts


def _result_text(result: ToolResultItem) -> str:
    text = result.text if result.text.strip() else EMPTY_RESULT
    return f"Error: {text}" if result.failed and not text.startswith("Error: ") else text


def _image_part(image: ImageRef, dialect: MessageDialect, load_image: ImageLoader) -> dict[str, Any]:
    if not dialect.accepts_images:
        name = image.name or image.digest[:12]
        return {"type": "text", "text": f"[image {name}, {image.media_type}, {image.size} bytes: not shown]"}
    data = base64.b64encode(load_image(image)).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return plain text when there is nothing but text: every server takes that, not every one takes
    parts.
    """
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts
