from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.store.home import HomeFileError
from crystal.store.json_files import JsonPath, dotted, parse_json_object, read_json_object

FAULTS = [
    (b'{ // c\n "model":"m", /* d */ "url":"http://x//y", }', 1, "comments are not allowed in this file"),
    (b'{\n "model":"m", /* d */ "x": 1}', 2, "comments are not allowed in this file"),
    (b"{\n # c\n}", 2, "comments are not allowed in this file"),
    (b'{\n "a": 1,\n}', 2, "a comma must not stand before a closing bracket"),
    (b'{"a": [1,\n 2,\n ]}', 2, "a comma must not stand before a closing bracket"),
    (b'{\n "model": "m', 2, "the file ends in the middle of a value"),
    (b'{\n "model":\n', 3, "the file ends in the middle of a value"),
    (b'{\n "model": "m",\n', 3, "the file ends in the middle of a value"),
    (b"{\n 'a': 1}", 2, "texts stand in double quotes"),
    (b'{"a": 1} {"b": 2}', 1, "not valid JSON: extra data"),
    (b'{\n "a": NaN}', 2, "NaN is not JSON; a number is expected"),
    (b'{\n "NaN": "Infinity",\n "b": -Infinity}', 3, "-Infinity is not JSON; a number is expected"),
    (b"[1]", 1, "expected an object, found a list"),
    (b"null", 1, "expected an object, found null"),
    (b"", None, "the file is empty; delete it, or write {} into it"),
    (b" \n\t", None, "the file is empty; delete it, or write {} into it"),
    (b"\xef\xbb\xbf", None, "the file is empty; delete it, or write {} into it"),
    ('{"a": 1}'.encode("utf-16"), None, "the file is UTF-16; save it as UTF-8"),
    (b'{\n "a": "caf\xe9"}', 2, "byte 0xe9 is not UTF-8; save the file as UTF-8"),
    (b'{"a": ' + b"[" * 100_000, None, "objects and lists are nested too deeply"),
    (b'{"a": "x", "b": ["\\ud83d"]}', None, "a text holds half a character, \\ud83d"),
    (b'{"a": ' + b"9" * 5000 + b"}", None, "a number has too many digits"),
]


@pytest.mark.parametrize(("data", "line", "message"), FAULTS)
def test_a_fault_is_one_sentence_with_its_line_and_the_file_stays(
    tmp_path: Path, data: bytes, line: int | None, message: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(data)
    with pytest.raises(HomeFileError) as raised:
        read_json_object(path)
    assert (raised.value.line, raised.value.message) == (line, message)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ('{"a": 1,\n "a": 1}', 2, "a"),
        ('{"a": {"b": [1, {"c": 1,\n\n"c": 2}]}}', 3, "a.b[1].c"),
        ('{"x": {"a": 1},\n "y": {"a": 1},\n "x": 2}', 3, "x"),
    ],
)
def test_a_repeated_key_is_named(text: str, line: int, field: str) -> None:
    with pytest.raises(HomeFileError) as raised:
        parse_json_object(Path("/h/config.json"), text.encode())
    assert (raised.value.line, raised.value.field) == (line, field)


def test_a_byte_order_mark_and_slashes_in_texts_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'\xef\xbb\xbf{"url": "http://x//y /* no comment */"}')
    file = read_json_object(path)
    assert file is not None
    assert file.value == {"url": "http://x//y /* no comment */"}


def test_a_character_spelt_as_a_surrogate_pair_is_fine() -> None:
    assert parse_json_object(Path("/h/x.json"), b'{"a": "\\ud83d\\ude00"}').value == {"a": "\U0001f600"}


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_json_object(tmp_path / "config.json") is None


def test_what_is_not_a_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for name in ("pipe.json", "folder.json"):
        with pytest.raises(HomeFileError, match="a regular file is needed here"):
            read_json_object(tmp_path / name)


def test_a_file_below_a_file_cannot_be_read_rather_than_being_missing(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(HomeFileError, match="cannot be read: not a directory"):
        read_json_object(tmp_path / "home" / "config.json")


def test_places_are_written_the_way_people_do() -> None:
    assert dotted(("openai", "models", "x")) == "openai.models.x"
    assert dotted(("gateway", 1, "protocol")) == "gateway[1].protocol"


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)


def _every_place(value: Any, place: JsonPath) -> list[JsonPath]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [place, *(found for key, item in inner for found in _every_place(item, (*place, key)))]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=8), _values, max_size=5), st.booleans())
def test_every_value_is_found_on_the_line_where_it_begins(value: dict[str, Any], ascii_only: bool) -> None:
    # One value a line is what indent does: the lines are then the order of all places, but for closing brackets.
    text = json.dumps(value, indent=1, ensure_ascii=ascii_only)
    file = parse_json_object(Path("/h/x.json"), text.encode())
    closing = {"}", "]", "},", "],"}
    begins = [number for number, line in enumerate(text.split("\n"), 1) if line.strip() not in closing]
    places = _every_place(file.value, ())[1:]
    assert [file.line(place) for place in places] == begins[1:]
