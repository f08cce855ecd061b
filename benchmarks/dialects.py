"""The two wire formats that the stand-in model server speaks: Chat Completions and Responses.

A dialect turns a request body into an :class:`Inquiry` and an answer into events. It decides nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

OUTPUT_TOKENS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """What the server wants to know of a request.

    :param tools: the JSON schema of each offered tool's arguments, by tool name.
    :param results: how many tool results the transcript holds.
    :param latest: the text of the last tool result.
    """

    model: str
    tools: Mapping[str, Mapping[str, Any]]
    results: int
    latest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One model answer: a tool call when `tool` is named, else the final text."""

    number: int
    model: str
    input_tokens: int
    text: str = ""
    tool: str = ""
    arguments: str = ""

    def argument_pieces(self, size: int = 8) -> Iterator[str]:
        """Cut the arguments' JSON text as a model that streams it would."""
        for start in range(0, len(self.arguments), size):
            yield self.arguments[start : start + size]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One wire format; `write` yields pairs of an event name (may be empty) and its data line."""

    read: Callable[[dict[str, Any]], Inquiry]
    write: Callable[[Answer], Iterator[tuple[str, str]]]


def _plain_text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def read_chat(body: dict[str, Any]) -> Inquiry:
    functions = [tool["function"] for tool in body.get("tools") or []]
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return Inquiry(
        model=body["model"],
        tools={function["name"]: function.get("parameters") or {} for function in functions},
        results=len(results),
        latest=_plain_text(results[-1]) if results else "",
    )


def write_chat(answer: Answer) -> Iterator[tuple[str, str]]:
    def chunk(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> tuple[str, str]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", json.dumps(
            {
                "id": f"chatcmpl-{answer.number}",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": answer.model,
                "choices": [choice],
                **fields,
            }
        )

    def call_delta(**fields: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, **fields}]}

    yield chunk({"role": "assistant", "content": None if answer.tool else ""})
    if answer.tool:
        function = {"name": answer.tool, "arguments": ""}
        yield chunk(call_delta(id=f"call_{answer.number}", type="function", function=function))
        for piece in answer.argument_pieces():
            yield chunk(call_delta(function={"arguments": piece}))
    else:
        yield chunk({"content": answer.text})
    usage = {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": answer.input_tokens + OUTPUT_TOKENS,
    }
    yield chunk({}, "tool_calls" if answer.tool else "stop", usage=usage)
    yield "", "[DONE]"


def read_responses(body: dict[str, Any]) -> Inquiry:
    functions = [tool for tool in body.get("tools") or [] if tool["type"] == "function"]
    items = body["input"] if isinstance(body["input"], list) else []
    results = [item["output"] for item in items if item.get("type") == "function_call_output"]
    return Inquiry(
        model=body["model"],
        tools={function["name"]: function.get("parameters") or {} for function in functions},
        results=len(results),
        latest=_plain_text(results[-1]) if results else "",
    )


def write_responses(answer: Answer) -> Iterator[tuple[str, str]]:
    sequence = iter(range(1_000))

    def event(name: str, **fields: Any) -> tuple[str, str]:
        return name, json.dumps({"type": name, "sequence_number": next(sequence), **fields})

    def response(status: str, **fields: Any) -> dict[str, Any]:
        return {
            "id": f"resp_{answer.number}",
            "object": "response",
            "created_at": 0,
            "model": answer.model,
            "status": status,
            "output": [],
            "usage": None,
            **fields,
        }

    yield event("response.created", response=response("in_progress"))
    if answer.tool:
        item: dict[str, Any] = {
            "id": f"item_{answer.number}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{answer.number}",
            "name": answer.tool,
            "arguments": answer.arguments,
        }
        place = {"output_index": 0, "item_id": item["id"]}
        opened = {**item, "status": "in_progress", "arguments": ""}
        yield event("response.output_item.added", output_index=0, item=opened)
        for piece in answer.argument_pieces():
            yield event("response.function_call_arguments.delta", delta=piece, **place)
        yield event("response.function_call_arguments.done", arguments=answer.arguments, **place)
    else:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        item = {
            "id": f"item_{answer.number}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
        place = {"output_index": 0, "item_id": item["id"], "content_index": 0}
        opened = {**item, "status": "in_progress", "content": []}
        yield event("response.output_item.added", output_index=0, item=opened)
        yield event("response.content_part.added", part={**part, "text": ""}, **place)
        yield event("response.output_text.delta", delta=answer.text, **place)
        yield event("response.output_text.done", text=answer.text, **place)
        yield event("response.content_part.done", part=part, **place)
    yield event("response.output_item.done", output_index=0, item=item)
    usage = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + OUTPUT_TOKENS,
    }
    yield event("response.completed", response=response("completed", output=[item], usage=usage))


DIALECTS: Mapping[str, Dialect] = {
    "/chat/completions": Dialect(read=read_chat, write=write_chat),
    "/responses": Dialect(read=read_responses, write=write_responses),
}
