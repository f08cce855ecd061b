"""The benchmarks of the search tools, on trees of their own: 200 MB of text, 100,000 files, a file of 1 GB."""

import json
import random
from pathlib import Path

from benchmarks.figures import Finding, Result, Samples, ratio
from benchmarks.process import Command, measure
from benchmarks.stage import Stage

GREP_AIM = 1.5
SECONDS_AIM = 1.5
GROWTH_AIM_MIB = 64.0
TEXT_FILES = 10_000
TEXT_BYTES = 20_000
FILES = 100_000
FOLDERS = 1_000
RARE = 997
LARGE_BYTES = 10**9
LARGE_HEAD = 16 * 2**20
WORDS = (
    "alpha",
    "beta",
    "return",
    "def",
    "class",
    "self",
    "import",
    "value",
    "=",
    "(",
    ")",
    ":",
    "for",
    "None",
    "True",
)


def write_text(folder: Path) -> None:
    """Write 200 MB of lines of code-like words; a few files hold the text that is searched for."""
    chance = random.Random(1)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(2, 12))) + "\n" for _ in range(5_000)]
    for number in range(TEXT_FILES):
        written = ["x = needle_42(y)\n"] if number % RARE == 0 else []
        size = 0
        while size < TEXT_BYTES:
            written.append(chance.choice(lines))
            size += len(written[-1])
        place(folder, number).write_text("".join(written), encoding="utf-8")


def write_many(folder: Path) -> None:
    for number in range(FILES):
        place(folder, number).touch()


def write_flat(folder: Path) -> None:
    folder.mkdir()
    for number in range(FILES):
        (folder / f"f{number:06}.txt").touch()


def write_large(folder: Path) -> None:
    """Write a file of 1 GB: text at its start and its end, a hole between."""
    folder.mkdir()
    with (folder / "log.txt").open("wb") as file:
        line = b"one line of a log, as long as such lines often are, more or less\n"
        file.write(line * (LARGE_HEAD // len(line)))
        file.truncate(LARGE_BYTES)
        file.seek(LARGE_BYTES)
        file.write(line * 100)


def place(folder: Path, number: int) -> Path:
    """Where a numbered file of a tree lies; its folder is made."""
    number_of_folder = number % FOLDERS
    parent = folder / f"p{number_of_folder % 20:02}" / f"m{number_of_folder // 20:02}"
    parent.mkdir(parents=True, exist_ok=True)
    return parent / f"f{number:06}.txt"


TREES = {"text": write_text, "many": write_many, "flat": write_flat, "large": write_large}
SUBJECTS = {"glob": "many", "tree": "many", "list": "flat", "read": "large"}
BASELINES = {"glob": "os.walk", "tree": "os.walk", "list": "os.walk", "read": "tail -n 5"}


def tree(stage: Stage, name: str) -> Path:
    """A tree of the stage, made when it is first needed."""
    folder = stage.scratch / "trees" / name
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        TREES[name](folder)
    return folder


def probe(stage: Stage, kind: str, folder: Path) -> list[dict[str, float]]:
    """What each run of a probe found, after one that warms up and does not count."""
    command = Command(
        arguments=[str(stage.python), str(Path(__file__).with_name("search_probe.py")), kind, str(folder)],
        environment=stage.environment("search"),
        directory=stage.workspace,
    )
    return [json.loads(measure(command).output) for _ in range(stage.runs + 1)][1:]


def samples(runs: list[dict[str, float]], key: str, subject: str) -> Samples:
    return Samples(subject, "s", tuple(run[key] for run in runs))


def search_content(stage: Stage) -> Result:
    """Time to search 200 MB for a rare text, with ripgrep and without it, against bare `rg`; start-up is left out."""
    runs = probe(stage, "grep", tree(stage, "text"))
    bare = samples(runs, "rg", "bare rg, 200 MB")
    ours = samples(runs, "grep", "grep, 200 MB")
    fallback = samples(runs, "fallback", "grep without ripgrep, 200 MB")
    return Result(
        benchmark="search_content",
        samples=[ours, fallback, bare],
        findings=[ratio(ours, bare, GREP_AIM), ratio(fallback, bare)],
    )


def search_names(stage: Stage) -> Result:
    """Time and memory of `glob`, `tree` and `list` with 100,000 files, against `os.walk` of the same tree."""
    return against_baselines(stage, "search_names", ("glob", "tree", "list"))


def read_large(stage: Stage) -> Result:
    """Time and memory of a `read` that asks for the last lines of 1 GB, against `tail`."""
    return against_baselines(stage, "read_large", ("read",))


def against_baselines(stage: Stage, benchmark: str, kinds: tuple[str, ...]) -> Result:
    """Measure tools against their baselines: seconds, their ratio, and how much memory grew."""
    taken: list[Samples] = []
    findings: list[Finding] = []
    for kind in kinds:
        name = SUBJECTS[kind]
        runs = probe(stage, kind, tree(stage, name))
        ours = samples(runs, "ours", f"{kind}, {name}")
        bare = samples(runs, "bare", f"{BASELINES[kind]} beside {kind}, {name}")
        taken += [ours, bare]
        findings += [
            Finding(ours.subject, "s", ours.median, SECONDS_AIM),
            Finding(f"{kind}, growth of the peak", "MiB", max(run["grown"] for run in runs), GROWTH_AIM_MIB),
            ratio(ours, bare),
        ]
    return Result(benchmark=benchmark, samples=taken, findings=findings)
