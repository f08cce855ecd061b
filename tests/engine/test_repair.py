"""Repair of a loaded transcript: every call has exactly one result, directly behind its batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.repair import arrange
from crystal.engine.transcript import INTERRUPTED
from crystal.types.items import AssistantItem, ModelItem, ToolCallItem, ToolResultItem, UserItem


def ids(prefix: str = "made") -> Callable[[str], str]:
    numbers = itertools.count(1)
    return lambda kind: f"{kind}_{prefix}_{next(numbers)}"


def user(text: str) -> UserItem:
    return UserItem(id=f"user_{text}", text=text)


def call(call_id: str, item_id: str = "", name: str = "read") -> ToolCallItem:
    return ToolCallItem(id=item_id or f"call_{call_id}", call_id=call_id, name=name, arguments="{}")


def result(call_id: str, text: str = "done", item_id: str = "", name: str = "read") -> ToolResultItem:
    return ToolResultItem(id=item_id or f"result_{call_id}_{text}", call_id=call_id, name=name, text=text)


@st.composite
def broken_transcripts(draw: st.DrawFn) -> tuple[list[ModelItem], dict[str, ToolResultItem]]:
    """A session whose results were lost or came later than they should, with the results that are there."""
    items: list[ModelItem] = []
    late: list[ToolResultItem] = []
    kept: dict[str, ToolResultItem] = {}
    numbers = itertools.count(1)
    for turn in range(draw(st.integers(min_value=1, max_value=4))):
        items.append(user(str(turn)))
        for _ in range(draw(st.integers(min_value=0, max_value=2))):
            if draw(st.booleans()):
                number = next(numbers)
                items.append(AssistantItem(id=f"text_{number}", text=f"text {number}"))
            batch = [call(str(next(numbers))) for _ in range(draw(st.integers(min_value=0, max_value=3)))]
            items.extend(batch)
            for made in batch:
                fate = draw(st.sampled_from(["in place", "in place", "lost", "late"]))
                if fate == "lost":
                    continue
                kept[made.call_id] = result(made.call_id)
                if fate == "late":
                    late.append(kept[made.call_id])
                else:
                    items.append(kept[made.call_id])
            late = draw(st.permutations(late))
            arrived = draw(st.integers(min_value=0, max_value=len(late)))
            items.extend(late[:arrived])
            del late[:arrived]
    items.extend(draw(st.permutations(late)))
    return items, kept


def results_by_batch(items: Sequence[ModelItem]) -> list[list[str]]:
    """The ids of each batch of calls, having checked that exactly their results follow, in order."""
    batches: list[list[str]] = []
    at = 0
    while at < len(items):
        batch: list[str] = []
        while at < len(items) and isinstance(made := items[at], ToolCallItem):
            batch.append(made.call_id)
            at += 1
        if batch:
            following = items[at : at + len(batch)]
            assert [item.call_id for item in following if isinstance(item, ToolResultItem)] == batch
            at += len(batch)
            batches.append(batch)
        else:
            assert not isinstance(items[at], ToolResultItem)
            at += 1
    return batches


@given(broken_transcripts())
@settings(max_examples=100, deadline=None)
def test_every_call_gets_exactly_one_result_behind_its_batch(
    broken: tuple[list[ModelItem], dict[str, ToolResultItem]],
) -> None:
    items, kept = broken
    repaired = arrange(items, ids())
    calls = [item for item in items if isinstance(item, ToolCallItem)]
    assert sorted(itertools.chain(*results_by_batch(repaired.items))) == sorted(made.call_id for made in calls)
    found = {item.call_id: item for item in repaired.items if isinstance(item, ToolResultItem)}
    for made in calls:
        expected = kept.get(made.call_id)
        if expected is None:
            assert (found[made.call_id].text, found[made.call_id].failed) == (INTERRUPTED, True)
            assert found[made.call_id].name == made.name
        else:
            assert found[made.call_id] is expected
    assert {item.call_id for item in repaired.added} == {made.call_id for made in calls} - kept.keys()
    assert repaired.dropped == 0


@given(broken_transcripts())
@settings(max_examples=100, deadline=None)
def test_nothing_else_is_lost_or_moved(broken: tuple[list[ModelItem], dict[str, ToolResultItem]]) -> None:
    items, _ = broken
    repaired = arrange(items, ids()).items
    assert [item for item in repaired if not isinstance(item, ToolResultItem)] == [
        item for item in items if not isinstance(item, ToolResultItem)
    ]


@given(broken_transcripts())
@settings(max_examples=100, deadline=None)
def test_a_second_repair_finds_nothing_left(broken: tuple[list[ModelItem], dict[str, ToolResultItem]]) -> None:
    items, _ = broken
    first = arrange(items, ids())
    again = arrange(first.items, ids("again"))
    assert (again.items, again.added) == (first.items, ())
    # The store appends what was added; loading it must give the same transcript.
    reloaded = arrange([*items, *first.added], ids("again"))
    assert (reloaded.items, reloaded.added, reloaded.dropped) == (first.items, (), 0)


def test_results_without_a_call_are_dropped_and_counted() -> None:
    repaired = arrange([user("a"), result("nobody"), call("1"), result("1"), result("1", "twice")], ids())
    assert repaired.items == (user("a"), call("1"), result("1"))
    assert repaired.dropped == 2


def test_an_orphan_before_the_next_user_message_is_answered_before_it() -> None:
    repaired = arrange([user("a"), call("1"), call("2"), result("2"), user("go on")], ids())
    assert [type(item) for item in repaired.items] == [
        UserItem,
        ToolCallItem,
        ToolCallItem,
        ToolResultItem,
        ToolResultItem,
        UserItem,
    ]
    assert [item.text for item in repaired.items if isinstance(item, ToolResultItem)] == [INTERRUPTED, "done"]


def test_an_id_used_again_in_a_later_turn_takes_its_own_result() -> None:
    items: list[ModelItem] = [
        user("a"),
        call("1", "first"),
        user("b"),
        call("1", "second"),
        result("1", "of the second"),
    ]
    repaired = arrange(items, ids())
    texts = [item.text for item in repaired.items if isinstance(item, ToolResultItem)]
    assert texts == [INTERRUPTED, "of the second"]
    reloaded = arrange([*items, *repaired.added], ids("again"))
    assert reloaded.items == repaired.items


def test_a_stored_repair_names_its_own_call_when_ids_repeat() -> None:
    items: list[ModelItem] = [user("a"), call("1", "first", "read"), user("b"), call("1", "second", "bash")]
    reloaded = arrange([*items, *arrange(items, ids()).added], ids("again"))
    assert reloaded.added == ()
    assert [item.name for item in reloaded.items if isinstance(item, ToolResultItem)] == ["read", "bash"]


def test_an_empty_session_stays_empty() -> None:
    assert arrange([], ids()).items == ()


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=6))
def test_a_whole_transcript_is_left_as_it_is(rounds: list[tuple[bool, int]]) -> None:
    """Rounds in which the model said nothing but calls stay rounds of their own."""
    items: list[ModelItem] = [user("go")]
    for number, (says, count) in enumerate(rounds):
        if says:
            items.append(AssistantItem(id=f"text{number}", text="said"))
        names = [f"{number}-{index}" for index in range(count)]
        items += [call(name, f"call{name}", "read") for name in names]
        items += [ToolResultItem(id=f"result{name}", call_id=name, name="read", text="x") for name in names]
    arranged = arrange(items, ids())
    assert arranged.items == tuple(items)
    assert arranged.added == ()
    assert arranged.dropped == 0
