"""A request body is valid UTF-8 JSON whatever text it carries."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types._readonly import read_only
from crystal.wire.json_text import encode_json


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_text_comes_back_as_it_was(text: str) -> None:
    assert json.loads(encode_json({"text": text}).decode("utf-8")) == {"text": text}


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(categories=["Cs", "L"])))
def test_lone_halves_of_surrogate_pairs_never_reach_the_wire(text: str) -> None:
    sent = encode_json([text]).decode("utf-8")
    assert not any("\ud800" <= character <= "\udfff" for character in json.loads(sent)[0])


def test_two_halves_from_two_deltas_become_their_character() -> None:
    assert encode_json("\ud83d" + "\ude00") == '"😀"'.encode()


def test_read_only_values_and_mappings_are_written_as_json() -> None:
    value = {"a": read_only({"b": [1]}), "c": MappingProxyType({"d": 1})}
    assert encode_json(value) == b'{"a":{"b":[1]},"c":{"d":1}}'


def test_a_value_without_json_form_is_an_error() -> None:
    with pytest.raises(TypeError, match="object"):
        encode_json({"a": object()})
