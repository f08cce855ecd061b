"""Rounds that fail: which are tried again, how long is waited, what is shown, and what is not tried again."""

from __future__ import annotations

import asyncio
import signal
import time
from email.utils import formatdate
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.types.events import ErrorRaised, RetryScheduled, TextCommitted, TextStreamed
from crystal.types.items import AssistantItem
from crystal.types.session import StopReason
from tests.engine.runs import DONE, calls, no_wait, of, turn_end, waits


def fault(status: int | None = None, body: Any = "", text: str = "", **fields: Any) -> dict[str, Any]:
    """A round that streams ``text`` and then fails; without a status the stream breaks off."""
    error: dict[str, Any] = {"body": body, "after": 1 if text else 0, **fields}
    if status is not None:
        error["status"] = status
    return {"error": error, **({"text": text} if text else {})}


PASSING = [
    ("429", fault(429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}), "rate"),
    ("429 plain", fault(429), "rate"),
    ("408", fault(408), "timeout"),
    ("409", fault(409), "server"),
    ("425", fault(425), "server"),
    ("500", fault(500, {"error": {"message": "oops"}}), "server"),
    ("502", fault(502, "<html>bad gateway</html>"), "server"),
    ("503", fault(503), "server"),
    ("529", fault(529, {"error": {"type": "overloaded_error", "message": "overloaded"}}), "server"),
    ("broken stream", fault(text="half an ans"), "incomplete"),
]


@pytest.mark.parametrize(("failing", "kind"), [row[1:] for row in PASSING], ids=[row[0] for row in PASSING])
def test_a_passing_fault_is_tried_again(crystaler: Crystaler, failing: dict[str, Any], kind: str) -> None:
    crystaler.script([failing, failing, DONE])
    result = crystaler.run("do", "--format", "json", sleep=no_wait)
    assert result.exit_code == 0, result.stderr
    assert len(result.requests) == 3
    assert [(line["attempt"], line["kind"]) for line in result.lines if line["type"] == "retry"] == [
        (2, kind),
        (3, kind),
    ]
    assert turn_end(result).model_calls == 1


@pytest.mark.parametrize("status", [429, 500, 529])
def test_after_five_retries_the_turn_fails_with_the_providers_text(crystaler: Crystaler, status: int) -> None:
    crystaler.script([fault(status, {"error": {"message": "no luck today"}})] * 9)
    result = crystaler.run("do", sleep=no_wait)
    end = turn_end(result)
    assert (result.exit_code, end.stop_reason) == (2, StopReason.MODEL_FAILED)
    assert len(result.requests) == 6
    assert len(of(result, RetryScheduled)) == 5
    assert "no luck today" in end.detail
    assert "no luck today" in result.stderr


LASTING = [
    ("400", fault(400, {"error": {"message": "said the provider", "code": "invalid_prompt"}})),
    ("401", fault(401, {"error": {"message": "said the provider"}})),
    ("402", fault(402, {"error": {"message": "said the provider"}})),
    ("403", fault(403, {"error": {"message": "said the provider"}})),
    ("422", fault(422, {"error": {"message": "said the provider"}})),
    ("quota", fault(429, {"error": {"message": "said the provider", "code": "insufficient_quota"}})),
    ("quota by its type", fault(429, {"error": {"message": "said the provider", "type": "insufficient_quota"}})),
    (
        "quota with a wait",
        fault(429, {"error": {"message": "said the provider", "code": "insufficient_quota"}}, retryAfter=1),
    ),
]


@pytest.mark.parametrize("failing", [row[1] for row in LASTING], ids=[row[0] for row in LASTING])
def test_a_lasting_fault_is_one_request(crystaler: Crystaler, failing: dict[str, Any]) -> None:
    crystaler.script([failing, DONE])
    result = crystaler.run("do", sleep=no_wait)
    assert result.exit_code == 2
    assert len(result.requests) == 1
    assert of(result, RetryScheduled) == []
    assert "said the provider" in result.stderr


def test_a_missing_model_is_tried_again_once(crystaler: Crystaler) -> None:
    crystaler.script([fault(404, {"error": {"message": "no such model"}})] * 3)
    result = crystaler.run("do", sleep=no_wait)
    assert (result.exit_code, len(result.requests)) == (2, 2)


def test_context_overflow_is_its_own_end_and_one_request(crystaler: Crystaler) -> None:
    body = {
        "error": {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}
    }
    crystaler.script([fault(400, body), DONE])
    result = crystaler.run("do", sleep=no_wait)
    assert (result.exit_code, len(result.requests)) == (3, 1)
    assert turn_end(result).stop_reason is StopReason.CONTEXT_OVERFLOW


def test_the_text_of_a_failed_attempt_is_discarded(crystaler: Crystaler) -> None:
    crystaler.script([fault(text="half an answer"), calls(("todoread", {})), DONE])
    result = crystaler.run("do", "--format", "json", sleep=no_wait)
    assert result.exit_code == 0
    assert "half an answer" in [event.text for event in of(result, TextStreamed)]
    assert [event.text for event in of(result, TextCommitted)] == ["Done."]
    assert "half an answer" not in result.stdout
    for request in result.requests:
        assert not any(isinstance(item, AssistantItem) and "half" in item.text for item in request.items)


