"""Load everything that extends the host: installed packages, disk plugins and the plugins of this process."""

from __future__ import annotations

from pathlib import Path

from crystal.host.build import Host, HostOptions, build_host, environment_of
from crystal.host.sources.builtin import FoundPlugin
from crystal.host.sources.packages import PackagePlugin, find_packages, load_packages
from crystal.store.config import Config
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


async def load_extensions(options: ExtensionOptions, config: Config, workspace: Path) -> Extensions:
    """Find, filter, load and register every extension.

    :raises HostOptionError: for an option that names an unknown plugin or tool.
    """
    enabled = config.plugins if options.plugins is None else options.plugins
    packages = find_packages() if enabled else ()
    switched_on = [package for package in packages if not _is_off(package, config, options)]
    loaded, notes = load_packages(switched_on)
    host = await build_host(
        HostOptions(
            hook_timeout=config.hook_timeout_seconds,
            blocked=options.blocked,
            disabled_tools=options.disabled_tools,
        ),
        [*loaded, *options.extra],
        earlier=notes,
        known=[package.full_name for package in packages if package not in switched_on],
    )
    return Extensions(host=host, environment=environment_of(host))


def _is_off(package: PackagePlugin, config: Config, options: ExtensionOptions) -> bool:
    """A package has no manifest; the configuration or the process switches it off, before any of it is imported."""
    names = {package.name, package.full_name}
    return not names.isdisjoint(config.disabled_plugins) or not names.isdisjoint(options.blocked)
