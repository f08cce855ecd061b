"""A session driven directly, as every surface drives it: one turn at a time, follow-ups, answers, the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crystal.engine.answers import Approve, Deny, UnknownRequest
from crystal.engine.preflight import SetupError
from crystal.engine.session import TurnRunning
from crystal.store.errors import StoreError
from crystal.types.events import (
    ApprovalAsked,
    SessionClosed,
    SessionOpened,
    TextStreamed,
    TurnFinished,
)
from crystal.types.items import ModelItem, UserItem
from crystal.types.session import StopReason
from tests.engine.runs import DONE, assert_calls_are_answered, calls, write
from tests.engine.surface import Surface


@pytest.fixture
def surface(tmp_path: Path) -> Surface:
    return Surface(tmp_path)


def user_texts(items: Sequence[ModelItem]) -> list[str]:
    return [item.text for item in items if isinstance(item, UserItem)]


def test_turns_of_one_session_share_the_conversation(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([{"text": "One."}, {"text": "Two."}])
        for text in ("first", "second"):
            assert (await session.send(text)).stop_reason is StopReason.DONE
        await session.close()

    asyncio.run(talk())
    assert user_texts(surface.requests[1].items) == ["first", "second"]
    assert isinstance(surface.events[0], SessionOpened)
    assert isinstance(surface.events[-1], SessionClosed)


def test_one_turn_at_a_time(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([{"text": "slow", "delayMs": 60_000}, DONE])
        turn = asyncio.create_task(session.send("first"))
        while not surface.requests:
            await surface.more()
        with pytest.raises(TurnRunning):
            await session.send("second")
        session.interrupt()
        assert (await turn).stop_reason is StopReason.INTERRUPTED
        assert (await session.send("third")).stop_reason is StopReason.DONE
        await session.close()

    asyncio.run(talk())


def test_an_interrupt_keeps_the_queued_texts(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([{"text": "one two", "chunk": 4, "delayMs": 10}, calls(("todoread", {})), DONE])
        turn = asyncio.create_task(session.send("first"))
        await surface.until(TextStreamed)
        session.follow_up("queued")
        session.interrupt()
        assert (await turn).stop_reason is StopReason.INTERRUPTED
        await session.send("second")
        await session.close()

    asyncio.run(talk())
    assert user_texts(surface.requests[-1].items).count("queued") == 1
    assert_calls_are_answered(surface.requests[-1].items)


def test_an_interrupt_without_a_turn_does_nothing(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([DONE])
        session.interrupt()
        assert (await session.send("first")).stop_reason is StopReason.DONE
        session.interrupt()
        await session.close()

    asyncio.run(talk())


def test_a_request_is_answered_once_and_not_after_its_turn(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([calls(write("a.txt")), calls(write("b.txt")), DONE])
        turn = asyncio.create_task(session.send("first"))
        asked: ApprovalAsked = await surface.until(ApprovalAsked)
        with pytest.raises(UnknownRequest, match="no_such"):
            session.answer("no_such", Approve())
        session.answer(asked.request_id, Approve())
        with pytest.raises(UnknownRequest):
            session.answer(asked.request_id, Deny())
        surface.events.clear()
        asked = await surface.until(ApprovalAsked)
        session.interrupt()
        await turn
        with pytest.raises(UnknownRequest):
            session.answer(asked.request_id, Approve())
        await session.close()

    asyncio.run(talk())
    assert [path.name for path in surface.workspace.iterdir()] == ["a.txt"]


def test_a_task_that_is_cancelled_from_outside_is_cancelled(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([{"text": "slow", "delayMs": 60_000}])
        turn = asyncio.create_task(session.send("first"))
        await asyncio.sleep(0)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await session.close()

    asyncio.run(talk())
    assert not any(isinstance(event, TurnFinished) for event in surface.events)


def test_closing_twice_is_closing_once(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([DONE])
        await session.close()
        await session.close()

    asyncio.run(talk())
    assert sum(isinstance(event, SessionClosed) for event in surface.events) == 1


def test_two_writers_of_one_session_are_refused(surface: Surface) -> None:
    async def talk() -> None:
        session = await surface.open([DONE])
        with pytest.raises(StoreError, match=session.id):
            await surface.open([DONE], resume=session.id)
        await session.close()
        again = await surface.open([DONE], resume=session.id)
        assert again.id == session.id
        await again.close()

    asyncio.run(talk())


@pytest.mark.parametrize("options", [{"resume": "nothing"}, {"continue_latest": True}])
def test_there_is_nothing_to_resume_in_an_empty_home(surface: Surface, options: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="no saved session"):
        asyncio.run(surface.open([DONE], **options))
    assert not surface.home.root.exists()


def test_the_latest_session_of_the_workspace_is_continued(surface: Surface) -> None:
    async def talk() -> tuple[str, str]:
        first = await surface.open([{"text": "One."}])
        await first.send("first")
        await first.close()
        second = await surface.open([{"text": "Two."}], continue_latest=True)
        await second.send("second")
        await second.close()
        return first.id, second.id

    first_id, second_id = asyncio.run(talk())
    assert first_id == second_id
    assert user_texts(surface.requests[-1].items) == ["first", "second"]


def test_a_workspace_that_is_no_folder_is_refused_before_anything_is_written(surface: Surface) -> None:
    surface.workspace.rmdir()
    with pytest.raises(SetupError, match="is not a folder"):
        asyncio.run(surface.open([DONE]))
    assert not surface.home.root.exists()
