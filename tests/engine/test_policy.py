"""The approval policy: each rule as a row, and what holds over all inputs."""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.approval.policy import PolicyInput, Verdict, decide, is_raised
from crystal.types.approval import (
    ApprovalMode,
    ApprovalOutcome,
    Authority,
    Classification,
    GrantScope,
    Risk,
)

PASS, ASK, REVIEW, REJECT = (
    ApprovalOutcome.PASS,
    ApprovalOutcome.ASK,
    ApprovalOutcome.REVIEW,
    ApprovalOutcome.REJECT,
)
READ, WRITE, PRIVILEGED, FORBIDDEN = Risk.READ, Risk.WRITE, Risk.PRIVILEGED, Risk.FORBIDDEN
WORKSPACE, OUTSIDE, NETWORK, ESCALATION = (
    Authority.WORKSPACE,
    Authority.OUTSIDE_WORKSPACE,
    Authority.NETWORK,
    Authority.PRIVILEGED_ESCALATION,
)
ONCE = (GrantScope.ONCE,)
EVERY = (GrantScope.ONCE, GrantScope.SESSION, GrantScope.PERSISTENT)
FLOOR = Classification(risk=WRITE, authority=NETWORK)


def call(
    mode: str = "default",
    risk: Risk = WRITE,
    authority: Authority = WORKSPACE,
    host: Classification | None = None,
    **facts: Any,
) -> PolicyInput:
    final = Classification(risk=risk, authority=authority)
    return PolicyInput(mode=ApprovalMode(mode), host=host or final, final=final, **facts)


def lower(risk: Risk, authority: Authority = WORKSPACE) -> Classification:
    return Classification(risk=risk, authority=authority)


