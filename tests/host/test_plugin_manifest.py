"""``plugin.json``: what is accepted, and what each refusal says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.manifests.plugin import (
    CommandManifest,
    ModuleManifest,
    is_plainly_valid,
    parse_plugin_manifest,
)
from crystal.host.manifests.plugin_schema import ModulePluginSchema, plugin_schema, validate_plugin
from crystal.host.manifests.reading import MANIFEST_BYTES, ManifestRefused, parse_manifest, read_manifest
from crystal.store.home import HomeFileError

PATH = Path("/home/me/.crystal/plugins/Acme/plugin.json")
COMMAND = {"name": "say", "description": "Say it.", "schema": {"type": "object"}, "command": "echo {{text}}"}


def refusal(data: bytes | str | dict[str, Any]) -> ManifestRefused:
    """Return the refusal of a manifest."""
    text = json.dumps(data) if isinstance(data, dict) else data
    with pytest.raises(ManifestRefused) as raised:
        parse_plugin_manifest(PATH, text.encode() if isinstance(text, str) else text)
    return raised.value


def test_a_module_is_enough() -> None:
    assert parse_plugin_manifest(PATH, b'{"module": "acme.py"}') == ModuleManifest(enabled=True, module="acme.py")


def test_every_field_is_read_and_unknown_ones_are_ignored() -> None:
    value = {
        "enabled": False,
        "module": "./src//acme/",
        "type": "Acme",
        "shared": ["numpy"],
        "assembly": "a.dll",
        "x": 1,
    }
    expected = ModuleManifest(enabled=False, module="src/acme", type="Acme", shared=("numpy",))
    assert parse_plugin_manifest(PATH, json.dumps(value).encode()) == expected


def test_a_command_is_the_other_form() -> None:
    found = parse_plugin_manifest(PATH, json.dumps(COMMAND).encode())
    assert found == CommandManifest(
        enabled=True, name="say", description="Say it.", schema={"type": "object"}, command="echo {{text}}"
    )


@pytest.mark.parametrize("data", [b'\xef\xbb\xbf{"module": "a.py"}', b'{\r\n  "module": "a.py"\r\n}\r\n'])
def test_a_byte_order_mark_and_windows_line_ends_are_accepted(data: bytes) -> None:
    assert parse_plugin_manifest(PATH, data) == ModuleManifest(enabled=True, module="a.py")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"module": "a.py", // no\n}', ", line 1, column 20: comments are not allowed in this file"),
        (b'{\n  "module": "a.py",\n}', ", line 2, column 19: a comma must not stand before a closing bracket"),
        (b'{\r\n  "module": "a.py"', ", line 2, column 19: the file ends in the middle of a value"),
        (b"{'module': 1}", ", line 1, column 2: texts stand in double quotes"),
        (b'{"module": "a.py",\n"module": "b.py"}', ", line 2, field module: this key stands twice in one object"),
        (b'{"a": {"b": 1,\n"b": 2}, "module": "a.py"}', ", line 2, field a.b: this key stands twice in one object"),
        (b'{"module": "a.py", "x": NaN}', ", line 1: NaN is not JSON; a number is expected"),
        (b'{"module": "a.py", "x": ' + b"9" * 5000 + b"}", ": a number has too many digits"),
        (b'{"module": "a.py", "x": "\\ud800"}', ": a text holds half a character, \\ud800"),
        (b'{"module": "\xff"}', ", line 1: byte 0xff is not UTF-8; save the file as UTF-8"),
        ('{"module": "a.py"}'.encode("utf-16"), ": the file is UTF-16; save it as UTF-8"),
        (b" \n", ": the file is empty; write a manifest into it or remove the folder"),
        (b"[]", ", line 1: expected an object, found a list"),
        (b"[" * 100_000, ": the file is larger than 64 KiB; make it smaller"),
        (b"[" * 60_000, ": objects and lists are nested deeper than 64; make it flatter"),
        (b'{"a":' * 10_000, ": objects and lists are nested deeper than 64; make it flatter"),
        (
            b'{"module": "a.py", "x": "' + b" " * MANIFEST_BYTES + b'"}',
            ": the file is larger than 64 KiB; make it smaller",
        ),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_place(data: bytes, sentence: str) -> None:
    assert str(refusal(data)) == f"{PATH}{sentence}"


def test_brackets_inside_texts_are_no_nesting() -> None:
    value = {"module": "a.py", "x": "[" * 1000 + '\\"{' * 1000}
    assert parse_plugin_manifest(PATH, json.dumps(value).encode()).enabled is True


@pytest.mark.parametrize("data", [b'\\"' * 30_000, b'{"a' + b'\\"' * 30_000, b'"\\', b'{"module": "a.py"}' * 3000])
def test_text_that_is_made_to_be_slow_is_refused_as_any_other(data: bytes) -> None:
    assert refusal(data).path == PATH


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ({}, "", "a plugin needs the field module"),
        ({"assembly": "Acme.dll", "type": "Acme"}, "assembly", "in the field module"),
        ({"module": "a.py", "command": "x"}, "command", "never both"),
        ({"module": 5}, "module", "expected a text, found 5"),
        ({"module": None}, "module", "expected a text, found null"),
        ({"module": ""}, "module", "the path is empty"),
        ({"module": "./"}, "module", "the path is empty"),
        ({"module": "/etc/a.py"}, "module", "relative to the plugin's folder"),
        ({"module": "~/a.py"}, "module", "relative to the plugin's folder"),
        ({"module": "../a.py"}, "module", "inside the plugin's folder"),
        ({"module": "x/../../a.py"}, "module", "inside the plugin's folder"),
        ({"module": "x\\a.py"}, "module", "separated by /"),
        ({"module": "a\0.py"}, "module", "control character"),
        ({"module": "a\u202e.py"}, "module", "control character"),
        ({"module": "acme.dll"}, "module", "a .py file or a package folder is needed"),
        ({"module": "x/.py"}, "module", "no file name before .py"),
        ({"module": "__pycache__/a.py"}, "module", "__pycache__"),
        ({"module": "a" * 198 + ".py"}, "module", "longer than 200 characters"),
        ({"module": "a.py", "type": "Acme.Plugin"}, "type", "such as AcmePlugin"),
        ({"module": "a.py", "type": "class"}, "type", "such as AcmePlugin"),
        ({"module": "a.py", "type": None}, "type", "expected a text, found null"),
        ({"module": "a.py", "enabled": "yes"}, "enabled", 'expected true or false, found "yes"'),
        ({"module": "a.py", "enabled": 1}, "enabled", "expected true or false, found 1"),
        ({"module": "a.py", "shared": "numpy"}, "shared", 'expected a list of texts, found "numpy"'),
        ({"module": "a.py", "shared": ["a/b"]}, "shared", "such as numpy"),
        ({**COMMAND, "schema": []}, "schema", "expected an object, found a list"),
        ({**COMMAND, "name": "a b"}, "name", "expected a tool name"),
        ({"command": "echo"}, "name", "this field is required"),
    ],
)
def test_a_wrong_field_is_named_with_what_helps(value: dict[str, Any], field: str, words: str) -> None:
    refused = refusal(value)
    assert refused.field == field
    assert words in refused.message
    assert str(PATH) in str(refused)


@pytest.mark.parametrize(
    ("value", "says"),
    [({}, True), ({"enabled": False}, False), ({"enabled": "no", "module": "a.py"}, None)],
)
def test_a_refusal_knows_what_the_manifest_says_about_being_enabled(value: dict[str, Any], says: bool | None) -> None:
    assert refusal(value).enabled is says
    assert refusal(b"{").enabled is None


def test_a_manifest_that_is_in_order_needs_no_pydantic() -> None:
    program = (
        "import sys; from pathlib import Path; from crystal.host.manifests.plugin import parse_plugin_manifest;"
        'parse_plugin_manifest(Path(\'p\'), b\'{"module": "a.py", "type": "A", "shared": ["n"], "x": 1}\');'
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


FIELDS = st.fixed_dictionaries(
    {"module": st.one_of(st.text(max_size=8), st.sampled_from(["a.py", "x/y", "./a", "..", "a/..", "a.b"]), st.none())},
    optional={
        "enabled": st.one_of(st.booleans(), st.integers(0, 1), st.none()),
        "type": st.one_of(st.text(max_size=4), st.sampled_from(["A", "class", "é", ""])),
        "shared": st.one_of(st.lists(st.text(max_size=4), max_size=2), st.text(max_size=1)),
        "x": st.floats(allow_nan=False, allow_infinity=False),
    },
)


@settings(max_examples=100, deadline=None)
@given(FIELDS)
def test_the_short_check_and_the_full_one_accept_the_same(value: dict[str, Any]) -> None:
    file = parse_manifest(PATH, json.dumps(value).encode())
    try:
        validate_plugin(file)
    except HomeFileError:
        accepted = False
    else:
        accepted = True
    assert is_plainly_valid(file.value) is accepted


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_manifest_or_a_refusal(data: bytes) -> None:
    try:
        told = str(parse_plugin_manifest(PATH, data).enabled)
    except ManifestRefused as refused:
        told = str(refused)
    assert told in ("True", "False") or told.startswith(str(PATH))


def test_the_published_schema_is_fresh() -> None:
    stored = Path(__file__).parents[2] / "crystal" / "schemas" / "plugin.json"
    mend = "run: python -m crystal.host.manifests.plugin_schema > crystal/schemas/plugin.json"
    assert json.loads(stored.read_text()) == plugin_schema(), mend


def test_the_published_schema_accepts_what_is_accepted() -> None:
    checker = jsonschema.Draft202012Validator(plugin_schema())
    assert list(ModulePluginSchema.model_fields) == ["enabled", "module", "type", "shared"]
    for good in ({"module": "a.py"}, {"module": "a", "enabled": False, "other": 1}, COMMAND):
        assert checker.is_valid(good)
    for bad in ({}, {"assembly": "x"}, {"module": 5}, {"module": "a.py", "enabled": "yes"}, {"command": "x"}):
        assert not checker.is_valid(bad)


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestRefused, match=r"there is no such file; write a plugin\.json or remove"):
        read_manifest(tmp_path.resolve(), "plugin.json")


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "loop"])
def test_a_manifest_that_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "plugin.json"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)
    with pytest.raises(ManifestRefused, match=r"plugin\.json"):
        read_manifest(tmp_path.resolve(), "plugin.json")


def test_a_link_is_followed_inside_the_folder_and_refused_beyond(tmp_path: Path) -> None:
    folder = (tmp_path / "Acme").resolve()
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "real.json").write_bytes(b'{"module": "a.py"}')
    (folder / "plugin.json").symlink_to("conf/real.json")
    assert read_manifest(folder, "plugin.json").data == b'{"module": "a.py"}'
    (folder / "plugin.json").unlink()
    (tmp_path / "outside.json").write_bytes(b'{"module": "a.py"}')
    (folder / "plugin.json").symlink_to("../outside.json")
    with pytest.raises(ManifestRefused, match="a link that leaves the folder"):
        read_manifest(folder, "plugin.json")


def test_a_manifest_that_becomes_a_pipe_while_it_is_read_never_blocks(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    path, pipe, plain = folder / "plugin.json", folder / "pipe", folder / "plain"
    plain.write_bytes(b'{"module": "a.py"}')
    os.link(plain, path)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.mkfifo(pipe)
            os.replace(pipe, path)
            os.link(plain, pipe)
            os.replace(pipe, path)

    swapper = threading.Thread(target=swap)
    swapper.start()
    results = set()
    try:
        for _ in range(500):
            try:
                results.add(read_manifest(folder, "plugin.json").data)
            except ManifestRefused:
                results.add(b"refused")
    finally:
        over.set()
        swapper.join()
    assert results <= {b'{"module": "a.py"}', b"refused"}
