"""The ``content`` output of a program: one JSON object with a text and images. Opens no file itself."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from crystal.store.media import sniff_image
from crystal.types.items import Image

MOST_IMAGES = 8
IMAGE_BYTES = 20 * 1024 * 1024
"""The most that one image may have, as everywhere else."""

CONTENT_BYTES = 32 * 1024 * 1024
"""The most that a program may print as content; larger images are named by ``path``."""

_FIELDS = ("base64", "path")


class ContentRefused(Exception):
    """The output is no content. The message says what was found, where, and what was expected."""


ReadImage = Callable[[str], bytes]
"""Reads an image file that an output names, within the fence; raises :class:`ContentRefused`."""


def read_content(data: bytes, read_image: ReadImage) -> tuple[str, tuple[Image, ...]]:
    """Return the text and the images of an output.

    :raises ContentRefused: for anything that is no such object, or an image that is none.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ContentRefused(f"is not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise ContentRefused(f"is not one JSON object: {error}") from error
    if not isinstance(value, dict):
        raise ContentRefused(f"is {_kind(value)}, not a JSON object")
    text = value.get("text")
    if not isinstance(text, str):
        raise ContentRefused(f"has {_kind(text)} as 'text', not a text")
    images = value.get("images")
    if images is None:
        return _clean(text), ()
    if not isinstance(images, list):
        raise ContentRefused(f"has {_kind(images)} as 'images', not a list")
    if len(images) > MOST_IMAGES:
        raise ContentRefused(f"has {len(images)} images; {MOST_IMAGES} are the most")
    return _clean(text), tuple(_image(f"images[{at}]", each, read_image) for at, each in enumerate(images))


def _image(place: str, value: Any, read_image: ReadImage) -> Image:
    if not isinstance(value, dict):
        raise ContentRefused(f"has {_kind(value)} at {place}, not an object")
    declared = value.get("mimeType")
    if not isinstance(declared, str):
        raise ContentRefused(f"has {_kind(declared)} as {place}.mimeType, not a text")
    given = [field for field in _FIELDS if value.get(field) is not None]
    if len(given) != 1:
        raise ContentRefused(f"must have exactly one of base64 and path at {place}; it has {len(given)}")
    field = given[0]
    said = value[field]
    if not isinstance(said, str):
        raise ContentRefused(f"has {_kind(said)} as {place}.{field}, not a text")
    data = _decode(place, said) if field == "base64" else read_image(said)
    if len(data) > IMAGE_BYTES:
        raise ContentRefused(f"has an image of {len(data):,} bytes at {place}; {IMAGE_BYTES:,} are the most")
    found = sniff_image(data)
    if not found:
        raise ContentRefused(f"has at {place} something that is no PNG, JPEG, GIF or WebP image")
    if found != declared.lower():
        raise ContentRefused(f"declares {declared!r} at {place}, but its bytes are {found}")
    return Image(media_type=found, data=data)


def _decode(place: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ContentRefused(f"has a base64 text at {place} that cannot be decoded: {error}") from error


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
