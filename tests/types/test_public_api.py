"""What authors import: ``crystal`` itself, and the types that hooks are given."""

from __future__ import annotations

import ast
import collections.abc
import enum
import importlib
import inspect
import pkgutil
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import crystal
from crystal.host.manager import read_specifications
from crystal.types._frozen import Frozen
from crystal.types.environment import ModelClients, ModelFacts, ReviewFacts, SessionModels, StatusUpdates

PLAIN = (str, int, float, bool, bytes, type(None), Path)
LIVE_VIEWS = (SessionModels, ModelClients, StatusUpdates)
"""What the attach hooks hand out: not values but views that stay live, with nothing to set on them."""


def declared_names() -> set[str]:
    """The names that type checkers see: those imported under ``TYPE_CHECKING``, and the version."""
    tree = ast.parse(Path(inspect.getfile(crystal)).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names} | {"__version__"}


@pytest.mark.parametrize("name", crystal.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(crystal, name) is not None


def test_all_is_the_namespace_and_what_type_checkers_see() -> None:
    assert dir(crystal) == sorted(crystal.__all__)
    assert len(set(crystal.__all__)) == len(crystal.__all__)
    assert declared_names() == set(crystal.__all__)
    namespace: dict[str, Any] = {}
    exec("from crystal import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(crystal.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'Crystal'"):
        crystal.Crystal  # noqa: B018
    with pytest.raises(ImportError):
        exec("from crystal import build_host")


def test_importing_crystal_imports_nothing_heavy() -> None:
    heavy = {"pluggy", "pydantic", "jsonschema", "rich", "click", "httpx", "sqlite3", "asyncio", "dataclasses"}
    program = "import sys; before = set(sys.modules); import crystal; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(inspect.getfile(crystal)).parents[1],
    )
    imported = set(done.stdout.split())
    assert "crystal" in imported
    assert imported & heavy == set()


def test_the_types_import_nothing_from_the_rest_of_crystal() -> None:
    package = importlib.import_module("crystal.types")
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"crystal.types.{found.name}")
        tree = ast.parse(inspect.getsource(module))
        imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        assert {
            name for name in imported if name.startswith("crystal") and not name.startswith("crystal.types")
        } == set()


def hook_argument_types() -> Iterator[tuple[str, str, Any]]:
    """Hook, argument and resolved type of every argument of every hook."""
    for name, found in read_specifications().items():
        hints = typing.get_type_hints(found.function)
        for argument in found.arguments:
            yield name, argument, hints[argument]


ARGUMENTS = tuple(hook_argument_types())
ARGUMENT_IDS = tuple(f"{hook}-{argument}" for hook, argument, _ in ARGUMENTS)


@pytest.mark.parametrize(("hook", "argument", "kind"), ARGUMENTS, ids=ARGUMENT_IDS)
def test_every_hook_argument_is_a_frozen_value_an_enum_a_plain_value_or_a_live_view(
    hook: str, argument: str, kind: Any
) -> None:
    assert isinstance(kind, type)
    assert issubclass(kind, (Frozen, enum.Enum)) or kind in PLAIN or kind in LIVE_VIEWS
    if kind in LIVE_VIEWS:
        assert hook.startswith("attach_")


def immutable_fault(kind: Any, seen: frozenset[Any] = frozenset()) -> str | None:
    """Say what inside a type could be changed in place; JSON is a ``Mapping``, which the host makes read-only."""
    if kind in seen or kind in PLAIN or kind is Any or kind is Ellipsis:
        return None
    origin = typing.get_origin(kind)
    if origin in (tuple, frozenset, typing.Union, types.UnionType, collections.abc.Mapping):
        faults = (immutable_fault(part, seen) for part in typing.get_args(kind))
        return next((fault for fault in faults if fault), None)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return None
    if isinstance(kind, type) and issubclass(kind, Frozen):
        hints = typing.get_type_hints(kind)
        for field in kind.__field_annotations__:
            if fault := immutable_fault(hints[field], seen | {kind}):
                return f"{kind.__name__}.{field}: {fault}"
        return None
    return None if kind.__name__ in ("ReadOnlyDict", "ReadOnlyList") else str(kind)


@pytest.mark.parametrize(("hook", "argument", "kind"), ARGUMENTS, ids=ARGUMENT_IDS)
def test_nothing_inside_a_hook_argument_is_of_a_mutable_type(hook: str, argument: str, kind: Any) -> None:
    assert kind in LIVE_VIEWS or immutable_fault(kind) is None


def test_the_live_view_of_the_models_reads_what_is_in_use_now_and_cannot_be_set() -> None:
    facts = ModelFacts(provider="p", protocol="openai", name="m", context_window=1000)
    current: list[ModelFacts | None] = [None]
    models = SessionModels(lambda: current[0])
    assert (models.session, models.review) == (None, ReviewFacts())
    current[0] = facts
    assert models.session is facts
    for name in ("session", "review", "other"):
        with pytest.raises(AttributeError):
            setattr(models, name, facts)
