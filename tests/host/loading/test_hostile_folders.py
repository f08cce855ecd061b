"""Folders made to fool the loader: only digested source runs, and under its own name."""

from __future__ import annotations

import importlib.util
import marshal
import sys
import zipfile
from pathlib import Path

import pytest

from crystal.host.loading.bytecode import BytecodeCache
from crystal.host.loading.context import LoadContext
from crystal.host.loading.errors import LoadFailed
from crystal.host.loading.snapshot import read_folder
from tests.host.loading.folders import Load, own_modules, run, write_folder

EVIL = "import sys\nsys._evil_ran = True\nvalue = 'evil'\n"


@pytest.fixture(autouse=True)
def nothing_evil_runs() -> object:
    """Fail a test in which the evil source ran."""
    yield
    assert not vars(sys).pop("_evil_ran", False)


def bytecode(source: str, path: str, flags: int) -> bytes:
    """Return a ``.pyc``; flags 1 is an unchecked hash, which Python runs whatever the source says."""
    code = marshal.dumps(compile(source, path, "exec"))
    return importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + b"\0" * 8 + code


@pytest.mark.parametrize("flags", [0, 1, 3])
def test_bytecode_in_the_folder_is_neither_read_nor_written(load: Load, tmp_path: Path, flags: int) -> None:
    tag = sys.implementation.cache_tag
    files: dict[str, str | bytes] = {
        "acme.py": "import utils, pkg.sub\nresult = utils.value + pkg.sub.value",
        "utils.py": "value = 'good'",
        "pkg/__init__.py": "",
        "pkg/sub.py": "value = '!'",
    }
    evil = bytecode(EVIL, "x", flags)
    names = [f"__pycache__/{name}.{tag}.pyc" for name in ("acme", "utils")]
    names += [f"pkg/__pycache__/{name}.{tag}.pyc" for name in ("__init__", "sub")]
    names += [f"__pycache__/utils.{tag}.opt-1.pyc", "utils.pyc", "pkg/sub.pyc", "lib/utils.pyc"]
    files.update(dict.fromkeys(names, evil))
    context = load(files)
    before = sorted(path for path in (tmp_path / "acme").rglob("*"))
    assert context.entry("acme.py").result == "good!"
    assert sorted(path for path in (tmp_path / "acme").rglob("*")) == before
    assert all((tmp_path / "acme" / name).read_bytes() == evil for name in names)


@pytest.mark.parametrize("name", ["only", "__pycache__.evil", "pkg.only", "zipped", "zipped.inner", "egg"])
def test_what_is_no_source_of_the_snapshot_is_no_module(load: Load, tmp_path: Path, name: str) -> None:
    folder = write_folder(
        tmp_path / "acme",
        {
            "only.pyc": bytecode(EVIL, "x", 1),
            "pkg/__init__.py": "",
            "pkg/only.pyc": bytecode(EVIL, "x", 1),
            "__pycache__/evil.py": EVIL,
            "__pycache__/__init__.py": EVIL,
            f"__pycache__/only.{sys.implementation.cache_tag}.pyc": bytecode(EVIL, "x", 1),
        },
    )
    (folder / "lib").mkdir()
    for archive in ("zipped.zip", "lib/zipped.zip", "egg.egg", "zipped.whl"):
        with zipfile.ZipFile(folder / archive, "w") as file:
            file.writestr("zipped.py", EVIL)
            file.writestr("egg.py", EVIL)
    missing = name if name.startswith("pkg.") else name.partition(".")[0]
    with pytest.raises(LoadFailed, match=f"No module named '{missing}'"):
        run(load, f"import {name}")


def test_what_changes_after_the_folder_was_read_does_not_run(load: Load) -> None:
    context = load({"acme.py": "import utils\nvalue = utils.value", "utils.py": "value = 'digested'"})
    folder = Path(context.modules.folder)
    for name in ("acme.py", "utils.py"):
        (folder / name).write_text(EVIL)
    write_folder(folder, {"utils/__init__.py": EVIL, "lib/late.py": EVIL, "json.py": EVIL})
    assert context.entry("acme.py").value == "digested"
    with pytest.raises(ModuleNotFoundError):
        context.import_module("late")
    (folder / "utils.py").unlink()
    (folder / "acme.py").unlink()
    context.close()
    again = LoadContext("again", context.modules.snapshot)
    try:
        assert again.entry("acme.py").value == "digested"
    finally:
        again.close()


def test_path_files_customisation_and_test_configuration_do_not_run(load: Load) -> None:
    context = load(
        {
            "acme.py": "",
            "evil.pth": f"import sys; exec({EVIL!r})\n",
            "lib/evil.pth": f"import sys; exec({EVIL!r})\n/tmp\n",
            "lib/evil-nspkg.pth": f"import sys; exec({EVIL!r})\n",
            "sitecustomize.py": EVIL,
            "usercustomize.py": EVIL,
            "lib/sitecustomize.py": EVIL,
            "conftest.py": EVIL,
            "setup.py": EVIL,
            "__init__.py": EVIL,
            "__main__.py": EVIL,
            "lib/__init__.py": EVIL,
            "lib/dist-1.dist-info/entry_points.txt": "[crystal]\nevil = conftest\n[pytest11]\nevil = conftest\n",
        }
    )
    context.entry("acme.py")
    assert own_modules(context) == {"acme"}


