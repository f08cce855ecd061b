"""The to-do list: replace, merge, and answers that show it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crystal.types._readonly import read_only
from crystal.types.capabilities import TODO_STATES, Todo
from crystal.types.tools import Catalog, Tool, ToolCall, ToolOutput
from plugins_builtin import todos
from tests.plugins_builtin.test_shell import make_context


class KeptTodos:
    """A to-do list in memory instead of the store."""

    def __init__(self, *entries: Todo) -> None:
        self.entries = tuple(entries)

    def read(self) -> tuple[Todo, ...]:
        return self.entries

    def replace(self, todos: Sequence[Todo]) -> None:
        self.entries = tuple(todos)


def item(id: str, content: str = "do it", status: str = "pending") -> dict[str, str]:  # noqa: A002
    return {"id": id, "content": content, "status": status}


def call(kept: KeptTodos, tool: Tool, **arguments: Any) -> ToolOutput:
    context = dataclasses.replace(make_context(Path("/")), todos=kept)
    made = ToolCall(id="1", name=tool.definition.name, arguments=read_only(arguments))
    return asyncio.run(tool.invoke(made, context))


def write(kept: KeptTodos, *items: dict[str, str], **arguments: Any) -> ToolOutput:
    return call(kept, todos.TodoWriteTool(), todos=list(items), **arguments)


def test_a_write_replaces_the_list_in_the_given_order_and_answers_it() -> None:
    kept = KeptTodos(Todo(id="old", content="gone", status="pending"))
    output = write(
        kept,
        item("b", "first", "completed"),
        item("a", "second", "in_progress"),
        item("c", "third"),
        item("d", "fourth", "cancelled"),
    )
    assert output == ToolOutput(text="[x] b: first\n[>] a: second\n[ ] c: third\n[-] d: fourth")
    assert kept.entries == (
        Todo(id="b", content="first", status="completed"),
        Todo(id="a", content="second", status="in_progress"),
        Todo(id="c", content="third", status="pending"),
        Todo(id="d", content="fourth", status="cancelled"),
    )
    assert call(kept, todos.TodoReadTool()) == output


def test_a_merge_changes_items_in_their_places_and_adds_new_ones_at_the_end() -> None:
    kept = KeptTodos()
    write(kept, item("a", "one"), item("b", "two"))
    output = write(kept, item("c", "three"), item("a", "one", "completed"), merge=True)
    assert output == ToolOutput(text="[x] a: one\n[ ] b: two\n[ ] c: three")
    assert [todo.id for todo in kept.entries] == ["a", "b", "c"]


def test_an_empty_write_clears_the_list_and_an_empty_merge_keeps_it() -> None:
    kept = KeptTodos(Todo(id="a", content="one", status="pending"))
    assert write(kept, merge=True).text == "[ ] a: one"
    assert write(kept).text == "The to-do list is empty."
    assert kept.entries == ()
    assert call(kept, todos.TodoReadTool()).text == "The to-do list is empty."


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([item("a", status="done")], "the status 'done'; use one of pending, in_progress, completed, cancelled"),
        ([item("a"), item("a")], "the id 'a' comes twice"),
        ([item("a"), item(" a ")], "the id 'a' comes twice"),
        ([item("a", " \n")], "'a' has no content"),
        ([item(" ")], "item 1 has a blank id"),
    ],
)
@pytest.mark.parametrize("merge", [False, True])
def test_a_bad_item_is_a_failed_answer_and_leaves_the_list_alone(
    items: list[dict[str, str]], said: str, merge: bool
) -> None:
    before = Todo(id="old", content="stays", status="pending")
    kept = KeptTodos(before)
    output = write(kept, item("fine"), *items, merge=merge)
    assert output.failed
    assert said.replace("item 1", "item 2") in output.text
    assert kept.entries == (before,)


def test_a_content_of_several_lines_stays_one_line_of_the_answer() -> None:
    assert write(KeptTodos(), item("a", "one\n\n[x] b: two")).text == "[ ] a: one [x] b: two"


def test_both_tools_are_in_both_catalogs_and_say_little() -> None:
    contributions = todos.contribute_tools()
    assert [(each.name, each.catalogs, each.capabilities) for each in contributions] == [
        ("todowrite", Catalog.BOTH, frozenset({"todos"})),
        ("todoread", Catalog.BOTH, frozenset({"todos"})),
    ]
    definitions = [each.tool.definition for each in contributions]
    assert [each.name for each in definitions] == ["todowrite", "todoread"]
    assert sum(len(each.description) + len(json.dumps(each.schema)) for each in definitions) < 700
    statuses = definitions[0].schema["properties"]["todos"]["items"]["properties"]["status"]["enum"]
    assert tuple(statuses) == TODO_STATES
