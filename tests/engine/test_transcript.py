"""The live transcript: committed first, then acted on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crystal.engine.transcript import Transcript, describe_image, open_calls, without_images
from crystal.types.items import (
    AssistantItem,
    ImageRef,
    ModelItem,
    SystemItem,
    ToolCallItem,
    ToolResultItem,
    UserItem,
)

IMAGE = ImageRef(digest="ab" * 32, media_type="image/png", size=70, name="dot.png")


class Disk:
    """An item store in memory that can be full."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, int, tuple[ModelItem, ...]]] = []
        self.is_full = False

    def append(self, session_id: str, turn: int, items: Sequence[ModelItem]) -> None:
        if self.is_full:
            raise OSError("no space left")
        self.stored.append((session_id, turn, tuple(items)))


def user(text: str) -> UserItem:
    return UserItem(id=f"user_{text}", text=text)


def call(call_id: str) -> ToolCallItem:
    return ToolCallItem(id=f"item_{call_id}", call_id=call_id, name="read", arguments="{}")


def result(call_id: str) -> ToolResultItem:
    return ToolResultItem(id=f"result_{call_id}", call_id=call_id, name="read", text="done")


def test_items_are_committed_under_the_session_and_its_turn() -> None:
    disk = Disk()
    transcript = Transcript(disk, "s1", turn=2)
    transcript.turn += 1
    transcript.add(user("a"), call("1"))
    assert disk.stored == [("s1", 3, (user("a"), call("1")))]
    assert transcript.items == (user("a"), call("1"))


def test_what_could_not_be_committed_is_not_in_the_transcript() -> None:
    disk = Disk()
    transcript = Transcript(disk, "s1")
    transcript.add(user("a"))
    disk.is_full = True
    with pytest.raises(OSError, match="no space"):
        transcript.add(call("1"))
    assert transcript.items == (user("a"),)
    assert not transcript.is_taken("1")


def test_the_system_message_stands_first_and_is_replaced_not_stored_among_the_items() -> None:
    disk = Disk()
    transcript = Transcript(disk, "s1", [user("a")])
    transcript.set_system(SystemItem(id="system", text="one"))
    transcript.set_system(SystemItem(id="system", text="two"))
    assert transcript.items == (SystemItem(id="system", text="two"), user("a"))
    assert disk.stored == []


def test_call_ids_of_the_loaded_and_the_new_items_are_taken() -> None:
    transcript = Transcript(Disk(), "s1", [call("1"), result("1")])
    transcript.add(call("2"))
    assert transcript.is_taken("1")
    assert transcript.is_taken("2")
    assert not transcript.is_taken("3")


def test_open_calls_are_those_without_a_result_in_order() -> None:
    transcript = Transcript(Disk(), "s1", [call("1"), result("1"), user("b")])
    transcript.add(call("2"), call("3"), call("4"), result("3"))
    assert [made.call_id for made in transcript.open_calls()] == ["2", "4"]
    assert open_calls(()) == ()


def test_a_text_only_model_is_told_name_type_and_size_of_each_image() -> None:
    shown = without_images(UserItem(id="u", text="Look.", images=(IMAGE, IMAGE)))
    assert isinstance(shown, UserItem)
    assert shown.images == ()
    assert shown.text == f"Look.\n{describe_image(IMAGE)}\n{describe_image(IMAGE)}"
    for fact in ("dot.png", "image/png", "70 bytes"):
        assert fact in describe_image(IMAGE)


def test_an_image_without_words_or_name_still_stands_there() -> None:
    bare = ImageRef(digest="cd" * 32, media_type="image/gif", size=3)
    shown = without_images(ToolResultItem(id="r", call_id="1", name="read", text="", images=(bare,)))
    assert isinstance(shown, ToolResultItem)
    assert shown.text == describe_image(bare)
    assert bare.digest[:12] in shown.text


@pytest.mark.parametrize("item", [user("a"), AssistantItem(id="t", text="b"), call("1"), result("1")])
def test_items_without_images_are_the_same_objects(item: ModelItem) -> None:
    assert without_images(item) is item
