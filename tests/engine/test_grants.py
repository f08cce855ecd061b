"""Which call a grant or an ``--allow`` covers."""

from __future__ import annotations

import pytest

from crystal.engine.approval.grants import (
    AllowRule,
    CallKey,
    SessionGrants,
    is_allowed,
    key_of,
    parse_allow,
)


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
def test_an_allow_names_a_tool_or_one_command_of_bash(text: str, rule: AllowRule) -> None:
    assert parse_allow(text) == rule


def bash(command: object) -> CallKey:
    return key_of("builtin:shell", "bash", {"command": command})


@pytest.mark.parametrize(
    ("allow", "key", "covered"),
    [
        ("bash:npm ci", bash("npm ci"), True),
        ("bash:npm ci", bash("  npm ci\n"), True),
        ("bash:npm ci", bash("npm ci && rm -r dist"), False),
        ("bash:npm ci", bash("npm  ci"), False),
        ("bash:npm ci", bash("npm"), False),
        ("bash:", bash("npm ci"), False),
        ("bash", bash("npm ci"), True),
        ("bash", key_of("builtin:files", "write", {"path": "a"}), False),
        ("write", key_of("builtin:files", "write", {"path": "a"}), True),
        ("write", key_of("builtin:files", "edit", {"path": "a"}), False),
        ("write:a", key_of("builtin:files", "write", {"path": "a"}), False),
    ],
)
def test_an_allow_covers_its_tool_or_exactly_its_command(allow: str, key: CallKey, covered: bool) -> None:
    assert is_allowed(key, [parse_allow(allow)]) is covered
    assert is_allowed(key, [AllowRule(tool="other"), parse_allow(allow)]) is covered


def test_without_a_rule_nothing_is_allowed() -> None:
    assert not is_allowed(bash("npm ci"), [])


def test_a_grant_covers_the_same_command_and_no_other() -> None:
    grants = SessionGrants()
    assert not grants.cover(bash("git status"))
    grants.add(bash("git status"))
    assert grants.cover(bash(" git status "))
    assert not grants.cover(bash("git status; rm x"))
    assert not grants.cover(bash("git"))
    assert not grants.cover(bash(None))


def test_a_grant_for_another_tool_covers_every_call_of_it_but_of_no_other_plugin() -> None:
    grants = SessionGrants()
    grants.add(key_of("plugin:home/Acme", "deploy", {"target": "a"}))
    assert grants.cover(key_of("plugin:home/Acme", "deploy", {"target": "b"}))
    assert not grants.cover(key_of("plugin:home/Other", "deploy", {"target": "a"}))
    assert not grants.cover(key_of("plugin:home/Acme", "undeploy", {"target": "a"}))


def test_only_bash_is_keyed_by_a_command() -> None:
    assert key_of("plugin:home/Acme", "runner", {"command": "rm"}).command is None


def test_persistent_grants_are_there_from_the_start() -> None:
    assert SessionGrants([bash("git status")]).cover(bash("git status"))
