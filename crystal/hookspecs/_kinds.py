"""The four kinds of hook, and the decorators that mark a specification with its kind and its contract.

A specification is a documented function without a body. What the host does with the results of its implementations is
said here once, by kind; what one hook accepts is said beside that hook, as a sentence and as the function that checks
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

import pluggy

from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY

hookspec = pluggy.HookspecMarker("crystal")
hookimpl = pluggy.HookimplMarker("crystal")
"""Marks an implementation. Accepts ``tryfirst`` and ``trylast``; wrappers are refused when they register."""

Specification = TypeVar("Specification", bound=Callable[..., Any])
DECLARATION_ATTRIBUTE = "crystal_hook"


class HookKind(Enum):
    """What the host does with the implementations of a hook."""

    NOTIFY = "notify"
    """Every implementation is called in order; results are ignored."""
    APPEND = "append"
    """The returned texts are joined in order, blank ones dropped."""
    FOLD = "fold"
    """Each implementation sees the previous accepted replacement; ``None`` keeps it."""
    COLLECT = "collect"
    """The returned lists are gathered; each entry is admitted or omitted on its own."""


class ContractRefused(Exception):
    """A replacement breaks the hook's contract. The message completes "refused because it …"."""


class JunkReturned(ContractRefused):
    """The replacement is not even of the right kind; from a guard that counts as a failure of the guard."""


Accept = Callable[[Any, Any, Any], Any]
"""``accept(previous, replacement, facts)`` returns the new value or raises :class:`ContractRefused`."""


class HookDeclaration(Frozen):
    """What a specification says about itself.

    :param folds: for a fold, the argument that carries the value from one implementation to the next.
    :param accept: for a fold, checks a replacement and returns the next value.
    :param guard: a failing implementation makes the call require the operator.
    :param raw: held only to what can be represented.
    :param derived: arguments that are views of the folded value, each with how to read it from there.
    """

    kind: HookKind
    contract: str
    folds: str = ""
    accept: Accept | None = None
    guard: bool = False
    raw: bool = False
    derived: Mapping[str, Callable[[Any], Any]] = EMPTY


def _mark(declaration: HookDeclaration) -> Callable[[Specification], Specification]:
    def decorate(function: Specification) -> Specification:
        setattr(function, DECLARATION_ATTRIBUTE, declaration)
        return hookspec(function)

    return decorate


def notify(contract: str) -> Callable[[Specification], Specification]:
    """Mark a specification whose implementations only learn something."""
    return _mark(HookDeclaration(kind=HookKind.NOTIFY, contract=contract))


def append(contract: str) -> Callable[[Specification], Specification]:
    """Mark a specification whose implementations add text."""
    return _mark(HookDeclaration(kind=HookKind.APPEND, contract=contract))


def collect(contract: str) -> Callable[[Specification], Specification]:
    """Mark a specification whose implementations contribute entries."""
    return _mark(HookDeclaration(kind=HookKind.COLLECT, contract=contract))


def fold(
    contract: str,
    *,
    folds: str,
    accept: Accept,
    guard: bool = False,
    raw: bool = False,
    derived: Mapping[str, Callable[[Any], Any]] = EMPTY,
) -> Callable[[Specification], Specification]:
    """Mark a specification whose implementations replace a value one after another."""
    return _mark(
        HookDeclaration(
            kind=HookKind.FOLD,
            contract=contract,
            folds=folds,
            accept=accept,
            guard=guard,
            raw=raw,
            derived=derived,
        )
    )
