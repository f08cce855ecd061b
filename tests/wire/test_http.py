"""The transport against a real server on the loopback interface."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crystal.types.model import ModelError, ModelErrorKind
from crystal.wire.http import USER_AGENT, Transport, TransportLimits
from tests.local_server import Answer, HangUp, LocalServer, Repeat, Wait

SHORT = TransportLimits(first_byte=0.2, idle=0.2, drain=0.05)
HEADERS = {"content-type": "application/json", "authorization": "Bearer key-1"}


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def run(
    answers: list[Answer],
    use: Callable[[Transport, str], Awaitable[Any]],
    limits: TransportLimits | None = None,
) -> tuple[Any, LocalServer]:
    """Return what ``use`` returns and the server, which has stopped by then."""

    async def inside() -> Any:
        async with Transport(limits) as transport:
            return await use(transport, server.base_uri + "/v1/chat/completions")

    with LocalServer(answers) as server:
        return asyncio.run(inside()), server


async def read_whole(transport: Transport, url: str) -> tuple[int, list[bytes]]:
    response = await transport.post_stream(url, HEADERS, b"{}")
    chunks = []
    while (chunk := await response.next_chunk()) is not None:
        chunks.append(chunk)
    await response.aclose()
    return response.status, chunks


def failure(answers: list[Answer], limits: TransportLimits | None = None) -> ModelError:
    with pytest.raises(ModelError) as caught:
        run(answers, read_whole, limits)
    return caught.value


def test_a_post_carries_its_body_and_headers_and_says_who_we_are() -> None:
    async def use(transport: Transport, url: str) -> None:
        response = await transport.post_stream(url, HEADERS, '{"é":1}'.encode())
        await response.aclose()

    _, server = run([Answer()], use)
    [request] = server.requests
    assert (request.method, request.path, request.json) == ("POST", "/v1/chat/completions", {"é": 1})
    assert request.headers["user-agent"] == USER_AGENT
    assert request.headers["authorization"] == "Bearer key-1"


def test_every_status_is_a_response_and_its_headers_have_lower_case_names() -> None:
    async def use(transport: Transport, url: str) -> tuple[int, str, bytes]:
        response = await transport.post_stream(url, HEADERS, b"{}")
        body = await response.read(1000)
        await response.aclose()
        return response.status, response.headers["retry-after"], body

    answer = Answer(status=429, headers={"Retry-After": "3"}, chunks=[b"no", b"pe"])
    assert run([answer], use)[0] == (429, "3", b"nope")


def test_chunks_arrive_as_they_were_sent_and_the_connection_serves_again() -> None:
    async def use(transport: Transport, url: str) -> list[tuple[int, list[bytes]]]:
        return [await read_whole(transport, url) for _ in range(3)]

    results, server = run([Answer(chunks=[b"a", b"\xc3", b"\xa9\r", b"\n"])] * 3, use)
    assert results == [(200, [b"a", b"\xc3", b"\xa9\r", b"\n"])] * 3
    assert {request.connection for request in server.requests} == {1}


def test_a_drained_response_leaves_its_connection_and_an_abandoned_one_does_not() -> None:
    async def use(transport: Transport, url: str) -> None:
        for drained in (True, False, True):
            response = await transport.post_stream(url, HEADERS, b"{}")
            await response.next_chunk()
            if drained:
                await response.drain()
            await response.aclose()

    _, server = run([Answer(chunks=[b"first", b"rest"])] * 3, use)
    assert [request.connection for request in server.requests] == [1, 1, 2]


@pytest.mark.parametrize("rest", [Wait(), Repeat(b"x" * 10_000), HangUp()])
def test_draining_a_body_that_does_not_end_well_is_bounded_and_raises_nothing(
    rest: Wait | Repeat | HangUp,
) -> None:
    async def use(transport: Transport, url: str) -> bool:
        response = await transport.post_stream(url, HEADERS, b"{}")
        await response.next_chunk()
        await response.drain()
        await response.aclose()
        return True

    assert run([Answer(chunks=[b"answer", rest])], use, SHORT)[0]


def test_a_compressed_body_is_unpacked() -> None:
    packed = gzip.compress(b"data: 1\n\n" * 100)
    answer = Answer(chunks=[packed[:20], packed[20:]], headers={"content-encoding": "gzip"})
    (_, chunks), _ = run([answer], read_whole)
    assert b"".join(chunks) == b"data: 1\n\n" * 100


def test_a_long_error_body_is_read_only_to_its_limit() -> None:
    async def use(transport: Transport, url: str) -> bytes:
        response = await transport.post_stream(url, HEADERS, b"{}")
        body = await response.read(25_000)
        await response.aclose()
        return body

    assert len(run([Answer(status=500, chunks=[Repeat(b"x" * 10_000)])], use)[0]) == 25_000


def test_a_redirect_is_answered_and_not_followed_with_the_key() -> None:
    answer = Answer(status=307, headers={"location": "http://127.0.0.1:9/elsewhere"})
    (status, _), server = run([answer], read_whole)
    assert status == 307
    assert len(server.requests) == 1


@pytest.mark.parametrize("chunks", [[HangUp()], [b"data: 1\n\n", HangUp()]])
def test_a_broken_connection_is_a_network_fault(chunks: list[bytes | HangUp]) -> None:
    error = failure([Answer(chunks=chunks)])
    assert error.kind is ModelErrorKind.NETWORK
    assert "127.0.0.1" in error.message


def test_nobody_listening_is_a_network_fault_that_names_the_endpoint() -> None:
    with LocalServer() as server:
        url = server.base_uri + "/secret-path?key=secret"

    async def use() -> None:
        async with Transport() as transport:
            await transport.post_stream(url, HEADERS, b"{}")

    with pytest.raises(ModelError, match=r"No connection to http://127\.0\.0\.1:\d+") as caught:
        asyncio.run(use())
    assert caught.value.kind is ModelErrorKind.NETWORK
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("chunks", [[Wait()], [b"data: 1\n\n", Wait()]])
def test_silence_ends_with_a_timeout(chunks: list[bytes | Wait]) -> None:
    assert failure([Answer(chunks=chunks)], SHORT).kind is ModelErrorKind.TIMEOUT


def test_the_first_byte_may_take_longer_than_the_next() -> None:
    slow_start = TransportLimits(first_byte=60.0, idle=0.1)
    error = failure([Answer(chunks=[b"data: 1\n\n", Wait()])], slow_start)
    assert (error.kind, "0.1 seconds" in error.message) == (ModelErrorKind.TIMEOUT, True)


def test_silence_before_the_response_head_ends_with_a_timeout() -> None:
    error = failure([Answer(before=Wait())], SHORT)
    assert error.kind is ModelErrorKind.TIMEOUT
    assert "no answer within 0.2 seconds" in error.message


def test_a_connection_that_is_dropped_instead_of_an_answer_is_a_network_fault() -> None:
    assert failure([Answer(before=HangUp())]).kind is ModelErrorKind.NETWORK


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:1234/v1",
        "ftp://x.test/",
        "http://[::1",
        "http://x.test:port/",
        "http://127.0.0.1:99999/",
        "http:///v1",
    ],
)
@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
def test_an_address_that_cannot_be_used_is_an_invalid_request(
    monkeypatch: pytest.MonkeyPatch, proxy: str, url: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)

    async def use() -> None:
        async with Transport() as transport:
            await transport.post_stream(url, HEADERS, b"{}")

    with pytest.raises(ModelError, match="baseUri") as caught:
        asyncio.run(use())
    assert caught.value.kind is ModelErrorKind.INVALID


@pytest.mark.parametrize("key", ["sk-secret\nx: y", "sk-secret\r", "sk-secret-é", "sk-secret\x00"])
def test_a_key_that_is_no_header_value_is_refused_without_being_shown(key: str) -> None:
    async def use(transport: Transport, url: str) -> None:
        await transport.post_stream(url, {"authorization": f"Bearer {key}"}, b"{}")

    with pytest.raises(ModelError) as caught:
        run([], use)
    assert caught.value.kind is ModelErrorKind.INVALID
    shown = "".join(traceback.format_exception(caught.value))
    assert "authorization" in shown
    assert "secret" not in shown.replace("test_a_key", "")


def test_cancelling_while_waiting_closes_the_connection() -> None:
    async def use(transport: Transport, url: str) -> None:
        response = await transport.post_stream(url, HEADERS, b"{}")
        await response.next_chunk()
        waiting = asyncio.create_task(response.next_chunk())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await response.aclose()
        assert await asyncio.to_thread(server_left.wait, 10)

    with LocalServer([Answer(chunks=[b"first", Wait()])]) as server:
        server_left = server.client_left

        async def inside() -> None:
            async with Transport() as transport:
                await use(transport, server.base_uri)

        asyncio.run(inside())


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer([Answer(chunks=[b"through the proxy"])]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_uri)
        monkeypatch.setenv("http_proxy", proxy.base_uri)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")

        async def use() -> tuple[int, list[bytes]]:
            async with Transport() as transport:
                return await read_whole(transport, "http://model.test/v1")

        assert asyncio.run(use()) == (200, [b"through the proxy"])
    assert proxy.requests[0].path == "http://model.test/v1"


def test_an_https_peer_without_a_trusted_certificate_is_refused(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )  # fmt: skip

    async def use() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        try:
            async with Transport() as transport:
                await transport.post_stream(f"https://localhost:{port}/", HEADERS, b"{}")
        finally:
            server.close()

    with pytest.raises(ModelError, match="SSL_CERT_FILE") as caught:
        asyncio.run(use())
    assert caught.value.kind is ModelErrorKind.INVALID


def in_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_wire_imports_no_http_library() -> None:
    code = "import sys, crystal.wire.http, crystal.wire.events; print({'httpx', 'httpcore'} & sys.modules.keys())"
    assert in_new_process(code) == "set()"


def test_warming_imports_only_what_a_request_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; from crystal.wire.routes import warm; warm(); "
        "print(sorted({'httpx', 'httpcore', 'httpx._main', 'click', 'rich', 'pygments'} & sys.modules.keys())); "
        "import httpx; print(callable(httpx.main))"
    )
    assert in_new_process(code) == "['httpcore']\nTrue"
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert in_new_process(code) == "['httpx']\nTrue"


def test_a_plain_address_loads_no_certificates() -> None:
    code = (
        "import ssl, sys; from crystal.wire.http import Transport; "
        "ssl.SSLContext.load_verify_locations = lambda *a, **k: print('loaded'); "
        "Transport().prepare('http://127.0.0.1:1/'); print('plain'); "
        "Transport().prepare('https://127.0.0.1:1/'); print('secure')"
    )
    assert in_new_process(code).splitlines()[0] == "plain"
    assert "loaded" in in_new_process(code)
