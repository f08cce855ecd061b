"""Read-only JSON containers: what a hook or a tool receives as arguments.

They are real ``dict`` and ``list`` objects, so that ``json``, ``jsonschema`` and pattern matching treat them as JSON,
but every mutating method raises. A copy (``dict(value)``, ``copy.deepcopy``) is an ordinary mutable container.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


class ReadOnlyError(TypeError):
    """Raised when code tries to change the arguments that the host handed out."""


def _refuse(self: object, *_: Any, **__: Any) -> NoReturn:
    raise ReadOnlyError("this value is read-only; change a copy of it and return the copy")


class ReadOnlyDict(dict[str, Any]):
    """A JSON object that cannot be changed by accident."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: thaw(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return read_only, (thaw(self),)


class ReadOnlyList(list[Any]):
    """A JSON array that cannot be changed by accident."""

    __slots__ = ()
    __setitem__ = __delitem__ = append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(len(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [thaw(value) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return read_only, (thaw(self),)


EMPTY = ReadOnlyDict()


def read_only(value: Any) -> Any:
    """Return ``value`` with every mapping and list in it made read-only; other values are returned as they are."""
    if isinstance(value, (ReadOnlyDict, ReadOnlyList)):
        return value
    if isinstance(value, Mapping):
        return ReadOnlyDict({key: read_only(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return ReadOnlyList([read_only(item) for item in value])
    return value


def thaw(value: Any) -> Any:
    """Return a mutable deep copy of a read-only JSON value."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value
