"""Load the code of disk plugins, each in a context of its own; one that fails is left out with a note."""

from __future__ import annotations

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.context import LoadContext
from crystal.host.loading.errors import LoadFailed
from crystal.host.sources.builtin import FoundPlugin
from crystal.host.sources.disk_plugins import LoadablePlugin, LoadPlan
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.notes import Note, NoteCode, Severity


class LoadedPlugins(Frozen):
    """What came of loading.

    :param failures: why a plugin is not loaded, by full name.
    """

    plugins: tuple[FoundPlugin, ...] = ()
    notes: tuple[Note, ...] = ()
    failures: dict[str, str]

    @property
    def names(self) -> frozenset[str]:
        """Full names of those that are loaded."""
        return frozenset(plugin.name for plugin in self.plugins)


def load_plugins(plan: LoadPlan, home: Home, blocked: frozenset[str]) -> LoadedPlugins:
    """Load every plugin of the plan but the blocked ones, in order."""
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
    return LoadedPlugins(plugins=tuple(plugins), notes=tuple(notes), failures=failures)


def _entry(context: LoadContext, loadable: LoadablePlugin) -> object:
    module = context.entry(loadable.manifest.module)
    name = loadable.manifest.type
    if not name:
        return module
    try:
        return vars(module)[name]
    except KeyError:
        raise LoadFailed(loadable.manifest.module, f"it has no class {name}, which the field type names") from None
