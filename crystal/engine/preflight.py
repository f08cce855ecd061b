"""Everything that can be wrong with a session before it exists: checked first, so that bad input writes nothing."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from crystal.engine.approval.grants import AllowRule, CallKey, allow_fault
from crystal.engine.approval.review_model import choose_review
from crystal.engine.budgets import Budgets
from crystal.engine.extensions import ExtensionOptions, Extensions, load_extensions
from crystal.engine.provider_client import ModelUnusable, make_client
from crystal.engine.state import ReviewModel
from crystal.host.build import Host, closed_on_failure
from crystal.host.sources.builtin import FoundPlugin
from crystal.store.config import ApprovalModel, Config, load_config
from crystal.store.home import Home
from crystal.store.permissions import load_grants
from crystal.store.providers import ProviderDefinition, load_providers, resolve_headers, resolve_key
from crystal.store.secrets import Redactor, collect_secrets
from crystal.types._frozen import Frozen
from crystal.types._readonly import EMPTY
from crystal.types.approval import ApprovalMode
from crystal.types.model import ModelClient, ModelSettings
from crystal.types.tools import Catalog


class SetupError(Exception):
    """A session cannot be opened as asked; the message is one sentence that names what and where."""

    exit_code = 1


class SessionOptions(Frozen):
    """What a session is opened with; ``None`` leaves a value to the configuration.

    :param workspace: the folder named for this process, or ``None`` for the working directory, which a resumed session
        then leaves for its own.
    :param resume: id or prefix of a session to resume.
    :param continue_latest: resume the latest session of the workspace.
    :param approval_model: whether reviews use a model of their own; a named provider or model says that they do.
    :param plugins: whether plugins are looked for; ``external_tools`` says so of tool sets.
    :param trust_project: whether everything counts that the workspace brings, without being remembered.
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
    approval_model: bool | None = None
    approval_provider: str | None = None
    approval_model_id: str | None = None
    mode: Catalog = Catalog.WORK
    budgets: Budgets = Budgets()
    allow: tuple[AllowRule, ...] = ()
    resume: str | None = None
    continue_latest: bool = False
    disabled_tools: tuple[str, ...] = ()
    plugins: bool | None = None
    external_tools: bool | None = None
    trust_project: bool = False
    blocked_plugins: tuple[str, ...] = ()
    extra_plugins: tuple[FoundPlugin, ...] = ()
    client_options: Mapping[str, Any] = EMPTY
    program_timeout: float | None = None
    wrap_client: Callable[[ModelClient], ModelClient] | None = None
    trace: Callable[[str, str, float, str], None] | None = None


MakeClient = Callable[[Host, bool], ModelClient]
"""Makes a new client on the session's model by the factories of a host; the flag says whether it takes images."""


class Checked(Frozen):
    """What was found to be in order before anything is written.

    :param reload: loads every extension anew, by the configuration as it is then.
    """

    definition: ProviderDefinition
    settings: ModelSettings
    client: ModelClient
    make_client: MakeClient
    review: ReviewModel | None
    approval: ApprovalMode
    redactor: Redactor
    extensions: Extensions
    reload: Callable[[], Awaitable[Extensions]]
    grants: tuple[CallKey, ...]
    program_timeout: float | None
    login_shell: bool


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


async def check(options: SessionOptions, workspace: Path, environ: Mapping[str, str]) -> Checked:
    """Check configuration, provider, model, key, plugins and script, and build the host and the client.

    :raises SetupError: for a mode, protocol or script that cannot be used.
    :raises StoreError: for a broken file of the home, an unknown provider or model, a missing key.
    :raises HostOptionError: for an option that names an unknown plugin or tool.
    """
    config, config_notes = load_config(options.home)
    providers, provider_notes = load_providers(options.home)
    approval = options.approval or config.approval
    definition, settings = providers.choose(options.provider, options.model, config)
    key = resolve_key(definition, environ, options.home)
    headers = resolve_headers(definition, environ, options.home)
    grants = tuple(
        CallKey(origin=grant.origin, tool=grant.tool, command=grant.command)
        for grant in load_grants(options.home)
        if grant.workspace == str(workspace)
    )
    if options.trust_project and config.project_trust == "never":
        raise SetupError("projectTrust is never in config.json; set it to ask, or leave out --trust-project.")
    extending = ExtensionOptions(
        plugins=options.plugins,
        external_tools=options.external_tools,
        trust_project=options.trust_project,
        blocked=options.blocked_plugins,
        disabled_tools=options.disabled_tools,
        extra=options.extra_plugins,
    )

    async def reload() -> Extensions:
        loaded = await load_extensions(extending, load_config(options.home)[0], options.home, workspace)
        loaded.host.ledger.trace = options.trace
        return loaded

    extensions = await load_extensions(extending, config, options.home, workspace)
    host = extensions.host
    with closed_on_failure(host):
        _check_allowed(options.allow, host)
        host.ledger.trace = options.trace
        for note in (*config_notes, *provider_notes):
            host.notes.add_note(note)
        redactor = Redactor(collect_secrets(providers, environ, options.home))

        def make_session_client(host: Host, accepts_images: bool) -> ModelClient:
            return make_client(host, definition, settings, key, headers, options.client_options, accepts_images)

        try:
            client = make_session_client(host, settings.image_input)
            review = choose_review(
                _approval_model(options, config),
                providers,
                definition,
                environ,
                options.home,
                client_options=options.client_options,
                wrap_client=options.wrap_client,
            )
            if review is not None and review.model.protocol not in host.factories:
                raise ModelUnusable(
                    f"The approval model's protocol '{review.model.protocol}' is served by nothing here."
                )
        except ModelUnusable as error:
            # A factory's own words may hold the key it was given.
            raise SetupError(redactor.apply(str(error))) from None
        return Checked(
            definition=definition,
            settings=settings,
            client=client if options.wrap_client is None else options.wrap_client(client),
            make_client=make_session_client,
            review=review,
            approval=approval,
            redactor=redactor,
            extensions=extensions,
            reload=reload,
            grants=grants,
            program_timeout=_finite(options.program_timeout or config.bash_timeout_seconds),
            login_shell=config.bash_login,
        )


def working_directory() -> Path:
    """Return the folder this process stands in.

    :raises SetupError: when it was deleted.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise SetupError(
            "The working directory does not exist any more; change to another, or name one with -w."
        ) from error


def _approval_model(options: SessionOptions, config: Config) -> ApprovalModel:
    """Return the configured approval model as this process wants it."""
    configured = config.approval_model
    named = options.approval_provider is not None or options.approval_model_id is not None
    if options.approval_provider is not None and options.approval_provider != configured.provider:
        configured = dataclasses.replace(configured, provider=options.approval_provider, model="")
    if options.approval_model_id is not None:
        configured = dataclasses.replace(configured, model=options.approval_model_id)
    if options.approval_model is not None or named:
        configured = dataclasses.replace(configured, enabled=options.approval_model is not False)
    return configured


def _check_allowed(rules: tuple[AllowRule, ...], host: Host) -> None:
    for rule in rules:
        if rule.tool not in host.tools:
            known = ", ".join(host.tools)
            raise SetupError(f"--allow {rule.tool or repr('')}: there is no such tool; there are: {known}.")
        fault = allow_fault(rule, host.tools[rule.tool])
        if fault:
            raise SetupError(f"--allow {rule.tool}:{rule.command}: {fault}.")


def _finite(seconds: float | None) -> float | None:
    return None if seconds == float("inf") else seconds
