"""A broken hook costs itself and nothing else; a broken guard makes its call require the operator."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from crystal.engine.answers import Approve
from crystal.hookspecs import HookKind, hookimpl
from crystal.hookspecs.pending import PENDING
from crystal.host.manager import read_specifications
from crystal.testing.crystaler import Crystaler
from crystal.testing.result import RunResult
from crystal.types.commands import StatusField
from crystal.types.events import NoteAdded, ToolCallFinished
from crystal.types.notes import Severity
from tests.engine.runs import DONE, Operator, bash, calls, kinds, no_wait, of, read

SPECIFICATIONS = read_specifications()
LIVE = sorted(set(SPECIFICATIONS) - set(PENDING))
GUARDS = [name for name in LIVE if SPECIFICATIONS[name].declaration.guard]
OTHERS = [name for name in LIVE if name not in GUARDS]

FAULTS = {
    "raises": "raise ValueError('odd')",
    "exits": "raise SystemExit(3)",
    "own": "raise Own('odd')",
    "cancels": "import asyncio; raise asyncio.CancelledError",
    "junk": "return Junk()",
    "sly": "return Sly()",
    "mutates": "setattr({first}, next(iter(type({first}).__dict__)), None)",
    "async raises": "raise ValueError('odd')",
    "async exits": "raise SystemExit(3)",
    "async cancels": "import asyncio; raise asyncio.CancelledError",
    "async slow": "import asyncio; await asyncio.sleep(30)",
}


class Sly:
    """A result that ends the process when any attribute of it is looked at, its class included."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(3)

    def __eq__(self, other: object) -> bool:
        raise SystemExit(3)

    __hash__ = object.__hash__


def make_plugin(hook: str, body: str, name: str = "faulty", is_async: bool = False) -> object:
    """Return a plugin whose implementation of ``hook`` has that body."""
    arguments = SPECIFICATIONS[hook].arguments
    scope: dict[str, Any] = {"Own": type("Own", (BaseException,), {}), "Junk": type("Junk", (), {}), "Sly": Sly}
    line = body.format(first=arguments[0] if arguments else "self")
    definition = f"def {hook}({', '.join(('self', *arguments))}):\n    {line}"
    exec(f"async {definition}" if is_async else definition, scope)
    # A sink is handed out only to a plugin with a status field of its own.
    field = StatusField(name=name.replace(" ", "-"), description="")
    fields = {"contribute_status_fields": hookimpl(lambda self: [field])} if hook == "attach_status" else {}
    return type("Faulty", (), {"name": name, hook: hookimpl(scope[hook]), **fields})


def faults_of(hook: str) -> list[str]:
    """The faults that hook can have: without arguments there is nothing to change."""
    return [fault for fault in FAULTS if SPECIFICATIONS[hook].arguments or fault != "mutates"]


def prepare(crystaler: Crystaler) -> None:
    crystaler.makeconfig(hookTimeoutSeconds=0.05)
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([{"text": "Looking.", **calls(read("a.txt"), bash("echo hi"))}, DONE])


def outcome(result: RunResult) -> dict[str, Any]:
    """Everything of a run that must not differ: what was said, sent, called, shown and answered."""
    return {
        "exit": result.exit_code,
        "events": kinds(event for event in result.events if not isinstance(event, NoteAdded)),
        "calls": [
            (event.name, dict(event.arguments), event.output, event.failed, event.approval)
            for event in of(result, ToolCallFinished)
        ],
        "sent": [
            [(type(item).__name__, getattr(item, "text", ""), getattr(item, "arguments", "")) for item in request.items]
            for request in result.requests
        ],
        "tools": [[tool.name for tool in request.tools] for request in result.requests],
        "shown": result.stdout.split("\n")[1:],
    }


@pytest.mark.parametrize("hook", OTHERS)
def test_a_run_with_a_broken_hook_is_the_run_without_it(crystaler: Crystaler, hook: str) -> None:
    prepare(crystaler)
    expected = outcome(crystaler.run("look", "--approval", "full"))
    assert expected["exit"] == 0
    faults = faults_of(hook)
    for fault in faults:
        crystaler.makeplugin(fault, make_plugin(hook, FAULTS[fault], fault, is_async="async" in fault))
    called: list[str] = []
    later = make_plugin(hook, "called.append(1)", "later")
    getattr(later, hook).__globals__["called"] = called
    crystaler.makeplugin("later", later)
    result = crystaler.run("look", "--approval", "full")
    assert outcome(result) == expected
    assert called, "the hook of the next plugin was not called"
    ignored = {"junk", "sly"} if SPECIFICATIONS[hook].declaration.kind is HookKind.NOTIFY else set()
    notes = [note for note in result.notes if note.severity is not Severity.INFO]
    assert {note.source.rpartition("/")[2] for note in notes} == set(faults) - ignored
    for note in notes:
        assert note.source in note.text
        assert f"'{hook}'" in note.text