ROWS = [
    # 1: the reviewer denied
    ("1 denied", call("review", verdict=Verdict.DENY), REJECT, 1, ()),
    ("1 denied although a prompt is required", call("audit", require_prompt=True, verdict=Verdict.DENY), REJECT, 1, ()),
    ("1 denied although Forbidden", call("review", FORBIDDEN, verdict=Verdict.DENY), REJECT, 1, ()),
    # 2: a prompt is required
    ("2 for a read", call("default", READ, require_prompt=True), ASK, 2, ONCE),
    ("2 in full", call("full", require_prompt=True), ASK, 2, ONCE),
    ("2 over a grant", call(require_prompt=True, granted=True), ASK, 2, ONCE),
    ("2 over --allow", call(require_prompt=True, allowed=True), ASK, 2, ONCE),
    ("2 over the author", call(require_prompt=True, author_always=True), ASK, 2, ONCE),
    ("2 in edit for write", call("edit", require_prompt=True, edits_files=True), ASK, 2, ONCE),
    ("2 is reviewed first", call("review", require_prompt=True), REVIEW, 2, ()),
    ("2 asks although the reviewer allows", call("review", require_prompt=True, verdict=Verdict.ALLOW), ASK, 2, ONCE),
    ("2 asks when the reviewer is unsure", call("audit", require_prompt=True, verdict=Verdict.UNSURE), ASK, 2, ONCE),
    # 3: Forbidden
    ("3 in default", call("default", FORBIDDEN), ASK, 3, ONCE),
    (
        "3 in full with everything",
        call("full", FORBIDDEN, granted=True, allowed=True, author_always=True),
        ASK,
        3,
        ONCE,
    ),
    ("3 is reviewed first", call("audit", FORBIDDEN), REVIEW, 3, ()),
    ("3 asks although the reviewer allows", call("review", FORBIDDEN, verdict=Verdict.ALLOW), ASK, 3, ONCE),
    # 4: Read + Workspace
    *((f"4 in {mode.value}", call(mode.value, READ), PASS, 4, ()) for mode in ApprovalMode),
    ("4 although raised", call("default", READ, host=lower(READ, NETWORK)), PASS, 4, ()),
    ("4 not outside", call("default", READ, OUTSIDE), ASK, 11, ONCE),
    ("4 not outside as well", call("default", READ, WORKSPACE | OUTSIDE), ASK, 11, ONCE),
    ("4 not by network", call("full", READ, NETWORK), ASK, 11, ONCE),
    # 5: the author's declaration
    ("5", call(author_always=True), PASS, 5, ()),
    ("5 not raised", call(author_always=True, host=lower(READ)), ASK, 11, ONCE),
    ("5 not Privileged", call("default", PRIVILEGED, author_always=True), ASK, 11, ONCE),
    ("5 not outside", call("default", WRITE, WORKSPACE | OUTSIDE, author_always=True), ASK, 11, ONCE),
    ("5 not by network", call("default", WRITE, NETWORK, author_always=True), ASK, 11, ONCE),
    ("5 within the floor", call("default", WRITE, NETWORK, author_always=True, floor=FLOOR), PASS, 5, ()),
    # 6: a grant
    ("6", call(granted=True), PASS, 6, ()),
    ("6 not raised", call(granted=True, host=lower(READ)), ASK, 11, ONCE),
    (
        "6 not raised by authority",
        call("default", WRITE, WORKSPACE | OUTSIDE, lower(WRITE), granted=True),
        ASK,
        11,
        ONCE,
    ),
    ("6 not Privileged", call("default", PRIVILEGED, granted=True), ASK, 11, ONCE),
    ("6 not outside", call("default", READ, OUTSIDE, granted=True), ASK, 11, ONCE),
    ("6 within the floor", call("default", WRITE, NETWORK, granted=True, floor=FLOOR), PASS, 6, ()),
    ("6 not above the floor", call("default", PRIVILEGED, NETWORK, granted=True, floor=FLOOR), ASK, 11, ONCE),
    ("6 not beside the floor", call("default", WRITE, NETWORK | OUTSIDE, granted=True, floor=FLOOR), ASK, 11, ONCE),
    # 7: built-in write and edit
    ("7 in edit", call("edit", edits_files=True), PASS, 7, ()),
    ("7 in review", call("review", edits_files=True), PASS, 7, ()),
    ("7 not in default", call("default", edits_files=True), ASK, 11, EVERY),
    ("7 not in audit", call("audit", edits_files=True), REVIEW, 10, ()),
    ("7 not for other tools", call("edit"), ASK, 11, EVERY),
    ("7 not outside", call("edit", WRITE, WORKSPACE | OUTSIDE, edits_files=True), ASK, 11, ONCE),
    ("7 not Privileged", call("edit", PRIVILEGED, edits_files=True), ASK, 11, ONCE),
    # 8: Full
    ("8", call("full"), PASS, 8, ()),
    ("8 not Privileged", call("full", PRIVILEGED), ASK, 11, ONCE),
    ("8 not by network", call("full", WRITE, NETWORK), ASK, 11, ONCE),
    ("8 not by network as well", call("full", WRITE, WORKSPACE | NETWORK), ASK, 11, ONCE),
    ("8 not outside", call("full", WRITE, OUTSIDE), ASK, 11, ONCE),
    # 9: --allow
    ("9", call(allowed=True), PASS, 9, ()),
    ("9 by network", call("default", WRITE, NETWORK, allowed=True), PASS, 9, ()),
    ("9 by network in the workspace", call("default", WRITE, WORKSPACE | NETWORK, allowed=True), PASS, 9, ()),
    ("9 reads by network", call("default", READ, NETWORK, allowed=True), PASS, 9, ()),
    ("9 not Privileged", call("default", PRIVILEGED, allowed=True), ASK, 11, ONCE),
    ("9 not outside", call("default", WRITE, OUTSIDE, allowed=True), ASK, 11, ONCE),
    ("9 not with escalation", call("default", WRITE, ESCALATION, allowed=True), ASK, 11, ONCE),
    ("9 not raised", call("default", WRITE, NETWORK, lower(WRITE), allowed=True), ASK, 11, ONCE),
    ("9 before the reviewer", call("audit", allowed=True), PASS, 9, ()),
    # 10: the reviewer
    ("10 in review", call("review"), REVIEW, 10, ()),
    ("10 in audit for Privileged", call("audit", PRIVILEGED), REVIEW, 10, ()),
    ("10 allowed", call("review", PRIVILEGED, NETWORK, verdict=Verdict.ALLOW), PASS, 10, ()),
    ("10 unsure", call("audit", verdict=Verdict.UNSURE), ASK, 10, EVERY),
    ("10 unsure, raised", call("audit", host=lower(READ), verdict=Verdict.UNSURE), ASK, 10, ONCE),
    ("10 unsure, Privileged", call("review", PRIVILEGED, verdict=Verdict.UNSURE), ASK, 10, ONCE),
    # 11: ask
    ("11 in default", call(), ASK, 11, EVERY),
    ("11 in edit", call("edit"), ASK, 11, EVERY),
    ("11 raised", call(host=lower(READ)), ASK, 11, ONCE),
    ("11 Privileged", call("full", PRIVILEGED), ASK, 11, ONCE),
    ("11 within the floor", call("default", WRITE, NETWORK, floor=FLOOR), ASK, 11, EVERY),
]


