"""What makes a value a well-formed transcript item; shared by the contracts that take lists of items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crystal.hookspecs._kinds import ContractRefused
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

ITEM_TYPES = (SystemItem, UserItem, AssistantItem, ReasoningItem, ToolCallItem, ToolResultItem)


def read_items(replacement: object) -> tuple[ModelItem, ...]:
    """Return the replacement as a tuple of well-formed items.

    :raises ContractRefused: naming the first entry that is none.
    """
    if isinstance(replacement, (str, bytes, Mapping)) or not isinstance(replacement, Iterable):
        raise ContractRefused(f"is {type(replacement).__name__}, not a list of items")
    items = tuple(replacement)
    for position, item in enumerate(items):
        _check_item(position, item)
    return items


def images_of(item: ModelItem) -> tuple[ImageRef, ...]:
    """Return the image references of an item; only user messages and tool results have any."""
    return item.images if isinstance(item, (UserItem, ToolResultItem)) else ()


def _check_item(position: int, item: object) -> None:
    if type(item) not in ITEM_TYPES:
        raise ContractRefused(f"holds {type(item).__name__} at position {position}, which is not an item")
    for name, kind in item.__field_annotations__.items():  # type: ignore[attr-defined]
        value = getattr(item, name)
        if kind == "str" and type(value) is not str:
            raise ContractRefused(
                f"has {type(value).__name__} as {name} of the item at position {position}, not a text"
            )
        if kind == "bool" and type(value) is not bool:
            raise ContractRefused(
                f"has {type(value).__name__} as {name} of the item at position {position}, not a bool"
            )
    if isinstance(item, (UserItem, ToolResultItem)) and not (
        isinstance(item.images, tuple) and all(type(image) is ImageRef for image in item.images)
    ):
        raise ContractRefused(f"has something else than image references as images of the item at position {position}")
    if not item.id:  # type: ignore[attr-defined]
        raise ContractRefused(f"has no id on the item at position {position}")
