"""The scripted task again, against a local server that speaks Chat Completions, through ``providers.json``."""

from __future__ import annotations

import json
from typing import Any

from crystal.testing.crystaler import Crystaler
from crystal.types.events import TextStreamed
from tests.local_server import Answer, LocalServer, chat_answer, sse_answer

KEY = "sk-test-0123456789abcdef"


def split_calls(*calls: tuple[str, str, dict[str, Any]], size: int = 5) -> Answer:
    """Stream tool calls with their arguments cut into small pieces, the calls interleaved."""
    deltas: list[dict[str, Any]] = [
        {
            "tool_calls": [
                {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
            ]
        }
        for index, (call_id, name, _) in enumerate(calls)
    ]
    texts = [json.dumps(arguments) for _, _, arguments in calls]
    for start in range(0, max(map(len, texts)), size):
        for index, text in enumerate(texts):
            if piece := text[start : start + size]:
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
    return sse_answer(*chunks)


def use(crystaler: Crystaler, server: LocalServer, **fields: Any) -> None:
    crystaler.makeproviders(
        here={
            "protocol": "openai",
            "baseUri": f"{server.base_uri}/v1",
            "apiKey": KEY,
            "models": {"small": {"contextWindow": 32_768, **fields}},
        }
    )


def test_a_task_reads_edits_and_runs_over_the_wire(crystaler: Crystaler) -> None:
    crystaler.makefile("greet.py", "print('helo')\n")
    crystaler.makefile("other.txt", "other\n")
    answers = [
        split_calls(("a", "read", {"path": "greet.py"}), ("b", "read", {"path": "other.txt"})),
        split_calls(("c", "edit", {"path": "greet.py", "old_string": "helo", "new_string": "hello"})),
        split_calls(("d", "bash", {"command": "python3 greet.py"})),
        chat_answer("It greets now."),
    ]
    with LocalServer(answers) as server:
        use(crystaler, server)
        result = crystaler.run("mend the greeting", "-p", "here", "--approval", "full")
    assert result.exit_code == 0, result.stderr
    assert (crystaler.workspace / "greet.py").read_text() == "print('hello')\n"
    assert [call.name for call in result.calls] == ["read", "read", "edit", "bash"]
    assert "hello" in result.calls[-1].output
    assert "".join(event.text for event in result.events if isinstance(event, TextStreamed)) == "It greets now."
    last = server.requests[-1].json["messages"]
    assert [message["role"] for message in last] == [
        *("system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool")
    ]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert len({request.connection for request in server.requests}) == 1


def test_a_session_made_over_the_wire_resumes_over_the_wire(crystaler: Crystaler) -> None:
    crystaler.makefile("a.txt", "hello\n")
    answers = [split_calls(("a", "read", {"path": "a.txt"})), chat_answer("Read."), chat_answer("Still here.")]
    with LocalServer(answers) as server:
        use(crystaler, server)
        first = crystaler.run("read it", "-p", "here")
        second = crystaler.run("are you there?", "-p", "here", "-r", first.session_id, "--format", "final")
    assert second.exit_code == 0
    assert second.stdout == "Still here.\n"
    roles = [message["role"] for message in server.requests[-1].json["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_the_key_is_never_shown_or_stored(crystaler: Crystaler) -> None:
    crystaler.makefile("leak.txt", f"the key is {KEY}\n")
    answers = [split_calls(("a", "read", {"path": "leak.txt"})), chat_answer(f"It holds {KEY}.")]
    with LocalServer(answers) as server:
        use(crystaler, server)
        result = crystaler.run(f"look for {KEY}", "-p", "here", "--format", "json")
    assert result.exit_code == 0
    assert KEY not in result.stdout + result.stderr + repr(result.events)
    assert all(KEY.encode() not in request.body for request in server.requests)
    for path in crystaler.home.rglob("*"):
        if path.is_file() and path.name != "providers.json":
            assert KEY.encode() not in path.read_bytes(), path.name


def test_images_reach_a_model_that_takes_them(crystaler: Crystaler) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
    crystaler.makefile("dot.png", picture)
    answers = [split_calls(("a", "read", {"path": "dot.png"})), chat_answer("A dot.")]
    with LocalServer(answers) as server:
        use(crystaler, server, imageInput=True)
        result = crystaler.run("what is it?", "-p", "here", "--image", str(crystaler.workspace / "dot.png"))
    assert result.exit_code == 0, result.stderr
    first, second = (json.dumps(request.json["messages"]) for request in server.requests)
    assert first.count("data:image/png;base64,") == 1
    assert second.count("data:image/png;base64,") == 2


def test_a_text_only_model_is_told_of_images(crystaler: Crystaler) -> None:
    crystaler.makefile("dot.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 32)
    with LocalServer([chat_answer("I cannot see it.")]) as server:
        use(crystaler, server)
        result = crystaler.run("what is it?", "-p", "here", "--image", str(crystaler.workspace / "dot.png"))
    assert result.exit_code == 0, result.stderr
    body = json.dumps(server.requests[0].json["messages"])
    assert "data:image" not in body
    assert "dot.png, image/png, 40 bytes" in body
