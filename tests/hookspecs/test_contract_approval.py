"""``on_approval`` and ``rewrite_approval``: advice only makes the host more careful, a raw rewrite may do anything that
is a classification. The rules are stated here anew, from the words of their documentation."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.hookspecs.approval import accept_advice
from crystal.hookspecs.raw import accept_classification
from crystal.types.approval import ApprovalAdvice, ApprovalFacts, ApprovalMode, Authority, Classification, Risk
from crystal.types.notes import NoteCode
from crystal.types.tools import ToolCall
from tests.hookspecs.replies import JUNK, REFUSED, REPLYING, ReplyingHost, judge

CALL = ToolCall(id="c1", name="bash")
LADDER = (Risk.READ, Risk.WRITE, Risk.PRIVILEGED, Risk.FORBIDDEN)

risks = st.sampled_from(LADDER)
authorities = st.sampled_from([one | other for one in Authority for other in Authority])
summaries = st.sampled_from(("", "removes a file", "pushes"))
classifications = st.builds(
    Classification, risk=risks, authority=authorities, summary=summaries, require_prompt=st.booleans()
)
facts_so_far = st.builds(
    ApprovalFacts, classification=classifications, mode=st.sampled_from(ApprovalMode), require_prompt=st.booleans()
)
not_values = st.sampled_from((7, True, "Privileged", Risk.FORBIDDEN, {"risk": 2}, object(), []))


@st.composite
def advice(draw: st.DrawFn) -> Any:
    """What an ``on_approval`` hook might return; some of it is junk."""
    if draw(st.integers(0, 9)) == 0:
        return draw(not_values | classifications)
    given_advice = ApprovalAdvice(
        risk=draw(st.none() | risks), require_prompt=draw(st.booleans()), reason=draw(summaries)
    )
    if draw(st.integers(0, 9)) == 0:
        field, value = draw(
            st.sampled_from((("risk", 2), ("risk", "write"), ("require_prompt", 1), ("require_prompt", None)))
            | st.sampled_from((("reason", None), ("reason", b"x")))
        )
        return dataclasses.replace(given_advice, **{field: value})
    return given_advice


@st.composite
def rewrites(draw: st.DrawFn) -> Any:
    """What a ``rewrite_approval`` hook might return; some of it is junk."""
    if draw(st.integers(0, 9)) == 0:
        return draw(not_values | st.builds(ApprovalAdvice, risk=risks))
    rewrite = draw(classifications)
    if draw(st.integers(0, 9)) == 0:
        field, value = draw(
            st.sampled_from((("risk", 2), ("risk", None), ("authority", Authority(0)), ("authority", 1)))
            | st.sampled_from((("summary", None), ("require_prompt", 1)))
        )
        return dataclasses.replace(rewrite, **{field: value})
    return rewrite


def is_advice(value: Any) -> bool:
    """Say whether this is advice at all."""
    return (
        isinstance(value, ApprovalAdvice)
        and (value.risk is None or type(value.risk) is Risk)
        and type(value.require_prompt) is bool
        and type(value.reason) is str
    )


def is_classification(value: Any) -> bool:
    """Say whether this is a whole classification: a risk, at least one authority, a text and a yes or no."""
    return (
        isinstance(value, Classification)
        and type(value.risk) is Risk
        and type(value.authority) is Authority
        and any(member in value.authority for member in Authority)
        and type(value.summary) is str
        and type(value.require_prompt) is bool
    )


def advised(previous: ApprovalFacts, replacement: Any) -> Any:
    """The rule: risk only rises, a prompt may be required; a wish for a prompt is never lost with refused advice."""
    if not is_advice(replacement):
        return JUNK
    before = previous.classification
    risk = before.risk if replacement.risk is None else replacement.risk
    if LADDER.index(risk) < LADDER.index(before.risk):
        return JUNK if replacement.require_prompt else REFUSED
    reasons = [text for text in (before.summary, replacement.reason) if text]
    return ApprovalFacts(
        classification=Classification(
            risk=risk,
            authority=before.authority,
            summary="; ".join(reasons),
            require_prompt=before.require_prompt,
        ),
        mode=previous.mode,
        require_prompt=previous.require_prompt or replacement.require_prompt,
    )


def rewritten(previous: ApprovalFacts, replacement: Any) -> Any:
    """The rule: any classification, and its prompt requirement counts from then on."""
    if not is_classification(replacement):
        return JUNK
    return ApprovalFacts(classification=replacement, mode=previous.mode, require_prompt=replacement.require_prompt)


def with_one_requirement(facts: ApprovalFacts) -> ApprovalFacts:
    """The facts as a raw hook sees them: what is required is also said on the classification."""
    required = facts.require_prompt or facts.classification.require_prompt
    return ApprovalFacts(
        classification=dataclasses.replace(facts.classification, require_prompt=required),
        mode=facts.mode,
        require_prompt=required,
    )


@settings(max_examples=100, deadline=None)
@given(facts_so_far, advice())
def test_advice_is_accepted_exactly_when_it_makes_the_host_no_less_careful(
    previous: ApprovalFacts, replacement: Any
) -> None:
    assert judge(accept_advice, previous, replacement) == advised(previous, replacement)


@settings(max_examples=100, deadline=None)
@given(facts_so_far, rewrites())
def test_a_rewrite_is_accepted_exactly_when_it_is_a_classification(previous: ApprovalFacts, replacement: Any) -> None:
    assert judge(accept_classification, previous, replacement) == rewritten(previous, replacement)


@settings(max_examples=100, deadline=None)
@given(previous=facts_so_far, replacement=advice())
def test_the_host_takes_accepted_advice_and_distrusts_a_guard_that_answers_junk(
    replying: ReplyingHost, previous: ApprovalFacts, replacement: Any
) -> None:
    heard, notes = replying.run({"on_approval": replacement}, lambda host: host.hooks.on_approval(CALL, previous))
    outcome = advised(previous, replacement)
    refused = outcome in (JUNK, REFUSED)
    after = previous if refused else outcome
    assert replying.witness.shown["on_approval"] == after
    assert heard.facts == with_one_requirement(after)
    assert heard.failed_guards == ((REPLYING,) if outcome == JUNK else ())
    assert heard.changes == ((f"{REPLYING}: on_approval",) if after != previous else ())
    codes = {JUNK: [NoteCode.GUARD_FAILED], REFUSED: [NoteCode.CONTRACT_REFUSED]}
    assert [note.code for note in notes] == (codes[outcome] if refused else [])


@settings(max_examples=100, deadline=None)
@given(previous=facts_so_far, replacement=rewrites())
def test_the_host_takes_an_accepted_rewrite_and_distrusts_one_that_is_junk(
    replying: ReplyingHost, previous: ApprovalFacts, replacement: Any
) -> None:
    heard, notes = replying.run({"rewrite_approval": replacement}, lambda host: host.hooks.on_approval(CALL, previous))
    before = with_one_requirement(previous)
    outcome = rewritten(before, replacement)
    after = before if outcome == JUNK else outcome
    assert heard.facts == after
    assert replying.witness.shown["rewrite_approval"] == (after, after.require_prompt)
    assert heard.failed_guards == ((REPLYING,) if outcome == JUNK else ())
    assert heard.changes == ((f"{REPLYING}: rewrite_approval",) if after != before else ())
    assert [note.code for note in notes] == ([NoteCode.GUARD_FAILED] if outcome == JUNK else [])


@settings(max_examples=100, deadline=None)
@given(facts_so_far, st.lists(advice(), max_size=4))
def test_no_row_of_advice_ever_lowers_the_risk_or_waives_a_prompt(
    start: ApprovalFacts, given_advice: list[Any]
) -> None:
    facts = start
    for one in given_advice:
        outcome = judge(accept_advice, facts, one)
        facts = facts if outcome in (JUNK, REFUSED) else outcome
    assert facts.classification.risk >= start.classification.risk
    assert facts.classification.authority == start.classification.authority
    assert facts.require_prompt or not start.require_prompt
    assert facts.mode is start.mode


def test_the_approval_sees_a_lower_risk_from_a_raw_hook_and_never_from_advice() -> None:
    facts = ApprovalFacts(classification=Classification(risk=Risk.PRIVILEGED), mode=ApprovalMode.DEFAULT)
    assert judge(accept_advice, facts, ApprovalAdvice(risk=Risk.READ)) == REFUSED
    assert judge(accept_classification, facts, Classification(risk=Risk.READ)).classification.risk is Risk.READ


@pytest.mark.parametrize(
    "junk",
    [
        None,
        "Privileged",
        Risk.FORBIDDEN,
        ApprovalAdvice(),
        Classification(risk=2),  # type: ignore[arg-type]
        Classification(risk=None),  # type: ignore[arg-type]
        Classification(risk=Risk.READ, authority=Authority(0)),
        Classification(risk=Risk.READ, authority=1),  # type: ignore[arg-type]
        Classification(risk=Risk.READ, summary=None),  # type: ignore[arg-type]
        Classification(risk=Risk.READ, require_prompt=0),  # type: ignore[arg-type]
        Classification(risk=Risk.READ, require_prompt=None),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_what_is_no_whole_classification_is_junk(junk: Any) -> None:
    facts = ApprovalFacts(classification=Classification(risk=Risk.PRIVILEGED), mode=ApprovalMode.DEFAULT)
    assert judge(accept_classification, facts, junk) == JUNK


@pytest.mark.parametrize(
    "junk",
    [
        "careful",
        True,
        Risk.FORBIDDEN,
        Classification(risk=Risk.FORBIDDEN),
        ApprovalAdvice(risk=3),  # type: ignore[arg-type]
        ApprovalAdvice(risk="forbidden"),  # type: ignore[arg-type]
        ApprovalAdvice(require_prompt=1),  # type: ignore[arg-type]
        ApprovalAdvice(require_prompt=None),  # type: ignore[arg-type]
        ApprovalAdvice(reason=None),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_what_is_no_advice_is_junk(junk: Any) -> None:
    facts = ApprovalFacts(classification=Classification(risk=Risk.READ), mode=ApprovalMode.DEFAULT)
    assert judge(accept_advice, facts, junk) == JUNK
