"""What a program is given of a call: exactly what was fenced, each value an argument of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.tool_sets.arguments import ArgumentRefused, bind_arguments, encode_input

FLAGS = {"b": "--b", "a": "-a", "c": "--c=c"}
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS


@pytest.mark.parametrize(
    ("arguments", "bound"),
    [
        ({}, []),
        ({"a": None}, []),
        ({"a": "x", "b": "y"}, ["--b", "y", "-a", "x"]),
        ({"a": "-rf"}, ["-a", "-rf"]),
        ({"a": "--help", "c": ""}, ["-a", "--help", "--c=c", ""]),
        ({"a": "x y'\"$(z);\n"}, ["-a", "x y'\"$(z);\n"]),
        ({"a": True, "b": False}, ["--b", "false", "-a", "true"]),
        ({"a": 3, "b": 2.5}, ["--b", "2.5", "-a", "3"]),
        ({"a": 10**30, "b": 1e300}, ["--b", "1e+300", "-a", str(10**30)]),
        ({"a": ["x", "-y", ""]}, ["-a", "x", "-a", "-y", "-a", ""]),
        ({"a": []}, []),
        ({"unlisted": "x"}, []),
    ],
)
def test_values_stand_behind_their_flags_in_the_order_of_the_file(arguments: dict[str, Any], bound: list[str]) -> None:
    assert bind_arguments(FLAGS, arguments) == bound


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"x": 1}, "an object"),
        ([1], "a list with more than texts"),
        (["x", None], "a list with more than texts"),
        ([["x"]], "a list with more than texts"),
        ("a\0b", "NUL"),
        (["a\0b"], "NUL"),
    ],
)
def test_anything_else_refuses_the_call_and_names_the_argument(value: Any, words: str) -> None:
    with pytest.raises(ArgumentRefused, match=f"'a'.*{words}"):
        bind_arguments(FLAGS, {"a": value})


@given(st.dictionaries(st.sampled_from([*FLAGS, "other"]), SCALARS | st.lists(TEXTS)))
@settings(max_examples=100, deadline=None)
def test_no_value_is_lost_changed_or_split(arguments: dict[str, Any]) -> None:
    bound = iter(bind_arguments(FLAGS, arguments))
    for name, flag in FLAGS.items():
        value = arguments.get(name)
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            assert next(bound) == flag
            text = next(bound)
            assert text == each if isinstance(each, str) else json.loads(text) == each
    assert list(bound) == []


@given(st.dictionaries(TEXTS, SCALARS | st.lists(TEXTS)))
@settings(max_examples=100, deadline=None)
def test_the_input_is_the_argument_object_in_utf_8_without_a_mark(arguments: dict[str, Any]) -> None:
    data = encode_input(arguments)
    assert not data.startswith(b"\xef\xbb\xbf")
    assert json.loads(data.decode()) == arguments
