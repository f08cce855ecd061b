"""A prompt that stands on the terminal while other calls of the run go on, or while its own call is given up."""

from __future__ import annotations

import asyncio
import os
import pty
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crystal import Authority, Risk, ToolContribution, ToolDefinition, hookimpl
from crystal.cli.ask import TerminalOperator
from crystal.cli.terminal import Terminal
from crystal.testing.crystaler import Crystaler
from crystal.types.events import Event, ToolCallFinished
from crystal.types.tools import ToolCall, ToolContext, ToolOutput

WRITE = {"path": "a.txt", "content": "x"}
ROUNDS = [{"toolCalls": [{"name": "acme", "arguments": {}}]}, {"text": "Done."}]


class Person:
    """Someone at a pseudo-terminal in this process; :attr:`operator` asks them."""

    def __init__(self) -> None:
        self._control, descriptor = pty.openpty()
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8")
        self.operator = TerminalOperator(Terminal(descriptor, self._stream, encoding="utf-8", coloured=False))
        self.shown = b""
        self._at = 0

    def read_until(self, end: bytes) -> None:
        """Wait until this is shown, behind what was waited for before; one read may bring more than that."""
        while end not in self.shown[self._at :]:
            self.shown += os.read(self._control, 4096)
        self._at = self.shown.index(end, self._at) + len(end)

    def type(self, text: str) -> None:
        os.write(self._control, text.encode())

    def close(self) -> None:
        self._stream.close()
        os.close(self._control)


@pytest.fixture
def person() -> Iterator[Person]:
    found = Person()
    yield found
    found.close()


class Acme:
    """A plugin with one tool, whose work is a function of the test."""

    name = "Acme"
    definition = ToolDefinition(name="acme", description="d", schema={"type": "object"})

    def __init__(self, work: Callable[[ToolContext], Any]) -> None:
        self._work = work

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        await self._work(context)
        return ToolOutput(text="ok")

    @hookimpl
    def contribute_tools(self) -> list[ToolContribution]:
        return [ToolContribution(name="acme", tool=self, risk=Risk.READ, authority=Authority.WORKSPACE)]


def test_other_calls_go_on_while_a_prompt_stands(crystaler: Crystaler, person: Person) -> None:
    bash_is_done = threading.Event()

    async def both(context: ToolContext) -> None:
        command = "echo one; echo two; echo three"
        await asyncio.gather(context.call("write", WRITE), context.call("bash", {"command": command}))

    def hear(event: Event) -> None:
        if isinstance(event, ToolCallFinished) and event.name == "bash":
            bash_is_done.set()

    def answer() -> None:
        person.read_until(b"[n]o: ")
        bash_is_done.wait(60)
        person.type("y\n")

    crystaler.makeplugin("Acme", Acme(both))
    crystaler.script(ROUNDS)
    typing = threading.Thread(target=answer, daemon=True)
    typing.start()
    result = crystaler.run("do it", "--allow", "acme", "--allow", "bash", operator=person.operator, listener=hear)
    typing.join(60)
    assert not typing.is_alive(), result.stderr + result.stdout
    assert result.exit_code == 0
    assert [event.failed for event in result.events if isinstance(event, ToolCallFinished)] == [False] * 3
    assert (crystaler.workspace / "a.txt").exists()


def test_an_answer_to_a_call_that_was_given_up_lets_nothing_run(crystaler: Crystaler, person: Person) -> None:
    prompted, given_up = threading.Event(), threading.Event()

    async def give_up(context: ToolContext) -> None:
        loop = asyncio.get_running_loop()
        asking = asyncio.ensure_future(context.call("write", WRITE))
        await loop.run_in_executor(None, prompted.wait, 60)
        asking.cancel()
        await asyncio.wait((asking,))
        given_up.set()
        await context.call("write", {**WRITE, "path": "b.txt"})

    def answer() -> None:
        person.read_until(b"[n]o: ")
        prompted.set()
        given_up.wait(60)
        person.type("y\n")
        person.read_until(b"(too late: the call was given up)")
        person.read_until(b"[n]o: ")
        person.type("n\n")

    crystaler.makeplugin("Acme", Acme(give_up))
    crystaler.script(ROUNDS)
    typing = threading.Thread(target=answer, daemon=True)
    typing.start()
    result = crystaler.run("do it", "--allow", "acme", operator=person.operator)
    typing.join(60)
    assert not typing.is_alive(), result.stderr + result.stdout
    assert result.exit_code == 4
    assert not list(crystaler.workspace.iterdir())
