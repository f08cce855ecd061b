"""What a benchmark found: samples, findings held against an aim, and their forms as Markdown and JSON."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

NOISY_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class Samples:
    """One figure taken once a run."""

    subject: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Distance of the quartiles as a share of the median."""
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / self.median


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure that sums a benchmark up; `aim` is the most it should be, None when nothing was promised."""

    label: str
    unit: str
    value: float
    aim: float | None = None

    @property
    def verdict(self) -> str:
        if self.aim is None:
            return ""
        return "met" if self.value <= self.aim else "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything one benchmark has to say."""

    benchmark: str
    samples: Sequence[Samples]
    findings: Sequence[Finding]
    remarks: Sequence[str] = field(default=())

    @property
    def noise(self) -> list[str]:
        """One sentence for each series that varied too much to be relied on."""
        return [
            f"the machine was too noisy: {series.subject} varied by {series.spread:.0%}, measure again"
            for series in self.samples
            if series.spread > NOISY_SPREAD
        ]


def ratio(subject: Samples, baseline: Samples, aim: float | None = None) -> Finding:
    """Compare run by run, so that a drift of the machine touches both sides of each quotient alike."""
    quotients = [ours / theirs for ours, theirs in zip(subject.values, baseline.values, strict=True)]
    return Finding(f"{subject.subject} / {baseline.subject}", "x", statistics.median(quotients), aim)


def as_data(result: Result) -> dict[str, Any]:
    return {
        "benchmark": result.benchmark,
        "samples": [
            {
                "subject": series.subject,
                "unit": series.unit,
                "median": series.median,
                "spread": series.spread,
                "values": list(series.values),
            }
            for series in result.samples
        ],
        "findings": [
            {
                "label": finding.label,
                "unit": finding.unit,
                "value": finding.value,
                "aim": finding.aim,
                "verdict": finding.verdict,
            }
            for finding in result.findings
        ],
        "remarks": [*result.remarks],
        "noise": result.noise,
    }


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def as_markdown(results: Sequence[Result]) -> str:
    """The tables of `docs/performance.md`, then the remarks."""
    findings = [
        [
            result.benchmark,
            finding.label,
            f"{finding.value:.2f} {finding.unit}",
            "" if finding.aim is None else f"≤ {finding.aim:.3g} {finding.unit}",
            finding.verdict,
        ]
        for result in results
        for finding in result.findings
    ]
    samples = [
        [
            result.benchmark,
            series.subject,
            f"{series.median:.3g} {series.unit}",
            f"{series.spread:.0%}",
            str(len(series.values)),
        ]
        for result in results
        for series in result.samples
    ]
    remarks = [f"* {result.benchmark}: {line}" for result in results for line in (*result.remarks, *result.noise)]
    return "\n".join(
        [
            *_table(["benchmark", "finding", "value", "aim", "verdict"], findings),
            "",
            *_table(["benchmark", "measured", "median", "spread", "runs"], samples),
            "",
            *remarks,
        ]
    )
