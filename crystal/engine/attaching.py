"""The attach stages: what each loaded plugin is handed once every contribution is in, in the order of the hooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crystal.engine.plugin_clients import ClientMakers, PluginClients
from crystal.host.build import Host
from crystal.host.status import StatusSink
from crystal.types._frozen import Frozen
from crystal.types.environment import Environment, SessionModels
from crystal.types.notes import NoteCode, Severity
from crystal.workspace.data_directories import LinkInPath, ignore_in_git, make_data_directory


class Attached(Frozen):
    """What was handed out and ends with the plugins.

    :param clients: by full plugin name.
    """

    clients: dict[str, PluginClients]
    sinks: tuple[StatusSink, ...]


_KINDS = {"package": "packages", "toolset": "tools"}
NOTHING_ATTACHED = Attached(clients={}, sinks=())


async def attach_plugins(
    host: Host,
    environment: Environment,
    models: SessionModels,
    makers: Callable[[], ClientMakers],
    workspace: Path,
    home: Path,
) -> Attached:
    """Run every attach stage.

    :param makers: how clients for plugins are made.
    :param home: root folder of the Crystal home.
    """
    await host.hooks.attach(environment)
    await host.hooks.attach_session(models)
    clients = await _attach_clients(host, makers)
    for plugin in _outsiders(host, "attach_data_directories"):
        await _attach_data_directories(host, plugin, workspace, home)
    return Attached(clients=clients, sinks=await _attach_status(host))


def _outsiders(host: Host, hook: str) -> list[str]:
    return [plugin for plugin in host.hooks.plugins_with(hook) if not plugin.startswith("builtin:")]


async def _attach_clients(host: Host, makers: Callable[[], ClientMakers]) -> dict[str, PluginClients]:
    clients: dict[str, PluginClients] = {}
    for plugin in _outsiders(host, "attach_clients"):
        host.notes.add(
            NoteCode.MODEL_CLIENTS,
            f"Plugin '{plugin}' can call the session and review models.",
            plugin,
            Severity.INFO,
        )
        clients[plugin] = PluginClients(makers)
        await host.hooks.attach_clients(plugin, clients[plugin])
    return clients


async def _attach_data_directories(host: Host, plugin: str, workspace: Path, home: Path) -> None:
    """Make both directories and hand them over. One that cannot be made is left to the plugin; a link refuses both."""
    names = data_names(plugin)
    everywhere, project = home.joinpath(*names), workspace.joinpath(".crystal", *names)
    try:
        _make(home, names, private=True)
        _make(workspace, (".crystal", *names))
    except LinkInPath as link:
        host.notes.add(
            NoteCode.DATA_DIRECTORY,
            f"Plugin '{plugin}' gets no data directories: {link} is a link; put a folder in its place.",
            plugin,
        )
        return
    await host.hooks.attach_data_directories(plugin, everywhere, project)


def _make(base: Path, names: tuple[str, ...], *, private: bool = False) -> None:
    try:
        make_data_directory(base, names, private=private)
        if not private:
            ignore_in_git(base.joinpath(".crystal", "data"))
    except OSError:
        return  # Not reported: the plugin finds out when it uses the directory.


def data_names(plugin: str) -> tuple[str, str, str]:
    """Return where the runtime directories of a plugin, a package or a tool set lie below those of the host.

    :param plugin: full name, such as ``plugin:home/Acme``.
    """
    source, _, name = plugin.partition(":")
    return "data", _KINDS.get(source, "plugins"), name.rpartition("/")[2]


async def _attach_status(host: Host) -> tuple[StatusSink, ...]:
    sinks = []
    for plugin in host.hooks.plugins_with("attach_status"):
        fields = [field.name for field in host.status_fields.values() if field.plugin == plugin]
        if not fields:
            continue
        sink = host.status.open_sink(plugin, fields)
        if await host.hooks.attach_status(plugin, sink):
            sinks.append(sink)
        else:
            sink.close()
    return tuple(sinks)
