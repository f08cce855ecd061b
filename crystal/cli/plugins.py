"""``crystal plugins list|show|enable|disable``: manifests are read, no code of a plugin runs or is imported."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from crystal.cli.extension_rows import (
    ExtensionRow,
    choose_folder,
    choose_row,
    place_options,
    print_list,
    print_one,
    say_notes,
    say_switched,
    unknown,
)
from crystal.cli.listing import listing_option
from crystal.cli.plugin_check import command as check_command
from crystal.cli.plugin_new import command as new_command
from crystal.cli.plugin_vendor import command as vendor_command
from crystal.engine.preflight import check_workspace, working_directory
from crystal.host.manifests.plugin import CommandManifest, ModuleManifest
from crystal.host.sources.disk import DiscoveredPlugin, read_plugin
from crystal.host.sources.disk_plugins import DiskPlugins, find_disk_plugins
from crystal.host.sources.package_trust import judge_packages
from crystal.host.sources.packages import find_packages
from crystal.host.sources.project_trust import ProjectCode
from crystal.host.sources.switching import switch_plugin
from crystal.store.config import Config, load_config
from crystal.store.home import Home, locate_home
from crystal.types.environment import ExtensionSource

OFF = "plugins is false in config.json"
WORD = "plugin"


@click.group(name="plugins")
def command() -> None:
    """List, show and switch plugins, or begin a new one."""


command.add_command(check_command)
command.add_command(new_command)
command.add_command(vendor_command)


@command.command(name="list")
@place_options
@listing_option
def list_plugins(source: str | None, workspace: Path | None, home: str | None, form: str) -> None:
    """List every plugin folder and installed package, and why some are not loaded."""
    place = locate_home(home, os.environ)
    root = _workspace(workspace)
    found = _discover(place, root)
    rows = _rows(found, place, root, source)
    print_list(form, WORD, rows)
    say_notes(found.notes, frozenset(plugin.full_name for plugin in found.plugins))


@command.command(name="show")
@click.argument("name")
@place_options
@listing_option
def show(name: str, source: str | None, workspace: Path | None, home: str | None, form: str) -> None:
    """Show one plugin in full. NAME is a plugin's folder or a package; a project folder wins over the home's."""
    place = locate_home(home, os.environ)
    root = _workspace(workspace)
    rows = _rows(_discover(place, root), place, root, source)
    row = choose_row(rows, name)
    if row is None:
        raise unknown(WORD, name, source, [row.name for row in rows])
    print_one(form, WORD, row)


@command.command(name="enable")
@click.argument("name")
@place_options
def enable(name: str, source: str | None, workspace: Path | None, home: str | None) -> None:
    """Switch a plugin on in its plugin.json. NAME is its folder; a project folder wins over the home's."""
    _switch(name, source, workspace, home, enabled=True)


@command.command(name="disable")
@click.argument("name")
@place_options
def disable(name: str, source: str | None, workspace: Path | None, home: str | None) -> None:
    """Switch a plugin off in its plugin.json. NAME is its folder; a project folder wins over the home's."""
    _switch(name, source, workspace, home, enabled=False)


def _switch(name: str, source: str | None, workspace: Path | None, home: str | None, *, enabled: bool) -> None:
    place, root = locate_home(home, os.environ), _workspace(workspace)
    found = _discover(place, root).plugins
    plugin = choose_folder(found, name, None if source is None else ExtensionSource(source))
    if plugin is None:
        if source is None and any(package.name == name for package in find_packages()):
            raise click.ClickException(
                f"{name!r} is an installed package and has no manifest; its switch is disabledPlugins in config.json."
            )
        raise unknown(WORD, name, source, [each.directory for each in found])
    switched = switch_plugin(place, root, plugin, enabled)
    say_switched(plugin, switched, enabled, "" if load_config(place)[0].plugins else OFF)


def _workspace(named: Path | None) -> Path:
    return check_workspace(named or working_directory())


def _discover(home: Home, workspace: Path) -> DiskPlugins:
    return find_disk_plugins(home, workspace, ProjectCode(load_config(home)[0].project_trust))


def _rows(found: DiskPlugins, home: Home, workspace: Path, source: str | None) -> list[ExtensionRow]:
    config = load_config(home)[0]
    rows = [_disk_row(plugin, config) for plugin in found.plugins if source in (None, plugin.source.value)]
    return rows if source else [*rows, *_package_rows(config, home, workspace)]


def _disk_row(plugin: DiscoveredPlugin, config: Config) -> ExtensionRow:
    if plugin.manifest is None and plugin.enabled is None and os.path.isdir(plugin.path):
        # What does not count was not read; the list tells of it all the same.
        plugin = replace(read_plugin(plugin)[0], skipped=plugin.skipped) if plugin.skipped else plugin
    manifest = plugin.manifest
    details: list[tuple[str, Any]] = [("path", str(plugin.path))]
    match manifest:
        case ModuleManifest():
            details += [("module", manifest.module), ("type", manifest.type), ("shared", list(manifest.shared))]
        case CommandManifest():
            details += [("name", manifest.name), ("description", manifest.description), ("command", manifest.command)]
    return ExtensionRow(
        name=plugin.directory,
        source=plugin.source.value,
        enabled=plugin.enabled,
        reason=plugin.skipped or ("" if config.plugins else OFF),
        details=tuple(details),
    )


def _package_rows(config: Config, home: Home, workspace: Path) -> list[ExtensionRow]:
    packages = find_packages()
    inside = [package for package in packages if package.lies_in(workspace)]
    judged = judge_packages(inside, home, workspace, ProjectCode(config.project_trust))
    untrusted = {one.package: one.reason for one in judged}
    rows = []
    for package in packages:
        enabled = not {package.name, package.full_name} & set(config.disabled_plugins)
        reason = untrusted.get(package, "") if enabled else "disabledPlugins in config.json names it"
        rows.append(
            ExtensionRow(
                name=package.name,
                source="package",
                enabled=enabled,
                reason=reason or ("" if config.plugins else OFF),
                details=(("distribution", package.distribution), ("entry point", package.value)),
            )
        )
    return rows