@pytest.mark.parametrize("fault", list(FAULTS))
@pytest.mark.parametrize("hook", GUARDS)
def test_a_broken_guard_denies_without_an_operator(crystaler: Crystaler, hook: str, fault: str) -> None:
    prepare(crystaler)
    crystaler.makeplugin("faulty", make_plugin(hook, FAULTS[fault], is_async="async" in fault))
    result = crystaler.run("look", "--approval", "full")
    assert result.exit_code == 4
    assert [call.failed for call in result.calls] == [True, True]
    for call in result.calls:
        assert call.approval is not None
        assert call.approval["rule"] == 2
    assert "plugin:test/faulty" in result.stderr


@pytest.mark.parametrize("fault", ["raises", "exits", "junk", "async slow"])
@pytest.mark.parametrize("hook", GUARDS)
def test_no_later_hook_clears_what_a_broken_guard_requires(crystaler: Crystaler, hook: str, fault: str) -> None:
    prepare(crystaler)
    crystaler.makeplugin("faulty", make_plugin(hook, FAULTS[fault], is_async="async" in fault))
    crystaler.makeplugin("waives", WAIVES)
    result = crystaler.run("look", "--allow", "bash", "--approval", "full")
    assert result.exit_code == 4
    assert [call.failed for call in result.calls] == [True, True]


WAIVES = """
from crystal import Classification, Risk, hookimpl

@hookimpl(trylast=True)
def rewrite_approval(call, facts, require_prompt):
    return Classification(risk=Risk.READ, summary="harmless", require_prompt=False)
"""


def test_an_operator_can_let_the_call_of_a_broken_guard_run(crystaler: Crystaler) -> None:
    prepare(crystaler)
    crystaler.makeplugin("faulty", make_plugin("on_approval", FAULTS["raises"]))
    result = crystaler.run("look", operator=Operator(Approve()))
    assert result.exit_code == 0
    assert [call.failed for call in result.calls] == [False, False]


def test_a_working_rewrite_decides_together_with_the_policy(crystaler: Crystaler) -> None:
    prepare(crystaler)
    assert crystaler.run("look").exit_code == 4
    crystaler.makeplugin("waives", WAIVES)
    result = crystaler.run("look", "--format", "json")
    assert result.exit_code == 0
    approval = [line["approval"] for line in result.lines if line["type"] == "tool_use"][1]
    assert (approval["hostClass"]["risk"], approval["class"]["risk"], approval["rule"]) == ("Write", "Read", 4)
    assert approval["changes"] == ["plugin:test/waives: rewrite_approval"]


def test_advice_that_lowers_the_risk_is_refused_and_the_class_stands(crystaler: Crystaler) -> None:
    prepare(crystaler)
    crystaler.makeplugin(
        "lowers",
        """
        from crystal import ApprovalAdvice, Risk, hookimpl

        @hookimpl
        def on_approval(call, facts):
            return ApprovalAdvice(risk=Risk.READ)
        """,
    )
    result = crystaler.run("look")
    assert result.exit_code == 4
    assert [call.failed for call in result.calls] == [False, True]
    assert "contract-refused" in result.note_codes


def test_a_required_prompt_is_asked_for_although_the_mode_is_full(crystaler: Crystaler) -> None:
    prepare(crystaler)
    crystaler.makeplugin(
        "careful",
        """
        from crystal import ApprovalAdvice, hookimpl

        @hookimpl
        def on_approval(call, facts):
            return ApprovalAdvice(require_prompt=call.name == "bash", reason="I am careful")
        """,
    )
    result = crystaler.run("look", "--approval", "full", "--format", "json")
    assert result.exit_code == 4
    fine, denied = [line for line in result.lines if line["type"] == "tool_use"]
    assert (fine["status"], denied["status"], denied["approval"]["rule"]) == ("success", "failure", 2)
    assert "I am careful" in denied["approval"]["class"]["summary"]


CLASSIFIER = """
from crystal import Risk, ToolContribution, ToolDefinition, ToolOutput, hookimpl

class Own(BaseException):
    pass

class Acme:
    definition = ToolDefinition(name="acme", description="A sample.", schema={{"type": "object"}})

    async def invoke(self, call, context):
        return ToolOutput(text="ran")

class Classifier:
    def classify(self, call, facts):
        {classifier}

def pre_classify(call, classification):
    {pre_classifier}

@hookimpl
def contribute_tools():
    return [ToolContribution(name="acme", tool=Acme(), risk={risk}, pre_classifier=pre_classify)]

@hookimpl
def contribute_classifiers():
    return [Classifier()]
"""
BROKEN_CLASSIFIERS = ["raise ValueError('odd')", "raise SystemExit(3)", "raise Own('odd')", "return 'Read'"]


@pytest.mark.parametrize("body", BROKEN_CLASSIFIERS)
@pytest.mark.parametrize("where", ["classifier", "pre_classifier"])
def test_a_broken_classifier_makes_its_call_require_the_operator(crystaler: Crystaler, where: str, body: str) -> None:
    bodies = {"classifier": "return None", "pre_classifier": "return None", where: body}
    risk = "Risk.READ" if where == "pre_classifier" else "None"
    crystaler.makeplugin("Acme", CLASSIFIER.format(**bodies, risk=risk))
    crystaler.script([calls(("acme", {}), ("todoread", {})), DONE])
    result = crystaler.run("do", "--allow", "acme", "--approval", "full")
    assert result.exit_code == 4, result.stderr
    assert [call.failed for call in result.calls] == [True, False]
    assert "plugin:test/Acme" in result.stderr


