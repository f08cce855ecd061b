"""Contexts know nothing of one another, and the process is after a load as it was before."""

from __future__ import annotations

import builtins
import gc
import importlib
import linecache
import pickle
import sys
import weakref
from pathlib import Path

import pytest

from crystal.host.loading.errors import ContextImportError, LoadFailed
from crystal.host.loading.finder import ContextFinder
from tests.host.loading.folders import Load, own_modules, run, write_distribution


def test_two_folders_have_modules_of_the_same_names(load: Load) -> None:
    files = {
        "plugin.py": "import util, json\nfrom pkg import deep\nvalue = util.value + deep.value\ndef later():\n"
        "    import late\n    return late.value",
        "json.py": "raise ValueError",
    }
    contexts = [
        load(
            {**files, "util.py": f"value = '{at}'", "pkg/deep.py": f"value = '{at}!'", "late.py": f"value = '{at}?'"},
            key=f"plugin:home/{at}",
            at=at,
        )
        for at in ("p1", "p2")
    ]
    one, two = (context.entry("plugin.py") for context in contexts)
    assert (one.value, two.value) == ("p1p1!", "p2p2!")
    assert (two.later(), one.later()) == ("p2?", "p1?")
    assert one.json is two.json is sys.modules["json"]
    assert {"plugin", "util", "pkg", "late"}.isdisjoint(sys.modules)


def test_the_same_folder_twice_is_two_worlds(load: Load) -> None:
    first = load({"acme.py": "class A: ...\nstate = []"})
    second = load()
    one, two = first.entry("acme.py"), second.entry("acme.py")
    assert first.package != second.package
    one.state.append(1)
    assert two.state == []
    assert one.A is not two.A
    for module in (one, two):
        assert isinstance(pickle.loads(pickle.dumps(module.A())), module.A)


def test_two_versions_of_one_distribution(load: Load, tmp_path: Path) -> None:
    modules = []
    for at, version in (("p1", "1.0"), ("p2", "2.0")):
        write_distribution(
            tmp_path / at / "lib",
            "dist",
            version,
            {
                "dist/__init__.py": """
                    from importlib.metadata import version
                    from dist.errors import Failed
                    from . import errors
                    __version__ = version(__name__)
                    def fail():
                        raise errors.Failed
                """,
                "dist/errors.py": "class Failed(Exception): ...",
            },
        )
        source = "import dist\nversion = dist.__version__\ndef test():\n    try:\n        dist.fail()\n"
        source += "    except dist.Failed:\n        return True"
        modules.append(load({"acme.py": source}, key=at, at=at).entry("acme.py"))
    assert [module.version for module in modules] == ["1.0", "2.0"]
    assert [module.test() for module in modules] == [True, True]
    assert modules[0].dist.Failed is not modules[1].dist.Failed
    assert "dist" not in sys.modules


@pytest.mark.parametrize(
    "key", ["plugin:home/Acme.Tools", "", "ü", "a b", "1", "a.b.c", "_crystal_ctx", "class", "__path__"]
)
def test_any_key_is_one_part_of_a_name(load: Load, key: str) -> None:
    context = load({"acme.py": "import utils", "utils.py": ""}, key=key)
    module = context.entry("acme.py")
    assert module.__name__.count(".") == 2
    assert pickle.loads(pickle.dumps(LateClass.make(module))).__class__.__module__ == module.__name__


class LateClass:
    """Makes an instance of a class that lives in another module."""

    @staticmethod
    def make(module: object) -> object:
        exec("class Made: ...", vars(module))
        return vars(module)["Made"]()


def test_keys_that_look_alike_stay_apart(load: Load) -> None:
    packages = {load({"acme.py": ""}, key=key).package for key in ("a:b", "a/b", "a.b", "a_b", "a_b_2", "a_b")}
    assert len(packages) == 6


