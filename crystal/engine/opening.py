"""Open a session: check everything that can be wrong first, then make or resume it. Nothing is written before that."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from crystal.engine.approval.grants import AllowRule, CallKey, SessionGrants
from crystal.engine.budgets import Budgets
from crystal.engine.catalog import compose_catalog
from crystal.engine.ids import ItemIds, new_session_id
from crystal.engine.prompts.compose import compose_system
from crystal.engine.repair import arrange
from crystal.engine.session import Session
from crystal.engine.state import SessionState, Surroundings
from crystal.engine.transcript import Transcript
from crystal.host.build import Host, HostOptions, build_host
from crystal.host.sources.builtin import FoundPlugin
from crystal.store.config import load_config
from crystal.store.home import Home
from crystal.store.media import MediaStore
from crystal.store.permissions import load_grants
from crystal.store.providers import ProviderDefinition, load_providers, resolve_headers, resolve_key
from crystal.store.secrets import Redactor, collect_secrets
from crystal.store.sessions import SessionRecord, SessionStore
from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY
from crystal.types.approval import ApprovalMode
from crystal.types.environment import ModelFacts, SessionModels
from crystal.types.events import Event, LoadedPlugin, NoteAdded, SessionOpened
from crystal.types.items import ModelItem, SystemItem
from crystal.types.model import ClientRequest, ModelClient, ModelError, ModelSettings
from crystal.types.notes import Note, NoteCode, Severity
from crystal.types.tools import Catalog

TITLE_CHARACTERS = 60
_UNBUILT_MODES = (ApprovalMode.REVIEW, ApprovalMode.AUDIT)


class SetupError(Exception):
    """A session cannot be opened as asked; the message is one sentence that names what and where."""

    exit_code = 1


class SessionOptions(Frozen):
    """What a session is opened with; ``None`` leaves a value to the configuration.

    :param workspace: the folder named for this process, or ``None`` for the working directory, which a resumed session
        then leaves for its own.
    :param resume: id or prefix of a session to resume.
    :param continue_latest: resume the latest session of the workspace.
    :param client_options: protocol-specific values of this process, such as the script of ``scripted``.
    :param program_timeout: seconds a program started by a tool may take when its call names no limit; infinity for
        none, ``None`` for the configured value.
    :param wrap_client: stands between the session and its client, to record what it was sent.
    :param trace: hears every hook call.
    """

    home: Home
    workspace: Path | None = None
    provider: str | None = None
    model: str | None = None
    approval: ApprovalMode | None = None
    mode: Catalog = Catalog.WORK
    budgets: Budgets = Budgets()
    allow: tuple[AllowRule, ...] = ()
    resume: str | None = None
    continue_latest: bool = False
    disabled_tools: tuple[str, ...] = ()
    blocked_plugins: tuple[str, ...] = ()
    extra_plugins: tuple[FoundPlugin, ...] = ()
    client_options: Mapping[str, Any] = EMPTY
    program_timeout: float | None = None
    wrap_client: Callable[[ModelClient], ModelClient] | None = None
    trace: Callable[[str, str, float, str], None] | None = None


class Checked(Frozen):
    """What was found to be in order before anything is written."""

    definition: ProviderDefinition
    settings: ModelSettings
    client: ModelClient
    approval: ApprovalMode
    redactor: Redactor
    host: Host
    grants: tuple[CallKey, ...]
    program_timeout: float | None


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
    workspace = check_workspace(options.workspace or Path.cwd())
    if options.resume is None and not options.continue_latest:
        checked = await _check(options, workspace, environ)
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
            checked = await _check(options, workspace, environ)
            if record.workspace != str(asked):
                checked.host.notes.add_note(_moved(record, workspace))
        except BaseException:
            store.close()
            raise
    try:
        store.claim(record.id)
        return await _start(options, checked, store, record, workspace, emit, around)
    except BaseException:
        store.close()
        raise


def check_workspace(path: Path) -> Path:
    """Return the real path of a usable workspace.

    :raises SetupError: when it is no folder that can be read.
    """
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        raise SetupError(f"The workspace {path} is not a folder; name another with -w.")
    if not os.access(real, os.R_OK | os.X_OK):
        raise SetupError(f"The workspace {path} cannot be read; change its permissions or name another with -w.")
    return real


async def _check(options: SessionOptions, workspace: Path, environ: Mapping[str, str]) -> Checked:
    config, config_notes = load_config(options.home)
    providers, provider_notes = load_providers(options.home)
    approval = options.approval or config.approval
    if approval in _UNBUILT_MODES:
        raise SetupError(
            f"The approval mode '{approval.value}' needs the reviewing model, which this version does not have; "
            "choose default, edit or full."
        )
    definition, settings = providers.choose(options.provider, options.model, config)
    key = resolve_key(definition, environ, options.home)
    headers = resolve_headers(definition, environ, options.home)
    grants = tuple(
        CallKey(origin=grant.origin, tool=grant.tool, command=grant.command)
        for grant in load_grants(options.home)
        if grant.workspace == str(workspace)
    )
    host = await build_host(
        HostOptions(
            hook_timeout=config.hook_timeout_seconds,
            blocked=options.blocked_plugins,
            disabled_tools=options.disabled_tools,
        ),
        options.extra_plugins,
    )
    host.ledger.trace = options.trace
    for note in (*config_notes, *provider_notes):
        host.notes.add_note(note)
    redactor = Redactor(collect_secrets(providers, environ, options.home))
    try:
        client = _make_client(host, definition, settings, key, headers, options.client_options)
    except SetupError as error:
        # A factory's own words may hold the key it was given.
        raise SetupError(redactor.apply(str(error))) from None
    return Checked(
        definition=definition,
        settings=settings,
        client=client if options.wrap_client is None else options.wrap_client(client),
        approval=approval,
        redactor=redactor,
        host=host,
        grants=grants,
        program_timeout=_finite(options.program_timeout or config.bash_timeout_seconds),
    )


def _finite(seconds: float | None) -> float | None:
    return None if seconds == float("inf") else seconds


def _make_client(
    host: Host,
    definition: ProviderDefinition,
    settings: ModelSettings,
    key: str,
    headers: Mapping[str, str],
    client_options: Mapping[str, Any],
) -> ModelClient:
    registered = host.factories.get(definition.protocol)
    if registered is None:
        known = ", ".join(sorted(host.factories))
        raise SetupError(
            f"Provider '{definition.name}' speaks the protocol '{definition.protocol}', which nothing here serves; "
            f"served are: {known}."
        )
    request = ClientRequest(
        provider=definition.name,
        protocol=definition.protocol,
        base_uri=definition.base_uri,
        api_key=key,
        model=settings,
        organization=definition.organization,
        project=definition.project,
        headers=headers,
        accepts_images=settings.image_input,
        accepts_audio=settings.audio_input,
        accepts_video=settings.video_input,
        options={"replayReasoningContent": definition.replay_reasoning_content, **client_options},
    )
    try:
        return registered.factory.create(request)
    except ModelError as error:
        raise SetupError(error.message) from error
    except Exception as error:
        raise SetupError(
            f"Plugin '{registered.plugin}' could not make a client for '{definition.protocol}': "
            f"{type(error).__name__}: {error}"
        ) from error


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
    host = checked.host
    items = _load_items(store, record, ids, host)
    settings = checked.settings
    model = ModelFacts(
        provider=checked.definition.name,
        protocol=checked.definition.protocol,
        name=settings.name,
        context_window=settings.context_window,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        image_input=settings.image_input,
        audio_input=settings.audio_input,
        video_input=settings.video_input,
        thinking=settings.thinking or "default",
    )
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
    )
    await host.hooks.attach_session(SessionModels(lambda: state.model))
    await _compose_prompt(state)
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


async def _compose_prompt(state: SessionState) -> None:
    day = time.strftime("%Y-%m-%d", time.localtime(state.surroundings.now()))
    facts = compose_system(
        state.mode, state.workspace, f"{state.model.provider}/{state.model.name}", day
    )
    text = await state.host.hooks.compose_prompt(facts)
    state.transcript.set_system(SystemItem(id="system", text=text))
    state.store.set_system(state.session_id, text)


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
