"""The content output: what is taken, and what every other output is told."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.tool_sets.content import IMAGE_BYTES, ContentRefused, read_content
from crystal.types.items import Image

PNG = b"\x89PNG\r\n\x1a\nrest"
JPEG = b"\xff\xd8\xffrest"


def image(data: bytes = PNG, **fields: Any) -> dict[str, Any]:
    return {"mimeType": "image/png", "base64": base64.b64encode(data).decode(), **fields}


def read(value: Any) -> tuple[str, tuple[Image, ...]]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_content(data, lambda path: {"a.jpg": JPEG, "big": PNG + bytes(IMAGE_BYTES)}[path])


@pytest.mark.parametrize(
    ("value", "text", "images"),
    [
        ({"text": "hi"}, "hi", []),
        ({"text": "", "images": []}, "", []),
        ({"text": "hi", "images": None, "other": 1}, "hi", []),
        (b'\xef\xbb\xbf {"text": "mark"} \n', "mark", []),
        ({"text": "x", "images": [image(), image(JPEG, mimeType="IMAGE/JPEG")]}, "x", [PNG, JPEG]),
        ({"text": "x", "images": [{"mimeType": "image/jpeg", "path": "a.jpg", "base64": None}]}, "x", [JPEG]),
        ({"text": "x", "images": [image(base64="iVBORw0K\nGgo=\n")]}, "x", [PNG[:8]]),
        ({"text": "x", "images": [image()] * 8}, "x", [PNG] * 8),
        ({"text": "half \ud800"}, "half ?", []),
    ],
)
def test_a_text_and_images_are_taken(value: Any, text: str, images: list[bytes]) -> None:
    found, shown = read(value)
    assert (found, [each.data for each in shown]) == (text, images)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "not one JSON object"),
        (b"plain words", "not one JSON object"),
        (b'{"text": "a"} {"text": "b"}', "not one JSON object"),
        (b'{"text": "\xff"}', "not UTF-8 at byte 10"),
        (b"[" * 100_000, "not one JSON object"),
        ([], "a list, not a JSON object"),
        ({}, "nothing as 'text'"),
        ({"text": 5}, "a number as 'text'"),
        ({"text": "x", "images": {}}, "an object as 'images'"),
        ({"text": "x", "images": [image()] * 9}, "9 images; 8 are the most"),
        ({"text": "x", "images": [image(), "y"]}, "a text at images[1]"),
        ({"text": "x", "images": [{"base64": "eA=="}]}, "nothing as images[0].mimeType"),
        ({"text": "x", "images": [{"mimeType": "image/png"}]}, "exactly one of base64 and path at images[0]; it has 0"),
        ({"text": "x", "images": [image(path="a.jpg")]}, "exactly one of base64 and path at images[0]; it has 2"),
        ({"text": "x", "images": [image(base64=7)]}, "a number as images[0].base64"),
        ({"text": "x", "images": [image(base64="ab!d")]}, "images[0] that cannot be decoded"),
        ({"text": "x", "images": [image(b"words")]}, "no PNG, JPEG, GIF or WebP"),
        ({"text": "x", "images": [image(JPEG)]}, "declares 'image/png' at images[0], but its bytes are image/jpeg"),
        ({"text": "x", "images": [{"mimeType": "image/png", "path": "big"}]}, "20,971,520 are the most"),
    ],
)
def test_anything_else_says_what_and_where(value: Any, said: str) -> None:
    with pytest.raises(ContentRefused) as refused:
        read(value)
    assert said in str(refused.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["text", "images", "mimeType", "base64"]), inner),
)


@given(st.binary(max_size=60) | VALUES.map(json.dumps).map(str.encode))
@settings(max_examples=100, deadline=None)
def test_no_output_does_more_than_be_taken_or_refused(data: bytes) -> None:
    said = ""
    try:
        read_content(data, lambda path: b"")
    except ContentRefused as refused:
        said = str(refused)
    assert said or isinstance(json.loads(data)["text"], str)
