"""Approval: hooks that make the host more careful about one call. They guard, so they fail closed."""

from __future__ import annotations

import dataclasses

from crystal.hookspecs._kinds import ContractRefused, JunkReturned, fold
from crystal.types.approval import ApprovalAdvice, ApprovalFacts, Risk
from crystal.types.tools import ToolCall


def accept_advice(previous: ApprovalFacts, replacement: object, facts: object) -> ApprovalFacts:
    """Return the facts with the advice applied.

    :raises JunkReturned: for something else than an :class:`ApprovalAdvice`, and for advice that lowers the risk but
        asks for the operator: refusing it must not lose the prompt.
    :raises ContractRefused: for other advice that lowers the risk.
    """
    if not isinstance(replacement, ApprovalAdvice):
        raise JunkReturned(f"is {type(replacement).__name__}, not ApprovalAdvice")
    if replacement.risk is not None and not isinstance(replacement.risk, Risk):
        raise JunkReturned(f"has {type(replacement.risk).__name__} as risk")
    if type(replacement.require_prompt) is not bool or not isinstance(replacement.reason, str):
        raise JunkReturned("has fields of the wrong types")
    classification = previous.classification
    if replacement.risk is not None and replacement.risk < classification.risk:
        lowers = f"lowers the risk from {classification.risk.label} to {replacement.risk.label}"
        raise JunkReturned(lowers) if replacement.require_prompt else ContractRefused(lowers)
    if replacement.risk is not None:
        classification = dataclasses.replace(classification, risk=replacement.risk)
    if replacement.reason:
        joined = "; ".join(part for part in (classification.summary, replacement.reason) if part)
        classification = dataclasses.replace(classification, summary=joined)
    return dataclasses.replace(
        previous,
        classification=classification,
        require_prompt=previous.require_prompt or replacement.require_prompt,
    )


@fold(
    "Risk only rises; a prompt may be required, never waived. An implementation that raises, returns junk or outlasts "
    "its limit makes this call require the operator.",
    folds="facts",
    accept=accept_advice,
    guard=True,
)
def on_approval(call: ToolCall, facts: ApprovalFacts) -> ApprovalAdvice | None:
    """Called when a call has been classified, before the policy decides about it.

    May raise the risk, require the operator and give a reason, which joins the summary the operator sees. May not lower
    the host's risk or let a call pass.

    :param call: the call as it would run.
    :param facts: the ``classification`` so far, the approval ``mode``, and ``require_prompt``.
    :return: advice, or ``None`` for none.
    """
