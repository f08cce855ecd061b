"""The limit of a hook: a coroutine is ended, a plain function is named, and nothing holds the host."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from crystal.types.notes import NoteCode
from crystal.types.session import PromptFacts, PromptMode, UserMessage
from tests.host.hosts import SECRET, MadePlugin, SmallHost, full_name, make_host

SHORT = 0.05


async def for_ever() -> Any:
    """Wait for what never comes."""
    await asyncio.Event().wait()


def after(message: UserMessage) -> str:
    """Show that the next hook ran and what it was given."""
    return f"{message.text} after"


def slow_host(slow: Any, timeout: float = SHORT) -> SmallHost:
    """A host whose first plugin is slow and whose second is not."""
    return make_host(
        MadePlugin("Slow", on_user_message=slow), MadePlugin("After", on_user_message=after), timeout=timeout
    )


def test_a_coroutine_past_the_limit_is_cancelled_and_skipped_with_one_note() -> None:
    ended: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "too late"

    host = slow_host(slow)

    async def turn() -> tuple[str, list[str]]:
        folded = await host.hooks.on_user_message(UserMessage(text=SECRET))
        return folded.text, list(ended)

    assert asyncio.run(turn()) == (f"{SECRET} after", ["cancelled"])
    assert host.noted() == [(NoteCode.HOOK_TIMEOUT, full_name("Slow"))]
    assert "on_user_message" in host.only_note().text
    assert SECRET not in host.only_note().text


def test_a_coroutine_within_the_limit_counts_and_makes_no_note() -> None:
    async def quick(message: UserMessage) -> str:
        await asyncio.sleep(0)
        return f"{message.text} quick"

    host = slow_host(quick, timeout=60.0)
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="hello"))).text == "hello quick after"
    assert host.notes.all == ()


def test_the_limit_holds_for_appending_notifying_and_collecting_hooks_too() -> None:
    told: list[str] = []
    host = make_host(
        MadePlugin("Slow", on_prompt=for_ever, on_turn_started=for_ever, contribute_tools=for_ever),
        MadePlugin(
            "After",
            on_prompt=lambda: "text",
            on_turn_started=lambda: told.append("told"),
            contribute_tools=lambda: ["tool"],
        ),
        timeout=SHORT,
    )

    async def all_three() -> tuple[Any, ...]:
        prompt = await host.hooks.compose_prompt(PromptFacts(mode=PromptMode.WORK, text="host"))
        await host.dispatcher.notify("on_turn_started", None)
        return prompt, await host.hooks.contributions("contribute_tools")

    prompt, collected = asyncio.run(all_three())
    assert prompt == "host\n\ntext"
    assert told == ["told"]
    assert [found.entry for found in collected] == ["tool"]
    assert host.noted() == [(NoteCode.HOOK_TIMEOUT, full_name("Slow"))] * 3


def test_a_coroutine_that_swallows_its_cancellation_does_not_hold_the_host() -> None:
    async def turn() -> tuple[str, bool]:
        release = asyncio.Event()
        finished = asyncio.Event()

        async def stubborn() -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            finished.set()
            return "stubborn"

        host = slow_host(stubborn)
        try:
            folded = await asyncio.wait_for(host.hooks.on_user_message(UserMessage(text="hello")), timeout=30)
            still_running = not finished.is_set()
        finally:
            release.set()
        await finished.wait()
        assert host.noted() == [(NoteCode.HOOK_TIMEOUT, full_name("Slow"))]
        return folded.text, still_running

    assert asyncio.run(turn()) == ("hello after", True)


def test_the_hosts_own_cancellation_passes_through_and_ends_the_hook() -> None:
    ran_after: list[str] = []

    async def turn() -> SmallHost:
        entered, ended = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.set()
                raise

        later = MadePlugin("After", on_user_message=lambda: ran_after.append("ran"))
        host = make_host(MadePlugin("Slow", on_user_message=slow), later)
        running = asyncio.create_task(host.hooks.on_user_message(UserMessage(text="hello")))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert running.cancelled()
        await asyncio.wait_for(ended.wait(), timeout=30)
        return host

    host = asyncio.run(turn())
    assert ran_after == []
    assert host.notes.all == ()


def test_the_hosts_own_cancellation_passes_a_hook_that_swallows_it() -> None:
    async def cancelled_turn() -> bool:
        entered, release = asyncio.Event(), asyncio.Event()

        async def stubborn() -> None:
            while not release.is_set():
                entered.set()
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        host = slow_host(stubborn, timeout=60.0)
        running = asyncio.create_task(host.hooks.on_user_message(UserMessage(text="hello")))
        await entered.wait()
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=30)
        release.set()
        return running in done and running.cancelled()

    assert asyncio.run(cancelled_turn()) is True


def test_a_hook_that_cancels_its_own_task_ends_only_itself() -> None:
    async def suicidal() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "never"

    host = slow_host(suicidal, timeout=60.0)
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="hello"))).text == "hello after"
    assert host.noted() == [(NoteCode.HOOK_ERROR, full_name("Slow"))]


class LogWaiter(logging.Handler):
    """Lets a plain hook run until the watchdog has named it in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.named = threading.Event()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.named.set()


@pytest.fixture
def log() -> Iterator[LogWaiter]:
    """What the watchdog writes."""
    waiter = LogWaiter()
    logger = logging.getLogger("crystal.hooks")
    logger.addHandler(waiter)
    yield waiter
    logger.removeHandler(waiter)


def test_a_plain_function_past_the_limit_is_named_in_the_log_while_it_runs_and_counts(log: LogWaiter) -> None:
    host = slow_host(lambda: "named" if log.named.wait(60) else "not named")
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text=SECRET))).text == "named after"
    assert host.noted() == [(NoteCode.HOOK_SLOW, full_name("Slow"))]
    assert "on_user_message" in host.only_note().text
    (message,) = log.messages
    assert full_name("Slow") in message
    assert "on_user_message" in message
    assert SECRET not in message


def test_a_plain_function_past_the_limit_that_raises_gets_both_notes(log: LogWaiter) -> None:
    def slow() -> str:
        log.named.wait(60)
        raise ValueError(SECRET)

    host = slow_host(slow)
    assert asyncio.run(host.hooks.on_user_message(UserMessage(text="hello"))).text == "hello after"
    assert set(host.noted()) == {(NoteCode.HOOK_SLOW, full_name("Slow")), (NoteCode.HOOK_ERROR, full_name("Slow"))}
    assert len(host.notes.all) == 2


def test_a_waiting_coroutine_is_not_taken_for_a_blocking_function(log: LogWaiter) -> None:
    host = slow_host(for_ever)
    asyncio.run(host.hooks.on_user_message(UserMessage(text="hello")))
    assert log.messages == []
