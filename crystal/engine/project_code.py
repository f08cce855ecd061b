"""Everything that a workspace brings and the operator must trust first: plugins, tool sets, packages, prompts.

Says what each would do, in words for the operator; decides nothing and runs no code.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from crystal.engine.prompts.project import project_prompts
from crystal.host.manifests.plugin import ModuleManifest
from crystal.host.manifests.toolset import AuthorApproval, DeclaredTool, PythonRunner
from crystal.host.sources.disk import DiscoveredPlugin, home_tree
from crystal.host.sources.disk_plugins import project_entries
from crystal.host.sources.package_trust import judge_packages
from crystal.host.sources.packages import find_packages
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry
from crystal.host.sources.tool_sets import DiscoveredToolSet, tool_set_entries
from crystal.host.sources.trees import list_home_tree
from crystal.store.home import Home
from crystal.types._frozen import Frozen

_COMMANDS_SHOWN = 3
_COMMAND = 100
"""Characters of one command, so that a long one pushes no other out of sight."""


class ProjectThing(Frozen):
    """One thing that a workspace brings.

    :param effect: what it does when it counts.
    :param fault: why it cannot be trusted; empty when it can.
    """

    entry: ProjectEntry
    effect: str
    fault: str = ""


def find_project_code(home: Home, workspace: Path) -> tuple[ProjectThing, ...]:
    """Return everything of ``workspace`` that needs trust, as it is now.

    :param workspace: real path; may be gone.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    return (
        *_plugins(home, workspace),
        *_tool_sets(home, workspace),
        *_packages(home, workspace),
        *_prompts(home, workspace),
    )


def _plugins(home: Home, workspace: Path) -> Iterator[ProjectThing]:
    at_home = {plugin.directory for plugin in home_tree(home).plugins}
    for entry, plugin in project_entries(home, workspace):
        effect = _effect(plugin)
        if plugin.directory in at_home:
            effect = f"takes the place of the home's plugin and {effect}"
        yield ProjectThing(entry=entry, effect=effect, fault=plugin.skipped)


def _effect(plugin: DiscoveredPlugin) -> str:
    if isinstance(plugin.manifest, ModuleManifest) and plugin.effective:
        return f"runs {plugin.manifest.module}"
    return f"is not loaded, {plugin.skipped}"


def _tool_sets(home: Home, workspace: Path) -> Iterator[ProjectThing]:
    at_home = {tool_set.directory for tool_set in list_home_tree(DiscoveredToolSet, home).folders}
    for entry, tool_set in tool_set_entries(home, workspace):
        effect = _tool_set_effect(tool_set)
        if tool_set.directory in at_home:
            effect = f"takes the place of the home's tool set and {effect}"
        yield ProjectThing(entry=entry, effect=effect, fault=tool_set.skipped)


def _tool_set_effect(tool_set: DiscoveredToolSet) -> str:
    manifest = tool_set.manifest
    if manifest is None or not tool_set.effective:
        return f"is not loaded, {tool_set.skipped}"
    runner = manifest.runner
    if isinstance(runner, PythonRunner):
        always = manifest.approval is AuthorApproval.ALWAYS or any(
            overlay.approval is AuthorApproval.ALWAYS for overlay in runner.overlays.values()
        )
        effect = f"runs {runner.module} for the tools in it"
    else:
        always = any(tool.approval is AuthorApproval.ALWAYS for tool in runner.tools)
        effect = f"runs {', '.join(map(_command, runner.tools[:_COMMANDS_SHOWN])) or 'no program'}"
        more = len(runner.tools) - _COMMANDS_SHOWN
        effect += f" and {more} more commands" if more > 0 else ""
    return f"{effect}; its author asks for calls without a question" if always else effect


def _command(tool: DeclaredTool) -> str:
    command = shlex.join(tool.command)
    shown = command if len(command) <= _COMMAND else f"{command[:_COMMAND]}…"
    return f"{shown} as the tool {tool.name}"


def _packages(home: Home, workspace: Path) -> Iterator[ProjectThing]:
    inside = [package for package in find_packages() if package.lies_in(workspace)]
    for judged in judge_packages(inside, home, workspace, ProjectCode.ASK):
        package = judged.package
        yield ProjectThing(
            entry=judged.entry, effect=f"imports {package.value} of {package.distribution}", fault=judged.reason
        )


def _prompts(home: Home, workspace: Path) -> Iterator[ProjectThing]:
    for entry in project_prompts(home, workspace):
        prompt = entry.name.partition("/")[2].partition(".")[0]
        yield ProjectThing(
            entry=entry, effect=f"is the {prompt} prompt", fault="it is not a readable UTF-8 text of its folder"
        )
