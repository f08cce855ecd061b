from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.store.home import Home
from crystal.store.sessions import SessionRecord, SessionStore
from crystal.types.items import AssistantItem, ImageRef, ModelItem, ReasoningItem, ToolResultItem, UserItem
from crystal.types.notes import Note, NoteCode
from tests.store.test_item_rows import items


def user(text: str) -> UserItem:
    return UserItem(id=text, text=text)


def rows(home: Home, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(home.database, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def found(home: Home, words: str) -> list[str]:
    statement = "SELECT i.text FROM search JOIN items i ON i.number = search.rowid WHERE search MATCH ? ORDER BY rank"
    return [text for (text,) in rows(home, statement, (words,))]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(items, max_size=4), max_size=4))
def test_what_is_appended_comes_back_exactly_and_in_order(batches: list[list[ModelItem]]) -> None:
    with TemporaryDirectory() as folder:
        store = SessionStore.open(Home(root=Path(folder)))
        store.create(SessionRecord(id="s1", workspace="/w"))
        for turn, batch in enumerate(batches):
            store.append("s1", turn, batch)
        store.close()
        store = SessionStore.open(Home(root=Path(folder)))
        loaded, notes = store.load_items("s1")
        count = store.get("s1").items
        store.close()
    assert list(loaded) == [item for batch in batches for item in batch]
    assert notes == ()
    assert count == len(loaded)


def test_sessions_do_not_mix_and_a_turn_can_be_the_end(store: SessionStore) -> None:
    store.create(SessionRecord(id="s2", workspace="/w"))
    for turn in (1, 2, 3):
        store.append("s1", turn, [user(f"one {turn}")])
        store.append("s2", turn, [user(f"two {turn}")])
    assert store.load_items("s1")[0] == (user("one 1"), user("one 2"), user("one 3"))
    assert store.load_items("s2", through_turn=2)[0] == (user("two 1"), user("two 2"))


def test_a_batch_is_stored_as_a_whole_or_not_at_all(store: SessionStore) -> None:
    unstorable = ReasoningItem(id="2", text="", state={"no JSON": object()})
    with pytest.raises(ValueError, match="Circular reference"):
        store.append("s1", 1, [user("first"), unstorable])
    assert store.load_items("s1") == ((), ())


def test_several_writes_can_be_one_transaction(store: SessionStore) -> None:
    def write_and_fail() -> None:
        with store.together():
            store.append("s1", 1, [user("first")])
            store.touch("s1", now=500.0)
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    assert store.get("s1").updated == 100.0
    assert store.load_items("s1") == ((), ())
    with store.together():
        store.append("s1", 1, [user("first")])
        store.append("s1", 1, [user("second")])
    assert store.load_items("s1")[0] == (user("first"), user("second"))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("kind", "hologram"),
        ("extra", '{"state": {"cut'),
        ("extra", "\x00" * 40),
        ("text", b"\x00\xff\x00"),
    ],
)
def test_a_damaged_item_takes_no_other_with_it(home: Home, store: SessionStore, column: str, value: Any) -> None:
    store.append("s1", 1, [user("before"), AssistantItem(id="2", text="damaged"), user("after")])
    update = {
        "kind": "UPDATE items SET kind = ? WHERE text = 'damaged'",
        "extra": "UPDATE items SET extra = ? WHERE text = 'damaged'",
        "text": "UPDATE items SET text = ? WHERE text = 'damaged'",
    }
    rows(home, update[column], (value,))
    stored = rows(home, "SELECT * FROM items")
    expected = Note(
        code=NoteCode.SESSION_REPAIRED,
        text="session s1: 1 stored items cannot be read and are left out (rows 2); they stay in the store",
    )
    assert store.load_items("s1") == ((user("before"), user("after")), (expected,))
    store.append("s1", 2, [user("later")])
    assert store.load_items("s1")[0] == (user("before"), user("after"), user("later"))
    assert rows(home, "SELECT * FROM items")[:3] == stored


def test_bytes_that_are_not_text_show_as_such_and_harm_no_other(home: Home, store: SessionStore) -> None:
    store.append("s1", 1, [user("before"), user("damaged"), user("after")])
    rows(home, "UPDATE items SET text = CAST(x'61ff62' AS TEXT) WHERE text = 'damaged'")
    loaded, notes = store.load_items("s1")
    assert loaded == (user("before"), UserItem(id="damaged", text="a\ufffdb"), user("after"))
    assert notes == ()
    assert store.get("s1").id == "s1"


def test_images_are_referenced_once_a_session(home: Home, store: SessionStore) -> None:
    image = ImageRef(digest="d" * 64, media_type="image/png", size=9, name="a.png")
    store.append("s1", 1, [UserItem(id="1", text="look", images=(image,))])
    store.append("s1", 1, [ToolResultItem(id="2", call_id="c", name="read", text="", images=(image,))])
    assert rows(home, "SELECT digest, media_type, size, name FROM media") == [("d" * 64, "image/png", 9, "a.png")]


def test_user_and_assistant_texts_can_be_found_after_a_session(home: Home) -> None:
    store = SessionStore.open(home)
    store.create(SessionRecord(id="s1", workspace="/w"))
    store.append("s1", 1, [user("mend the garden gate"), AssistantItem(id="2", text="the gate is mended")])
    store.append("s1", 1, [ToolResultItem(id="3", call_id="c", name="read", text="gate in a tool result")])
    store.close()
    assert sorted(found(home, "gate")) == ["mend the garden gate", "the gate is mended"]
    assert found(home, '"garden gate"') == ["mend the garden gate"]


def test_the_index_goes_on_where_it_stopped(home: Home, store: SessionStore) -> None:
    store.append("s1", 1, [user("alpha one"), user("alpha two"), user("alpha three")])
    store.index_text(limit=2)
    assert len(found(home, "alpha")) == 2
    store.index_text()
    store.index_text()
    assert len(found(home, "alpha")) == 3


def test_deleting_a_session_leaves_nothing_in_the_index(home: Home, store: SessionStore) -> None:
    store.create(SessionRecord(id="s2", workspace="/w"))
    store.append("s1", 1, [user("alpha stays")])
    store.append("s2", 1, [user("alpha goes")])
    store.index_text()
    store.append("s2", 1, [user("alpha was never indexed")])
    with store.together() as connection:
        connection.execute("DELETE FROM sessions WHERE id = 's2'")
    assert rows(home, "SELECT count(*) FROM items") == [(1,)]
    store.append("s1", 1, [user("alpha comes")])
    store.index_text()
    assert sorted(found(home, "alpha")) == ["alpha comes", "alpha stays"]
    rows(home, "INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
