"""The way of an author: a new plugin whose test passes, and for each mistake a note that leads to the mend."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.types.notes import Note
from tests.host.loading.folders import write_folder

SECONDS = 120
PROGRAM = [sys.executable, "-P", "-c", "from crystal.cli.main import main; main()"]


@pytest.mark.parametrize("name", ["acme", "My-Plugin.v2", "json"])
def test_a_new_plugin_passes_its_own_test(tmp_path: Path, name: str) -> None:
    made = subprocess.run(
        [*PROGRAM, "plugins", "new", name], cwd=tmp_path, capture_output=True, timeout=SECONDS, check=False, text=True
    )
    assert made.returncode == 0, made.stderr
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", name, "-p", "no:cacheprovider", "-o", "addopts="],
        cwd=tmp_path,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "1 passed" in tested.stdout


def test_a_new_plugin_works_where_the_last_line_says_to_put_it(crystaler: Crystaler, tmp_path: Path) -> None:
    subprocess.run([*PROGRAM, "plugins", "new", "acme"], cwd=tmp_path, capture_output=True, timeout=SECONDS, check=True)
    (crystaler.home / "plugins").mkdir(parents=True)
    crystaler.home.chmod(0o700)
    shutil.move(tmp_path / "acme", crystaler.home / "plugins" / "acme")
    crystaler.script([{"toolCalls": [{"name": "greet", "arguments": {"who": "you"}}]}, {"text": "Done."}])
    result = crystaler.run()
    assert (result.calls[0].output, result.notes) == ("Hello, you.", ())


@pytest.mark.parametrize("source", ["project", "home"])
def test_a_new_plugin_can_be_made_where_it_counts(crystaler: Crystaler, source: str) -> None:
    made = crystaler.command("plugins", "new", "acme", "--source", source)
    assert made.exit_code == 0, made.stderr
    tree = crystaler.home if source == "home" else crystaler.workspace / ".crystal"
    assert sorted(os.listdir(tree / "plugins" / "acme")) == ["acme.py", "plugin.json", "test_acme.py"]
    rows = json.loads(crystaler.command("plugins", "list", "--format", "json").stdout)
    assert [(row["plugin"], row["source"], row["effective"]) for row in rows] == [("acme", source, True)]
    (tree / "plugins" / "acme" / "acme.py").write_text("raise SystemExit\n")
    rows = json.loads(crystaler.command("plugins", "list", "--format", "json").stdout)
    assert [row["reason"] for row in rows if source == "project"] == (
        ["it changed since it was trusted; 'crystal trust' asks"] if source == "project" else []
    )


def test_a_new_plugin_brings_no_trust_to_its_neighbours(crystaler: Crystaler) -> None:
    other = crystaler.workspace / ".crystal" / "plugins" / "Other"
    other.mkdir(parents=True)
    (other / "plugin.json").write_text('{"module": "other.py"}')
    (other / "other.py").write_text('name = "Other"\n')
    assert crystaler.command("plugins", "new", "acme", "--source", "project").exit_code == 0
    rows = json.loads(crystaler.command("plugins", "list", "--format", "json").stdout)
    assert {row["plugin"]: row["effective"] for row in rows} == {"acme": True, "Other": False}


@pytest.mark.parametrize("name", ["files", "search", "question", "click", "pydantic", "pluggy", "Json", "class"])
def test_any_name_gives_a_plugin_whose_test_passes(tmp_path: Path, name: str) -> None:
    subprocess.run([*PROGRAM, "plugins", "new", name], cwd=tmp_path, capture_output=True, timeout=SECONDS, check=True)
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


HEAD = "from crystal import Risk, hookimpl, tool\n"
NAMED = f'{HEAD}name = "Acme"\n'
GOOD = f"""{NAMED}
@tool(risk=Risk.READ)
def greet(who: str) -> str:
    "Greet somebody."
    return who

@hookimpl
def contribute_tools():
    return [greet]
