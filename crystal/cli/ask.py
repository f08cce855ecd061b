"""``--ask``: put the requests of a run to the operator on the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Sequence
from typing import TextIO

from crystal.cli.safe_text import safe_line, safe_text
from crystal.engine.answers import Answer, Approve, Deny, Dismiss, Reply, UnknownRequest
from crystal.engine.preflight import SetupError
from crystal.engine.session import Session
from crystal.types.approval import GrantScope
from crystal.types.capabilities import Question
from crystal.types.events import ApprovalAsked, QuestionAsked

_WORDS = {
    GrantScope.ONCE: ("y", "[y]es, once"),
    GrantScope.SESSION: ("s", "[s]ession"),
    GrantScope.PERSISTENT: ("a", "[a]lways"),
}


class TerminalOperator:
    """Asks on a terminal and reads answers from stdin; one request at a time.

    :param terminal: where prompts go.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def on_terminal(cls, form: str) -> TerminalOperator:
        """Return an operator, if there is a terminal to ask on.

        :raises SetupError: when stdin or stderr is no terminal, or the format is ``json``.
        """
        if form == "json":
            raise SetupError("--ask cannot be combined with --format json.")
        if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
            raise SetupError("--ask needs a terminal on stdin and stderr.")
        return cls(sys.stderr)

    def hear(self, event: ApprovalAsked | QuestionAsked, session: Session) -> None:
        """Ask in the background and answer through the session."""
        task = asyncio.get_running_loop().create_task(self._ask(event, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, event: ApprovalAsked | QuestionAsked, session: Session) -> None:
        async with self._turn:
            if isinstance(event, ApprovalAsked):
                answer: Answer = await self._approval(event)
            else:
                answer = await self._questions(event.questions)
        # The turn may have been interrupted while the prompt stood there.
        with contextlib.suppress(UnknownRequest):
            session.answer(event.request_id, answer)

    async def _approval(self, event: ApprovalAsked) -> Answer:
        offered = {_WORDS[scope][0]: scope for scope in event.offered}
        lines = [f"[approval] {event.name}: {event.final.label} ({event.reason})"]
        if event.host != event.final:
            lines.append(f"  the host's own class: {event.host.label}")
        lines.append(f"  {safe_text(event.final.summary)}")
        # The whole of it: what is cut out of sight could be what matters.
        lines += [f"  {safe_line(name)}: {_indented(value)}" for name, value in event.arguments.items()]
        choices = ", ".join(_WORDS[scope][1] for scope in event.offered)
        answer = await self._read_line("\n".join(lines) + f"\n  {choices}, [n]o: ")
        scope = offered.get(answer.strip().lower()[:1])
        return Approve(scope=scope) if scope is not None else Deny()

    async def _questions(self, questions: Sequence[Question]) -> Answer:
        labels = []
        for question in questions:
            lines = [f"[question] {safe_text(question.text)}"]
            lines += [
                f"  {number}. {safe_line(option.label)}  {safe_line(option.description)}"
                for number, option in enumerate(question.options, 1)
            ]
            hint = "numbers" if question.multiple else "a number"
            own = ", or your own words" if question.custom else ""
            chosen: tuple[str, ...] = ()
            while not chosen:
                answer = (await self._read_line("\n".join(lines) + f"\n  {hint}{own}; empty dismisses: ")).strip()
                if not answer:
                    return Dismiss()
                chosen = _chosen(question, answer)
            labels.append(chosen)
        return Reply(labels=tuple(labels))

    async def _read_line(self, prompt: str) -> str:
        """Read in a thread that nobody has to wait for: an interrupt must not need another Enter."""
        self._terminal.write(prompt)
        self._terminal.flush()
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            text = sys.stdin.readline()
            with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
                loop.call_soon_threadsafe(_resolve, line, text)

        threading.Thread(target=read, name="crystal-ask", daemon=True).start()
        return await line


def _chosen(question: Question, answer: str) -> tuple[str, ...]:
    """Return the labels an answer stands for; none when only the options are answers and it names none of them."""
    numbers = answer.replace(",", " ").split()
    if numbers and all(word.isdecimal() and 1 <= int(word) <= len(question.options) for word in numbers):
        chosen = [question.options[int(word) - 1].label for word in numbers]
        return tuple(chosen if question.multiple else chosen[:1])
    return (answer,) if question.custom else ()


def _resolve(line: asyncio.Future[str], text: str) -> None:
    if not line.done():
        line.set_result(text)


def _indented(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return safe_text(text).replace("\n", "\n    ")
