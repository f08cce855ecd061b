"""One tool call from the model's words to its result: hook, schema, fence, class, approval, run, truncate, hook.

The order of the steps is the order of the functions in this module.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from crystal.engine.approval.classify import apply_pre_classifier, classify
from crystal.engine.approval.gate import FILE_WRITERS, Judged, approve_call
from crystal.engine.arguments import ArgumentsFault, SchemaUnusable, parse_arguments, require_text
from crystal.engine.budgets import Spent, calls_left
from crystal.engine.candidate import redact_arguments, redact_strings
from crystal.engine.checkpoint import checkpoint
from crystal.engine.state import SessionState
from crystal.engine.tool_context import link_to_data, make_context
from crystal.host.admission import RegisteredTool
from crystal.host.isolation import describe_error, run_isolated
from crystal.store.errors import MediaError
from crystal.store.media import printable_name
from crystal.types._frozen import Frozen
from crystal.types._readonly import read_only
from crystal.types.approval import ApprovalRecord, GrantScope, Risk
from crystal.types.events import ToolCallFinished, ToolCallStarted
from crystal.types.items import IMAGE_TYPES, Image, ImageRef, ToolCallItem, ToolResultItem
from crystal.types.notes import NoteCode
from crystal.types.paths import PathZone, ResolvedPath
from crystal.types.tools import ClassifierFacts, ToolCall, ToolOutput
from crystal.workspace.fence import PathRefused
from crystal.workspace.limits import truncate_output

DENIED = "The operator did not approve this call, so it was not run. Do not try to reach the same by another way."
TOOL_GRACE_SECONDS = 5.0
"""How long a cancelled tool may take to end its children before the turn goes on without it."""

DEEPEST_CHILD = 16
"""How many calls may stand inside one another; a tool that calls itself would otherwise exhaust the stack."""

REJECTED = "The reviewer of tool calls did not let this call run. Do not try to reach the same by another way."
NOBODY = "This call needs the operator's approval and nobody can be asked, so it was not run."
MARK_REFUSED = (
    "The new text holds {mark}, a mark that stands for a secret the host removed. It was not written; "
    "leave that part of the file as it is."
)


class PreparedCall(Frozen):
    """A call after ``on_tool_call`` and the schema check.

    :param tool: ``None`` when the call is refused already.
    :param refusal: the sentence for the model when it cannot run.
    :param depth: how many calls it stands inside of.
    """

    item: ToolCallItem
    call: ToolCall
    tool: RegisteredTool | None
    refusal: str = ""
    parent_call_id: str | None = None
    depth: int = 0


class FinishedCall(Frozen):
    """A call with its result.

    :param record: how it was judged; ``None`` for a call that was refused before that.
    :param seconds: wall time from its start, waiting for the operator included.
    """

    prepared: PreparedCall
    result: ToolResultItem
    record: ApprovalRecord | None
    seconds: float


async def prepare_call(state: SessionState, item: ToolCallItem, parent_call_id: str | None = None) -> PreparedCall:
    """Parse the arguments, run ``on_tool_call`` and check name and schema; faults become a sentence for the model."""
    call = ToolCall(id=item.call_id, name=item.name)
    try:
        call = made = dataclasses.replace(call, arguments=parse_arguments(item.arguments))
        call = _without_secrets(state, await state.host.hooks.on_tool_call(call, state.catalog.tools.keys()))
        if call != made:
            require_text(call.arguments)
            # What is kept is what would run.
            record_call(state, call.id, call.name, json.dumps(call.arguments, ensure_ascii=False), parent_call_id)
        tool = _offered(state, call.name)
        fault = state.checker.fault(call.name, tool.definition.schema, call.arguments)
        if fault is not None:
            raise ArgumentsFault(fault)
        _refuse_marks(state, tool, call)
    except ArgumentsFault as fault_raised:
        return PreparedCall(item=item, call=call, tool=None, refusal=str(fault_raised), parent_call_id=parent_call_id)
    except SchemaUnusable as unusable:
        state.host.notes.add(NoteCode.TOOL_SCHEMA, f"{unusable}. Its calls are refused.")
        return PreparedCall(
            item=item,
            call=call,
            tool=None,
            refusal=f"{unusable}. The call was not run.",
            parent_call_id=parent_call_id,
        )
    return PreparedCall(item=item, call=call, tool=tool, parent_call_id=parent_call_id)


def _without_secrets(state: SessionState, call: ToolCall) -> ToolCall:
    """A hook may have put a secret into the arguments, which are stored and shown."""
    arguments = redact_strings(call.arguments, state.redactor.apply)
    return call if arguments == call.arguments else dataclasses.replace(call, arguments=read_only(arguments))


def _offered(state: SessionState, name: str) -> RegisteredTool:
    tool = state.catalog.tools.get(name)
    if tool is not None:
        return tool
    if name in state.host.tools:
        mode = "plan" if state.host.tools[name].contribution.catalogs.name == "WORK" else "work"
        raise ArgumentsFault(f"The tool '{name}' is not offered in {mode} mode. The call was not run.")
    offered = ", ".join(state.catalog.tools)
    raise ArgumentsFault(f"There is no tool '{name}'. Offered are: {offered}. The call was not run.")


def _refuse_marks(state: SessionState, tool: RegisteredTool, call: ToolCall) -> None:
    if not tool.is_builtin or call.name not in FILE_WRITERS:
        return
    for mark in state.redactor.marks:
        if any(mark in str(call.arguments.get(name, "")) for name in ("content", "new_string")):
            raise ArgumentsFault(MARK_REFUSED.format(mark=mark))


def judge_call(state: SessionState, call: ToolCall, tool: RegisteredTool) -> Judged:
    """Resolve the declared paths and classify.

    :raises ArgumentsFault: for a path that cannot be resolved.
    """
    contribution = tool.contribution
    paths = []
    for name in contribution.path_arguments:
        value = call.arguments.get(name, contribution.default_paths.get(name))
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str):
                try:
                    paths.append(state.fence.resolve(text))
                except PathRefused as refused:
                    raise ArgumentsFault(f"{refused} The call was not run.") from refused
    facts = ClassifierFacts(workspace=state.workspace, home=state.fence.home, paths=tuple(paths), plugin=tool.plugin)
    hosted = classify(call, tool, facts, state.host.classifiers)
    own = apply_pre_classifier(call, tool, hosted.classification)
    return Judged(
        host=hosted.classification,
        own=own.classification,
        paths=facts.paths,
        failed=(*hosted.failed, *own.failed),
    )


def _note_failed(state: SessionState, judged: Judged) -> None:
    for plugin in judged.failed:
        state.host.notes.add(
            NoteCode.GUARD_FAILED,
            f"Plugin '{plugin}': its classifier failed, so the call requires the operator.",
            plugin,
        )


async def run_call(state: SessionState, prepared: PreparedCall, spent: Spent) -> FinishedCall:
    """Take a prepared call to its result, which is neither stored nor announced yet. Every way out is a result."""
    call, tool = prepared.call, prepared.tool
    _start(state, prepared)
    await checkpoint()
    began = state.surroundings.monotonic()
    record: ApprovalRecord | None = None
    if not calls_left(state.budgets, spent):
        output = _failure("The turn's budget of tool calls is used up, so this call was not run.")
    elif tool is None:
        output = _failure(prepared.refusal)
    else:
        spent.tool_calls += 1
        try:
            judged = judge_call(state, call, tool)
        except ArgumentsFault as fault:
            output = _failure(str(fault))
        else:
            _note_failed(state, judged)
            record = await approve_call(state, call, tool, judged, spent)
            state.store.record_decision(state.session_id, call.id, record)
            if record.approved:
                output = await _invoke(state, prepared, tool, judged, record, spent)
            elif record.answered_by == "reviewer":
                # A judgement, not a prompt that was denied.
                output = _failure(f"{REJECTED} In its words: {record.decision.reason}.")
            else:
                spent.denied += 1
                output = _failure(NOBODY if record.answered_by == "nobody" else DENIED)
    # Secrets go first: a cut could leave half of one, which nobody would recognise.
    output = dataclasses.replace(output, text=truncate_output(state.redactor.apply(output.text)))
    output = await state.host.hooks.on_tool_result(call, output, state.model.image_input)
    return FinishedCall(
        prepared=prepared,
        result=_to_item(state, prepared, output),
        record=record,
        seconds=state.surroundings.monotonic() - began,
    )


def announce_call(state: SessionState, finished: FinishedCall) -> None:
    """Say that a call has its result; called when the result is stored."""
    prepared, result = finished.prepared, finished.result
    state.emit(
        ToolCallFinished(
            call_id=prepared.call.id,
            name=prepared.call.name,
            arguments=prepared.call.arguments,
            failed=result.failed,
            output=result.text,
            images=len(result.images),
            parent_call_id=prepared.parent_call_id,
            approval=finished.record,
        )
    )


def record_call(
    state: SessionState, call_id: str, name: str, arguments: str, parent_call_id: str | None = None
) -> None:
    """Keep a call before anything happens to it; a second record of the same id replaces name and arguments."""
    state.store.record_call(state.session_id, state.transcript.turn, call_id, name, arguments, parent_call_id)


def _start(state: SessionState, prepared: PreparedCall) -> None:
    call = prepared.call
    state.emit(
        ToolCallStarted(
            call_id=call.id,
            name=call.name,
            arguments=call.arguments,
            parent_call_id=prepared.parent_call_id,
        )
    )


async def _invoke(
    state: SessionState,
    prepared: PreparedCall,
    tool: RegisteredTool,
    judged: Judged,
    record: ApprovalRecord,
    spent: Spent,
) -> ToolOutput:
    call = prepared.call
    if record.final.risk is not Risk.READ:
        # What a changing call will rest on must survive a power cut.
        state.store.sync(state.session_id)
    link = link_to_data(state, tool)
    if link is not None:
        return _failure(
            f"The tool '{call.name}' was not run: {link}, on the way to its data directories, is a link; "
            "put a folder in its place."
        )
    permitted = frozenset(path.real for path in judged.paths if _is_permitted(path, record))

    async def call_child(name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        return await run_child(state, prepared, name, arguments, spent)

    context = make_context(state, call, tool, permitted, call_child, spent)

    async def invoke() -> Any:
        # Inside the task: a tool that is no coroutine function may raise when it is called.
        return await tool.contribution.tool.invoke(call, context)

    output, error = await run_isolated(invoke(), grace=TOOL_GRACE_SECONDS)
    if isinstance(error, asyncio.CancelledError):
        return _failure(f"The tool '{call.name}' failed: it cancelled itself.")
    if error is not None:
        return _failure(f"The tool '{call.name}' failed: {describe_error(error)}")
    fault = _output_fault(output)
    return output if fault is None else _failure(f"The tool '{call.name}' failed: it answered {fault}.")


def _is_permitted(path: ResolvedPath, record: ApprovalRecord) -> bool:
    """Whether an approved call may use a path beyond the workspace: the operator's own Once for what is Forbidden."""
    if path.zone in (PathZone.CREDENTIAL, PathZone.HOST):
        return record.scope is GrantScope.ONCE
    return path.zone is not PathZone.WORKSPACE


