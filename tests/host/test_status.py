"""The status board: one clean line a field, from any thread, and nothing from a sink that is closed."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.notes import Notes
from crystal.host.status import TEXT_CHARACTERS, StatusBoard, clean_text
from crystal.types.notes import NoteCode


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("3 tests\tfailed\n", "3 tests failed"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x9b31mred", "red"),
        ("\x1bPevil\x1b\\kept", "kept"),
        ("a\x1b", "a"),
        ("bell\x07 nul\x00", "bell nul"),
        ("\u202eevil", "evil"),
        ("  ", ""),
        ("x" * 100, "x" * 64),
    ],
)
def test_text_is_one_clean_line(text: str, shown: str) -> None:
    assert clean_text(text) == shown


@settings(deadline=None)
@given(st.text())
def test_nothing_that_moves_a_cursor_is_left(text: str) -> None:
    shown = clean_text(text)
    assert len(shown) <= TEXT_CHARACTERS
    assert shown.isprintable()
    assert shown == shown.strip()


def with_board(use: object) -> tuple[StatusBoard, Notes]:
    notes = Notes()
    board = StatusBoard(notes)

    async def inside() -> None:
        use(board)  # type: ignore[operator]
        await asyncio.sleep(0)

    asyncio.run(inside())
    return board, notes


def test_set_replaces_clear_removes_and_names_have_no_case() -> None:
    heard: list[tuple[str, str]] = []

    def use(board: StatusBoard) -> None:
        board.changed = lambda field, text: heard.append((field, text))
        sink = board.open_sink("plugin:home/Acme", ["build", "tests"])
        sink.set("Build", "running")
        sink.set("build", "running")
        sink.set("BUILD", "done")
        sink.set("tests", "4")
        sink.clear("tests")
        sink.set("tests", " \n ")
        sink.set("tests", "5")
        sink.set("tests", None)

    board, notes = with_board(use)
    assert dict(board.texts) == {"build": "done"}
    assert heard == [
        ("build", "running"),
        ("build", "done"),
        ("tests", "4"),
        ("tests", ""),
        ("tests", "5"),
        ("tests", ""),
    ]
    assert notes.all == ()


def test_a_text_whose_own_methods_come_back_to_the_sink_holds_nothing_up() -> None:
    def use(board: StatusBoard) -> None:
        sink = board.open_sink("plugin:home/Acme", ["build"])

        class Talkative:
            def __str__(self) -> str:
                sink.set("build", "inner")
                return "outer"

        sink.set("build", Talkative())  # type: ignore[arg-type]

    board, _ = with_board(use)
    assert dict(board.texts) == {"build": "outer"}


def test_a_field_of_another_plugin_is_ignored_and_noted_once() -> None:
    def use(board: StatusBoard) -> None:
        board.open_sink("plugin:home/A", ["a"]).set("a", "mine")
        sink = board.open_sink("plugin:home/B", ["b"])
        for _ in range(3):
            sink.set("a", "stolen")
            sink.set("\x1b[2J", "x")

    board, notes = with_board(use)
    assert dict(board.texts) == {"a": "mine"}
    assert [note.code for note in notes.all] == [NoteCode.STATUS_FIELD] * 2
    assert all("plugin:home/B" in note.text and note.text.isprintable() for note in notes.all)


def test_a_closed_sink_takes_its_texts_along_and_ignores_later_calls() -> None:
    def use(board: StatusBoard) -> None:
        sink = board.open_sink("plugin:home/A", ["a"])
        sink.set("a", "text")
        sink.close()
        sink.set("a", "late")
        sink.clear("b")

    board, notes = with_board(use)
    assert dict(board.texts) == {}
    assert notes.all == ()


def test_every_thread_may_push() -> None:
    def use(board: StatusBoard) -> None:
        sink = board.open_sink("plugin:home/A", [f"f{number}" for number in range(8)])
        threads = [
            threading.Thread(target=lambda n=number: [sink.set(f"f{n}", str(step)) for step in range(200)])
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    board, _ = with_board(use)
    assert dict(board.texts) == {f"f{number}": "199" for number in range(8)}


def test_a_thread_that_outlives_the_loop_disturbs_nobody() -> None:
    kept = []
    board, notes = with_board(lambda board: kept.append(board.open_sink("plugin:home/A", ["a"])))
    kept[0].set("unknown", "x")
    kept[0].set("a", "still")
    assert dict(board.texts) == {"a": "still"}
    assert notes.all == ()
