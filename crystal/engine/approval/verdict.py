"""What a reviewer answered: exactly one shape counts, everything else is no verdict. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from crystal.engine.approval.policy import Verdict
from crystal.types._frozen import Frozen

LONGEST_RATIONALE = 1_000
"""Characters of a rationale that are kept."""

_FIELDS = {"outcome", "risk_level", "user_authorization", "rationale"}
_VERDICTS = {"allow": Verdict.ALLOW, "deny": Verdict.DENY, "ask": Verdict.UNSURE}


class Review(Frozen):
    """A verdict with its reason, one paragraph."""

    verdict: Verdict
    reason: str


def parse_verdict(text: str) -> Review:
    """Read a reviewer's answer: a JSON object with exactly the four fields, all of them texts that are not blank."""
    try:
        answer = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return _junk("it is no JSON object")
    if not isinstance(answer, dict):
        return _junk("it is no JSON object")
    if set(answer) != _FIELDS:
        return _junk("its fields are not the four that were asked for")
    if not all(isinstance(value, str) and value.strip() for value in answer.values()):
        return _junk("a field of it is not a text")
    verdict = _VERDICTS.get(answer["outcome"])
    if verdict is None:
        return _junk("its outcome is none of allow, deny, ask")
    said = {Verdict.ALLOW: "allowed it", Verdict.DENY: "denied it", Verdict.UNSURE: "leaves it to the operator"}[
        verdict
    ]
    return Review(
        verdict=verdict,
        reason=f"the reviewer {said} (risk {_line(answer['risk_level'], 40)}, "
        f"authorization {_line(answer['user_authorization'], 40)}): {_line(answer['rationale'], LONGEST_RATIONALE)}",
    )


def _junk(fault: str) -> Review:
    return Review(verdict=Verdict.UNSURE, reason=f"the reviewer's answer cannot be used: {fault}")


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members = list(pairs)
    found = dict(members)
    if len(found) != len(members):
        # Of two outcomes in one answer neither counts.
        raise ValueError("a field is there twice")
    return found


def _line(text: str, longest: int) -> str:
    """Return a text as one paragraph of printable characters."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= longest else f"{line[:longest]}…"