def _output_fault(output: Any) -> str | None:
    """Say what keeps an answer from being a tool's output; a plugin may return anything."""
    if not isinstance(output, ToolOutput):
        return f"{type(output).__name__}, not a ToolOutput"
    if not isinstance(output.text, str):
        return f"{type(output.text).__name__} as text"
    if type(output.failed) is not bool:
        return f"{type(output.failed).__name__} as failed"
    if not isinstance(output.images, tuple):
        return f"{type(output.images).__name__} as images, not a tuple"
    for image in output.images:
        if not (isinstance(image, Image) and isinstance(image.data, bytes) and isinstance(image.name, str)):
            return f"{type(image).__name__} among its images, not an Image with bytes"
    return None


async def run_child(
    state: SessionState, parent: PreparedCall, name: str, arguments: Mapping[str, Any], spent: Spent
) -> ToolOutput:
    """Run a call that a tool makes, through the whole pipeline; its result goes to that tool, not to the transcript."""
    if parent.depth >= DEEPEST_CHILD:
        return _failure(f"The call of '{name}' stands inside {DEEPEST_CHILD} others and was not run.")
    item = ToolCallItem(
        id=state.ids.new("item"),
        call_id=state.ids.new("call"),
        name=name,
        arguments=redact_arguments(json.dumps(read_only(arguments)), state.redactor.apply),
    )
    record_call(state, item.call_id, name, item.arguments, parent.call.id)
    prepared = await prepare_call(state, item, parent_call_id=parent.call.id)
    finished = await run_call(state, dataclasses.replace(prepared, depth=parent.depth + 1), spent)
    state.store.finish_call(state.session_id, item.call_id, finished.result.failed, finished.seconds)
    announce_call(state, finished)
    return ToolOutput(text=finished.result.text, failed=finished.result.failed)


def _failure(text: str) -> ToolOutput:
    return ToolOutput(text=text, failed=True)


def _to_item(state: SessionState, prepared: PreparedCall, output: ToolOutput) -> ToolResultItem:
    images: list[ImageRef] = []
    # A hook may have put in what the tool's own output did not hold.
    text = state.redactor.apply(output.text)
    for image in output.images:
        name = printable_name(image.name)
        if not state.model.image_input:
            text += f"\n[Image {name}, {image.media_type}, {len(image.data)} bytes; this model takes no images]"
            continue
        if image.media_type not in IMAGE_TYPES:
            text += f"\n[An image of type {image.media_type} was left out]"
            continue
        try:
            images.append(state.media.put(image.data, name))
        except MediaError as error:
            text += f"\n[An image was left out: {error}]"
    return ToolResultItem(
        id=state.ids.new("item"),
        call_id=prepared.call.id,
        name=prepared.item.name,
        text=text,
        images=tuple(images),
        failed=output.failed,
    )
