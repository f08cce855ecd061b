"""Extensions of an open session: hand a loaded host to the session, and load everything anew in its place."""

from __future__ import annotations

from crystal.engine.attaching import attach_plugins
from crystal.engine.catalog import compose_catalog
from crystal.engine.closing import close_client
from crystal.engine.extensions import Extensions
from crystal.engine.plugin_clients import ClientMakers
from crystal.engine.prompts.compose import compose_system
from crystal.engine.state import SessionState
from crystal.host.admission import RegisteredFactory
from crystal.host.build import Host
from crystal.host.isolation import describe_error
from crystal.host.reserved import BUILTIN_PROTOCOLS
from crystal.types.environment import ReviewFacts, SessionModels
from crystal.types.events import NoteAdded
from crystal.types.items import SystemItem
from crystal.types.notes import NoteCode


async def settle(state: SessionState, extensions: Extensions) -> None:
    """Run the attach stages of the session's host and compose its system prompt."""
    host = extensions.host
    models = SessionModels(lambda: state.model, lambda: _review_facts(state))
    state.attached = await attach_plugins(
        host,
        extensions.environment,
        models,
        lambda: _client_makers(state, host),
        state.workspace,
        state.home.root,
    )
    state.environment, state.models, state.templates = extensions.environment, models, extensions.templates
    text = state.redactor.apply(await host.hooks.compose_prompt(compose_system(state)))
    state.transcript.set_system(SystemItem(id="system", text=text))
    state.store.set_system(state.session_id, text)


def _review_facts(state: SessionState) -> ReviewFacts:
    return ReviewFacts() if state.review is None else ReviewFacts(independent=True, model=state.review.model)


def _client_makers(state: SessionState, host: Host) -> ClientMakers:
    review = state.review
    return ClientMakers(
        session=lambda images: state.make_client(host, images),
        accepts_images=state.model.image_input,
        review=None if review is None else lambda: review.make(host),
    )


async def reload_extensions(state: SessionState) -> None:
    """Load every extension anew and retire the instances there were; the conversation stays.

    Old sinks and clients are closed and the code of old disk plugins leaves the process, the catalog is frozen anew,
    the new plugins hear that a session started. Nothing changes when loading fails.

    :raises StoreError: for a broken file of the home.
    :raises HostOptionError: for an option of this process that names a plugin or tool that is gone.
    """
    extensions = await state.load_extensions()
    old, new = state.host, extensions.host
    await retire_attached(state)
    state.host = new
    if await _renew_client(state, old, new):
        old.close()
    else:
        state.retired_hosts.append(old)
    state.catalog = compose_catalog(new.tools, state.mode)
    await settle(state, extensions)
    for note in new.notes.listen(lambda note: state.emit(NoteAdded(note=note))):
        state.emit(NoteAdded(note=note))
    await new.hooks.on_session_started(state.facts)


async def retire_attached(state: SessionState) -> None:
    """Close the sinks and clients that the plugins hold, and the client of a separate review model."""
    retire_sinks(state)
    for clients in state.attached.clients.values():
        for client in clients.retire():
            await close_client(state, client)
    reviewing = state.drop_review_client()
    if reviewing is not None:
        await close_client(state, reviewing)


def retire_sinks(state: SessionState) -> None:
    """Close the sinks that the plugins hold; again does nothing."""
    for sink in state.attached.sinks:
        sink.close()


async def _renew_client(state: SessionState, old: Host, new: Host) -> bool:
    """Make the session's client anew when a plugin serves its protocol; one that is gone leaves the old client.

    :return: whether the session needs no code of the old host any more.
    """
    protocol = state.model.protocol
    if protocol in BUILTIN_PROTOCOLS or _factory(old, protocol) is _factory(new, protocol):
        return True
    try:
        client = state.make_client(new, state.model.image_input)
    except Exception as error:
        new.notes.add(
            NoteCode.CLIENT_ERROR,
            f"The session keeps its client for the protocol '{protocol}': "
            f"{state.redactor.apply(describe_error(error))}",
        )
        return False
    state.client, retired = client, state.client
    await close_client(state, retired)
    return True


def _factory(host: Host, protocol: str) -> object:
    found: RegisteredFactory | None = host.factories.get(protocol)
    return None if found is None else found.factory
