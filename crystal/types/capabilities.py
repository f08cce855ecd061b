"""What built-in tools get beyond :class:`ToolContext`: four capabilities, declared on the contribution.

They are the only private door of the host; docs/decisions.md lists them with the reason for each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from crystal.types._frozen import Frozen
from crystal.types.tools import ToolContext

TODO_STATES = ("pending", "in_progress", "completed", "cancelled")


class QuestionOption(Frozen):
    """One choice of a question."""

    label: str
    description: str = ""


class Question(Frozen):
    """One question to the operator.

    :param custom: whether a text of the operator's own is accepted besides the options.
    """

    header: str
    text: str
    options: tuple[QuestionOption, ...] = ()
    multiple: bool = False
    custom: bool = True


class Todo(Frozen):
    """One entry of the session's to-do list; ``status`` is one of :data:`TODO_STATES`."""

    id: str
    content: str
    status: str


class TodoList(Protocol):
    """The session's to-do list; kept in the store."""

    def read(self) -> tuple[Todo, ...]:
        """Return the entries in order."""

    def replace(self, todos: Sequence[Todo]) -> None:
        """Store a new list."""


class FileStamp(Frozen):
    """What a file was when the session last saw it; two equal stamps mean an unchanged file."""

    size: int
    modified_ns: int
    digest: str


class FileStates(Protocol):
    """What this session has read, and the before-images of what it changed."""

    def seen(self, path: str) -> FileStamp | None:
        """Return the stamp of ``path`` (a real path) when this session last read or wrote it."""

    def remember(self, path: str, stamp: FileStamp) -> None:
        """Note that the session has seen this state of ``path``."""

    def keep_before_image(self, path: str, content: bytes | None, call_id: str) -> None:
        """Store what ``path`` held before a change; ``None`` for a file that did not exist."""


class BuiltinContext(ToolContext):
    """The context of a first-party tool that declared capabilities; an undeclared one is ``None``.

    :param ask: puts questions to the operator and returns, for each, the labels chosen; ``None`` when dismissed.
    :param registry: name of every registered tool to the name of its plugin.
    """

    ask: Callable[[Sequence[Question]], Awaitable[Sequence[tuple[str, ...]] | None]] | None = None
    todos: TodoList | None = None
    file_state: FileStates | None = None
    registry: Mapping[str, str] | None = None