def test_a_hook_that_swallows_its_cancellation_cannot_hold_the_turn(crystaler: Crystaler) -> None:
    prepare(crystaler)
    body = (
        "import asyncio\n"
        "    while True:\n"
        "        try: await asyncio.sleep(30)\n"
        "        except asyncio.CancelledError:\n"
        "            if tries: break\n"
        "            tries.append(1)"
    )
    plugin = make_plugin("on_turn_started", body, is_async=True)
    plugin.on_turn_started.__globals__["tries"] = []  # type: ignore[attr-defined]
    crystaler.makeplugin("stubborn", plugin)
    result = crystaler.run("look", "--approval", "full")
    assert result.exit_code == 0
    assert "hook-timeout" in result.note_codes


def test_a_plain_hook_over_the_limit_is_named_and_its_result_counts(crystaler: Crystaler) -> None:
    prepare(crystaler)
    crystaler.makeconfig(hookTimeoutSeconds=0.001)
    crystaler.makeplugin("slow", make_plugin("on_user_message", "return 'x' if sum(range(10**6)) else None"))
    result = crystaler.run("look", "--approval", "full")
    assert "hook-slow" in result.note_codes
    assert result.requests[0].items[-1].text == "x"  # type: ignore[union-attr]


def test_what_plugins_and_tools_print_stays_out_of_the_formats(crystaler: Crystaler) -> None:
    prepare(crystaler)
    crystaler.makeplugin("loud", make_plugin("on_tool_call", "import sys; print('LOUD'); sys.stdout.write('LOUD')"))
    for form in ("default", "json", "final"):
        assert "LOUD" not in crystaler.run("look", "--approval", "full", "--format", form).stdout


def test_a_hook_that_changes_the_directory_moves_no_call(
    crystaler: Crystaler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    crystaler.makefile("a.txt", "hello\n")
    crystaler.makeplugin("mover", make_plugin("on_turn_started", "import os; os.chdir('/')"))
    crystaler.script([calls(read("a.txt"), bash("pwd; touch here")), DONE])
    result = crystaler.run("look", "--approval", "full", sleep=no_wait)
    assert os.getcwd() == "/"
    assert "hello" in result.calls[0].output
    assert str(crystaler.workspace.resolve()) in result.calls[1].output
    assert (crystaler.workspace / "here").exists()


def test_hooks_change_what_they_may(crystaler: Crystaler) -> None:
    crystaler.makefile("b.txt", "the other file\n")
    crystaler.makeplugin(
        "Acme",
        """
        import dataclasses
        from crystal import ToolOutput, hookimpl

        @hookimpl
        def on_user_message(message):
            return message.text + " please"

        @hookimpl
        def on_prompt(prompt):
            return "House rule: be brief."

        @hookimpl
        def on_tool_call(call):
            return dataclasses.replace(call, arguments={**call.arguments, "path": "b.txt"})

        @hookimpl
        def on_tool_result(call, result):
            return ToolOutput(text=result.text.upper(), failed=True)
        """,
    )
    crystaler.script([calls(read("a.txt")), DONE])
    result = crystaler.run("look")
    system, user, _, answer = result.requests[1].items
    assert "House rule: be brief." in system.text  # type: ignore[union-attr]
    assert user.text == "look please"  # type: ignore[union-attr]
    assert "THE OTHER FILE" in answer.text  # type: ignore[union-attr]
    assert not answer.failed  # type: ignore[union-attr]
    assert dict(result.calls[0].arguments) == {"path": "b.txt"}


class SlyText(str):
    """A text whose own methods end the process."""

    def _ends(self, *_: object, **__: object) -> Any:
        raise SystemExit(3)

    __eq__ = __ne__ = __len__ = __add__ = __str__ = __iter__ = __contains__ = strip = encode = split = _ends
    __hash__ = str.__hash__


def test_a_text_of_a_class_of_the_plugins_own_is_taken_as_plain_text(crystaler: Crystaler) -> None:
    def on_prompt(self: object) -> str:
        return SlyText("Say it plainly.")

    def on_user_message(self: object, message: Any) -> str:
        return SlyText("look there")

    hooks = {"on_prompt": hookimpl(on_prompt), "on_user_message": hookimpl(on_user_message)}
    prepare(crystaler)
    crystaler.makeplugin("sly", type("Plugin", (), {"name": SlyText("sly"), **hooks}))
    result = crystaler.run("look", "--approval", "full")
    assert result.exit_code == 0
    assert [note for note in result.notes if note.severity is not Severity.INFO] == []
    assert "Say it plainly." in result.requests[0].items[0].text  # type: ignore[union-attr]
    assert result.requests[0].items[-1].text == "look there"  # type: ignore[union-attr]
