"""What is kept of a transcript never changes what is sent."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.items import ImageRef, ModelItem, SystemItem
from plugins_builtin.protocols.chat_messages import MessageDialect
from plugins_builtin.protocols.chat_rounds import RoundStore
from tests.plugins_builtin.protocols.transcripts import ITEMS, PNG, calls, load_image, result, says, user

DIALECT = MessageDialect(state_tag="tag", accepts_images=True)


def encoded(store: RoundStore, items: list[ModelItem]) -> bytes:
    return b",".join(piece for piece in store.encode(tuple(items), load_image) if piece)


def edited(items: list[ModelItem], how: str, at: int, fresh: ModelItem) -> list[ModelItem]:
    """Do to a transcript what a session, a hook or a compaction may do to it."""
    place = at % (len(items) + 1)
    match how:
        case "append":
            return [*items, fresh]
        case "insert":
            return [*items[:place], fresh, *items[place:]]
        case "drop":
            return [*items[:place], *items[place + 1 :]]
        case "cut":
            return items[:place]
        case "compact":
            return [fresh, *items[place:]]
        case "copy":
            return [dataclasses.replace(item) for item in items]
        case _:
            return [*items[:place], fresh, *items[place + 1 :]]


EDITS = st.tuples(
    st.sampled_from(["append", "append", "append", "replace", "insert", "drop", "cut", "compact", "copy"]),
    st.integers(0, 20),
    ITEMS.filter(lambda item: not isinstance(item, SystemItem)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(EDITS, max_size=25))
def test_a_used_store_gives_the_bytes_of_a_new_one_after_any_edits(edits: list[Any]) -> None:
    store = RoundStore(DIALECT)
    items: list[ModelItem] = []
    for how, at, fresh in edits:
        items = edited(items, how, at, fresh)
        assert encoded(store, items) == encoded(RoundStore(DIALECT), items)


def test_a_round_is_encoded_once_however_long_the_transcript_grows() -> None:
    loaded: list[str] = []

    def load(image: ImageRef) -> bytes:
        loaded.append(image.digest)
        return b"x"

    store = RoundStore(DIALECT)
    items: list[ModelItem] = [user("go")]
    for number in range(50):
        image = dataclasses.replace(PNG, digest=f"{number:064x}")
        items += [calls(f"c{number}"), result(f"c{number}", "ok", image)]
        store.encode(tuple(items), load)
        store.encode((*items, user("a side question")), load)
    # Each is encoded while its round may still grow, twice with the question behind it, and once when it is closed.
    assert max(loaded.count(digest) for digest in loaded) <= 3


def test_one_replaced_item_costs_one_round() -> None:
    loaded: list[str] = []

    def load(image: ImageRef) -> bytes:
        loaded.append(image.digest)
        return b"x"

    images = [dataclasses.replace(PNG, digest=f"{number:064x}") for number in range(20)]
    items: list[ModelItem] = [user("go")]
    for number, image in enumerate(images):
        items += [calls(f"c{number}"), result(f"c{number}", "ok", image)]
    items += [says("done")]
    store = RoundStore(DIALECT)
    store.encode(tuple(items), load)
    loaded.clear()
    items[6] = result("c2", "cleared")
    items[10] = result("c4", "changed", images[4])
    store.encode(tuple(items), load)
    assert loaded == [images[4].digest]
