"""The benchmarks of the ``bash`` tool: a call, a flood of output, the judgement of a command."""

import json
from pathlib import Path

from benchmarks.figures import Finding, Result, Samples, ratio
from benchmarks.process import Command, measure
from benchmarks.stage import Stage

CALL_AIM = 1.5
DRAIN_AIM = 2.0
GROWTH_AIM_MIB = 16e6 / 2**20
CLASS_AIM_MS = 1.0
PRODUCERS = ("zero bytes", "lines")


def probe(stage: Stage, name: str) -> list[dict[str, float]]:
    """What each run of a probe found, after one that warms up and does not count."""
    command = Command(
        arguments=[
            str(stage.python),
            str(Path(__file__).with_name("shell_probe.py")),
            name,
            str(stage.workspace),
        ],
        environment=stage.environment("bash"),
        directory=stage.workspace,
    )
    return [json.loads(measure(command).output) for _ in range(stage.runs + 1)][1:]


def samples(runs: list[dict[str, float]], key: str, subject: str, unit: str) -> Samples:
    return Samples(subject, unit, tuple(run[key] for run in runs))


def bash_call(stage: Stage) -> Result:
    """Time of a call that does nothing against `subprocess.run` of the same command, both in one warm process."""
    runs = probe(stage, "call")
    ours = samples(runs, "ours", "a bash call", "ms")
    bare = samples(runs, "bare", "subprocess.run", "ms")
    return Result(benchmark="bash_call", samples=[ours, bare], findings=[ratio(ours, bare, CALL_AIM)])


def bash_output(stage: Stage) -> Result:
    """Time to take 1 GiB of output against `cat > /dev/null` behind the same producer, and the growth of memory."""
    runs = probe(stage, "output")
    pairs = [
        (samples(runs, f"ours, {name}", f"bash, {name}", "s"), samples(runs, f"cat, {name}", f"cat, {name}", "s"))
        for name in PRODUCERS
    ]
    largest = max(run["grown"] for run in runs)
    return Result(
        benchmark="bash_output",
        samples=[series for pair in pairs for series in pair],
        findings=[
            *(ratio(ours, cat, DRAIN_AIM) for ours, cat in pairs),
            Finding("growth of the peak, worst run (16 MB)", "MiB", largest, GROWTH_AIM_MIB),
        ],
    )


def bash_class(stage: Stage) -> Result:
    """Time to judge a command line of one kilobyte, of several kinds."""
    runs = probe(stage, "class")
    judged = [samples(runs, kind, kind, "ms") for kind in runs[0]]
    return Result(
        benchmark="bash_class",
        samples=judged,
        findings=[Finding(series.subject, "ms", series.median, CLASS_AIM_MS) for series in judged],
    )
