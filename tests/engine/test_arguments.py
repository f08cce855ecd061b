"""Arguments of a tool call: what is taken as none, what is refused, and that the quick check agrees with jsonschema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.arguments import (
    ArgumentChecker,
    ArgumentsFault,
    SchemaUnusable,
    is_plainly_valid,
    parse_arguments,
)
from crystal.types._readonly import ReadOnlyDict, ReadOnlyError, read_only


@pytest.mark.parametrize("text", ["", "  ", "\n", "null", " null ", "{}", '"{}"', '"null"'])
def test_blank_text_null_and_an_empty_object_mean_no_arguments(text: str) -> None:
    assert parse_arguments(text) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"path": "a"}', {"path": "a"}),
        (' {"path": "a", "limit": 3}\n', {"path": "a", "limit": 3}),
        ('{"edits": [{"old": "}{", "new": null}]}', {"edits": [{"old": "}{", "new": None}]}),
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
        ('{"path": "a", "path": "b"}', {"path": "b"}),
        ('{"text": "\\ud83d\\ude00"}', {"text": "😀"}),
    ],
)
def test_an_object_is_taken_as_it_is(text: str, value: dict[str, Any]) -> None:
    assert parse_arguments(text) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"path": "a', "not valid JSON"),
        ("{}{}", "not valid JSON"),
        ("{'path': 'a'}", "not valid JSON"),
        ('{"path": "a"} and so on', "not valid JSON"),
        ("read a", "not valid JSON"),
        ('{"limit": NaN}', "NaN"),
        ('{"limit": -Infinity}', "-Infinity"),
        ('{"limit": 1e999}', "not valid JSON"),
        ('{"limit": ' + "9" * 5000 + "}", "not valid JSON"),
        ("[1]", "an array"),
        ('"str"', "not valid JSON"),
        ('"[1]"', "an array"),
        ('"\\"{}\\""', "a string"),
        ("3", "a number"),
        ("3.5", "a number"),
        ("true", "a boolean"),
    ],
)
def test_everything_else_is_refused_with_its_fault(text: str, words: str) -> None:
    with pytest.raises(ArgumentsFault, match="not run") as refused:
        parse_arguments(text)
    assert words in str(refused.value)


@pytest.mark.parametrize("depth", [10, 400, 600, 900, 100_000])
def test_nesting_is_taken_up_to_a_depth_and_refused_beyond(depth: int) -> None:
    text = '{"a": ' + "[" * depth + "]" * depth + "}"
    if depth < 100:
        assert isinstance(parse_arguments(text), ReadOnlyDict)
    else:
        with pytest.raises(ArgumentsFault, match="not run"):
            parse_arguments(text)


def test_parsed_arguments_cannot_be_changed() -> None:
    arguments = parse_arguments('{"a": {"b": [1]}}')
    with pytest.raises(ReadOnlyError):
        arguments["c"] = 1
    with pytest.raises(ReadOnlyError):
        arguments["a"]["b"].append(2)


@given(st.text(max_size=30) | st.text(alphabet='{}[]":,01a \\nul', max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_text_is_an_object_or_a_fault(text: str) -> None:
    try:
        parsed = parse_arguments(text)
    except ArgumentsFault:
        return
    assert isinstance(parsed, ReadOnlyDict)


scalars = st.sampled_from([None, True, False, 0, 1, -1, 0.0, 1.0, 1.5, "", "a", "1"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
names = st.lists(st.sampled_from("abc"), unique=True, max_size=2)


def with_words(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """A schema of the words that tool schemas mostly use, and some that they do not."""
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(
                ["object", "object", "array", "string", "integer", "number", "boolean", "null", ["string", "null"]]
            ),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "required": names,
            "additionalProperties": st.booleans() | inner,
            "items": inner,
            "enum": st.lists(values, min_size=1, max_size=3),
            "description": st.just("some words"),
            "default": scalars,
            "title": st.just("T"),
            "minimum": st.just(1),
            "maxLength": st.just(0),
        },
    )


schemas = st.recursive(with_words(st.just({})), with_words, max_leaves=4)


@given(schemas, values)
@settings(max_examples=100, deadline=None)
def test_what_is_plainly_valid_is_valid(schema: dict[str, Any], value: Any) -> None:
    if is_plainly_valid(schema, read_only(value)):
        assert jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("option", "value"), [(1, True), (0, False), ([1], [True]), ({"a": 0}, {"a": False}), ([[1]], [[True]])]
)
def test_a_boolean_is_not_a_number_of_an_enum_at_any_depth(option: Any, value: Any) -> None:
    assert not is_plainly_valid({"enum": [option]}, read_only(value))


def test_an_ordinary_call_needs_no_validator() -> None:
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "a file"},
            "limit": {"type": "integer", "default": 10},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert is_plainly_valid(schema, read_only({"path": "x", "limit": 3, "kinds": ["a"]}))


SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^[a-z]+$"},
        "limit": {"type": "integer", "minimum": 1},
        "edits": {"type": "array", "items": {"type": "object", "required": ["old"]}},
        "mode": {"enum": ["a", "b"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "path", "rule"),
    [
        ({}, "$", "required"),
        ({"path": 3}, "$.path", "type"),
        ({"path": "A"}, "$.path", "pattern"),
        ({"path": "a", "limit": 0}, "$.limit", "minimum"),
        ({"path": "a", "limit": "3"}, "$.limit", "type"),
        ({"path": "a", "limit": True}, "$.limit", "type"),
        ({"path": "a", "edits": [{"old": "x"}, {}]}, "$.edits[1]", "required"),
        ({"path": "a", "mode": "c"}, "$.mode", "enum"),
        ({"path": "a", "file": "b"}, "$", "additionalProperties"),
    ],
)
def test_a_fault_names_the_tool_the_path_and_the_rule(arguments: dict[str, Any], path: str, rule: str) -> None:
    fault = ArgumentChecker().fault("sample", SCHEMA, read_only(arguments))
    assert fault is not None
    assert fault.startswith(f"The arguments of 'sample' break its schema at {path}: ")
    assert f"(rule: {rule})" in fault
    assert fault.endswith("The call was not run.")


def test_valid_arguments_have_no_fault_in_repeated_checks() -> None:
    checker = ArgumentChecker()
    assert checker.fault("sample", SCHEMA, read_only({"path": "a", "limit": 2})) is None
    assert checker.fault("sample", SCHEMA, read_only({"path": "a", "edits": [{"old": "x"}], "mode": "a"})) is None
    assert checker.fault("sample", SCHEMA, read_only({"path": "B"})) is not None


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"type": "text"}, "x"),
        ({"type": "string", "pattern": "("}, "x"),
        ({"$ref": "#/nowhere"}, "x"),
        ({"type": "object", "required": True}, {}),
        ({"type": "object", "required": 1}, {"a": 1}),
        ({"type": "object", "properties": "abc"}, {"a": 1}),
        ({"type": "object", "properties": ["a"]}, {"a": 1}),
        ({"enum": 5}, "x"),
        ({"type": "array", "items": "x"}, [1]),
        ({"type": "array", "items": 3}, [1]),
    ],
)
def test_a_schema_broken_below_its_root_is_said_to_be_unusable(part: dict[str, Any], value: Any) -> None:
    schema = {"type": "object", "properties": {"p": part}}
    with pytest.raises(SchemaUnusable, match="'sample'"):
        ArgumentChecker().fault("sample", schema, read_only({"p": value}))
