"""Life of a plugin after its contributions, and of a session. The order after load is:

1. :func:`attach` 2. :func:`attach_session` 3. :func:`attach_clients` 4. :func:`attach_data_directories`
5. :func:`attach_status` 6. :func:`on_session_started` … 7. :func:`on_session_ended`
"""

from __future__ import annotations

from pathlib import Path

from crystal.hookspecs._kinds import notify
from crystal.types.environment import Environment, ModelClients, SessionModels, StatusUpdates
from crystal.types.session import SessionFacts


@notify("A read-only snapshot; it enables, disables, invokes and reorders nothing.")
def attach(environment: Environment) -> None:
    """Called after every contribution of every plugin is admitted, and again when the catalogs reload.

    :param environment: what was discovered and loaded: plugins, tool sets, their tools, skills. Built-in tools are not
        listed.
    """


@notify("A live, read-only view: reading it again gives what is in use then.")
def attach_session(models: SessionModels) -> None:
    """Called after :func:`attach`, once for a loaded plugin.

    :param models: facts of the session and review models; no key, endpoint, organization or project is among them.
    """


@notify("Only for a plugin that implements it; the host names that plugin in a note.")
def attach_clients(clients: ModelClients) -> None:
    """Called after :func:`attach_session`, for a plugin that wants to call the models itself.

    Such a call spends the operator's credentials and enters neither the transcript, the approval path nor the turn's
    budget. Read the properties again after the model changed: old clients are dropped.
    """


@notify("Both directories are the plugin's own; neither is a place for secrets.")
def attach_data_directories(global_directory: Path, project_directory: Path) -> None:
    """Called after :func:`attach_clients` for a disk plugin or an installed package, with its two
    runtime directories.

    :param global_directory: shared by all workspaces. A directory that could not be made may be missing.
    :param project_directory: belongs to the current workspace and lies inside it.
    """


@notify("Only for a plugin with an admitted status field, once for a loaded plugin.")
def attach_status(updates: StatusUpdates) -> None:
    """Called last of the attach hooks, with the sink for the plugin's status fields.

    The plugin pushes text, from any thread; the host never polls. An implementation that raises closes its sink.
    """


@notify("May read the facts; may not prompt the operator or write configuration.")
def on_session_started(session: SessionFacts) -> None:
    """Called when a session becomes active: new, resumed or forked, after every attach hook."""


@notify("May read the facts; may not prompt the operator or write configuration.")
def on_session_ended(session: SessionFacts) -> None:
    """Called when a session closes or is replaced; the facts are those of the session being left."""
