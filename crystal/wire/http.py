"""The one HTTP seam: post a body, get a status, headers and a stream of bytes, or a :class:`ModelError`.

Nothing here retries or reads what it carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from crystal._version import VERSION
from crystal.types._frozen import Frozen
from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.routes import AddressRefused, RawResponse, Route, make_route, warm

if TYPE_CHECKING:
    import ssl

USER_AGENT = f"crystal/{VERSION}"
_DRAIN_BYTES = 256 * 1024


class TransportLimits(Frozen):
    """How long to wait, in seconds.

    :param write: for the peer to take more of the request.
    :param first_byte: from the request to the response head, and from there to the first byte of the body; a
        local server may load a model in that time.
    :param idle: between two pieces of a body.
    :param event: between two events, when keep-alive comments are all that arrives.
    :param grace: for what may follow a complete answer.
    :param drain: for the end of a body whose content is known to be over.
    """

    connect: float = 10.0
    write: float = 60.0
    first_byte: float = 600.0
    idle: float = 300.0
    event: float = 600.0
    grace: float = 5.0
    drain: float = 0.5


class TlsTrust:
    """Builds the TLS context once for all transports that share this object; it takes tens of ms."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context that verifies peers: by certifi's certificates, or by those of ``SSL_CERT_FILE`` or
        ``SSL_CERT_DIR``."""
        if self._context is None:
            self._context = _make_context()
        return self._context


class StreamedResponse:
    """A response whose body is still arriving. Close it always; drain it first to keep the connection.

    :ivar headers: names in lower case.
    """

    def __init__(
        self, response: RawResponse, where: str, limits: TransportLimits, errors: tuple[type[Exception], ...]
    ) -> None:
        self.status = response.status
        self.headers = response.headers
        self._chunks = response.chunks
        self._close = response.close
        self._errors = errors
        self._where = where
        self._limits = limits
        self._patience = limits.first_byte
        self._ended = False

    async def next_chunk(self, within: float | None = None) -> bytes | None:
        """Return the next bytes of the body, or ``None`` at its end.

        :param within: seconds to wait instead of the usual limits.
        :raises ModelError: kind TIMEOUT when nothing came in time, NETWORK when the connection broke.
        """
        if self._ended:
            return None
        wait = self._patience if within is None else within
        try:
            async with asyncio.timeout(wait):
                chunk = await anext(self._chunks, None)
        except TimeoutError:
            raise ModelError(
                ModelErrorKind.TIMEOUT,
                f"{self._where} sent nothing for {wait:g} seconds in the middle of an answer.",
            ) from None
        except self._errors as error:
            raise _transport_error(error, self._where) from error
        self._patience = self._limits.idle
        self._ended = chunk is None
        return chunk

    async def read(self, limit: int) -> bytes:
        """Return the rest of the body, or its first ``limit`` bytes when it is longer.

        :raises ModelError: as :meth:`next_chunk`.
        """
        body = bytearray()
        while len(body) < limit and (chunk := await self.next_chunk()) is not None:
            body += chunk
        return bytes(body[:limit])

    async def drain(self) -> None:
        """Read what is left of a body that has said all it had to, so that the connection can serve again.

        Bounded in bytes and time; a body that goes on, hangs or breaks costs the connection, not the answer.
        """
        left = _DRAIN_BYTES
        with contextlib.suppress(ModelError):
            while left > 0 and (chunk := await self.next_chunk(self._limits.drain)) is not None:
                left -= len(chunk)

    async def aclose(self) -> None:
        """End the exchange; one that is not read to its end closes the connection."""
        self._ended = True
        await self._chunks.aclose()
        await self._close()


class Transport:
    """One client's way out: reused connections, no redirects, proxies as httpx reads the environment."""

    def __init__(self, limits: TransportLimits | None = None, trust: TlsTrust | None = None) -> None:
        self.limits = limits or TransportLimits()
        self._trust = trust or TlsTrust()
        self._timeouts = {
            "connect": self.limits.connect,
            "write": self.limits.write,
            # Reading has two limits of its own, which one httpx figure cannot express.
            "read": None,
            "pool": None,
        }
        self._route: Route | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def prepare(self, url: str) -> None:
        """Import and build what a request to ``url`` needs; a thread may call it while something waits."""
        warm()
        if self._route is None:
            self._route = make_route(self._trust.context, url, self._timeouts)

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> StreamedResponse:
        """Post ``body`` and return the response as soon as its head is there, whatever its status.

        :param headers: sent as they are, besides ``user-agent``, ``host`` and ``content-length``.
        :raises ModelError: kind NETWORK, TIMEOUT, or INVALID when ``url`` or a header cannot be sent.
        """
        route = self._route = self._route or make_route(self._trust.context, url, self._timeouts)
        where = _where(url)
        _check_headers(headers)
        try:
            async with asyncio.timeout(self.limits.first_byte):
                response = await route.post(url, {"user-agent": USER_AGENT, **headers}, body)
        except TimeoutError:
            raise ModelError(
                ModelErrorKind.TIMEOUT, f"{where} sent no answer within {self.limits.first_byte:g} seconds."
            ) from None
        except AddressRefused as error:
            raise ModelError(ModelErrorKind.INVALID, f"The endpoint's baseUri is no usable address: {error}") from error
        except route.errors as error:
            raise _transport_error(error, where) from error
        return StreamedResponse(response, where, self.limits, route.errors)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._route is not None:
            route, self._route = self._route, None
            await route.aclose()


def _make_context() -> ssl.SSLContext:
    import ssl

    if file := os.environ.get("SSL_CERT_FILE"):
        return ssl.create_default_context(cafile=file)
    if folder := os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context(capath=folder)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def _check_headers(headers: Mapping[str, str]) -> None:
    """Refuse what HTTP cannot carry here, since the libraries below put the value, maybe a key, into messages."""
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and value.isprintable()):
            raise ModelError(
                ModelErrorKind.INVALID,
                f"The header {name!r} holds characters that HTTP cannot carry; mend it or the key in it.",
            )


def _where(url: str) -> str:
    """Name the endpoint for a message: no user, no path, no query, which may hold secrets."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "The endpoint"


def _transport_error(error: Exception, where: str) -> ModelError:
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if "TimeoutException" in kinds:
        doing = {"ConnectTimeout": "connect", "WriteTimeout": "send the request"}.get(kinds[0], "read")
        return ModelError(ModelErrorKind.TIMEOUT, f"{where}: the time to {doing} ran out.")
    if _has_certificate_fault(error):
        return ModelError(
            ModelErrorKind.INVALID,
            f"{where} shows a certificate that is not trusted; set SSL_CERT_FILE to a bundle with its issuer.",
        )
    if "UnsupportedProtocol" in kinds:
        return ModelError(ModelErrorKind.INVALID, "The endpoint's baseUri must begin with http:// or https://.")
    if "LocalProtocolError" in kinds:
        return ModelError(ModelErrorKind.INVALID, f"{where}: the request cannot be sent ({kinds[0]}).")
    if "ConnectError" in kinds:
        return ModelError(ModelErrorKind.NETWORK, f"No connection to {where}: {error}")
    return ModelError(ModelErrorKind.NETWORK, f"The connection to {where} broke: {error or kinds[0]}")


def _has_certificate_fault(error: BaseException) -> bool:
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
