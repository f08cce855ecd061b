"""Load the code of disk plugins, each in a context of its own; one that fails is left out with a note."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.context import LoadContext
from crystal.host.loading.errors import LoadFailed, place_in
from crystal.host.manager import BLOCKED
from crystal.host.sources.builtin import FoundPlugin
from crystal.host.sources.disk_plugins import LoadablePlugin, LoadPlan, find_disk_plugins, plan_loading, plugin_facts
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.environment import ExtensionFacts
from crystal.types.notes import Note, NoteCode, Severity
from crystal.workspace.fence import printable

_MARK = "crystal_impl"
"""What ``hookimpl`` leaves on a function."""


class LoadedPlugins(Frozen):
    """What came of loading.

    :param notes: of finding and of loading, not of what is not trusted.
    :param failures: why a plugin is not loaded, by full name.
    """

    plan: LoadPlan
    plugins: tuple[FoundPlugin, ...]
    notes: tuple[Note, ...]
    failures: dict[str, str]

    @property
    def untrusted(self) -> tuple[ProjectEntry, ...]:
        """The plugins of the workspace that do not count."""
        return self.plan.found.untrusted

    @property
    def left_out(self) -> tuple[str, ...]:
        """Full names of the plugins that were found and are not loaded, but for those whose place another one takes."""
        loaded = {plugin.name.rpartition("/")[2] for plugin in self.plugins}
        found = {plugin.directory: plugin.full_name for plugin in self.plan.found.plugins}
        return tuple(name for directory, name in found.items() if directory not in loaded)

    def facts(self, display_names: Mapping[str, str], refusals: Mapping[str, str]) -> tuple[ExtensionFacts, ...]:
        """Return the rows of the catalog snapshot.

        :param display_names: of everything that is registered, by full name.
        :param refusals: why others are not, by full name.
        """
        return plugin_facts(self.plan.found.plugins, display_names, {**refusals, **self.failures})


def load_disk_plugins(home: Home, workspace: Path, project: ProjectCode, blocked: frozenset[str]) -> LoadedPlugins:
    """Find the plugins of both trees and load those that count, but not the blocked ones.

    :param workspace: real path.
    :raises HomeFileError: for a broken ``trust.json``.
    """
    plan = plan_loading(find_disk_plugins(home, workspace, project))
    plugins, notes, failures = _load(plan, home, blocked)
    return LoadedPlugins(plan=plan, plugins=tuple(plugins), notes=(*plan.found.notes, *notes), failures=failures)


def _load(plan: LoadPlan, home: Home, blocked: frozenset[str]) -> tuple[list[FoundPlugin], list[Note], dict[str, str]]:
    plugins: list[FoundPlugin] = []
    notes: list[Note] = []
    failures: dict[str, str] = {}
    cache = BytecodeCache(home.root / "cache" / "bytecode") if plan.loadable else None
    for loadable in plan.loadable:
        if not blocked.isdisjoint((loadable.full_name, loadable.full_name.rpartition("/")[2])):
            failures[loadable.full_name] = BLOCKED
            continue
        context = LoadContext(
            loadable.full_name, loadable.snapshot, shared=tuple(loadable.manifest.shared), cache=cache
        )
        try:
            plugin = _entry(context, loadable)
        except LoadFailed as failed:
            context.close()
            failures[loadable.full_name] = str(failed)
            end = "" if failed.reason.endswith("?") else "."
            text = f"Plugin '{loadable.full_name}' is not loaded: {failed}{end}"
            notes.append(Note(code=NoteCode.PLUGIN_INVALID, text=text, source=loadable.full_name))
            continue
        plugins.append(FoundPlugin(name=loadable.full_name, plugin=plugin, close=context.close))
        notes += [
            Note(
                code=NoteCode.PLUGIN_WARNING,
                text=f"Plugin '{loadable.full_name}': {warning}.",
                source=loadable.full_name,
                severity=Severity.INFO,
            )
            for warning in context.warnings
        ]
        if not loadable.manifest.type and (found := unnamed_class(plugin)):
            text = (
                f"Plugin '{loadable.full_name}': the hooks of its class {found} are not called, for the module is the "
                f'plugin; write "type": "{found}" into the manifest.'
            )
            notes.append(Note(code=NoteCode.HOOK_UNMARKED, text=text, source=loadable.full_name))
    return plugins, notes, failures


def _entry(context: LoadContext, loadable: LoadablePlugin) -> object:
    """Import a plugin's module and return the plugin: the module, or an instance of the class that is named.

    :raises LoadFailed: when that fails, or the module is no plugin.
    """
    file = loadable.manifest.module
    module = context.entry(file)
    try:
        return _plugin_of(module, loadable)
    except (LoadFailed, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Its attributes may be code of the plugin.
        place = place_in(error, loadable.snapshot.folder)
        raise LoadFailed(file, f"raised {printable(type(error).__name__)}{place} when it was looked at") from error


def _plugin_of(module: object, loadable: LoadablePlugin) -> object:
    file = loadable.manifest.module
    members: Mapping[str, object] = getattr(module, "__dict__", {})
    wanted = loadable.manifest.type
    if not wanted:
        if not getattr(module, "name", None):
            raise LoadFailed(file, _nameless(members))
        return module
    if wanted not in members:
        nearest = difflib.get_close_matches(wanted, _own_classes(members), n=1)
        mend = f"; did you mean {nearest[0]}?" if nearest else ""
        raise LoadFailed(file, f"has no class {wanted}, which the field type names{mend}")
    kind = members[wanted]
    if not isinstance(kind, type):
        raise LoadFailed(
            file,
            f"has no class {wanted}, which the field type names, but a value of the type "
            f"{printable(type(kind).__name__)}; name a class, or leave the field out to have the module as the plugin",
        )
    try:
        made: object = kind()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Code of a plugin may raise anything, SystemExit included.
        place = place_in(error, loadable.snapshot.folder)
        if isinstance(error, TypeError) and not place:
            fault = f"has a class {wanted} that needs arguments; give each parameter of its __init__ a default"
        else:
            fault = f"has a class {wanted} that raised {printable(type(error).__name__)}{place} when it was made"
        raise LoadFailed(file, fault) from error
    return made


def unnamed_class(plugin: object) -> str:
    """Return a class of a module that has hooks and is not the plugin, for nothing calls them; empty without one."""
    members: Mapping[str, object] = getattr(plugin, "__dict__", {}) if isinstance(plugin, ModuleType) else {}
    if any(hasattr(value, _MARK) for value in members.values()):
        return ""
    return next(
        (
            name
            for name in _own_classes(members)
            if any(hasattr(value, _MARK) for value in vars(members[name]).values())
        ),
        "",
    )


def _nameless(members: Mapping[str, object]) -> str:
    """Say what a module lacks to be a plugin; its only class with a ``name`` is probably what is meant."""
    named = [name for name in _own_classes(members) if getattr(members[name], "name", None)]
    if named:
        return f'has no name, but its class {named[0]} has one; write "type": "{named[0]}" into the manifest'
    return 'has no name; write a line such as name = "acme" at its top'


def _own_classes(members: Mapping[str, object]) -> list[str]:
    own = members.get("__name__")
    return [name for name, value in members.items() if isinstance(value, type) and value.__module__ == own]
