"""``crystal plugins check``: one plugin alone in a temporary home, through a scripted session, and what came of it.

The plugin's code runs with the operator's rights, as in a session; its folder is copied and stays as it is.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crystal.cli.exit_codes import ExitCode
from crystal.cli.listing import listing_option, print_rows
from crystal.cli.log import contained_output
from crystal.cli.task import TaskRequest, execute_task
from crystal.engine.preflight import SessionOptions
from crystal.hookspecs.pending import PENDING
from crystal.host.loading.snapshot import FolderRefused, read_folder
from crystal.host.manifests.plugin import PLUGIN_MANIFEST, ModuleManifest
from crystal.host.sources.disk import DIRECTORY_NAME, DiscoveredPlugin, home_tree, read_plugin
from crystal.host.sources.switching import switch_plugin
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalMode
from crystal.types.events import Event, LoadedPlugin, NoteAdded, SessionOpened
from crystal.types.notes import Note, Severity

HEADINGS = ("check", "result", "detail")
FINE, BROKEN, SLOW, OPEN = "ok", "broken", "slow", "not reached"
RAN = "ran"
"""The outcome of a trace's first entry for a call; a second one tells what came of it."""

SLOW_SECONDS = 0.1
"""A person notices a hook that takes longer at every call; on a busy machine a good one may, so that it is no fault."""

ROUNDS: tuple[dict[str, Any], ...] = (
    {"reasoning": "Look first.", "toolCalls": [{"name": "read", "arguments": {"path": "text.txt"}}]},
    {
        "text": "Änderung 🙂",
        "toolCalls": [
            {"name": "edit", "arguments": {"path": "text.txt", "old_string": "two", "new_string": "zwei"}},
            {"name": "read", "arguments": {"path": "missing.txt"}},
            {"name": "no_such_tool", "arguments": {}},
            {"name": "bash", "arguments": {"command": "python3 -c pass"}},
        ],
    },
    {"text": "Done."},
)
"""What the model says: a read, an edit, calls that fail, and one that nobody approves."""


class CheckRow(Frozen):
    """One thing that was looked at.

    :param result: ``ok``, ``broken``, ``slow`` or ``not reached``.
    """

    check: str
    result: str
    detail: str


class _Heard:
    """What a session told of the plugin."""

    def __init__(self) -> None:
        self.loaded: LoadedPlugin | None = None
        self.notes: list[Note] = []
        self.hooks: dict[str, list[tuple[float, str]]] = {}

    def hear(self, event: Event) -> None:
        if isinstance(event, SessionOpened):
            self.notes += event.skipped
            self.loaded = next((found for found in event.plugins if found.name.startswith("plugin:")), None)
        elif isinstance(event, NoteAdded):
            self.notes.append(event.note)

    def trace(self, hook: str, plugin: str, seconds: float, outcome: str) -> None:
        if plugin.startswith("plugin:"):
            self.hooks.setdefault(hook, []).append((seconds, outcome))


def check_plugin(folder: Path, form: str) -> int:
    """Check the plugin in ``folder`` and print the report.

    :return: 1 when anything is broken.
    """
    rows = _look(folder)
    if form == "json":
        listed = [dict(zip(HEADINGS, (row.check, row.result, row.detail), strict=True)) for row in rows]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
    else:
        print_rows(form, HEADINGS, [(row.check, row.result, row.detail) for row in rows])
    return ExitCode.INVALID if any(row.result == BROKEN for row in rows) else ExitCode.DONE


def _look(folder: Path) -> Sequence[CheckRow]:
    try:
        read_folder(folder)
    except FolderRefused as refused:
        return [CheckRow(check="folder", result=BROKEN, detail=str(refused))]
    with tempfile.TemporaryDirectory(prefix="crystal-check-") as name:
        root = Path(name)
        home, workspace = Home(root=root / "home"), root / "workspace"
        workspace.mkdir()
        (workspace / "text.txt").write_text("one\ntwo\n", "utf-8")
        shutil.copytree(folder, home.root / "plugins" / folder.name, symlinks=True)
        [plugin] = home_tree(home).plugins
        plugin, notes = read_plugin(plugin)
        manifest = _manifest_rows(plugin, notes)
        if not isinstance(plugin.manifest, ModuleManifest):
            return manifest
        if not plugin.enabled:
            switch_plugin(home, workspace, plugin, True)
        heard, problem = _run(home, workspace)
        return [*manifest, *_loading_rows(heard, problem), *_hook_rows(heard), *_note_rows(heard, notes)]


