"""The two ways a request leaves: straight through httpcore, or through httpx when the environment names proxies.

Each is imported when its first request is near, not with this module.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import ssl
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from crystal.types._frozen import Frozen

if TYPE_CHECKING:
    import httpcore
    import httpx

_KEEP_ALIVE_SECONDS = 120.0
"""Tools run between two requests of a turn; httpx's own 5 s would throw the connection away."""
_PLAIN_ADDRESS = re.compile(
    r"(https?)://([a-z0-9][a-z0-9.-]*)(?::([0-9]{1,5}))?((?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?)"
)
_LAST_PORT = 65535


class AddressRefused(ValueError):
    """A URL that no request can be sent to."""


class RawResponse(Frozen):
    """A response whose body is still arriving.

    :param headers: names in lower case.
    :param chunks: the body as it comes, without its content encoding.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncGenerator[bytes, None]
    close: Callable[[], Awaitable[None]]


class Route(Protocol):
    """A way out.

    :ivar errors: what sending and reading may raise; both libraries give the kinds the same names.
    """

    errors: tuple[type[Exception], ...]

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        """Send and return the response as soon as its head is there.

        :raises AddressRefused: for a URL that nothing can be sent to.
        """

    async def aclose(self) -> None:
        """Close every connection."""


def make_route(context: Callable[[], ssl.SSLContext], url: str, timeouts: Mapping[str, float | None]) -> Route:
    """Return the way to ``url``.

    :param context: makes the TLS context; a plain http URL needs none, and one takes tens of milliseconds.
    """
    # A bare context has no certificates and verifies, so it would refuse every TLS peer rather than trust one.
    secure = not url.lower().startswith("http:")
    chosen = context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if _may_have_proxies():
        return _EnvironmentRoute(chosen, timeouts)
    return _DirectRoute(chosen, timeouts)


def warm() -> None:
    """Import what the first request would import; a thread may call it while something waits."""
    import_httpx() if _may_have_proxies() else importlib.import_module("httpcore")
    # Imported by name inside anyio at the first connection otherwise; only time is lost when anyio moves it.
    with contextlib.suppress(ImportError):
        importlib.import_module("anyio._backends._asyncio")


def import_httpx() -> Any:
    """Return httpx, imported without its own command line.

    That one would bring click, rich and pygments, about 40 ms; blocking its module changes nothing else.
    """
    if "httpx" in sys.modules:
        # Not taken from sys.modules: import_module waits for a thread that is still importing it.
        return importlib.import_module("httpx")
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("httpx")
    finally:
        sys.modules.pop("httpx._main", None)


class _DirectRoute:
    """Without proxies, httpx would add cookies, redirects and authentication, which nothing here uses, a tenth of
    the time of a short run to import and a quarter of that of a local request."""

    def __init__(self, context: ssl.SSLContext, timeouts: Mapping[str, float | None]) -> None:
        import httpcore

        self.errors: tuple[type[Exception], ...] = (
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.UnsupportedProtocol,
            httpcore.ConnectionNotAvailable,
        )
        self._request = httpcore.Request
        self._pool = httpcore.AsyncConnectionPool(ssl_context=context, keepalive_expiry=_KEEP_ALIVE_SECONDS)
        self._extensions = {"timeout": dict(timeouts)}
        self._address: tuple[str, httpcore.URL, bytes] | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        if self._address is None or self._address[0] != url:
            self._address = (url, *_parse(url))
        _, target, host = self._address
        sent = [(b"Host", host), *((name.encode(), value.encode()) for name, value in headers.items())]
        sent.append((b"Content-Length", b"%d" % len(body)))
        request = self._request("POST", target, headers=sent, content=body, extensions=self._extensions)
        response = await self._pool.handle_async_request(request)
        received: dict[str, str] = {}
        for name, value in response.headers:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            received[key] = f"{received[key]}, {text}" if key in received else text
        chunks = _generate(response.stream) if "content-encoding" not in received else _decoded(response)
        return RawResponse(status=response.status, headers=received, chunks=chunks, close=response.aclose)

    async def aclose(self) -> None:
        await self._pool.aclose()


class _EnvironmentRoute:
    """Proxies as httpx reads them from the environment, ``NO_PROXY`` included."""

    def __init__(self, context: ssl.SSLContext, timeouts: Mapping[str, float | None]) -> None:
        self._httpx = import_httpx()
        self.errors: tuple[type[Exception], ...] = (self._httpx.HTTPError,)
        limits = self._httpx.Limits(keepalive_expiry=_KEEP_ALIVE_SECONDS)
        self._client: httpx.AsyncClient = self._httpx.AsyncClient(verify=context, limits=limits)
        self._extensions = {"timeout": dict(timeouts)}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> RawResponse:
        _parse(url)
        request = self._httpx.Request("POST", url, headers=headers, content=body, extensions=self._extensions)
        response = await self._client.send(request, stream=True)
        chunks: Any = response.aiter_bytes() if "content-encoding" in response.headers else response.stream
        return RawResponse(
            status=response.status_code,
            headers=dict(response.headers.items()),
            chunks=_generate(chunks),
            close=response.aclose,
        )

    async def aclose(self) -> None:
        await self._client.aclose()


def _may_have_proxies() -> bool:
    """Whether a proxy may be set; macOS keeps them outside the environment too."""
    return sys.platform == "darwin" or any(name.lower().endswith("_proxy") and os.environ[name] for name in os.environ)


def _parse(url: str) -> tuple[httpcore.URL, bytes]:
    """Return the address and the ``Host`` header."""
    import httpcore

    if plain := _PLAIN_ADDRESS.fullmatch(url):
        scheme, host, digits, path = plain.groups()
        raw = (scheme.encode(), host.encode(), None if digits is None else int(digits), path.encode() or b"/")
    else:
        library = import_httpx()
        try:
            parsed = library.URL(url)
        except (library.InvalidURL, ValueError) as error:
            raise AddressRefused(str(error)) from error
        raw = (parsed.raw_scheme, parsed.raw_host, parsed.port, parsed.raw_path)
    scheme_bytes, host_bytes, port, target = raw
    if scheme_bytes not in (b"http", b"https"):
        raise AddressRefused("it must begin with http:// or https://")
    if not host_bytes:
        raise AddressRefused("it names no host")
    if port is not None and port > _LAST_PORT:
        raise AddressRefused(f"{port} is no port")
    shown = b"[%b]" % host_bytes if b":" in host_bytes else host_bytes
    header = shown if port in (None, 443 if scheme_bytes == b"https" else 80) else b"%b:%d" % (shown, port)
    return httpcore.URL(scheme=scheme_bytes, host=host_bytes, port=port, target=target), header


async def _generate(stream: Any) -> AsyncGenerator[bytes, None]:
    async for chunk in stream:
        yield chunk


def _decoded(response: httpcore.Response) -> AsyncGenerator[bytes, None]:
    """Take the content encoding off, which no request of ours asks for."""
    library = import_httpx()
    stream: Any = library.AsyncByteStream

    class Body(stream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncGenerator[bytes, None]:
            async for chunk in _generate(response.stream):
                yield chunk

    carrier = library.Response(response.status, headers=response.headers, stream=Body())
    return _generate(carrier.aiter_bytes())
