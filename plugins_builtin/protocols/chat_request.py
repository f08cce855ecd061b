"""Builds the body of a chat-completions request. The bytes are the same for a new and for a used encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crystal.types._frozen import Frozen
from crystal.types.items import ModelItem, SystemItem
from crystal.types.model import ImageLoader, ModelRequest, ModelSettings, Purpose
from crystal.types.tools import ToolDefinition
from crystal.wire.json_text import encode_json
from plugins_builtin.protocols.chat_messages import MessageDialect, system_message
from plugins_builtin.protocols.chat_parameters import ParameterChanges
from plugins_builtin.protocols.chat_rounds import RoundStore

_CONVERSATION = (Purpose.WORK, Purpose.PLAN, Purpose.SIDE)
"""Purposes that share one growing transcript; the others are short or happen once, and would push it out."""
_EFFORTS = {"": None, "default": None, "off": "none", "maximum": "max"}
"""Crystal's words for thinking that are not the wire's; every other word is sent as it is."""


class RequestDialect(Frozen):
    """What one endpoint takes besides messages.

    :param limit_field: name of the output limit; nothing is sent when the model has no limit configured.
    :param state_tag: the key of provider-bound data that this endpoint gave and gets back.
    :param is_openai: the endpoint is OpenAI's own, which takes fields that others refuse.
    """

    limit_field: str
    state_tag: str
    accepts_images: bool = False
    replays_reasoning: bool = False
    is_openai: bool = False


class RequestEncoder:
    """Encodes the requests of one client, remembering what it has encoded."""

    def __init__(self, settings: ModelSettings, dialect: RequestDialect) -> None:
        self._settings = settings
        self._dialect = dialect
        self._stores: dict[bool, RoundStore] = {}
        self._tools: tuple[ToolDefinition, ...] = ()
        self._tool_bytes = b""
        self._system: tuple[ModelItem, ...] = ()
        self._system_bytes = b""

    def encode(self, request: ModelRequest, load_image: ImageLoader, changes: ParameterChanges) -> bytes:
        """Return the body.

        :param changes: what the endpoint refused before.
        """
        conversation = tuple([item for item in request.items if item.__class__ is not SystemItem])
        older, last = self._store(request).encode(conversation, load_image)
        pieces: list[bytes | bytearray] = [
            encode_json(changes.apply(self.fields(request)))[:-1],
            b',"messages":[',
        ]
        separator = b""
        for messages in (self._encode_system(request.items), older, last):
            if messages:
                pieces += (separator, messages)
                separator = b","
        pieces.append(b"]")
        if request.tools:
            pieces += (b',"tools":', self._encode_tools(request.tools))
        pieces.append(b"}")
        return b"".join(pieces)

    def fields(self, request: ModelRequest) -> dict[str, Any]:
        """Return the fields besides messages and tools; ``None`` stands for one that is not sent."""
        settings, is_openai = self._settings, self._dialect.is_openai
        return {
            "model": settings.name,
            "stream": True,
            "stream_options": {"include_usage": True} | ({"include_obfuscation": False} if is_openai else {}),
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            self._dialect.limit_field: settings.max_tokens,
            "reasoning_effort": _EFFORTS.get(settings.thinking, settings.thinking),
            "prompt_cache_key": (request.session_id or None) if is_openai else None,
        }

    def _store(self, request: ModelRequest) -> RoundStore:
        accepts_images = request.accepts_images and self._dialect.accepts_images
        dialect = MessageDialect(
            state_tag=self._dialect.state_tag,
            accepts_images=accepts_images,
            replays_reasoning=self._dialect.replays_reasoning,
        )
        if request.purpose not in _CONVERSATION:
            return RoundStore(dialect)
        return self._stores.setdefault(accepts_images, RoundStore(dialect))

    def _encode_system(self, items: tuple[ModelItem, ...]) -> bytes:
        system = tuple([item for item in items if item.__class__ is SystemItem])
        if system != self._system:
            message = system_message(system)
            self._system_bytes = encode_json(message) if message else b""
            self._system = system
        return self._system_bytes

    def _encode_tools(self, tools: tuple[ToolDefinition, ...]) -> bytes:
        if tools is not self._tools:
            self._tool_bytes = encode_json([_tool_entry(tool) for tool in tools])
            self._tools = tools
        return self._tool_bytes


def _tool_entry(tool: ToolDefinition) -> Mapping[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description.strip():
        function["description"] = tool.description
    function["parameters"] = {"type": "object", "properties": {}, **tool.schema}
    return {"type": "function", "function": function}
