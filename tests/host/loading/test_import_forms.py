"""Every form of import inside a context does what it does in plain Python, with the folder's own modules."""

from __future__ import annotations

import copy
import enum
import inspect
import json
import pickle
import subprocess
import sys
import threading
import traceback
import types
import typing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.host.loading.folders import Load, run, write_folder

PACKAGE = {
    "pkg/__init__.py": "value = 'pkg'",
    "pkg/inner/__init__.py": "value = 'inner'",
    "pkg/inner/leaf.py": "value = 'leaf'\nother = 'other'\n_hidden = 1",
    "pkg/side.py": "from .inner.leaf import value\nfrom . import inner\nfrom .. import utils",
    "utils.py": "value = 'utils'",
    "lib/dep.py": "value = 'dep'",
}

FORMS = {
    "import utils; result = utils.value": "utils",
    "import pkg.inner.leaf; result = pkg.inner.leaf.value": "leaf",
    "import pkg.inner.leaf as leaf; result = leaf.value": "leaf",
    "import pkg.inner, pkg, utils as u; result = pkg.value + u.value": "pkgutils",
    "from pkg import inner; result = inner.value": "inner",
    "from pkg.inner import leaf as renamed; result = renamed.value": "leaf",
    "from pkg.inner.leaf import value, other; result = value + other": "leafother",
    "from pkg.inner.leaf import *; result = value + str('_hidden' in globals())": "leafFalse",
    "from .pkg.inner import leaf; result = leaf.value": "leaf",
    "from . import utils; result = utils.value": "utils",
    "import pkg.side; result = pkg.side.value + pkg.side.inner.value + pkg.side.utils.value": "leafinnerutils",
    "import dep; result = dep.value": "dep",
    "import lib.dep; result = lib.dep.value": "dep",
    "result = __import__('pkg.inner.leaf').value": "pkg",
    "result = __import__('pkg.inner.leaf', fromlist=['value']).value": "leaf",
    "result = __import__('pkg.inner.leaf', globals(), locals(), ['value'], 0).value": "leaf",
    "result = __import__(name='utils', level=0).value": "utils",
    "import builtins; result = builtins.__import__('utils').value": "utils",
    "import importlib; result = importlib.__import__('utils').value": "utils",
    "import importlib; result = importlib.import_module('pkg.inner.leaf').value": "leaf",
    "from importlib import import_module; result = import_module('.inner.leaf', 'pkg').value": "leaf",
    "from importlib import import_module as i; result = i('...utils', 'pkg.inner').value": None,
    "import importlib as i; result = i.import_module('.utils', __package__).value": "utils",
    "import importlib; result = importlib.import_module(__name__) is __import__('sys').modules[__name__]": True,
    "exec('import utils\\nresult = utils.value')": "utils",
    "scope = {}; exec('import utils', scope); result = scope['utils'].value": "utils",
    "result = eval('__import__(\"utils\").value')": "utils",
    "result = eval('__import__(\"utils\").value', {})": "utils",
    "result = eval(compile('__import__(\"utils\")', 'x', 'eval')).value": "utils",
    "import types; f = types.FunctionType((lambda: __import__('utils').value).__code__, {}); result = f()": "utils",
    "class A:\n    import utils\nresult = A.utils.value": "utils",
    "def f():\n    from pkg.inner.leaf import value\n    return value\nresult = f()": "leaf",
    "result = [__import__('utils').value for _ in range(1)][0]": "utils",
    "result = (lambda: __import__('utils').value)()": "utils",
    "import json.decoder; result = json.decoder.JSONDecoder.__name__": "JSONDecoder",
    "import os.path as p; result = p.basename('a/b')": "b",
    "import xml.etree.ElementTree as e; result = e.Element('a').tag": "a",
    "import crystal.types.tools as t; result = t.ToolCall.__name__": "ToolCall",
    "from crystal import hookimpl; result = callable(hookimpl)": True,
    "import pluggy; result = pluggy.__name__": "pluggy",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_import_gives_what_it_gives_in_python(load: Load, form: str) -> None:
    if FORMS[form] is None:
        with pytest.raises(ImportError, match="beyond top-level"):
            load({**PACKAGE, "acme.py": form}).import_module("acme")
        return
    assert load({**PACKAGE, "acme.py": form}).entry("acme.py").result == FORMS[form]


NAMES = st.sampled_from(["alpha", "beta", "gamma", "Ünï", "_x", "a1"])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(NAMES, min_size=1, max_size=4, unique=True), data=st.data())
def test_any_path_of_packages_is_reached_by_every_form(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], data: st.DataObject
) -> None:
    from tests.host.loading.folders import loading

    dotted = ".".join(parts)
    packages = {
        "/".join(parts[:count]) + "/__init__.py": "" for count in range(1, len(parts)) if data.draw(st.booleans())
    }
    files = {**packages, "/".join(parts) + ".py": "value = __name__", "lib/unused.py": ""}
    forms = [
        f"import {dotted}; result = {dotted}.value",
        f"import {dotted} as m; result = m.value",
        f"from {dotted} import value as result",
        f"from .{dotted} import value as result",
        f"import importlib; result = importlib.import_module('{dotted}').value",
        f"result = __import__('{dotted}', fromlist=['*']).value",
        f"import sys; __import__('{dotted}'); result = sys.modules[__package__ + '.{dotted}'].value",
    ]
    with loading(tmp_path_factory.mktemp("forms").resolve()) as load:
        context = load({**files, **{f"form{number}.py": form for number, form in enumerate(forms)}})
        results = {context.entry(f"form{number}.py").result for number in range(len(forms))}
        assert results == {f"{context.package}.{dotted}"}


