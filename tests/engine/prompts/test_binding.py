"""What becomes of the tokens of a template, whatever the template and the values hold."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.engine.prompts.binding import bind

PROPERTY = settings(max_examples=100, deadline=None)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True)
SHORT_NAMES = st.sampled_from(["acme", "a", "b2", "c_c"])
PLAIN = st.text(alphabet=st.characters(exclude_characters="{}"), max_size=20)
ANY_VALUE = st.one_of(
    st.text(max_size=30),
    st.lists(st.sampled_from(["{", "}", "{{", "}}", "acme", "{{acme}}", "\\1", "\\g<0>", "\n"]), max_size=8).map(
        "".join
    ),
    st.integers(1, 200_000).map(lambda length: "{" * length),
)


def raising(error: BaseException) -> Callable[[], str]:
    def resolve() -> str:
        raise error

    return resolve


def any_case(name: str) -> st.SearchStrategy[str]:
    return st.lists(st.booleans(), min_size=len(name), max_size=len(name)).map(
        lambda upper: "".join(char.upper() if raised else char for char, raised in zip(name, upper, strict=True))
    )


@PROPERTY
@given(NAMES.flatmap(lambda name: st.tuples(st.just(name), any_case(name))), PLAIN, PLAIN, ANY_VALUE)
def test_a_token_in_any_case_is_replaced_by_exactly_the_value(
    names: tuple[str, str], before: str, after: str, value: str
) -> None:
    name, written = names
    bound = bind(f"{before}{{{{{written}}}}}{after}", {name: value})
    assert bound.text == before + value + after
    assert bound.faults == {}


@PROPERTY
@given(
    st.lists(st.tuples(PLAIN, SHORT_NAMES), max_size=6), st.fixed_dictionaries(dict.fromkeys(["acme", "a"], ANY_VALUE))
)
def test_what_was_inserted_is_never_looked_through_again(pieces: list[tuple[str, str]], values: dict[str, str]) -> None:
    template = "".join(f"{text}{{{{{name}}}}}" for text, name in pieces)
    expected = "".join(text + values.get(name, f"{{{{{name}}}}}") for text, name in pieces)
    assert bind(template, values).text == expected


@PROPERTY
@given(ANY_VALUE)
def test_a_template_without_known_tokens_stays_as_it_is(template: str) -> None:
    assert bind(template, {"other": "x"}).text == template
    assert bind(template, {}).text == template


@PROPERTY
@given(ANY_VALUE.filter(lambda text: "{{acme}}" not in text), ANY_VALUE)
def test_a_text_and_what_gives_that_text_bind_alike(around: str, value: str) -> None:
    template = f"{around} {{{{acme}}}} {around}"
    assert bind(template, {"acme": lambda: value}) == bind(template, {"acme": value})


@pytest.mark.parametrize(
    "token", ["{{ acme }}", "{{acme }}", "{acme}", "{{acme}", "{{1acme}}", "{{ac-me}}", "{{}}", "{{acmé}}", "{{ſ}}"]
)
def test_what_is_no_token_stays_as_it_is(token: str) -> None:
    assert bind(token, {"acme": "x", "s": "x", "": "x"}).text == token


def test_outer_braces_stay_around_the_value() -> None:
    assert bind("{{{acme}}} {{{{acme}}}}", {"acme": "x"}).text == "{x} {{x}}"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("secret words"),
        SystemExit(1),
        GeneratorExit(),
        asyncio.CancelledError(),
        StopIteration(),
        MemoryError(),
    ],
)
def test_a_value_that_raises_leaves_its_token_and_its_message_is_not_told(error: BaseException) -> None:
    bound = bind("{{Acme}} {{b}} {{ACME}}", {"acme": raising(error), "b": "B"})
    assert bound.text == "{{Acme}} B {{ACME}}"
    assert list(bound.faults) == ["acme"]
    assert bound.faults["acme"].startswith(f"raised {type(error).__name__} in resolve, line ")
    assert "secret" not in bound.faults["acme"]


def test_an_interrupt_by_the_operator_is_no_fault_of_a_value() -> None:
    with pytest.raises(KeyboardInterrupt):
        bind("{{acme}}", {"acme": raising(KeyboardInterrupt())})


@pytest.mark.parametrize("answer", [None, 3, b"bytes", ["x"], True, object])
def test_a_value_that_is_no_text_leaves_its_token(answer: Any) -> None:
    bound = bind("a {{acme}} z", {"acme": lambda: answer})
    assert bound.text == "a {{acme}} z"
    told = "nothing" if answer is None else f"{type(answer).__name__}, which is not a text"
    assert bound.faults == {"acme": f"returned {told}"}


def test_a_coroutine_is_no_text_and_is_not_left_open() -> None:
    async def resolve() -> str:
        return "late"

    started = resolve()
    assert bind("{{acme}}", {"acme": lambda: started}).faults == {"acme": "returned coroutine, which is not a text"}
    assert inspect.getcoroutinestate(started) == inspect.CORO_CLOSED


def test_a_value_that_only_pretends_to_be_a_text_is_a_fault() -> None:
    class Pretending:
        __class__ = str  # type: ignore[assignment]

    bound = bind("{{acme}}", {"acme": Pretending})
    assert bound.text == "{{acme}}"
    assert list(bound.faults) == ["acme"]


def test_a_text_with_code_of_its_own_becomes_a_plain_text() -> None:
    class Loud(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError("ran later")

    bound = bind("{{acme}}", {"acme": lambda: Loud("x")})
    assert bound.text == "x"
    assert type(bound.text) is str


def test_a_value_is_asked_for_once_a_binding_and_only_where_its_token_stands() -> None:
    asked: list[str] = []

    def counting(name: str) -> Callable[[], str]:
        def resolve() -> str:
            asked.append(name)
            return f"{name}{len(asked)}"

        return resolve

    values = {"a": counting("a"), "b": counting("b")}
    assert bind("{{a}} {{A}}", values).text == "a1 a1"
    assert bind("{{a}}", values).text == "a2"
    assert asked == ["a", "a"]
