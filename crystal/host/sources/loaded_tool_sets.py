"""The tool sets that count, each as one plugin that contributes its tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from crystal.hookspecs import hookimpl
from crystal.host.admission import RegisteredTool
from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.context import LoadContext
from crystal.host.loading.errors import LoadFailed, place_in
from crystal.host.loading.snapshot import FolderRefused, FolderSnapshot, read_folder
from crystal.host.manifests.toolset import (
    AuthorApproval,
    DeclaredTool,
    ExecRunner,
    OutputForm,
    PythonRunner,
    ToolSetManifest,
)
from crystal.host.sources.builtin import FoundPlugin
from crystal.host.sources.counting import extension_facts
from crystal.host.sources.project_trust import ProjectCode, ProjectEntry
from crystal.host.sources.tool_sets import DiscoveredToolSet, FoundToolSets, find_tool_sets
from crystal.host.tool_sets.contribution import ToolSetContribution
from crystal.host.tool_sets.directories import SetDirectories
from crystal.host.tool_sets.exec_tool import ExecProgram, ExecTool
from crystal.host.tool_sets.python_tool import ModuleRefused, module_contributions
from crystal.store.config import ExternalToolApproval
from crystal.store.home import Home
from crystal.types._frozen import Frozen
from crystal.types.approval import Risk
from crystal.types.environment import ExtensionFacts, ExtensionSource, ExternalToolFacts
from crystal.types.notes import Note, NoteCode
from crystal.types.session import SessionFacts
from crystal.types.tools import ToolContribution, ToolDefinition
from crystal.workspace.fence import printable
from crystal.workspace.programs.keepers import Keepers

FOLLOWS_AUTHOR = "author"


class ToolSetPlugin:
    """One tool set as a plugin, named as the host names it."""

    def __init__(self, name: str, tools: Sequence[ToolContribution]) -> None:
        self.name = name
        self._tools = tools

    @hookimpl
    def contribute_tools(self) -> Sequence[ToolContribution]:
        """Bring the tools that the manifest declares."""
        return self._tools


class RunningPrograms:
    """Ends with the session what programs of any set left running."""

    name = "programs of tool sets"

    def __init__(self, keepers: Keepers) -> None:
        self._keepers = keepers

    @hookimpl
    async def on_session_ended(self, session: SessionFacts) -> None:
        """End them."""
        await self._keepers.close()


class LoadedToolSets(Frozen):
    """What came of loading.

    :param plugins: one for each set, in the order of their folders' names.
    :param failures: why a set that counts is not loaded, by full name.
    """

    found: FoundToolSets
    plugins: tuple[FoundPlugin, ...]
    notes: tuple[Note, ...]
    failures: Mapping[str, str]

    @property
    def untrusted(self) -> tuple[ProjectEntry, ...]:
        """What the operator is told about in one note."""
        return self.found.untrusted

    def facts(self, registered: Iterable[str]) -> tuple[ExtensionFacts, ...]:
        """Return the rows of the catalog snapshot.

        :param registered: full names of every registered plugin.
        """
        loaded = frozenset(registered)
        names = {each.full_name: each.directory for each in self.found.folders if each.full_name in loaded}
        return extension_facts(self.found.folders, names, self.failures)

    def tool_facts(self, tools: Iterable[RegisteredTool]) -> tuple[ExternalToolFacts, ...]:
        """Return the rows for the tools of sets among the admitted ones."""
        sets = {each.full_name: each for each in self.found.folders}
        return tuple(
            ExternalToolFacts(
                name=tool.definition.name,
                tool_set=sets[tool.plugin].directory,
                source=sets[tool.plugin].source,
                catalogs=tool.contribution.catalogs,
            )
            for tool in tools
            if tool.plugin in sets
        )


def load_tool_sets(home: Home, workspace: Path, project: ProjectCode, approval: ExternalToolApproval) -> LoadedToolSets:
    """Find the tool sets of both trees and make a plugin of each that counts. Modules run, no program is started.

    :param workspace: real path.
    :param approval: whose word counts on asking the operator, for each tree.
    :raises HomeFileError: when ``trust.json`` is broken.
    """
    found = find_tool_sets(home, workspace, project)
    keepers = Keepers()
    cache = BytecodeCache(home.root / "cache" / "bytecode")
    plugins: list[FoundPlugin] = []
    notes = list(found.notes)
    failures: dict[str, str] = {}
    for tool_set in found.folders:
        manifest = tool_set.manifest
        if manifest is None or not tool_set.effective or tool_set.skipped:
            continue
        name = tool_set.full_name
        follows = approval.home if tool_set.source is ExtensionSource.HOME else approval.project
        follows_author = follows == FOLLOWS_AUTHOR
        if isinstance(manifest.runner, ExecRunner):
            tools = _contributions(tool_set, manifest, manifest.runner, keepers, follows_author)
            plugins.append(FoundPlugin(name=name, plugin=ToolSetPlugin(name, tools)))
            continue
        try:
            snapshot = found.snapshots.get(name) or read_folder(tool_set.path)
            loaded = _load_module(tool_set, manifest, manifest.runner, snapshot, cache, follows_author)
        except (FolderRefused, LoadFailed, ModuleRefused) as refused:
            failures[name] = str(refused)
            text = f"{tool_set.named} is not loaded: {printable(str(refused))}"
            notes.append(Note(code=NoteCode.PLUGIN_INVALID, text=_ended(text), source=name))
        else:
            plugins.append(loaded)
    if plugins:
        plugins.append(FoundPlugin(name="toolset:programs", plugin=RunningPrograms(keepers)))
    return LoadedToolSets(found=found, plugins=tuple(plugins), notes=tuple(notes), failures=failures)


def _load_module(
    tool_set: DiscoveredToolSet,
    manifest: ToolSetManifest,
    runner: PythonRunner,
    snapshot: FolderSnapshot,
    cache: BytecodeCache,
    follows_author: bool,
) -> FoundPlugin:
    """Import the module of a set in a context of its own.

    :raises LoadFailed: when its code came to nothing.
    :raises ModuleRefused: when it does not hold what the manifest says.
    """
    name = tool_set.full_name
    context = LoadContext(name, snapshot, shared=tuple(runner.shared), cache=cache)
    try:
        module = context.entry(runner.module)
        tools = module_contributions(module, manifest, runner, tool_set.directory, follows_author)
    except (LoadFailed, ModuleRefused, KeyboardInterrupt):
        context.close()
        raise
    except BaseException as error:
        # Its classes and their definitions are code of the set.
        context.close()
        place = place_in(error, snapshot.folder)
        raise LoadFailed(
            runner.module, f"raised {printable(type(error).__name__)}{place} when its tools were made"
        ) from error
    return FoundPlugin(name=name, plugin=ToolSetPlugin(name, tools), close=context.close)


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(("?", ".")) else f"{sentence}."


def _contributions(
    tool_set: DiscoveredToolSet, manifest: ToolSetManifest, runner: ExecRunner, keepers: Keepers, follows_author: bool
) -> list[ToolContribution]:
    directories = SetDirectories(tool_set.directory)
    return [
        ToolSetContribution(
            name=tool.name,
            tool=ExecTool(_program(tool_set, manifest, runner, tool), directories, keepers),
            catalogs=tool.catalogs,
            path_arguments=tool.path_arguments,
            risk=Risk.WRITE,
            author_always=follows_author and tool.approval is AuthorApproval.ALWAYS,
        )
        for tool in runner.tools
    ]


def _program(
    tool_set: DiscoveredToolSet, manifest: ToolSetManifest, runner: ExecRunner, tool: DeclaredTool
) -> ExecProgram:
    return ExecProgram(
        definition=ToolDefinition(name=tool.name, description=tool.description, schema=tool.schema),
        folder=tool_set.path,
        command=tool.command,
        flags=tool.argv,
        path_arguments=tool.path_arguments,
        stdin=runner.stdin,
        content=tool.output is OutputForm.CONTENT,
        seconds=manifest.timeout,
    )
