"""Read-only JSON: real dicts and lists whose every mutator raises, and whose copies are ordinary ones."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types._readonly import EMPTY, ReadOnlyDict, ReadOnlyError, ReadOnlyList, read_only, thaw

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def set_item(value: Any) -> None:
    value["a" if isinstance(value, dict) else 0] = 1


def delete_item(value: Any) -> None:
    del value["a" if isinstance(value, dict) else 0]


def delete_slice(value: Any) -> None:
    del value[:]


def set_slice(value: Any) -> None:
    value[:] = [1]


def add_in_place(value: Any) -> None:
    value += [1]


def multiply_in_place(value: Any) -> None:
    value *= 2


def merge_in_place(value: Any) -> None:
    value |= {"a": 2}


DICT_MUTATORS: tuple[Callable[[Any], None], ...] = (
    set_item,
    delete_item,
    merge_in_place,
    lambda value: value.clear(),
    lambda value: value.pop("a"),
    lambda value: value.pop("missing", None),
    lambda value: value.popitem(),
    lambda value: value.setdefault("a", 2),
    lambda value: value.setdefault("missing", 2),
    lambda value: value.update({"a": 2}),
    lambda value: value.update(a=2),
)
LIST_MUTATORS: tuple[Callable[[Any], None], ...] = (
    set_item,
    delete_item,
    delete_slice,
    set_slice,
    add_in_place,
    multiply_in_place,
    lambda value: value.append(1),
    lambda value: value.clear(),
    lambda value: value.extend([1]),
    lambda value: value.insert(0, 1),
    lambda value: value.pop(),
    lambda value: value.remove("a"),
    lambda value: value.reverse(),
    lambda value: value.sort(),
)


@pytest.mark.parametrize("mutate", DICT_MUTATORS)
def test_an_object_cannot_be_changed(mutate: Callable[[Any], None]) -> None:
    value = read_only({"a": 1, "b": {"c": 2}})
    with pytest.raises(ReadOnlyError, match="read-only"):
        mutate(value)
    assert value == {"a": 1, "b": {"c": 2}}


@pytest.mark.parametrize("mutate", LIST_MUTATORS)
def test_an_array_cannot_be_changed(mutate: Callable[[Any], None]) -> None:
    value = read_only({"list": ["b", "a"]})["list"]
    with pytest.raises(ReadOnlyError, match="read-only"):
        mutate(value)
    assert value == ["b", "a"]


def mutators(kind: type) -> set[str]:
    """Names of the methods of ``kind`` that a tuple or a mapping proxy of the same content lacks."""
    still: type = MappingProxyType if kind is dict else tuple
    return set(dir(kind)) - set(dir(still)) - {"__reversed__", "__init__", "copy", "fromkeys", "__copy__"}


@pytest.mark.parametrize(("kind", "read_only_kind"), [(dict, ReadOnlyDict), (list, ReadOnlyList)])
def test_no_mutating_method_of_this_python_was_forgotten(kind: type, read_only_kind: type) -> None:
    inherited = {name for name in mutators(kind) if getattr(read_only_kind, name) is getattr(kind, name)}
    assert inherited == set()


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_json_gives_the_same_text_and_back_the_same_value(value: Any) -> None:
    frozen = read_only(value)
    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value)
    assert json.loads(json.dumps(frozen)) == value
    assert thaw(frozen) == value


def containers(value: Any) -> list[Any]:
    """Every object and array inside a value."""
    if isinstance(value, dict):
        return [value, *(found for entry in value.values() for found in containers(entry))]
    if isinstance(value, list):
        return [value, *(found for entry in value for found in containers(entry))]
    return []


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_a_copy_is_an_ordinary_mutable_value_all_the_way_down(value: Any) -> None:
    frozen = read_only(value)
    for made in (thaw(frozen), copy.deepcopy(frozen)):
        assert made == value
        for container in containers(made):
            assert type(container) in (dict, list)
            container.clear()
    assert frozen == value


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_every_container_inside_is_read_only_too(value: Any) -> None:
    for container in containers(read_only(value)):
        with pytest.raises(ReadOnlyError):
            container.clear()


@settings(max_examples=60, deadline=None)
@given(json_values)
def test_a_pickle_comes_back_read_only(value: Any) -> None:
    restored = pickle.loads(pickle.dumps(read_only(value)))
    assert restored == value
    for container in containers(restored):
        with pytest.raises(ReadOnlyError):
            container.clear()


def test_changing_the_source_afterwards_changes_nothing() -> None:
    source: dict[str, Any] = {"list": [1], "object": {"a": 1}}
    frozen = read_only(source)
    source["list"].append(2)
    source["object"]["a"] = 2
    assert frozen == {"list": [1], "object": {"a": 1}}


def test_other_mappings_and_tuples_become_json_containers() -> None:
    frozen = read_only(MappingProxyType({"a": (1, (2,))}))
    assert frozen == {"a": [1, [2]]}
    assert json.dumps(frozen) == '{"a": [1, [2]]}'


def test_a_shallow_copy_by_dict_or_list_can_be_changed() -> None:
    frozen = read_only({"a": [1]})
    changed = {**frozen, "b": 2}
    changed["c"] = [*frozen["a"], 2]
    assert changed == {"a": [1], "b": 2, "c": [1, 2]}
    assert dict(frozen) | {"a": 0} == {"a": 0}
    assert frozen == {"a": [1]}


def test_patterns_match_it_like_plain_json() -> None:
    match read_only({"kind": "edit", "paths": ["a", "b"]}):
        case {"kind": "edit", "paths": [first, *_]}:
            assert first == "a"
        case _:
            pytest.fail("a mapping pattern did not match")


def test_the_empty_default_is_empty_and_cannot_be_filled() -> None:
    with pytest.raises(ReadOnlyError):
        EMPTY["a"] = 1
    assert EMPTY == {}
