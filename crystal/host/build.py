"""Build a host: register the sources in order, compile the call plans, admit what was contributed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from crystal.host.admission import (
    RegisteredClassifier,
    RegisteredCommand,
    RegisteredFactory,
    RegisteredPlaceholder,
    RegisteredStatusField,
    RegisteredTool,
    admit_classifiers,
    admit_commands,
    admit_factories,
    admit_placeholders,
    admit_status_fields,
    admit_tools,
)
from crystal.host.dispatch import Collected, Dispatcher
from crystal.host.hooks import Hooks
from crystal.host.ledger import Ledger
from crystal.host.manager import PluginRegistry
from crystal.host.notes import Notes
from crystal.host.sources.builtin import FoundPlugin, builtin_plugins
from crystal.host.status import StatusBoard
from crystal.types._frozen import Frozen
from crystal.types.environment import Environment, ExtensionFacts, ExtensionSource
from crystal.types.notes import Note, NoteCode, Severity

PERMANENT = "builtin:classifiers"


class HostOptions(Frozen):
    """What shapes a host.

    :param hook_timeout: seconds a coroutine hook may take.
    :param blocked: full names of plugins, or their last parts when unique, left out of this process.
    :param disabled_tools: built-in tools left out of this process.
    """

    hook_timeout: float = 60.0
    blocked: tuple[str, ...] = ()
    disabled_tools: tuple[str, ...] = ()


class HostOptionError(Exception):
    """An option names something that is not there or may not be left out; the message says which and what is."""

    exit_code = 1


class Host(Frozen):
    """A loaded host: who is registered, their hooks ready to call, and what was admitted.

    :param closers: take the code of its disk plugins out of the process.
    """

    plugins: PluginRegistry
    hooks: Hooks
    notes: Notes
    ledger: Ledger
    tools: dict[str, RegisteredTool]
    factories: dict[str, RegisteredFactory]
    classifiers: tuple[RegisteredClassifier, ...]
    commands: dict[str, RegisteredCommand]
    placeholders: dict[str, RegisteredPlaceholder]
    status_fields: dict[str, RegisteredStatusField]
    status: StatusBoard
    closers: tuple[Callable[[], None], ...] = ()

    def close(self) -> None:
        """Take the code of disk plugins out of the process; what still runs of it goes on with what it imported."""
        for close in self.closers:
            close()


@contextmanager
def closed_on_failure(host: Host) -> Iterator[None]:
    """Close ``host`` when what it was built for cannot be."""
    try:
        yield
    except BaseException:
        host.close()
        raise


async def build_host(
    options: HostOptions, extra: Iterable[FoundPlugin] = (), earlier: Iterable[Note] = (), known: Iterable[str] = ()
) -> Host:
    """Register the built-in plugins and ``extra`` ones, and admit what they contribute.

    :param extra: plugins registered after the built-in ones, in order.
    :param earlier: notes that were made while these were found.
    :param known: full names of plugins that were found but not loaded, which an option may still name.
    :raises HostOptionError: for an option that names an unknown plugin or tool.
    """
    found = [*builtin_plugins(), *extra]
    closers = tuple(plugin.close for plugin in found if plugin.close is not None)
    try:
        return await _build(options, found, earlier, known, closers)
    except BaseException:
        for close in closers:
            close()
        raise


async def _build(
    options: HostOptions,
    found: Sequence[FoundPlugin],
    earlier: Iterable[Note],
    known: Iterable[str],
    closers: tuple[Callable[[], None], ...],
) -> Host:
    notes = Notes()
    for note in earlier:
        notes.add_note(note)
    blocked = _blocked_names(options.blocked, [*(plugin.name for plugin in found), *known])
    registry = PluginRegistry(notes, blocked)
    for plugin in found:
        registry.register(plugin.name, plugin.plugin)
    ledger = Ledger()
    dispatcher = Dispatcher(registry, notes, ledger, options.hook_timeout)
    dispatcher.compile()
    _note_raw_hooks(registry, notes)
    hooks = Hooks(dispatcher)
    contributed = await hooks.contributions("contribute_tools")
    _check_disabled(options.disabled_tools, _builtin_tool_names(contributed))
    tools, tool_notes = admit_tools(contributed, frozenset(options.disabled_tools))
    factories, factory_notes = admit_factories(await hooks.contributions("contribute_protocols"))
    classifiers, classifier_notes = admit_classifiers(await hooks.contributions("contribute_classifiers"))
    commands, command_notes = admit_commands(await hooks.contributions("contribute_commands"))
    placeholders, placeholder_notes = admit_placeholders(await hooks.contributions("contribute_placeholders"))
    fields, field_notes = admit_status_fields(await hooks.contributions("contribute_status_fields"))
    for note in (*tool_notes, *factory_notes, *classifier_notes, *command_notes, *placeholder_notes, *field_notes):
        notes.add_note(note)
    return Host(
        plugins=registry,
        hooks=hooks,
        notes=notes,
        ledger=ledger,
        tools=tools,
        factories=factories,
        classifiers=classifiers,
        commands=commands,
        placeholders=placeholders,
        status_fields=fields,
        status=StatusBoard(notes),
        closers=closers,
    )


def environment_of(host: Host) -> Environment:
    """Return the catalog snapshot: every plugin beyond the built-in ones."""
    return Environment(
        plugins=tuple(
            ExtensionFacts(
                directory=name.partition(":")[2],
                source=ExtensionSource.HOME,
                display_name=host.plugins.display_name(name),
                enabled=True,
                effective=True,
                loaded=True,
            )
            for name in host.plugins.names
            if not name.startswith("builtin:")
        )
    )


def _blocked_names(blocked: Iterable[str], known: list[str]) -> frozenset[str]:
    names = set()
    for wanted in blocked:
        matching = [name for name in known if wanted in (name, name.rpartition(":")[2], name.rpartition("/")[2])]
        if not matching:
            raise HostOptionError(f"--no-plugin {wanted}: there is no such plugin; there are: {', '.join(known)}")
        if len(matching) > 1:
            raise HostOptionError(f"--no-plugin {wanted}: several plugins end so: {', '.join(matching)}")
        if matching[0] == PERMANENT:
            raise HostOptionError("--no-plugin: the built-in classifiers cannot be left out")
        names.add(matching[0])
    return frozenset(names)


def _builtin_tool_names(contributed: Iterable[Collected]) -> set[str]:
    return {found.entry.name for found in contributed if found.plugin.startswith("builtin:")}


def _check_disabled(disabled: Iterable[str], known: set[str]) -> None:
    for name in disabled:
        if name not in known:
            raise HostOptionError(
                f"--disable-tool {name}: there is no such built-in tool; there are: {', '.join(sorted(known))}"
            )


def _note_raw_hooks(registry: PluginRegistry, notes: Notes) -> None:
    raw = [name for name, found in registry.specifications.items() if found.declaration.raw]
    registering = {found.plugin for hook in raw for found in registry.implementations(hook)}
    for plugin in registry.names:
        if plugin in registering:
            notes.add_note(
                Note(
                    code=NoteCode.RAW_HOOK,
                    text=f"Plugin '{plugin}' registered a raw hook.",
                    source=plugin,
                    severity=Severity.INFO,
                )
            )
