from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import strategies as st

from crystal.store.item_rows import ItemRow, UnreadableRow, clean_text, item_of, row_of
from crystal.types._readonly import ReadOnlyDict, ReadOnlyError
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

texts = st.text(max_size=30)
states = st.none() | st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)
images = st.lists(
    st.builds(ImageRef, digest=texts, media_type=texts, size=st.integers(min_value=0, max_value=2**60), name=texts),
    max_size=3,
    unique_by=lambda image: image.digest,
).map(tuple)
items: st.SearchStrategy[ModelItem] = st.one_of(
    st.builds(SystemItem, id=texts, text=texts),
    st.builds(UserItem, id=texts, text=texts, images=images),
    st.builds(AssistantItem, id=texts, text=texts, state=states),
    st.builds(ReasoningItem, id=texts, text=texts, state=states),
    st.builds(ToolCallItem, id=texts, call_id=texts, name=texts, arguments=texts, state=states),
    st.builds(ToolResultItem, id=texts, call_id=texts, name=texts, text=texts, images=images, failed=st.booleans()),
)
"""Every kind of item; the store's own round trip is tested with the same strategy."""


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain", "plain"),
        ("caf\u00e9 \U0001f600 \x00", "caf\u00e9 \U0001f600 \x00"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("joined \ud83d\ude00", "joined \U0001f600"),
    ],
)
def test_halves_of_characters_are_joined_or_marked(text: str, stored: str) -> None:
    assert clean_text(text) == stored


def test_every_text_of_an_item_is_made_storable() -> None:
    bad, good = "x\ud800", "x\ufffd"
    for item in (
        SystemItem(id=bad, text=bad),
        UserItem(id=bad, text=bad),
        AssistantItem(id=bad, text=bad, state={"kept exactly": bad}),
        ReasoningItem(id=bad, text=bad),
        ToolCallItem(id=bad, call_id=bad, name=bad, arguments=bad),
        ToolResultItem(id=bad, call_id=bad, name=bad, text=bad),
    ):
        row = row_of(item)
        assert "".join(part or "" for part in row).isprintable()
        assert {part for part in row[1:5] if part} == {good}


def test_state_comes_back_read_only_whatever_mapping_it_was() -> None:
    state = MappingProxyType({"sig": "abc", "deep": MappingProxyType({"list": (1, 2)})})
    back = item_of(row_of(ReasoningItem(id="1", text="", state=state)))
    assert isinstance(back, ReasoningItem)
    assert back.state == {"sig": "abc", "deep": {"list": [1, 2]}}
    assert isinstance(back.state, ReadOnlyDict)
    with pytest.raises(ReadOnlyError):
        back.state["deep"]["list"].append(3)


def test_an_empty_state_is_not_the_same_as_none() -> None:
    empty, none = AssistantItem(id="1", text="", state={}), AssistantItem(id="1", text="")
    assert (item_of(row_of(empty)), item_of(row_of(none))) == (empty, none)


def test_an_ordinary_item_needs_no_json() -> None:
    assert row_of(UserItem(id="1", text="hi")) == ("user", "1", None, None, "hi", None)
    assert row_of(ToolResultItem(id="2", call_id="c", name="read", text="x")) == ("result", "2", "c", "read", "x", None)


_EXTRAS: list[Any] = [
    "{",
    "[]",
    "5",
    json.dumps({"state": "x"}),
    json.dumps({"images": [["a", "b"]]}),
    json.dumps({"images": 5}),
]


@pytest.mark.parametrize(
    "row",
    [
        ("video", "1", None, None, "x", None),
        ("call", "1", None, "read", "{}", None),
        ("result", "1", "c", None, "x", None),
        ("user", "1", None, None, b"\x00\xff", None),
        ("user", None, None, None, "x", None),
        *(("user" if "images" in extra else "assistant", "1", None, None, "x", extra) for extra in _EXTRAS),
    ],
)
def test_a_row_that_cannot_be_read_says_so(row: ItemRow) -> None:
    with pytest.raises(UnreadableRow):
        item_of(row)
