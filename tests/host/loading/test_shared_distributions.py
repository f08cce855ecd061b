"""What a manifest declares as shared is loaded once for the process, under its plain name, from the digested files."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crystal.host.loading.errors import LoadFailed
from tests.host.loading.folders import Load, write_distribution

numbers = itertools.count()


@pytest.fixture
def name() -> Iterator[str]:
    """Return a module name that no other test shares, since what is shared stays for the process."""
    name = f"shared_dist_{next(numbers)}"
    yield name
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]


def bring(tmp_path: Path, at: str, name: str, version: str) -> None:
    """Write a distribution into the library of a folder."""
    files = {f"{name}/__init__.py": f"from {name} import inner\nversion = '{version}'", f"{name}/inner.py": "runs = []"}
    write_distribution(tmp_path / at / "lib", name, version, files)


SOURCE = "import {name}\nimport {name}.inner as inner\nfrom importlib import import_module, metadata\nmodule = {name}\n"


def test_the_first_folder_brings_it_and_a_second_of_that_version_uses_it(load: Load, tmp_path: Path, name: str) -> None:
    modules = []
    for at in ("a", "b"):
        bring(tmp_path, at, name, "1.0")
        source = SOURCE + "version = metadata.version('{name}')\nsame = import_module('{name}') is {name}"
        context = load({"acme.py": source.format(name=name)}, key=at, at=at, shared=(name,))
        modules.append(context.entry("acme.py"))
    one, two = modules
    assert one.module is two.module is sys.modules[name]
    assert one.module.__name__ == name
    assert one.module.__file__.startswith(str(tmp_path / "a"))
    assert (one.version, two.version, one.same) == ("1.0", "1.0", True)
    assert not [path for path in sys.path if path.startswith(str(tmp_path))]
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_second_version_is_refused(load: Load, tmp_path: Path, name: str) -> None:
    for at, version in (("a", "1.0"), ("b", "2.0")):
        bring(tmp_path, at, name, version)
    load({"acme.py": SOURCE.format(name=name)}, key="plugin:home/A", at="a", shared=(name,)).entry("acme.py")
    with pytest.raises(LoadFailed) as failed:
        load({"acme.py": SOURCE.format(name=name)}, key="plugin:home/B", at="b", shared=(name,)).entry("acme.py")
    assert f"{name} 2.0 cannot be loaded beside {name} 1.0 of plugin:home/A" in str(failed.value)


def test_without_metadata_the_content_is_the_version(load: Load, tmp_path: Path, name: str) -> None:
    for at, value in (("a", "1"), ("b", "1"), ("c", "2")):
        files = {"acme.py": f"import {name}", f"lib/{name}.py": f"value = {value}"}
        context = load(files, key=at, at=at, shared=(name,))
        if at == "c":
            with pytest.raises(LoadFailed, match=rf"{name} build \w+ cannot be loaded beside {name} build \w+ of a"):
                context.entry("acme.py")
        else:
            assert context.entry("acme.py")


def test_what_nobody_brings_is_missing(load: Load, name: str) -> None:
    with pytest.raises(LoadFailed, match=f"No module named '{name}', which is declared as shared: put it into"):
        load({"acme.py": f"import {name}"}, shared=(name,)).entry("acme.py")


def test_a_folder_that_does_not_declare_it_has_its_own(load: Load, tmp_path: Path, name: str) -> None:
    for at, version in (("a", "1.0"), ("b", "2.0")):
        bring(tmp_path, at, name, version)
    one = load({"acme.py": f"import {name} as module"}, key="a", at="a", shared=(name,)).entry("acme.py")
    two = load({"acme.py": f"import {name} as module"}, key="b", at="b").entry("acme.py")
    assert (one.module.version, two.module.version) == ("1.0", "2.0")


def test_what_the_host_has_is_never_replaced(load: Load, tmp_path: Path) -> None:
    write_distribution(tmp_path / "acme/lib", "click", "0.0.1", {"click/__init__.py": "evil = True"})
    with pytest.raises(LoadFailed, match=r"click 0\.0\.1 cannot be loaded beside click [\d.]+ of the host's own env"):
        load({"acme.py": "import click"}, shared=("click",)).entry("acme.py")
    import click

    assert not hasattr(click, "evil")


def test_its_python_files_are_those_that_were_digested(load: Load, tmp_path: Path, name: str) -> None:
    bring(tmp_path, "acme", name, "1.0")
    context = load({"acme.py": f"import {name}\ndef late():\n    import {name}.late"}, shared=(name,))
    library = tmp_path / "acme" / "lib" / name
    (library / "inner.py").write_text("raise ValueError('changed')")
    (library / "late.py").write_text("raise ValueError('late')")
    module = context.entry("acme.py")
    with pytest.raises(ModuleNotFoundError, match=r"late"):
        module.late()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{name}.late")


def compiled(tmp_path: Path, name: str) -> Path:
    """Write a distribution around compiled code that is installed anyway; return the compiled file."""
    spec = importlib.util.find_spec("rpds.rpds")
    assert spec is not None
    assert spec.origin is not None
    files = {f"{name}/__init__.py": f"from {name}.rpds import HashTrieMap\nfrom .rpds import List"}
    write_distribution(tmp_path / "acme" / "lib", name, "1.0", files)
    return Path(shutil.copy(spec.origin, tmp_path / "acme" / "lib" / name))


def test_compiled_code_works_when_shared(load: Load, tmp_path: Path, name: str) -> None:
    compiled(tmp_path, name)
    source = f"import {name}\nresult = {name}.HashTrieMap({{'a': 1}})['a'], {name}.rpds.__name__"
    module = load({"acme.py": source}, shared=(name,)).entry("acme.py")
    assert module.result == (1, f"{name}.rpds")


def test_compiled_code_is_refused_when_not_shared(load: Load, tmp_path: Path, name: str) -> None:
    compiled(tmp_path, name)
    with pytest.raises(LoadFailed, match=rf'"shared": \["{name}"\]'):
        load({"acme.py": f"import {name}"}).entry("acme.py")


def test_compiled_code_that_changed_since_is_not_loaded(load: Load, tmp_path: Path, name: str) -> None:
    library = compiled(tmp_path, name)
    context = load({"acme.py": f"import {name}"}, shared=(name,))
    with open(library, "ab") as file:
        file.write(b"\0")
    with pytest.raises(LoadFailed, match="changed since its folder was read"):
        context.entry("acme.py")


def test_a_closed_context_that_never_loaded_it_leaves_it_to_the_next(load: Load, tmp_path: Path, name: str) -> None:
    for at, version in (("a", "1.0"), ("b", "2.0")):
        bring(tmp_path, at, name, version)
    (tmp_path / "a" / "lib" / name / "__init__.py").write_text("raise ValueError")
    first = load({"acme.py": f"import {name}"}, key="a", at="a", shared=(name,))
    with pytest.raises(LoadFailed):
        first.entry("acme.py")
    first.close()
    second = load({"acme.py": f"import {name} as module"}, key="b", at="b", shared=(name,))
    assert second.entry("acme.py").module.version == "2.0"


def test_shared_distributions_find_one_another(load: Load, tmp_path: Path, name: str) -> None:
    other = f"{name}_other"
    write_distribution(tmp_path / "acme/lib", name, "1", {f"{name}.py": f"import {other}\nvalue = {other}.value"})
    write_distribution(tmp_path / "acme/lib", other, "1", {f"{other}.py": "value = 1"})
    try:
        source = f"import {name}\nresult = {name}.value"
        assert load({"acme.py": source}, shared=(other, name)).entry("acme.py").result == 1
    finally:
        sys.modules.pop(other, None)
