"""Generated requests, and generated replacements of their items: what plugins might return, right and wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from crystal.types._readonly import read_only
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
from crystal.types.model import ModelRequest, Purpose

KNOWN_IMAGES = tuple(ImageRef(digest=digit * 64, media_type="image/png", size=10) for digit in "123")
FOREIGN_IMAGE = ImageRef(digest="f" * 64, media_type="image/png", size=10)
RETYPED_IMAGE = dataclasses.replace(KNOWN_IMAGES[0], media_type="image/gif")
STATES = (None, read_only({"openai": "s1"}), read_only({"gemini": {"signature": "s2"}}))

texts = st.sampled_from(("", "a", "b", " ", "naïve ☃", "long " * 20))
states = st.sampled_from(STATES)


class NotQuiteUser(UserItem):
    """A subclass, which is not one of the six kinds."""


JUNK_REPLACEMENTS = (7, 1.5, True, "text", b"bytes", {"items": []}, object(), Purpose.WORK)
JUNK_ENTRIES = (None, "text", 7, {}, (), FOREIGN_IMAGE, NotQuiteUser(id="junk", text="x"))
JUNK_FIELDS = (None, 7, b"x", ["text"], object())


def image_lists(accepts_images: bool) -> st.SearchStrategy[tuple[ImageRef, ...]]:
    """Image references that an item of a request carries; none when the request carries none."""
    if not accepts_images:
        return st.just(())
    return st.lists(st.sampled_from(KNOWN_IMAGES), max_size=3).map(tuple)


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    """A request of up to seven items with ids of their own; results answer calls that stand before them."""
    accepts_images = draw(st.booleans())
    items: list[ModelItem] = []
    calls: list[ToolCallItem] = []
    for number in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(KINDS))
        if kind is ToolResultItem and not calls:
            kind = ToolCallItem
        item = _item(draw, kind, f"i{number}", f"c{number}", accepts_images)
        if isinstance(item, ToolCallItem):
            calls.append(item)
        if isinstance(item, ToolResultItem):
            answered = draw(st.sampled_from(calls))
            item = dataclasses.replace(item, call_id=answered.call_id, name=answered.name)
        items.append(item)
    return ModelRequest(purpose=draw(st.sampled_from(Purpose)), items=tuple(items), accepts_images=accepts_images)


KINDS = (SystemItem, UserItem, AssistantItem, ReasoningItem, ToolCallItem, ToolResultItem)


def _item(draw: st.DrawFn, kind: type, identity: str, call_id: str, accepts_images: bool) -> ModelItem:
    images = image_lists(accepts_images)
    if kind is UserItem:
        return UserItem(id=identity, text=draw(texts), images=draw(images))
    if kind is AssistantItem:
        return AssistantItem(id=identity, text=draw(texts), state=draw(states))
    if kind is ReasoningItem:
        # Reasoning that is nothing but provider-bound state exists.
        return ReasoningItem(id=identity, text=draw(texts), state=draw(states))
    if kind is ToolCallItem:
        name = draw(st.sampled_from(("read", "bash")))
        return ToolCallItem(id=identity, call_id=call_id, name=name, arguments="{}", state=draw(states))
    if kind is ToolResultItem:
        return ToolResultItem(
            id=identity,
            call_id=call_id,
            name=draw(st.sampled_from(("read", "bash", "made-up"))),
            text=draw(texts),
            images=draw(images),
            failed=draw(st.booleans()),
        )
    return SystemItem(id=identity, text=draw(texts))


Edit = Callable[[st.DrawFn, list[Any], ModelRequest], None]


def _place(draw: st.DrawFn, items: list[Any]) -> int:
    return draw(st.integers(0, len(items) - 1))


def _reorder(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    items[:] = draw(st.permutations(items))


def _drop(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    del items[_place(draw, items)]


def _repeat(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    items.append(items[_place(draw, items)])


def _add(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    number = len(items)
    call_ids = [item.call_id for item in items if isinstance(item, ToolCallItem)]
    new = _item(draw, draw(st.sampled_from(KINDS)), f"new{number}", f"new-call{number}", True)
    if isinstance(new, ToolResultItem):
        new = dataclasses.replace(new, call_id=draw(st.sampled_from([*call_ids, "unknown"])))
    items.insert(draw(st.integers(0, number)), new)


def _change_kind(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    place = _place(draw, items)
    items[place] = _item(draw, draw(st.sampled_from(KINDS)), items[place].id, f"other{place}", request.accepts_images)


def _change_text(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    place = _place(draw, items)
    if hasattr(items[place], "text"):
        items[place] = dataclasses.replace(items[place], text=draw(texts))


def _change_call(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    for place, item in enumerate(items):
        if isinstance(item, ToolCallItem):
            field = draw(st.sampled_from(("name", "arguments")))
            items[place] = dataclasses.replace(item, **{field: draw(st.sampled_from(("read", "other", "{}")))})
            return


def _change_result(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    for place, item in enumerate(items):
        if isinstance(item, ToolResultItem):
            field, value = draw(st.sampled_from((("name", "other"), ("failed", True), ("failed", False))))
            items[place] = dataclasses.replace(item, **{field: value})
            return


def _change_state(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    place = _place(draw, items)
    if hasattr(items[place], "state"):
        items[place] = dataclasses.replace(items[place], state=draw(states))


def _change_images(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    place = _place(draw, items)
    if not hasattr(items[place], "images"):
        return
    images = list(items[place].images)
    match draw(st.sampled_from(("drop", "known", "foreign", "retyped", "turn"))):
        case "drop":
            images = images[1:]
        case "known":
            images.insert(0, draw(st.sampled_from(KNOWN_IMAGES)))
        case "foreign":
            images.append(FOREIGN_IMAGE)
        case "retyped":
            images.append(RETYPED_IMAGE)
        case "turn":
            images.reverse()
    items[place] = dataclasses.replace(items[place], images=tuple(images))


def _change_id(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    place = _place(draw, items)
    items[place] = dataclasses.replace(items[place], id=draw(st.sampled_from(("", "fresh", "i0", "i1"))))


def _spoil_field(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    place = _place(draw, items)
    names = [field.name for field in dataclasses.fields(items[place]) if field.name != "state"]
    items[place] = dataclasses.replace(
        items[place], **{draw(st.sampled_from(names)): draw(st.sampled_from(JUNK_FIELDS))}
    )


def _spoil_entry(draw: st.DrawFn, items: list[Any], request: ModelRequest) -> None:
    items[_place(draw, items)] = draw(st.sampled_from(JUNK_ENTRIES))


_EDITS: tuple[Edit, ...] = (
    _reorder,
    _drop,
    _repeat,
    _add,
    _change_kind,
    _change_text,
    _change_call,
    _change_result,
    _change_state,
    _change_images,
    _change_id,
)
_SPOILS: tuple[Edit, ...] = (_spoil_field, _spoil_entry)


@st.composite
def replacements(draw: st.DrawFn, request: ModelRequest) -> Any:
    """What a model hook might return for ``request``: unchanged, edited up to three times, spoilt, or junk."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from(JUNK_REPLACEMENTS))
    items: list[Any] = list(request.items)
    for _ in range(draw(st.integers(0, 3))):
        edit = draw(st.sampled_from(_EDITS))
        if items or edit is _add:
            edit(draw, items, request)
    if items and draw(st.integers(0, 9)) == 0:
        draw(st.sampled_from(_SPOILS))(draw, items, request)
    return draw(st.sampled_from((list, tuple)))(items)


