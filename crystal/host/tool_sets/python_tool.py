"""The tools of a Python module: which of its names count, and what the manifest lays over them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

from crystal.host.manifests.toolset import AuthorApproval, PythonRunner, ToolSetManifest
from crystal.host.tool_sets.arguments import fence_arguments
from crystal.host.tool_sets.contribution import ToolSetContribution
from crystal.host.tool_sets.directories import DirectoriesRefused, SetDirectories
from crystal.tool_functions import FunctionTool
from crystal.types._readonly import read_only
from crystal.types.approval import Authority, Risk
from crystal.types.tools import Tool, ToolCall, ToolContext, ToolContribution, ToolDefinition, ToolOutput
from crystal.workspace.fence import Fence, PathRefused


class ModuleRefused(Exception):
    """The module does not hold what the manifest says. The message is one clause."""


class PythonTool:
    """A tool of a module, with fenced paths, the runtime directories and the time limit of its set.

    :param path_arguments: properties that are file paths.
    :param seconds: the limit of a call; ``None`` for none.
    """

    def __init__(
        self,
        tool: Tool,
        definition: ToolDefinition,
        path_arguments: tuple[str, ...],
        directories: SetDirectories,
        seconds: float | None,
    ) -> None:
        self._tool = tool
        self._path_arguments = path_arguments
        self._directories = directories
        self._seconds = seconds
        self.definition = definition

    async def invoke(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run one call; the tool sees every path real and absolute.

        :raises Exception: whatever the tool raises.
        """
        fence = Fence.at(context.workspace, context.home)
        try:
            fenced = fence_arguments(call.arguments, self._path_arguments, fence, context.permitted_paths)
            self._directories.make(context)
        except (PathRefused, DirectoriesRefused) as refused:
            return ToolOutput(text=f"{call.name}: {refused}", failed=True)
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await self._tool.invoke(replace(call, arguments=read_only(fenced)), context)
        except TimeoutError:
            if not limit.expired():
                raise
            return ToolOutput(text=f"{call.name}: timed out after {self._seconds:g} s; the call was ended", failed=True)


def module_contributions(
    module: ModuleType, manifest: ToolSetManifest, runner: PythonRunner, directory: str, follows_author: bool
) -> list[ToolContribution]:
    """Return the tools of a loaded module, in the order in which it defines them.

    :param directory: the set's name.
    :param follows_author: whether the author's word on asking the operator counts.
    :raises ModuleRefused: for a name of ``types`` or of an overlay that is no tool, two tools of one name, or no tool.
    """
    found = {
        name: contribution for name, contribution in _tools_of(module) if runner.types is None or name in runner.types
    }
    for name in runner.types or ():
        if name not in found:
            raise ModuleRefused(f"its field types names {name}, which is no public tool of {runner.module}")
    names = [contribution.name for contribution in found.values()]
    if not names:
        raise ModuleRefused(
            f"{runner.module} defines no tool; write @tool above a function, or a class with definition and invoke"
        )
    for name in names:
        if names.count(name) > 1:
            raise ModuleRefused(f"{runner.module} defines two tools named {name}")
    for name in runner.overlays:
        if name not in names:
            raise ModuleRefused(f"its field tools names {name}, which is no tool of {runner.module}")
    directories = SetDirectories(directory)
    laid = [_laid_over(each, manifest, directories, follows_author) for each in found.values()]
    return [contribution for contribution in laid if contribution is not None]


def _tools_of(module: ModuleType) -> Iterator[tuple[str, ToolContribution]]:
    """Yield every public tool that a module itself defines, by its name there."""
    for name, value in list(vars(module).items()):
        if name.startswith("_"):
            continue
        if type(value) is ToolContribution and isinstance(value.tool, FunctionTool):
            if value.tool.module == module.__name__:
                yield name, value
        elif isinstance(value, type) and value.__module__ == module.__name__ and _is_tool(value):
            made: Any = value()
            definition: ToolDefinition = made.definition
            yield name, ToolContribution(name=definition.name, tool=made)


def _is_tool(kind: type) -> bool:
    members = {name for base in kind.__mro__ for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return {"definition", "invoke"} <= members


def _laid_over(
    found: ToolContribution, manifest: ToolSetManifest, directories: SetDirectories, follows_author: bool
) -> ToolContribution | None:
    overlay = manifest.overlay(found.name)
    if overlay is None:
        return None
    path_arguments = tuple(dict.fromkeys((*found.path_arguments, *overlay.path_arguments)))
    tool = PythonTool(found.tool, found.tool.definition, path_arguments, directories, manifest.timeout)
    return ToolSetContribution(
        name=found.name,
        tool=tool,
        # What the code says of itself is not widened.
        catalogs=found.catalogs & overlay.catalogs or overlay.catalogs,
        path_arguments=path_arguments,
        risk=max(found.risk or Risk.WRITE, Risk.WRITE),
        authority=found.authority | Authority.WORKSPACE,
        pre_classifier=found.pre_classifier,
        author_always=follows_author and overlay.approval is AuthorApproval.ALWAYS,
    )
