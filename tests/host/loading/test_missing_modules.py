"""What a context does not give, it refuses with a sentence that names the module and what helps."""

from __future__ import annotations

import sys

import pytest

from crystal.host.loading.errors import ContextImportError, LoadFailed
from tests.host.loading.folders import Load, own_modules, run

REFUSED = ["crystal.engine", "crystal.host", "crystal.store", "crystal.cli", "crystal.tui", "plugins_builtin"]

FORMS = [
    "import {name}",
    "import {name}.anything.below",
    "import {name} as x",
    "from {name} import anything",
    "from {name}.below import *",
    "__import__('{name}')",
    "__import__('{name}', fromlist=['x'])",
    "import builtins; builtins.__import__('{name}')",
    "import importlib; importlib.import_module('{name}')",
    "import importlib; importlib.import_module('.below', '{name}')",
    "import importlib; importlib.__import__('{name}')",
    "import importlib.util; importlib.util.find_spec('{name}')",
    "import importlib.util; importlib.util.find_spec('{name}.below')",
    "import importlib.resources; importlib.resources.files('{name}')",
    "import pkgutil; pkgutil.get_data('{name}', 'x')",
    "import pkgutil; pkgutil.resolve_name('{name}:x')",
    "exec('import {name}')",
    "exec('import {name}', {{}})",
    "from concurrent.futures import ThreadPoolExecutor as T\ndef f():\n    import {name}\nT().submit(f).result()",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", REFUSED)
def test_the_hosts_inner_packages_are_refused_by_name(load: Load, name: str, form: str) -> None:
    context = load({"acme.py": form.format(name=name)})
    with pytest.raises(LoadFailed) as failed:
        context.entry("acme.py")
    error = failed.value.__cause__
    assert isinstance(error, ContextImportError)
    assert f"{name}" in str(error)
    assert "is the host's own and not for extensions; import crystal, or crystal.hookspecs" in str(error)
    assert str(error) in str(failed.value)


@pytest.mark.parametrize("name", ["engine", "host", "store", "cli", "tui", "tool_functions", "_version"])
def test_inner_packages_are_refused_as_names_of_crystal_too(load: Load, name: str) -> None:
    import crystal.cli
    import crystal.engine  # noqa: F401  # loaded by the host: without a refusal the name would be found

    with pytest.raises(LoadFailed, match=rf"crystal\.{name} is the host's own"):
        run(load, f"from crystal import {name}")


def test_the_refusal_holds_when_the_folder_has_such_modules(load: Load) -> None:
    context = load({"acme.py": "import plugins_builtin", "plugins_builtin/__init__.py": "", "crystal/engine.py": ""})
    with pytest.raises(LoadFailed, match="the host's own"):
        context.entry("acme.py")


def test_no_promise_is_made_beyond_names(load: Load) -> None:
    # A context is no sandbox, and the documents say so.
    import crystal.engine

    assert run(load, "import sys\nresult = sys.modules['crystal.engine']").result is crystal.engine


@pytest.mark.parametrize(
    "name", ["crystal", "crystal.types", "crystal.types.tools", "crystal.hookspecs", "crystal.wire"]
)
def test_the_public_api_is_the_hosts_own(load: Load, name: str) -> None:
    module = run(load, f"import importlib\nresult = importlib.import_module('{name}')\nimport {name}")
    assert module.result is sys.modules[name]


@pytest.mark.parametrize("name", ["pydantic", "pydantic_core", "typing_extensions", "annotated_types", "pluggy"])
def test_what_the_host_provides_is_its_own_even_when_vendored(load: Load, name: str) -> None:
    module = run(load, f"import {name} as result", {f"lib/{name}.py": "raise ValueError"})
    assert module.result is sys.modules[name]


@pytest.mark.parametrize("name", ["pytest", "click", "yaml", "httpx", "tests", "benchmarks", "nothing_anywhere"])
def test_neither_the_hosts_packages_nor_the_workspace_are_searched(load: Load, name: str) -> None:
    context = load({"acme.py": f"import {name}"})
    with pytest.raises(LoadFailed) as failed:
        context.entry("acme.py")
    error = failed.value.__cause__
    assert isinstance(error, ContextImportError)
    assert isinstance(error, ModuleNotFoundError)
    assert error.name == name
    folder = context.modules.folder
    assert f"No module named {name!r}" in str(failed.value)
    assert f"'pip install --target {folder}/lib {name}' or 'crystal plugins vendor {folder} {name}'" in str(
        failed.value
    )


@pytest.mark.parametrize(
    "form",
    [
        "import yaml",
        "import yaml.inner as y",
        "from yaml import safe_load",
        "from yaml import *",
        "import importlib; importlib.import_module('yaml')",
        "from .yaml import x",
    ],
)
@pytest.mark.parametrize("caught", ["ImportError", "ModuleNotFoundError", "Exception"])
def test_optional_imports_are_optional(load: Load, form: str, caught: str) -> None:
    module = run(
        load, f"try:\n    {form}\n    found = True\nexcept {caught} as error:\n    found = type(error).__mro__"
    )
    assert module.found is not True
    assert ImportError in module.found


def test_a_missing_sibling_is_an_import_error(load: Load) -> None:
    module = run(load, "try:\n    from . import yaml\nexcept ImportError as error:\n    result = type(error)")
    assert module.result is ImportError


def test_the_name_of_an_error_is_the_one_that_was_written(load: Load) -> None:
    module = run(
        load,
        """
        names = []
        def note(statement):
            try:
                exec(statement, globals())
            except ModuleNotFoundError as error:
                names.append(error.name)
        for statement in ("import yaml", "import yaml.sub", "import pkg.sub", "from pkg.sub import x"):
            note(statement)
        for statement in ("from .gone import x", "from pkg import deep"):
            note(statement)
        """,
        {"pkg/__init__.py": "", "pkg/deep.py": "import far.away"},
    )
    assert module.names == ["yaml", "yaml", "pkg.sub", "pkg.sub", "gone", "far"]


def test_a_missing_attribute_is_no_missing_module(load: Load) -> None:
    module = run(
        load,
        "try:\n    from pkg import nothing\nexcept ImportError as error:\n    result = type(error), str(error)",
        {"pkg/__init__.py": ""},
    )
    kind, message = module.result
    assert kind is ImportError
    assert message.startswith("cannot import name 'nothing'")


def test_a_missing_module_of_an_own_package_is_not_to_be_vendored(load: Load) -> None:
    with pytest.raises(LoadFailed, match=r"No module named 'pkg\.gone': pkg has no such module$"):
        run(load, "import pkg.gone", {"pkg/__init__.py": ""})


@pytest.mark.parametrize(
    "form", ["from .. import x", "from ..other import x", "from ... import x", "from ..x.y import z"]
)
def test_relative_imports_do_not_leave_the_folder(load: Load, form: str) -> None:
    load({"x.py": "", "acme.py": ""}, key="other", at="other").entry("acme.py")
    with pytest.raises(LoadFailed, match="ImportError"):
        run(load, form)


def test_another_folders_modules_are_not_found_by_their_real_name(load: Load) -> None:
    other = load({"secret.py": ""}, key="other", at="other")
    other.import_module("secret")
    with pytest.raises(LoadFailed, match="No module named '_crystal_ctx"):
        run(load, f"import {other.package}.secret")


FAULTS = {
    "raise ValueError('with a secret')": "raised ValueError in line 1 of acme.py",
    "import sys; sys.exit('bye')": "ends the process when it is imported (SystemExit) in line 1 of acme.py",
    "def f(): f()\nf()": "raised RecursionError in line 1 of acme.py",
    "import half": "raised ZeroDivisionError in line 2 of half.py",
    "x = = 1": "has a syntax error in line 1 of acme.py: invalid syntax",
    "x = 1\n  y = 2": "has a syntax error in line 2 of acme.py: unexpected indent",
    "class Own(BaseException): ...\nraise Own": "raised Own in line 2 of acme.py",
    "raise GeneratorExit": "raised GeneratorExit in line 1 of acme.py",
    "import asyncio\nraise asyncio.CancelledError": "raised CancelledError in line 2 of acme.py",
    "import sys\ndel sys.modules[__name__]": "raised KeyError",
    "import broken": "has a syntax error in line 1 of broken.py",
    "raise SyntaxError('of its own, with a secret')": "raised SyntaxError in line 1 of acme.py",
    "raise SyntaxError('secret', (3, 4, 5, 6))": "raised SyntaxError in line 1 of acme.py",
    "raise type('Odd\\x1b', (Exception,), {'__str__': None})": "in line 1 of acme.py",
    "import importlib; importlib.import_module('a' * 100_000)": "in line 1 of acme.py: No module named 'aaa",
    "try:\n    import yaml\nexcept ImportError as e:\n    class Own(type(e)): __str__ = None\n    raise Own": "line 5",
    "assert False, 'x' * 100": "raised AssertionError in line 1 of acme.py",
}


@pytest.mark.parametrize("source", FAULTS)
def test_a_failed_load_names_fault_and_place_and_leaves_nothing_behind(load: Load, source: str) -> None:
    context = load(
        {
            "acme.py": source,
            "half.py": "import helper\n1 / 0",
            "helper.py": "",
            "broken.py": "(",
        }
    )
    before = set(sys.modules)
    with pytest.raises(LoadFailed) as failed:
        context.entry("acme.py")
    assert FAULTS[source] in str(failed.value)
    assert "secret" not in str(failed.value)
    assert str(failed.value).isprintable()
    assert len(str(failed.value)) < 2_500
    assert str(failed.value).startswith("acme.py ")
    assert own_modules(context) == set()
    assert set(sys.modules) - before <= set(sys.stdlib_module_names)
    assert vars(sys.modules[context.package]).keys().isdisjoint({"acme", "half", "helper", "broken"})


def test_a_file_that_is_no_text_is_a_failed_load(load: Load) -> None:
    for source in (b"\xff\xfe\x00", b"x = 1\x00", b"# coding: nonsense\n", b"(" * 1000):
        with pytest.raises(LoadFailed):
            load({"acme.py": source}).entry("acme.py")


def test_an_interrupt_passes_and_leaves_nothing_behind(load: Load) -> None:
    context = load({"acme.py": "import helper\nraise KeyboardInterrupt", "helper.py": ""})
    with pytest.raises(KeyboardInterrupt):
        context.entry("acme.py")
    assert own_modules(context) == set()


@pytest.mark.parametrize(
    "name", ["gone.py", "", ".", "data.txt", "empty", "../x.py", "/etc/passwd", "acme.py/x", "a\0.py"]
)
def test_an_entry_that_is_not_there_is_a_failed_load(load: Load, name: str) -> None:
    with pytest.raises(LoadFailed, match=r"is neither a \.py file nor a package"):
        load({"acme.py": "", "data.txt": "", "empty/x.txt": ""}).entry(name)


def test_an_import_by_the_host_raises_what_the_code_raises(load: Load) -> None:
    context = load({"acme.py": "import helper\nraise ValueError('x')", "helper.py": ""})
    with pytest.raises(ValueError, match="x"):
        context.import_module("acme")
    assert own_modules(context) == set()
    with pytest.raises(ContextImportError, match="No module named 'gone'"):
        context.import_module("gone")
    with pytest.raises(ContextImportError, match="the host's own"):
        context.import_module("crystal.engine")
    assert context.import_module("json") is sys.modules["json"]


def test_a_failed_load_can_be_tried_again(load: Load) -> None:
    context = load({"acme.py": "import sys\nif not hasattr(sys, '_acme_ready'):\n    raise ValueError"})
    with pytest.raises(LoadFailed):
        context.entry("acme.py")
    vars(sys)["_acme_ready"] = True
    try:
        assert context.entry("acme.py") is sys.modules[f"{context.package}.acme"]
    finally:
        del vars(sys)["_acme_ready"]


COMPILED = ["fast.cpython-311-x86_64-linux-gnu.so", "fast.abi3.so", "fast.so", "fast.pyd", "fast.cpython-313-darwin.so"]


@pytest.mark.parametrize("file", COMPILED)
def test_compiled_code_is_refused_with_the_two_ways_out(load: Load, file: str) -> None:
    with pytest.raises(LoadFailed) as failed:
        run(load, "import fast", {f"lib/{file}": b"\x7fELF"})
    assert f"lib/{file} is compiled code" in str(failed.value)
    assert "use a version in pure Python" in str(failed.value)
    assert '"shared": ["fast"]' in str(failed.value)


def test_a_distribution_with_a_pure_fallback_uses_it(load: Load) -> None:
    module = run(
        load,
        "import quick\nresult = quick.speed, quick.twice.kind",
        {
            "lib/quick/__init__.py": """
                try:
                    from quick._speedups import speed
                except ImportError:
                    from ._native import speed
                from . import twice
            """,
            "lib/quick/_native.py": "speed = 'pure'",
            "lib/quick/_speedups.cpython-311-x86_64-linux-gnu.so": b"\x7fELF",
            # As mypyc leaves it: the same module compiled and as source.
            "lib/quick/twice.py": "kind = 'source'",
            "lib/quick/twice.cpython-311-x86_64-linux-gnu.so": b"\x7fELF",
        },
    )
    assert module.result == ("pure", "source")


SHADOWED = {
    "token.py": "token is shadowed by the standard library's token; rename it to import it",
    "queue/__init__.py": "queue is shadowed by the standard library's queue; rename it to import it",
    "lib/types.py": "lib/types is shadowed by the standard library's types; rename it to import it",
    "sys.py": "sys is shadowed by the standard library's sys; rename it to import it",
    "builtins.py": "builtins is shadowed by the standard library's builtins; rename it to import it",
    "crystal.py": "crystal is shadowed by the host's crystal; rename it to import it",
    "pluggy/__init__.py": "pluggy is shadowed by the host's pluggy; rename it to import it",
    "pydantic.py": "pydantic is shadowed by the host's pydantic; rename it to import it",
}


@pytest.mark.parametrize("file", SHADOWED)
def test_a_file_that_is_never_imported_is_reported(load: Load, file: str) -> None:
    name = file.removeprefix("lib/").partition("/")[0].removesuffix(".py")
    context = load({file: "raise ValueError('shadowed')", "acme.py": f"import {name} as result", "utils.py": ""})
    assert context.warnings == [SHADOWED[file]]
    assert context.entry("acme.py").result is sys.modules.get(name) or name == "builtins"
    assert len(context.warnings) == 1


def test_what_a_distribution_brings_along_is_not_reported(load: Load) -> None:
    assert load({"acme.py": "", "lib/typing_extensions.py": "", "lib/annotated_types/__init__.py": ""}).warnings == []


@pytest.mark.parametrize(
    ("form", "mend"),
    [
        ("from .helpre import x", "did you mean '.helper'?"),
        ("from .elsewhere import x", "add elsewhere.py, or write the import without the dot"),
        ("from .requests import get", "add requests.py, or write the import without the dot"),
    ],
)
def test_a_relative_import_of_nothing_is_mended_in_the_folder_not_by_pip(load: Load, form: str, mend: str) -> None:
    context = load({"acme.py": form, "helper.py": "x = 1"})
    with pytest.raises(LoadFailed) as failed:
        context.entry("acme.py")
    name = form.split()[1]
    assert f"No module named '{name}' in {context.modules.folder}; {mend}" in str(failed.value)
    assert "pip" not in str(failed.value)
