"""Frozen values: immutable, keyword-only, and dataclasses to everyone who looks."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types import approval, capabilities, commands, environment, events, items, model, notes, paths, session
from crystal.types import tools as tool_types
from crystal.types._frozen import Frozen, FrozenValueError
from crystal.types._readonly import read_only

MODULES = (approval, capabilities, commands, environment, events, items, model, notes, paths, session, tool_types)


class Point(Frozen):
    """Two numbers, one of them optional."""

    dimension: ClassVar[int] = 2
    x: int
    y: int = 7


class NamedPoint(Point):
    """A point with more fields."""

    name: str
    marks: tuple[str, ...] = ()


class Other(Frozen):
    """The same fields as a point."""

    x: int
    y: int = 7


class Holder(Frozen):
    """A value inside a value."""

    point: Point
    more: tuple[Point, ...] = ()


def frozen_classes() -> Iterator[type[Frozen]]:
    """Every frozen class that the types rooms define."""
    for module in MODULES:
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, Frozen) and found.__module__ == module.__name__:
                yield found


CLASSES = tuple(frozen_classes())


def test_fields_are_read_and_defaults_fill_in() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=2).y, Point.dimension) == (1, 7, 2, 2)


@pytest.mark.parametrize("name", ["x", "y", "z", "dimension", "__dict__"])
def test_no_field_and_nothing_else_can_be_set_or_deleted(name: str) -> None:
    point = Point(x=1)
    with pytest.raises(FrozenValueError, match=r"dataclasses\.replace"):
        setattr(point, name, 5)
    with pytest.raises(FrozenValueError):
        delattr(point, name)
    assert point == Point(x=1)


def test_a_frozen_value_error_is_an_attribute_error() -> None:
    assert issubclass(FrozenValueError, AttributeError)


@pytest.mark.parametrize("arguments", [{}, {"y": 1}, {"x": 1, "z": 2}, {"x": 1, "dimension": 3}])
def test_a_missing_or_unknown_argument_is_a_type_error(arguments: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(**arguments)


def test_arguments_are_given_by_name_only() -> None:
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[misc]


@pytest.mark.parametrize("default", [[], {}, set(), bytearray()])
def test_a_mutable_default_is_refused_where_the_class_is_defined(default: Any) -> None:
    with pytest.raises(TypeError, match="immutable"):
        type("Wrong", (Frozen,), {"__annotations__": {"field": "Any"}, "field": default})


def test_replace_gives_a_changed_copy_and_leaves_the_value_alone() -> None:
    point = NamedPoint(x=1, name="a")
    changed = dataclasses.replace(point, y=2, name="b")
    assert changed == NamedPoint(x=1, y=2, name="b")
    assert point == NamedPoint(x=1, name="a")
    assert type(changed) is NamedPoint
    with pytest.raises(TypeError):
        dataclasses.replace(point, unknown=1)  # type: ignore[call-arg]


def test_it_is_a_dataclass_with_the_fields_of_its_bases_first() -> None:
    assert dataclasses.is_dataclass(NamedPoint)
    assert dataclasses.is_dataclass(NamedPoint(x=1, name="a"))
    assert [field.name for field in dataclasses.fields(NamedPoint)] == ["x", "y", "name", "marks"]
    assert [field.name for field in dataclasses.fields(Point)] == ["x", "y"]
    assert {field.name: field.default for field in dataclasses.fields(Point)} == {"x": dataclasses.MISSING, "y": 7}


def test_asdict_and_astuple_go_into_values_inside() -> None:
    holder = Holder(point=Point(x=1), more=(Point(x=2, y=3),))
    assert dataclasses.asdict(holder) == {"point": {"x": 1, "y": 7}, "more": ({"x": 2, "y": 3},)}
    assert dataclasses.astuple(holder) == ((1, 7), ((2, 3),))


def test_values_are_equal_by_class_and_fields() -> None:
    assert Point(x=1) == Point(x=1, y=7)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    assert Point(x=1) != NamedPoint(x=1, name="a")
    assert Point(x=1) != (1, 7)
    assert Point(x=1) != {"x": 1, "y": 7}


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
def test_equal_values_hash_alike(x: int, y: int, other_x: int, other_y: int) -> None:
    one, other = Point(x=x, y=y), Point(x=other_x, y=other_y)
    assert (one == other) is ((x, y) == (other_x, other_y))
    assert len({one, other}) == (1 if one == other else 2)


def test_class_patterns_match_by_name_and_by_position() -> None:
    match Point(x=1):
        case Point(1, y):
            assert y == 7
        case _:
            pytest.fail("a positional pattern did not match")
    match NamedPoint(x=1, name="a"):
        case NamedPoint(name=name, x=1):
            assert name == "a"
        case _:
            pytest.fail("a keyword pattern did not match")


@pytest.mark.parametrize(
    "value",
    [
        Point(x=1),
        NamedPoint(x=1, name="a", marks=("b",)),
        Holder(point=Point(x=1), more=(Point(x=2),)),
        tool_types.ToolCall(id="c", name="read", arguments=read_only({"a": [1, {"b": None}]})),
        approval.Classification(risk=approval.Risk.WRITE, authority=approval.Authority.NETWORK),
    ],
)
def test_copies_and_pickles_are_equal_values(value: Frozen) -> None:
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        restored = pickle.loads(pickle.dumps(value, protocol))
        assert restored == value
        assert type(restored) is type(value)


def test_its_text_shows_class_and_fields() -> None:
    assert repr(NamedPoint(x=1, name="a")) == "NamedPoint(x=1, y=7, name='a', marks=())"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_frozen_class_of_the_types_has_no_dict_and_no_mutable_default(kind: type[Frozen]) -> None:
    mutable = (list, dict, set, bytearray)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        assert type(field.default) not in mutable
        if isinstance(field.default, Mapping):
            with pytest.raises(TypeError):
                field.default["key"] = 1  # type: ignore[index]
    assert not any("__dict__" in vars(base) for base in kind.__mro__ if base is not object)
    assert kind.__match_args__ == tuple(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type,attr-defined]
