"""``crystal why CALL``: how a call was judged, what decided, who answered."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from crystal.cli.safe_text import safe_line, safe_text
from crystal.cli.sessions import open_store
from crystal.engine.preflight import working_directory
from crystal.store.call_log import CallTrace
from crystal.store.errors import UnknownSession
from crystal.store.home import locate_home
from crystal.store.sessions import SessionStore
from crystal.types.approval import ApprovalRecord, Classification, GrantScope

_NAMED_CALLS = 10
_SCOPES = {
    GrantScope.ONCE: "once: this call alone",
    GrantScope.SESSION: "session: until the session ended",
    GrantScope.PERSISTENT: "persistent: in this workspace until it is revoked",
}


@click.command(name="why")
@click.argument("call")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working directory.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text", help="Output format.")
def command(call: str, workspace: Path | None, home: str | None, form: str) -> None:
    """Say how a tool call was judged. CALL is SESSION/ID, or an ID of this workspace's latest session.

    The beginning of a session or call id is enough where no other begins so.
    """
    store = open_store(locate_home(home, os.environ))
    try:
        trace = _find(store, call, workspace)
    finally:
        store.close()
    sys.stdout.write(describe(trace) if form == "text" else json.dumps(as_object(trace), indent=2) + "\n")


def _find(store: SessionStore, call: str, workspace: Path | None) -> CallTrace:
    session, slash, call_id = call.partition("/")
    if not slash:
        return _of_session(store, _latest(store, workspace), call)
    try:
        session_id = store.get(session).id
    except UnknownSession:
        # Some providers put a slash into the ids of their calls.
        latest = store.latest(_place(workspace))
        trace = None if latest is None else store.why(latest.id, call)
        if trace is None:
            raise
        return trace
    return _of_session(store, session_id, call_id)


def _latest(store: SessionStore, workspace: Path | None) -> str:
    place = _place(workspace)
    latest = store.latest(place)
    if latest is None:
        raise click.ClickException(f"there is no session of {safe_line(place)}; name one as SESSION/ID.")
    return latest.id


def _place(workspace: Path | None) -> str:
    """Return the real path; a workspace that is gone still has its sessions."""
    return os.path.realpath(workspace or working_directory())


def _of_session(store: SessionStore, session_id: str, call_id: str) -> CallTrace:
    exact = store.why(session_id, call_id)
    if exact is not None:
        return exact
    calls = store.calls(session_id)
    found = [trace for trace in calls if call_id and trace.call_id.startswith(call_id)]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.ClickException(
            f"several calls of session {session_id} begin with {safe_line(call_id)}: {_named(found)}; "
            "give more of the id."
        )
    raise click.ClickException(
        f"session {session_id} has no call {safe_line(call_id)}; its last calls are: {_named(calls) or 'none'}."
    )


def _named(calls: list[CallTrace] | tuple[CallTrace, ...]) -> str:
    return ", ".join(safe_line(trace.call_id) for trace in calls[-_NAMED_CALLS:])


def describe(trace: CallTrace) -> str:
    """Return the trace as lines of text; long arguments are cut, which is said."""
    lines = [
        f"{safe_line(trace.name)} {safe_line(trace.arguments)}",
        f"  session   {trace.session_id}, turn {trace.turn}",
        f"  call      {safe_line(trace.call_id)}",
    ]
    if trace.parent_call_id:
        lines.append(f"  made by   {safe_line(trace.parent_call_id)}")
    if trace.decision is None:
        lines.append("  decision  none: the call was refused before it was judged, or interrupted")
    else:
        lines += _decided(trace.decision)
    if trace.failed is None:
        lines.append("  result    none")
    else:
        took = f" in {trace.seconds:.3f} s" if trace.seconds is not None else ""
        lines.append(f"  result    {'failed' if trace.failed else 'ok'}{took}")
    return "\n".join(lines) + "\n"


def _decided(record: ApprovalRecord) -> Iterator[str]:
    decision = record.decision
    yield f"  host      {_class(record.host)}"
    for change in record.changes:
        yield f"  hook      {_whole(change)}"
    yield f"  class     {_class(record.final)}"
    yield f"  rule      {decision.rule}: {_whole(decision.reason)}"
    offered = ", ".join(scope.value for scope in decision.offered)
    yield f"  outcome   {decision.outcome.value}{f', offered: {offered}' if offered else ''}"
    who = f" by {safe_line(record.answered_by)}" if record.answered_by else ""
    scope = f", {_SCOPES[record.scope]}" if record.scope else ""
    yield f"  answer    {'approved' if record.approved else 'denied'}{who}{scope}"


def _class(classification: Classification) -> str:
    prompt = " (a prompt is required)" if classification.require_prompt else ""
    return f"{classification.label}{prompt}  {_whole(classification.summary)}".rstrip()


def _whole(text: str) -> str:
    """Return a reason on one line, uncut: the end of it may be what decided."""
    return safe_text(text).replace("\n", "\\n")


def as_object(trace: CallTrace) -> dict[str, Any]:
    """Return everything about the call as JSON; ``approval`` has the fields it has in the events of a run, and more."""
    return {
        "sessionID": trace.session_id,
        "turn": trace.turn,
        "callId": trace.call_id,
        "parentCallId": trace.parent_call_id,
        "name": trace.name,
        "arguments": _parsed(trace.arguments),
        "approval": None if trace.decision is None else _approval(trace.decision),
        "status": {None: None, True: "failure", False: "success"}[trace.failed],
        "seconds": trace.seconds,
    }


def _parsed(arguments: str) -> Any:
    """Return the arguments as the value they are; what a model sent that is no JSON stays text."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _approval(record: ApprovalRecord) -> dict[str, Any]:
    return {
        "rule": record.decision.rule,
        "reason": record.decision.reason,
        "outcome": record.decision.outcome.value,
        "offered": [scope.value for scope in record.decision.offered],
        "class": _class_object(record.final),
        "hostClass": _class_object(record.host),
        "approved": record.approved,
        "answeredBy": record.answered_by,
        "scope": record.scope.value if record.scope is not None else None,
        "changes": list(record.changes),
    }


def _class_object(classification: Classification) -> dict[str, Any]:
    return {
        "risk": classification.risk.label,
        "authority": classification.authority.label,
        "summary": classification.summary,
        "requirePrompt": classification.require_prompt,
    }
