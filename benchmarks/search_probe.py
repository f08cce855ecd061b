"""What the search tools cost; run by the measured interpreter, one process for each figure.

``python search_probe.py grep|glob|tree|list|read DIRECTORY`` prints one JSON object: seconds, and ``grown``, the MiB by
which the peak of resident memory grew over all calls of the tool.
"""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = 3
PATTERN = "needle_42"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "glob": {"pattern": "**/*.txt"},
    "tree": {"depth": 9, "limit": 1_000},
    "list": {},
    "read": {"path": "log.txt", "offset": 20_000_000},
}


def context(directory: Path) -> Any:
    from crystal.types.approval import ApprovalMode
    from crystal.types.tools import Catalog, ToolContext

    async def no_calls(name: str, arguments: Any) -> Any:
        raise LookupError(name)

    return ToolContext(
        workspace=directory,
        home=directory.parent / "home",
        session_id="session",
        call_id="call",
        approval=ApprovalMode.FULL,
        mode=Catalog.WORK,
        global_data=directory,
        project_data=directory,
        accepts_images=False,
        permitted_paths=frozenset(),
        progress=lambda line: None,
        tools=(),
        call=no_calls,
    )


def answer(tool: Any, directory: Path, **arguments: Any) -> str:
    """Make one call in an event loop of its own and return what it says."""
    from crystal.types._readonly import read_only
    from crystal.types.tools import ToolCall

    made = ToolCall(id="call", name=tool.definition.name, arguments=read_only(arguments))
    return str(asyncio.run(tool.invoke(made, context(directory))).text)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def peak() -> float:
    """The most resident memory of this process so far, in MiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def walk(directory: Path) -> int:
    """Count the files below a folder with nothing but ``os.walk``."""
    return sum(len(files) for _, _, files in os.walk(directory))


def probe_grep(directory: Path) -> dict[str, float]:
    """The seconds of a search by each backend and by ripgrep alone, less what each child needs to start."""
    from plugins_builtin.search.ripgrep import find_ripgrep
    from plugins_builtin.search.tools import GrepTool

    program = find_ripgrep(directory)
    if program is None:
        raise SystemExit("there is no ripgrep")
    empty = directory.parent / "empty"
    empty.mkdir(exist_ok=True)
    by_ripgrep, by_python = GrepTool(), GrepTool(find=lambda workspace: None)

    def bare(folder: Path) -> None:
        subprocess.run([program, "--no-config", "-n", PATTERN, "."], cwd=folder, stdout=subprocess.DEVNULL, check=False)

    subjects: dict[str, Callable[[Path], object]] = {
        "grep": lambda folder: answer(by_ripgrep, folder, pattern=PATTERN),
        "fallback": lambda folder: answer(by_python, folder, pattern=PATTERN),
        "rg": bare,
    }
    if subjects["grep"](directory) != subjects["fallback"](directory):
        raise SystemExit("the backends do not agree")
    found: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(CALLS):
        for name, search in subjects.items():
            started = seconds(lambda search=search: search(empty))  # type: ignore[misc]
            found[name].append(seconds(lambda search=search: search(directory)) - started)  # type: ignore[misc]
    return {name: statistics.median(times) for name, times in found.items()}


def probe_tool(kind: str, directory: Path) -> dict[str, float]:
    """The seconds of a tool and of its baseline, and how much the tool's memory grew."""
    from plugins_builtin.files.listing import ListTool
    from plugins_builtin.files.read import ReadTool
    from plugins_builtin.search.tools import GlobTool, TreeTool

    tools = {"glob": GlobTool(), "tree": TreeTool(), "list": ListTool(), "read": ReadTool()}
    empty = directory.parent / "empty"
    empty.mkdir(exist_ok=True)
    # Modules are imported before memory is looked at.
    answer(tools[kind], empty, **ARGUMENTS[kind])
    before = peak()
    ours = [seconds(lambda: answer(tools[kind], directory, **ARGUMENTS[kind])) for _ in range(CALLS)]
    grown = peak() - before
    bare = [seconds(lambda: baseline(kind, directory)) for _ in range(CALLS)]
    return {"ours": statistics.median(ours), "bare": statistics.median(bare), "grown": grown}


def baseline(kind: str, directory: Path) -> object:
    if kind == "read":
        return subprocess.run(["tail", "-n", "5", "log.txt"], cwd=directory, stdout=subprocess.DEVNULL, check=True)
    return walk(directory)


def main() -> None:
    """Run one probe and print what it found."""
    kind, name = sys.argv[1:]
    directory = Path(name).resolve()
    found = probe_grep(directory) if kind == "grep" else probe_tool(kind, directory)
    sys.stdout.write(json.dumps(found))


main()
