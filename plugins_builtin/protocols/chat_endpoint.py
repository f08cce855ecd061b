"""Where a chat client sends its requests, with which headers, and what the endpoint takes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from crystal.types.model import ClientRequest
from plugins_builtin.protocols.chat_request import RequestDialect

_PATH = "/chat/completions"
_OPENAI_HOST = "api.openai.com"


def chat_url(base_uri: str) -> str:
    """Return the address of the endpoint: the protocol's path appended once, before a query."""
    parts = urlsplit(base_uri)
    path = parts.path.rstrip("/")
    if not path.endswith(_PATH):
        path += _PATH
    return urlunsplit(parts._replace(path=path, fragment=""))


def chat_headers(request: ClientRequest) -> dict[str, str]:
    """Return the request headers; the provider's configured ones win over ours, whatever their case."""
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    if request.api_key:
        headers["authorization"] = f"Bearer {request.api_key.strip()}"
    if request.organization:
        headers["openai-organization"] = request.organization
    if request.project:
        headers["openai-project"] = request.project
    return headers | _lower_names(request.headers)


def request_dialect(request: ClientRequest) -> RequestDialect:
    """Return what the endpoint takes.

    The option ``replayReasoningContent`` sends reasoning text back on assistant messages; plain OpenAI
    servers do not know that field, so it is off.
    """
    is_openai = urlsplit(request.base_uri).hostname == _OPENAI_HOST
    return RequestDialect(
        limit_field=request.model.limit_field or ("max_completion_tokens" if is_openai else "max_tokens"),
        # Replay data is bound to the endpoint and the model that gave it.
        state_tag=f"{request.protocol}:{request.provider}:{request.model.name}",
        accepts_images=request.accepts_images,
        replays_reasoning=request.options.get("replayReasoningContent") is True,
        is_openai=is_openai,
    )


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {header.lower(): value for header, value in headers.items()}
