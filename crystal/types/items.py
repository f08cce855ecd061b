"""Transcript items: what was said, in order. One union, matched by class; every item has an id of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from crystal.types._frozen import Frozen

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Media types of images that may enter a session (seed plugins, "Hooks")."""


class Image(Frozen):
    """An image with its bytes, as a tool or a hook returns one. The host stores it and keeps an :class:`ImageRef`."""

    media_type: str
    data: bytes
    name: str = ""


class ImageRef(Frozen):
    """A reference to image bytes that the session holds.

    :param digest: SHA-256 of the bytes, lower-case hex; the name under which they are stored.
    :param size: length in bytes.
    """

    digest: str
    media_type: str
    size: int
    name: str = ""


class SystemItem(Frozen):
    """The system prompt of a request."""

    id: str
    text: str


class UserItem(Frozen):
    """What the operator said, or a text that the host says on the operator's side."""

    id: str
    text: str
    images: tuple[ImageRef, ...] = ()


class AssistantItem(Frozen):
    """Text of the model.

    :param state: provider-bound data that must be sent back unchanged, tagged by protocol; opaque to everyone else.
    """

    id: str
    text: str
    state: Mapping[str, Any] | None = None


class ReasoningItem(Frozen):
    """Reasoning text of the model, with the provider-bound state that a replay needs."""

    id: str
    text: str
    state: Mapping[str, Any] | None = None


class ToolCallItem(Frozen):
    """A tool call as the model made it.

    :param call_id: unique in the session; its result carries the same.
    :param arguments: the JSON text exactly as it came, also when it does not parse.
    """

    id: str
    call_id: str
    name: str
    arguments: str
    state: Mapping[str, Any] | None = None


class ToolResultItem(Frozen):
    """The one result of a tool call. ``name`` is the name of the call it answers."""

    id: str
    call_id: str
    name: str
    text: str
    images: tuple[ImageRef, ...] = ()
    failed: bool = False


ModelItem: TypeAlias = SystemItem | UserItem | AssistantItem | ReasoningItem | ToolCallItem | ToolResultItem
"""Any item of a transcript or of an outbound request."""
