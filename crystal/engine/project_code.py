"""Everything that a workspace brings and the operator must trust first: plugins, installed packages, prompts.

Says what each would do, in words for the operator; decides nothing and runs no code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crystal.engine.prompts.project import project_prompts
from crystal.host.manifests.plugin import ModuleManifest
from crystal.host.sources.disk import DiscoveredPlugin, home_tree
from crystal.host.sources.disk_plugins import project_entries
from crystal.host.sources.package_trust import judge_packages
from crystal.host.sources.packages import find_packages
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry
from crystal.store.home import Home
from crystal.types._frozen import Frozen


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
    return (*_plugins(home, workspace), *_packages(home, workspace), *_prompts(home, workspace))


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
