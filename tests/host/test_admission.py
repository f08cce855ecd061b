"""Admission: each contributed entry is held to its rule on its own, and one bad entry never takes another with it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.admission import admit_classifiers, admit_factories, admit_tools, schema_fault
from crystal.host.dispatch import Collected
from crystal.host.reserved import BUILTIN_PROTOCOLS, RESERVED_TOOLS
from crystal.types._readonly import ReadOnlyError
from crystal.types.approval import Authority
from crystal.types.notes import NoteCode
from crystal.types.tools import Catalog, ToolCall, ToolContribution, ToolDefinition, ToolOutput
from tests.host.hosts import SECRET

OUTSIDER = "plugin:home/Acme"
BUILTIN = "builtin:files"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class PlainTool:
    """A tool of a definition."""

    def __init__(self, definition: Any) -> None:
        self.definition = definition

    async def invoke(self, call: ToolCall, context: Any) -> ToolOutput:
        return ToolOutput(text="done")


def tool(
    name: Any = "acme", *, defined_as: Any = None, schema: Any = SCHEMA, description: Any = "d", **fields: Any
) -> Any:
    """A contribution, right unless told otherwise."""
    definition = ToolDefinition(name=name if defined_as is None else defined_as, description=description, schema=schema)
    return ToolContribution(name=name, tool=PlainTool(definition), **fields)


def collected(*entries: Any, plugin: str = OUTSIDER) -> tuple[Collected, ...]:
    """The entries as the host gathers them."""
    return tuple(Collected(plugin=plugin, entry=entry) for entry in entries)


def codes(notes: Any) -> list[NoteCode]:
    """The codes of the notes."""
    return [note.code for note in notes]


def test_a_right_tool_is_admitted_with_its_origin() -> None:
    admitted, notes = admit_tools(collected(tool("acme")))
    assert list(admitted) == ["acme"]
    assert (admitted["acme"].plugin, admitted["acme"].is_builtin) == (OUTSIDER, False)
    assert notes == ()


@pytest.mark.parametrize("name", ["a", "A", "a1", "a-b", "a_b", "Tool-9_x", "a" * 64, "Read2"])
def test_a_name_of_letters_digits_and_dashes_is_admitted(name: str) -> None:
    assert list(admit_tools(collected(tool(name)))[0]) == [name]


@pytest.mark.parametrize(
    "name",
    ["", "1a", "-a", "_a", "a b", "a.b", "a/b", "a\n", "ä", "a" * 65, "tool!", " a", "ａ", None, 7, b"a", ["a"]],
)
def test_any_other_name_is_omitted_with_a_note(name: Any) -> None:
    admitted, notes = admit_tools(collected(tool(name)))
    assert admitted == {}
    assert codes(notes) == [NoteCode.TOOL_NAME]
    assert notes[0].source == OUTSIDER


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="aZ09_-. /é\n", max_size=66) | st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,70}", fullmatch=True))
def test_a_name_is_admitted_exactly_when_it_is_a_letter_and_then_up_to_63_word_characters(name: str) -> None:
    word = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    right = 1 <= len(name) <= 64 and name[0].isascii() and name[0].isalpha() and set(name) <= word
    admitted, _ = admit_tools(collected(tool(name)))
    assert (name in admitted) is (right and name not in RESERVED_TOOLS)


@pytest.mark.parametrize(
    "name",
    [
        *("read", "list", "tree", "glob", "grep", "search", "todowrite", "todoread", "question", "edit", "write"),
        *("bash", "skill", "tool_search", "tool_call"),
    ],
)
def test_a_reserved_name_is_a_built_ins_alone_even_when_nothing_has_it(name: str) -> None:
    admitted, notes = admit_tools(collected(tool(name)))
    assert admitted == {}
    assert codes(notes) == [NoteCode.TOOL_RESERVED]
    assert list(admit_tools(collected(tool(name), plugin=BUILTIN))[0]) == [name]


def test_the_first_tool_of_a_name_is_kept_and_the_note_names_who_has_it() -> None:
    first, second = tool("acme", description="first"), tool("acme", description="second")
    admitted, notes = admit_tools(collected(first) + collected(second, plugin="plugin:home/Beta"))
    assert admitted["acme"].definition.description == "first"
    assert codes(notes) == [NoteCode.TOOL_DUPLICATE]
    assert notes[0].source == "plugin:home/Beta"
    assert OUTSIDER in notes[0].text


def test_a_disabled_built_in_is_left_out_and_its_name_stays_reserved() -> None:
    entries = collected(tool("bash"), tool("read"), plugin=BUILTIN) + collected(tool("bash"))
    admitted, notes = admit_tools(entries, frozenset({"bash"}))
    assert list(admitted) == ["read"]
    assert codes(notes) == [NoteCode.TOOL_RESERVED]


def test_a_tool_must_be_defined_under_the_name_it_is_contributed_as() -> None:
    admitted, notes = admit_tools(collected(tool("acme", defined_as="other")))
    assert (admitted, codes(notes)) == ({}, [NoteCode.TOOL_NAME])
    assert "acme" in notes[0].text
    assert "other" in notes[0].text


@pytest.mark.parametrize("catalogs", [Catalog.PLAN, Catalog.WORK, Catalog.BOTH])
def test_one_catalog_or_both_are_right(catalogs: Catalog) -> None:
    assert list(admit_tools(collected(tool(catalogs=catalogs)))[0]) == ["acme"]


@pytest.mark.parametrize("catalogs", [Catalog(0), None, 1, "work", (Catalog.WORK,)])
def test_a_tool_of_no_catalog_is_omitted(catalogs: Any) -> None:
    admitted, notes = admit_tools(collected(tool(catalogs=catalogs)))
    assert (admitted, codes(notes)) == ({}, [NoteCode.TOOL_CATALOG])


RIGHT_SCHEMAS: tuple[Any, ...] = (
    {"type": "object"},
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
    {"type": "object", "properties": {"a": True, "b": {}, "c": {"enum": [1, 2]}}},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}, "required": ["a"]},
    {"type": "object", "additionalProperties": False, "required": ()},
)
WRONG_SCHEMAS: tuple[Any, ...] = (
    None,
    7,
    "object",
    [],
    {},
    {"type": "string"},
    {"type": ["object"]},
    {"properties": {}},
    {"type": "object", "properties": []},
    {"type": "object", "properties": {"a": "string"}},
    {"type": "object", "properties": {"a": None}},
    {"type": "object", "properties": {"a": {"type": "text"}}},
    {"type": "object", "properties": {"a": {"type": ["string", "nothing"]}}},
    {"type": "object", "required": "path"},
    {"type": "object", "required": [1]},
)


@pytest.mark.parametrize("schema", RIGHT_SCHEMAS)
def test_an_object_schema_of_known_types_is_admitted(schema: Any) -> None:
    assert schema_fault(schema) is None
    assert list(admit_tools(collected(tool(schema=schema)))[0]) == ["acme"]


@pytest.mark.parametrize("schema", WRONG_SCHEMAS)
def test_a_schema_of_another_shape_is_omitted_with_a_note_that_says_what_is_wrong(schema: Any) -> None:
    fault = schema_fault(schema)
    admitted, notes = admit_tools(collected(tool(schema=schema)))
    assert fault
    assert (admitted, codes(notes)) == ({}, [NoteCode.TOOL_SCHEMA])
    assert fault in notes[0].text


@pytest.mark.parametrize("kinds", [7, [["string"]], [{}], {"string": 1, "nothing": 2}])
def test_a_schema_whose_types_are_not_even_words_is_omitted(kinds: Any) -> None:
    admitted, notes = admit_tools(collected(tool(schema={"type": "object", "properties": {"a": {"type": kinds}}})))
    assert admitted == {}
    assert len(notes) == 1


def test_capabilities_are_for_built_in_tools() -> None:
    entry = tool("acme", capabilities=frozenset({"ask"}))
    admitted, notes = admit_tools(collected(entry))
    assert (admitted, codes(notes)) == ({}, [NoteCode.CONTRIBUTION_INVALID])
    assert list(admit_tools(collected(entry, plugin=BUILTIN))[0]) == ["acme"]


@pytest.mark.parametrize(
    "fields",
    [
        {"path_arguments": "path"},
        {"path_arguments": ["path"]},
        {"path_arguments": (1,)},
        {"path_arguments": None},
        {"default_paths": None},
        {"default_paths": [("path", ".")]},
        {"risk": "read"},
        {"risk": 0},
        {"authority": None},
        {"authority": Authority(0)},
        {"authority": 1},
        {"pre_classifier": "careful"},
        {"capabilities": None},
        {"capabilities": "ask"},
        {"parallel": 1},
        {"description": None},
    ],
    ids=str,
)
def test_a_field_that_is_not_what_the_host_relies_on_is_omitted(fields: dict[str, Any]) -> None:
    admitted, notes = admit_tools(collected(tool(**fields)))
    assert (admitted, codes(notes)) == ({}, [NoteCode.CONTRIBUTION_INVALID])


def test_a_tool_that_cannot_be_invoked_is_omitted() -> None:
    class OnlyDefined:
        definition = ToolDefinition(name="acme", description="d", schema=SCHEMA)

    admitted, notes = admit_tools(collected(ToolContribution(name="acme", tool=OnlyDefined())))  # type: ignore[arg-type]
    assert (admitted, codes(notes)) == ({}, [NoteCode.CONTRIBUTION_INVALID])
    assert "invoke" in notes[0].text


def test_what_the_model_is_told_cannot_be_changed_afterwards() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "enum": ["a"]}}}
    entry = tool(schema=schema)
    admitted, _ = admit_tools(collected(entry))
    schema["properties"]["path"]["enum"].append("b")  # type: ignore[index]
    entry.tool.definition = ToolDefinition(name="acme", description="another", schema={"type": "object"})
    told = admitted["acme"].definition
    assert told.description == "d"
    assert told.schema == {"type": "object", "properties": {"path": {"type": "string", "enum": ["a"]}}}
    with pytest.raises(ReadOnlyError):
        told.schema["properties"]["path"]["enum"].append("c")


class DefinitionRaises:
    """A tool whose definition cannot be read."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    @property
    def definition(self) -> ToolDefinition:
        raise self._error


