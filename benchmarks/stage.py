"""The scratch folder that benchmarks run in: installed package, workspace with notes, model server."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import BenchmarkError, prepare
from benchmarks.script import note_name, note_text

CHECKOUT = Path(__file__).parent.parent
NOT_INSTALLED = (".*", "build", "dist", "*.egg-info", "__pycache__", "node_modules", "venv")
NOTES = 421


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where things lie; `codex` is None when there is none to compare with, `codex_missing` says why."""

    scratch: Path
    venv: Path
    workspace: Path
    runs: int
    codex: Path | None
    codex_missing: str = ""

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def crystal(self) -> Path:
        return self.venv / "bin" / "crystal"

    def home(self, name: str) -> Path:
        """A home directory of its own for one client, outside the workspace."""
        home = self.scratch / "homes" / name
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return home

    def environment(self, name: str, **variables: str) -> dict[str, str]:
        """A small, fixed environment: of the caller's, only the search path reaches a measured process."""
        fixed = {"LANG": "C.UTF-8", "TERM": "dumb", "HOME": str(self.home(name))}
        return {"PATH": os.environ.get("PATH", os.defpath), **fixed, **variables}


def install(venv: Path, scratch: Path) -> None:
    """Install the checkout, not editable, into a new or reused virtual environment.

    A copy is built, so that the build leaves nothing in the checkout and no file of an older build gets in.
    """
    python = venv / "bin" / "python"
    if not python.exists():
        prepare([sys.executable, "-m", "venv", str(venv)], scratch)
    source = shutil.copytree(CHECKOUT, scratch / "checkout", ignore=shutil.ignore_patterns(*NOT_INSTALLED))
    prepare([str(python), "-m", "pip", "install", "--quiet", "--compile", str(source)], scratch)
    place = prepare([str(python), "-c", "import crystal; print(crystal.__file__)"], scratch).strip()
    if not Path(place).is_relative_to(venv):
        raise BenchmarkError(f"the package under test was not installed into {venv}: it is {place}")


def write_notes(workspace: Path) -> None:
    """Fill a workspace with the notes that the model server asks for."""
    for index in range(NOTES):
        path = workspace / note_name(index)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note_text(index), encoding="utf-8")


@contextmanager
def model_server(log: Path, *, rounds: int, think_ms: float = 0.0) -> Iterator[str]:
    """Run the stand-in model server and yield its base URI."""
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "benchmarks.model_server",
            "--log",
            str(log),
            "--rounds",
            str(rounds),
            "--think",
            str(think_ms),
        ],
        cwd=CHECKOUT,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        if not port:
            raise BenchmarkError("the model server did not start")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
