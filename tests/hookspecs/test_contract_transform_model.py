"""``transform_model``: the same items in the same order; only text and fewer images may differ.

The rule is stated here anew, from the words of the hook's documentation.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.hookspecs.model import accept_transformed
from crystal.types.items import AssistantItem, ModelItem, ReasoningItem, ToolResultItem, UserItem
from crystal.types.model import ModelRequest, Purpose
from crystal.types.notes import NoteCode
from tests.hookspecs.replies import REFUSED, REPLYING, ReplyingHost, judge
from tests.hookspecs.transcripts import STATES, allowed_changes, content, is_list_of_items, replacements, requests

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


def test_reasoning_is_not_this_hooks_to_change() -> None:
    request = ModelRequest(purpose=Purpose.WORK, items=(ReasoningItem(id="r", text="because"),))
    assert judge(accept_transformed, request, [ReasoningItem(id="r", text="perhaps")]) == REFUSED