def test_circular_imports(load: Load) -> None:
    module = run(
        load,
        "import one, pkg.a as a\nresult = one.get() + a.result",
        {
            "one.py": "import two\ndef get(): return two.value",
            "two.py": "import one\nvalue = 'two' + str(hasattr(one, 'get'))",
            "pkg/__init__.py": "",
            "pkg/a.py": "import pkg.b as b\nresult = b.value",
            "pkg/b.py": "import pkg.a as a\nfrom pkg import a as also\nvalue = str(a is also)",
        },
    )
    assert module.result == "twoFalseTrue"


def test_star_import_takes_submodules_that_all_names(load: Load) -> None:
    module = run(
        load,
        "from pkg import *",
        {
            "pkg/__init__.py": "__all__ = ['sub', 'x']\nx = 1",
            "pkg/sub.py": "y = 2",
        },
    )
    assert (module.x, module.sub.y) == (1, 2)


def test_namespace_packages_span_the_folder_and_its_library(load: Load) -> None:
    context = load(
        {
            "acme.py": "import space.one, space.two\nfrom space import three\nplaces = list(space.__path__)",
            "space/one.py": "",
            "lib/space/two.py": "",
            "lib/space/three/__init__.py": "",
        }
    )
    module = context.entry("acme.py")
    folder = context.modules.folder
    assert module.places == [f"{folder}/space", f"{folder}/lib/space"]
    assert module.space.__spec__.origin is None


def test_a_package_comes_before_a_module_and_both_before_a_namespace(load: Load) -> None:
    module = run(
        load,
        "import a, b, c\nresult = a.kind, b.kind, c.kind",
        {
            "a/__init__.py": "kind = 'package'",
            "a.py": "kind = 'module'",
            "b/data.py": "",
            "lib/b.py": "kind = 'library'",
            "c.py": "kind = 'own'",
            "lib__c/__init__.py": "kind = 'library'",
        },
    )
    assert module.result == ("package", "library", "own")


def test_module_getattr_serves_both_ways_of_importing(load: Load) -> None:
    module = run(
        load,
        "from lazy import first\nimport lazy\nresult = first, lazy.second, lazy.heavy.value",
        {
            "lazy/__init__.py": """
            import importlib
            def __getattr__(name):
                if name == "heavy":
                    return importlib.import_module(f".{name}", __name__)
                if name.startswith("_"):
                    raise AttributeError(name)
                return name.upper()
        """,
            "lazy/heavy.py": "value = 'heavy'",
        },
    )
    assert module.result == ("FIRST", "SECOND", "heavy")


