"""Strict JSON with places: a fault is one sentence with its line, and no file is ever written from here.

Strict means RFC 8259: no comments, trailing commas, ``NaN`` or repeated keys. A UTF-8 byte order mark is accepted.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from crystal.store.errors import HomeFileError
from crystal.store.home import describe
from crystal.types._frozen import Frozen

JsonPath: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top of a document to one value."""

_SPACE = re.compile(r"[ \t\n\r]*")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TRAILING_COMMA = "a comma must not stand before a closing bracket"
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class JsonFile(Frozen):
    """A JSON object as it stands in a file.

    :param data: the bytes of the file.
    :param text: the decoded text, for finding lines.
    """

    path: Path
    data: bytes
    text: str
    value: dict[str, Any]

    def line(self, place: Sequence[str | int]) -> int | None:
        """Return the 1-based line of the value at ``place``, or of its nearest ancestor that is there."""
        best, found = -1, None
        for known, offset in _places(self.text):
            if len(known) > best and known == tuple(place[: len(known)]):
                best, found = len(known), offset
        return None if found is None else _line(self.text, found)

    def refuse(self, place: Sequence[str | int], message: str) -> NoReturn:
        """Raise the error of one field.

        :raises HomeFileError: always.
        """
        raise HomeFileError(self.path, message, line=self.line(place), field=dotted(place))


def read_json_object(path: Path) -> JsonFile | None:
    """Read a file that holds one JSON object; ``None`` when there is no file.

    :raises HomeFileError: when it cannot be read, is not strict JSON, or is not an object.
    """
    data = _read(path)
    return None if data is None else parse_json_object(path, data)


def parse_json_object(path: Path, data: bytes) -> JsonFile:
    """Parse bytes that came from ``path``.

    :raises HomeFileError: when they are not strict JSON or not an object.
    """
    text = _decode(path, data)
    if not text.strip():
        raise HomeFileError(path, "the file is empty; delete it, or write {} into it")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        message, offset = _explain(text, error)
        raise HomeFileError(path, message, line=_line(text, offset)) from error
    except _RepeatedKey:
        place, offset = _repeated(text)
        message = "this key stands twice in one object"
        raise HomeFileError(path, message, line=_line(text, offset), field=dotted(place)) from None
    except _Constant as error:
        line = _line(text, _constant_offset(text))
        raise HomeFileError(path, f"{error.args[0]} is not JSON; a number is expected", line=line) from None
    except RecursionError:
        raise HomeFileError(path, "objects and lists are nested too deeply") from None
    except ValueError as error:
        raise HomeFileError(path, "a number has too many digits") from error
    if not isinstance(value, dict):
        raise HomeFileError(path, f"expected an object, found {kind(value)}", line=1)
    _refuse_half_characters(path, text, value)
    return JsonFile(path=path, data=data, text=text, value=value)


def dotted(place: Sequence[str | int]) -> str:
    """Write a path the way people do: ``openai.models.x``, ``gateway[1].protocol``."""
    written = ""
    for part in place:
        written += f"[{part}]" if isinstance(part, int) else f".{part}" if written else part
    return written


def kind(value: object) -> str:
    """Name the JSON type of a value in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    words = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return words.get(type(value), type(value).__name__)


def _read(path: Path) -> bytes | None:
    try:
        # Without O_NONBLOCK a named pipe in the place of the file would hold the start for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise HomeFileError(path, "a regular file is needed here, and it is something else")
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HomeFileError(path, f"cannot be read: {describe(error)}") from error


def _decode(path: Path, data: bytes) -> str:
    if data.startswith(_UTF_16_MARKS):
        raise HomeFileError(path, "the file is UTF-16; save it as UTF-8")
    try:
        return data.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise HomeFileError(path, message, line=line) from error


class _RepeatedKey(Exception):
    pass


class _Constant(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _RepeatedKey
    return value


def _no_constant(word: str) -> NoReturn:
    raise _Constant(word)


def _refuse_half_characters(path: Path, text: str, value: dict[str, Any]) -> None:
    """JSON can spell half of a surrogate pair; no other text can hold one, so it would fail far from here."""
    if "\\ud" not in text.lower():
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        message = f"a text holds half a character, \\u{ord(error.object[error.start]):04x}"
        raise HomeFileError(path, message) from error


def _explain(text: str, error: json.JSONDecodeError) -> tuple[str, int]:
    """Return what is wrong in our words, and where; the parser's own words and places differ between releases."""
    at = error.pos
    rest = text[at : at + 2]
    before = text[:at].rstrip()
    if rest in ("//", "/*") or rest[:1] == "#":
        return "comments are not allowed in this file", at
    if rest[:1] in ("}", "]") and before.endswith(","):
        return _TRAILING_COMMA, len(before) - 1
    if error.msg.startswith("Illegal trailing comma"):
        return _TRAILING_COMMA, at
    if not text[at:].strip() or error.msg.startswith("Unterminated string"):
        return "the file ends in the middle of a value", at
    if rest[:1] == "'":
        return "texts stand in double quotes", at
    return f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}", at


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _constant_offset(text: str) -> int:
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)', text):
        if found[1]:
            return found.start()
    return 0


def _repeated(text: str) -> tuple[JsonPath, int]:
    seen: set[JsonPath] = set()
    for place, offset in _places(text):
        if place in seen:
            return place, offset
        seen.add(place)
    return (), 0


def _places(text: str) -> Iterator[tuple[JsonPath, int]]:
    """Yield every value's path and the offset where its key, or the list entry itself, begins.

    The text has been accepted by the parser up to the place of interest, so nothing is checked again.
    """
    decoder = json.JSONDecoder()
    open_places: list[tuple[JsonPath, int]] = []
    at, length = 0, len(text)
    expects_key = False
    place: JsonPath = ()
    while (at := _SPACE.match(text, at).end()) < length:  # type: ignore[union-attr]
        sign = text[at]
        if sign in "}]":
            open_places.pop()
            at += 1
        elif sign in ",:":
            at += 1
            expects_key = sign == "," and open_places[-1][1] < 0
            if sign == "," and not expects_key:
                above, position = open_places[-1]
                open_places[-1] = (above, position + 1)
        elif expects_key and sign == '"':
            key, end = decoder.raw_decode(text, at)
            place = (*open_places[-1][0], key)
            yield place, at
            at, expects_key = end, False
        else:
            if open_places and open_places[-1][1] >= 0:
                place = (*open_places[-1][0], open_places[-1][1])
                yield place, at
            if sign in "{[":
                open_places.append((place, -1 if sign == "{" else 0))
                expects_key = sign == "{"
                at += 1
            else:
                at = decoder.raw_decode(text, at)[1]
