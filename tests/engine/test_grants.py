"""Which call a grant or an ``--allow`` covers."""

from __future__ import annotations

from typing import Any

import pytest

from crystal.engine.approval.grants import (
    AllowRule,
    CallKey,
    CallKeys,
    SessionGrants,
    allow_fault,
    is_allowed,
    keys_of,
    parse_allow,
)
from crystal.host.admission import RegisteredTool
from crystal.types.tools import GrantParts, ToolCall, ToolContext, ToolContribution, ToolDefinition, ToolOutput


class Idle:
    def __init__(self, name: str) -> None:
        self.definition = ToolDefinition(name=name, description="Does nothing.", schema={"type": "object"})

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        return ToolOutput(text="")


def tool(name: str, parts: GrantParts | None = None, origin: str = "plugin:home/Acme") -> RegisteredTool:
    idle = Idle(name)
    contribution = ToolContribution(name=name, tool=idle, grant_parts=parts)
    return RegisteredTool(plugin=origin, contribution=contribution, definition=idle.definition)


def by_command(call: ToolCall) -> tuple[str, ...] | None:
    """Each part between ``&&`` by itself; one that is ``?`` cannot be granted."""
    parts = tuple(part.strip() for part in call.arguments["command"].split("&&"))
    return None if "?" in parts else parts


def answering(answer: Any) -> GrantParts:
    def parts(call: ToolCall) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return parts


SHELL = tool("shell", by_command)
WRITE = tool("write")


def run(command: str) -> ToolCall:
    return ToolCall(id="call", name="shell", arguments={"command": command})  # type: ignore[arg-type]


def keys(command: str) -> CallKeys:
    return keys_of(SHELL, run(command))


WRITE_KEYS = keys_of(WRITE, ToolCall(id="call", name="write"))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("write", AllowRule(tool="write")),
        (" write ", AllowRule(tool="write")),
        ("bash", AllowRule(tool="bash")),
        ("bash:npm ci", AllowRule(tool="bash", command="npm ci")),
        ("bash: npm ci ", AllowRule(tool="bash", command="npm ci")),
        ("bash:echo a:b", AllowRule(tool="bash", command="echo a:b")),
        ("bash:", AllowRule(tool="bash", command="")),
    ],
)
def test_an_allow_names_a_tool_or_one_command_of_it(text: str, rule: AllowRule) -> None:
    assert parse_allow(text) == rule


@pytest.mark.parametrize(
    ("allow", "command", "covered"),
    [
        (["shell:npm ci"], "npm ci", True),
        (["shell:npm ci"], "  npm ci\n", True),
        (["shell:npm ci"], "npm ci && rm -r dist", False),
        (["shell:npm ci && rm -r dist"], "npm ci && rm -r dist", True),
        (["shell:npm ci && rm -r dist"], "rm -r dist", True),
        (["shell:npm ci", "shell:ls"], "ls && npm ci", True),
        (["shell:npm ci"], "npm  ci", False),
        (["shell:npm ci"], "npm", False),
        (["shell:"], "npm ci", False),
        (["shell:?"], "?", False),
        (["shell"], "npm ci", True),
        (["shell"], "?", True),
        (["write"], "npm ci", False),
        (["write:npm ci"], "npm ci", False),
        ([], "npm ci", False),
    ],
)
def test_an_allow_covers_its_tool_or_calls_made_of_its_command(allow: list[str], command: str, covered: bool) -> None:
    rules = [parse_allow(text) for text in allow]
    assert is_allowed(SHELL, keys(command), rules) is covered
    assert is_allowed(SHELL, keys(command), [AllowRule(tool="other"), *rules]) is covered


@pytest.mark.parametrize(("allow", "covered"), [("write", True), ("edit", False), ("write:a", False), ("shell", False)])
def test_an_allow_of_a_tool_without_parts_covers_every_call_or_none(allow: str, covered: bool) -> None:
    assert is_allowed(WRITE, WRITE_KEYS, [parse_allow(allow)]) is covered


@pytest.mark.parametrize(
    ("allow", "of", "usable"),
    [
        ("shell", SHELL, True),
        ("shell:npm ci", SHELL, True),
        ("shell:", SHELL, False),
        ("shell:?", SHELL, False),
        ("write", WRITE, True),
        ("write:a", WRITE, False),
        ("odd:a", tool("odd", answering(RuntimeError("no"))), False),
        ("odd:a", tool("odd", answering("a")), False),
        ("odd", tool("odd", answering(RuntimeError("no"))), True),
    ],
)
def test_an_allow_that_could_cover_nothing_has_a_fault(allow: str, of: RegisteredTool, usable: bool) -> None:
    assert (allow_fault(parse_allow(allow), of) == "") is usable


def test_a_grant_covers_calls_whose_every_part_was_granted() -> None:
    grants = SessionGrants()
    assert not grants.cover(keys("git status"))
    grants.add(keys("git status && ls"))
    assert grants.cover(keys(" git status "))
    assert grants.cover(keys("ls && git status && ls"))
    assert not grants.cover(keys("git status && rm x"))
    assert not grants.cover(keys("git"))
    assert not grants.cover(keys("?"))
    grants.add(keys("rm x"))
    assert grants.cover(keys("git status && rm x"))


@pytest.mark.parametrize("parts", [(), None, ("",), ("a", " ")])
def test_a_call_without_parts_is_never_covered_and_no_fault(parts: tuple[str, ...] | None) -> None:
    found = keys_of(tool("odd", answering(parts)), ToolCall(id="call", name="odd"))
    assert found == CallKeys()
    grants = SessionGrants()
    grants.add(found)
    assert not grants.cover(found)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (RuntimeError("secret words"), "RuntimeError"),
        (SystemExit(3), "SystemExit"),
        ("npm ci", "str"),
        (["npm ci"], "list"),
        ((1,), "tuple"),
        (True, "bool"),
    ],
)
def test_parts_that_fail_or_are_junk_grant_nothing_and_name_the_kind_of_fault(answer: Any, fault: str) -> None:
    found = keys_of(tool("odd", answering(answer)), ToolCall(id="call", name="odd"))
    assert found.keys == ()
    assert fault in found.fault
    assert "secret words" not in found.fault


def test_a_tool_without_parts_is_granted_as_a_whole_but_no_other_plugins_tool_of_that_name() -> None:
    grants = SessionGrants()
    grants.add(keys_of(WRITE, ToolCall(id="one", name="write", arguments={"a": 1})))  # type: ignore[arg-type]
    assert grants.cover(keys_of(WRITE, ToolCall(id="two", name="write", arguments={"a": 2})))  # type: ignore[arg-type]
    other = tool("write", origin="plugin:home/Other")
    assert not grants.cover(keys_of(other, ToolCall(id="call", name="write")))
    assert not grants.cover(keys_of(tool("edit"), ToolCall(id="call", name="edit")))


def test_a_grant_of_a_whole_tool_does_not_cover_it_once_it_has_parts() -> None:
    grants = SessionGrants([CallKey(origin="plugin:home/Acme", tool="shell")])
    assert not grants.cover(keys("ls"))
    assert grants.cover(keys_of(tool("shell"), run("ls")))


def test_persistent_grants_are_there_from_the_start() -> None:
    stored = CallKey(origin="plugin:home/Acme", tool="shell", command="git status")
    assert SessionGrants([stored]).cover(keys("git status"))
