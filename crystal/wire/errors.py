"""Turns what a provider says about a failure into one :class:`ModelError`. Pure; it never retries.

The kind decides: RATE, SERVER, NETWORK, TIMEOUT and INCOMPLETE pass, NOT_FOUND may pass once, others never do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.error_body import ErrorFacts, one_line, read_error_body, read_error_payload
from crystal.wire.retry_after import retry_after
from crystal.wire.sse import EXCERPT

_STATUS_KINDS = {
    400: ModelErrorKind.INVALID,
    401: ModelErrorKind.AUTH,
    402: ModelErrorKind.QUOTA,
    403: ModelErrorKind.AUTH,
    404: ModelErrorKind.NOT_FOUND,
    408: ModelErrorKind.TIMEOUT,
    409: ModelErrorKind.SERVER,
    413: ModelErrorKind.OVERFLOW,
    425: ModelErrorKind.SERVER,
    429: ModelErrorKind.RATE,
    498: ModelErrorKind.SERVER,
}

_CODE_KINDS = {
    "authentication": ModelErrorKind.AUTH,
    "authentication_error": ModelErrorKind.AUTH,
    "invalid_api_key": ModelErrorKind.AUTH,
    "api_key_invalid": ModelErrorKind.AUTH,
    "permission_error": ModelErrorKind.AUTH,
    "permission_denied": ModelErrorKind.AUTH,
    "unauthenticated": ModelErrorKind.AUTH,
    "billing_error": ModelErrorKind.QUOTA,
    "payment_required": ModelErrorKind.QUOTA,
    "not_found_error": ModelErrorKind.NOT_FOUND,
    "not_found": ModelErrorKind.NOT_FOUND,
    "model_not_found": ModelErrorKind.NOT_FOUND,
    "rate_limit_error": ModelErrorKind.RATE,
    "rate_limit_exceeded": ModelErrorKind.RATE,
    "slow_down": ModelErrorKind.RATE,
    "resource_exhausted": ModelErrorKind.RATE,
    "timeout": ModelErrorKind.TIMEOUT,
    "timeout_error": ModelErrorKind.TIMEOUT,
    "deadline_exceeded": ModelErrorKind.TIMEOUT,
    "invalid_request_error": ModelErrorKind.INVALID,
    "invalid_request": ModelErrorKind.INVALID,
    "invalid_argument": ModelErrorKind.INVALID,
    "invalid_prompt": ModelErrorKind.INVALID,
    "badrequesterror": ModelErrorKind.INVALID,
    "content_filter": ModelErrorKind.INVALID,
}

_QUOTA_CODES = ("insufficient_quota", "credit_balance_exhausted", "spend_limit", "usage_limit", "perday")
_QUOTA_TEXTS = (
    "credit balance is too low",
    "insufficient balance",
    "insufficient_quota",
    "insufficient credits",
)
_QUOTA_STATUSES = (400, 403, 429, None)

_OVERFLOW_STATUSES = (400, 413, 422, 500, None)
_OVERFLOW_CODES = (
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "string_above_max_length",
    "request_too_large",
    "max_tokens_exceeded",
)
_OVERFLOW_TEXTS = (
    "maximum context length",
    "context length exceeded",
    "exceeds the context window",
    "exceeds the available context size",
    "prompt is too long",
    "exceed context limit",
    "input length exceeds the context length",
    "input is too long",
    "reduce the length of the messages",
    "maximum prompt length is",
    "exceeded model token limit",
    "tokens to keep from the initial prompt is greater than the context length",
    "context size has been exceeded",
    "too many tokens",
    "request entity too large",
)
_RATE_TEXTS = ("rate limit", "rate_limit", "per minute", "per second", "per day", "per hour", "(tpm)")

_LIFTED_BY_SHOULD_RETRY = (ModelErrorKind.INVALID, ModelErrorKind.NOT_FOUND)


def response_error(status: int, headers: Mapping[str, str], body: bytes, now: float) -> ModelError:
    """Return the error for an HTTP response that is no success.

    ``x-should-retry`` is honoured through the kind: ``false`` makes a passing fault a lasting one, ``true``
    lifts an invalid request or a missing model to a server fault. It never lifts a key, money or overflow
    fault.

    :param headers: response headers with lower-case names.
    :param body: the whole body, or as much of it as was read.
    :param now: seconds since the epoch, to turn a date into a wait.
    """
    facts = read_error_body(body, status)
    message = facts.message
    if 300 <= status < 400:
        target = headers.get("location", "another address")
        message = f"HTTP {status}: the endpoint redirects to {target}; set baseUri to where it really is."
    return ModelError(
        _after_should_retry(_kind(status, facts), headers.get("x-should-retry", "").strip().lower()),
        message,
        status=status,
        code=facts.code,
        retry_after=retry_after(headers, now, facts.payload, facts.message),
    )


def payload_error(payload: Any, now: float = 0.0) -> ModelError:
    """Return the error for an error object that came inside a successful response.

    It has the same kind as its HTTP twin; one that says nothing recognisable counts as a server fault.

    :param payload: the parsed event or body that holds the error.
    """
    facts = read_error_payload(payload, one_line(str(payload))[:EXCERPT])
    return ModelError(
        _kind(facts.status, facts),
        facts.message,
        status=facts.status,
        code=facts.code,
        retry_after=retry_after({}, now, facts.payload, facts.message),
    )


def foreign_body_error(text: str) -> ModelError:
    """Return the error for a success response whose body is no API answer: a login page, a proxy's notice.

    :param text: the body or its beginning.
    """
    return ModelError(ModelErrorKind.INVALID, f"The endpoint sent no API answer: {one_line(text)[:EXCERPT]}")


def _kind(status: int | None, facts: ErrorFacts) -> ModelErrorKind:
    text = facts.message.lower()
    if status in _QUOTA_STATUSES and _is_quota(facts, text):
        return ModelErrorKind.QUOTA
    if status in _OVERFLOW_STATUSES and _is_overflow(facts, text):
        return ModelErrorKind.OVERFLOW
    named = next((_CODE_KINDS[code] for code in _specific_first(facts) if code in _CODE_KINDS), None)
    if status is None:
        return named or ModelErrorKind.SERVER
    if status == 400 and named is ModelErrorKind.AUTH:
        return named
    if status >= 500:
        return ModelErrorKind.SERVER
    return _STATUS_KINDS.get(status, ModelErrorKind.INVALID)


def _specific_first(facts: ErrorFacts) -> list[str]:
    return [facts.code.lower(), *sorted(facts.codes - {facts.code.lower()})]


def _is_quota(facts: ErrorFacts, text: str) -> bool:
    marks = any(mark in code for code in facts.codes for mark in _QUOTA_CODES)
    return marks or any(code.startswith("billing_") for code in facts.codes) or any(t in text for t in _QUOTA_TEXTS)


def _is_overflow(facts: ErrorFacts, text: str) -> bool:
    if not facts.codes.isdisjoint(_OVERFLOW_CODES):
        return True
    if any(mark in text for mark in _RATE_TEXTS):
        return False
    if "input token count" in text and "exceeds the maximum" in text:
        return True
    return any(mark in text for mark in _OVERFLOW_TEXTS)


def _after_should_retry(kind: ModelErrorKind, should_retry: str) -> ModelErrorKind:
    if should_retry == "true" and kind in _LIFTED_BY_SHOULD_RETRY:
        return ModelErrorKind.SERVER
    if should_retry == "false":
        return {
            ModelErrorKind.RATE: ModelErrorKind.QUOTA,
            ModelErrorKind.SERVER: ModelErrorKind.INVALID,
            ModelErrorKind.TIMEOUT: ModelErrorKind.INVALID,
            ModelErrorKind.NOT_FOUND: ModelErrorKind.INVALID,
        }.get(kind, kind)
    return kind
