"""``crystal demo``: a scripted tour in a temporary workspace, through the real engine, hooks, tools and store."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from crystal.cli.log import contained_output
from crystal.cli.printers.readable import ReadablePrinter
from crystal.cli.task import TaskEnded, TaskRequest, execute_task
from crystal.cli.why import describe
from crystal.engine.answers import Approve
from crystal.engine.preflight import SessionOptions
from crystal.engine.session import Session
from crystal.hookspecs import hookimpl
from crystal.host.sources.builtin import FoundPlugin
from crystal.store.home import Home
from crystal.store.sessions import SessionStore
from crystal.types.approval import ApprovalAdvice, ApprovalFacts, ApprovalMode
from crystal.types.events import ApprovalAsked, Event, QuestionAsked, TurnStarted
from crystal.types.session import UserMessage
from crystal.types.tools import ToolCall

TASK = "The total is wrong when an item is bought twice. Find out why, mend it, and show that the test passes."
PROGRAM = '''"""A till."""


def total(items):
    """Return the price of (name, price, count) rows."""
    return sum(price for _, price, count in items)
'''
TEST = """import unittest

from till import total


class TotalTest(unittest.TestCase):
    def test_counts(self):
        self.assertEqual(total([("tea", 3, 2), ("cake", 5, 1)]), 11)


if __name__ == "__main__":
    unittest.main()
"""
ROUNDS: list[dict[str, Any]] = [
    {
        "text": "I read the program and its test first.",
        "toolCalls": [
            {"name": "read", "arguments": {"path": "till.py"}},
            {"name": "read", "arguments": {"path": "test_till.py"}},
        ],
    },
    {
        "text": "The count is unpacked but never used.",
        "toolCalls": [
            {
                "name": "edit",
                "arguments": {"path": "till.py", "old_string": "sum(price for", "new_string": "sum(price * count for"},
            }
        ],
        "expect": {"lastResult": "assertEqual(total"},
    },
    {"toolCalls": [{"name": "bash", "arguments": {"command": "python3 -m unittest -v test_till"}}]},
    {
        "text": "Mended: the price is now multiplied by the count, and the test passes.",
        "expect": {"lastResult": "OK"},
    },
]


class DemoPlugin:
    """A plugin as anyone could write it."""

    name = "demo"

    @hookimpl
    def on_user_message(self, message: UserMessage) -> str:
        """Add a house rule to what the operator says."""
        return f"{message.text} (House rule: run the tests.)"

    @hookimpl
    def on_approval(self, call: ToolCall, facts: ApprovalFacts) -> ApprovalAdvice | None:
        """Have a person see every command."""
        if call.name != "bash":
            return None
        return ApprovalAdvice(require_prompt=True, reason="the demo plugin wants a person to see it")


class TourOperator:
    """Stands in for the person at the terminal: shows the request and approves it once."""

    def hear(self, event: ApprovalAsked | QuestionAsked, session: Session) -> None:
        """Approve once."""
        sys.stderr.flush()
        asyncio.get_running_loop().call_soon(session.answer, event.request_id, Approve())


class TourPrinter(ReadablePrinter):
    """The readable trace, with what the hooks did made visible."""

    def __call__(self, event: Event) -> None:
        """Print one event."""
        if isinstance(event, TurnStarted):
            self.say(f"[user] {event.text}")
        super().__call__(event)
        if isinstance(event, ApprovalAsked):
            self.say(f"  {event.final.summary}")
            self.say("  [y]es, once  (the tour answers y)")

    def say(self, text: str) -> None:
        """Print a line of the tour itself."""
        self._line(text)


@click.command(name="demo")
def command() -> int:
    """Watch a scripted model read, mend and test a small program; nothing outside a temporary folder is touched."""
    printer = TourPrinter(sys.stdout, show_thinking=True)
    printer.say(
        "This is a tour. The model is scripted: its words are written beforehand, no key and no network are used.\n"
        "Everything else is real: the hooks, the tools, the approval and the saved session.\n"
    )
    with tempfile.TemporaryDirectory(prefix="crystal-demo-") as folder:
        root = Path(folder)
        workspace = root / "till"
        workspace.mkdir()
        (workspace / "till.py").write_text(PROGRAM, "utf-8")
        (workspace / "test_till.py").write_text(TEST, "utf-8")
        home = Home(root=root / "home")
        with contained_output():
            ended = execute_task(_request(workspace, home, printer))
        _show_session(home, ended, printer)
    return ended.exit_code


def _request(workspace: Path, home: Home, printer: TourPrinter) -> TaskRequest:
    return TaskRequest(
        text=TASK,
        options=SessionOptions(
            home=home,
            workspace=workspace,
            provider="scripted",
            approval=ApprovalMode.EDIT,
            extra_plugins=(FoundPlugin(name="plugin:demo", plugin=DemoPlugin()),),
            client_options={"script": {"rounds": ROUNDS}},
        ),
        printer=printer,
        errors=sys.stderr,
        environ=os.environ,
        operator=TourOperator(),
    )


def _show_session(home: Home, ended: TaskEnded, printer: TourPrinter) -> None:
    store = SessionStore.open(home)
    try:
        record = store.get(ended.session_id)
        calls = store.calls(record.id)
    finally:
        store.close()
    printer.say(f"\nThe session {record.id} is saved with {record.items} items, and goes with the temporary folder;")
    printer.say(f"in a home of yours 'crystal run -r {record.id} TASK' would go on with it.")
    printer.say("'crystal why' says of the last call:")
    printer.say(describe(calls[-1]))
    printer.say('Next: point crystal at a model (README, "Use a model"), then: crystal run "YOUR TASK"')