"""
CLASS = f"{HEAD}class Acme:\n    name = 'Acme'\n"


def notes_of(
    crystaler: Crystaler, source: str, files: dict[str, str | bytes], manifest: dict[str, object]
) -> list[Note]:
    """Run a task with a plugin in the home and return the notes; the run itself is as without the plugin."""
    folder = crystaler.home / "plugins" / "Acme"
    whole = {"plugin.json": json.dumps({"module": "acme.py", **manifest}), "acme.py": source, **files}
    write_folder(folder, whole)
    crystaler.home.chmod(0o700)
    crystaler.makefile("a.txt", "hello\n")
    crystaler.script([{"toolCalls": [{"name": "read", "arguments": {"path": "a.txt"}}]}, {"text": "Done."}])
    result = crystaler.run()
    assert result.exit_code == 0, result.stderr
    assert not result.calls[0].failed
    return list(result.notes)


MISTAKES: dict[str, tuple[str, dict[str, str | bytes], dict[str, object], list[str]]] = {
    "a hook that raises": (
        f"{GOOD}@hookimpl\ndef on_tool_result(call, result):\n    return 1 / 0\n",
        {},
        {},
        ["Acme", "'on_tool_result'", "raised ZeroDivisionError", "line 14 of acme.py"],
    ),
    "a hook that raises in a library": (
        f"import json\nimport helper\n{GOOD}@hookimpl\ndef on_tool_result(call, result):\n    helper.help()\n",
        {"helper.py": "import json\n\ndef help():\n    json.loads('private')\n"},
        {},
        ["Acme", "'on_tool_result'", "raised JSONDecodeError in help, line 4 of helper.py"],
    ),
    "a hook without its mark": (
        f"{GOOD}def on_tool_result(call, result):\n    pass\n",
        {},
        {},
        ["Acme", "'on_tool_result' is not called", "write @hookimpl above"],
    ),
    "a misspelt hook": (
        f"{GOOD}@hookimpl\ndef on_tool_resutl(call, result):\n    pass\n",
        {},
        {},
        ["Acme", "'on_tool_resutl' is not a hook of this host", "did you mean 'on_tool_result'?"],
    ),
    "a wrong argument": (
        f"{GOOD}@hookimpl\ndef on_tool_result(cal, result):\n    pass\n",
        {},
        {},
        ["Acme", "'on_tool_result' takes an argument 'cal'", "did you mean 'call'?"],
    ),
    "a library that is not there": (
        f"import requests\n{GOOD}",
        {},
        {},
        ["line 1 of acme.py", "No module named 'requests'", "'crystal plugins vendor ", "/plugins/Acme requests'"],
    ),
    "a library that is not there, further in": (
        f"import helper\n{GOOD}",
        {"helper.py": "import json\nfrom yaml import safe_load\n"},
        {},
        ["line 2 of helper.py", "No module named 'yaml'", "'crystal plugins vendor ", "/plugins/Acme yaml'"],
    ),
    "a misspelt module of its own": (
        f"import helprs\n{GOOD}",
        {"helpers.py": ""},
        {},
        ["line 1 of acme.py", "No module named 'helprs'", "did you mean 'helpers'?"],
    ),
    "a misspelt module of Python": (
        f"import jsno\n{GOOD}",
        {},
        {},
        ["line 1 of acme.py", "No module named 'jsno'", "did you mean 'json'?"],
    ),
    "a misspelt name of crystal": (
        f"from crystal import hokimpl\n{GOOD}",
        {},
        {},
        ["line 1 of acme.py", "crystal has no 'hokimpl'; did you mean 'hookimpl'?"],
    ),
    "an inner module of the host": (
        f"from crystal.engine import session\n{GOOD}",
        {},
        {},
        ["line 1 of acme.py", "crystal.engine is the host's own", "import crystal, or crystal.hookspecs"],
    ),
    "a syntax error": (f"{GOOD}def f(:\n", {}, {}, ["syntax error in line 12 of acme.py"]),
    "a syntax error further in": (
        f"import inner.part\n{GOOD}",
        {"inner/part.py": "x = 1\ny = (\n"},
        {},
        ["syntax error in line 2 of inner/part.py", "'(' was never closed"],
    ),
    "a NUL": (f"{GOOD}x = '\0'\n", {}, {}, ["syntax error in acme.py", "null bytes"]),
    "tabs and spaces": (f"{GOOD}def f():\n        x = 1\n\ty = 2\n", {}, {}, ["line 14 of acme.py", "tabs and spaces"]),
    "a compiled module": (
        f"import fast\n{GOOD}",
        {"lib/fast.cpython-311-x86_64-linux-gnu.so": b"\0"},
        {},
        ["line 1 of acme.py", "lib/fast.cpython-311-x86_64-linux-gnu.so is compiled code", '"shared": ["fast"]'],
    ),
    "a compiled module inside a library": (
        f"import fast\n{GOOD}",
        {"lib/fast/__init__.py": "from . import _core\n", "lib/fast/_core.abi3.so": b"\0"},
        {},
        ["line 1 of lib/fast/__init__.py", "lib/fast/_core.abi3.so is compiled code", '"shared": ["fast"]'],
    ),
    "a compiled module by its package's name": (
        f"from fast import _core\n{GOOD}",
        {"lib/fast/__init__.py": "", "lib/fast/_core.so": b"\0"},
        {},
        ["line 1 of acme.py", "lib/fast/_core.so is compiled code", '"shared": ["fast"]'],
    ),
    "a shared library that is not there": (
        f"import numpy\n{GOOD}",
        {},
        {"shared": ["numpy"]},
        [
            "line 1 of acme.py",
            "'numpy', which is declared as shared",
            "pip install --target",
            "/plugins/Acme/lib numpy'",
        ],
    ),
    "another module in the manifest": (GOOD, {}, {"module": "acm.py"}, ["plugin.json, field module", "no file acm.py"]),
    "a module without its ending": (GOOD, {}, {"module": "acme"}, ["plugin.json, field module", "acme is no package"]),
    "another class in the manifest": (
        CLASS,
        {},
        {"type": "Acmee"},
        ["acme.py has no class Acmee", "did you mean Acme?"],
    ),
    "no class in the manifest": (CLASS, {}, {}, ["acme.py has no name", '"type": "Acme"', "into the manifest"]),
    "a value in place of a class": (
        f"{CLASS}acme = Acme()\n",
        {},
        {"type": "acme"},
        ["acme.py has no class acme", "a value of the type Acme; name a class"],
    ),
    "a function in place of a class": (
        f"{NAMED}def make():\n    pass\n",
        {},
        {"type": "make"},
        ["acme.py has no class make", "a value of the type function; name a class"],
    ),
    "a class that needs arguments": (
        f"{CLASS}    def __init__(self, path):\n        pass\n",
        {},
        {"type": "Acme"},
        ["acme.py has a class Acme that needs arguments", "give each parameter of its __init__ a default"],
    ),
    "a class that raises": (
        f"{CLASS}    def __init__(self):\n        self.text = open('/nowhere/at/all').read()\n",
        {},
        {"type": "Acme"},
        ["class Acme that raised FileNotFoundError in line 5 of acme.py"],
    ),
    "no name": (GOOD.replace('name = "Acme"\n', ""), {}, {}, ["acme.py has no name", 'name = "acme"']),
    "an import that raises": (f"{GOOD}{{}}['x']\n", {}, {}, ["acme.py raised KeyError in line 12 of acme.py"]),
    "an import that exits": (
        f"import sys\n{GOOD}sys.exit(3)\n",
        {},
        {},
        ["acme.py ends the process when it is imported", "line 13 of acme.py"],
    ),
    "a file named like a module of Python": (
        f"import json\n{GOOD}",
        {"json.py": ""},
        {},
        ["json is shadowed by the standard library's json; rename it"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_note_about_a_mistake_names_the_thing_the_place_and_the_mend(crystaler: Crystaler, mistake: str) -> None:
    source, files, manifest, words = MISTAKES[mistake]
    [note] = notes_of(crystaler, source, files, manifest)
    assert "Acme" in note.text
    for word in words:
        assert word in note.text
    assert "\n" not in note.text
    assert ".." not in note.text.replace("...", "")
    assert "?." not in note.text or "hook" in note.code.value


@pytest.mark.parametrize("missing", ["httpx", "ujson", "yaml", "dotenv", "tomli", "attr", "requests"])
def test_a_librarys_name_is_not_taken_for_a_slip(crystaler: Crystaler, missing: str) -> None:
    [note] = notes_of(crystaler, f"import {missing}\n{GOOD}", {}, {})
    assert "did you mean" not in note.text


def test_a_plugin_without_a_mistake_has_no_note(crystaler: Crystaler) -> None:
    assert notes_of(crystaler, GOOD, {}, {}) == []
    assert notes_of(crystaler, CLASS, {}, {"type": "Acme"}) == []
