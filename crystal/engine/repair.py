"""Repair of a loaded transcript: every call gets exactly one result, directly behind its batch. Pure.

The store only appends, so a result that was added later (an interrupted call found on resume) stands at the end there;
arranging at every load puts it where it belongs, and a second resume finds nothing left to repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from crystal.engine.transcript import INTERRUPTED
from crystal.types._frozen import Frozen
from crystal.types.items import ModelItem, ToolCallItem, ToolResultItem


class Repaired(Frozen):
    """An arranged transcript.

    :param added: results made for calls that had none; to be stored.
    :param dropped: how many results had no call.
    """

    items: tuple[ModelItem, ...]
    added: tuple[ToolResultItem, ...]
    dropped: int


def arrange(items: Iterable[ModelItem], new_id: Callable[[str], str]) -> Repaired:
    """Return the items with each result behind the batch of its call, and results for calls without one."""
    ordered: list[ModelItem | _Slot] = []
    waiting: dict[str, list[_Slot]] = {}
    batch: list[_Slot] = []
    is_answered = False
    dropped = 0
    for item in items:
        if isinstance(item, ToolResultItem):
            slot = _answered_by(item, waiting.get(item.call_id, ()))
            if slot is None:
                dropped += 1
            else:
                slot.result = item
                is_answered = True
            continue
        if isinstance(item, ToolCallItem):
            if is_answered:
                # A call behind a result belongs to the next round, also when the model said nothing in between.
                ordered.extend(batch)
                batch, is_answered = [], False
            slot = _Slot(item)
            batch.append(slot)
            waiting.setdefault(item.call_id, []).append(slot)
            ordered.append(item)
            continue
        ordered.extend(batch)
        batch, is_answered = [], False
        ordered.append(item)
    ordered.extend(batch)
    added: list[ToolResultItem] = []
    arranged: list[ModelItem] = []
    for entry in ordered:
        if not isinstance(entry, _Slot):
            arranged.append(entry)
            continue
        if entry.result is None:
            entry.result = interrupted_result(entry.call, new_id("item"))
            added.append(entry.result)
        arranged.append(entry.result)
    return Repaired(items=tuple(arranged), added=tuple(added), dropped=dropped)


def _answered_by(result: ToolResultItem, slots: Sequence[_Slot]) -> _Slot | None:
    """Choose among the open calls of one id: the latest of the result's name, else the latest.

    Ids are unique in what this host writes; other sources may repeat them from turn to turn.
    """
    waiting = [slot for slot in slots if slot.result is None]
    named = [slot for slot in waiting if slot.call.name == result.name]
    candidates = named or waiting
    return candidates[-1] if candidates else None


def interrupted_result(call: ToolCallItem, item_id: str) -> ToolResultItem:
    """Return the result of a call that never got its own."""
    return ToolResultItem(id=item_id, call_id=call.call_id, name=call.name, text=INTERRUPTED, failed=True)


class _Slot:
    """The place of one call's result."""

    def __init__(self, call: ToolCallItem) -> None:
        self.call = call
        self.result: ToolResultItem | None = None
