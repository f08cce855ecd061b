"""A refused field is left out, renamed or changed, once, and remembered (G55)."""

from __future__ import annotations

from typing import Any

import pytest

from crystal.types.model import ModelError, ModelErrorKind
from plugins_builtin.protocols.chat_parameters import DROPPABLE, ParameterChanges

FIELDS: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.2,
    "top_p": 0.9,
    "max_tokens": 100,
    "reasoning_effort": "high",
    "prompt_cache_key": None,
    "parallel_tool_calls": True,
}
REFUSED = ModelError(ModelErrorKind.INVALID, "no", status=400)


def text(name: str) -> str:
    return f'{{"error": {{"message": "Unsupported parameter: \'{name}\' is not supported with this model."}}}}'


@pytest.mark.parametrize("name", [name for name in DROPPABLE if FIELDS.get(name) is not None and name != "max_tokens"])
@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_field_is_left_out_from_then_on(name: str, status: int) -> None:
    changes = ParameterChanges()
    error = ModelError(ModelErrorKind.INVALID, "no", status=status)
    assert changes.learn(error, text(name), FIELDS)
    assert changes.apply(FIELDS) == {key: value for key, value in FIELDS.items() if key != name and value is not None}
    assert changes.described == (f"{name} left out",)
    assert not changes.learn(error, text(name), FIELDS)


@pytest.mark.parametrize(
    ("old", "new"), [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
def test_the_output_limit_changes_its_name_and_is_never_lost(old: str, new: str) -> None:
    changes = ParameterChanges()
    fields = {"model": "m", old: 100}
    body = f"Unsupported parameter: '{old}' is not supported with this model. Use '{new}' instead."
    assert changes.learn(REFUSED, body, fields)
    assert changes.apply(fields) == {"model": "m", new: 100}
    assert changes.described == (f"{old} sent as {new}",)
    assert not changes.learn(REFUSED, text(new), fields)
    assert changes.apply(fields) == {"model": "m", new: 100}


def test_a_limit_that_the_operator_named_is_not_renamed() -> None:
    changes = ParameterChanges(limit_is_fixed=True)
    assert not changes.learn(REFUSED, text("max_tokens"), FIELDS)
    assert changes.apply(FIELDS)["max_tokens"] == 100


@pytest.mark.parametrize("effort", ["high", None])
def test_tools_that_exclude_thinking_switch_it_off(effort: str | None) -> None:
    changes = ParameterChanges()
    fields = FIELDS | {"reasoning_effort": effort}
    body = (
        "Function tools with reasoning_effort are not supported for X in /v1/chat/completions. "
        "Please use /v1/responses or set reasoning_effort to 'none'."
    )
    assert changes.learn(REFUSED, body, fields)
    assert changes.apply(fields)["reasoning_effort"] == "none"
    assert changes.described == ("reasoning_effort set to none",)
    assert changes.learn(REFUSED, body, fields)
    assert "reasoning_effort" not in changes.apply(fields)
    assert not changes.learn(REFUSED, body, fields)


@pytest.mark.parametrize(
    "body",
    [
        '{"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs"}]}',
        "Unrecognized request argument supplied: stream_options",
        "stream_options: Extra inputs are not permitted",
        "unknown field `stream_options`",
        "This server doesn't support stream_options",
    ],
)
def test_refusals_are_understood_in_many_words(body: str) -> None:
    assert ParameterChanges().learn(REFUSED, body, FIELDS)


@pytest.mark.parametrize(
    ("error", "body"),
    [
        (REFUSED, "max_tokens is too large: 99999. This model supports at most 4096 completion tokens."),
        (REFUSED, "messages: unsupported role"),
        (REFUSED, "Unsupported parameter: 'prompt_cache_key'"),
        (REFUSED, "Unsupported parameter: 'my_temperature'"),
        (REFUSED, ""),
        (ModelError(ModelErrorKind.SERVER, "no", status=500), text("top_p")),
        (ModelError(ModelErrorKind.AUTH, "no", status=401), text("top_p")),
        (
            ModelError(ModelErrorKind.OVERFLOW, "no", status=400),
            "max_tokens exceed context limit, unsupported",
        ),
    ],
)
def test_other_refusals_change_nothing(error: ModelError, body: str) -> None:
    changes = ParameterChanges()
    assert not changes.learn(error, body, FIELDS)
    assert changes.described == ()


def test_the_first_field_named_is_the_one_that_is_blamed() -> None:
    changes = ParameterChanges()
    assert changes.learn(REFUSED, "'top_p' is not supported together with 'temperature'", FIELDS)
    assert changes.described == ("top_p left out",)