def test_the_host_imports_as_before(load: Load) -> None:
    hooks, path = list(sys.path_hooks), list(sys.path)
    cached = set(sys.path_importer_cache)
    context = load({"acme.py": "import utils, lib.dep, dep", "utils.py": "", "lib/dep.py": ""})
    context.entry("acme.py")
    assert (sys.path_hooks, sys.path) == (hooks, path)
    assert [type(finder) for finder in sys.meta_path].count(ContextFinder) == 1
    assert not any(place.startswith(context.modules.folder) for place in set(sys.path_importer_cache) - cached)
    finder = next(finder for finder in sys.meta_path if isinstance(finder, ContextFinder))
    for name in ("utils", "json", "acme", "_crystal_ctx", "_crystal_ctxs.x", ""):
        assert finder.find_spec(name) is None
    for name in ("_crystal_ctx.nobody.acme", "_crystal_ctx.nobody", f"{context.package}.missing"):
        with pytest.raises(ModuleNotFoundError):
            finder.find_spec(name)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("dep")


def test_a_finder_put_before_ours_does_not_get_the_names_of_a_new_context(load: Load) -> None:
    asked: list[str] = []

    class Nosy:
        """Notes what it is asked for."""

        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            asked.append(name)

    nosy = Nosy()
    sys.meta_path.insert(0, nosy)  # type: ignore[arg-type]
    try:
        run(load, "import utils", {"utils.py": ""})
    finally:
        sys.meta_path.remove(nosy)  # type: ignore[arg-type]
    assert [name for name in asked if name.startswith("_crystal_ctx")] == []


def test_closing_takes_the_modules_away_and_leaves_objects_working(load: Load) -> None:
    context = load(
        {
            "acme.py": """
                import utils, importlib, json
                from pkg import deep
                class A:
                    def work(self):
                        import utils, json, pkg.deep, importlib.util
                        from pkg import deep
                        from . import utils as also
                        from .pkg.deep import value
                        return [utils.value, deep.value, pkg.deep.value, also.value, value, json.dumps(1),
                                importlib.import_module("utils").value,
                                importlib.import_module(".pkg.deep", __package__).value]
                    def late(self, form):
                        exec(form)
            """,
            "utils.py": "value = 'u'",
            "pkg/__init__.py": "",
            "pkg/deep.py": "value = 'd'",
            "never.py": "",
        }
    )
    kept = context.entry("acme.py").A()
    path = sys.modules[f"{context.package}.acme"].__file__
    assert path in linecache.cache
    context.close()
    context.close()
    assert not [name for name in sys.modules if name.startswith(context.package)]
    assert path not in linecache.cache
    assert kept.work() == ["u", "d", "d", "u", "d", "1", "u", "d"]
    for form in ("import never", "from . import never", "import importlib; importlib.import_module('never')"):
        with pytest.raises(ImportError):
            kept.late(form)
    with pytest.raises(ContextImportError, match=r"crystal\.engine"):
        kept.late("import crystal.engine")
    with pytest.raises(LoadFailed, match="unloaded"):
        context.entry("acme.py")


def test_a_reloaded_folder_takes_the_name_of_the_closed_one(load: Load) -> None:
    first = load({"acme.py": "value = 1"})
    old = first.entry("acme.py")
    first.close()
    second = load({"acme.py": "value = 2"})
    new = second.entry("acme.py")
    assert second.package == first.package
    assert (old.value, new.value) == (1, 2)
    first.close()
    assert sys.modules[new.__name__] is new


def test_what_is_closed_and_forgotten_is_freed(load: Load, tmp_path: Path) -> None:
    from crystal.host.loading.context import LoadContext
    from crystal.host.loading.snapshot import read_folder

    load({"acme.py": "import utils, importlib.util\nclass A: ...", "utils.py": ""}).close()
    context = LoadContext("freed", read_folder(tmp_path / "acme"))
    watched = weakref.ref(context.entry("acme.py").A)
    context.close()
    del context
    gc.collect()
    assert watched() is None


