"""Every hook point: its kind, its arguments and the documentation that authors read."""

from __future__ import annotations

import inspect

import pytest

from crystal.hookspecs import HookKind
from crystal.hookspecs.pending import PENDING
from crystal.host.manager import read_specifications

SPECIFICATIONS = read_specifications()

COLLECT = {
    "contribute_tools": (),
    "contribute_protocols": (),
    "contribute_classifiers": (),
    "contribute_commands": (),
    "contribute_placeholders": (),
    "contribute_status_fields": (),
}
NOTIFY = {
    "attach": ("environment",),
    "attach_session": ("models",),
    "attach_clients": ("clients",),
    "attach_data_directories": ("global_directory", "project_directory"),
    "attach_status": ("updates",),
    "on_session_started": ("session",),
    "on_session_ended": ("session",),
    "on_turn_started": ("turn",),
    "on_turn_finished": ("turn",),
    "on_model_response": ("response",),
}
APPEND = {"on_prompt": ("prompt",), "on_compaction": ("compaction",)}
FOLD = {
    "on_user_message": ("message",),
    "rebuild_model": ("request",),
    "transform_model": ("request",),
    "on_tool_call": ("call",),
    "on_approval": ("call", "facts"),
    "rewrite_approval": ("call", "facts", "require_prompt"),
    "on_tool_result": ("call", "result"),
    "rewrite_prompt": ("prompt", "composed"),
    "rewrite_compaction": ("phase", "text"),
}


@pytest.mark.parametrize(
    ("kind", "hooks"),
    [
        (HookKind.COLLECT, COLLECT),
        (HookKind.NOTIFY, NOTIFY),
        (HookKind.APPEND, APPEND),
        (HookKind.FOLD, FOLD),
    ],
)
def test_the_hooks_of_a_kind_and_their_arguments_are_those_that_are_promised(
    kind: HookKind, hooks: dict[str, tuple[str, ...]]
) -> None:
    found = {name: one.arguments for name, one in SPECIFICATIONS.items() if one.declaration.kind is kind}
    assert found == hooks


def test_four_hooks_are_raw_and_the_two_approval_hooks_guard() -> None:
    raw = {name for name, found in SPECIFICATIONS.items() if found.declaration.raw}
    guards = {name for name, found in SPECIFICATIONS.items() if found.declaration.guard}
    assert raw == {"rebuild_model", "rewrite_prompt", "rewrite_compaction", "rewrite_approval"}
    assert guards == {"on_approval", "rewrite_approval"}


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_every_hook_says_when_it_is_called_and_what_its_contract_is(name: str) -> None:
    found = SPECIFICATIONS[name]
    assert (inspect.getdoc(found.function) or "").startswith("Called ")
    assert found.declaration.contract.endswith(".")


@pytest.mark.parametrize("name", FOLD)
def test_every_fold_names_the_argument_it_carries_and_says_what_none_means(name: str) -> None:
    found = SPECIFICATIONS[name]
    assert found.declaration.folds in found.arguments
    assert "``None``" in (inspect.getdoc(found.function) or "")


def test_every_annotated_hook_is_fully_annotated() -> None:
    for found in SPECIFICATIONS.values():
        signature = inspect.signature(found.function)
        assert signature.return_annotation is not signature.empty
        assert all(parameter.annotation is not parameter.empty for parameter in signature.parameters.values())


def test_a_pending_hook_exists_and_says_what_will_bring_it() -> None:
    assert set(PENDING) <= set(SPECIFICATIONS)
    assert all(PENDING.values())
