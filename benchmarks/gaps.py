"""Figures from a model server's log: the time from an answer's last byte to the client's next request."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

EDGE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GapReport:
    """Gaps in milliseconds; `first` and `last` are medians over the twenty gaps at either end of a run."""

    requests: int
    rounds: int
    median: float
    p90: float
    first: float
    last: float


def read_log(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def split_runs(rows: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Group the requests that offer tools by run; a run begins where the transcript has no tool result."""
    runs: list[list[dict[str, Any]]] = []
    for row in rows:
        if not row.get("tools"):
            continue
        if row["results"] == 0:
            runs.append([])
        if runs:
            runs[-1].append(row)
    return runs


def run_gaps(run: Sequence[dict[str, Any]]) -> list[float]:
    """The gaps of one run; a request whose transcript did not grow is a repetition and counts for nothing."""
    return [
        (after["arrived"] - before["answered"]) * 1e3
        for before, after in pairwise(run)
        if after["results"] > before["results"]
    ]


def report(rows: Sequence[dict[str, Any]]) -> GapReport | None:
    """Sum up a log; None when no client came back with a tool result."""
    by_run = [run_gaps(run) for run in split_runs(rows)]
    every = [gap for gaps in by_run for gap in gaps]
    if not every:
        return None
    return GapReport(
        requests=len(rows),
        rounds=len(every),
        median=statistics.median(every),
        p90=statistics.quantiles(every, n=10, method="inclusive")[-1] if len(every) > 1 else every[0],
        first=statistics.median(gap for gaps in by_run for gap in gaps[:EDGE]),
        last=statistics.median(gap for gaps in by_run for gap in gaps[-EDGE:]),
    )
