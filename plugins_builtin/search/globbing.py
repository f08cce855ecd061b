"""The work of the ``glob`` tool: files by the pattern of their path, newest first. Runs in a thread."""

from __future__ import annotations

import os
from collections.abc import Callable

from crystal.types.tools import ToolCall, ToolContext, ToolOutput
from crystal.workspace.fence import permit, printable
from crystal.workspace.globs import GlobError, GlobPattern, compile_glob, literal_prefix
from crystal.workspace.ignore import IgnoreRules
from crystal.workspace.limits import ENTRY_LIMIT
from crystal.workspace.walk import walk
from plugins_builtin.files.outcome import CallRefused, fence_of
from plugins_builtin.search.roots import admission_below, require_folder


def glob_files(call: ToolCall, context: ToolContext, stopped: Callable[[], bool]) -> ToolOutput:
    """Answer a ``glob`` call.

    :param stopped: whether nobody waits for the answer any more.
    :raises PathRefused: when the call cannot be done as it was made.
    :raises OSError: when the system does not allow it.
    """
    fence = fence_of(context)
    path, pattern = call.arguments.get("path", "."), call.arguments["pattern"]
    root = fence.admit(path, context.permitted_paths)
    require_folder(root.real, fence.show(root.real))
    prefix, rest = literal_prefix(pattern)
    try:
        wanted = compile_glob(rest)
    except GlobError as error:
        raise CallRefused(str(error)) from None
    base = fence.resolve(prefix if prefix.startswith(("/", "~/")) else f"{root.real}/{prefix}")
    admits = admission_below(fence, root.real, context.permitted_paths)
    if not admits(base.real):
        raise CallRefused(permit(base, context.permitted_paths, writing=False) or f"{prefix} is not searched.")
    found = _newest_first(base.real, wanted, IgnoreRules.for_search(str(fence.workspace), base.real), admits, stopped)
    if not found:
        return ToolOutput(text=f"No file in {fence.show(root.real)} matches {printable(pattern)}.")
    lines = [fence.show(real) for real in found[:ENTRY_LIMIT]]
    if len(found) > ENTRY_LIMIT:
        lines.append(f"({ENTRY_LIMIT} of {len(found)} matches; narrow the pattern to see the others.)")
    return ToolOutput(text="\n".join(lines))


def _newest_first(
    base: str,
    wanted: GlobPattern,
    rules: IgnoreRules,
    admits: Callable[[str], bool],
    stopped: Callable[[], bool],
) -> list[str]:
    found: list[tuple[int, str]] = []
    for entry in walk(base, rules, admits, max_depth=wanted.depth(), with_links=True, stopped=stopped):
        if wanted.matches(entry.path):
            real = f"{base.rstrip('/')}/{entry.path}"
            try:
                found.append((-os.stat(real).st_mtime_ns, real))
            except OSError:
                # Removed since the folder was read.
                continue
    found.sort()
    return [real for _, real in found]
