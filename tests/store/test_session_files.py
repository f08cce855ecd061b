from __future__ import annotations

import os
import sqlite3

from crystal.store.home import Home
from crystal.store.sessions import BeforeImage, SessionFiles, SessionRecord, SessionStore, SessionTodos
from crystal.types.capabilities import FileStamp, FileStates, Todo, TodoList

STAMP = FileStamp(size=3, modified_ns=1_700_000_000_123_456_789, digest="abc")


def test_todos_are_replaced_as_a_list(store: SessionStore) -> None:
    todos: TodoList = SessionTodos(store, "s1")
    assert todos.read() == ()
    first = (Todo(id="1", content="one", status="pending"), Todo(id="1", content="same id", status="completed"))
    todos.replace(first)
    assert todos.read() == first
    todos.replace([Todo(id="2", content="two \ud800", status="cancelled")])
    assert store.todos("s1") == (Todo(id="2", content="two \ufffd", status="cancelled"),)


def test_what_a_session_has_seen_is_its_own_and_lasts(home: Home, store: SessionStore) -> None:
    store.create(SessionRecord(id="s2", workspace="/w"))
    files: FileStates = SessionFiles(store, "s1")
    assert files.seen("/w/a") is None
    files.remember("/w/a", STAMP)
    files.remember("/w/a", STAMP)
    assert files.seen("/w/a") == STAMP
    again = SessionStore.open(home)
    assert SessionFiles(again, "s1").seen("/w/a") == STAMP
    assert SessionFiles(again, "s2").seen("/w/a") is None
    again.close()
    later = FileStamp(size=4, modified_ns=2, digest="d")
    files.remember("/w/a", later)
    assert SessionFiles(store, "s1").seen("/w/a") == later


def test_names_that_are_not_utf8_stay_apart(store: SessionStore) -> None:
    names = [os.fsdecode(name) for name in (b"/w/\xe9", b"/w/\xe8", "/w/\ufffd".encode())]
    files = SessionFiles(store, "s1")
    for size, name in enumerate(names):
        files.remember(name, FileStamp(size=size, modified_ns=0, digest=""))
        files.keep_before_image(name, None, "c")
    fresh = SessionFiles(store, "s1")
    assert [stamp.size for name in names if (stamp := fresh.seen(name))] == [0, 1, 2]
    assert [image.path for image in store.before_images("s1")] == names


def test_before_images_are_byte_for_byte_and_equal_ones_are_kept_once(home: Home, store: SessionStore) -> None:
    content = b"\x00\xff\r\n" * 1000
    files = SessionFiles(store, "s1")
    files.keep_before_image("/w/a", content, "c1")
    files.keep_before_image("/w/b", content, "c2")
    files.keep_before_image("/w/empty", b"", "c3")
    files.keep_before_image("/w/new", None, "c4")
    assert store.before_images("s1") == (
        BeforeImage(call_id="c1", path="/w/a", content=content),
        BeforeImage(call_id="c2", path="/w/b", content=content),
        BeforeImage(call_id="c3", path="/w/empty", content=b""),
        BeforeImage(call_id="c4", path="/w/new", content=None),
    )
    connection = sqlite3.connect(home.database)
    assert connection.execute("SELECT count(*) FROM contents").fetchone() == (2,)
    connection.close()
