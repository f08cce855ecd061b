"""A scripted HTTP server on the loopback interface for tests: exact bytes, exact boundaries, recorded requests.

``with LocalServer(answers) as server:`` serves in a thread with a loop of its own. Answers are used in order,
one a request; a function of the request may stand for all of them. When they run out the server answers 500.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived; header names in lower case.

    :ivar connection: counts the connections, so that a test can see reuse.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class HangUp:
    """Instead of a chunk: break the connection without an end."""


@dataclass(frozen=True)
class Wait:
    """Instead of a chunk: send nothing more until ``event`` is set, the client goes away or the server
    stops.
    """

    event: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Repeat:
    """Instead of a chunk: send ``chunk`` again and again until the client goes away or the server stops."""

    chunk: bytes


@dataclass(frozen=True)
class Answer:
    """One response. Every ``bytes`` of ``chunks`` reaches the client as a chunk of its own.

    :ivar before: what happens between the request and the response head.
    """

    chunks: Sequence[bytes | HangUp | Wait | Repeat] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    before: HangUp | Wait | None = None


def sse_answer(*payloads: Any, done: bool = True, status: int = 200) -> Answer:
    """Return an event stream of JSON payloads, one chunk an event, ended by ``[DONE]`` unless told
    otherwise.
    """
    chunks = [b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads]
    return Answer(chunks=[*chunks, b"data: [DONE]\n\n"] if done else chunks, status=status)


def json_answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """Return one JSON body; ``retry_after="3"`` becomes the header ``retry-after``."""
    extra = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(
        chunks=[json.dumps(value).encode()],
        status=status,
        headers={"content-type": "application/json", **extra},
    )


def chat_answer(
    text: str = "",
    calls: Iterable[tuple[str, str, Mapping[str, Any]]] = (),
    *,
    usage: tuple[int, int] = (10, 5),
) -> Answer:
    """Return a chat-completions stream.

    :param calls: id, tool name and arguments of each call.
    :param usage: input and output tokens.
    """
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if text:
        deltas.append({"content": text})
    entries = [
        {
            "index": index,
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (call_id, name, arguments) in enumerate(calls)
    ]
    deltas += [{"tool_calls": [entry]} for entry in entries]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if entries else "stop"}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}})
    return sse_answer(*chunks)


class LocalServer:
    """Serves scripted answers; a context manager.

    :ivar requests: every request so far, in order of arrival.
    """

    def __init__(self, answers: Iterable[Answer] | Callable[[Recorded], Answer] = ()) -> None:
        self.requests: list[Recorded] = []
        self._respond = answers if callable(answers) else None
        self._answers = [] if callable(answers) else list(answers)
        self._port = 0
        self._connections = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stopped: asyncio.Event = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="local-server", daemon=True)
        self.arrived = threading.Event()
        """Set when a request has arrived."""
        self.client_left = threading.Event()
        """Set when a client closed its connection while an answer was held open."""

    @property
    def base_uri(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._port}"

    def add(self, *answers: Answer) -> None:
        """Add answers for later requests."""
        self._answers.extend(answers)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        try:
            while (request := await _read_request(reader, number)) is not None:
                self.requests.append(request)
                self.arrived.set()
                if not await self._send(self._answer(request), reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.client_left.set()
        except asyncio.CancelledError:
            # The server stops; streams log a connection task that ends cancelled.
            pass
        finally:
            writer.close()

    def _answer(self, request: Recorded) -> Answer:
        if self._respond is not None:
            return self._respond(request)
        if self._answers:
            return self._answers.pop(0)
        return json_answer({"error": {"message": "the test's answers have run out"}}, status=500)

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send one answer; return whether the connection may serve another request."""
        match answer.before:
            case Wait():
                await self._until(answer.before.event.is_set, reader)
            case HangUp():
                writer.transport.abort()
                return False
        head = [f"HTTP/1.1 {answer.status} Test", "transfer-encoding: chunked"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
        for chunk in answer.chunks:
            match chunk:
                case bytes():
                    await _write_chunk(writer, chunk)
                case Wait():
                    await self._until(chunk.event.is_set, reader)
                case Repeat():
                    await self._repeat(chunk.chunk, reader, writer)
                case HangUp():
                    await writer.drain()
                    writer.transport.abort()
                    return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _until(self, is_over: Callable[[], bool], reader: asyncio.StreamReader) -> None:
        while not is_over() and not self._stopped.is_set():
            if _has_left(reader):
                raise ConnectionResetError
            await asyncio.sleep(0.005)

    async def _repeat(self, chunk: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not self._stopped.is_set():
            if _has_left(reader):
                raise ConnectionResetError
            await _write_chunk(writer, chunk)
            await asyncio.sleep(0.001)


def _has_left(reader: asyncio.StreamReader) -> bool:
    """Whether the client closed the connection, or broke it off with bytes still unread."""
    return reader.at_eof() or reader.exception() is not None


async def _write_chunk(writer: asyncio.StreamWriter, chunk: bytes) -> None:
    """Write one HTTP chunk, so that the boundary survives however TCP cuts the stream."""
    if chunk:
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Recorded | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Recorded(method=method, path=path, headers=headers, body=body, connection=connection)
