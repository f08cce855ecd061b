"""Load everything that extends the host: installed packages, disk plugins and the plugins of this process."""

from __future__ import annotations

import os
from pathlib import Path

from crystal.host.build import Host, HostOptions, build_host
from crystal.host.sources.builtin import FoundPlugin
from crystal.host.sources.packages import PackagePlugin, find_packages, load_packages
from crystal.store.config import Config
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.environment import Environment


class ExtensionOptions(Frozen):
    """What this process says about extensions, beyond the configuration.

    :param plugins: overrides the configured switch.
    :param blocked: plugins left out of this process.
    :param disabled_tools: built-in tools left out of this process.
    :param extra: plugins of this process, registered last.
    """

    plugins: bool | None = None
    blocked: tuple[str, ...] = ()
    disabled_tools: tuple[str, ...] = ()
    extra: tuple[FoundPlugin, ...] = ()


class Extensions(Frozen):
    """A host with everything loaded, and the snapshot of what was found."""

    host: Host
    environment: Environment


async def load_extensions(options: ExtensionOptions, config: Config, home: Home, workspace: Path) -> Extensions:
    """Find, filter, load and register every extension.

    :param workspace: real path.
    :raises HomeFileError: for a broken ``trust.json``.
    :raises HostOptionError: for an option that names an unknown plugin or tool.
    """
    enabled = config.plugins if options.plugins is None else options.plugins
    packages = find_packages() if enabled else ()
    switched_on = [package for package in packages if not _is_off(package, config, options)]
    loaded, notes = load_packages(switched_on)
    disk = None
    if enabled and (_is_there(home.root / "plugins") or _is_there(workspace / ".crystal" / "plugins")):
        # Imported only here: a run without plugins pays nothing for what loads them.
        from crystal.host.sources.loaded import load_disk_plugins

        disk = load_disk_plugins(home, workspace, config.project_trust, frozenset(options.blocked))
    host = await build_host(
        HostOptions(
            hook_timeout=config.hook_timeout_seconds,
            blocked=options.blocked,
            disabled_tools=options.disabled_tools,
        ),
        [*loaded, *(disk.plugins if disk else ()), *options.extra],
        earlier=[*notes, *(disk.notes if disk else ())],
        known=[
            *(package.full_name for package in packages if package not in switched_on),
            *(disk.left_out if disk else ()),
        ],
    )
    names = {name: host.plugins.display_name(name) for name in host.plugins.names}
    return Extensions(host=host, environment=Environment(plugins=disk.facts(names) if disk else ()))


def _is_there(folder: Path) -> bool:
    return os.path.lexists(folder)


def _is_off(package: PackagePlugin, config: Config, options: ExtensionOptions) -> bool:
    """A package has no manifest; the configuration or the process switches it off, before any of it is imported."""
    names = {package.name, package.full_name}
    return not names.isdisjoint(config.disabled_plugins) or not names.isdisjoint(options.blocked)