def _manifest_rows(plugin: DiscoveredPlugin, notes: Sequence[Note]) -> list[CheckRow]:
    if notes:
        return [CheckRow(check="manifest", result=BROKEN, detail=note.text) for note in notes]
    if plugin.manifest is None:
        return [CheckRow(check="manifest", result=BROKEN, detail=plugin.skipped)]
    if not isinstance(plugin.manifest, ModuleManifest):
        return [CheckRow(check="manifest", result=FINE, detail="a command plugin; it has no code of its own")]
    return [CheckRow(check="manifest", result=FINE, detail=f"{PLUGIN_MANIFEST} names {plugin.manifest.module}")]


def _run(home: Home, workspace: Path) -> tuple[_Heard, str]:
    heard = _Heard()
    request = TaskRequest(
        text="Change two into zwei. 🙂",
        options=SessionOptions(
            home=home,
            workspace=workspace,
            provider="scripted",
            approval=ApprovalMode.EDIT,
            client_options={"script": {"rounds": list(ROUNDS)}},
            trace=heard.trace,
        ),
        printer=_Silent(),
        errors=io.StringIO(),
        environ=os.environ,
        listeners=(heard.hear,),
    )
    with contained_output():
        try:
            execute_task(request)
        except Exception as error:
            return heard, str(error)
    return heard, ""


def _loading_rows(heard: _Heard, problem: str) -> list[CheckRow]:
    rows = [CheckRow(check="session", result=BROKEN, detail=problem)] if problem else []
    if heard.loaded is None:
        return [*rows, CheckRow(check="load", result=BROKEN, detail="it is not loaded; the notes say why")]
    rows.append(CheckRow(check="load", result=FINE, detail=f"implements {len(heard.loaded.hooks)} hooks"))
    if heard.loaded.tools:
        rows.append(CheckRow(check="tools", result=FINE, detail=", ".join(heard.loaded.tools)))
    return rows


def _hook_rows(heard: _Heard) -> list[CheckRow]:
    rows = []
    for hook in heard.loaded.hooks if heard.loaded else ():
        calls = [call for call in heard.hooks.get(hook, ()) if call[1] == RAN]
        outcomes = [outcome for _, outcome in heard.hooks.get(hook, ()) if outcome in ("failed", "refused")]
        slowest = max((seconds for seconds, _ in calls), default=0.0)
        if hook.startswith("contribute_"):
            failed = [note for note in heard.notes if note.severity is not Severity.INFO and f"'{hook}'" in note.text]
            detail = "it failed; the notes say why" if failed else "asked while the plugin is loaded"
            rows.append(CheckRow(check=hook, result=BROKEN if failed else FINE, detail=detail))
            continue
        if not calls:
            detail = f"it comes with {PENDING[hook]}" if hook in PENDING else "this session gave no occasion for it"
            rows.append(CheckRow(check=hook, result=OPEN, detail=detail))
            continue
        told = f"{len(calls)} {'call' if len(calls) == 1 else 'calls'}, the slowest took {slowest * 1000:.1f} ms"
        told += "".join(f", {outcomes.count(word)} {word}" for word in ("failed", "refused") if word in outcomes)
        slow = slowest > SLOW_SECONDS
        told += "; write slow work as 'async def', so that it can be ended" if slow else ""
        rows.append(CheckRow(check=hook, result=BROKEN if outcomes else SLOW if slow else FINE, detail=told))
    return rows


def _note_rows(heard: _Heard, told: Sequence[Note]) -> list[CheckRow]:
    fresh = {note.text: note for note in heard.notes}
    for note in told:
        fresh.pop(note.text, None)
    return [
        CheckRow(check="note", result=FINE if note.severity is Severity.INFO else BROKEN, detail=note.text)
        for note in fresh.values()
    ]


class _Silent:
    """A printer that prints nothing: the report is what is shown."""

    def __call__(self, event: Event) -> None:
        """Take one event."""

    def finish(self, *said: object) -> None:
        """Take the end."""


@click.command(name="check")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@listing_option
def command(directory: Path, form: str) -> int:
    """Run the plugin in DIRECTORY through a scripted session and report. Its code runs; its folder is not changed.

    Exit 1 when anything is broken.
    """
    folder = Path(os.path.realpath(directory))
    if not (folder / PLUGIN_MANIFEST).is_file():
        raise click.ClickException(f"{directory} holds no {PLUGIN_MANIFEST}; name a plugin's folder.")
    if not DIRECTORY_NAME.fullmatch(folder.name):
        raise click.ClickException(
            f"{folder.name!r} is no name of a plugin's folder: a letter, then letters, digits, '_', '-' or '.', "
            "64 at most; rename it."
        )
    return check_plugin(folder, form)
