"""The client of every chat-completions endpoint: one request out, one stream of deltas in. It never retries a failure.

The one request it repeats is one whose field the endpoint refused, without that field.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing

from crystal.types._frozen import Frozen
from crystal.types.model import ClientRequest, ImageLoader, ModelDelta, ModelError, ModelRequest, NoticeDelta
from crystal.wire.errors import response_error
from crystal.wire.events import EventReader
from crystal.wire.http import StreamedResponse, TlsTrust, Transport, TransportLimits
from plugins_builtin.protocols.chat_parameters import DROPPABLE, ParameterChanges
from plugins_builtin.protocols.chat_request import RequestDialect, RequestEncoder
from plugins_builtin.protocols.chat_stream import ChatDecoder

_ERROR_BODY_BYTES = 256 * 1024


class ChatEndpoint(Frozen):
    """Where requests go and with which headers. Do not log ``headers``."""

    url: str
    headers: Mapping[str, str]


class ChatClient:
    """One connection to one model.

    :param wall_clock: seconds since the epoch, to turn the date in a ``retry-after`` header into a wait.
    """

    def __init__(
        self,
        request: ClientRequest,
        endpoint: ChatEndpoint,
        dialect: RequestDialect,
        *,
        limits: TransportLimits | None = None,
        trust: TlsTrust | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._encoder = RequestEncoder(request.model, dialect)
        self._changes = ParameterChanges(limit_is_fixed=bool(request.model.limit_field))
        self._transport = Transport(limits, trust)
        self._wall_clock = wall_clock

    def prepare(self) -> None:
        """Import and build what the first request needs, while something else waits."""
        self._transport.prepare(self._endpoint.url)

    async def stream(self, request: ModelRequest, load_image: ImageLoader) -> AsyncIterator[ModelDelta]:
        """Stream one response; closing the iterator or cancelling the task closes the connection.

        :raises ModelError: when the request fails or the answer has no end.
        """
        known = len(self._changes.described)
        response = await self._open(request, load_image)
        try:
            for phrase in self._changes.described[known:]:
                yield NoticeDelta(text=f"The endpoint refused a parameter; from now on: {phrase}.")
            decoder = ChatDecoder(self._dialect.state_tag)
            reader = EventReader(response, self._transport.limits)
            async with aclosing(reader.events()) as events:
                async for event in events:
                    for delta in decoder.feed(event):
                        yield delta
                    if event.done:
                        break
                    if decoder.has_finished:
                        reader.expect_end()
            for delta in decoder.close():
                yield delta
            await response.drain()
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _open(self, request: ModelRequest, load_image: ImageLoader) -> StreamedResponse:
        """Return a successful response; each field that the endpoint refuses costs one more request, once."""
        for _ in range(len(DROPPABLE) + 1):
            body = self._encoder.encode(request, load_image, self._changes)
            response = await self._transport.post_stream(self._endpoint.url, self._endpoint.headers, body)
            if 200 <= response.status < 300:
                return response
            error, text = await self._refusal(response)
            if not self._changes.learn(error, text, self._encoder.fields(request)):
                break
        raise error

    async def _refusal(self, response: StreamedResponse) -> tuple[ModelError, str]:
        try:
            body = await self._error_body(response)
        finally:
            await response.aclose()
        error = response_error(response.status, response.headers, body, self._wall_clock())
        return error, body.decode("utf-8", "replace")

    @staticmethod
    async def _error_body(response: StreamedResponse) -> bytes:
        try:
            return await response.read(_ERROR_BODY_BYTES)
        except ModelError:
            # The status already says what failed; a body that broke off adds nothing.
            return b""
