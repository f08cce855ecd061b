"""``--ask``: put the requests of a run to the operator on the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from crystal.cli.safe_text import safe_line, safe_text
from crystal.engine.answers import Answer, Approve, Deny, Dismiss, Reply
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
    """Asks on stderr and reads answers from stdin; one request at a time."""

    def __init__(self) -> None:
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
        return cls()

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
        session.answer(event.request_id, answer)

    async def _approval(self, event: ApprovalAsked) -> Answer:
        offered = {_WORDS[scope][0]: scope for scope in event.offered}
        lines = [f"[approval] {event.name}: {event.final.label} ({event.reason})"]
        if event.host != event.final:
            lines.append(f"  the host's own class: {event.host.label}")
        lines.append(f"  {safe_text(event.final.summary)}")
        lines += [f"  {name}: {safe_line(str(value), 400)}" for name, value in event.arguments.items()]
        choices = ", ".join(_WORDS[scope][1] for scope in event.offered)
        answer = await _read_line("\n".join(lines) + f"\n  {choices}, [n]o: ")
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
                answer = (await _read_line("\n".join(lines) + f"\n  {hint}{own}; empty dismisses: ")).strip()
                if not answer:
                    return Dismiss()
                chosen = _chosen(question, answer)
            labels.append(chosen)
        return Reply(labels=tuple(labels))


def _chosen(question: Question, answer: str) -> tuple[str, ...]:
    """Return the labels an answer stands for; none when only the options are answers and it names none of them."""
    numbers = answer.replace(",", " ").split()
    if numbers and all(word.isdecimal() and 1 <= int(word) <= len(question.options) for word in numbers):
        chosen = [question.options[int(word) - 1].label for word in numbers]
        return tuple(chosen if question.multiple else chosen[:1])
    return (answer,) if question.custom else ()


async def _read_line(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
