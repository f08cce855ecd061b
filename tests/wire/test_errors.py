"""A failure has the right kind and the provider's own text, whoever the provider is (G21, G53)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.errors import foreign_body_error, payload_error, response_error

KIND = ModelErrorKind


def of(status: int, body: Any = b"", **headers: str) -> ModelError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return response_error(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw, 0.0)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (302, KIND.INVALID),
        (400, KIND.INVALID),
        (401, KIND.AUTH),
        (402, KIND.QUOTA),
        (403, KIND.AUTH),
        (404, KIND.NOT_FOUND),
        (405, KIND.INVALID),
        (408, KIND.TIMEOUT),
        (409, KIND.SERVER),
        (413, KIND.OVERFLOW),
        (422, KIND.INVALID),
        (425, KIND.SERVER),
        (429, KIND.RATE),
        (498, KIND.SERVER),
        (499, KIND.INVALID),
        (500, KIND.SERVER),
        (502, KIND.SERVER),
        (503, KIND.SERVER),
        (504, KIND.SERVER),
        (520, KIND.SERVER),
        (529, KIND.SERVER),
        (599, KIND.SERVER),
    ],
)
@pytest.mark.parametrize("body", [b"", b"\x00\xff", b'{"error": null}', b"[]", b"null", b'"text"'])
def test_a_status_alone_decides_the_kind(status: int, kind: ModelErrorKind, body: bytes) -> None:
    error = of(status, body)
    assert (error.kind, error.status) == (kind, status)
    assert error.message


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}, KIND.QUOTA),
        (429, {"type": "insufficient_quota", "code": None, "message": "no"}, KIND.QUOTA),
        (429, {"code": "billing_hard_limit_reached", "message": "no"}, KIND.QUOTA),
        (429, {"code": "credit_balance_exhausted", "message": "no"}, KIND.QUOTA),
        (
            429,
            {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}},
            KIND.QUOTA,
        ),
        (429, {"code": "organization_usage_limit_reached", "message": "no"}, KIND.QUOTA),
        (
            400,
            {"type": "invalid_request_error", "message": "Your credit balance is too low to use it."},
            KIND.QUOTA,
        ),
        (
            429,
            {"code": "rate_limit_exceeded", "message": "Rate limit reached: too many tokens per min"},
            KIND.RATE,
        ),
        (429, {"type": "rate_limit_error", "details": {"error_code": "ramp_limit_exceeded"}}, KIND.RATE),
        (
            429,
            {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota"},
            KIND.RATE,
        ),
        (
            429,
            {"status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "XPerDay"}]}]},
            KIND.QUOTA,
        ),
        (400, {"code": 400, "details": [{"reason": "API_KEY_INVALID"}], "message": "bad key"}, KIND.AUTH),
        (503, {"message": "Loading model", "type": "unavailable_error", "code": 503}, KIND.SERVER),
        (529, {"type": "overloaded_error", "message": "Overloaded"}, KIND.SERVER),
    ],
)
def test_money_is_told_from_haste(status: int, error: dict[str, Any], kind: ModelErrorKind) -> None:
    assert of(status, {"error": error}).kind is kind


@pytest.mark.parametrize("status", [400, 413, 422, 500])
@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "x"},
        {"type": "exceed_context_size_error", "message": "x", "n_prompt_tokens": 9, "n_ctx": 4},
        {"message": "This model's maximum context length is 8192 tokens. However, ..."},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"message": "The input token count (9) exceeds the maximum number of tokens allowed (4)."},
        {"message": "the input length exceeds the context length"},
        {"message": "Please reduce the length of the messages or completion."},
        {"message": "Input is too long for requested model."},
    ],
)
def test_a_context_that_is_too_long_is_recognised(status: int, error: dict[str, Any]) -> None:
    assert of(status, {"error": error}).kind is KIND.OVERFLOW


@pytest.mark.parametrize("message", ["Rate limit: too many tokens per minute", "too many tokens per day, slow down"])
def test_rate_wording_is_no_overflow(message: str) -> None:
    assert of(429, {"error": {"message": message}}).kind is KIND.RATE
    assert of(400, {"error": {"message": message}}).kind is KIND.INVALID


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"error": {"message": "m", "type": "t", "code": "c"}}, "m", "c"),
        ({"error": {"message": "m", "type": "t", "code": None}}, "m", "t"),
        (
            {"error": {"message": "m", "code": 502, "metadata": {"error_type": "provider_x"}}},
            "m",
            "provider_x",
        ),
        ({"error": {"message": "m", "code": 502}}, "m", "502"),
        ({"object": "error", "message": "m", "type": "BadRequestError", "code": 400}, "m", "BadRequestError"),
        ({"type": "error", "error": {"type": "api_error", "message": "m"}}, "m", "api_error"),
        ({"error": "m"}, "m", ""),
        ({"message": "m"}, "m", ""),
        ({"detail": "m"}, "m", ""),
        ({"detail": [{"loc": ["body", "x"]}]}, '[{"loc": ["body", "x"]}]', ""),
        ([{"error": {"message": "m", "status": "INTERNAL"}}], "m", "INTERNAL"),
        (b"plain words", "plain words", ""),
    ],
)
def test_the_providers_text_and_code_are_found(body: Any, message: str, code: str) -> None:
    error = of(500, body)
    assert (error.message, error.code) == (message, code)


def test_a_page_for_people_is_named_as_such_and_shortened() -> None:
    error = of(502, b"<!DOCTYPE html>\n<html>" + b"<p>proxy says no</p>" * 100)
    assert error.message.startswith("HTTP 502 is not an API answer: <!DOCTYPE html> <html><p>")
    assert len(error.message) < 260
    assert foreign_body_error("<html>" + "x" * 5000).kind is KIND.INVALID
    assert len(foreign_body_error("<html>" + "x" * 5000).message) < 260


def test_a_redirect_names_its_target() -> None:
    assert "https://x.test/v2" in of(307, b"", location="https://x.test/v2").message


def test_a_long_text_is_cut() -> None:
    assert len(of(500, {"error": {"message": "x" * 100_000}}).message) <= 2000
    assert len(of(500, b"x" * 100_000).message) <= 300


@pytest.mark.parametrize("status", [404, 400, 422])
def test_should_retry_true_lifts_a_fault_that_would_last(status: int) -> None:
    assert of(status, b"", x_should_retry="true").kind is KIND.SERVER


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_should_retry_false_makes_a_passing_fault_last(status: int) -> None:
    passing = (KIND.RATE, KIND.SERVER, KIND.TIMEOUT, KIND.NETWORK, KIND.INCOMPLETE, KIND.NOT_FOUND)
    assert of(status, b"", x_should_retry="false").kind not in passing


@pytest.mark.parametrize("status", [401, 402, 403, 413])
def test_should_retry_never_lifts_key_money_or_size(status: int) -> None:
    assert of(status, b"", x_should_retry="true").kind in (KIND.AUTH, KIND.QUOTA, KIND.OVERFLOW)


def test_the_wait_rides_on_the_error() -> None:
    assert of(429, b"", retry_after="7").retry_after == 7
    assert of(429, {"error": {"message": "try again in 2s"}}).retry_after == 2
    assert of(429, b"").retry_after is None


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, KIND.SERVER),
        ({"error": {"type": "server_error", "message": "m"}}, KIND.SERVER),
        ({"error": {"code": "rate_limit_exceeded", "message": "m"}}, KIND.RATE),
        (
            {"error": {"code": 502, "message": "m", "metadata": {"error_type": "provider_unavailable"}}},
            KIND.SERVER,
        ),
        (
            {"error": {"code": 402, "message": "m", "metadata": {"error_type": "payment_required"}}},
            KIND.QUOTA,
        ),
        ({"error": {"code": "insufficient_quota", "message": "m"}}, KIND.QUOTA),
        ({"error": {"code": "context_length_exceeded", "message": "m"}}, KIND.OVERFLOW),
        ({"error": {"type": "invalid_request_error", "message": "m"}}, KIND.INVALID),
        ({"error": {"type": "authentication_error", "message": "m"}}, KIND.AUTH),
        ({"object": "error", "message": "m", "code": 400}, KIND.INVALID),
        ({"error": "m"}, KIND.SERVER),
        ({"error": {"type": "timeout", "message": "m"}}, KIND.TIMEOUT),
    ],
)
def test_an_error_inside_a_stream_has_the_kind_of_its_http_twin(payload: Any, kind: ModelErrorKind) -> None:
    error = payload_error(payload)
    assert (error.kind, error.message) == (kind, "m")


@settings(max_examples=100, deadline=None)
@given(
    st.integers(300, 599),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "code", "type", "details", "metadata", "status"]), inner
            )
        ),
        max_leaves=12,
    ),
)
def test_no_body_breaks_the_reading_of_errors(status: int, body: Any) -> None:
    assert of(status, body).message
    assert payload_error(body).message
