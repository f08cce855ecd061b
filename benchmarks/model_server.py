"""A deterministic stand-in for a model server on the loopback interface, to time clients against.

``python -m benchmarks.model_server --rounds 50 --log requests.jsonl`` prints its port on a line and serves
until SIGTERM; ``python -m benchmarks.model_server --report requests.jsonl`` prints the gaps in that log.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO, cast

from benchmarks.dialects import DIALECTS
from benchmarks.gaps import read_log, report
from benchmarks.script import Script

MODEL = {"id": "mock", "object": "model", "created": 0, "owned_by": "benchmarks"}
EXCERPT = 600


def json_reply(status: str, data: Any) -> bytes:
    body = json.dumps(data).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def refusal(status: str, message: str) -> bytes:
    return json_reply(status, {"error": {"message": message}})


class Desk:
    """Answers requests and writes their log lines; shared by all connections of one server."""

    def __init__(self, script: Script, log: TextIO) -> None:
        self._script = script
        self._log = log
        self._served = 0

    def reply(self, method: str, path: str, body: bytes) -> tuple[bytes, dict[str, Any]]:
        """The bytes to send, and what the log shall say about the request."""
        self._served += 1
        facts: dict[str, Any] = {"number": self._served, "method": method, "path": path, "bytes": len(body)}
        if path.endswith("/models"):
            return json_reply("200 OK", {"object": "list", "data": [MODEL]}), facts
        dialect = next((dialect for ending, dialect in DIALECTS.items() if path.endswith(ending)), None)
        if dialect is None or method != "POST":
            return refusal("404 Not Found", f"nothing answers {method} {path}"), facts
        request = json.loads(body)
        if not request.get("stream"):
            return refusal("400 Bad Request", "this server only streams"), facts
        inquiry = dialect.read(request)
        answer = self._script.answer(inquiry, number=self._served, body_size=len(body))
        facts |= {
            "tools": len(inquiry.tools),
            "results": inquiry.results,
            "latest": inquiry.latest[:EXCERPT],
            "call": answer.tool,
        }
        events = "".join(
            f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n" for name, data in dialect.write(answer)
        ).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(events), events), facts

    def note(self, facts: dict[str, Any]) -> None:
        self._log.write(json.dumps(facts) + "\n")


class Connection(asyncio.Protocol):
    """One client's connection: just enough HTTP/1.1, with the clock read where it matters."""

    def __init__(self, desk: Desk, think: float) -> None:
        self._desk = desk
        self._think = think
        self._clock = asyncio.get_running_loop()
        self._received = bytearray()
        self._arrived = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._received:
            self._arrived = self._clock.time()
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        request_line, *fields = self._received[:head_end].decode("latin-1").split("\r\n")
        pairs = (field.partition(":") for field in fields)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if "transfer-encoding" in headers:
            self._transport.write(refusal("411 Length Required", "send a content-length"))
            self._transport.close()
            return
        end = head_end + 4 + int(headers.get("content-length", 0))
        if len(self._received) < end:
            return
        method, target, _ = request_line.split(" ", 2)
        self._answer(method, target.partition("?")[0], bytes(self._received[head_end + 4 : end]))

    def _answer(self, method: str, path: str, body: bytes) -> None:
        self._received.clear()
        reply, facts = self._desk.reply(method, path, body)
        facts["arrived"] = self._arrived
        self._clock.call_at(self._arrived + self._think, self._send, reply, facts)

    def _send(self, reply: bytes, facts: dict[str, Any]) -> None:
        self._transport.write(reply)
        self._desk.note({**facts, "answered": self._clock.time()})


async def serve(port: int, script: Script, think: float, log: TextIO) -> None:
    """Serve until SIGTERM or SIGINT, then return; open connections are dropped.

    :param think: least seconds from a request's first byte to its answer. A processor that waits longer wakes
        later, so without a steady wait the growing time to parse a request would show in the client's gap.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    desk = Desk(script, log)
    server = await loop.create_server(lambda: Connection(desk, think), "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stopped.wait()
    server.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--rounds", type=int, default=1, help="tool calls before the final text")
    parser.add_argument("--think", type=float, default=0.0, metavar="MS", help="least time to an answer")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="file for one JSON line a request")
    parser.add_argument("--report", type=Path, metavar="LOG", help="print the gaps of a log and exit")
    arguments = parser.parse_args()
    if arguments.report:
        gaps = report(read_log(arguments.report))
        print(json.dumps(gaps and dataclasses.asdict(gaps)))
        return 0
    with arguments.log.open("a", encoding="utf-8", buffering=1) as log:
        asyncio.run(serve(arguments.port, Script(arguments.rounds), arguments.think / 1e3, log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
