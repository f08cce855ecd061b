"""Grants: which calls the operator has said yes to beforehand, and how one call is matched against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crystal.types._frozen import Frozen

SHELL_TOOL = "bash"


class AllowRule(Frozen):
    """One ``--allow`` of the process: a tool, and for ``bash`` the exact command when one was given."""

    tool: str
    command: str | None = None


class CallKey(Frozen):
    """What a grant is given for: the tool's origin and name, and for ``bash`` the exact command."""

    origin: str
    tool: str
    command: str | None = None


def parse_allow(text: str) -> AllowRule:
    """Parse ``NAME`` or ``bash:COMMAND``."""
    tool, colon, command = text.partition(":")
    return AllowRule(tool=tool.strip(), command=command.strip() if colon else None)


def key_of(origin: str, tool: str, arguments: Mapping[str, Any]) -> CallKey:
    """Return what a grant for this call would be given for."""
    command = arguments.get("command") if tool == SHELL_TOOL else None
    return CallKey(origin=origin, tool=tool, command=command.strip() if isinstance(command, str) else None)


def is_allowed(key: CallKey, rules: Iterable[AllowRule]) -> bool:
    """Whether an ``--allow`` of this process names the call; the policy still looks at its class."""
    return any(rule.tool == key.tool and rule.command in (None, key.command) for rule in rules)


class SessionGrants:
    """Grants that live as long as the session, and the persistent ones of its workspace."""

    def __init__(self, persistent: Iterable[CallKey] = ()) -> None:
        self._keys = set(persistent)

    def add(self, key: CallKey) -> None:
        """Remember a grant."""
        self._keys.add(key)

    def cover(self, key: CallKey) -> bool:
        """Whether a grant was given for exactly this."""
        return key in self._keys
