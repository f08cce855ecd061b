"""``rebuild_model``: refused only what cannot be represented; the rest is made representable.

The rule is stated here anew, from the words of the hook's documentation.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.hookspecs.raw import accept_rebuilt
from crystal.types.items import (
    AssistantItem,
    ImageRef,
    ModelItem,
    ReasoningItem,
    SystemItem,
    ToolCallItem,
    ToolResultItem,
    UserItem,
)
from crystal.types.model import ModelRequest, Purpose
from crystal.types.notes import NoteCode
from tests.hookspecs.replies import REFUSED, REPLYING, ReplyingHost, judge
from tests.hookspecs.transcripts import KNOWN_IMAGES, STATES, content, is_list_of_items, replacements, requests
from tests.host.hosts import MadePlugin, full_name, make_host


def images_in(items: Any) -> set[ImageRef]:
    """Every image that the items carry."""
    return {image for item in items for image in getattr(item, "images", ())}


def is_representable(request: ModelRequest, replacement: Any) -> bool:
    """The rule: unique ids, no empty reasoning of the plugin's making, no image that the request did not hold."""
    if not is_list_of_items(replacement):
        return False
    if len({item.id for item in replacement}) < len(replacement):
        return False
    if any(isinstance(item, ReasoningItem) and item.text == "" and item not in request.items for item in replacement):
        return False
    carried = images_in(request.items) if request.accepts_images else set()
    return images_in(replacement) <= carried


def expected(request: ModelRequest, replacement: Any) -> ModelRequest:
    """The items as they were returned, but for what the host alone says: provider state and names of new results."""
    return dataclasses.replace(request, items=tuple(_expected(request, replacement, item) for item in replacement))


def _expected(request: ModelRequest, replacement: Any, item: ModelItem) -> ModelItem:
    same_kind = [own for own in request.items if own.id == item.id and type(own) is type(item)]
    if isinstance(item, ToolResultItem) and not same_kind:
        calls = [call for call in (*replacement, *request.items) if isinstance(call, ToolCallItem)]
        names = [call.name for call in calls if call.call_id == item.call_id]
        return dataclasses.replace(item, name=names[0]) if names else item
    if isinstance(item, (AssistantItem, ReasoningItem, ToolCallItem)):
        kept = [own.state for own in same_kind if content(own) == content(item) and item.state is not None]
        return dataclasses.replace(item, state=kept[0] if kept else None)
    return item


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_replacement_is_refused_exactly_when_it_cannot_be_represented(data: st.DataObject) -> None:
    request = data.draw(requests())
    replacement = data.draw(replacements(request))
    wanted = expected(request, replacement) if is_representable(request, replacement) else REFUSED
    assert judge(accept_rebuilt, request, replacement, images_in(request.items)) == wanted


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_host_sends_what_was_accepted_and_otherwise_what_stood(replying: ReplyingHost, data: st.DataObject) -> None:
    request = data.draw(requests())
    replacement = data.draw(replacements(request))
    rebuilt, notes = replying.run({"rebuild_model": replacement}, lambda host: host.hooks.prepare_request(request))
    accepted = is_representable(request, replacement)
    sent = expected(request, replacement) if accepted else request
    assert rebuilt.request == sent
    assert rebuilt.raw_plugins == ((REPLYING,) if sent != request else ())
    assert replying.witness.shown == {"rebuild_model": sent, "transform_model": sent}
    assert [(note.code, note.source) for note in notes] == ([] if accepted else [(NoteCode.CONTRACT_REFUSED, REPLYING)])


def request_of(*items: ModelItem, accepts_images: bool = True) -> ModelRequest:
    """A request of these items."""
    return ModelRequest(purpose=Purpose.WORK, items=items, accepts_images=accepts_images)


def rebuilt_items(request: ModelRequest, replacement: Any) -> Any:
    """The accepted items, or the word for a refusal."""
    outcome = judge(accept_rebuilt, request, replacement, images_in(request.items))
    return outcome if outcome == REFUSED else outcome.items


def test_everything_may_be_dropped_or_written_anew() -> None:
    request = request_of(SystemItem(id="s", text="host"), UserItem(id="u", text="hello"))
    assert rebuilt_items(request, []) == ()
    anew = (UserItem(id="n", text="other"), SystemItem(id="s", text="mine"))
    assert rebuilt_items(request, anew) == anew


def test_a_call_may_be_split_from_its_result() -> None:
    call = ToolCallItem(id="c", call_id="1", name="read", arguments="{}")
    result = ToolResultItem(id="r", call_id="1", name="read", text="x")
    assert rebuilt_items(request_of(call, result), [result]) == (result,)
    assert rebuilt_items(request_of(call, result), [call]) == (call,)


def test_a_new_result_is_named_after_its_call_and_an_own_one_keeps_its_name() -> None:
    call = ToolCallItem(id="c", call_id="1", name="read", arguments="{}")
    own = ToolResultItem(id="r", call_id="1", name="read", text="x")
    new = ToolResultItem(id="n", call_id="1", name="whatever", text="y")
    assert rebuilt_items(request_of(call, own), [call, new]) == (call, dataclasses.replace(new, name="read"))
    assert rebuilt_items(request_of(call, own), [new]) == (dataclasses.replace(new, name="read"),)
    renamed = dataclasses.replace(own, name="custom")
    assert rebuilt_items(request_of(call, own), [call, renamed]) == (call, renamed)


