"""The gate before a tool runs: approval hooks, the policy, and the operator when the policy asks."""

from __future__ import annotations

import dataclasses

from crystal.engine.answers import Approve, Deny, Dismiss, Reply
from crystal.engine.approval.grants import CallKeys, is_allowed, keys_of
from crystal.engine.approval.policy import PolicyInput, decide
from crystal.engine.approval.preview import preview_call
from crystal.engine.approval.reviewer import review_call
from crystal.engine.budgets import Spent
from crystal.engine.state import SessionState
from crystal.host.admission import RegisteredTool
from crystal.store.errors import StoreError
from crystal.store.permissions import Grant, add_grants, is_writable
from crystal.types._frozen import Frozen
from crystal.types.approval import (
    ApprovalFacts,
    ApprovalOutcome,
    ApprovalRecord,
    Authority,
    Classification,
    GrantScope,
    Risk,
)
from crystal.types.events import ApprovalAsked, RequestAnswered
from crystal.types.notes import NoteCode
from crystal.types.paths import ResolvedPath
from crystal.types.tools import ToolCall

FILE_WRITERS = frozenset(("write", "edit"))
"""The built-in tools that Edit approval lets pass."""


class Judged(Frozen):
    """A prepared call with the class the host gives it, before any hook.

    :param host: after classifiers, before the pre-classifier.
    :param own: after the tool's pre-classifier.
    :param failed: plugins whose classifier failed; the call then requires the operator.
    """

    host: Classification
    own: Classification
    paths: tuple[ResolvedPath, ...]
    failed: tuple[str, ...]

    @property
    def is_plain_read(self) -> bool:
        """Whether the call may run beside others."""
        return (
            self.own.risk is Risk.READ
            and self.own.authority == Authority.WORKSPACE
            and not self.failed
            and not self.own.require_prompt
        )


async def approve_call(
    state: SessionState, call: ToolCall, tool: RegisteredTool, judged: Judged, spent: Spent
) -> ApprovalRecord:
    """Run the approval hooks and the policy, and ask the reviewer or the operator when the policy says so.

    :param spent: takes what the reviewer's model used.
    """
    heard = await state.host.hooks.on_approval(
        call,
        ApprovalFacts(
            classification=judged.own,
            mode=state.approval,
            require_prompt=judged.own.require_prompt or bool(judged.failed),
        ),
    )
    keys = _keys(state, call, tool)
    final = heard.facts.classification
    asked = PolicyInput(
        mode=state.approval,
        host=judged.host,
        final=final,
        # A failed guard cannot be waived by a later hook.
        require_prompt=heard.facts.require_prompt or bool(judged.failed) or bool(heard.failed_guards),
        edits_files=tool.is_builtin and call.name in FILE_WRITERS,
        granted=state.grants.cover(keys),
        allowed=is_allowed(tool, keys, state.allow),
        author_always=tool.author_always,
        grantable=bool(keys.keys),
        storable=_is_storable(state, keys),
    )
    decision = decide(asked)
    record = ApprovalRecord(
        host=judged.host,
        # A hook's reason is shown and stored like any other text.
        final=dataclasses.replace(final, summary=state.redactor.apply(final.summary)),
        decision=decision,
        approved=decision.outcome is ApprovalOutcome.PASS,
        answered_by="policy",
        changes=(*heard.changes, *(f"{name}: guard failed" for name in (*judged.failed, *heard.failed_guards))),
    )
    if decision.outcome is ApprovalOutcome.REVIEW:
        review = await review_call(state, call, record, asked.require_prompt, spent)
        decision = decide(dataclasses.replace(asked, verdict=review.verdict, verdict_reason=review.reason))
        record = dataclasses.replace(
            record,
            decision=decision,
            approved=decision.outcome is ApprovalOutcome.PASS,
            answered_by="reviewer",
        )
    if decision.outcome in (ApprovalOutcome.PASS, ApprovalOutcome.REJECT):
        return record
    return await _ask(state, call, tool, record, keys)


def _keys(state: SessionState, call: ToolCall, tool: RegisteredTool) -> CallKeys:
    keys = keys_of(tool, call)
    if keys.fault:
        state.host.notes.add(
            NoteCode.GUARD_FAILED,
            f"Plugin '{tool.plugin}': grant_parts of '{call.name}' {keys.fault}; the call can be approved once only.",
            tool.plugin,
        )
    return keys


def _is_storable(state: SessionState, keys: CallKeys) -> bool:
    """Whether a grant may be written down: no secret may be in it, and the file must be able to hold it."""
    grants = _grants(state, keys)
    return all(is_writable(grant) for grant in grants) and all(
        grant.command is None or state.redactor.apply(grant.command) == grant.command for grant in grants
    )


def _grants(state: SessionState, keys: CallKeys) -> list[Grant]:
    workspace = str(state.workspace)
    return [Grant(workspace=workspace, origin=key.origin, tool=key.tool, command=key.command) for key in keys.keys]


async def _ask(
    state: SessionState, call: ToolCall, tool: RegisteredTool, record: ApprovalRecord, keys: CallKeys
) -> ApprovalRecord:
    offered = record.decision.offered or (GrantScope.ONCE,)
    preview = await preview_call(state, call, tool)
    request_id = state.ids.new("request")
    waiting = state.requests.open(request_id)
    state.emit(
        ApprovalAsked(
            request_id=request_id,
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            host=record.host,
            final=record.final,
            offered=offered,
            reason=record.decision.reason,
            preview=preview,
        )
    )
    try:
        answer = await waiting
    finally:
        state.requests.close(request_id)
    scope: GrantScope | None = None
    approved, by = False, "operator"
    match answer:
        case Approve() if answer.scope in offered:
            _remember(state, keys, answer.scope)
            scope, approved = answer.scope, True
        case Deny() | Dismiss():
            by = answer.by
        case Approve() | Reply():
            pass  # A scope that was not offered, or an answer to something else, lets nothing run.
    word = scope.value if scope is not None else "deny"
    state.emit(RequestAnswered(request_id=request_id, call_id=call.id, answer=word))
    return dataclasses.replace(record, approved=approved, answered_by=by, scope=scope)


def _remember(state: SessionState, keys: CallKeys, scope: GrantScope) -> None:
    if scope is GrantScope.ONCE:
        return
    state.grants.add(keys)
    if scope is GrantScope.PERSISTENT:
        try:
            add_grants(state.home, _grants(state, keys))
        except StoreError as error:
            state.host.notes.add(
                NoteCode.GRANT_NOT_SAVED, f"The grant holds for this session only; it was not saved: {error}"
            )
