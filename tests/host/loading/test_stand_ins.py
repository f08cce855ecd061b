"""What the standard library finds by a module's name, it finds in the folder of the code that asks."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from tests.host.loading.folders import Load, run, write_distribution, write_folder


def test_each_stand_in_has_what_its_original_has(load: Load) -> None:
    module = run(
        load,
        """
        import importlib, importlib.util, importlib.machinery, importlib.resources, importlib.metadata, pkgutil
        import importlib.abc, importlib.resources.abc
        from importlib import util, abc as also_abc
        from importlib import *
        from pkgutil import *
        every = [importlib, importlib.util, importlib.machinery, importlib.resources, importlib.metadata, pkgutil]
        """,
    )
    for stand_in in module.every:
        original = sys.modules[stand_in.__name__]
        assert stand_in is not original
        assert dir(stand_in) == dir(original)
        for name in dir(original):
            assert hasattr(stand_in, name)
        with pytest.raises(AttributeError):
            stand_in.no_such_thing  # noqa: B018
    assert module.util is module.importlib.util
    assert module.also_abc is module.importlib.abc is sys.modules["importlib.abc"]
    assert module.importlib.resources.abc is sys.modules["importlib.resources.abc"]
    assert module.import_module is module.importlib.import_module


def test_find_spec(load: Load) -> None:
    context = load({"acme.py": "from importlib.util import find_spec", "pkg/__init__.py": "", "pkg/sub.py": ""})
    find = context.entry("acme.py").find_spec
    folder = context.modules.folder
    assert find("pkg").origin == f"{folder}/pkg/__init__.py"
    assert find("pkg.sub").origin == find(".sub", "pkg").origin == f"{folder}/pkg/sub.py"
    assert find("json").name == "json"
    assert find("crystal.types") is not None
    for missing in ("yaml", "pkg.nothing", "json.nothing"):
        assert find(missing) is None
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'nothing'"):
        find("nothing.sub")


def test_a_spec_that_was_found_can_be_loaded(load: Load) -> None:
    module = run(
        load,
        """
        import importlib.util, sys
        spec = importlib.util.find_spec("other")
        other = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(other)
        lazy_spec = importlib.util.find_spec("lazy")
        lazy_spec.loader = importlib.util.LazyLoader(lazy_spec.loader)
        lazy = importlib.util.module_from_spec(lazy_spec)
        lazy_spec.loader.exec_module(lazy)
        lazy_value = lazy.value
        """,
        {"other.py": "import utils\nvalue = utils.v", "utils.py": "v = 1", "lazy.py": "value = 2"},
    )
    assert (module.other.value, module.lazy_value) == (1, 2)


def test_a_file_of_the_folder_loaded_by_its_path_is_the_one_that_was_digested(load: Load) -> None:
    context = load(
        {
            "acme.py": """
                import importlib.machinery, importlib.util, pathlib
                def by_path(name, file):
                    spec = importlib.util.spec_from_file_location(name, pathlib.Path(__file__).parent / file)
                    module = importlib.util.module_from_spec(spec)
                    spec.loader.exec_module(module)
                    return module
                def by_loader(name, file):
                    loader = importlib.machinery.SourceFileLoader(name, str(pathlib.Path(__file__).parent / file))
                    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
                    loader.exec_module(module)
                    return module
            """,
            "part.py": "import utils\nvalue = 'digested' + utils.value",
            "utils.py": "value = '!'",
            "pkg/__init__.py": "from .inner import value",
            "pkg/inner.py": "value = 'inner'",
        }
    )
    module = context.entry("acme.py")
    Path(context.modules.folder, "part.py").write_text("value = 'changed'")
    Path(context.modules.folder, "late.py").write_text("value = 'late'")
    assert module.by_path("part", "part.py").value == "digested!"
    assert module.by_loader("part", "part.py").value == "digested!"
    assert module.by_path("pkg", "pkg/__init__.py").value == "inner"
    for function in (module.by_path, module.by_loader):
        with pytest.raises(ImportError, match="was not there when its folder was read"):
            function("late", "late.py")
    for file in ("part.pyc", "part.so"):
        with pytest.raises(ImportError, match="is not Python source"):
            module.by_path("part", file)


def test_a_script_elsewhere_may_be_loaded_by_its_path(load: Load, tmp_path: Path) -> None:
    write_folder(tmp_path, {"elsewhere/script.py": "value = 1"})
    module = run(
        load,
        f"""
        import importlib.util
        spec = importlib.util.spec_from_file_location("script", {str(tmp_path / "elsewhere/script.py")!r})
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        """,
    )
    assert (module.script.__name__, module.script.value) == ("script", 1)


RESOURCES = {
    "pkg/__init__.py": "",
    "pkg/text.txt": "text",
    "pkg/data/file.bin": b"\0",
    "data/more.txt": "more",
    "lib/dep/__init__.py": "",
    "lib/dep/own.txt": "own",
}


@pytest.mark.parametrize(
    "source",
    [
        "from importlib.resources import files\nresult = files('pkg').joinpath('text.txt').read_text()",
        "from importlib import resources\nimport pkg\nresult = resources.files(pkg).joinpath('text.txt').read_text()",
        "import importlib.resources as r\nimport pkg\nresult = r.files(pkg.__name__).joinpath('text.txt').read_text()",
        "from importlib.resources import *\nwith as_file(files('pkg') / 'text.txt') as p:\n    result = p.read_text()",
        "import pkgutil\nresult = pkgutil.get_data('pkg', 'text.txt').decode()",
        "import pkgutil, pkg\nresult = pkgutil.get_data(pkg.__name__, 'text.txt').decode()",
        "import pkg\nresult = pkg.__loader__.get_data(pkg.__path__[0] + '/text.txt').decode()",
    ],
)
def test_resources_by_name_and_by_module(load: Load, source: str) -> None:
    assert run(load, source, RESOURCES).result == "text"


def test_resources_of_folders_without_code_and_of_libraries(load: Load) -> None:
    module = run(
        load,
        """
        from importlib.resources import files
        results = [
            files("pkg.data").joinpath("file.bin").read_bytes(),
            files("data").joinpath("more.txt").read_text(),
            files("dep").joinpath("own.txt").read_text(),
            files("json").joinpath("decoder.py").is_file(),
            sorted(entry.name for entry in files("pkg").iterdir()),
        ]
        """,
        RESOURCES,
    )
    assert module.results == [b"\0", "more", "own", True, ["__init__.py", "data", "text.txt"]]


def test_pkgutil(load: Load) -> None:
    context = load(
        {
            "acme.py": """
                import pkgutil, pkg
                top = sorted(found.name for found in pkgutil.iter_modules())
                inner = [found.name for found in pkgutil.iter_modules(pkg.__path__, "pkg.")]
                walked = [found.name for found in pkgutil.walk_packages(pkg.__path__, "pkg.")]
                real = [found.name.removeprefix(__package__) for found
                        in pkgutil.walk_packages(pkg.__path__, pkg.__name__ + ".")]
                named = pkgutil.resolve_name("pkg.sub.leaf:value"), pkgutil.resolve_name("pkg.sub.leaf.value")
                failed = []
                broken = list(pkgutil.walk_packages(None, "", failed.append))
            """,
            "pkg/__init__.py": "",
            "pkg/one.py": "",
            "pkg/sub/__init__.py": "",
            "pkg/sub/leaf.py": "value = 1",
            "lib/dep.py": "",
            "lib/bad/__init__.py": "raise ValueError",
        }
    )
    module = context.entry("acme.py")
    assert module.top == ["acme", "bad", "dep", "pkg"]
    assert module.inner == ["pkg.one", "pkg.sub"]
    assert module.walked == ["pkg.one", "pkg.sub", "pkg.sub.leaf"]
    assert module.real == [".pkg.one", ".pkg.sub", ".pkg.sub.leaf"]
    assert module.named == (1, 1)
    assert module.failed == ["bad"]


def test_extend_path(load: Load) -> None:
    source = "from pkgutil import extend_path\n__path__ = extend_path(__path__, __name__)"
    module = run(
        load,
        "import pkg.one, pkg.two",
        {"pkg/__init__.py": source, "pkg/one.py": "", "lib/pkg/__init__.py": source, "lib/pkg/two.py": ""},
    )
    assert module.pkg.two.__file__.endswith("lib/pkg/two.py")


def test_metadata_is_that_of_the_folder_and_of_what_the_host_provides(load: Load, tmp_path: Path) -> None:
    library = tmp_path / "acme" / "lib"
    write_distribution(library, "Some.Dist", "1.5", {"some_dist/__init__.py": "def go(): return 'gone'"})
    write_folder(
        library,
        {"Some.Dist-1.5.dist-info/entry_points.txt": "[acme.things]\ngo = some_dist:go\n[console_scripts]\nx = y:z\n"},
    )
    module = run(
        load,
        """
        import importlib.metadata as m
        import some_dist
        versions = [m.version("some-dist"), m.version(some_dist.__name__), m.metadata("some_dist")["Name"]]
        host = m.version("pydantic"), m.version("pluggy"), m.version("crystal-harness")
        named = [d.metadata["Name"] for d in m.distributions()]
        points = m.entry_points(group="acme.things")
        loaded = [point.load()() for point in points]
        through = [point.load()() for point in m.distribution("Some.Dist").entry_points if point.name == "go"]
        tops = m.packages_distributions()
        files = [str(file) for file in m.files("some.dist")][:1]
        requires = m.requires("some.dist")
        missing = []
        for name in ("click", "pytest", "nothing"):
            try:
                m.version(name)
            except m.PackageNotFoundError as error:
                missing.append(error.name)
        """,
    )
    assert module.versions == ["1.5", "1.5", "Some.Dist"]
    from importlib import metadata

    assert module.host == (
        metadata.version("pydantic"),
        metadata.version("pluggy"),
        metadata.version("crystal-harness"),
    )
    assert module.named == ["Some.Dist"]
    assert (module.loaded, module.through) == (["gone"], ["gone"])
    assert module.tops == {"some_dist": ["some-dist"]}
    assert (module.files, module.requires) == (["some_dist/__init__.py"], None)
    assert module.missing == ["click", "pytest", "nothing"]


def test_the_builtins_of_a_context_are_its_own(load: Load) -> None:
    import builtins

    before = dict(vars(builtins))
    module = run(
        load,
        """
        import builtins, other
        builtins.installed = 7
        seen = other.read()
        del builtins.len
        try:
            other.measure()
        except NameError as error:
            gone = str(error)
        builtins.__import__ = None
        """,
        {"other.py": "def read(): return installed\ndef measure(): return len('x')"},
    )
    assert module.seen == 7
    assert module.gone == "name 'len' is not defined"
    assert dict(vars(builtins)) == before


def test_the_hosts_own_modules_are_left_as_they_are(load: Load) -> None:
    run(load, "import importlib.util, importlib.metadata, pkgutil, importlib.resources\nimport utils", {"utils.py": ""})
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("utils_of_acme")
    assert importlib.util.find_spec("acme") is None
    assert sys.modules["importlib"] is importlib
    assert "acme" not in sys.modules
