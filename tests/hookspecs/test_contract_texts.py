"""The hooks that give text: ``on_user_message``, ``on_prompt``, ``rewrite_prompt``, ``on_compaction`` and
``rewrite_compaction``. The rules are stated here anew, from the words of their documentation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.hookspecs.raw import accept_text
from crystal.hookspecs.turn import accept_user_message
from crystal.types.items import ImageRef
from crystal.types.notes import NoteCode
from crystal.types.session import CompactionFacts, CompactionPhase, PromptFacts, PromptMode, UserMessage
from tests.hookspecs.replies import REFUSED, REPLYING, ReplyingHost, judge
from tests.host.hosts import MadePlugin, make_host

IMAGES = (ImageRef(digest="1" * 64, media_type="image/png", size=3),)
BLANKS = ("", " ", "\n", "\t \r\n", "\u2003\u00a0")

junk = st.sampled_from((0, 7, b"bytes", ["text"], {"text": "x"}, object(), False, UserMessage(text="x")))
blanks = st.sampled_from(BLANKS)
anything = st.text(max_size=8) | blanks | junk
messages = st.builds(UserMessage, text=st.text(min_size=1, max_size=5), images=st.sampled_from(((), IMAGES)))
prompts = st.builds(PromptFacts, mode=st.sampled_from(PromptMode), text=st.text(max_size=8))


def is_blank(text: str) -> bool:
    """Say whether there is nothing to read in a text."""
    return all(character.isspace() for character in text)


@settings(max_examples=100, deadline=None)
@given(messages, anything)
def test_a_message_is_replaced_by_a_text_that_is_not_blank_and_by_nothing_else(
    previous: UserMessage, replacement: Any
) -> None:
    allowed = isinstance(replacement, str) and not is_blank(replacement)
    wanted = UserMessage(text=replacement, images=previous.images) if allowed else REFUSED
    assert judge(accept_user_message, previous, replacement) == wanted


@settings(max_examples=100, deadline=None)
@given(previous=messages, replacement=anything)
def test_the_host_stores_the_accepted_message_and_otherwise_the_operators(
    replying: ReplyingHost, previous: UserMessage, replacement: Any
) -> None:
    outcome, notes = replying.run({"on_user_message": replacement}, lambda host: host.hooks.on_user_message(previous))
    allowed = isinstance(replacement, str) and not is_blank(replacement)
    assert outcome == UserMessage(text=replacement if allowed else previous.text, images=previous.images)
    assert replying.witness.shown["on_user_message"] == outcome
    assert [(note.code, note.source) for note in notes] == ([] if allowed else [(NoteCode.CONTRACT_REFUSED, REPLYING)])


@settings(max_examples=60, deadline=None)
@given(prompts, st.lists(st.none() | anything, max_size=4))
def test_a_prompt_is_the_hosts_text_and_then_what_each_plugin_appends(prompt: PromptFacts, returned: list[Any]) -> None:
    host = make_host(
        *(MadePlugin(f"P{number}", on_prompt=lambda text=text: text) for number, text in enumerate(returned))
    )
    composed = asyncio.run(host.hooks.compose_prompt(prompt))
    appended = [text for text in returned if isinstance(text, str) and not is_blank(text)]
    assert composed == "\n\n".join([prompt.text, *appended])
    strangers = [text for text in returned if text is not None and not isinstance(text, str)]
    assert [note.code for note in host.notes.all] == [NoteCode.HOOK_RESULT] * len(strangers)


@settings(max_examples=100, deadline=None)
@given(prompt=prompts, appended=st.text(max_size=5), replacement=anything)
def test_a_raw_hook_replaces_the_composed_prompt_by_any_text_an_empty_one_included(
    replying: ReplyingHost, prompt: PromptFacts, appended: str, replacement: Any
) -> None:
    composed, notes = replying.run(
        {"on_prompt": appended, "rewrite_prompt": replacement}, lambda host: host.hooks.compose_prompt(prompt)
    )
    stood = prompt.text if is_blank(appended) else f"{prompt.text}\n\n{appended}"
    assert composed == (replacement if isinstance(replacement, str) else stood)
    assert replying.witness.shown == {"on_prompt": prompt, "rewrite_prompt": composed}
    assert [(note.code, note.source) for note in notes] == (
        [] if isinstance(replacement, str) else [(NoteCode.CONTRACT_REFUSED, REPLYING)]
    )


@settings(max_examples=60, deadline=None)
@given(phase=st.sampled_from(CompactionPhase), text=st.text(max_size=5), replacement=anything)
def test_a_raw_hook_replaces_a_compaction_text_by_any_text_an_empty_one_included(
    phase: CompactionPhase, text: str, replacement: Any
) -> None:
    shown: list[tuple[CompactionPhase, str]] = []
    host = make_host(
        MadePlugin("Rewriting", rewrite_compaction=lambda: replacement),
        MadePlugin("Watching", rewrite_compaction=lambda phase, text: shown.append((phase, text))),
    )
    folded = asyncio.run(host.dispatcher.fold("rewrite_compaction", (phase, text)))
    allowed = isinstance(replacement, str)
    assert folded.value == (replacement if allowed else text)
    assert shown == [(phase, folded.value)]
    assert [note.code for note in host.notes.all] == ([] if allowed else [NoteCode.CONTRACT_REFUSED])


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=5), anything)
def test_the_rule_of_rewritten_texts_is_any_text(previous: str, replacement: Any) -> None:
    assert judge(accept_text, previous, replacement) == (replacement if isinstance(replacement, str) else REFUSED)


@pytest.mark.parametrize("phase", CompactionPhase)
def test_facts_are_appended_to_a_compaction_in_order_without_blank_ones(phase: CompactionPhase) -> None:
    host = make_host(
        MadePlugin("A", on_compaction=lambda compaction: f"first of {compaction.phase.value}"),
        MadePlugin("B", on_compaction=lambda: "  \n"),
        MadePlugin("C", on_compaction=lambda compaction: compaction.text),
    )
    appended = asyncio.run(host.dispatcher.append("on_compaction", CompactionFacts(phase=phase, text="body")))
    assert appended == (f"first of {phase.value}", "body")
