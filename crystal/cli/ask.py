"""``--ask``: put the requests of a run to the operator on the terminal, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence

from crystal.cli.approval_card import ESCAPE, card, choices, heading, mend, parse_answer
from crystal.cli.page import Row
from crystal.cli.question_form import form, hint, parse_labels, summary
from crystal.cli.safe_text import reliable
from crystal.cli.terminal import Terminal, TerminalClosed, has_colours
from crystal.engine.answers import Answer, Deny, Dismiss, Reply, UnknownRequest
from crystal.engine.preflight import SetupError
from crystal.engine.session import Session
from crystal.types.capabilities import Question
from crystal.types.events import ApprovalAsked, QuestionAsked

_CONFIRM = "  [Y]es, send; [n]o, ask again; [d]ismiss: "


class TerminalOperator:
    """Asks on a terminal; a request that comes while another stands there waits its turn.

    The end of the input denies. So does a terminal that is gone, then as if there were nobody to ask.
    """

    def __init__(self, terminal: Terminal) -> None:
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
        if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
            raise SetupError(
                "--ask needs a terminal on stdin, where the answers are typed; give the task as an argument, "
                'such as "$(cat FILE)".'
            )
        if sys.stderr is None or not sys.stderr.isatty():
            raise SetupError("--ask needs a terminal on stderr, where the prompts stand.")
        terminal = Terminal(
            sys.stdin.fileno(),
            reliable(sys.stderr),
            encoding=sys.stdin.encoding or "utf-8",
            coloured=has_colours(os.environ),
        )
        return cls(terminal)

    def hear(self, event: ApprovalAsked | QuestionAsked, session: Session) -> None:
        """Ask in the background and answer through the session."""
        task = asyncio.get_running_loop().create_task(self._ask(event, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, event: ApprovalAsked | QuestionAsked, session: Session) -> None:
        async with self._turn:
            if isinstance(event, ApprovalAsked):
                try:
                    answer: Answer = await self._approval(event)
                except TerminalClosed:
                    answer = Deny(by="nobody")
            else:
                try:
                    answer = await self._questions(event.questions)
                except TerminalClosed:
                    answer = Dismiss(by="nobody")
            try:
                session.answer(event.request_id, answer)
            except UnknownRequest:
                # Its call was given up while the prompt stood there.
                with contextlib.suppress(TerminalClosed):
                    await self._terminal.show([Row(text="  (too late: the call was given up)")])

    async def _approval(self, event: ApprovalAsked) -> Answer:
        page = self._terminal.page
        rows = card(event, page)
        if len(rows) > self._terminal.lines - 2:
            # What is asked about must be in sight where the answer is typed.
            rows.append(heading(event, page))
        await self._terminal.show(rows)
        prompt = f"  {choices(event.offered)}: "
        while True:
            line = await self._terminal.ask(prompt)
            answer = Deny() if line is None else parse_answer(line, event.offered)
            if answer is not None:
                return answer
            prompt = f"  {mend(event, page)}: "

    async def _questions(self, questions: Sequence[Question]) -> Answer:
        while True:
            labels = []
            for number, question in enumerate(questions, 1):
                chosen = await self._question(question, number, len(questions))
                if chosen is None:
                    return Dismiss()
                labels.append(chosen)
            confirmed = await self._confirm(questions, labels) if len(questions) > 1 else True
            if confirmed is None:
                return Dismiss()
            if confirmed:
                return Reply(labels=tuple(labels))

    async def _question(self, question: Question, number: int, total: int) -> tuple[str, ...] | None:
        """Return the labels chosen, ``None`` when the question is dismissed."""
        await self._terminal.show(form(question, number, total, self._terminal.page))
        while True:
            line = await self._terminal.ask(f"  {hint(question)}; empty dismisses: ")
            answer = "" if line is None else line.strip()
            if answer in ("", ESCAPE):
                return None
            if chosen := parse_labels(question, answer):
                return chosen

    async def _confirm(self, questions: Sequence[Question], labels: Sequence[tuple[str, ...]]) -> bool | None:
        """Return whether the answers are sent, ``None`` when the questions are dismissed after all."""
        await self._terminal.show(summary(questions, labels, self._terminal.page))
        while True:
            line = await self._terminal.ask(_CONFIRM)
            word = "d" if line is None else line.strip().lower()
            if word in ("", "y", "yes"):
                return True
            if word in ("n", "no"):
                return False
            if word in ("d", "dismiss", ESCAPE):
                return None
