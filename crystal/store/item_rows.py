"""Transcript items as rows of the store and back, without loss. Pure; knows no database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from crystal.types._readonly import read_only, thaw
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

ItemRow: TypeAlias = tuple[str, str, str | None, str | None, str, str | None]
"""``kind, id, call_id, name, text, extra``; ``extra`` is a JSON object of what the columns do not hold."""

_encode = json.JSONEncoder(separators=(",", ":"), default=thaw).encode


class UnreadableRow(ValueError):
    """A row is of a kind this release does not know, or damaged."""


def clean_text(text: str) -> str:
    """Return ``text`` as it can be stored: halves of surrogate pairs are joined, lone ones become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def row_of(item: ModelItem) -> ItemRow:
    """Return the row of an item."""
    match item:
        case AssistantItem():
            return (
                "assistant",
                clean_text(item.id),
                None,
                None,
                clean_text(item.text),
                _extra(state=item.state),
            )
        case ToolCallItem():
            call, name, arguments = (
                clean_text(item.call_id),
                clean_text(item.name),
                clean_text(item.arguments),
            )
            return "call", clean_text(item.id), call, name, arguments, _extra(state=item.state)
        case ToolResultItem():
            extra = _extra(images=item.images, failed=item.failed)
            call, name, text = clean_text(item.call_id), clean_text(item.name), clean_text(item.text)
            return "result", clean_text(item.id), call, name, text, extra
        case ReasoningItem():
            return (
                "reasoning",
                clean_text(item.id),
                None,
                None,
                clean_text(item.text),
                _extra(state=item.state),
            )
        case UserItem():
            return "user", clean_text(item.id), None, None, clean_text(item.text), _extra(images=item.images)
        case SystemItem():
            return "system", clean_text(item.id), None, None, clean_text(item.text), None


def item_of(row: ItemRow) -> ModelItem:
    """Return the item of a row.

    :raises UnreadableRow: when the row is of an unknown kind or damaged.
    """
    kind, identity, call_id, name, text, extra = row
    if not isinstance(text, str) or not isinstance(identity, str):
        raise UnreadableRow(f"an item of kind {kind} is damaged")
    try:
        more: dict[str, Any] = json.loads(extra) if extra else {}
        match kind:
            case "assistant":
                return AssistantItem(id=identity, text=text, state=_state(more))
            case "call":
                return ToolCallItem(
                    id=identity,
                    call_id=_given(call_id),
                    name=_given(name),
                    arguments=text,
                    state=_state(more),
                )
            case "result":
                return ToolResultItem(
                    id=identity,
                    call_id=_given(call_id),
                    name=_given(name),
                    text=text,
                    images=_images(more),
                    failed=more.get("failed", False),
                )
            case "reasoning":
                return ReasoningItem(id=identity, text=text, state=_state(more))
            case "user":
                return UserItem(id=identity, text=text, images=_images(more))
            case "system":
                return SystemItem(id=identity, text=text)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableRow(f"an item of kind {kind} is damaged") from error
    raise UnreadableRow(f"items of kind {kind} are not known to this release")


def images_of(item: ModelItem) -> tuple[ImageRef, ...]:
    """Return the images an item refers to."""
    return item.images if isinstance(item, UserItem | ToolResultItem) else ()


def _extra(
    *, state: Mapping[str, Any] | None = None, images: tuple[ImageRef, ...] = (), failed: bool = False
) -> str | None:
    if state is None and not images and not failed:
        return None
    extra: dict[str, Any] = {}
    if state is not None:
        extra["state"] = state
    if images:
        extra["images"] = [[image.digest, image.media_type, image.size, image.name] for image in images]
    if failed:
        extra["failed"] = True
    return _encode(extra)


def _state(more: dict[str, Any]) -> Mapping[str, Any] | None:
    state = more.get("state")
    if state is not None and not isinstance(state, dict):
        raise TypeError
    return None if state is None else read_only(state)


def _images(more: dict[str, Any]) -> tuple[ImageRef, ...]:
    return tuple(
        ImageRef(digest=digest, media_type=media_type, size=size, name=name)
        for digest, media_type, size, name in more.get("images", ())
    )


def _given(value: str | None) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
