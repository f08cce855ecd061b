"""What the ``bash`` tool costs; run by the measured interpreter, one process for each figure.

``python shell_probe.py call|output|class DIRECTORY`` prints one JSON object.
"""

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CALLS = 100
WARM_CALLS = 10
PRODUCERS = {
    "zero bytes": "head -c 1073741824 /dev/zero",
    "lines": "yes 'one line of a log, as long as such lines often are, more or less' | head -c 1073741824",
}
KILOBYTE = 1024
CHAIN = (
    "cd web && git pull --rebase && npm ci --no-audit",
    "npm run build -- --mode production 2>&1 | tee build.log",
    "find dist -name '*.map' -type f -print0 | xargs -0 -n 50 ls -l",
    'for f in $(git diff --name-only HEAD~1); do echo "changed: $f"; done',
    "docker compose -f docker-compose.yml config | grep image",
    "python3 -m pytest -q tests/unit --maxfail=1 -k 'not slow'",
    "curl -fsS https://example.com/health | jq -r .status",
    "tar czf release.tar.gz dist package.json",
    "git log --oneline --since=2.weeks --author=me -- src tests docs | head -n 20",
    "grep -rn --include='*.ts' 'TODO|FIXME' src | sort | uniq -c | sort -rn | head",
    "cp -r dist/assets public/assets && ls -la public && du -sh public",
    "git status --short && git diff --stat && cat package.json | jq '.scripts'",
    'echo "built at $(date +%F) in $PWD" >> build.log && wc -l build.log',
    "npm run lint -- --max-warnings 0 --ext .ts,.tsx src",
    "npm test -- --watchAll=false --coverage --silent",
)
COMMANDS = {
    "one program with many files": "python -m pytest -q -x --maxfail=1 "
    + " ".join(f"tests/unit/test_module_{number:02}.py::test_case_{number:02}" for number in range(22)),
    "a chain of commands": " && ".join(CHAIN),
    "a script in a heredoc": "python3 - <<'END'\n" + "total = total + value * 2  # count what is there\n" * 20 + "END",
    "small commands in loops": "; ".join(
        ['for name in src/*.py; do grep -n "TODO" "$name" | head -n 5; done && sort -u list.txt > sorted.txt'] * 10
    ),
}
"""Each about a kilobyte long."""
TIMES_CLASSIFIED = 50


def context(directory: Path) -> Any:
    from crystal.types.approval import ApprovalMode
    from crystal.types.tools import Catalog, ToolContext

    async def no_calls(name: str, arguments: Any) -> Any:
        raise LookupError(name)

    return ToolContext(
        workspace=directory,
        home=directory / "home",
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


def call(command: str) -> Any:
    from crystal.types._readonly import read_only
    from crystal.types.tools import ToolCall

    return ToolCall(id="call", name="bash", arguments=read_only({"command": command, "timeout": "unlimited"}))


async def run(tool: Any, command: str, directory: Path) -> float:
    """Run a command with the tool and return the seconds that it took."""
    began = time.perf_counter()
    output = await tool.invoke(call(command), context(directory))
    took = time.perf_counter() - began
    if not output.text.endswith("(exit 0)"):
        raise SystemExit(output.text[-500:])
    return took


def run_bare(command: str, directory: Path) -> float:
    """Run a command with nothing around it and return the seconds that it took."""
    began = time.perf_counter()
    subprocess.run(["bash", "-c", command], cwd=directory, check=True)
    return time.perf_counter() - began


async def probe_call(directory: Path) -> dict[str, float]:
    """The milliseconds of a command that does nothing, alternating with a bare one."""
    from plugins_builtin.shell import BashTool

    tool = BashTool()
    ours, bare = [], []
    for _ in range(WARM_CALLS + CALLS):
        ours.append(await run(tool, "true", directory))
        bare.append(run_bare("true", directory))
    await tool.close()
    return {"ours": statistics.median(ours[WARM_CALLS:]) * 1e3, "bare": statistics.median(bare[WARM_CALLS:]) * 1e3}


async def probe_output(directory: Path) -> dict[str, float]:
    """The seconds to take one GiB of each producer, the same into ``cat``, and how much the peak of memory grew."""
    from plugins_builtin.shell import BashTool

    tool = BashTool()
    await run(tool, "true", directory)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {}
    for name, producer in PRODUCERS.items():
        found[f"ours, {name}"] = await run(tool, producer, directory)
        found[f"cat, {name}"] = run_bare(f"{producer} | cat > /dev/null", directory)
    await tool.close()
    unit = 1 if sys.platform == "darwin" else 1024
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    return {**found, "grown": grown / 2**20}


async def probe_class(directory: Path) -> dict[str, float]:
    """The milliseconds to judge each command line of one kilobyte, never the same one twice."""
    from crystal.types.tools import ClassifierFacts
    from plugins_builtin.classifiers import BuiltinClassifier

    classifier = BuiltinClassifier()
    facts = ClassifierFacts(workspace=directory, home=directory / "home", paths=(), plugin="builtin:shell")
    found = {}
    for name, command in COMMANDS.items():
        if not 0.9 < len(command) / KILOBYTE < 1.4:
            raise SystemExit(f"{name} has {len(command)} characters")
        times = []
        for number in range(WARM_CALLS + TIMES_CLASSIFIED):
            made = call(f"echo {number}; {command}")
            began = time.perf_counter()
            judged = classifier.classify(made, facts)
            times.append(time.perf_counter() - began)
            if judged is None:
                raise SystemExit("bash was not judged")
        found[name] = statistics.median(times[WARM_CALLS:]) * 1e3
    return found


PROBES = {"call": probe_call, "output": probe_output, "class": probe_class}


def main() -> None:
    """Run one probe and print what it found."""
    name, directory = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(PROBES[name](Path(directory).resolve()))))


main()
