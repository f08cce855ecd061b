"""The live transcript of a session: every item is in the store before anything acts on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Protocol

from crystal.types.items import ImageRef, ModelItem, SystemItem, ToolCallItem, ToolResultItem, UserItem

_WITH_IMAGES = (UserItem, ToolResultItem)
INTERRUPTED = "[This call was interrupted before it had a result. It may have run in part.]"


class ItemStore(Protocol):
    """Where items are committed."""

    def append(self, session_id: str, turn: int, items: Sequence[ModelItem]) -> None:
        """Commit items in one transaction."""


class Transcript:
    """The items of one session in order, the system message first.

    :param items: what the store held, without the system message.
    """

    def __init__(self, store: ItemStore, session_id: str, items: Iterable[ModelItem] = (), turn: int = 0) -> None:
        self._store = store
        self._session_id = session_id
        self._items: list[ModelItem] = list(items)
        self._call_ids = {item.call_id for item in self._items if isinstance(item, ToolCallItem)}
        self._system: SystemItem | None = None
        self._described: dict[str, ModelItem] = {}
        self._has_images = any(map(has_images, self._items))
        self.turn = turn

    def set_system(self, item: SystemItem) -> None:
        """Replace the system message; the store keeps it beside the items."""
        self._system = item

    def add(self, *items: ModelItem) -> None:
        """Commit items to the store and then to the live transcript."""
        self._store.append(self._session_id, self.turn, items)
        self._items.extend(items)
        self._has_images = self._has_images or any(map(has_images, items))
        self._call_ids.update(item.call_id for item in items if isinstance(item, ToolCallItem))

    def is_taken(self, call_id: str) -> bool:
        """Whether a call of this session has that id."""
        return call_id in self._call_ids

    @property
    def items(self) -> tuple[ModelItem, ...]:
        """The items of a request: the system message and everything after it."""
        return (self._system, *self._items) if self._system is not None else tuple(self._items)

    @property
    def text_items(self) -> tuple[ModelItem, ...]:
        """The items of a request to a text-only model: each image as its name, type and size.

        The same object every time for the same item, so that an adapter can keep what it has encoded.
        """
        if not self._has_images:
            return self.items
        return tuple(self._without_images(item) if has_images(item) else item for item in self.items)

    def _without_images(self, item: ModelItem) -> ModelItem:
        if item.id not in self._described:
            self._described[item.id] = without_images(item)
        return self._described[item.id]

    def open_calls(self) -> tuple[ToolCallItem, ...]:
        """Return the calls that have no result yet, in order."""
        return open_calls(self._items)


def open_calls(items: Sequence[ModelItem]) -> tuple[ToolCallItem, ...]:
    """Return the calls without a result, in order."""
    answered = {item.call_id for item in items if isinstance(item, ToolResultItem)}
    return tuple(item for item in items if isinstance(item, ToolCallItem) and item.call_id not in answered)


def has_images(item: ModelItem) -> bool:
    """Whether an item carries images; only user messages and tool results do."""
    return item.__class__ in _WITH_IMAGES and bool(item.images)


def without_images(item: ModelItem) -> ModelItem:
    """Return the item as a text-only model is shown it: each image as its name, type and size."""
    if not isinstance(item, (UserItem, ToolResultItem)) or not item.images:
        return item
    lines = [item.text, *(describe_image(image) for image in item.images)]
    return dataclasses.replace(item, text="\n".join(line for line in lines if line), images=())


def describe_image(image: ImageRef) -> str:
    """Return one line that stands for an image."""
    return f"[Image {image.name or image.digest[:12]}, {image.media_type}, {image.size} bytes; not shown to this model]"
