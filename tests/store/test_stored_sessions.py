from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys

import pytest

from crystal.store.home import Home
from crystal.store.sessions import SessionBusy, SessionRecord, SessionStore, StoreError, UnknownSession
from crystal.types.items import UserItem

FIRST = SessionRecord(id="s1", workspace="/ws/one", created=100.0, updated=100.0)
OTHER = SessionRecord(
    id="abc-1",
    workspace="/ws/two",
    title="Mend the gate",
    provider="openai",
    model="gpt",
    mode="plan",
    created=50.5,
    updated=60.25,
    turns=3,
)


def test_a_session_comes_back_as_it_was_created(store: SessionStore) -> None:
    store.create(OTHER)
    assert store.get("abc-1") == OTHER


def test_sessions_outlive_the_store(home: Home) -> None:
    store = SessionStore.open(home)
    store.create(OTHER)
    store.append("abc-1", 1, [UserItem(id="1", text="hi")])
    store.close()
    store = SessionStore.open(home)
    assert store.get("abc-1") == dataclasses.replace(OTHER, items=1)
    store.close()


def test_an_id_is_taken_once(store: SessionStore) -> None:
    with pytest.raises(StoreError, match="there is already a session s1"):
        store.create(FIRST)


@pytest.mark.parametrize("wrong", ["", "../x", "a/b", "-a", "a b", "x" * 65, "a\n", "\ud800"])
def test_an_id_can_be_a_file_name(store: SessionStore, wrong: str) -> None:
    with pytest.raises(StoreError, match="is not a session id"):
        store.create(dataclasses.replace(FIRST, id=wrong))


def test_the_beginning_of_an_id_is_enough_when_it_is_the_only_one(store: SessionStore) -> None:
    store.create(OTHER)
    store.create(dataclasses.replace(OTHER, id="abc-1-2"))
    store.create(dataclasses.replace(OTHER, id="abd"))
    assert store.get("s").id == "s1"
    assert store.get("abc-1").id == "abc-1"
    with pytest.raises(UnknownSession) as raised:
        store.get("ab")
    assert str(raised.value) == "several sessions begin with ab: abd, abc-1-2, abc-1; give more of the id"
    assert raised.value.wanted == "ab"


@pytest.mark.parametrize("wanted", ["nope", "", "s1x", "S1", "_1", "%", "\ud800"])
def test_an_unknown_session_is_named(store: SessionStore, wanted: str) -> None:
    with pytest.raises(UnknownSession) as raised:
        store.get(wanted)
    assert str(raised.value) == f"there is no session {wanted}; see: crystal sessions list --all"


def test_everything_about_an_unknown_session_says_so(store: SessionStore) -> None:
    for act in (
        lambda: store.append("nope", 1, []),
        lambda: store.load_items("nope"),
        lambda: store.claim("nope"),
        lambda: store.touch("nope", now=1.0),
        lambda: store.sync("nope"),
        lambda: store.usage("nope"),
        lambda: store.set_system("s", "a prefix does not name what is written to"),
    ):
        with pytest.raises(UnknownSession):
            act()


def test_lists_show_the_last_used_first(store: SessionStore) -> None:
    store.create(OTHER)
    store.create(dataclasses.replace(OTHER, id="abc-2", updated=70.0))
    assert [record.id for record in store.list(None, 10)] == ["s1", "abc-2", "abc-1"]
    assert [record.id for record in store.list("/ws/two", 10)] == ["abc-2", "abc-1"]
    assert [record.id for record in store.list(None, 2)] == ["s1", "abc-2"]
    store.touch("abc-1", now=200.0)
    latest = store.latest("/ws/two")
    assert latest is not None
    assert (latest.id, latest.updated) == ("abc-1", 200.0)
    assert store.latest("/work") is None


def test_touching_changes_only_what_is_given(store: SessionStore) -> None:
    store.create(OTHER)
    store.touch("abc-1", now=99.0)
    assert store.get("abc-1") == dataclasses.replace(OTHER, updated=99.0)
    store.touch("abc-1", now=100.0, title="", turns=4, provider="p", model="m\ud800", mode="work")
    assert store.get("abc-1") == dataclasses.replace(
        OTHER, updated=100.0, title="", turns=4, provider="p", model="m\ufffd", mode="work"
    )


def test_a_workspace_whose_name_is_not_utf8_is_found_again(store: SessionStore) -> None:
    workspace = os.fsdecode(b"/ws/caf\xe9")
    store.create(dataclasses.replace(OTHER, workspace=workspace))
    latest = store.latest(workspace)
    assert latest is not None
    assert latest.workspace == workspace


def test_the_system_prompt_is_kept_and_replaced(store: SessionStore) -> None:
    assert store.system("s1") == ""
    store.set_system("s1", "first")
    store.set_system("s1", "second \ud800")
    assert store.system("s1") == "second \ufffd"


WRITER = (
    "import sys; from pathlib import Path; from crystal.store.home import Home;"
    "from crystal.store.sessions import SessionStore; store = SessionStore.open(Home(root=Path(sys.argv[1])));"
    "store.claim('s1'); print('claimed', flush=True); sys.stdin.read()"
)


def test_a_second_process_is_refused_until_the_first_is_gone(home: Home, store: SessionStore) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"claimed\n"
    try:
        with pytest.raises(SessionBusy) as raised:
            store.claim("s1")
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    assert str(raised.value) == (
        f"session s1 is open in another crystal (process {writer.pid}); close it there to go on here"
    )
    store.claim("s1")


def test_a_claim_is_the_stores_own_until_it_lets_go(home: Home, store: SessionStore) -> None:
    store.create(OTHER)
    second = SessionStore.open(home)
    store.claim("s1")
    store.claim("s1")
    with pytest.raises(SessionBusy):
        second.claim("s1")
    second.claim("abc-1")
    store.release("s1")
    store.release("s1")
    second.claim("s1")
    second.close()
    store.claim("abc-1")