NAMES = ["crystal", "pluggy", "sys", "builtins", "_crystal_ctx", "__init__", "importlib", "json", "site", "__main__"]


@pytest.mark.parametrize("name", NAMES)
def test_a_module_of_any_name_can_be_the_entry_and_replaces_nothing(load: Load, name: str) -> None:
    before = dict(sys.modules)
    context = load(
        {f"{name}.py": "import utils, json, crystal, sys\nvalue = utils.value, json.dumps(1)", "utils.py": "value = 1"}
    )
    module = context.entry(f"{name}.py")
    assert module.value == (1, "1")
    assert module.__name__ == f"{context.package}.{name}"
    assert all(sys.modules[known] is module for known, module in before.items())
    assert module.sys is sys


@pytest.mark.parametrize("name", ["_crystal_ctx", "__init__", "sitecustomize", "conftest", "__main__x"])
def test_odd_names_are_ordinary_modules_of_the_folder(load: Load, name: str) -> None:
    module = run(load, f"import {name} as result", {f"{name}.py": "value = 1"})
    assert module.result.value == 1


def test_a_module_may_take_its_own_place(load: Load) -> None:
    module = run(
        load,
        "import replaced, pkg.replaced\nresult = replaced.value, pkg.replaced.value",
        {
            "replaced.py": "import sys\nclass R:\n    value = 1\nsys.modules[__name__] = R()",
            "pkg/__init__.py": "",
            "pkg/replaced.py": "import sys\nclass R:\n    value = 2\nsys.modules[__name__] = R()",
        },
    )
    assert module.result == (1, 2)
    context = load({"own.py": "import sys\nclass R:\n    name = 'r'\nsys.modules[__name__] = R()"}, key="own", at="own")
    assert context.entry("own.py").name == "r"


@pytest.mark.parametrize(
    "source",
    [
        "del __builtins__['len']\nlen",
        "__builtins__.clear()\nlen",
        "__builtins__ = {}\ndef f(): return len('x')\nf()",
        "globals().clear()\nlen_of_acme",
        "__builtins__['__import__'] = None\nimport json",
        "del __builtins__['__import__']\nimport json",
        "import builtins\nbuiltins.__import__ = lambda *a, **k: 1 / 0\nimport json",
        "__spec__ = __loader__ = __path__ = __package__ = __name__ = None\nfrom . import x",
        "__name__ = 'crystal.engine.spy'\n__package__ = 'crystal.engine'\nfrom . import nothing_there",
    ],
)
def test_code_that_breaks_its_own_imports_breaks_nothing_else(load: Load, source: str) -> None:
    with pytest.raises(LoadFailed):
        run(load, source)
    other = load(
        {"acme.py": "import utils, json\nresult = len(utils.__name__)", "utils.py": ""}, key="other", at="other"
    )
    assert other.entry("acme.py").result == len(f"{other.package}.utils")
    assert len("x") == 1


@pytest.mark.parametrize(
    "name", ["a/b", "../acme", "a\\b", "/etc/passwd", "a\0b", "..", "a..b", "a.", ".a", " ", "é" * 5000, "a" * 100_000]
)
def test_names_that_are_no_names_find_nothing(load: Load, name: str) -> None:
    context = load(
        {
            "acme.py": "import importlib\nfind = importlib.import_module\nraw = __import__",
            "a/b.py": "",
            "a/__init__.py": "",
        }
    )
    module = context.entry("acme.py")
    for function in (module.find, module.raw):
        with pytest.raises((ImportError, ValueError, TypeError, KeyError)):
            function(name)
    with pytest.raises((ImportError, ValueError, TypeError)):
        context.import_module(name)


@pytest.mark.parametrize("name", [None, 1, b"json", "", ["json"]])
def test_what_is_no_text_is_no_name(load: Load, name: object) -> None:
    module = run(load, "raw = __import__")
    with pytest.raises((TypeError, ValueError)):
        module.raw(name)


def test_a_deep_chain_of_imports_fails_like_any_recursion(load: Load) -> None:
    files = {f"m{number}.py": f"import m{number + 1}" for number in range(600)}
    context = load({**files, "acme.py": "import m0"})
    with pytest.raises(LoadFailed, match="RecursionError"):
        context.entry("acme.py")
    assert own_modules(context) == set()


def test_a_hostile_cache_entry_under_a_sources_name_is_recompiled(load: Load, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    source = {"acme.py": "value = 'good'", "other.py": EVIL}
    load(source, cache=BytecodeCache(cache)).import_module("acme")
    [good] = cache.iterdir()
    evil = BytecodeCache(tmp_path / "evil")
    evil.compile(EVIL.encode(), str(tmp_path / "acme/acme.py"))
    [entry] = (tmp_path / "evil").iterdir()
    good.write_bytes(entry.read_bytes())
    context = load(key="again", cache=BytecodeCache(cache))
    assert context.entry("acme.py").value == "good"


def test_the_reading_of_a_folder_runs_nothing(tmp_path: Path) -> None:
    write_folder(tmp_path / "acme", {"acme.py": EVIL, "__init__.py": EVIL, "conftest.py": EVIL, "x.pth": EVIL})
    LoadContext("reading", read_folder(tmp_path / "acme")).close()
