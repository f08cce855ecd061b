"""Load everything that extends the host: installed packages, disk plugins and the plugins of this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from crystal.engine.prompts.texts import BUILT_IN, Templates
from crystal.host.build import Host, HostOptions, build_host
from crystal.host.sources.builtin import FoundPlugin, builtin_plugins
from crystal.host.sources.packages import PackagePlugin, find_packages, load_packages
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry, untrusted_note
from crystal.store.config import Config
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.environment import Environment


class ExtensionOptions(Frozen):
    """What this process says about extensions, beyond the configuration.

    :param plugins: overrides the configured switch; ``external_tools`` does so for tool sets.
    :param trust_project: whether everything counts that the workspace brings; nothing of that is remembered.
    :param blocked: plugins left out of this process.
    :param disabled_tools: built-in tools left out of this process.
    :param extra: plugins of this process, registered last.
    """

    plugins: bool | None = None
    external_tools: bool | None = None
    trust_project: bool = False
    blocked: tuple[str, ...] = ()
    disabled_tools: tuple[str, ...] = ()
    extra: tuple[FoundPlugin, ...] = ()


class Extensions(Frozen):
    """A host with everything loaded, the snapshot of what was found, and the prompts."""

    host: Host
    environment: Environment
    templates: Templates


async def load_extensions(options: ExtensionOptions, config: Config, home: Home, workspace: Path) -> Extensions:
    """Find, filter, load and register every extension.

    :param workspace: real path.
    :raises HomeFileError: for a broken ``trust.json``.
    :raises HostOptionError: for an option that names an unknown plugin or tool.
    """
    enabled = config.plugins if options.plugins is None else options.plugins
    project = ProjectCode.THIS_PROCESS if options.trust_project else ProjectCode(config.project_trust)
    prompts = None
    if _is_there(home.root / "prompts") or _is_there(workspace / ".crystal" / "prompts"):
        # Imported only here: a run without prompt files pays nothing for what reads them.
        from crystal.engine.prompts.overlay import read_templates

        prompts = read_templates(home, workspace, project)
    packages = find_packages() if enabled else ()
    counting, untrusted = _counting(packages, config, options, home, workspace, project)
    loaded, notes = load_packages(counting)
    disk = None
    if enabled and (_is_there(home.root / "plugins") or _is_there(workspace / ".crystal" / "plugins")):
        # Imported only here, for the same reason.
        from crystal.host.sources.loaded import load_disk_plugins

        disk = load_disk_plugins(home, workspace, project, frozenset(options.blocked))
        untrusted += disk.untrusted
    sets = None
    if (config.external_tools if options.external_tools is None else options.external_tools) and (
        _is_there(home.root / "tools") or _is_there(workspace / ".crystal" / "tools")
    ):
        from crystal.host.sources.loaded_tool_sets import load_tool_sets

        sets = load_tool_sets(home, workspace, project, config.external_tool_approval)
        untrusted += sets.untrusted
    told = untrusted_note([*untrusted, *(prompts.untrusted if prompts else ())])
    host = await build_host(
        HostOptions(
            hook_timeout=config.hook_timeout_seconds,
            blocked=options.blocked,
            disabled_tools=options.disabled_tools,
        ),
        [*loaded, *(disk.plugins if disk else ()), *options.extra, *(sets.plugins if sets else ())],
        earlier=[
            *notes,
            *(disk.notes if disk else ()),
            *(sets.notes if sets else ()),
            *(prompts.notes if prompts else ()),
            *([] if told is None else [told]),
        ],
        known=[
            *(package.full_name for package in packages if package not in counting),
            *(disk.left_out if disk else ()),
            *([] if enabled else _unlooked_for(options.blocked)),
        ],
    )
    names = {name: host.plugins.display_name(name) for name in host.plugins.names}
    return Extensions(
        host=host,
        environment=Environment(
            plugins=disk.facts(names, host.plugins.refusals) if disk else (),
            tool_sets=sets.facts(names) if sets else (),
            external_tools=sets.tool_facts(host.tools.values()) if sets else (),
        ),
        templates=prompts.templates if prompts else BUILT_IN,
    )


def _unlooked_for(blocked: Iterable[str]) -> list[str]:
    """Where plugins are not looked for, any name may be that of one."""
    builtin = {plugin.name.rpartition(":")[2] for plugin in builtin_plugins()}
    return [f"plugin:{name.rpartition(':')[2]}" for name in blocked if name.rpartition(":")[2] not in builtin]


def _counting(
    packages: Sequence[PackagePlugin],
    config: Config,
    options: ExtensionOptions,
    home: Home,
    workspace: Path,
    project: ProjectCode,
) -> tuple[list[PackagePlugin], list[ProjectEntry]]:
    """Return the packages to load, and those that the operator does not trust."""
    switched_on = [package for package in packages if not _is_off(package, config, options)]
    inside = [package for package in switched_on if package.lies_in(workspace)]
    if not inside:
        return switched_on, []
    from crystal.host.sources.package_trust import ignore_bytecode_beside, judge_packages

    judged = judge_packages(inside, home, workspace, project)
    left_out = [one.package for one in judged if one.reason]
    if len(left_out) < len(inside):
        ignore_bytecode_beside(home)
    untrusted = [one.entry for one in judged if one.reason and project is not ProjectCode.NEVER]
    return [package for package in switched_on if package not in left_out], untrusted


def _is_there(folder: Path) -> bool:
    return os.path.lexists(folder)


def _is_off(package: PackagePlugin, config: Config, options: ExtensionOptions) -> bool:
    """A package has no manifest; the configuration or the process switches it off, before any of it is imported."""
    names = {package.name, package.full_name}
    return not names.isdisjoint(config.disabled_plugins) or not names.isdisjoint(options.blocked)
