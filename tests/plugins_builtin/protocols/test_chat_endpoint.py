"""Where requests go and with which headers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from crystal.types.model import ClientRequest, ModelSettings
from plugins_builtin.protocols.chat_endpoint import chat_headers, chat_url, request_dialect

REQUEST = ClientRequest(
    provider="local",
    protocol="openai",
    base_uri="http://127.0.0.1:8080/v1",
    api_key="key-1",
    model=ModelSettings(name="m", context_window=8000),
)


def changed(**changes: Any) -> ClientRequest:
    return dataclasses.replace(REQUEST, **changes)


@pytest.mark.parametrize(
    ("base_uri", "url"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/chat/completions"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions"),
        ("https://x.test/v1/chat/completions", "https://x.test/v1/chat/completions"),
        (
            "https://x.test/deployments/d?api-version=1",
            "https://x.test/deployments/d/chat/completions?api-version=1",
        ),
    ],
)
def test_the_path_is_added_once_and_before_a_query(base_uri: str, url: str) -> None:
    assert chat_url(base_uri) == url


def test_the_key_and_the_accounts_are_headers() -> None:
    headers = chat_headers(changed(organization="org", project="proj"))
    assert headers["authorization"] == "Bearer key-1"
    assert headers["openai-organization"] == "org"
    assert headers["openai-project"] == "proj"
    bare = chat_headers(changed(api_key=""))
    assert not {"authorization", "openai-organization", "openai-project"} & bare.keys()


def test_a_key_file_that_ends_with_a_newline_still_works() -> None:
    assert chat_headers(changed(api_key="key-1\n"))["authorization"] == "Bearer key-1"


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_a_configured_header_wins_whatever_its_case(name: str) -> None:
    headers = chat_headers(changed(headers={name: "Basic x", "X-Title": "crystal"}))
    assert headers["authorization"] == "Basic x"
    assert headers["x-title"] == "crystal"
    assert name == "authorization" or name not in headers


@pytest.mark.parametrize(
    ("base_uri", "limit_field", "field"),
    [
        ("https://api.openai.com/v1", "", "max_completion_tokens"),
        ("http://127.0.0.1:8080/v1", "", "max_tokens"),
        ("http://127.0.0.1:8080/v1", "max_completion_tokens", "max_completion_tokens"),
        ("https://api.openai.com/v1", "max_tokens", "max_tokens"),
        ("https://api.openai.com.evil.test/v1", "", "max_tokens"),
    ],
)
def test_the_output_limit_has_the_right_name_for_the_endpoint(base_uri: str, limit_field: str, field: str) -> None:
    model = dataclasses.replace(REQUEST.model, limit_field=limit_field)
    assert request_dialect(changed(base_uri=base_uri, model=model)).limit_field == field


def test_only_openai_itself_is_openai() -> None:
    assert request_dialect(changed(base_uri="https://api.openai.com/v1")).is_openai
    assert not request_dialect(changed(base_uri="https://gateway.test/api.openai.com/v1")).is_openai


def test_replay_data_is_bound_to_provider_and_model() -> None:
    other_model = dataclasses.replace(REQUEST.model, name="n")
    tags = {request_dialect(r).state_tag for r in (REQUEST, changed(provider="other"), changed(model=other_model))}
    assert len(tags) == 3


def test_reasoning_is_replayed_only_when_asked_for() -> None:
    assert not request_dialect(REQUEST).replays_reasoning
    assert request_dialect(changed(options={"replayReasoningContent": True})).replays_reasoning
