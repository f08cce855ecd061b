"""Extensions of an open session: hand a loaded host to the session, and load everything anew in its place."""

from __future__ import annotations

import time

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
    state.attached = await attach_plugins(
        host,
        extensions.environment,
        SessionModels(lambda: state.model, lambda: _review_facts(state)),
        lambda: _client_makers(state, host),
        state.workspace,
        state.home.root,
    )
    day = time.strftime("%Y-%m-%d", time.localtime(state.surroundings.now()))
    facts = compose_system(state.mode, state.workspace, f"{state.model.provider}/{state.model.name}", day)
    text = state.redactor.apply(await host.hooks.compose_prompt(facts))
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

    Old sinks and clients are closed, the catalog is frozen anew, the new plugins hear that a session started. Nothing
    changes when loading fails.

    :raises StoreError: for a broken file of the home.
    :raises HostOptionError: for an option of this process that names a plugin or tool that is gone.
    """
    extensions = await state.load_extensions()
    old, new = state.host, extensions.host
    await retire_attached(state)
    state.host = new
    await _renew_client(state, old, new)
    state.catalog = compose_catalog(new.tools, state.mode)
    await settle(state, extensions)
    for note in new.notes.listen(lambda note: state.emit(NoteAdded(note=note))):
        state.emit(NoteAdded(note=note))
    await new.hooks.on_session_started(state.facts)


async def retire_attached(state: SessionState) -> None:
    """Close the sinks and clients that the plugins hold, and the client of a separate review model."""
    attached = state.attached
    for sink in attached.sinks:
        sink.close()
    for clients in attached.clients.values():
        for client in clients.drop():
            await close_client(state, client)
    reviewing = state.drop_review_client()
    if reviewing is not None:
        await close_client(state, reviewing)


async def _renew_client(state: SessionState, old: Host, new: Host) -> None:
    """Make the session's client anew when a plugin serves its protocol; one that is gone leaves the old client."""
    protocol = state.model.protocol
    if protocol in BUILTIN_PROTOCOLS or _factory(old, protocol) is _factory(new, protocol):
        return
    try:
        client = state.make_client(new, state.model.image_input)
    except Exception as error:
        new.notes.add(
            NoteCode.CLIENT_ERROR,
            f"The session keeps its client for the protocol '{protocol}': "
            f"{state.redactor.apply(describe_error(error))}",
        )
        return
    state.client, retired = client, state.client
    await close_client(state, retired)


def _factory(host: Host, protocol: str) -> object:
    found: RegisteredFactory | None = host.factories.get(protocol)
    return None if found is None else found.factory
