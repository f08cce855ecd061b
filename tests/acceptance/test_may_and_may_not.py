"""What each hook may do and may not do: one pair of runs a row, each through a plugin an author could have written."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from crystal.types.items import SystemItem, ToolResultItem, UserItem
from crystal.types.model import ModelRequest
from crystal.types.notes import NoteCode

Check = Callable[[RunResult, Crystaler], None]


@dataclass(frozen=True)
class Row:
    """One sentence of the table: the source of a plugin, and what a run with it shows."""

    title: str
    source: str
    check: Check

    def __str__(self) -> str:
        return self.title


def run_with(crystaler: Crystaler, source: str, *options: str) -> RunResult:
    crystaler.makefile("a.txt", "alpha\n")
    crystaler.makefile("b.txt", "beta\n")
    crystaler.makeplugin("Acme", "from dataclasses import replace\nfrom crystal import *\n" + textwrap.dedent(source))
    crystaler.script(
        [
            {"toolCalls": [{"name": "read", "arguments": {"path": "a.txt"}, "id": "c1"}]},
            {"toolCalls": [{"name": "bash", "arguments": {"command": "echo hi"}, "id": "c2"}]},
            {"text": "Done."},
        ]
    )
    return crystaler.run("the task", "--approval", "full", *options)


def sent(result: RunResult, number: int = -1) -> ModelRequest:
    return result.requests[number]


def texts(request: ModelRequest, kind: type[Any]) -> list[str]:
    return [item.text for item in request.items if isinstance(item, kind)]


def refused(result: RunResult, hook: str) -> bool:
    """Whether a note says that the replacement was refused, naming plugin and hook."""
    notes = [note for note in result.notes if note.code in (NoteCode.CONTRACT_REFUSED, NoteCode.GUARD_FAILED)]
    return any("plugin:test/Acme" in note.text and f"'{hook}'" in note.text for note in notes)


def shown(crystaler: Crystaler, result: RunResult) -> str:
    return crystaler.command("sessions", "show", result.session_id).stdout


MAY = [
    Row(
        "session hooks read workspace, id and approval mode",
        """
        @hookimpl
        def on_session_started(session):
            (session.workspace / "started").write_text(f"{session.id} {session.approval.value}")

        @hookimpl
        def on_session_ended(session):
            (session.workspace / "ended").write_text(session.id)
        """,
        lambda result, kit: _eq(
            [(kit.workspace / name).read_text() for name in ("started", "ended")],
            [f"{result.session_id} full", result.session_id],
        ),
    ),
    Row(
        "on_prompt appends",
        "@hookimpl\ndef on_prompt(prompt):\n    return 'HOUSE RULE ' + prompt.mode.value",
        lambda result, kit: _true(texts(sent(result), SystemItem)[0].endswith("\n\nHOUSE RULE work")),
    ),
    Row(
        "on_user_message replaces before it is stored",
        "@hookimpl\ndef on_user_message(message):\n    return message.text.upper()",
        lambda result, kit: _true(texts(sent(result), UserItem) == ["THE TASK"] and "THE TASK" in shown(kit, result)),
    ),
    Row(
        "turn hooks read text, mode and, at the end, the stop reason",
        """
        heard = []

        @hookimpl
        def on_turn_started(turn):
            heard.append((turn.text, turn.mode.name, turn.stop_reason))

        @hookimpl
        def on_turn_finished(turn):
            heard.append((turn.text, turn.mode.name, turn.stop_reason.value))

        @hookimpl
        def on_session_ended(session):
            (session.workspace / "heard").write_text(repr(heard))
        """,
        lambda result, kit: _eq(
            (kit.workspace / "heard").read_text(),
            repr([("the task", "WORK", None), ("the task", "WORK", "done")]),
        ),
    ),
    Row(
        "transform_model changes user, assistant and result text for one request",
        """
        from crystal.types.items import ToolResultItem, UserItem

        @hookimpl
        def transform_model(request):
            kinds = (UserItem, ToolResultItem)
            return [replace(item, text="X") if isinstance(item, kinds) else item for item in request.items]
        """,
        lambda result, kit: _true(
            texts(sent(result), UserItem) == ["X"]
            and texts(sent(result), ToolResultItem) == ["X", "X"]
            and "the task" in shown(kit, result)
            and "alpha" in shown(kit, result)
        ),
    ),
    Row(
        "on_model_response reads purpose, finish reason, items and usage",
        """
        heard = []

        @hookimpl
        def on_model_response(response):
            heard.append((response.purpose.value, response.finish.value, len(response.items), response.usage.input > 0))

        @hookimpl
        def on_session_ended(session):
            (session.workspace / "heard").write_text(repr(heard))
        """,
        lambda result, kit: _eq(
            (kit.workspace / "heard").read_text(),
            repr([("work", "tool_calls", 1, True), ("work", "tool_calls", 1, True), ("work", "stop", 1, True)]),
        ),
    ),
    Row(
        "on_tool_call replaces name and arguments",
        """
        @hookimpl
        def on_tool_call(call):
            if call.name == "bash":
                return replace(call, name="read", arguments={"path": "b.txt"})
        """,
        lambda result, kit: _true("beta" in result.calls[1].output and result.calls[1].name == "read"),
    ),
    Row(
        "on_tool_result replaces the text",
        "@hookimpl\ndef on_tool_result(call, result):\n    return replace(result, text='replaced ' + call.name)",
        lambda result, kit: _eq(texts(sent(result), ToolResultItem), ["replaced read", "replaced bash"]),
    ),
    Row(
        "on_approval raises risk or requires a prompt",
        """
        @hookimpl
        def on_approval(call, facts):
            if call.name == "read":
                return ApprovalAdvice(risk=Risk.PRIVILEGED)
            return ApprovalAdvice(require_prompt=True)
        """,
        lambda result, kit: _eq(
            [(call.failed, call.approval["rule"], call.approval["answeredBy"]) for call in result.calls],
            [(True, 11, "nobody"), (True, 2, "nobody")],
        ),
    ),
    Row(
        "rebuild_model drops, reorders, adds and rewrites anything for one request",
        """
        from crystal.types.items import SystemItem, ToolCallItem, UserItem

        @hookimpl
        def rebuild_model(request):
            kept = [item for item in request.items if not isinstance(item, (SystemItem, ToolCallItem))]
            return [UserItem(id="new", text="added"), *reversed(kept), SystemItem(id="late", text="system last")]
        """,
        lambda result, kit: _true(
            texts(sent(result), SystemItem) == ["system last"]
            and texts(sent(result), UserItem) == ["added", "the task"]
            and "added" not in shown(kit, result)
        ),
    ),
    Row(
        "rewrite_prompt replaces the composed text, by an empty one too",
        "@hookimpl\ndef on_prompt(prompt):\n    return 'appended'\n\n"
        "@hookimpl\ndef rewrite_prompt(prompt, composed):\n    return '' if 'appended' in composed else None",
        lambda result, kit: _eq(texts(sent(result), SystemItem), [""]),
    ),
    Row(
        "rewrite_approval sets risk, authority, summary and requirement",
        """
        @hookimpl
        def on_approval(call, facts):
            return ApprovalAdvice(risk=Risk.FORBIDDEN, require_prompt=True)

        @hookimpl
        def rewrite_approval(call, facts, require_prompt):
            return Classification(risk=Risk.READ, authority=Authority.WORKSPACE, summary="mine")
        """,
        lambda result, kit: _eq(
            [(call.failed, call.approval["rule"], call.approval["class"]) for call in result.calls],
            [(False, 4, "Read + Workspace")] * 2,
        ),
    ),
]

MAY_NOT = [
    Row(
        "session hooks have no way to prompt the operator",
        """
        @hookimpl
        def on_session_started(session):
            names = {name for name in dir(session) if not name.startswith("_")}
            (session.workspace / "names").write_text(" ".join(sorted(names)))
        """,
        lambda result, kit: _eq((kit.workspace / "names").read_text(), "approval id workspace"),
    ),
    Row(
        "on_prompt cannot replace the host's text",
        "@hookimpl\ndef on_prompt(prompt):\n    return ''\n",
        lambda result, kit: _true("You are Crystal" in texts(sent(result), SystemItem)[0]),
    ),
    Row(
        "on_user_message cannot leave the message blank",
        "@hookimpl\ndef on_user_message(message):\n    return '  \\n'",
        lambda result, kit: _true(texts(sent(result), UserItem) == ["the task"]),
    ),
    Row(
        "turn hooks change nothing by what they return or assign",
        """
        @hookimpl
        def on_turn_started(turn):
            turn.text = "changed"
        """,
        lambda result, kit: _true(
            texts(sent(result), UserItem) == ["the task"]
            and any(note.code is NoteCode.HOOK_ERROR for note in result.notes)
        ),
    ),
    *(
        Row(
            f"transform_model cannot {what}",
            f"""
            from crystal.types.items import SystemItem, UserItem

            @hookimpl
            def transform_model(request):
                items = list(request.items)
                {code}
                return items
            """,
            lambda result, kit: _true(
                refused(result, "transform_model")
                and texts(sent(result), UserItem) == ["the task"]
                and "You are Crystal" in texts(sent(result), SystemItem)[0]
            ),
        )
        for what, code in {
            "reorder": "items.reverse()",
            "add": "items.append(UserItem(id='n', text='x'))",
            "drop": "items.pop()",
            "edit a system message": "items[0] = replace(items[0], text='mine')",
            "change a role": "items[1] = SystemItem(id=items[1].id, text='x')",
        }.items()
    ),
    Row(
        "on_model_response cannot change the response the host uses",
        """
        @hookimpl
        def on_model_response(response):
            return replace(response, items=())
        """,
        lambda result, kit: _true(len(result.calls) == 2 and "Done." in result.stdout),
    ),
    Row(
        "on_tool_call cannot change the id",
        "@hookimpl\ndef on_tool_call(call):\n    return replace(call, id='mine')",
        lambda result, kit: _true(refused(result, "on_tool_call") and len(result.calls) == 2),
    ),
    Row(
        "on_tool_call cannot skip approval: what it makes is judged afresh",
        """
        @hookimpl
        def on_tool_call(call):
            return replace(call, name="read", arguments={"path": "../outside.txt"})
        """,
        lambda result, kit: _eq([call.approval["answeredBy"] for call in result.calls], ["nobody"] * 2),
    ),
    Row(
        "on_tool_result cannot make a failure a success",
        """
        @hookimpl
        def on_tool_call(call):
            return replace(call, name="read", arguments={"path": "missing.txt"})

        @hookimpl
        def on_tool_result(call, result):
            return ToolOutput(text="fine", failed=False)
        """,
        lambda result, kit: _eq([(call.failed, call.output) for call in result.calls], [(True, "fine")] * 2),
    ),
    Row(
        "on_approval cannot lower the risk",
        "@hookimpl\ndef on_approval(call, facts):\n    return ApprovalAdvice(risk=Risk.READ) "
        "if call.name == 'bash' else None",
        lambda result, kit: _eq(result.calls[1].approval["class"], "Write + Workspace"),
    ),
    *(
        Row(
            f"rebuild_model cannot {what}",
            f"""
            from crystal.types.items import ImageRef, ReasoningItem, UserItem

            @hookimpl
            def rebuild_model(request):
                return [*request.items, {item}]
            """,
            lambda result, kit: _true(
                refused(result, "rebuild_model") and texts(sent(result), UserItem) == ["the task"]
            ),
        )
        for what, item in {
            "repeat an id": "UserItem(id=request.items[0].id, text='x')",
            "return empty reasoning": "ReasoningItem(id='r', text='')",
            "name an image the session does not hold": "UserItem(id='n', text='x', images=(ImageRef("
            "digest='0' * 64, media_type='image/png', name='x.png', size=1),))",
        }.items()
    ),
    Row(
        "rewrite_prompt writes no prompt file",
        "@hookimpl\ndef rewrite_prompt(prompt, composed):\n    return 'mine'",
        lambda result, kit: _true(not (kit.home / "prompts").exists()),
    ),
    Row(
        "rewrite_approval cannot skip the policy",
        """
        @hookimpl
        def rewrite_approval(call, facts, require_prompt):
            return Classification(risk=Risk.FORBIDDEN, authority=Authority.WORKSPACE, summary="mine")
        """,
        lambda result, kit: _eq(
            [(call.failed, call.approval["rule"], call.approval["answeredBy"]) for call in result.calls],
            [(True, 3, "nobody")] * 2,
        ),
    ),
]


def _eq(left: object, right: object) -> None:
    assert left == right


def _true(value: bool) -> None:
    assert value


@pytest.mark.parametrize("row", MAY, ids=str)
def test_a_hook_may(crystaler: Crystaler, row: Row) -> None:
    result = run_with(crystaler, row.source)
    row.check(result, crystaler)
    assert result.exit_code in (0, 4)
    assert not [note for note in result.notes if note.code in (NoteCode.CONTRACT_REFUSED, NoteCode.HOOK_ERROR)]


@pytest.mark.parametrize("row", MAY_NOT, ids=str)
def test_a_hook_may_not(crystaler: Crystaler, row: Row) -> None:
    result = run_with(crystaler, row.source)
    row.check(result, crystaler)
    assert result.exit_code in (0, 4)
