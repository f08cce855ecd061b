"""What tools answer: images, junk, exceptions, and calls that a tool makes itself."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.types.events import ToolCallFinished
from crystal.types.items import ImageRef, ToolResultItem, UserItem
from tests.engine.runs import DONE, assert_requests_are_valid, calls, of, read, results_of

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def text_only(crystaler: Crystaler) -> None:
    crystaler.makeproviders(scripted={"models": {"blind": {"contextWindow": 100_000}}})


def test_an_image_that_a_tool_returns_reaches_a_model_that_takes_images(crystaler: Crystaler) -> None:
    crystaler.makefile("dot.png", PNG)
    crystaler.script([calls(read("dot.png")), DONE])
    result = crystaler.run()
    [finished] = of(result, ToolCallFinished)
    assert (finished.images, finished.failed) == (1, False)
    assert result.requests[1].accepts_images
    [item] = [item for item in result.requests[1].items if isinstance(item, ToolResultItem)]
    [image] = item.images
    assert (image.media_type, image.size) == ("image/png", len(PNG))
    assert (crystaler.home / "media").is_dir()


def test_a_text_only_model_is_sent_no_image(crystaler: Crystaler, tmp_path: Path) -> None:
    text_only(crystaler)
    (tmp_path / "shot.png").write_bytes(PNG)
    crystaler.makefile("dot.png", PNG)
    crystaler.script([calls(read("dot.png")), DONE])
    result = crystaler.run("look", "--image", str(tmp_path / "shot.png"))
    assert result.exit_code == 0
    for request in result.requests:
        assert not request.accepts_images
        assert not any(isinstance(value, ImageRef) for item in request.items for value in getattr(item, "images", ()))
    [user] = [item for item in result.requests[0].items if isinstance(item, UserItem)]
    for fact in ("shot.png", "image/png", f"{len(PNG)} bytes"):
        assert fact in user.text


def test_a_session_with_images_goes_on_with_a_text_only_model(crystaler: Crystaler) -> None:
    crystaler.makefile("dot.png", PNG)
    crystaler.script([calls(read("dot.png")), DONE])
    session_id = crystaler.run().session_id
    text_only(crystaler)
    crystaler.script([DONE])
    result = crystaler.run("go on", "-r", session_id)
    assert result.exit_code == 0
    [item] = [item for item in result.requests[0].items if isinstance(item, ToolResultItem)]
    assert item.images == ()
    assert "dot.png" in item.text


@pytest.mark.parametrize(
    "answer",
    [
        'ToolOutput(text="x", images=None)',
        'ToolOutput(text="x", images=("picture",))',
        'ToolOutput(text="x", images=(Image(media_type="image/png", data="text"),))',
        'ToolOutput(text="x", images=(Image(media_type="image/png", data=b"no image"),))',
        'ToolOutput(text="x", images=(Image(media_type="text/html", data=b"<p>"),))',
        "ToolOutput(text=None)",
        '"text"',
        "None",
    ],
)
@pytest.mark.parametrize("images", [True, False])
def test_whatever_a_tool_answers_is_a_result(crystaler: Crystaler, answer: str, images: bool) -> None:
    if not images:
        text_only(crystaler)
    crystaler.makeplugin("Acme", TOOL.format(body=f"return {answer}"))
    crystaler.script([calls(("acme", {})), DONE])
    result = crystaler.run()
    assert result.exit_code == 0, result.stderr
    assert len(result.calls) == 1
    assert_requests_are_valid(result)


TOOL = """
from crystal import Image, Risk, ToolContribution, ToolDefinition, ToolOutput, hookimpl

class Acme:
    definition = ToolDefinition(name="acme", description="A sample.", schema={{"type": "object"}})

    async def invoke(self, call, context):
        {body}

@hookimpl
def contribute_tools():
    return [ToolContribution(name="acme", tool=Acme(), risk=Risk.READ)]
"""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('no luck')", "ValueError: no luck"),
        ("raise SystemExit(3)", "SystemExit"),
        ("import asyncio; raise asyncio.CancelledError", "cancelled itself"),
        ("class Own(BaseException): pass\n        raise Own('odd')", "Own: odd"),
        ("call.arguments['x'] = 1", "ReadOnlyError"),
    ],
)
def test_a_tool_that_fails_is_a_failed_result(crystaler: Crystaler, body: str, words: str) -> None:
    crystaler.makeplugin("Acme", TOOL.format(body=body))
    crystaler.script([calls(("acme", {}), ("todoread", {})), DONE])
    result = crystaler.run()
    assert result.exit_code == 0
    assert [call.failed for call in result.calls] == [True, False]
    assert words in result.calls[0].output


def test_a_tool_calls_others_through_the_whole_pipeline(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    body = (
        "read = await context.call('read', {'path': 'a.txt'})\n"
        "        wrote = await context.call('write', {'path': 'b.txt', 'content': 'x'})\n"
        "        lost = await context.call('nothing', {})\n"
        "        return ToolOutput(text=f'{read.text}|{wrote.failed}|{lost.failed}')"
    )
    crystaler.makeplugin("Acme", TOOL.format(body=body))
    crystaler.script([calls(("acme", {})), DONE])
    result = crystaler.run()
    assert result.exit_code == 4
    parent = next(call for call in result.calls if call.name == "acme")
    assert "hello|True|True" in parent.output.replace("\n", "")
    finished = of(result, ToolCallFinished)
    assert [(event.name, event.parent_call_id) for event in finished] == [
        ("read", parent.id),
        ("write", parent.id),
        ("nothing", parent.id),
        ("acme", None),
    ]
    assert len(results_of(result.requests[1].items)) == 1
    assert not (crystaler.workspace / "b.txt").exists()
