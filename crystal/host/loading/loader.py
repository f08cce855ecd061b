"""Make modules from the bytes of a snapshot: never from the disk, never from a ``__pycache__``."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import linecache
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, ModuleType
from typing import Any, overload

from crystal.host.loading.bytecode import BytecodeCache, compile_source
from crystal.host.loading.errors import ContextImportError
from crystal.host.loading.modules import FolderModules, FoundModule


class FolderCode:
    """The code of one folder, ready to run.

    :param builtins: what its modules find as ``__builtins__``; ``None`` leaves them the interpreter's own.
    """

    def __init__(
        self, modules: FolderModules, cache: BytecodeCache | None, builtins: dict[str, Any] | None = None
    ) -> None:
        self.modules = modules
        self.builtins = builtins
        self._cache = cache
        self._lines: dict[str, Any] = {}

    def compile(self, path: str, source: bytes) -> CodeType:
        """Return the code of one file.

        :raises SyntaxError: as ``compile`` does, always with the file's name.
        """
        try:
            return compile_source(source, path) if self._cache is None else self._cache.compile(source, path)
        except SyntaxError as error:
            error.filename = error.filename or path  # not there for a source with a NUL
            raise

    def show_lines(self, path: str, source: bytes) -> None:
        """Have tracebacks and ``inspect`` show the lines that run, whatever the file holds by then."""
        # No time stamp: linecache then takes the entry as it is, as it does for loaders of other kinds.
        entry = self._lines[path] = (len(source), None, SourceLines(source), path)
        linecache.cache[path] = entry  # type: ignore[assignment]  # any sequence of lines will do

    def forget_lines(self) -> None:
        """Take those lines back."""
        for path, entry in self._lines.items():
            if linecache.cache.get(path) is entry:
                del linecache.cache[path]


class SourceLines(Sequence[str]):
    """The lines of a source, decoded when somebody asks for one."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._decoded: list[str] | None = None

    @property
    def _lines(self) -> list[str]:
        if self._decoded is None:
            # Not splitlines: it also ends lines at form feeds and the like.
            lines = io.StringIO(importlib.util.decode_source(self._source)).readlines()
            if lines and not lines[-1].endswith("\n"):
                lines[-1] += "\n"
            self._decoded = lines
        return self._decoded

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)


class SnapshotLoader(importlib.machinery.SourceFileLoader):
    """Python's loader of source files, with the bytes of a snapshot in place of the file's.

    A file outside the folder is compiled from the disk, so that code may load a script by its path.
    """

    def __init__(self, fullname: str, path: str, code: FolderCode) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_data(self, path: Any) -> bytes:
        """Return the snapshot's bytes of a Python file; data is read from the disk."""
        source = self._code.modules.source(str(path)) if str(path).endswith(".py") else None
        return super().get_data(path) if source is None else source

    def get_code(self, fullname: str) -> CodeType:
        """Compile the module, or take what an equal source was compiled to before."""
        path = self.get_filename(fullname)
        return self._code.compile(path, self._source(path))

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code in it."""
        source = self._source(self.path)
        code = self._code.compile(self.path, source)
        if self._code.builtins is not None:
            vars(module)["__builtins__"] = self._code.builtins
        self._code.show_lines(self.path, source)
        exec(code, vars(module))  # noqa: S102  # this is what a loader is for

    def _source(self, path: str) -> bytes:
        source = self._code.modules.source(path)
        if source is not None:
            return source
        if self._code.modules.relative(path) is not None:
            raise ContextImportError(f"{path} was not there when its folder was read", name=self.name, path=path)
        return super().get_data(path)

    def _cache_bytecode(self, source_path: str, bytecode_path: str, data: bytes) -> None:
        """Write no bytecode, whoever asks."""


class NamespacePath(list[str]):
    """The folders of a namespace package; ``importlib.resources`` knows such a path by what it calls itself."""

    def __repr__(self) -> str:
        return f"NamespacePath({list(self)!r})"


def make_spec(
    fullname: str, found: FoundModule, code: FolderCode, load_compiled: Callable[[str, str], Any] | None = None
) -> importlib.machinery.ModuleSpec:
    """Return the spec of a module that was found."""
    if not found.path:
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = NamespacePath(found.portions)
        return spec
    loader = (
        load_compiled(fullname, found.path)
        if load_compiled is not None and found.path.endswith((".so", ".pyd", ".dylib"))
        else SnapshotLoader(fullname, found.path, code)
    )
    spec = importlib.machinery.ModuleSpec(fullname, loader, origin=found.path)
    spec.has_location = True
    if found.portions:
        spec.submodule_search_locations = list(found.portions)
    return spec


def ask_finders(
    finders: Iterable[Any], fullname: str, path: Sequence[str] | None, target: ModuleType | None
) -> importlib.machinery.ModuleSpec | None:
    """Ask finders that code of the folder brought, such as the one of ``six``."""
    for finder in finders:
        find = getattr(finder, "find_spec", None)
        spec: importlib.machinery.ModuleSpec | None = None if find is None else find(fullname, path, target)
        if spec is not None:
            return spec
    return None
