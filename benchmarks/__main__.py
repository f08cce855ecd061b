"""The command ``python -m benchmarks``: sets a stage, runs the benchmarks, prints what they found."""

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.clients import CODEX_VARIABLE, find_codex
from benchmarks.figures import Result, as_data, as_markdown
from benchmarks.process import BenchmarkError
from benchmarks.stage import Stage, install, write_notes

LEAST_RUNS = 3


def run_count(text: str) -> int:
    count = int(text)
    if count < LEAST_RUNS:
        raise argparse.ArgumentTypeError(f"a spread needs at least {LEAST_RUNS} runs")
    return count


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure an installed Crystal.")
    names = ", ".join(CASES)
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help=f"one of: {names}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown tables")
    parser.add_argument("--runs", type=run_count, default=7, help="counted runs of each side (default: 7)")
    parser.add_argument("--peers", action="store_true", help="let npm install codex into the scratch folder")
    parser.add_argument(
        "--codex",
        type=Path,
        metavar="PATH",
        help=f"the codex to compare with; else {CODEX_VARIABLE}, else on PATH",
    )
    parser.add_argument("--venv", type=Path, metavar="DIR", help="environment to install into, kept for reuse")
    return parser.parse_args()


def set_stage(arguments: argparse.Namespace, scratch: Path) -> Stage:
    workspace = scratch / "workspace"
    write_notes(workspace)
    venv = (arguments.venv or scratch / "venv").resolve()
    print(f"installing the checkout into {venv}", file=sys.stderr)
    install(venv, scratch)
    codex, codex_missing = find_codex(arguments.codex, install=arguments.peers, scratch=scratch)
    return Stage(
        scratch=scratch,
        venv=venv,
        workspace=workspace,
        runs=arguments.runs,
        codex=codex,
        codex_missing=codex_missing,
    )


def run_cases(stage: Stage, names: list[str]) -> tuple[list[Result], bool]:
    """The results of those benchmarks that could be run, and whether all could."""
    results = []
    for name in names:
        print(f"running {name}", file=sys.stderr)
        try:
            results.append(CASES[name](stage))
        except BenchmarkError as error:
            print(f"{name} failed: {error}", file=sys.stderr)
    return results, len(results) == len(names)


def main() -> int:
    """Print results; the exit status is 1 when something could not be run, whatever the figures are."""
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="crystal-benchmarks-") as folder:
        try:
            stage = set_stage(arguments, Path(folder).resolve())
        except BenchmarkError as error:
            print(error, file=sys.stderr)
            return 1
        results, complete = run_cases(stage, arguments.only or [*CASES])
    machine = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if arguments.json:
        print(json.dumps({"machine": machine, "results": [as_data(result) for result in results]}, indent=2))
    else:
        print(f"{machine}; installed, not editable; warm\n\n{as_markdown(results)}")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
