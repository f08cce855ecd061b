"""The approval hooks guard, so they fail closed: one that fails makes the call require the operator."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from crystal.host.hooks import ApprovalHeard
from crystal.types._readonly import read_only
from crystal.types.approval import ApprovalAdvice, ApprovalFacts, ApprovalMode, Classification, Risk
from crystal.types.notes import NoteCode
from crystal.types.tools import ToolCall
from tests.host.hosts import SECRET, MadePlugin, SmallHost, full_name, make_host

GUARDS = ("on_approval", "rewrite_approval")
CALL = ToolCall(id="c1", name="bash", arguments=read_only({"command": SECRET}))
FACTS = ApprovalFacts(classification=Classification(risk=Risk.WRITE), mode=ApprovalMode.FULL)
WAIVING = Classification(risk=Risk.READ, summary="harmless", require_prompt=False)


class OwnError(BaseException):
    """A plugin's own exception, which is not an ``Exception``."""


def raises() -> Any:
    raise ValueError(SECRET)


def exits() -> Any:
    raise SystemExit(SECRET)


def raises_its_own() -> Any:
    raise OwnError(SECRET)


def raises_cancelled() -> Any:
    raise asyncio.CancelledError


async def raises_later() -> Any:
    await asyncio.sleep(0)
    raise ValueError(SECRET)


async def never_answers() -> Any:
    await asyncio.Event().wait()


def changes_its_arguments(call: Any) -> Any:
    call.arguments["command"] = "true"


def answers_a_word() -> Any:
    return SECRET


def answers_a_risk() -> Any:
    return Risk.FORBIDDEN


def answers_yes() -> Any:
    return True


def answers_in_a_generator() -> Any:
    yield ApprovalAdvice(require_prompt=True)


FAILURES: dict[Callable[..., Any], NoteCode] = {
    raises: NoteCode.HOOK_ERROR,
    exits: NoteCode.HOOK_ERROR,
    raises_its_own: NoteCode.HOOK_ERROR,
    raises_cancelled: NoteCode.HOOK_ERROR,
    raises_later: NoteCode.HOOK_ERROR,
    changes_its_arguments: NoteCode.HOOK_ERROR,
    never_answers: NoteCode.HOOK_TIMEOUT,
    answers_a_word: NoteCode.GUARD_FAILED,
    answers_a_risk: NoteCode.GUARD_FAILED,
    answers_yes: NoteCode.GUARD_FAILED,
    answers_in_a_generator: NoteCode.GUARD_FAILED,
}


def hear(host: SmallHost, facts: ApprovalFacts = FACTS) -> ApprovalHeard:
    """Ask the approval hooks about the call."""
    return asyncio.run(host.hooks.on_approval(CALL, facts))


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_guard_that_fails_requires_the_operator_and_changes_nothing(guard: str, failure: Callable[..., Any]) -> None:
    host = make_host(MadePlugin("Guard", **{guard: failure}), timeout=0.05)
    heard = hear(host)
    assert heard == ApprovalHeard(facts=FACTS, failed_guards=(full_name("Guard"),), changes=())
    assert host.noted() == [(FAILURES[failure], full_name("Guard"))]
    assert "requires the operator" in host.only_note().text
    assert guard in host.only_note().text
    assert SECRET not in host.only_note().text


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("failure", [raises, answers_yes, never_answers])
def test_no_other_hook_waives_what_a_failed_guard_requires(guard: str, failure: Callable[..., Any]) -> None:
    host = make_host(
        MadePlugin("First", rewrite_approval=lambda: WAIVING),
        MadePlugin("Guard", **{guard: failure}),
        MadePlugin("Last", on_approval=lambda: ApprovalAdvice(), rewrite_approval=lambda: WAIVING),
        timeout=0.05,
    )
    heard = hear(host)
    assert heard.facts.classification == WAIVING
    assert heard.failed_guards == (full_name("Guard"),)


def test_every_failed_guard_is_named_and_the_others_still_count() -> None:
    host = make_host(
        MadePlugin("A", on_approval=raises, rewrite_approval=answers_yes),
        MadePlugin("B", on_approval=lambda: ApprovalAdvice(risk=Risk.FORBIDDEN, reason="no")),
        MadePlugin("C", on_approval=raises_later),
    )
    heard = hear(host)
    assert heard.failed_guards == (full_name("A"), full_name("C"), full_name("A"))
    assert heard.facts.classification == Classification(risk=Risk.FORBIDDEN, summary="no")
    assert heard.changes == (f"{full_name('B')}: on_approval",)


def test_a_guard_that_has_nothing_to_say_is_no_failure() -> None:
    host = make_host(MadePlugin("A", on_approval=lambda: None, rewrite_approval=lambda: None))
    assert hear(host) == ApprovalHeard(facts=FACTS, failed_guards=(), changes=())
    assert host.notes.all == ()


def test_advice_that_lowers_the_risk_is_refused_and_is_no_failure_of_the_guard() -> None:
    host = make_host(MadePlugin("A", on_approval=lambda: ApprovalAdvice(risk=Risk.READ)))
    assert hear(host) == ApprovalHeard(facts=FACTS, failed_guards=(), changes=())
    assert host.noted() == [(NoteCode.CONTRACT_REFUSED, full_name("A"))]


def test_advice_that_lowers_the_risk_but_wants_a_prompt_requires_the_operator() -> None:
    host = make_host(MadePlugin("A", on_approval=lambda: ApprovalAdvice(risk=Risk.READ, require_prompt=True)))
    heard = hear(host)
    assert heard.facts.classification.risk is Risk.WRITE
    assert heard.failed_guards == (full_name("A"),)
    assert "requires the operator" in host.only_note().text


def test_a_raw_hook_that_replaces_only_the_summary_keeps_a_required_prompt() -> None:
    host = make_host(
        MadePlugin("Careful", on_approval=lambda: ApprovalAdvice(require_prompt=True)),
        MadePlugin(
            "Wording", rewrite_approval=lambda facts: dataclasses.replace(facts.classification, summary="in short")
        ),
    )
    heard = hear(host)
    assert heard.facts.require_prompt is True
    assert heard.facts.classification == Classification(risk=Risk.WRITE, summary="in short", require_prompt=True)


def test_a_raw_hook_may_clear_a_prompt_that_advice_required() -> None:
    host = make_host(
        MadePlugin("Careful", on_approval=lambda: ApprovalAdvice(require_prompt=True)),
        MadePlugin("Waiving", rewrite_approval=lambda: WAIVING),
    )
    heard = hear(host)
    assert (heard.facts.require_prompt, heard.failed_guards) == (False, ())
    assert heard.changes == (f"{full_name('Careful')}: on_approval", f"{full_name('Waiving')}: rewrite_approval")


def test_raw_hooks_see_what_every_earlier_hook_required() -> None:
    seen: list[bool] = []
    host = make_host(
        MadePlugin("Watching", rewrite_approval=lambda require_prompt: seen.append(require_prompt)),
        MadePlugin("Raising", rewrite_approval=lambda: Classification(risk=Risk.READ, require_prompt=True)),
        MadePlugin("Again", rewrite_approval=lambda require_prompt: seen.append(require_prompt)),
    )
    hear(host)
    assert seen == [False, True]


@pytest.mark.parametrize("answer", [ApprovalAdvice(), ApprovalAdvice(risk=Risk.WRITE)])
def test_advice_that_changes_nothing_is_not_reported_as_a_change(answer: ApprovalAdvice) -> None:
    assert hear(make_host(MadePlugin("A", on_approval=lambda: answer))).changes == ()
