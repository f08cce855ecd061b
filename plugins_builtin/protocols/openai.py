"""The ``openai`` protocol: chat completions, at OpenAI and at every server that imitates it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crystal import hookimpl
from crystal.types.model import ClientFactory, ClientRequest, ModelClient, ModelError, ModelErrorKind

if TYPE_CHECKING:
    from crystal.wire.http import TlsTrust, TransportLimits

name = "openai"


@hookimpl
def contribute_protocols() -> list[ClientFactory]:
    """Bring the protocol."""
    return [OpenAiFactory()]


class OpenAiFactory:
    """Builds chat clients, which share one TLS context.

    :param limits: how long to wait; the defaults of ``TransportLimits`` when left out.
    """

    protocols = ("openai",)

    def __init__(self, limits: TransportLimits | None = None) -> None:
        self._limits = limits
        self._trust: TlsTrust | None = None

    def create(self, request: ClientRequest) -> ModelClient:
        """Build a client; nothing is opened before its first request.

        :raises ModelError: when the base URI is no address.
        """
        # Every host loads every protocol; what one needs to talk is imported when it is chosen.
        from crystal.wire.http import TlsTrust
        from plugins_builtin.protocols.chat_client import ChatClient, ChatEndpoint
        from plugins_builtin.protocols.chat_endpoint import chat_headers, chat_url, request_dialect

        self._trust = self._trust or TlsTrust()
        try:
            endpoint = ChatEndpoint(url=chat_url(request.base_uri), headers=chat_headers(request))
            dialect = request_dialect(request)
        except ValueError as error:
            raise ModelError(
                ModelErrorKind.INVALID,
                f"The baseUri of provider {request.provider!r} is no address: {error}.",
            ) from error
        return ChatClient(request, endpoint, dialect, limits=self._limits, trust=self._trust)
