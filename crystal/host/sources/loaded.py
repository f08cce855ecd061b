"""Load the code of disk plugins, each in a context of its own; one that fails is left out with a note."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.context import LoadContext
from crystal.host.loading.errors import LoadFailed
from crystal.host.sources.builtin import FoundPlugin
from crystal.host.sources.disk_plugins import (
    LoadablePlugin,
    LoadPlan,
    ProjectCode,
    find_disk_plugins,
    plan_loading,
    plugin_facts,
    untrusted_note,
)
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionFacts
from crystal.types.notes import Note, NoteCode, Severity


class LoadedPlugins(Frozen):
    """What came of loading.

    :param notes: of finding, of trust and of loading.
    :param failures: why a plugin is not loaded, by full name.
    """

    plan: LoadPlan
    plugins: tuple[FoundPlugin, ...]
    notes: tuple[Note, ...]
    failures: dict[str, str]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Full names of the plugins of the plan that are not loaded."""
        loaded = {plugin.name for plugin in self.plugins}
        return tuple(plugin.full_name for plugin in self.plan.loadable if plugin.full_name not in loaded)

    def facts(self, display_names: Mapping[str, str]) -> tuple[ExtensionFacts, ...]:
        """Return the rows of the catalog snapshot.

        :param display_names: of everything that is registered, by full name.
        """
        return plugin_facts(self.plan.found.plugins, display_names, self.failures)


def load_disk_plugins(home: Home, workspace: Path, project_trust: str, blocked: frozenset[str]) -> LoadedPlugins:
    """Find the plugins of both trees and load those that count, but not the blocked ones.

    :param workspace: real path.
    :raises HomeFileError: for a broken ``trust.json``.
    """
    plan = plan_loading(find_disk_plugins(home, workspace, ProjectCode(project_trust)))
    untrusted = untrusted_note(plan.found.untrusted)
    before = [*plan.found.notes, *([] if untrusted is None else [untrusted])]
    plugins, notes, failures = _load(plan, home, blocked)
    return LoadedPlugins(plan=plan, plugins=tuple(plugins), notes=(*before, *notes), failures=failures)


def _load(plan: LoadPlan, home: Home, blocked: frozenset[str]) -> tuple[list[FoundPlugin], list[Note], dict[str, str]]:
    plugins: list[FoundPlugin] = []
    notes: list[Note] = []
    failures: dict[str, str] = {}
    cache = BytecodeCache(home.root / "cache" / "bytecode") if plan.loadable else None
    for loadable in plan.loadable:
        if not blocked.isdisjoint((loadable.full_name, loadable.full_name.rpartition("/")[2])):
            continue
        context = LoadContext(
            loadable.full_name, loadable.snapshot, shared=tuple(loadable.manifest.shared), cache=cache
        )
        try:
            plugin = _entry(context, loadable)
        except LoadFailed as failed:
            context.close()
            failures[loadable.full_name] = str(failed)
            text = f"Plugin '{loadable.full_name}' is not loaded: {failed}."
            notes.append(Note(code=NoteCode.PLUGIN_INVALID, text=text, source=loadable.full_name))
            continue
        plugins.append(FoundPlugin(name=loadable.full_name, plugin=plugin))
        notes += [
            Note(
                code=NoteCode.PLUGIN_WARNING,
                text=f"Plugin '{loadable.full_name}': {warning}.",
                source=loadable.full_name,
                severity=Severity.INFO,
            )
            for warning in context.warnings
        ]
    return plugins, notes, failures


def _entry(context: LoadContext, loadable: LoadablePlugin) -> object:
    module = context.entry(loadable.manifest.module)
    name = loadable.manifest.type
    if not name:
        return module
    try:
        return vars(module)[name]
    except KeyError:
        raise LoadFailed(loadable.manifest.module, f"it has no class {name}, which the field type names") from None
