"""``on_tool_result``: text, and images on an image-capable turn; whether the call failed stays the host's word.

The rule is stated here anew, from the words of the hook's documentation.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.hookspecs.tool import accept_tool_result
from crystal.types.items import Image
from crystal.types.notes import NoteCode
from crystal.types.tools import ToolCall, ToolOutput
from tests.hookspecs.replies import REFUSED, REPLYING, ReplyingHost, judge

ALLOWED_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
CALL = ToolCall(id="c1", name="read")
JUNK = (7, "text", ["text"], {"text": "x"}, object(), b"bytes")

good_images = st.builds(Image, media_type=st.sampled_from(ALLOWED_TYPES), data=st.binary(max_size=3))
bad_images = st.sampled_from(
    (
        Image(media_type="image/svg+xml", data=b"<svg/>"),
        Image(media_type="IMAGE/PNG", data=b"x"),
        Image(media_type="", data=b"x"),
        Image(media_type="image/png", data="text"),  # type: ignore[arg-type]
        Image(media_type="image/png", data=b"x", name=7),  # type: ignore[arg-type]
        b"bytes",
        None,
    )
)
image_lists = st.lists(good_images, max_size=2).map(tuple)
outputs = st.builds(ToolOutput, text=st.text(max_size=5), images=image_lists, failed=st.booleans())


@st.composite
def replies(draw: st.DrawFn) -> Any:
    """What a hook might return."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(JUNK))
    images: Any = draw(image_lists)
    match draw(st.integers(0, 5)):
        case 0:
            images = (*images, draw(bad_images))
        case 1:
            images = draw(st.sampled_from((None, [], list(images), "image/png")))
    text = draw(st.text(max_size=5) if draw(st.integers(0, 5)) else st.sampled_from((None, 7, b"x", ["x"])))
    return ToolOutput(text=text, images=images, failed=draw(st.booleans()))


def is_image(image: Any) -> bool:
    """Say whether this is an image of a type that may enter a session."""
    return (
        isinstance(image, Image)
        and image.media_type in ALLOWED_TYPES
        and isinstance(image.data, bytes)
        and isinstance(image.name, str)
    )


def is_allowed(replacement: Any, accepts_images: bool) -> bool:
    """The rule: an output with a text; where images count, a tuple of images of the four types."""
    if not isinstance(replacement, ToolOutput) or not isinstance(replacement.text, str):
        return False
    images = replacement.images
    return not accepts_images or (isinstance(images, tuple) and all(is_image(image) for image in images))


def expected(previous: ToolOutput, replacement: ToolOutput, accepts_images: bool) -> ToolOutput:
    """The new text, the new images where they count, the old word on failure."""
    images = replacement.images if accepts_images else previous.images
    return ToolOutput(text=replacement.text, images=images, failed=previous.failed)


@settings(max_examples=100, deadline=None)
@given(outputs, replies(), st.booleans())
def test_a_replacement_is_accepted_exactly_when_the_rule_allows_it(
    previous: ToolOutput, replacement: Any, accepts_images: bool
) -> None:
    allowed = is_allowed(replacement, accepts_images)
    wanted = expected(previous, replacement, accepts_images) if allowed else REFUSED
    assert judge(accept_tool_result, previous, replacement, accepts_images) == wanted


@settings(max_examples=100, deadline=None)
@given(previous=outputs, replacement=replies(), accepts_images=st.booleans())
def test_the_host_stores_what_was_accepted_and_otherwise_what_stood(
    replying: ReplyingHost, previous: ToolOutput, replacement: Any, accepts_images: bool
) -> None:
    outcome, notes = replying.run(
        {"on_tool_result": replacement}, lambda host: host.hooks.on_tool_result(CALL, previous, accepts_images)
    )
    allowed = is_allowed(replacement, accepts_images)
    assert outcome == (expected(previous, replacement, accepts_images) if allowed else previous)
    assert replying.witness.shown["on_tool_result"] == outcome
    assert [(note.code, note.source) for note in notes] == ([] if allowed else [(NoteCode.CONTRACT_REFUSED, REPLYING)])


def test_a_failed_call_cannot_be_made_a_success_nor_a_success_a_failure() -> None:
    for failed in (True, False):
        previous = ToolOutput(text="old", failed=failed)
        for claimed in (True, False):
            outcome = accept_tool_result(previous, ToolOutput(text="new", failed=claimed), True)
            assert outcome == ToolOutput(text="new", failed=failed)


def test_a_text_only_turn_ignores_returned_images_and_keeps_the_text() -> None:
    image = Image(media_type="image/png", data=b"x")
    outcome = accept_tool_result(ToolOutput(text="old"), ToolOutput(text="new", images=(image,)), False)
    assert outcome == ToolOutput(text="new")


def test_an_image_capable_turn_takes_returned_images_and_lets_them_be_dropped() -> None:
    image = Image(media_type="image/webp", data=b"x")
    assert accept_tool_result(ToolOutput(text="t"), ToolOutput(text="t", images=(image,)), True).images == (image,)
    assert accept_tool_result(ToolOutput(text="t", images=(image,)), ToolOutput(text="t"), True).images == ()