def test_type_checking_imports_are_not_made_and_hints_resolve(load: Load) -> None:
    module = run(
        load,
        """
        from __future__ import annotations
        from typing import TYPE_CHECKING, get_type_hints
        import shapes
        if TYPE_CHECKING:
            import missing_everywhere
        def draw(shape: shapes.Circle, times: int = 1) -> list[Point]: ...
        class Point:
            next: Point | None
        """,
        {
            "shapes.py": "class Circle: ...",
        },
    )
    hints = typing.get_type_hints(module.draw)
    assert hints == {"shape": module.shapes.Circle, "times": int, "return": list[module.Point]}
    assert typing.get_type_hints(module.Point) == {"next": module.Point | None}


VALUES = """
from __future__ import annotations
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from typing import ClassVar, NamedTuple
import collections

class Colour(Enum):
    RED = 1

class Right(Flag):
    READ = auto()
    WRITE = auto()

class Pair(NamedTuple):
    left: int
    right: str = "r"

Old = collections.namedtuple("Old", "a b")

@dataclass(frozen=True, slots=True)
class Slotted:
    colour: Colour
    kind: ClassVar[str] = "k"
    more: list[Pair] = field(default_factory=list)

class Failed(Exception):
    pass

def function(): return 1

class Outer:
    class Inner:
        def method(self): return 2

values = [Colour.RED, Right.READ | Right.WRITE, Pair(1), Old(1, 2), Slotted(Colour.RED, [Pair(2)]), function]
values.append(Outer.Inner)
"""


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_values_survive_pickling_and_copying(load: Load, protocol: int) -> None:
    module = run(load, VALUES)
    for value in module.values:
        if protocol < 2 and type(value).__name__ == "Slotted":
            continue  # Python cannot, anywhere
        assert pickle.loads(pickle.dumps(value, protocol)) == value
        assert copy.deepcopy(value) == value
    assert isinstance(module.values[0], enum.Enum)
    assert isinstance(pickle.loads(pickle.dumps(module.Failed("x"))), module.Failed)


def test_a_class_whose_library_renames_its_module_cannot_be_pickled(load: Load) -> None:
    module = run(load, "class Url: ...\nUrl.__module__ = 'nice_name'")
    with pytest.raises((pickle.PicklingError, ModuleNotFoundError)):
        pickle.dumps(module.Url())


def test_names_files_and_specs_of_modules(load: Load) -> None:
    context = load({**PACKAGE, "acme.py": "import pkg.inner.leaf, pkg.side"})
    pkg = context.entry("acme.py").pkg
    leaf = pkg.inner.leaf
    assert context.package == "_crystal_ctx.plugin_home_Acme"
    assert leaf.__name__ == "_crystal_ctx.plugin_home_Acme.pkg.inner.leaf"
    assert leaf.__package__ == leaf.__spec__.parent == "_crystal_ctx.plugin_home_Acme.pkg.inner"
    assert leaf.__file__ == leaf.__spec__.origin == f"{context.modules.folder}/pkg/inner/leaf.py"
    assert pkg.__file__ == f"{context.modules.folder}/pkg/__init__.py"
    assert list(pkg.__path__) == [f"{context.modules.folder}/pkg"]
    assert sys.modules[leaf.__name__] is leaf
    assert leaf.__spec__.name == leaf.__name__
    assert isinstance(leaf.__builtins__, dict)


def test_source_and_tracebacks_are_of_the_bytes_that_run(load: Load) -> None:
    context = load({"acme.py": "def fails():\n    # why\n    raise ValueError('x')\n"})
    module = context.entry("acme.py")
    path = Path(module.__file__)
    path.write_text("def other():\n    pass\n    pass\n")
    assert inspect.getsource(module.fails) == "def fails():\n    # why\n    raise ValueError('x')\n"
    assert inspect.getsource(module).startswith("def fails")
    with pytest.raises(ValueError, match="x") as caught:
        module.fails()
    shown = "".join(traceback.format_exception(caught.value))
    assert f'File "{path}", line 3, in fails\n    raise ValueError(' in shown
    path.unlink()
    assert inspect.getsource(module.fails).startswith("def fails")


def test_source_lines_end_where_python_ends_them(load: Load) -> None:
    module = run(load, "x = '''\x0c\u2028'''\ndef f():\n    return 1")
    assert inspect.getsource(module.f) == "def f():\n    return 1\n"


def test_reload_runs_the_module_again_in_place(load: Load) -> None:
    module = run(
        load,
        """
        import importlib, utils
        utils.count = 10
        again = importlib.reload(utils)
        """,
        {
            "utils.py": "count = globals().get('count', 0) + 1",
        },
    )
    assert module.again is module.utils
    assert module.utils.count == 11


