"""Reads the error bodies of all providers: which code they give and what they say. Pure; decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from crystal.types._frozen import Frozen
from crystal.wire.sse import EXCERPT

_BODY_EXCERPT = 300
_MESSAGE_LIMIT = 2000


class ErrorFacts(Frozen):
    """What an error body says.

    :param message: the provider's own text; the beginning of the body when none was found.
    :param code: the most specific code or type, empty when there was none.
    :param codes: every code, type and status word found, lower-case, for recognition.
    :param status: a number that the body itself gives as HTTP status, else ``None``.
    :param payload: the parsed body, ``None`` when it is not JSON.
    """

    message: str
    code: str = ""
    codes: frozenset[str] = frozenset()
    status: int | None = None
    payload: Any = None


def read_error_body(body: bytes, status: int) -> ErrorFacts:
    """Read the body of an HTTP response with an error status.

    :param body: the raw bytes; any size and encoding.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        payload = None
    if isinstance(payload, (dict, list)):
        return read_error_payload(payload, text)
    if text.startswith("<"):
        return ErrorFacts(message=f"HTTP {status} is not an API answer: {one_line(text)[:EXCERPT]}")
    return ErrorFacts(message=text[:_BODY_EXCERPT] or f"HTTP {status} without a body")


def read_error_payload(payload: Any, text: str = "") -> ErrorFacts:
    """Read a parsed error object: a body, a list of one, or an error that came inside a stream.

    :param text: what to show when no message is found.
    """
    if isinstance(payload, list) and payload:
        payload = payload[0]
    outer: Mapping[str, Any] = payload if isinstance(payload, dict) else {}
    error = outer.get("error")
    inner: Mapping[str, Any] = error if isinstance(error, dict) else outer
    codes = [str(code) for code in _codes(inner, outer) if isinstance(code, (str, int)) and code not in ("", "error")]
    words = [code for code in codes if not code.lstrip("-").isdigit()]
    numbers = [int(code) for code in codes if code.isdigit() and 400 <= int(code) <= 599]
    return ErrorFacts(
        message=(_message(error, inner, outer) or text[:_BODY_EXCERPT] or "The provider reported an error.")[
            :_MESSAGE_LIMIT
        ],
        code=(words or codes or [""])[0],
        codes=frozenset(code.lower() for code in codes),
        status=numbers[0] if numbers else None,
        payload=payload,
    )


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space as one space."""
    return " ".join(text.split())


def _codes(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> Iterable[Any]:
    """Every place where a provider puts a code, the most specific first."""
    for place in (inner.get("metadata"), inner.get("details"), inner.get("innererror")):
        if isinstance(place, dict):
            yield from (place.get("error_type"), place.get("error_code"), place.get("code"))
    yield from (
        inner.get("code"),
        inner.get("type"),
        inner.get("status"),
        outer.get("code"),
        outer.get("type"),
    )
    details = inner.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            yield detail.get("reason")
            violations = detail.get("violations")
            for violation in violations if isinstance(violations, list) else ():
                yield violation.get("quotaId") if isinstance(violation, dict) else None


def _message(error: Any, inner: Mapping[str, Any], outer: Mapping[str, Any]) -> str:
    for candidate in (inner.get("message"), error, outer.get("message"), outer.get("detail")):
        if isinstance(candidate, str) and candidate.strip():
            return candidate.strip()
        if isinstance(candidate, list) and candidate:
            return json.dumps(candidate, ensure_ascii=False)
    return ""
