"""``crystal plugins list|show|enable|disable``: manifests are read, no code of a plugin runs or is imported."""

from __future__ import annotations

import difflib
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from crystal.cli.listing import listing_option, print_rows
from crystal.cli.plugin_check import command as check_command
from crystal.cli.plugin_new import command as new_command
from crystal.cli.plugin_vendor import command as vendor_command
from crystal.cli.safe_text import safe_line
from crystal.engine.preflight import check_workspace, working_directory
from crystal.host.manifests.plugin import CommandManifest, ModuleManifest
from crystal.host.sources.disk import DiscoveredPlugin, read_plugin
from crystal.host.sources.disk_plugins import DiskPlugins, find_disk_plugins
from crystal.host.sources.package_trust import judge_packages
from crystal.host.sources.packages import find_packages
from crystal.host.sources.project_trust import ProjectCode
from crystal.host.sources.switching import Switched, switch_plugin
from crystal.store.config import Config, load_config
from crystal.store.home import Home, locate_home
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionSource

OFF = "plugins is false in config.json"
_LINE = 4096
HEADINGS = ("plugin", "source", "enabled", "effective", "reason")
Function = TypeVar("Function", bound=Callable[..., Any])


class PluginRow(Frozen):
    """One plugin folder or installed package as the lists show it.

    :param source: ``home``, ``project`` or ``package``.
    :param enabled: ``None`` when the manifest could not say.
    :param reason: why it is not loaded; empty when it is.
    :param details: further facts for ``show``, by name.
    """

    name: str
    source: str
    enabled: bool | None
    reason: str
    details: tuple[tuple[str, Any], ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        enabled = {True: "yes", False: "no", None: "unknown"}[self.enabled]
        return self.name, self.source, enabled, "no" if self.reason else "yes", self.reason

    def as_object(self) -> dict[str, Any]:
        """The row as JSON."""
        values = (self.name, self.source, self.enabled, not self.reason, self.reason)
        return dict(zip(HEADINGS, values, strict=True))


@click.group(name="plugins")
def command() -> None:
    """List, show and switch plugins, or begin a new one."""


command.add_command(check_command)
command.add_command(new_command)
command.add_command(vendor_command)


def place_options(function: Function) -> Function:
    """Add ``--source``, ``--workspace`` and ``--home``."""
    for option in (
        click.option("--home", help="Crystal home; else CRYSTAL_HOME, else ~/.crystal."),
        click.option("-w", "--workspace", type=click.Path(path_type=Path), help="Workspace; else the working folder."),
        click.option("--source", type=click.Choice(["home", "project"]), help="Only this tree."),
    ):
        function = option(function)
    return function


@command.command(name="list")
@place_options
@listing_option
def list_plugins(source: str | None, workspace: Path | None, home: str | None, form: str) -> None:
    """List every plugin folder and installed package, and why some are not loaded."""
    place = locate_home(home, os.environ)
    root = _workspace(workspace)
    found = _discover(place, root)
    rows = _rows(found, place, root, source)
    if form == "json":
        sys.stdout.write(json.dumps([row.as_object() for row in rows], indent=2) + "\n")
    else:
        print_rows(form, HEADINGS, [row.cells for row in rows])
    _say_notes(found)


@command.command(name="show")
@click.argument("name")
@place_options
@listing_option
def show(name: str, source: str | None, workspace: Path | None, home: str | None, form: str) -> None:
    """Show one plugin in full. NAME is a plugin's folder or a package; a project folder wins over the home's."""
    place = locate_home(home, os.environ)
    root = _workspace(workspace)
    rows = _rows(_discover(place, root), place, root, source)
    named = [row for row in rows if row.name == name]
    if not named:
        raise _unknown(name, source, [row.name for row in rows])
    row = next((row for row in named if row.source == ExtensionSource.PROJECT.value), named[0])
    if form == "json":
        sys.stdout.write(json.dumps(row.as_object() | dict(row.details), indent=2) + "\n")
        return
    for field, value in (*zip(HEADINGS, row.cells, strict=True), *row.details):
        text = ", ".join(value) if isinstance(value, list) else str(value)
        sys.stdout.write(f"{field:<12}{safe_line(text, _LINE)}".rstrip() + "\n")


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


def choose_plugin(
    plugins: Sequence[DiscoveredPlugin], name: str, source: ExtensionSource | None
) -> DiscoveredPlugin | None:
    """Return the plugin folder of that name; without a source the project's wins over the home's."""
    named = [plugin for plugin in plugins if plugin.directory == name and source in (None, plugin.source)]
    return max(named, key=lambda plugin: plugin.source is ExtensionSource.PROJECT, default=None)


def _switch(name: str, source: str | None, workspace: Path | None, home: str | None, *, enabled: bool) -> None:
    place, root = locate_home(home, os.environ), _workspace(workspace)
    found = _discover(place, root).plugins
    plugin = choose_plugin(found, name, None if source is None else ExtensionSource(source))
    if plugin is None:
        if source is None and any(package.name == name for package in find_packages()):
            raise click.ClickException(
                f"{name!r} is an installed package and has no manifest; its switch is disabledPlugins in config.json."
            )
        raise _unknown(name, source, [each.directory for each in found])
    switched = switch_plugin(place, root, plugin, enabled)
    word = "enabled" if enabled else "disabled"
    already = "" if switched.changed else " already"
    sys.stdout.write(safe_line(f"{plugin.source.value}/{name} is {word}{already}: {switched.path}", _LINE) + "\n")
    for hint in _hints(place, plugin, switched, enabled):
        sys.stdout.write(f"  {safe_line(hint)}\n")


def _hints(home: Home, plugin: DiscoveredPlugin, switched: Switched, enabled: bool) -> list[str]:
    hints = []
    if plugin.source is ExtensionSource.PROJECT and not switched.trusted:
        hints.append("The project's plugin is not trusted and does not count; 'crystal trust' asks.")
    if enabled and not load_config(home)[0].plugins:
        hints.append(f"Nothing is loaded all the same: {OFF}.")
    return hints


def _workspace(named: Path | None) -> Path:
    return check_workspace(named or working_directory())


def _discover(home: Home, workspace: Path) -> DiskPlugins:
    return find_disk_plugins(home, workspace, ProjectCode(load_config(home)[0].project_trust))


def _rows(found: DiskPlugins, home: Home, workspace: Path, source: str | None) -> list[PluginRow]:
    config = load_config(home)[0]
    rows = [_disk_row(plugin, config) for plugin in found.plugins if source in (None, plugin.source.value)]
    return rows if source else [*rows, *_package_rows(config, home, workspace)]


def _say_notes(found: DiskPlugins) -> None:
    """Write the notes that no row tells of: those about whole trees and what lies in them without being a plugin."""
    told = {plugin.full_name for plugin in found.plugins}
    for note in found.notes:
        if note.source not in told:
            sys.stderr.write(f"crystal: {safe_line(note.text, _LINE)}\n")


def _disk_row(plugin: DiscoveredPlugin, config: Config) -> PluginRow:
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
    return PluginRow(
        name=plugin.directory,
        source=plugin.source.value,
        enabled=plugin.enabled,
        reason=plugin.skipped or ("" if config.plugins else OFF),
        details=tuple(details),
    )


def _package_rows(config: Config, home: Home, workspace: Path) -> list[PluginRow]:
    packages = find_packages()
    inside = [package for package in packages if package.lies_in(workspace)]
    judged = judge_packages(inside, home, workspace, ProjectCode(config.project_trust))
    untrusted = {one.package: one.reason for one in judged}
    rows = []
    for package in packages:
        enabled = not {package.name, package.full_name} & set(config.disabled_plugins)
        reason = untrusted.get(package, "") if enabled else "disabledPlugins in config.json names it"
        rows.append(
            PluginRow(
                name=package.name,
                source="package",
                enabled=enabled,
                reason=reason or ("" if config.plugins else OFF),
                details=(("distribution", package.distribution), ("entry point", package.value)),
            )
        )
    return rows


def _unknown(name: str, source: str | None, known: Sequence[str]) -> click.ClickException:
    where = "plugins" if source is None else f"{source} plugins"
    nearest = difflib.get_close_matches(name, known, n=1)
    mend = f"did you mean {nearest[0]}?" if nearest else "'crystal plugins list' lists what there is."
    return click.ClickException(f"there is no plugin folder {name!r} among the {where}; {mend}")