@st.composite
def allowed_changes(draw: st.DrawFn, request: ModelRequest) -> list[ModelItem]:
    """Exactly what ``transform_model`` may do: other text in three kinds of item, and images dropped."""
    items: list[ModelItem] = []
    for item in request.items:
        if isinstance(item, (UserItem, AssistantItem, ToolResultItem)):
            item = dataclasses.replace(item, text=draw(texts))
        if isinstance(item, (UserItem, ToolResultItem)):
            item = dataclasses.replace(item, images=tuple(image for image in item.images if draw(st.booleans())))
        items.append(item)
    return items


_SHAPES: dict[type, dict[str, type]] = {
    SystemItem: {"id": str, "text": str},
    UserItem: {"id": str, "text": str},
    AssistantItem: {"id": str, "text": str},
    ReasoningItem: {"id": str, "text": str},
    ToolCallItem: {"id": str, "call_id": str, "name": str, "arguments": str},
    ToolResultItem: {"id": str, "call_id": str, "name": str, "text": str, "failed": bool},
}


def is_list_of_items(replacement: object) -> bool:
    """Say whether this is a list of well-formed items of the six kinds, each with an id."""
    return isinstance(replacement, (list, tuple)) and all(_is_item(entry) for entry in replacement)


def _is_item(entry: Any) -> bool:
    shape = _SHAPES.get(type(entry))
    if shape is None or not all(type(getattr(entry, name)) is kind for name, kind in shape.items()):
        return False
    images = getattr(entry, "images", ())
    return bool(entry.id) and type(images) is tuple and all(type(image) is ImageRef for image in images)


def content(item: ModelItem) -> dict[str, Any]:
    """Return an item's fields without its provider-bound state."""
    return {field.name: getattr(item, field.name) for field in dataclasses.fields(item) if field.name != "state"}
