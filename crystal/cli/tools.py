"""``crystal tools list|show|enable|disable``: manifests of tool sets are read, and nothing of a set runs."""

from __future__ import annotations

import os
import shlex
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
from crystal.cli.tool_set_new import command as new_command
from crystal.engine.preflight import check_workspace, working_directory
from crystal.host.manifests.toolset import ExecRunner, PythonRunner
from crystal.host.sources.project_trust import ProjectCode
from crystal.host.sources.switching import switch_tool_set
from crystal.host.sources.tool_sets import DiscoveredToolSet, FoundToolSets, find_tool_sets, read_tool_set
from crystal.store.config import Config, load_config
from crystal.store.home import Home, locate_home
from crystal.types.environment import ExtensionSource

OFF = "externalTools is false in config.json"
WORD = "tool set"


@click.group(name="tools")
def command() -> None:
    """List, show and switch tool sets, or begin a new one."""


command.add_command(new_command)


@command.command(name="list")
@place_options
@listing_option
def list_tool_sets(source: str | None, workspace: Path | None, home: str | None, form: str) -> None:
    """List every tool set's folder, and why some are not loaded."""
    place, root = locate_home(home, os.environ), _workspace(workspace)
    found = _discover(place, root)
    print_list(form, WORD, _rows(found, place, source))
    say_notes(found.notes, frozenset(folder.full_name for folder in found.folders))


@command.command(name="show")
@click.argument("name")
@place_options
@listing_option
def show(name: str, source: str | None, workspace: Path | None, home: str | None, form: str) -> None:
    """Show one tool set in full. NAME is its folder; a project folder wins over the home's."""
    place, root = locate_home(home, os.environ), _workspace(workspace)
    rows = _rows(_discover(place, root), place, source)
    row = choose_row(rows, name)
    if row is None:
        raise unknown(WORD, name, source, [row.name for row in rows])
    print_one(form, WORD, row)


@command.command(name="enable")
@click.argument("name")
@place_options
def enable(name: str, source: str | None, workspace: Path | None, home: str | None) -> None:
    """Switch a tool set on in its tools.json. NAME is its folder; a project folder wins over the home's."""
    _switch(name, source, workspace, home, enabled=True)


@command.command(name="disable")
@click.argument("name")
@place_options
def disable(name: str, source: str | None, workspace: Path | None, home: str | None) -> None:
    """Switch a tool set off in its tools.json. NAME is its folder; a project folder wins over the home's."""
    _switch(name, source, workspace, home, enabled=False)


def _switch(name: str, source: str | None, workspace: Path | None, home: str | None, *, enabled: bool) -> None:
    place, root = locate_home(home, os.environ), _workspace(workspace)
    folders = _discover(place, root).folders
    tool_set = choose_folder(folders, name, None if source is None else ExtensionSource(source))
    if tool_set is None:
        raise unknown(WORD, name, source, [each.directory for each in folders])
    switched = switch_tool_set(place, root, tool_set, enabled)
    say_switched(tool_set, switched, enabled, "" if load_config(place)[0].external_tools else OFF)


def _workspace(named: Path | None) -> Path:
    return check_workspace(named or working_directory())


def _discover(home: Home, workspace: Path) -> FoundToolSets:
    return find_tool_sets(home, workspace, ProjectCode(load_config(home)[0].project_trust))


def _rows(found: FoundToolSets, home: Home, source: str | None) -> list[ExtensionRow]:
    config = load_config(home)[0]
    return [_row(each, config) for each in found.folders if source in (None, each.source.value)]


def _row(tool_set: DiscoveredToolSet, config: Config) -> ExtensionRow:
    if tool_set.manifest is None and tool_set.enabled is None and tool_set.skipped and os.path.isdir(tool_set.path):
        # What does not count was not read; the list tells of it all the same.
        tool_set = replace(read_tool_set(tool_set)[0], skipped=tool_set.skipped)
    manifest = tool_set.manifest
    details: list[tuple[str, Any]] = [("path", str(tool_set.path))]
    if manifest is not None:
        seconds = "unlimited" if manifest.timeout is None else manifest.timeout
        details += [("approval", manifest.approval.value), ("timeout", seconds)]
        match manifest.runner:
            case ExecRunner():
                details += [("runner", "exec"), ("tools", [tool.name for tool in manifest.runner.tools])]
                details += [(f"  {tool.name}", shlex.join(tool.command)) for tool in manifest.runner.tools]
            case PythonRunner():
                details += [("runner", "python"), ("module", manifest.runner.module)]
    return ExtensionRow(
        name=tool_set.directory,
        source=tool_set.source.value,
        enabled=tool_set.enabled,
        reason=tool_set.skipped or ("" if config.external_tools else OFF),
        details=tuple(details),
    )
