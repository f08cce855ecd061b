"""Grants: which calls the operator has said yes to beforehand, and how one call is matched against them."""

from __future__ import annotations

from collections.abc import Iterable

from crystal.host.admission import RegisteredTool
from crystal.types._frozen import Frozen
from crystal.types._readonly import ReadOnlyDict
from crystal.types.tools import ToolCall


class AllowRule(Frozen):
    """One ``--allow`` of the process: a tool, and the command when one was given."""

    tool: str
    command: str | None = None


class CallKey(Frozen):
    """What one grant is given for: the tool's origin and name, and one text of a tool with ``grant_parts``."""

    origin: str
    tool: str
    command: str | None = None


class CallKeys(Frozen):
    """Everything that must be granted for one call.

    :param keys: empty when the call can be approved once only.
    :param fault: what was wrong with the tool's answer; empty when nothing was.
    """

    keys: tuple[CallKey, ...] = ()
    fault: str = ""


def parse_allow(text: str) -> AllowRule:
    """Parse ``NAME`` or ``NAME:TEXT``."""
    tool, colon, command = text.partition(":")
    return AllowRule(tool=tool.strip(), command=command.strip() if colon else None)


def keys_of(tool: RegisteredTool, call: ToolCall) -> CallKeys:
    """Return what a lasting grant of ``call`` is given for; a tool that cannot say so gets no lasting grant."""
    grant_parts = tool.contribution.grant_parts
    if grant_parts is None:
        return CallKeys(keys=(CallKey(origin=tool.plugin, tool=call.name),))
    try:
        parts = grant_parts(call)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A plugin may raise anything, SystemExit included; no grant is the careful answer.
        return CallKeys(fault=f"raised {type(error).__name__}")
    if parts is None:
        return CallKeys()
    if not isinstance(parts, tuple) or not all(isinstance(part, str) for part in parts):
        return CallKeys(fault=f"answered {type(parts).__name__}, not a tuple of texts")
    if not all(part.strip() for part in parts):
        return CallKeys()
    unique = dict.fromkeys(str(part) for part in parts)
    return CallKeys(keys=tuple(CallKey(origin=tool.plugin, tool=call.name, command=part) for part in unique))


def allow_fault(rule: AllowRule, tool: RegisteredTool) -> str:
    """Say why an ``--allow`` can cover no call of ``tool``; empty when it can."""
    if rule.command is None:
        return ""
    if tool.contribution.grant_parts is None:
        return f"'{rule.tool}' is granted as a whole; leave out everything after its name"
    found = keys_of(tool, _example(rule))
    if found.fault:
        return f"the tool could not say what that covers ({found.fault}); name '{rule.tool}' alone"
    return "" if found.keys else "that names nothing that can be granted; write out one plain command"


def is_allowed(tool: RegisteredTool, keys: CallKeys, rules: Iterable[AllowRule]) -> bool:
    """Whether the ``--allow`` of this process cover the call; the policy still looks at its class."""
    named = [rule for rule in rules if rule.tool == tool.contribution.name]
    if any(rule.command is None for rule in named):
        return True
    if not named or not keys.keys or tool.contribution.grant_parts is None:
        return False
    allowed = {key for rule in named for key in keys_of(tool, _example(rule)).keys}
    return allowed.issuperset(keys.keys)


def _example(rule: AllowRule) -> ToolCall:
    return ToolCall(id="allow", name=rule.tool, arguments=ReadOnlyDict({"command": rule.command}))


class SessionGrants:
    """Grants that live as long as the session, and the persistent ones of its workspace."""

    def __init__(self, persistent: Iterable[CallKey] = ()) -> None:
        self._keys = set(persistent)

    def add(self, keys: CallKeys) -> None:
        """Remember a grant of everything a call needs."""
        self._keys.update(keys.keys)

    def cover(self, keys: CallKeys) -> bool:
        """Whether everything that the call needs was granted, be it by several grants."""
        return bool(keys.keys) and self._keys.issuperset(keys.keys)
