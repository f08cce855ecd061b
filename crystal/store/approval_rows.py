"""The decision about a call as JSON text and back. Pure; the words are those of the enums, for people to read."""

from __future__ import annotations

import json
from typing import Any

from crystal.store.item_rows import UnreadableRow
from crystal.types.approval import (
    ApprovalOutcome,
    ApprovalRecord,
    Authority,
    Classification,
    GrantScope,
    PolicyDecision,
    Risk,
)

_AUTHORITIES = tuple((member.value, (member.name or "").lower()) for member in Authority)


def encode_decision(record: ApprovalRecord) -> str:
    """Return the record as one JSON object."""
    return json.dumps(
        {
            "host": _classification(record.host),
            "final": _classification(record.final),
            "outcome": record.decision.outcome.value,
            "rule": record.decision.rule,
            "reason": record.decision.reason,
            "offered": [scope.value for scope in record.decision.offered],
            "approved": record.approved,
            "answeredBy": record.answered_by,
            "scope": record.scope.value if record.scope else None,
            "changes": list(record.changes),
        },
        separators=(",", ":"),
    )


def decode_decision(text: str) -> ApprovalRecord:
    """Return the record of a JSON object that :func:`encode_decision` wrote.

    :raises UnreadableRow: when it is not one, or holds a word of a later release.
    """
    try:
        value: dict[str, Any] = json.loads(text)
        return ApprovalRecord(
            host=_classified(value["host"]),
            final=_classified(value["final"]),
            decision=PolicyDecision(
                outcome=ApprovalOutcome(value["outcome"]),
                rule=value["rule"],
                reason=value["reason"],
                offered=tuple(GrantScope(word) for word in value["offered"]),
            ),
            approved=value["approved"],
            answered_by=value["answeredBy"],
            scope=GrantScope(value["scope"]) if value["scope"] else None,
            changes=tuple(value["changes"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableRow("not a stored decision") from error


def _classification(value: Classification) -> dict[str, Any]:
    reached = value.authority.value
    return {
        "risk": value.risk.name.lower(),
        "authority": [word for bit, word in _AUTHORITIES if reached & bit],
        "summary": value.summary,
        "requirePrompt": value.require_prompt,
    }


def _classified(value: dict[str, Any]) -> Classification:
    authority = Authority(0)
    for word in value["authority"]:
        authority |= Authority[word.upper()]
    return Classification(
        risk=Risk[value["risk"].upper()],
        authority=authority,
        summary=value["summary"],
        require_prompt=value["requirePrompt"],
    )