@pytest.mark.parametrize(
    ("given_call", "outcome", "rule", "offered"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_first_rule_that_applies_decides(
    given_call: PolicyInput, outcome: ApprovalOutcome, rule: int, offered: tuple[GrantScope, ...]
) -> None:
    decision = decide(given_call)
    assert (decision.outcome, decision.rule, decision.offered) == (outcome, rule, offered)


def test_a_reviewers_denial_carries_its_reason() -> None:
    denied = decide(call("review", verdict=Verdict.DENY, verdict_reason="not what was asked for"))
    assert denied.reason == "not what was asked for"


@pytest.mark.parametrize(
    ("host", "final", "raised"),
    [
        (lower(WRITE), lower(WRITE), False),
        (lower(WRITE), lower(READ), False),
        (lower(READ), lower(WRITE), True),
        (lower(WRITE), lower(WRITE, WORKSPACE | NETWORK), True),
        (lower(WRITE, WORKSPACE | NETWORK), lower(WRITE, NETWORK), False),
        (lower(WRITE, NETWORK), lower(READ, OUTSIDE), True),
    ],
)
def test_raised_is_more_risk_or_a_new_authority(host: Classification, final: Classification, raised: bool) -> None:
    assert is_raised(host, final) is raised


authorities = st.sets(st.sampled_from(list(Authority)), min_size=1).map(
    lambda members: functools.reduce(operator.or_, members)
)
classifications = st.builds(Classification, risk=st.sampled_from(Risk), authority=authorities)
calls = st.builds(
    PolicyInput,
    mode=st.sampled_from(ApprovalMode),
    host=classifications,
    final=classifications,
    require_prompt=st.booleans(),
    edits_files=st.booleans(),
    author_always=st.booleans(),
    granted=st.booleans(),
    allowed=st.booleans(),
    floor=st.sampled_from([None, FLOOR]),
    verdict=st.sampled_from([None, *Verdict]),
)
_BY_MODE = {
    ApprovalMode.DEFAULT: {4, 5, 6, 9},
    ApprovalMode.EDIT: {4, 5, 6, 7, 9},
    ApprovalMode.REVIEW: {4, 5, 6, 7, 9, 10},
    ApprovalMode.AUDIT: {4, 5, 6, 9, 10},
    ApprovalMode.FULL: {4, 5, 6, 8, 9},
}


@given(calls)
@settings(max_examples=100, deadline=None)
def test_what_must_be_asked_never_passes(given_call: PolicyInput) -> None:
    forbidden = decide(dataclasses.replace(given_call, final=lower(FORBIDDEN, given_call.final.authority)))
    required = decide(dataclasses.replace(given_call, require_prompt=True))
    for decision in (forbidden, required):
        assert decision.outcome is not PASS
        assert decision.offered in ((), ONCE)


@given(calls)
@settings(max_examples=100, deadline=None)
def test_a_mode_lets_calls_pass_by_its_own_rules_only(given_call: PolicyInput) -> None:
    decision = decide(given_call)
    if decision.outcome is not PASS:
        return
    assert decision.rule in _BY_MODE[given_call.mode]
    if decision.rule != 10:
        assert given_call.final.risk <= WRITE
        assert not given_call.final.authority & (OUTSIDE | ESCALATION)
    if is_raised(given_call.host, given_call.final):
        assert decision.rule in (4, 7, 8, 10)
    if given_call.mode is ApprovalMode.DEFAULT and decision.rule != 4:
        assert given_call.author_always or given_call.granted or given_call.allowed


@given(calls)
@settings(max_examples=100, deadline=None)
def test_lasting_scopes_are_offered_only_for_an_ordinary_call(given_call: PolicyInput) -> None:
    decision = decide(given_call)
    if decision.outcome is not ASK:
        assert decision.offered == ()
        return
    assert decision.offered in (ONCE, EVERY)
    if decision.offered == EVERY:
        assert not is_raised(given_call.host, given_call.final)
        assert given_call.final.risk <= WRITE
        assert given_call.final.authority == WORKSPACE or given_call.floor is not None


@given(calls)
@settings(max_examples=100, deadline=None)
def test_only_a_reviewing_mode_sends_to_the_reviewer_and_only_once(given_call: PolicyInput) -> None:
    decision = decide(given_call)
    if decision.outcome is REVIEW:
        assert given_call.mode in (ApprovalMode.REVIEW, ApprovalMode.AUDIT)
        assert given_call.verdict is None
    if decision.outcome is REJECT:
        assert given_call.verdict is Verdict.DENY
