"""Every hook point of Crystal, one module per concern: declaration, contract and documentation in one room.

The host calls a hook's implementations in registration order, ``tryfirst`` ones first and ``trylast`` ones last. An
implementation may take any subset of the arguments and may be ``async``. One that raises, exits or outlasts its limit
is skipped with a note and the previous value stands; arguments cannot be changed in place.
"""

from __future__ import annotations

from types import ModuleType

from crystal.hookspecs import approval, compaction, contribute, lifecycle, model, prompt, raw, tool, turn
from crystal.hookspecs._kinds import (
    DECLARATION_ATTRIBUTE,
    ContractRefused,
    HookDeclaration,
    HookKind,
    JunkReturned,
    hookimpl,
)

SPECIFICATIONS: tuple[ModuleType, ...] = (
    contribute,
    lifecycle,
    turn,
    prompt,
    model,
    raw,
    tool,
    approval,
    compaction,
)
"""The modules whose hookspecs the host registers."""

__all__ = [
    "DECLARATION_ATTRIBUTE",
    "SPECIFICATIONS",
    "ContractRefused",
    "HookDeclaration",
    "HookKind",
    "JunkReturned",
    "hookimpl",
]
