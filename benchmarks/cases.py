"""The benchmarks. Each takes a stage and returns a result with a ratio to a baseline of the same run."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import clients, search, shell
from benchmarks.figures import Finding, Result, Samples, ratio
from benchmarks.gaps import GapReport, read_log, report, split_runs
from benchmarks.process import BenchmarkError, Command, Run, alternate, measure
from benchmarks.script import FINAL_TEXT, note_mark
from benchmarks.stage import Stage, model_server

VERSION_AIM = 2.5
ONE_ROUND_AIM = 0.8
RESIDENT_AIM_MIB = 50e6 / 2**20
GAP_AIM_MS = 3.0
GROWTH_AIM = 1.3
DISPATCH_AIM_US = 0.3
NOBODY_AIM_US = 0.4
LOADING_AIM_MS = 1.2
SHORT, LONG = 50, 400
THINK_MS = 5.0


def walls(subject: str, runs: list[Run]) -> Samples:
    return Samples(subject, "ms", tuple(run.wall_ms for run in runs))


def peaks(subject: str, runs: list[Run]) -> Samples:
    return Samples(subject, "MiB", tuple(run.peak_mib for run in runs))


def idle_python(stage: Stage) -> Command:
    return Command(
        arguments=[str(stage.python), "-c", "pass"],
        environment=stage.environment("bare"),
        directory=stage.workspace,
    )


def version(stage: Stage) -> Result:
    """Wall time of `crystal --version` against an interpreter that does nothing."""
    command = Command(
        arguments=[str(stage.crystal), "--version"],
        environment=stage.environment("crystal"),
        directory=stage.workspace,
    )
    runs = alternate({"crystal --version": command, "python -c pass": idle_python(stage)}, stage.runs)
    ours, idle = (walls(subject, done) for subject, done in runs.items())
    return Result(benchmark="version", samples=[ours, idle], findings=[ratio(ours, idle, VERSION_AIM)])


def play_one_round(stage: Stage, beside: Mapping[str, Command]) -> dict[str, list[Run]]:
    """Measure one tool round of Crystal, codex (if any) and bare httpx, with the commands `beside` them."""
    players: dict[str, clients.Client] = {"crystal": clients.crystal}
    if stage.codex:
        players["codex"] = clients.codex
    players["bare httpx"] = clients.bare_httpx
    log = stage.scratch / "one-round.jsonl"
    log.unlink(missing_ok=True)
    with model_server(log, rounds=1) as base_uri:
        commands = {name: client(stage, base_uri) for name, client in players.items()}
        runs = alternate({**commands, **beside}, stage.runs)
    check_log(read_log(log), rounds=1, runs=len(players) * (stage.runs + 1))
    for name in players:
        check_output(name, runs[name])
    return runs


def check_log(rows: list[dict[str, Any]], *, rounds: int, runs: int) -> None:
    """Insist that every run played all its rounds and every tool result held the note asked for."""
    played = split_runs(rows)
    lengths = [len(run) for run in played]
    if lengths != [rounds + 1] * runs:
        raise BenchmarkError(f"expected {runs} runs of {rounds + 1} requests, the server saw {lengths}")
    for row in (row for run in played for row in run[1:]):
        if note_mark(row["results"] - 1) not in row["latest"]:
            raise BenchmarkError(f"the tool of a client failed in round {row['results']}: {row['latest']}")


def check_output(name: str, runs: list[Run]) -> None:
    for run in runs:
        if FINAL_TEXT not in run.output:
            raise BenchmarkError(f"{name} did not print the model's answer but {run.output!r}")


def skipped(stage: Stage) -> list[str]:
    return [] if stage.codex else [f"codex skipped: {stage.codex_missing}"]


def one_round(stage: Stage) -> Result:
    """Wall time of a headless run with one tool round against codex, if there is one, and bare httpx."""
    samples = {name: walls(name, runs) for name, runs in play_one_round(stage, {}).items()}
    ours, bare = samples["crystal"], samples["bare httpx"]
    against_codex = [ratio(ours, samples["codex"], ONE_ROUND_AIM)] if stage.codex else []
    return Result(
        benchmark="one_round",
        samples=[*samples.values()],
        findings=[*against_codex, ratio(ours, bare)],
        remarks=skipped(stage),
    )


def resident(stage: Stage) -> Result:
    """Peak resident memory of the same run against bare Python and codex."""
    runs = play_one_round(stage, {"python -c pass": idle_python(stage)})
    samples = {name: peaks(name, done) for name, done in runs.items()}
    ours = samples.pop("crystal")
    return Result(
        benchmark="resident",
        samples=[ours, *samples.values()],
        findings=[
            Finding("crystal, peak (50 MB)", "MiB", ours.median, RESIDENT_AIM_MIB),
            *(ratio(ours, baseline) for baseline in samples.values()),
        ],
        remarks=skipped(stage),
    )


def play_rounds(stage: Stage, name: str, client: clients.Client, rounds: int) -> GapReport:
    """One run against a model server of its own, checked and summed up."""
    log = stage.scratch / "rounds.jsonl"
    log.unlink(missing_ok=True)
    with model_server(log, rounds=rounds, think_ms=THINK_MS) as base_uri:
        check_output(name, [measure(client(stage, base_uri))])
    rows = read_log(log)
    check_log(rows, rounds=rounds, runs=1)
    gaps = report(rows)
    assert gaps is not None
    return gaps


def fsync_ms(folder: Path) -> float:
    """Median time for this disk to make a small append durable, as every saved step of a session does."""
    times = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(100):
            file.write(b"x" * 500)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


def round_gap(stage: Stage) -> Result:
    """The time from an answer to the next request, in a short and a long session, against a bare loop."""
    ours, floor = "crystal", "bare http.client"
    players: dict[str, clients.Client] = {ours: clients.crystal, floor: clients.bare_http_client}
    legs = [(name, rounds) for rounds in (SHORT, LONG) for name in players]
    for name, client in players.items():
        play_rounds(stage, name, client, rounds=1)
    passes = [
        {(name, rounds): play_rounds(stage, name, players[name], rounds) for name, rounds in legs}
        for _ in range(stage.runs)
    ]
    samples = {
        leg: Samples(f"{leg[0]}, {leg[1]} rounds", "ms", tuple(done[leg].median for done in passes)) for leg in legs
    }
    short, long = samples[ours, SHORT], samples[ours, LONG]
    return Result(
        benchmark="round_gap",
        samples=[*samples.values()],
        findings=[
            Finding(short.subject, "ms", short.median, GAP_AIM_MS),
            ratio(long, short, GROWTH_AIM),
            *(ratio(samples[ours, rounds], samples[floor, rounds]) for rounds in (SHORT, LONG)),
        ],
        remarks=[
            f"one fsync on this disk takes {fsync_ms(stage.scratch):.2f} ms",
            *(edges(samples[leg].subject, [done[leg] for done in passes]) for leg in legs),
        ],
    )


def printed(stage: Stage, script: str, kinds: Mapping[str, str], unit: str) -> dict[str, Samples]:
    """Run a script of this folder with the installed Python, once for each kind in turn; each run prints one figure.

    :param kinds: the script's argument to the subject it measures.
    """
    commands = {
        kind: Command(
            arguments=[str(stage.python), str(Path(__file__).with_name(script)), kind],
            environment=stage.environment("bare"),
            directory=stage.workspace,
        )
        for kind in kinds
    }
    runs = alternate(commands, stage.runs)
    return {kind: Samples(kinds[kind], unit, tuple(float(run.output) for run in runs[kind])) for kind in kinds}


def definitions(stage: Stage) -> Result:
    """Time to define a frozen value class and make one instance, against a frozen, slotted dataclass."""
    kinds = {"frozen": "a frozen value", "dataclass": "a dataclass"}
    ours, theirs = printed(stage, "definitions.py", kinds, "ms").values()
    return Result(benchmark="definitions", samples=[ours, theirs], findings=[ratio(ours, theirs)])


def dispatch(stage: Stage) -> Result:
    """Time of one implementation in a fold over 200 plugins that answer nothing, against bare calls with a clock."""
    kinds = {"bare": "a bare call and a clock", "fold": "one implementation", "nobody": "a hook nobody implements"}
    bare, fold, nobody = printed(stage, "dispatch.py", kinds, "us").values()
    added = statistics.median(ours - theirs for ours, theirs in zip(fold.values, bare.values, strict=True))
    return Result(
        benchmark="dispatch",
        samples=[bare, fold, nobody],
        findings=[
            Finding("one implementation, above a bare call", "us", added, DISPATCH_AIM_US),
            Finding(nobody.subject, "us", nobody.median, NOBODY_AIM_US),
            ratio(fold, bare),
        ],
    )


def loading(stage: Stage) -> Result:
    """Time to load one of 200 disk plugins with every hook, against importing and registering the same module."""
    kinds = {"disk": "a disk plugin", "plain": "a plain import, registered with pluggy"}
    disk, plain = printed(stage, "loading.py", kinds, "ms").values()
    added = statistics.median(ours - theirs for ours, theirs in zip(disk.values, plain.values, strict=True))
    return Result(
        benchmark="loading",
        samples=[disk, plain],
        findings=[Finding("one plugin, above a plain import", "ms", added, LOADING_AIM_MS), ratio(disk, plain)],
    )


def edges(subject: str, reports: list[GapReport]) -> str:
    p90, first, last = (statistics.median(getattr(gaps, name) for gaps in reports) for name in ("p90", "first", "last"))
    return f"{subject}: p90 {p90:.2f} ms, first 20 {first:.2f} ms, last 20 {last:.2f} ms"


CASES: Mapping[str, Callable[[Stage], Result]] = {
    "version": version,
    "one_round": one_round,
    "resident": resident,
    "round_gap": round_gap,
    "definitions": definitions,
    "bash_call": shell.bash_call,
    "bash_output": shell.bash_output,
    "bash_class": shell.bash_class,
    "search_content": search.search_content,
    "search_names": search.search_names,
    "read_large": search.read_large,
    "dispatch": dispatch,
    "loading": loading,
}