def test_partial_text_of_the_last_attempt_is_shown_and_not_kept(crystaler: Crystaler) -> None:
    crystaler.script([fault(text="half an answer")] * 6)
    result = crystaler.run("do", sleep=no_wait)
    assert [event.partial for event in of(result, ErrorRaised)] == ["half an answer"]
    crystaler.script([DONE])
    [request] = crystaler.run("go on", "-r", result.session_id).requests
    assert not any(isinstance(item, AssistantItem) for item in request.items)


@pytest.mark.parametrize(
    ("retry_after", "low", "high"),
    [
        (3, 3.0, 3.0),
        ("1.5", 1.5, 1.5),
        ("0", 0.0, 0.0),
        ("date", 3.0, 5.0),
        ("past", 0.0, 0.0),
        ("soon", 1.5, 2.5),
        ("-5", 0.0, 2.5),
        ("NaN", 1.5, 2.5),
    ],
)
def test_what_retry_after_asks_for_is_waited(crystaler: Crystaler, retry_after: Any, low: float, high: float) -> None:
    dates = {"date": formatdate(time.time() + 5, usegmt=True), "past": formatdate(time.time() - 60, usegmt=True)}
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    crystaler.script([fault(429, retryAfter=dates.get(retry_after, retry_after)), DONE])
    result = crystaler.run("do", sleep=sleep)
    assert result.exit_code == 0
    assert slept == waits(result)
    assert len(slept) == 1
    assert low <= slept[0] <= high


def test_a_wait_of_more_than_two_minutes_is_told_not_waited(crystaler: Crystaler) -> None:
    crystaler.script([fault(429, {"error": {"message": "come back"}}, retryAfter=864_000), DONE])
    result = crystaler.run("do", sleep=no_wait)
    assert (result.exit_code, len(result.requests)) == (2, 1)
    assert "come back" in result.stderr
    assert "864000 s" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_wait(crystaler: Crystaler, number: signal.Signals) -> None:
    async def interrupted(seconds: float) -> None:
        signal.raise_signal(number)
        await asyncio.Event().wait()

    crystaler.script([fault(503), DONE])
    result = crystaler.run("do", sleep=interrupted)
    assert (result.exit_code, len(result.requests)) == (5, 1)
    assert turn_end(result).stop_reason is StopReason.INTERRUPTED


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"contains": "never said"}, "never said"),
        ({"tools": ["no_such_tool"]}, "no_such_tool"),
        ({"lastResult": "nothing"}, "there is no result"),
    ],
)
def test_a_script_that_expected_something_else_fails_and_says_how(
    crystaler: Crystaler, expect: dict[str, Any], words: str
) -> None:
    crystaler.script([{**DONE, "expect": expect}])
    result = crystaler.run("do", sleep=no_wait)
    assert (result.exit_code, len(result.requests)) == (2, 1)
    assert words in result.stderr
    assert "round 1" in result.stderr


def test_a_script_that_has_run_out_fails(crystaler: Crystaler) -> None:
    crystaler.script([calls(("todoread", {}))])
    result = crystaler.run("do", sleep=no_wait)
    assert (result.exit_code, len(result.requests)) == (2, 2)
    assert "no further round" in result.stderr


def test_a_script_that_finds_what_it_expects_goes_on(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script(
        [
            {**calls(("read", {"path": "a.txt"})), "expect": {"contains": "look", "tools": ["read"]}},
            {**DONE, "expect": {"lastResult": "hello"}},
        ]
    )
    assert crystaler.run("look at it").exit_code == 0


def test_a_failure_says_so_in_the_json_stream(crystaler: Crystaler) -> None:
    crystaler.script([fault(401, {"error": {"message": "bad key"}})])
    result = crystaler.run("do", "--format", "json")
    assert [line["type"] for line in result.lines if line["type"] != "note"] == [
        "session",
        "step_start",
        "error",
        "stopped",
        "session",
    ]
    stopped, closed = result.lines[-2:]
    assert (stopped["reason"], stopped["exitCode"], closed["exitCode"]) == ("model_failed", 2, 2)
    assert "bad key" in stopped["detail"]


def test_the_session_goes_on_after_a_failure(crystaler: Crystaler) -> None:
    crystaler.script([fault(401)])
    failed = crystaler.run("first")
    crystaler.script([DONE])
    result = crystaler.run("second", "-r", failed.session_id)
    assert result.exit_code == 0
    assert [item.text for item in result.requests[0].items[1:] if hasattr(item, "text")] == ["first", "second"]


def test_a_client_that_breaks_is_a_failed_request(crystaler: Crystaler) -> None:
    crystaler.makeplugin(
        "Acme",
        """
        from crystal import hookimpl

        class Client:
            async def stream(self, request, load_image):
                raise RuntimeError("odd")
                yield

            async def aclose(self):
                pass

        class Factory:
            protocols = ("acme",)

            def create(self, request):
                return Client()

        @hookimpl
        def contribute_protocols():
            return [Factory()]
        """,
    )
    crystaler.makeproviders(
        acme={
            "protocol": "acme",
            "baseUri": "http://127.0.0.1:9",
            "requiresApiKey": False,
            "models": {"m": {"contextWindow": 1000}},
        }
    )
    result = crystaler.run("do", "-p", "acme", sleep=no_wait)
    assert result.exit_code == 2
    assert "RuntimeError: odd" in result.stderr
