"""The base of every value that crosses the plugin boundary: immutable, slotted, keyword-only, cheap to define.

A subclass declares annotated fields with immutable defaults and is used exactly like a frozen dataclass:
``dataclasses.replace``, ``fields``, ``asdict`` and ``is_dataclass`` work on it, and type checkers see one. It is not
built by ``dataclasses.dataclass`` because that takes several times as long a class at import
(``python -m benchmarks --only definitions`` prints both).
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, dataclass_transform

_MUTABLE = (list, dict, set, bytearray)


class FrozenValueError(AttributeError):
    """Raised when code tries to change a field of a frozen value; make a changed copy with ``dataclasses.replace``."""


class _LazyDataclassFields:
    """Answers ``__dataclass_fields__`` by building the descriptions on first use, so that defining a class is cheap."""

    def __get__(self, instance: object, owner: type[Any]) -> dict[str, Any]:
        import dataclasses

        plain = owner.__field_defaults__
        shadow = dataclasses.make_dataclass(
            owner.__name__,
            [
                (name, kind, dataclasses.field(default=plain.get(name, dataclasses.MISSING)))
                for name, kind in owner.__field_annotations__.items()
            ],
            kw_only=True,
        )
        described: dict[str, Any] = shadow.__dataclass_fields__  # type: ignore[attr-defined]
        type.__setattr__(owner, "__dataclass_fields__", described)
        return described


@dataclass_transform(eq_default=True, kw_only_default=True, frozen_default=True)
class FrozenMeta(type):
    """Turn annotated class bodies into slots and one generated ``__init__``."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> FrozenMeta:
        annotations = {
            field: kind
            for field, kind in namespace.get("__annotations__", {}).items()
            if not str(kind).startswith("ClassVar")
        }
        defaults = {field: namespace.pop(field) for field in annotations if field in namespace}
        for field, default in defaults.items():
            if type(default) in _MUTABLE:
                raise TypeError(f"{name}.{field}: a default of a frozen value must be immutable, not {default!r}")
        namespace["__slots__"] = tuple(annotations)
        every: dict[str, Any] = {}
        inherited: dict[str, Any] = {}
        for base in reversed(bases):
            every.update(getattr(base, "__field_annotations__", {}))
            inherited.update(getattr(base, "__field_defaults__", {}))
        every.update(annotations)
        inherited.update(defaults)
        namespace["__field_annotations__"] = every
        namespace["__field_defaults__"] = inherited
        namespace["__match_args__"] = tuple(every)
        cls = super().__new__(mcs, name, bases, namespace)
        if every:
            type.__setattr__(cls, "__init__", _first_init)
            type.__setattr__(cls, "__dataclass_fields__", _LazyDataclassFields())
        return cls


def _first_init(self: Any, /, **values: Any) -> None:
    """Stand in for ``__init__`` until the first instance is made: a run defines far more classes than it uses."""
    cls = type(self)
    init = _make_init(cls)
    type.__setattr__(cls, "__init__", init)
    init(self, **values)


def _make_init(cls: type[Any]) -> Any:
    """Generate ``__init__``; it writes through the slot descriptors, which the frozen ``__setattr__`` cannot stop."""
    defaults = cls.__field_defaults__
    scope: dict[str, Any] = {}
    parameters, body = [], []
    for name in cls.__field_annotations__:
        scope[f"_set_{name}"] = getattr(cls, name).__set__
        if name in defaults:
            scope[f"_default_{name}"] = defaults[name]
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        body.append(f"    _set_{name}(self, {name})")
    exec(f"def __init__(self, *, {', '.join(parameters)}):\n" + "\n".join(body), scope)
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


class Frozen(metaclass=FrozenMeta):
    """Base of frozen values; see the module's text."""

    __field_annotations__: ClassVar[dict[str, Any]]
    __field_defaults__: ClassVar[dict[str, Any]]

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenValueError(
            f"{type(self).__name__}.{name} cannot be changed; make a changed copy with dataclasses.replace()"
        )

    def __delattr__(self, name: str) -> None:
        raise FrozenValueError(f"{type(self).__name__}.{name} cannot be deleted")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__field_annotations__)
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__field_annotations__)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__field_annotations__)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {name: getattr(self, name) for name in self.__field_annotations__})

    if sys.version_info >= (3, 13):

        def __replace__(self, /, **changes: Any) -> Any:
            return type(self)(**{name: getattr(self, name) for name in self.__field_annotations__} | changes)


def _rebuild(cls: type[Any], values: dict[str, Any]) -> Any:
    return cls(**values)
