"""The approval policy over its whole input space, against the rules written a second time as a list."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crystal.engine.approval.policy import PolicyInput, Verdict, decide
from crystal.types.approval import ApprovalMode, ApprovalOutcome, Authority, Classification, GrantScope, Risk

HERE, OUTSIDE, NETWORK, ESCALATION = Authority
ONCE, SESSION, PERSISTENT = GrantScope
PASS, ASK, REVIEW, REJECT = ApprovalOutcome
MCP_FLOOR = Classification(risk=Risk.WRITE, authority=NETWORK)
AUTHORITIES = [Authority(bits) for bits in range(1, 16)]


class Case(NamedTuple):
    """One point of the space. ``raised`` is none, risk, or authority."""

    mode: str
    risk: int
    authority: Authority
    edits: bool
    granted: bool
    allowed: bool
    required: bool
    author: bool
    raised: str
    floor: bool
    verdict: Verdict | None
    grants: str


def ordinary(case: Case) -> bool:
    if case.raised != "no":
        return False
    if case.risk <= 1 and case.authority == HERE:
        return True
    return case.floor and case.risk <= 1 and case.authority == NETWORK


def judged(case: Case) -> bool:
    return case.mode in ("review", "audit")


def scopes(case: Case) -> tuple[GrantScope, ...]:
    if not ordinary(case) or case.grants == "none":
        return (ONCE,)
    return (ONCE, SESSION) if case.grants == "unwritten" else (ONCE, SESSION, PERSISTENT)


Outcome = tuple[ApprovalOutcome, tuple[GrantScope, ...]]
Rule = tuple[int, Callable[[Case], bool], Callable[[Case], Outcome]]


def passes(case: Case) -> Outcome:
    return PASS, ()


def asks_once(case: Case) -> Outcome:
    return (REVIEW, ()) if judged(case) and case.verdict is None else (ASK, (ONCE,))


def by_review(case: Case) -> Outcome:
    if case.verdict is None:
        return REVIEW, ()
    return passes(case) if case.verdict is Verdict.ALLOW else (ASK, scopes(case))


RULES: list[Rule] = [
    (1, lambda c: c.verdict is Verdict.DENY, lambda c: (REJECT, ())),
    (2, lambda c: c.required, asks_once),
    (3, lambda c: c.risk == 3, asks_once),
    (4, lambda c: c.risk == 0 and c.authority == HERE, passes),
    (5, lambda c: c.author and ordinary(c), passes),
    (6, lambda c: c.granted and ordinary(c), passes),
    (7, lambda c: c.mode in ("edit", "review") and c.edits and c.risk == 1 and c.authority == HERE, passes),
    (8, lambda c: c.mode == "full" and c.risk == 1 and c.authority == HERE, passes),
    (
        9,
        lambda c: c.allowed and c.raised == "no" and c.risk <= 1 and c.authority in (HERE, NETWORK, HERE | NETWORK),
        passes,
    ),
    (10, judged, by_review),
    (11, lambda c: True, lambda c: (ASK, scopes(c))),
]


def space() -> Iterator[Case]:
    """Every point; ``--allow`` and grants say the same with and without a verdict, so each mode has its verdicts."""
    flags = (False, True)
    for mode in ApprovalMode:
        verdicts = (None, *Verdict) if mode in (ApprovalMode.REVIEW, ApprovalMode.AUDIT) else (None,)
        yield from itertools.starmap(
            Case,
            itertools.product(
                (mode.value,), range(4), AUTHORITIES, flags, flags, flags, flags, flags,
                ("no", "risk", "authority"), flags, verdicts, ("all", "unwritten", "none"),
            ),
        )  # fmt: skip


def host_of(case: Case) -> Classification | None:
    """A host class below the final one as the case says; ``None`` where there is none."""
    if case.raised == "risk":
        return Classification(risk=Risk(case.risk - 1), authority=case.authority) if case.risk else None
    if case.raised == "authority":
        without = next((case.authority & ~one for one in case.authority if case.authority & ~one), None)
        return None if without is None else Classification(risk=Risk(case.risk), authority=without)
    return Classification(risk=Risk(case.risk), authority=case.authority)


def first_rule(case: Case) -> tuple[int, ApprovalOutcome, tuple[GrantScope, ...]]:
    number, _, outcome = next(rule for rule in RULES if rule[1](case))
    return number, *outcome(case)


def test_the_policy_is_the_table_at_every_point() -> None:
    hosts = {}
    rules_seen = set()
    points = 0
    for case in space():
        key = (case.risk, case.authority, case.raised)
        if key not in hosts:
            final = Classification(risk=Risk(case.risk), authority=case.authority)
            hosts[key] = (host_of(case), final)
        host, final = hosts[key]
        if host is None:
            continue
        decision = decide(
            PolicyInput(
                mode=ApprovalMode(case.mode),
                host=host,
                final=final,
                require_prompt=case.required,
                edits_files=case.edits,
                author_always=case.author,
                granted=case.granted,
                allowed=case.allowed,
                grantable=case.grants != "none",
                storable=case.grants == "all",
                floor=MCP_FLOOR if case.floor else None,
                verdict=case.verdict,
            )
        )
        expected = first_rule(case)
        assert (decision.rule, decision.outcome, decision.offered) == expected, case
        rules_seen.add(decision.rule)
        points += 1
    assert rules_seen == set(range(1, 12))
    assert points > 300_000
