"""``crystal why CALL``: how a call was judged, what decided, who answered."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from crystal.cli.safe_text import safe_line, safe_text
from crystal.cli.sessions import open_store
from crystal.engine.preflight import check_workspace, working_directory
from crystal.store.call_log import CallTrace
from crystal.store.home import locate_home
from crystal.store.sessions import SessionStore


@click.command(name="why")
@click.argument("call")
@click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working directory.")
@click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal.")
def command(call: str, workspace: Path | None, home: str | None) -> None:
    """Say how a tool call was judged. CALL is SESSION/ID, or an ID of this workspace's latest session."""
    store = open_store(locate_home(home, os.environ))
    try:
        trace = _find(store, call, check_workspace(workspace or working_directory()))
    finally:
        store.close()
    sys.stdout.write(describe(trace))


def _find(store: SessionStore, call: str, workspace: Path) -> CallTrace:
    session, slash, call_id = call.rpartition("/")
    if slash:
        session_id = store.get(session).id
    else:
        latest = store.latest(workspace)
        if latest is None:
            raise click.ClickException(f"there is no session of {workspace}; name one as SESSION/ID.")
        session_id = latest.id
    trace = store.why(session_id, call_id)
    if trace is None:
        known = ", ".join(found.call_id for found in store.calls(session_id)[-10:]) or "none"
        raise click.ClickException(f"session {session_id} has no call {call_id}; its last calls are: {known}.")
    return trace


def describe(trace: CallTrace) -> str:
    """Return the trace as lines of text."""
    lines = [
        f"{safe_line(trace.name)} {safe_line(trace.arguments)}",
        f"  session   {trace.session_id}, turn {trace.turn}",
    ]
    if trace.parent_call_id:
        lines.append(f"  made by   {trace.parent_call_id}")
    decision = trace.decision
    if decision is None:
        lines.append("  decision  none: the call was refused before it was judged, or interrupted")
    else:
        lines += [
            f"  host      {decision.host.label}  {safe_line(decision.host.summary)}",
            *(f"  hook      {safe_text(change)}" for change in decision.changes),
            f"  class     {decision.final.label}  {safe_line(decision.final.summary)}",
            f"  rule      {decision.decision.rule}: {safe_text(decision.decision.reason)}",
            f"  answer    {'approved' if decision.approved else 'denied'} by {decision.answered_by}"
            + (f", {decision.scope.value}" if decision.scope else ""),
        ]
    if trace.failed is None:
        lines.append("  result    none")
    else:
        took = f" in {trace.seconds:.3f} s" if trace.seconds is not None else ""
        lines.append(f"  result    {'failed' if trace.failed else 'ok'}{took}")
    return "\n".join(lines) + "\n"