CHANGES = {
    "import sys\nsys.path.insert(0, '/tmp')": "it changed sys.path",
    "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))\nimport utils": "it changed sys.path",
    "import sys\nsys.path.clear()": "it changed sys.path",
    "import sys\nsys.modules['json'] = object()": "it replaced modules of the process, which were put back: json",
    "import sys\ndel sys.modules['pickle']": "it replaced modules of the process, which were put back: pickle",
    "import sys\nsys.modules['builtins'].open = None": "it changed builtins of the process, which were put back: open",
    "import sys\nsys.modules['builtins'].__import__ = None": "which were put back: __import__",
    "import sys\ndelattr(sys.modules['builtins'], 'hex')": "which were put back: hex",
    "print.__self__.print = None": "which were put back: print",
}


@pytest.mark.parametrize("source", CHANGES)
@pytest.mark.parametrize("end", ["", "\nraise ValueError"])
def test_what_a_load_changed_for_everybody_is_put_back_and_reported(load: Load, source: str, end: str) -> None:
    path, modules, names = list(sys.path), dict(sys.modules), dict(vars(builtins))
    context = load({"acme.py": source + end, "utils.py": ""})
    if end:
        with pytest.raises(LoadFailed):
            context.entry("acme.py")
    else:
        context.entry("acme.py")
    assert sys.path == path
    assert vars(builtins) == names
    assert all(sys.modules.get(name) is module for name, module in modules.items())
    [warning] = context.warnings
    assert CHANGES[source] in warning


def test_plain_names_that_a_library_writes_itself_do_not_stay(load: Load) -> None:
    context = load(
        {
            "acme.py": "import noisy.parts\nimport noisy",
            "lib/noisy/__init__.py": """
                import sys, types
                from . import real
                sys.modules["noisy.packages.real"] = real
                sys.modules["noisy"] = sys.modules[__name__]
                sys.modules["alias_of_real"] = real
                sys.modules["noisy.made"] = types.ModuleType("noisy.made")
            """,
            "lib/noisy/real.py": "",
            "lib/noisy/parts.py": "",
        }
    )
    before = set(sys.modules)
    module = context.entry("acme.py")
    assert {name for name in set(sys.modules) - before if not name.startswith(context.package)} == set()
    assert {"noisy.packages.real", "noisy.made"} <= own_modules(context)
    assert module.noisy.__name__ == f"{context.package}.noisy"


def test_a_folder_put_into_the_path_gives_the_host_none_of_its_modules(load: Load) -> None:
    module = run(
        load,
        """
        import os, sys, logging.config
        sys.path.insert(0, os.path.dirname(__file__))
        logging.config.dictConfig({"version": 1, "incremental": False, "disable_existing_loggers": False,
                                   "handlers": {"h": {"class": "handlers_of_acme.Quiet"}}})
        found = "handlers_of_acme" in sys.modules
        """,
        {"handlers_of_acme.py": "import logging\nclass Quiet(logging.NullHandler): ..."},
    )
    assert module.found
    assert "handlers_of_acme" not in sys.modules


def test_modules_of_the_host_that_a_load_was_first_to_import_stay(load: Load) -> None:
    sys.modules.pop("annotated_types", None)
    module = run(load, "import annotated_types", {"lib/annotated_types.py": "raise ValueError"})
    assert sys.modules["annotated_types"] is module.annotated_types


FINDER = """
import sys, types
from importlib.machinery import ModuleSpec

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == __name__ + ".moves":
            return ModuleSpec(name, self)
        if name == "json_of_finder":
            raise ValueError("asked for a name of the host")
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.value = "moved"

__path__ = []
sys.meta_path.append(Finder())
"""


def test_a_finder_that_a_library_installs_serves_its_own_context_alone(load: Load) -> None:
    context = load(
        {
            "acme.py": "from six.moves import value as early\ndef later():\n    import six.moves\n"
            "    return six.moves.value",
            "six.py": FINDER,
        }
    )
    finders = list(sys.meta_path)
    module = context.entry("acme.py")
    assert sys.meta_path == finders
    assert module.early == "moved"
    del sys.modules[f"{context.package}.six.moves"]
    assert module.later() == "moved"
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("json_of_finder")
    other = load({"acme.py": "import six.moves", "six.py": "__path__ = []"}, key="other", at="other")
    with pytest.raises(LoadFailed, match=r"six has no such module"):
        other.entry("acme.py")
