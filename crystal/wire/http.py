"""The one HTTP seam: post a body, get a status, headers and a stream of bytes, or a :class:`ModelError`.

httpx is imported when the first request is near, not with this module. Nothing here retries or reads what it carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

from crystal._version import VERSION
from crystal.types._frozen import Frozen
from crystal.types.model import ModelError, ModelErrorKind

if TYPE_CHECKING:
    import ssl

    import httpx

USER_AGENT = f"crystal/{VERSION}"
_KEEP_ALIVE_SECONDS = 120.0
"""Tools run between two requests of a turn; httpx's own 5 s would throw the connection away."""
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
        """Return a context that verifies peers, with the bundle of ``SSL_CERT_FILE`` when that is set."""
        if self._context is None:
            self._context = _httpx().create_ssl_context()
        return self._context


class StreamedResponse:
    """A response whose body is still arriving. Close it always; drain it first to keep the connection.

    :ivar headers: names in lower case.
    """

    def __init__(
        self,
        response: httpx.Response,
        where: str,
        limits: TransportLimits,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self._chunks = _body_chunks(response)
        self._where = where
        self._limits = limits
        self._close = close
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
        except _httpx().HTTPError as error:
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
        self._open: httpx.AsyncHTTPTransport | httpx.AsyncClient | None = None
        self._send: Callable[[httpx.Request], Awaitable[httpx.Response]] | None = None
        self._parsed: tuple[str | None, Any] = (None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def prepare(self, url: str) -> None:
        """Import httpx and build what a request to ``url`` needs; a thread may call it while something waits."""
        warm()
        if self._send is None:
            self._send = self._build(url)

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> StreamedResponse:
        """Post ``body`` and return the response as soon as its head is there, whatever its status.

        :param headers: sent as they are, besides ``user-agent``, ``host`` and ``content-length``.
        :raises ModelError: kind NETWORK, TIMEOUT, or INVALID when ``url`` or a header cannot be sent.
        """
        send = self._send = self._send or self._build(url)
        where = _where(url)
        request = self._request(url, headers, body)
        try:
            async with asyncio.timeout(self.limits.first_byte):
                response = await send(request)
        except TimeoutError:
            raise ModelError(
                ModelErrorKind.TIMEOUT, f"{where} sent no answer within {self.limits.first_byte:g} seconds."
            ) from None
        except _httpx().HTTPError as error:
            raise _transport_error(error, where) from error
        return StreamedResponse(response, where, self.limits, response.aclose)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._open is not None:
            opened, self._open, self._send = self._open, None, None
            await opened.aclose()

    def _build(self, url: str) -> Callable[[httpx.Request], Awaitable[httpx.Response]]:
        import ssl
        from functools import partial
        from urllib.request import getproxies

        library = _httpx()
        # A plain http URL needs no certificates, and loading them takes tens of milliseconds. A bare context
        # has none and verifies, so it would refuse every TLS peer rather than trust one.
        secure = not url.lower().startswith("http:")
        context = self._trust.context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        pool = library.Limits(keepalive_expiry=_KEEP_ALIVE_SECONDS)
        if getproxies():
            client = library.AsyncClient(verify=context, limits=pool)
            self._open = client
            return partial(client.send, stream=True)
        # Without proxies the client adds only cookies, redirects and authentication, which nothing here uses
        # and which take a quarter of the time of a local request.
        transport = library.AsyncHTTPTransport(verify=context, limits=pool)
        self._open = transport
        send: Callable[[httpx.Request], Awaitable[httpx.Response]] = transport.handle_async_request
        return send

    def _address(self, url: str) -> httpx.URL:
        """Return the parsed address; one client sends to one, again and again."""
        if url != self._parsed[0]:
            self._parsed = (url, _httpx().URL(url))
        address: httpx.URL = self._parsed[1]
        return address

    def _request(self, url: str, headers: Mapping[str, str], body: bytes) -> httpx.Request:
        library = _httpx()
        for name, value in headers.items():
            # Checked here because the libraries below put the value, which may be a key, into their messages.
            if not (name.isascii() and value.isascii() and value.isprintable()):
                raise ModelError(
                    ModelErrorKind.INVALID,
                    f"The header {name!r} holds characters that HTTP cannot carry; mend it or the key in it.",
                )
        try:
            request: httpx.Request = library.Request(
                "POST",
                self._address(url),
                headers={"user-agent": USER_AGENT, **headers},
                content=body,
                extensions={"timeout": self._timeouts},
            )
            return request
        except (library.InvalidURL, ValueError) as error:
            raise ModelError(ModelErrorKind.INVALID, f"The endpoint's baseUri is no usable address: {error}") from error


def warm() -> None:
    """Import httpx and what its first request would import; a thread may call it while something waits."""
    _httpx()
    importlib.import_module("httpcore")
    # Imported by name inside anyio at the first connection otherwise; only time is lost when anyio moves it.
    with contextlib.suppress(ImportError):
        importlib.import_module("anyio._backends._asyncio")


def _httpx() -> Any:
    if "httpx" in sys.modules:
        # Not taken from sys.modules: import_module waits for a thread that is still importing it.
        return importlib.import_module("httpx")
    # httpx imports its own command line when click and rich are installed; blocking that module saves
    # importing both and pygments, about 40 ms, and changes nothing else.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("httpx")
    finally:
        sys.modules.pop("httpx._main", None)


def _body_chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    chunks: Any = (
        response.aiter_bytes() if "content-encoding" in response.headers else aiter(cast(Any, response.stream))
    )
    return cast("AsyncGenerator[bytes, None]", chunks)


def _where(url: str) -> str:
    """Name the endpoint for a message: no user, no path, no query, which may hold secrets."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "The endpoint"


def _transport_error(error: Exception, where: str) -> ModelError:
    library = _httpx()
    if isinstance(error, library.TimeoutException):
        doing = {"ConnectTimeout": "connect", "WriteTimeout": "send the request"}.get(type(error).__name__, "read")
        return ModelError(ModelErrorKind.TIMEOUT, f"{where}: the time to {doing} ran out.")
    if _has_certificate_fault(error):
        return ModelError(
            ModelErrorKind.INVALID,
            f"{where} shows a certificate that is not trusted; set SSL_CERT_FILE to a bundle with its issuer.",
        )
    if isinstance(error, library.UnsupportedProtocol):
        return ModelError(ModelErrorKind.INVALID, "The endpoint's baseUri must begin with http:// or https://.")
    if isinstance(error, library.LocalProtocolError):
        return ModelError(ModelErrorKind.INVALID, f"{where}: the request cannot be sent ({type(error).__name__}).")
    if isinstance(error, library.ConnectError):
        return ModelError(ModelErrorKind.NETWORK, f"No connection to {where}: {error}")
    return ModelError(ModelErrorKind.NETWORK, f"The connection to {where} broke: {error or type(error).__name__}")


def _has_certificate_fault(error: BaseException) -> bool:
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
