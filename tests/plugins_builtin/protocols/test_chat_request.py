"""The body of a request: which fields it has, and that a used encoder and a new one agree (G55)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.types._readonly import read_only
from crystal.types.items import ImageRef, ModelItem
from crystal.types.model import ModelRequest, ModelSettings, Purpose
from crystal.types.tools import ToolDefinition
from plugins_builtin.protocols.chat_parameters import ParameterChanges
from plugins_builtin.protocols.chat_request import RequestDialect, RequestEncoder
from tests.plugins_builtin.protocols.transcripts import ITEMS, PNG, load_image, says, system, user

MODEL = ModelSettings(name="m", context_window=8000)
COMPATIBLE = RequestDialect(limit_field="max_tokens", state_tag="tag", accepts_images=True)
OPENAI = RequestDialect(limit_field="max_completion_tokens", state_tag="tag", is_openai=True)
READ = ToolDefinition(
    name="read",
    description="Reads a file.",
    schema=read_only({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
)


def asked(*items: ModelItem, **fields: Any) -> ModelRequest:
    return ModelRequest(purpose=fields.pop("purpose", Purpose.WORK), items=items, **fields)


def encode(encoder: RequestEncoder, request: ModelRequest) -> bytes:
    return encoder.encode(request, load_image, ParameterChanges())


def body(request: ModelRequest, model: ModelSettings = MODEL, dialect: RequestDialect = COMPATIBLE) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(encode(RequestEncoder(model, dialect), request))
    return decoded


def test_a_plain_request_holds_what_is_needed_and_nothing_else() -> None:
    assert body(asked(system(), user("hi"))) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


def test_openai_gets_the_fields_that_only_it_takes() -> None:
    got = body(asked(user("hi"), session_id="s1"), dialect=OPENAI)
    assert got["prompt_cache_key"] == "s1"
    assert got["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert "prompt_cache_key" not in body(asked(user("hi"), session_id="s1"))
    assert "prompt_cache_key" not in body(asked(user("hi")), dialect=OPENAI)


@pytest.mark.parametrize(
    ("dialect", "name", "other"),
    [(COMPATIBLE, "max_tokens", "max_completion_tokens"), (OPENAI, "max_completion_tokens", "max_tokens")],
)
def test_the_output_limit_has_one_name_and_is_left_out_when_not_set(
    dialect: RequestDialect, name: str, other: str
) -> None:
    got = body(asked(user("hi")), dataclasses.replace(MODEL, max_tokens=99), dialect)
    assert got[name] == 99
    assert other not in got
    assert name not in body(asked(user("hi")), MODEL, dialect)


def test_sampling_is_sent_only_when_it_is_configured() -> None:
    got = body(asked(user("hi")), dataclasses.replace(MODEL, temperature=0.0, top_p=0.5))
    assert (got["temperature"], got["top_p"]) == (0.0, 0.5)


@pytest.mark.parametrize(
    ("thinking", "effort"),
    [("", None), ("default", None), ("off", "none"), ("low", "low"), ("maximum", "max"), ("xhigh", "xhigh")],
)
def test_thinking_is_sent_in_the_words_of_the_wire(thinking: str, effort: str | None) -> None:
    assert body(asked(user("hi")), dataclasses.replace(MODEL, thinking=thinking)).get("reasoning_effort") == effort


def test_tools_are_functions_with_object_schemas() -> None:
    bare = ToolDefinition(name="now", description=" ", schema=read_only({}))
    assert body(asked(user("hi"), tools=(READ, bare)))["tools"] == [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads a file.", "parameters": READ.schema},
        },
        {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
    ]
    assert "tools" not in body(asked(user("hi")))


def test_no_messages_are_still_valid_json() -> None:
    assert body(asked())["messages"] == []
    assert len(body(asked(system()))["messages"]) == 1
    assert body(asked(user(" ")))["messages"] == []


def test_images_need_a_model_and_a_request_that_take_them() -> None:
    for model_sees in (True, False):
        for request_sees in (True, False):
            dialect = dataclasses.replace(COMPATIBLE, accepts_images=model_sees)
            [message] = body(asked(user("look", PNG), accepts_images=request_sees), dialect=dialect)["messages"]
            assert isinstance(message["content"], list) is (model_sees and request_sees)


def test_changed_tools_and_system_texts_are_noticed() -> None:
    encoder = RequestEncoder(MODEL, COMPATIBLE)
    first = json.loads(encode(encoder, asked(system("a"), user("hi"), tools=(READ,))))
    other = dataclasses.replace(READ, name="view")
    second = json.loads(encode(encoder, asked(system("b"), user("hi"), tools=(other,))))
    assert [tool["function"]["name"] for tool in first["tools"] + second["tools"]] == ["read", "view"]
    assert [message["content"] for message in first["messages"] + second["messages"]] == [
        "a",
        "hi",
        "b",
        "hi",
    ]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(Purpose)),
            st.booleans(),
            st.booleans(),
            st.lists(ITEMS, max_size=4),
            st.integers(0, 9),
        ),
        max_size=8,
    )
)
def test_a_used_encoder_sends_the_bytes_of_a_new_one(steps: list[Any]) -> None:
    encoder = RequestEncoder(MODEL, COMPATIBLE)
    items: list[ModelItem] = []
    for purpose, sees, has_tools, fresh, kept in steps:
        items = [*(items if kept > 3 else items[:kept]), *fresh]
        request = asked(*items, purpose=purpose, accepts_images=sees, tools=(READ,) if has_tools else ())
        assert encode(encoder, request) == encode(RequestEncoder(MODEL, COMPATIBLE), request)


def test_a_side_request_leaves_the_conversation_known() -> None:
    """The images of a known conversation are not loaded again after a title or a review was asked for."""
    loads: list[ImageRef] = []
    encoder = RequestEncoder(MODEL, COMPATIBLE)
    items: list[ModelItem] = [user("look", PNG), says("yes"), user("more")]

    def load(image: ImageRef) -> bytes:
        loads.append(image)
        return b"x"

    def send(*asked_items: ModelItem, purpose: Purpose = Purpose.WORK) -> None:
        request = asked(*asked_items, purpose=purpose, accepts_images=True)
        encoder.encode(request, load, ParameterChanges())

    send(*items)
    first = len(loads)
    for purpose in (Purpose.TOPIC, Purpose.REVIEW, Purpose.COMPACTION, Purpose.PLUGIN):
        send(user("title?"), purpose=purpose)
    send(*items, says("well"))
    assert len(loads) == first
