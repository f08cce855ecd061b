"""Model calls: what goes out, what streams in, and how it can fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY
from crystal.types.items import ImageRef, ModelItem
from crystal.types.tools import ToolDefinition


class Purpose(Enum):
    """Why a model is called."""

    WORK = "work"
    PLAN = "plan"
    SIDE = "side"
    COMPACTION = "compaction"
    TOPIC = "topic"
    REVIEW = "review"
    PLUGIN = "plugin"


class FinishReason(Enum):
    """Why a model stopped, normalised over protocols; ``TOOL_CALLS`` means that complete calls were collected."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    FILTER = "filter"
    REFUSAL = "refusal"
    OTHER = "other"


class Usage(Frozen):
    """Tokens of one or more model calls.

    :param input: all input tokens, cached ones included.
    :param output: all output tokens, reasoning included.
    :param cached: the part of ``input`` read from the provider's cache.
    :param reasoning: the part of ``output`` that was reasoning.
    :param estimated: the provider gave no figures; four characters were taken as one token.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            estimated=self.estimated or other.estimated,
        )


class ModelRequest(Frozen):
    """One outbound request.

    :param items: system prompt, messages, calls and results in order; the system message is an item.
    :param tools: what the model may call; the same objects in the same order while the list is frozen.
    :param accepts_images: whether image references in user messages and tool results are sent.
    """

    purpose: Purpose
    items: tuple[ModelItem, ...]
    accepts_images: bool = False
    tools: tuple[ToolDefinition, ...] = ()
    session_id: str = ""


class ModelResponse(Frozen):
    """One completed call, before the host commits it. ``items`` are the candidate's reasoning, text and calls."""

    purpose: Purpose
    finish: FinishReason
    items: tuple[ModelItem, ...]
    usage: Usage


class TextDelta(Frozen):
    """A piece of assistant text."""

    text: str


class ReasoningDelta(Frozen):
    """A piece of reasoning text, or provider-bound state to keep with it."""

    text: str
    state: Mapping[str, Any] | None = None


class CallDelta(Frozen):
    """A piece of a tool call.

    :param key: tells the calls of one response apart; chosen by the adapter.
    :param call_id: the provider's id when known, else empty; the first non-empty one counts.
    :param name: the whole name so far, replacing the previous one; empty leaves it.
    :param arguments: a piece of the JSON text, appended.
    """

    key: str
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    state: Mapping[str, Any] | None = None


class UsageDelta(Frozen):
    """Token figures; a later one replaces an earlier one."""

    usage: Usage


class FinishDelta(Frozen):
    """The end of a response; the last delta of every complete stream. ``raw`` is the provider's word."""

    reason: FinishReason
    raw: str = ""


class NoticeDelta(Frozen):
    """Something about this request that the operator should know, such as a parameter that was left out."""

    text: str


ModelDelta: TypeAlias = TextDelta | ReasoningDelta | CallDelta | UsageDelta | NoticeDelta | FinishDelta
"""What a model client yields; a closed union."""


class ModelErrorKind(Enum):
    """One taxonomy for every protocol."""

    AUTH = "auth"
    QUOTA = "quota"
    RATE = "rate"
    OVERFLOW = "overflow"
    INVALID = "invalid_request"
    NOT_FOUND = "not_found"
    SERVER = "server"
    NETWORK = "network"
    TIMEOUT = "timeout"
    INCOMPLETE = "incomplete"
    SCRIPT = "script"


class ModelError(Exception):
    """A model call failed.

    :param kind: what the host decides by.
    :param message: the provider's own text, secrets removed by the host before it is shown.
    :param status: HTTP status, or ``None`` when there was none.
    :param code: the provider's code or type, empty when there was none.
    :param retry_after: seconds the provider asked to wait, or ``None``.
    """

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        status: int | None = None,
        code: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.code = code
        self.retry_after = retry_after


class ModelSettings(Frozen):
    """One model of a provider, as ``providers.json`` describes it.

    :param context_window: tokens the model can hold, output included.
    :param max_tokens: output limit to send, or ``None`` to send none.
    :param limit_field: name of the output limit on the wire, or empty for the protocol's own.
    """

    name: str
    context_window: int
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    limit_field: str = ""
    thinking: str = ""
    image_input: bool = False
    audio_input: bool = False
    video_input: bool = False


class ClientRequest(Frozen):
    """What a factory gets to build a client from. Do not log ``api_key``.

    :param base_uri: the endpoint without the protocol's own path, no trailing slash.
    :param options: protocol-specific values of this process, such as the script of ``scripted``.
    """

    provider: str
    protocol: str
    base_uri: str
    api_key: str
    model: ModelSettings
    organization: str = ""
    project: str = ""
    headers: Mapping[str, str] = EMPTY
    accepts_images: bool = False
    accepts_audio: bool = False
    accepts_video: bool = False
    options: Mapping[str, Any] = EMPTY


ImageLoader = Callable[[ImageRef], bytes]
"""Gives an adapter the bytes behind an image reference."""


@runtime_checkable
class ModelClient(Protocol):
    """A connection to one model."""

    def stream(self, request: ModelRequest, load_image: ImageLoader) -> AsyncIterator[ModelDelta]:
        """Stream one response.

        :raises ModelError: when the request fails or the stream ends without its end mark.
        """

    async def aclose(self) -> None:
        """Release what the client holds."""


@runtime_checkable
class ClientFactory(Protocol):
    """Builds clients for the protocols it names."""

    @property
    def protocols(self) -> tuple[str, ...]:
        """Tokens of 1 to 64 characters: a letter, then letters, digits, ``_`` or ``-``."""

    def create(self, request: ClientRequest) -> ModelClient:
        """Build a client.

        :raises ModelError: when the request cannot be served, for example a script that cannot be read.
        """