KINDS = (
    SystemItem(id="i", text="why"),
    UserItem(id="i", text="why"),
    AssistantItem(id="i", text="why", state=STATES[1]),
    ReasoningItem(id="i", text="why", state=STATES[1]),
    ToolCallItem(id="i", call_id="1", name="read", arguments="{}", state=STATES[1]),
    ToolResultItem(id="i", call_id="other", name="made-up", text="why"),
)


@pytest.mark.parametrize("before", KINDS, ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("after", KINDS, ids=lambda item: type(item).__name__)
def test_an_id_on_another_kind_of_item_counts_as_a_new_item(before: ModelItem, after: ModelItem) -> None:
    call = ToolCallItem(id="c", call_id="other", name="read", arguments="{}")
    accepted = rebuilt_items(request_of(before, call), [dataclasses.replace(after)])
    if before is after:
        assert accepted == (after,)
    elif isinstance(after, ToolResultItem):
        assert accepted == (dataclasses.replace(after, name="read"),)
    elif hasattr(after, "state"):
        assert accepted == (dataclasses.replace(after, state=None),)
    else:
        assert accepted == (after,)


def test_a_repeated_id_and_a_missing_one_are_refused() -> None:
    user = UserItem(id="u", text="hello")
    for replacement in ([user, user], [user, SystemItem(id="u", text="x")], [UserItem(id="", text="x")]):
        assert rebuilt_items(request_of(user), replacement) == REFUSED


def test_a_request_that_cannot_carry_images_takes_none_not_even_one_the_session_holds() -> None:
    bare = request_of(UserItem(id="u", text="hello"), accepts_images=False)
    with_image = [UserItem(id="u", text="hello", images=KNOWN_IMAGES[:1])]
    assert judge(accept_rebuilt, bare, with_image, images_in(with_image)) == REFUSED


def test_rewritten_reasoning_loses_its_provider_state_and_new_reasoning_gets_none() -> None:
    request = request_of(ReasoningItem(id="r", text="because", state=STATES[1]))
    rewritten = ReasoningItem(id="r", text="perhaps", state=STATES[1])
    new = ReasoningItem(id="n", text="also", state=STATES[2])
    assert rebuilt_items(request, [rewritten, new]) == (
        ReasoningItem(id="r", text="perhaps"),
        ReasoningItem(id="n", text="also"),
    )


def test_a_forged_state_on_unchanged_text_becomes_the_hosts_own() -> None:
    own = ReasoningItem(id="r", text="because", state=STATES[1])
    assert rebuilt_items(request_of(own), [dataclasses.replace(own, state=STATES[2])]) == (own,)


def test_reasoning_that_is_only_provider_state_can_be_kept_but_not_made() -> None:
    own = ReasoningItem(id="r", text="", state=STATES[1])
    user = UserItem(id="u", text="hello")
    assert rebuilt_items(request_of(own, user), [own]) == (own,)
    assert rebuilt_items(request_of(user), [ReasoningItem(id="r", text="")]) == REFUSED


def test_an_image_may_move_to_another_item_but_not_change_its_type() -> None:
    one = UserItem(id="u", text="a", images=KNOWN_IMAGES[:1])
    other = UserItem(id="v", text="b")
    moved = [dataclasses.replace(one, images=()), dataclasses.replace(other, images=KNOWN_IMAGES[:1])]
    assert rebuilt_items(request_of(one, other), moved) == tuple(moved)
    retyped = dataclasses.replace(KNOWN_IMAGES[0], media_type="image/webp")
    assert rebuilt_items(request_of(one), [dataclasses.replace(one, images=(retyped,))]) == REFUSED


def test_a_second_raw_hook_may_bring_back_an_image_that_the_first_one_dropped() -> None:
    with_image = UserItem(id="u", text="a", images=KNOWN_IMAGES[:1])
    host = make_host(
        MadePlugin("Dropping", rebuild_model=lambda: [dataclasses.replace(with_image, images=())]),
        MadePlugin("Restoring", rebuild_model=lambda: [with_image]),
    )
    rebuilt = asyncio.run(host.hooks.prepare_request(request_of(with_image)))
    assert rebuilt.request.items == (with_image,)
    assert host.notes.all == ()


def test_every_raw_hook_runs_before_the_first_ordinary_one() -> None:
    def appending(word: str) -> Callable[[ModelRequest], list[ModelItem]]:
        return lambda request: [
            dataclasses.replace(item, text=item.text + word) for item in request.items if isinstance(item, UserItem)
        ]

    host = make_host(
        MadePlugin("A", transform_model=appending(" t1"), rebuild_model=appending(" r1")),
        MadePlugin("B", transform_model=appending(" t2"), rebuild_model=appending(" r2")),
    )
    rebuilt = asyncio.run(host.hooks.prepare_request(request_of(UserItem(id="u", text="hello"))))
    assert rebuilt.request.items == (UserItem(id="u", text="hello r1 r2 t1 t2"),)
    assert rebuilt.raw_plugins == (full_name("A"), full_name("B"))
