"""``todowrite`` and ``todoread``: the rules of the session's to-do list, which the host keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from crystal import hookimpl
from crystal.types.capabilities import TODO_STATES, BuiltinContext, Todo, TodoList
from crystal.types.tools import Catalog, ToolCall, ToolContext, ToolContribution, ToolDefinition, ToolOutput

name = "todos"

WRITE = ToolDefinition(
    name="todowrite",
    description="Replace your to-do list, or with merge change and add single items by id. Answers the list.",
    schema={
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "content": {"type": "string"},
                        "status": {"enum": list(TODO_STATES)},
                    },
                    "required": ["id", "content", "status"],
                    "additionalProperties": False,
                },
            },
            "merge": {"type": "boolean"},
        },
        "required": ["todos"],
        "additionalProperties": False,
    },
)

READ = ToolDefinition(
    name="todoread",
    description="Show your to-do list.",
    schema={"type": "object", "properties": {}, "additionalProperties": False},
)

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


class TodosRefused(ValueError):
    """Raised for items that make no to-do list; the message names the item and the mend."""


class TodoWriteTool:
    """Replaces the list or merges items into it."""

    definition = WRITE

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Store the list and answer it as text."""
        todos = _capability(context)
        try:
            items = parse_todos(call.arguments["todos"])
        except TodosRefused as error:
            return ToolOutput(text=str(error), failed=True)
        if call.arguments.get("merge", False):
            items = merge_todos(todos.read(), items)
        todos.replace(items)
        return ToolOutput(text=render_todos(items))


class TodoReadTool:
    """Shows the list."""

    definition = READ

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Answer the list as text."""
        return ToolOutput(text=render_todos(_capability(context).read()))


def parse_todos(items: Sequence[Mapping[str, Any]]) -> tuple[Todo, ...]:
    """Return the items as values.

    :raises TodosRefused: a blank id or content, an unknown status, or an id that comes twice.
    """
    todos: dict[str, Todo] = {}
    for number, item in enumerate(items, 1):
        todo = Todo(id=str(item["id"]).strip(), content=str(item["content"]).strip(), status=str(item["status"]))
        if not todo.id:
            raise TodosRefused(f"todowrite: item {number} has a blank id; give it one, such as {str(number)!r}.")
        if not todo.content:
            raise TodosRefused(f"todowrite: item {todo.id!r} has no content; say what is to be done.")
        if todo.status not in TODO_STATES:
            raise TodosRefused(
                f"todowrite: item {todo.id!r} has the status {todo.status!r}; use one of {', '.join(TODO_STATES)}."
            )
        if todo.id in todos:
            raise TodosRefused(f"todowrite: the id {todo.id!r} comes twice; give every item an id of its own.")
        todos[todo.id] = todo
    return tuple(todos.values())


def merge_todos(known: Sequence[Todo], changes: Sequence[Todo]) -> tuple[Todo, ...]:
    """Return ``known`` with items of the same id replaced in their places and new ones at the end."""
    merged = {todo.id: todo for todo in known}
    merged.update((todo.id, todo) for todo in changes)
    return tuple(merged.values())


def render_todos(todos: Sequence[Todo]) -> str:
    """Return the list as text, one item a line."""
    if not todos:
        return "The to-do list is empty."
    return "\n".join(f"{_MARKS[todo.status]} {todo.id}: {' '.join(todo.content.split())}" for todo in todos)


def _capability(context: ToolContext) -> TodoList:
    todos = cast(BuiltinContext, context).todos
    if todos is None:
        raise TypeError("the host gave a to-do tool no to-do list; its contribution declares the capability 'todos'")
    return todos


@hookimpl
def contribute_tools() -> list[ToolContribution]:
    """Bring ``todowrite`` and ``todoread``."""
    capabilities = frozenset({"todos"})
    return [
        # Two writes of one batch must not overtake each other, for each answers the whole list.
        ToolContribution(
            name="todowrite",
            tool=TodoWriteTool(),
            catalogs=Catalog.BOTH,
            capabilities=capabilities,
            parallel=False,
        ),
        ToolContribution(name="todoread", tool=TodoReadTool(), catalogs=Catalog.BOTH, capabilities=capabilities),
    ]
