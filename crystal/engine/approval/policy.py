"""The approval policy: one pure function. The first rule that applies decides; docs/approval.md has the numbers."""

from __future__ import annotations

from enum import Enum

from crystal.types._frozen import Frozen
from crystal.types.approval import (
    ApprovalMode,
    ApprovalOutcome,
    Authority,
    Classification,
    GrantScope,
    PolicyDecision,
    Risk,
)

ONCE_ONLY = (GrantScope.ONCE,)
EVERY_SCOPE = (GrantScope.ONCE, GrantScope.SESSION, GrantScope.PERSISTENT)


class Verdict(Enum):
    """What the reviewing model said; ``UNSURE`` stands for ask, junk and failure."""

    ALLOW = "allow"
    DENY = "deny"
    UNSURE = "unsure"


class PolicyInput(Frozen):
    """Everything the policy looks at.

    :param host: the classification before any hook or pre-classifier.
    :param final: the classification after them.
    :param require_prompt: a hook, a pre-classifier or a failed guard requires the operator.
    :param edits_files: the call is the built-in ``write`` or ``edit``.
    :param author_always: the author declared ``always`` and the source policy follows the author.
    :param granted: a session or persistent grant matches the call.
    :param allowed: an ``--allow`` of this process matches the call.
    :param grantable: the tool can say what a lasting grant of the call would be given for.
    :param storable: that may also be written down, since it holds no secret.
    :param floor: the class under which grants and author declarations still count besides Read or Write + Workspace.
    :param verdict: the reviewer's, when it has been asked.
    :param verdict_reason: the reviewer's own words, or what kept it from a verdict.
    """

    mode: ApprovalMode
    host: Classification
    final: Classification
    require_prompt: bool = False
    edits_files: bool = False
    author_always: bool = False
    granted: bool = False
    allowed: bool = False
    grantable: bool = True
    storable: bool = True
    floor: Classification | None = None
    verdict: Verdict | None = None
    verdict_reason: str = ""


def is_raised(host: Classification, final: Classification) -> bool:
    """Whether risk or authority went above the host's own classification."""
    return final.risk > host.risk or bool(final.authority & ~host.authority)


def decide(call: PolicyInput) -> PolicyDecision:
    """Decide about one call."""
    final = call.final
    reviews = call.mode in (ApprovalMode.REVIEW, ApprovalMode.AUDIT)
    raised = is_raised(call.host, final)
    in_workspace = final.authority == Authority.WORKSPACE
    ordinary = in_workspace and final.risk <= Risk.WRITE
    lasting = not raised and (ordinary or _within(final, call.floor))
    if call.verdict is Verdict.DENY:
        return PolicyDecision(outcome=ApprovalOutcome.REJECT, rule=1, reason=call.verdict_reason)
    must_ask = _must_ask(call)
    if must_ask is not None:
        if reviews and call.verdict is None:
            return PolicyDecision(outcome=ApprovalOutcome.REVIEW, rule=must_ask.rule, reason=must_ask.reason)
        return must_ask
    passing = (
        (4, final.risk is Risk.READ and in_workspace, "reading in the workspace"),
        (5, call.author_always and lasting, "the author's declaration, which the operator follows"),
        (6, call.granted and lasting, "a grant of the operator"),
        (
            7,
            call.mode in (ApprovalMode.EDIT, ApprovalMode.REVIEW) and call.edits_files and _is_plain_write(final),
            "editing in the workspace",
        ),
        (8, call.mode is ApprovalMode.FULL and _is_plain_write(final), "full approval of workspace changes"),
        (
            9,
            call.allowed
            and not raised
            and final.risk <= Risk.WRITE
            and not final.authority & ~(Authority.WORKSPACE | Authority.NETWORK),
            "an --allow of this process",
        ),
    )
    for rule, applies, reason in passing:
        if applies:
            return PolicyDecision(outcome=ApprovalOutcome.PASS, rule=rule, reason=reason)
    if reviews and call.verdict is None:
        return PolicyDecision(outcome=ApprovalOutcome.REVIEW, rule=10, reason="every other call is reviewed")
    if reviews and call.verdict is Verdict.ALLOW:
        return PolicyDecision(
            outcome=ApprovalOutcome.PASS, rule=10, reason=call.verdict_reason or "the reviewer allowed it"
        )
    return PolicyDecision(
        outcome=ApprovalOutcome.ASK,
        rule=10 if reviews else 11,
        reason=(reviews and call.verdict_reason) or f"{final.label} is asked about in this mode",
        offered=_offered(call) if lasting else ONCE_ONLY,
    )


def _offered(call: PolicyInput) -> tuple[GrantScope, ...]:
    if not call.grantable:
        return ONCE_ONLY
    return EVERY_SCOPE if call.storable else (GrantScope.ONCE, GrantScope.SESSION)


def _must_ask(call: PolicyInput) -> PolicyDecision | None:
    if call.require_prompt:
        return PolicyDecision(
            outcome=ApprovalOutcome.ASK, rule=2, reason="a prompt is required for this call", offered=ONCE_ONLY
        )
    if call.final.risk is Risk.FORBIDDEN:
        return PolicyDecision(outcome=ApprovalOutcome.ASK, rule=3, reason="the call is Forbidden", offered=ONCE_ONLY)
    return None


def _is_plain_write(final: Classification) -> bool:
    return final.risk <= Risk.WRITE and final.authority == Authority.WORKSPACE


def _within(final: Classification, floor: Classification | None) -> bool:
    return floor is not None and final.risk <= floor.risk and not final.authority & ~floor.authority