def test_threads_executors_and_coroutines_import_from_the_folder(load: Load) -> None:
    module = run(
        load,
        """
        import asyncio, importlib, threading
        from concurrent.futures import ThreadPoolExecutor

        def lazily(number):
            m = importlib.import_module(f"part{number % 3}")
            import utils
            return m.value + utils.value

        def in_executor():
            with ThreadPoolExecutor(4) as pool:
                return list(pool.map(lazily, range(12)))

        async def in_coroutine():
            await asyncio.sleep(0)
            import part0
            return part0.value + await asyncio.to_thread(lazily, 1)

        def in_thread(into):
            thread = threading.Thread(target=lambda: into.append(importlib.import_module("part2").value))
            thread.start()
            thread.join()
        """,
        {
            "utils.py": "value = 'u'",
            "part0.py": "value = 'a'",
            "part1.py": "value = 'b'",
            "part2.py": "value = 'c'",
        },
    )
    import asyncio

    assert module.in_executor() == ["au", "bu", "cu"] * 4
    assert asyncio.run(module.in_coroutine()) == "abu"
    said: list[str] = []
    module.in_thread(said)
    assert said == ["c"]


def test_one_module_is_run_once_by_many_threads(load: Load) -> None:
    module = run(
        load,
        "import threading\nruns = []\ngate = threading.Event()\ndef get():\n    import slow\n    return slow.done",
        {
            "slow.py": "import acme\nacme.runs.append(1)\nacme.gate.wait(60)\ndone = True",
        },
    )
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(module.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    module.gate.set()
    for thread in threads:
        thread.join()
    assert (results, module.runs) == ([True] * 8, [1])


def test_source_is_decoded_as_python_does(load: Load) -> None:
    context = load(
        {
            "latin.py": "# -*- coding: latin-1 -*-\nvalue = 'é'\n".encode("latin-1"),
            "bom.py": b"\xef\xbb\xbfvalue = '\xc3\xa9'\n",
            "dos.py": b"value = '''a\r\nb'''\r\n",
            "late.py": "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nvalue = '€'\n".encode("cp1252"),
        }
    )
    assert context.import_module("latin").value == "é"
    assert context.import_module("bom").value == "é"
    assert context.import_module("dos").value == "a\nb"
    assert context.import_module("late").value == "€"
    assert "'é'" in inspect.getsource(context.import_module("latin"))


def test_identifiers_are_composed_as_python_does(load: Load) -> None:
    context = load(
        {
            "acme.py": "import \ufb01le\nimport Cafe\u0301\nresult = file.value, Caf\u00e9.value",
            "file.py": "value = 'file'",
            # Some systems keep names decomposed.
            "Cafe\u0301.py": "value = 'café'",
        }
    )
    assert context.entry("acme.py").result == ("file", "café")


def test_upper_and_lower_case_are_different_names_on_every_system(load: Load) -> None:
    context = load({"utils.py": "", "acme.py": "import Utils"})
    with pytest.raises(ModuleNotFoundError, match="'Utils'"):
        context.import_module("acme")


def test_dunder_main_and_packages_that_change_their_path(load: Load) -> None:
    module = run(
        load,
        """
        import pkg.__main__, wide.extra
        result = pkg.__main__.name.rpartition('.')[2], wide.extra.value
        """,
        {
            "pkg/__init__.py": "",
            "pkg/__main__.py": "name = __name__\nassert name != '__main__'",
            "wide/__init__.py": "from os.path import join\n__path__.append(join(__path__[0], '..', 'elsewhere'))",
            "elsewhere/extra.py": "value = 'extra'",
        },
    )
    assert module.result == ("__main__", "extra")


def test_a_path_that_leaves_the_folder_brings_nothing(load: Load, tmp_path: Path) -> None:
    write_folder(tmp_path, {"outside/extra.py": "value = 1"})
    context = load({"wide/__init__.py": f"__path__.append({str(tmp_path / 'outside')!r})"})
    with pytest.raises(ModuleNotFoundError, match="wide has no such module"):
        context.import_module("wide.extra")


@pytest.mark.parametrize(
    ("entry", "files", "value"),
    [
        ("acme.py", {"acme.py": "value = 1"}, 1),
        ("./acme.py", {"acme.py": "value = 1"}, 1),
        ("acme", {"acme/__init__.py": "from .core import value", "acme/core.py": "value = 2"}, 2),
        ("acme/", {"acme/__init__.py": "value = 3"}, 3),
        ("acme/__init__.py", {"acme/__init__.py": "from . import core\nvalue = core.v", "acme/core.py": "v = 4"}, 4),
        ("src/acme.py", {"src/acme.py": "from . import core\nvalue = core.v", "src/core.py": "v = 5"}, 5),
        ("my-plugin.py", {"my-plugin.py": "import utils\nvalue = utils.v", "utils.py": "v = 6"}, 6),
        ("acme.v2.py", {"acme.v2.py": "import utils\nvalue = utils.v", "utils.py": "v = 7"}, 7),
        ("acme.d", {"acme.d/__init__.py": "from .core import v as value", "acme.d/core.py": "v = 8"}, 8),
        ("acme.py", {"acme.py": "import acme.c\nvalue = acme.c.v", "acme/__init__.py": "", "acme/c.py": "v = 9"}, 9),
        ("json.py", {"json.py": "import json as j\nvalue = j.dumps(10)"}, "10"),
        ("__init__.py", {"__init__.py": "from .utils import v as value", "utils.py": "v = 11"}, 11),
        ("class.py", {"class.py": "value = 12"}, 12),
        ("lib/dep.py", {"lib/dep.py": "value = 13"}, 13),
        ("two words.py", {"two words.py": "value = 14"}, 14),
    ],
)
def test_the_entry_is_the_file_or_package_that_the_manifest_names(
    load: Load, entry: str, files: dict[str, str], value: object
) -> None:
    context = load(files)
    module = context.entry(entry)
    assert module.value == value
    assert module.__name__.startswith(f"{context.package}.")
    assert sys.modules[module.__name__] is module


def test_an_entry_behind_links_is_found(load: Load, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "acme", {"v1/core/__init__.py": "value = 1", "v1/core/sub.py": "value = 2"})
    (folder / "core").symlink_to("v1/core")
    (folder / "acme.py").write_text("import core.sub, vendored.core\nresult = core.value, core.sub.value")
    (folder / "lib").symlink_to("v1")
    (folder / "vendored").symlink_to("lib")
    assert load().entry("acme.py").result == (1, 2)


def test_pickles_of_a_plugin_are_read_by_a_later_process(load: Load, tmp_path: Path) -> None:
    context = load({"acme.py": VALUES})
    data = pickle.dumps(context.entry("acme.py").values)
    program = f"""
import pickle, json
from pathlib import Path
from crystal.host.loading.context import LoadContext
from crystal.host.loading.snapshot import read_folder
context = LoadContext({context.key!r}, read_folder(Path({context.modules.folder!r})))
module = context.entry("acme.py")
print(json.dumps(pickle.loads({data!r}) == module.values))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) is True


def test_modules_are_ordinary_modules(load: Load) -> None:
    context = load({"acme.py": "x = 1"})
    module = context.entry("acme.py")
    assert type(module) is types.ModuleType
    assert context.import_module("acme") is module


def test_what_the_standard_library_itself_imports_by_name_needs_the_real_thing(load: Load) -> None:
    module = run(
        load,
        """
        import logging.config, runpy, sys, utils
        from unittest import mock
        failed = []
        def attempt(function, *arguments):
            try:
                function(*arguments)
            except (ImportError, KeyError, ValueError) as error:
                failed.append(type(error).__name__)
        attempt(lambda: mock.patch("utils.value", 2).__enter__())
        attempt(runpy.run_module, "utils")
        attempt(lambda: sys.modules["utils"])
        with mock.patch.object(utils, "value", 3):
            patched = utils.value
        with mock.patch(utils.__name__ + ".value", 4):
            by_real_name = utils.value
        ran = runpy.run_module(__package__ + ".other")["value"]
        """,
        {"utils.py": "value = 1", "other.py": "value = 1"},
    )
    assert module.failed == ["ModuleNotFoundError", "ImportError", "KeyError"]
    assert (module.patched, module.by_real_name, module.ran) == (3, 4, 1)