BAD_ENTRIES: tuple[Any, ...] = (
    None,
    7,
    "acme",
    {"name": "acme"},
    PlainTool(None),
    ToolContribution,
    tool("acme", schema=None),
    tool(""),
    tool("bash"),
    ToolContribution(name="acme", tool=None),  # type: ignore[arg-type]
    ToolContribution(name="acme", tool=PlainTool({"name": "acme"})),
    ToolContribution(name="acme", tool=DefinitionRaises(ValueError(SECRET))),  # type: ignore[arg-type]
    ToolContribution(name="acme", tool=DefinitionRaises(SystemExit(SECRET))),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("bad", BAD_ENTRIES, ids=range(len(BAD_ENTRIES)))
def test_one_bad_tool_never_takes_the_others_with_it(bad: Any, position: int) -> None:
    entries = [tool("one"), tool("two")]
    entries.insert(position, bad)
    admitted, notes = admit_tools(collected(*entries))
    assert list(admitted) == ["one", "two"]
    (note,) = notes
    assert note.source == OUTSIDER
    assert OUTSIDER in note.text
    assert SECRET not in note.text


def test_the_interrupt_of_the_operator_passes_admission() -> None:
    entry = ToolContribution(name="acme", tool=DefinitionRaises(KeyboardInterrupt()))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        admit_tools(collected(entry))


@dataclasses.dataclass
class Protocols:
    """A factory of model clients that claims these protocols."""

    protocols: Any

    def create(self, request: Any) -> None:
        """Never called here."""


@pytest.mark.parametrize("claimed", [("acme",), ("acme", "acme-2", "A_9"), ("a" * 64,)])
def test_a_factory_is_admitted_for_each_protocol_it_claims(claimed: tuple[str, ...]) -> None:
    factory = Protocols(claimed)
    admitted, notes = admit_factories(collected(factory))
    assert {name: found.factory for name, found in admitted.items()} == dict.fromkeys(claimed, factory)
    assert notes == ()


@pytest.mark.parametrize(
    "protocol", ["deepseek", "openai", "responses", "anthropic", "gemini", "ollama", "local", "scripted"]
)
def test_a_factory_that_claims_a_built_in_protocol_is_omitted_as_a_whole(protocol: str) -> None:
    admitted, notes = admit_factories(collected(Protocols(("acme", protocol)), Protocols(("beta",))))
    assert list(admitted) == ["beta"]
    assert codes(notes) == [NoteCode.PROTOCOL_RESERVED]
    assert list(admit_factories(collected(Protocols((protocol,)), plugin="builtin:x"))[0]) == [protocol]


def test_the_first_factory_of_a_protocol_is_kept() -> None:
    first, second = Protocols(("acme",)), Protocols(("beta", "acme"))
    admitted, notes = admit_factories(collected(first) + collected(second, plugin="plugin:home/Beta"))
    assert {name: found.factory for name, found in admitted.items()} == {"acme": first}
    assert codes(notes) == [NoteCode.PROTOCOL_DUPLICATE]
    assert OUTSIDER in notes[0].text


class WithoutCreate:
    """Claims a protocol and cannot serve it."""

    protocols = ("acme",)


class UnreadableProtocols:
    """Raises when it is looked at."""

    @property
    def protocols(self) -> tuple[str, ...]:
        raise RuntimeError(SECRET)

    def create(self, request: Any) -> None:
        """Never called here."""


@pytest.mark.parametrize(
    "factory",
    [
        None,
        7,
        "acme",
        WithoutCreate(),
        UnreadableProtocols(),
        Protocols("acme"),
        Protocols(["acme"]),
        Protocols(None),
        Protocols((7,)),
        Protocols(("",)),
        Protocols(("1a",)),
        Protocols(("a b",)),
        Protocols(("a" * 65,)),
    ],
    ids=range(13),
)
def test_a_factory_that_is_none_is_omitted_and_the_next_one_admitted(factory: Any) -> None:
    admitted, notes = admit_factories(collected(factory, Protocols(("beta",))))
    assert list(admitted) == ["beta"]
    assert codes(notes) == [NoteCode.CONTRIBUTION_INVALID]
    assert SECRET not in notes[0].text


def test_protocol_names_that_are_reserved_are_those_this_host_documents() -> None:
    documented = {"deepseek", "openai", "responses", "anthropic", "gemini", "ollama", "local", "scripted"}
    assert documented == BUILTIN_PROTOCOLS


class Classifying:
    """A classifier that knows nothing."""

    def classify(self, call: ToolCall, facts: Any) -> None:
        """Leave the call to the next one."""


def test_classifiers_are_admitted_in_order_and_what_cannot_classify_is_omitted() -> None:
    first, second = Classifying(), Classifying()
    admitted, notes = admit_classifiers(collected(first, None, "classify", object(), second))
    assert [found.classifier for found in admitted] == [first, second]
    assert codes(notes) == [NoteCode.CONTRIBUTION_INVALID] * 3
    assert {note.source for note in notes} == {OUTSIDER}


def test_an_omitted_entry_is_named_by_its_place_and_its_name() -> None:
    _, notes = admit_tools(collected(tool("right"), tool("read")))
    assert "omitted (number 2 of its list, named 'read'): it is named 'read', which is reserved" in notes[0].text


def test_a_function_without_its_mark_is_told_about_the_mark() -> None:
    def greet() -> str:
        return ""

    _, notes = admit_tools(collected(greet))
    assert "(number 1 of its list): it is the function 'greet' as it is; write @tool above it" in notes[0].text


@pytest.mark.parametrize("module", [__name__, "crystal.types.tools", None, 5])
def test_the_name_of_a_foreign_object_ends_nothing(module: Any) -> None:
    class Odd:
        __module__ = module

        @property
        def name(self) -> str:
            raise SystemExit

    _, notes = admit_tools(collected(Odd()))
    assert codes(notes) == [NoteCode.CONTRIBUTION_INVALID]


@pytest.mark.parametrize("admit", [admit_tools, admit_factories, admit_classifiers])
def test_an_entry_that_ends_the_process_when_it_is_looked_at_is_omitted(admit: Any) -> None:
    class Sly:
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(3)

    _, notes = admit(collected(Sly()))
    assert codes(notes) == [NoteCode.CONTRIBUTION_INVALID]


@pytest.mark.parametrize("kind", [5, None, [[]], [5], {"a": 1}, "text", ["string", "text"]])
def test_a_type_that_is_none_is_named(kind: Any) -> None:
    assert "the unknown type" in str(schema_fault({"type": "object", "properties": {"a": {"type": kind}}}))
