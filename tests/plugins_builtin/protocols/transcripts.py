"""Transcripts for tests of encoders: short makers, and a strategy for anything that a session may hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

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

PNG = ImageRef(digest="ab" * 32, media_type="image/png", size=3, name="shot.png")


def load_image(image: ImageRef) -> bytes:
    return b"\x01\x02\x03"


def system(text: str = "Be brief.") -> SystemItem:
    return SystemItem(id="system", text=text)


def user(text: str, *images: ImageRef) -> UserItem:
    return UserItem(id="user", text=text, images=images)


def says(text: str) -> AssistantItem:
    return AssistantItem(id="assistant", text=text)


def thinks(text: str, state: dict[str, Any] | None = None) -> ReasoningItem:
    return ReasoningItem(id="reasoning", text=text, state=state)


def calls(call_id: str, arguments: str = "{}", name: str = "read", state: dict[str, Any] | None = None) -> ToolCallItem:
    return ToolCallItem(id="call", call_id=call_id, name=name, arguments=arguments, state=state)


def result(call_id: str, text: str = "ok", *images: ImageRef, failed: bool = False) -> ToolResultItem:
    return ToolResultItem(id="result", call_id=call_id, name="read", text=text, images=images, failed=failed)


_TEXT = st.sampled_from(["", " ", "\n", "text", "tail  ", "\ud83d", "é\u2028"])
_ID = st.sampled_from(["c1", "c2", "c3", "x" * 60, "fc_1|a"])
_IMAGES = st.sampled_from([(), (PNG,), (PNG, PNG)])

ITEMS: st.SearchStrategy[ModelItem] = st.one_of(
    st.builds(system, _TEXT),
    st.builds(lambda text, images: user(text, *images), _TEXT, _IMAGES),
    st.builds(says, _TEXT),
    st.builds(thinks, _TEXT),
    st.builds(calls, _ID, st.sampled_from(["", "{}", '{"a":1}', "{", "[1]", '"s"', "{}{}", "NaN", '{"a":NaN}'])),
    st.builds(
        lambda call_id, text, images, failed: result(call_id, text, *images, failed=failed),
        _ID,
        _TEXT,
        _IMAGES,
        st.booleans(),
    ),
)

Edit = Callable[[list[ModelItem]], list[ModelItem]]
