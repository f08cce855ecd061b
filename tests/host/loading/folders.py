"""Folders with code in them, and contexts that are closed when a test ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.context import LoadContext
from crystal.host.loading.snapshot import read_folder

Load = Callable[..., LoadContext]


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files by their relative names; texts are dedented."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else dedent(content).encode())
    return folder


def write_distribution(library: Path, name: str, version: str, files: Mapping[str, str | bytes]) -> Path:
    """Write a distribution as ``pip install --target`` leaves it; ``name`` is that of the distribution."""
    info = f"{name}-{version}.dist-info"
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/METADATA", f"{info}/RECORD"))
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    return write_folder(library, {**files, f"{info}/METADATA": metadata, f"{info}/RECORD": record})


@contextmanager
def loading(folder: Path) -> Iterator[Load]:
    """Yield a function that writes a folder and opens a context on it; all are closed in the end."""
    opened: list[LoadContext] = []

    def load(
        files: Mapping[str, str | bytes] | None = None,
        key: str = "plugin:home/Acme",
        *,
        at: str = "acme",
        shared: tuple[str, ...] = (),
        cache: BytecodeCache | None = None,
    ) -> LoadContext:
        place = write_folder(folder / at, files or {})
        place.mkdir(exist_ok=True)
        context = LoadContext(key, read_folder(place), shared=shared, cache=cache)
        opened.append(context)
        return context

    try:
        yield load
    finally:
        for context in opened:
            context.close()


def run(load: Load, source: str, files: Mapping[str, str | bytes] | None = None) -> Any:
    """Run ``acme.py`` beside other files and return the module."""
    return load({"acme.py": source, **(files or {})}).entry("acme.py")


def own_modules(context: LoadContext) -> set[str]:
    """Return the plain names of what a context has in ``sys.modules``."""
    prefix = f"{context.package}."
    return {name.removeprefix(prefix) for name in sys.modules if name.startswith(prefix)}
