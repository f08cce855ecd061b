"""Open a session: after the checks of :mod:`crystal.engine.preflight`, make it or resume it, and say so."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from crystal.engine.approval.grants import SessionGrants
from crystal.engine.catalog import compose_catalog
from crystal.engine.ids import ItemIds, new_session_id
from crystal.engine.preflight import Checked, SessionOptions, SetupError, check, check_workspace, working_directory
from crystal.engine.provider_client import model_facts
from crystal.engine.reload import settle
from crystal.engine.repair import arrange
from crystal.engine.session import Session
from crystal.engine.state import SessionState, Surroundings
from crystal.engine.transcript import Transcript
from crystal.host.build import Host, closed_on_failure
from crystal.store.media import MediaStore
from crystal.store.sessions import SessionRecord, SessionStore
from crystal.types.events import Event, LoadedPlugin, NoteAdded, SessionOpened
from crystal.types.items import ModelItem
from crystal.types.notes import Note, NoteCode, Severity
from crystal.types.tools import Catalog

TITLE_CHARACTERS = 60


async def open_session(
    options: SessionOptions,
    emit: Callable[[Event], None],
    title: str,
    environ: Mapping[str, str],
    surroundings: Surroundings | None = None,
) -> Session:
    """Open a new session, or resume one.

    :param emit: hears every event; it must not block.
    :param title: the task; its first line, cut at 60 characters, names a new session.
    :raises SetupError: for a workspace, session, mode or script that cannot be used.
    :raises StoreError: for a broken file of the home, an unknown provider or model, a missing key, a busy session.
    :raises HostOptionError: for an option that names an unknown plugin or tool.
    """
    around = surroundings or Surroundings(
        now=time.time, monotonic=time.monotonic, chance=random.random, sleep=asyncio.sleep
    )
    workspace = check_workspace(options.workspace or working_directory())
    if options.resume is None and not options.continue_latest:
        checked = await check(options, workspace, environ)
        with closed_on_failure(checked.extensions.host):
            store = SessionStore.open(options.home)
            record = _new_record(checked, workspace, title, options.mode, around.now())
            store.create(record)
    else:
        if not options.home.database.exists():
            raise SetupError(f"There is no saved session in {options.home.root}; start one without -r and -c.")
        store = SessionStore.open(options.home)
        try:
            record = _find_record(store, options, workspace)
            asked, workspace = workspace, _workspace_of(options, record, workspace)
            checked = await check(options, workspace, environ)
            if record.workspace != str(asked):
                checked.extensions.host.notes.add_note(_moved(record, workspace))
        except BaseException:
            store.close()
            raise
    try:
        with closed_on_failure(checked.extensions.host):
            store.claim(record.id)
            # Read again: another process may have gone on with the session until it was claimed.
            return await _start(options, checked, store, store.get(record.id), workspace, emit, around)
    except BaseException:
        store.close()
        raise


def _new_record(checked: Checked, workspace: Path, title: str, mode: Catalog, now: float) -> SessionRecord:
    first_line = checked.redactor.apply(title.strip()).partition("\n")[0]
    return SessionRecord(
        id=new_session_id(now),
        workspace=str(workspace),
        title=first_line[:TITLE_CHARACTERS],
        provider=checked.definition.name,
        model=checked.settings.name,
        mode="plan" if mode is Catalog.PLAN else "work",
        created=now,
        updated=now,
        turns=0,
        items=0,
    )


def _find_record(store: SessionStore, options: SessionOptions, workspace: Path) -> SessionRecord:
    if options.resume is not None:
        return store.get(options.resume)
    latest = store.latest(str(workspace))
    if latest is None:
        raise SetupError(f"There is no session of {workspace} to continue; start one without -c.")
    return latest


def _workspace_of(options: SessionOptions, record: SessionRecord, workspace: Path) -> Path:
    """A session belongs to its workspace unless this process names another."""
    return workspace if options.workspace is not None else check_workspace(Path(record.workspace))


async def _start(
    options: SessionOptions,
    checked: Checked,
    store: SessionStore,
    record: SessionRecord,
    workspace: Path,
    emit: Callable[[Event], None],
    around: Surroundings,
) -> Session:
    ids = ItemIds()
    host = checked.extensions.host
    items = _load_items(store, record, ids, host)
    model = model_facts(checked.definition, checked.settings)
    state = SessionState(
        session_id=record.id,
        workspace=workspace,
        home=options.home,
        host=host,
        store=store,
        media=MediaStore(options.home.media),
        redactor=checked.redactor,
        client=checked.client,
        model=model,
        review=checked.review,
        approval=checked.approval,
        catalog=compose_catalog(host.tools, options.mode),
        transcript=Transcript(store, record.id, items, record.turns),
        budgets=options.budgets,
        allow=options.allow,
        grants=SessionGrants(checked.grants),
        emit=emit,
        surroundings=around,
        ids=ids,
        program_timeout=checked.program_timeout,
        login_shell=checked.login_shell,
        make_client=checked.make_client,
        load_extensions=checked.reload,
    )
    await settle(state, checked.extensions)
    # A local name: the listener must see the notes that the session-start hook causes.
    earlier = host.notes.listen(lambda note: emit(NoteAdded(note=note)))
    emit(
        SessionOpened(
            session_id=record.id,
            workspace=str(workspace),
            provider=model.provider,
            model=model.name,
            approval=state.approval,
            resumed=bool(items) or record.turns > 0,
            plugins=_loaded(host),
            skipped=tuple(note for note in earlier if note.severity is not Severity.INFO),
        )
    )
    for note in earlier:
        emit(NoteAdded(note=note))
    await host.hooks.on_session_started(state.facts)
    return Session(state)


def _load_items(store: SessionStore, record: SessionRecord, ids: ItemIds, host: Host) -> tuple[ModelItem, ...]:
    items, notes = store.load_items(record.id)
    for note in notes:
        host.notes.add_note(note)
    repaired = arrange(items, ids.new)
    if repaired.added:
        store.append(record.id, record.turns, repaired.added)
        host.notes.add_note(
            Note(
                code=NoteCode.SESSION_REPAIRED,
                text=f"{len(repaired.added)} tool call(s) of the session had no result and got one that says so; "
                "none was run again.",
                severity=Severity.INFO,
            )
        )
    return repaired.items


def _moved(record: SessionRecord, workspace: Path) -> Note:
    text = f"The session goes on in its own workspace, {workspace}."
    if record.workspace != str(workspace):
        text = f"The session of {record.workspace} goes on in {workspace}, as -w says."
    return Note(code=NoteCode.SESSION_MOVED, text=text, severity=Severity.INFO)


def _loaded(host: Host) -> tuple[LoadedPlugin, ...]:
    def tools_of(name: str) -> Iterable[str]:
        return (tool for tool, found in host.tools.items() if found.plugin == name)

    return tuple(
        LoadedPlugin(name=name, hooks=host.plugins.hooks_of(name), tools=tuple(tools_of(name)))
        for name in host.plugins.names
    )
