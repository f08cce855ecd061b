"""``transform_model``: the same items in the same order; only text and fewer images may differ.

The rule is stated here anew, from the words of the hook's documentation.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.hookspecs.model import accept_transformed
from crystal.types.items import (
    AssistantItem,
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
from tests.hookspecs.transcripts import (
    FOREIGN_IMAGE,
    KNOWN_IMAGES,
    RETYPED_IMAGE,
    STATES,
    allowed_changes,
    content,
    is_list_of_items,
    replacements,
    requests,
)

WRITABLE = (UserItem, AssistantItem, ToolResultItem)


def is_allowed(request: ModelRequest, replacement: Any) -> bool:
    """The rule: same items, order and kinds; text of three kinds is free; images only fewer, in their order."""
    if not is_list_of_items(replacement) or len(replacement) != len(request.items):
        return False
    return all(_is_allowed(before, after) for before, after in zip(request.items, replacement, strict=True))


def _is_allowed(before: ModelItem, after: ModelItem) -> bool:
    if type(before) is not type(after):
        return False
    if not isinstance(before, WRITABLE):
        return before == after
    free = ("text", "images")
    same = {name: value for name, value in content(before).items() if name not in free}
    if same != {name: value for name, value in content(after).items() if name not in free}:
        return False
    if isinstance(after, AssistantItem):
        return after.state is None or after.state == before.state
    fewer = {kept for length in range(len(before.images) + 1) for kept in itertools.combinations(before.images, length)}
    return after.images in fewer


def expected(request: ModelRequest, replacement: Any) -> ModelRequest:
    """The request with the new text and images; provider-bound state stays with the exact text it came with."""
    items = []
    for before, after in zip(request.items, replacement, strict=True):
        if isinstance(before, AssistantItem):
            after = dataclasses.replace(after, state=before.state if after.text == before.text else None)
        items.append(after)
    return dataclasses.replace(request, items=tuple(items))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_replacement_is_accepted_exactly_when_the_rule_allows_it(data: st.DataObject) -> None:
    request = data.draw(requests())
    replacement = data.draw(replacements(request))
    wanted = expected(request, replacement) if is_allowed(request, replacement) else REFUSED
    assert judge(accept_transformed, request, replacement) == wanted


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_other_text_and_fewer_images_are_always_accepted(data: st.DataObject) -> None:
    request = data.draw(requests())
    replacement = data.draw(allowed_changes(request))
    assert judge(accept_transformed, request, replacement) == expected(request, replacement)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_host_sends_what_was_accepted_and_otherwise_what_stood(replying: ReplyingHost, data: st.DataObject) -> None:
    request = data.draw(requests())
    replacement = data.draw(replacements(request))
    rebuilt, notes = replying.run({"transform_model": replacement}, lambda host: host.hooks.prepare_request(request))
    allowed = is_allowed(request, replacement)
    assert rebuilt.request == (expected(request, replacement) if allowed else request)
    assert replying.witness.shown["transform_model"] == rebuilt.request
    assert [(note.code, note.source) for note in notes] == ([] if allowed else [(NoteCode.CONTRACT_REFUSED, REPLYING)])


def test_an_assistant_text_that_changes_loses_its_provider_state_and_one_that_stays_keeps_it() -> None:
    before = (AssistantItem(id="a", text="one", state=STATES[1]), AssistantItem(id="b", text="two", state=STATES[2]))
    request = ModelRequest(purpose=Purpose.WORK, items=before)
    after = [AssistantItem(id="a", text="ONE"), AssistantItem(id="b", text="two")]
    assert accept_transformed(request, after, None).items == (AssistantItem(id="a", text="ONE"), before[1])


def test_everything_but_the_items_of_a_request_is_kept() -> None:
    request = ModelRequest(
        purpose=Purpose.SIDE, items=(UserItem(id="u", text="one"),), accepts_images=True, session_id="s1"
    )
    changed = accept_transformed(request, [UserItem(id="u", text="two")], None)
    assert changed == dataclasses.replace(request, items=(UserItem(id="u", text="two"),))


SYSTEM = SystemItem(id="s", text="host")
USER = UserItem(id="u", text="hello", images=KNOWN_IMAGES)
ASSISTANT = AssistantItem(id="a", text="well", state=STATES[1])
REASONING = ReasoningItem(id="r", text="because", state=STATES[1])
CALL = ToolCallItem(id="c", call_id="1", name="read", arguments="{}", state=STATES[1])
RESULT = ToolResultItem(id="t", call_id="1", name="read", text="done", images=KNOWN_IMAGES[:1])
ITEMS = (SYSTEM, USER, ASSISTANT, REASONING, CALL, RESULT)

FORBIDDEN_CHANGES: tuple[tuple[ModelItem, dict[str, Any]], ...] = (
    *((item, {"id": wrong}) for item in ITEMS for wrong in ("fresh", "", None, "u2")),
    (SYSTEM, {"text": "mine"}),
    (REASONING, {"text": "perhaps"}),
    (REASONING, {"state": None}),
    (CALL, {"name": "bash"}),
    (CALL, {"arguments": "{} "}),
    (CALL, {"call_id": "2"}),
    (CALL, {"state": STATES[2]}),
    (RESULT, {"call_id": "2"}),
    (RESULT, {"name": "bash"}),
    (RESULT, {"failed": True}),
    (ASSISTANT, {"state": STATES[2]}),
    (ASSISTANT, {"state": STATES[2], "text": "new"}),
    (USER, {"images": (KNOWN_IMAGES[1], KNOWN_IMAGES[0])}),
    (USER, {"images": (*KNOWN_IMAGES, FOREIGN_IMAGE)}),
    (USER, {"images": (KNOWN_IMAGES[0], KNOWN_IMAGES[0])}),
    (USER, {"images": (RETYPED_IMAGE,)}),
    (USER, {"images": list(KNOWN_IMAGES)}),
    (RESULT, {"images": (KNOWN_IMAGES[1],)}),
    (USER, {"text": 7}),
    (USER, {"text": None}),
)


@pytest.mark.parametrize(("item", "change"), FORBIDDEN_CHANGES, ids=str)
def test_no_other_field_of_any_item_may_change(item: ModelItem, change: dict[str, Any]) -> None:
    request = ModelRequest(purpose=Purpose.WORK, items=ITEMS, accepts_images=True)
    replacement = [dataclasses.replace(one, **change) if one is item else one for one in ITEMS]
    assert judge(accept_transformed, request, replacement) == REFUSED


@pytest.mark.parametrize(
    "replacement",
    [ITEMS[1:], (*ITEMS, SYSTEM), (*ITEMS, UserItem(id="new", text="x")), tuple(reversed(ITEMS)), ()],
    ids=["dropped", "repeated", "added", "reordered", "emptied"],
)
def test_items_may_not_be_dropped_repeated_added_or_reordered(replacement: Any) -> None:
    request = ModelRequest(purpose=Purpose.WORK, items=ITEMS, accepts_images=True)
    assert judge(accept_transformed, request, replacement) == REFUSED


@pytest.mark.parametrize("before", ITEMS, ids=lambda item: type(item).__name__)
@pytest.mark.parametrize("after", ITEMS, ids=lambda item: type(item).__name__)
def test_an_item_may_not_become_another_kind(before: ModelItem, after: ModelItem) -> None:
    request = ModelRequest(purpose=Purpose.WORK, items=(before,), accepts_images=True)
    outcome = judge(accept_transformed, request, [dataclasses.replace(after, id=before.id)])
    assert outcome == (request if before is after else REFUSED)
