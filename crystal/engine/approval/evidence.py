"""What a review is made of: the part of the conversation that is shown, and the quoting of it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from crystal.types._frozen import Frozen
from crystal.types.approval import Classification
from crystal.types.items import AssistantItem, ModelItem, ToolCallItem, ToolResultItem, UserItem
from crystal.types.tools import ToolCall

SHORTEST_CUT = 200
"""Characters; less of a text than this says too little to be worth its place."""

FIRST_TURN_PART = 2
"""The first and the latest user turn get at most one part of this many each, so that neither crowds out the other."""

LONGEST_CALL = 60_000
"""Characters of a quoted call; a longer one could not be judged as a whole."""

_FROM = {UserItem: "operator", AssistantItem: "agent", ToolCallItem: "agent's call", ToolResultItem: "tool result"}
# What a JSON text may hold as it is, but what could look like an end of line, be invisible or be no text at all.
_UNCLEAR = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


class CallTooLong(Exception):
    """A call is too long to be reviewed whole."""


class Evidence(Frozen):
    """One text of the conversation.

    :param source: who it is from, as the reviewer is told.
    :param left_out: how many characters at its end are not shown.
    """

    source: str
    text: str
    left_out: int = 0


def select_evidence(items: Sequence[ModelItem], characters: int) -> tuple[Evidence, ...]:
    """Choose what a reviewer sees of a conversation, in the order of the conversation.

    The first and the latest user turn come first, then the other user turns from the latest back, then everything else
    from the latest back, until the room is used up. Reasoning and system prompts are never shown.

    :param characters: the room, counted in characters of the chosen texts.
    """
    shown = {position: text for position, item in enumerate(items) if (text := _text(item))}
    users = [position for position in shown if isinstance(items[position], UserItem)]
    ends = list(dict.fromkeys((*users[:1], *users[-1:])))
    others = [position for position in reversed(users) if position not in ends]
    rest = [position for position in reversed(shown) if position not in users]
    chosen: dict[int, Evidence] = {}
    room = characters
    for position in (*ends, *others, *rest):
        text = shown[position]
        limit = min(room, characters // FIRST_TURN_PART) if position in ends else room
        if len(text) > limit and limit < SHORTEST_CUT:
            continue
        kept = text[:limit]
        room -= len(kept)
        chosen[position] = Evidence(source=_FROM[type(items[position])], text=kept, left_out=len(text) - len(kept))
    return tuple(chosen[position] for position in sorted(chosen))


def compose_review(
    evidence: Iterable[Evidence],
    call: ToolCall,
    host: Classification,
    final: Classification,
    workspace: str,
) -> str:
    """Return the text that a reviewer judges by: one JSON document, in which no text can end its own quotation.

    :param host: the classification before any hook.
    :param final: the classification the policy uses.
    :raises CallTooLong: for a call that could only be shown in part.
    """
    quoted = _quote({"tool": call.name, "arguments": call.arguments})
    if len(quoted) > LONGEST_CALL:
        raise CallTooLong(f"the call is {len(quoted):,} characters long, too long to be reviewed whole")
    classes = _quote(
        {
            "hostClass": host.label,
            "finalClass": final.label,
            "promptRequired": final.require_prompt,
            "summary": final.summary,
        }
    )
    return (
        f'{{"workspace": {_quote(workspace)},\n"conversation": {_quote_conversation(evidence)},\n'
        f'"call": {quoted},\n"class": {classes}}}'
    )


def review_values(
    evidence: Iterable[Evidence], call: ToolCall, host: Classification, final: Classification
) -> dict[str, str]:
    """Return what the tokens of a Review template stand for; texts of others are quoted as :func:`compose_review` does.

    :param host: the classification before any hook.
    :param final: the classification the policy uses.
    """
    return {
        "tool_name": call.name,
        "tool_arguments": _quote(call.arguments),
        "host_risk": host.risk.label,
        "host_authority": host.authority.label,
        "classification_summary": _quote(final.summary),
        "conversation": _quote_conversation(evidence),
    }


def _quote_conversation(evidence: Iterable[Evidence]) -> str:
    pieces = ",\n".join(
        _quote(
            {"from": piece.source, "text": piece.text}
            | ({"charactersLeftOut": piece.left_out} if piece.left_out else {})
        )
        for piece in evidence
    )
    return f"[\n{pieces}\n]"


def _text(item: ModelItem) -> str:
    match item:
        case UserItem() | AssistantItem():
            return item.text
        case ToolCallItem():
            return f"{item.name} {item.arguments}"
        case ToolResultItem():
            return f"{item.name}{' (failed)' if item.failed else ''}: {item.text}"
        case _:
            return ""


def _quote(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _UNCLEAR.sub(lambda found: json.dumps(found[0])[1:-1], text)
