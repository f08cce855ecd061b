"""``tools.json``: what is accepted, what each field means, and what each refusal says.

``RULES`` maps the rules of the format to the tests that hold them.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.manifests.reading import MANIFEST_BYTES, ManifestRefused
from crystal.host.manifests.remembered import MOST_REMEMBERED, RememberedManifests
from crystal.host.manifests.toolset import (
    AuthorApproval,
    DeclaredTool,
    ExecRunner,
    OmittedTool,
    OutputForm,
    PythonRunner,
    ToolOverlay,
    ToolSetManifest,
    parse_tool_set,
)
from crystal.host.manifests.toolset_schema import tool_set_schema
from crystal.store.home import Home
from crystal.types.tools import Catalog
from tests.host.tool_set_folders import PYTHON, SCHEMA, SHORT, several, tool

PATH = Path("/home/me/.crystal/tools/Acme/tools.json")

RULES = {
    "unknown fields, a root name among them, are ignored": "test_unknown_fields_are_ignored_at_every_level",
    "runner is the one required field of the root": "test_a_wrong_field_is_named_with_what_helps",
    "the short form is named like its directory": "test_the_short_form_is_one_tool_named_like_its_folder",
    "the short form needs a directory that is a tool name": "test_the_short_form_needs_a_folder_with_a_tools_name",
    "short form and tools list exclude one another": "test_the_short_form_and_a_list_are_never_mixed",
    "a list of one tool is no short form": "test_a_list_of_one_is_no_short_form",
    "command is the set's prefix and the tool's suffix, unchanged": "test_a_command_is_the_sets_and_then_the_tools",
    "stdin is a field of the set, by default true": "test_stdin_is_a_switch_of_the_set",
    "argv maps a property to one flag": "test_flags_keep_the_order_of_the_file",
    "pathArguments names properties": "test_a_name_that_is_no_property_is_refused",
    "output is text or content": "test_output_is_read_for_each_tool",
    "timeoutSeconds is up to 4,294,967 or unlimited, by default 120": "test_the_timeout",
    "catalogs is a set of plan and work": "test_catalogs_are_a_set",
    "a tool's catalogs replace the set's": "test_a_tools_own_fields_take_the_place_of_the_sets",
    "unknown or no catalogs refuse the set": "test_a_wrong_field_is_named_with_what_helps",
    "unknown or no catalogs of a tool refuse that tool": "test_ill_formed_catalogs_of_a_tool_leave_out_that_tool_alone",
    "approval is inherit or always, the tool's before the set's": "test_a_tools_own_fields_take_the_place_of_the_sets",
    "duplicate names inside an exec set omit the set": "test_a_wrong_field_is_named_with_what_helps",
    "the python runner has module, types and overlays": "test_every_field_of_a_python_set_is_read",
    "the python runner refuses fields of programs": "test_a_python_set_has_no_field_of_a_program",
    "a manifest that says dotnet is told of python": "test_a_wrong_field_is_named_with_what_helps",
    "comments and trailing commas are errors with their line": "test_what_is_not_strict_json_is_refused_with_its_place",
    "enabled is a boolean, by default true": "test_a_refusal_knows_what_the_manifest_says_about_being_enabled",
}


def test_every_rule_has_its_test() -> None:
    assert [name for name in RULES.values() if not callable(globals().get(name))] == []


def parsed(value: Any, directory: str = "Acme") -> ToolSetManifest:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return parse_tool_set(PATH, data, directory)


def exec_tools(value: Any, directory: str = "Acme") -> tuple[DeclaredTool, ...]:
    runner = parsed(value, directory).runner
    assert isinstance(runner, ExecRunner)
    return runner.tools


def refusal(value: Any, directory: str = "Acme") -> ManifestRefused:
    with pytest.raises(ManifestRefused) as raised:
        parsed(value, directory)
    return raised.value


def outcome(value: Any) -> ToolSetManifest | ManifestRefused:
    try:
        return parsed(value)
    except ManifestRefused as refused:
        return refused


def test_the_short_form_is_one_tool_named_like_its_folder() -> None:
    assert parsed(SHORT, "deploy_it") == ToolSetManifest(
        enabled=True,
        approval=AuthorApproval.INHERIT,
        catalogs=Catalog.BOTH,
        timeout=120,
        runner=ExecRunner(
            stdin=True,
            tools=(
                DeclaredTool(name="deploy_it", description="Ship it.", schema=SCHEMA, command=("deploy", "release")),
            ),
        ),
    )


@pytest.mark.parametrize("directory", ["Acme.Tools", "a.b"])
def test_the_short_form_needs_a_folder_with_a_tools_name(directory: str) -> None:
    assert f"'{directory}' is no tool name (it has a dot)" in refusal(SHORT, directory).message
    assert exec_tools(several(tool("deploy")), directory)[0].name == "deploy"
    assert parsed(PYTHON, directory).enabled


def test_every_field_of_a_set_of_several_tools_is_read() -> None:
    first = tool(
        "acme_deploy",
        command=["deploy", "--now"],
        argv={"path": "-p", "environment": "--env"},
        pathArguments=["path", "path"],
        output="content",
        approval="always",
        catalogs=["work", "work"],
    )
    value = several(first, tool("acme-2"), enabled=False, stdin=False, timeoutSeconds=7, catalogs=["plan"])
    assert parsed(value) == ToolSetManifest(
        enabled=False,
        approval=AuthorApproval.INHERIT,
        catalogs=Catalog.PLAN,
        timeout=7,
        runner=ExecRunner(
            stdin=False,
            tools=(
                DeclaredTool(
                    name="acme_deploy",
                    description="Do acme_deploy.",
                    schema=SCHEMA,
                    command=("acme", "deploy", "--now"),
                    argv={"path": "-p", "environment": "--env"},
                    path_arguments=("path",),
                    output=OutputForm.CONTENT,
                    approval=AuthorApproval.ALWAYS,
                    catalogs=Catalog.WORK,
                ),
                DeclaredTool(
                    name="acme-2",
                    description="Do acme-2.",
                    schema=SCHEMA,
                    command=("acme",),
                    catalogs=Catalog.PLAN,
                ),
            ),
        ),
    )


def test_a_list_of_one_is_no_short_form() -> None:
    [only] = exec_tools(several(tool("other", argv={"path": "--path"})), "Acme")
    assert (only.name, only.argv) == ("other", {"path": "--path"})


@pytest.mark.parametrize(
    ("prefix", "suffix", "whole"),
    [
        (["acme", "{{x}}", "$HOME", ""], ["-x", "~"], ("acme", "{{x}}", "$HOME", "", "-x", "~")),
        ([], ["only", "tool"], ("only", "tool")),
        (["only set"], [], ("only set",)),
    ],
)
def test_a_command_is_the_sets_and_then_the_tools(prefix: list[str], suffix: list[str], whole: tuple[str, ...]) -> None:
    [found] = exec_tools(several(tool("t", command=suffix), command=prefix))
    assert found.command == whole


def test_the_short_form_has_its_command_once() -> None:
    [found] = exec_tools(SHORT)
    assert found.command == ("deploy", "release")


def test_stdin_is_a_switch_of_the_set() -> None:
    for said, means in ((None, True), (True, True), (False, False)):
        value = several(tool("t", stdin=not means)) | ({} if said is None else {"stdin": said})
        runner = parsed(value).runner
        assert isinstance(runner, ExecRunner)
        assert runner.stdin is means


@pytest.mark.parametrize("names", [["b", "a", "c"], ["c", "b", "a"], ["10", "9", "1"]])
def test_flags_keep_the_order_of_the_file(names: list[str]) -> None:
    value = {**SHORT, "schema": {"type": "object"}, "argv": {name: f"--{name}" for name in names}}
    [found] = exec_tools(value)
    assert list(found.argv.items()) == [(name, f"--{name}") for name in names]


def test_output_is_read_for_each_tool() -> None:
    found = exec_tools(several(tool("a", output="content"), tool("b", output="text"), tool("c")))
    assert [each.output for each in found] == [OutputForm.CONTENT, OutputForm.TEXT, OutputForm.TEXT]
    [short] = exec_tools({**SHORT, "output": "content"})
    assert short.output is OutputForm.CONTENT


@pytest.mark.parametrize(("said", "means"), [(1, 1), (4_294_967, 4_294_967), ("unlimited", None)])
def test_the_timeout(said: Any, means: int | None) -> None:
    assert parsed({**SHORT, "timeoutSeconds": said}).timeout == means
    assert parsed({**PYTHON, "timeoutSeconds": said}).timeout == means
    assert parsed(PYTHON).timeout == 120


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (["plan", "work"], Catalog.BOTH),
        (["work", "plan"], Catalog.BOTH),
        (["plan"], Catalog.PLAN),
        (["work", "work"], Catalog.WORK),
    ],
)
def test_catalogs_are_a_set(said: list[str], means: Catalog) -> None:
    assert exec_tools({**SHORT, "catalogs": said})[0].catalogs == means
    assert exec_tools(several(tool("t", catalogs=said)))[0].catalogs == means
    overlay = parsed({**PYTHON, "tools": {"t": {"catalogs": said}}}).overlay("t")
    assert overlay == ToolOverlay(catalogs=means)


def test_a_tools_own_fields_take_the_place_of_the_sets() -> None:
    tools = (tool("a", approval="inherit", catalogs=["plan"]), tool("b"))
    found = exec_tools(several(*tools, approval="always", catalogs=["work"]))
    assert [(each.approval, each.catalogs) for each in found] == [
        (AuthorApproval.INHERIT, Catalog.PLAN),
        (AuthorApproval.ALWAYS, Catalog.WORK),
    ]


def test_every_field_of_a_python_set_is_read() -> None:
    overlay = {"catalogs": ["plan"], "pathArguments": ["path"], "approval": "always"}
    value = {
        **PYTHON,
        "module": "./src//acme/",
        "types": ["Acme", "inventory", "Acme"],
        "shared": ["numpy"],
        "catalogs": ["work"],
        "timeoutSeconds": "unlimited",
        "tools": {"acme": overlay, "other": {}},
    }
    assert parsed(value) == ToolSetManifest(
        enabled=True,
        approval=AuthorApproval.INHERIT,
        catalogs=Catalog.WORK,
        timeout=None,
        runner=PythonRunner(
            module="src/acme",
            types=("Acme", "inventory"),
            shared=("numpy",),
            overlays={
                "acme": ToolOverlay(path_arguments=("path",), approval=AuthorApproval.ALWAYS, catalogs=Catalog.PLAN),
                "other": ToolOverlay(catalogs=Catalog.WORK),
            },
        ),
    )


def test_a_python_tool_without_an_overlay_has_the_defaults_of_the_set() -> None:
    found = parsed({**PYTHON, "approval": "always", "catalogs": ["plan"]})
    assert found.runner == PythonRunner(module="acme.py")
    assert found.overlay("any") == ToolOverlay(approval=AuthorApproval.ALWAYS, catalogs=Catalog.PLAN)


def test_unknown_fields_are_ignored_at_every_level() -> None:
    known = several(tool("t", argv={"path": "-p"}))
    extended = copy.deepcopy(known) | {"name": 5, "id": None, "assembly": "x.dll", "$schema": "x", "X": {"a": []}}
    extended["tools"][0] |= {"title": 1, "timeoutSeconds": "never", "stdin": "x", "enabled": False}
    assert parsed(extended) == parsed(known)
    assert parsed({**SHORT, "name": "elsewhere"}) == parsed(SHORT)
    overlays = {"t": {"x": 1, "description": "d", "schema": 5}}
    value = {**PYTHON, "assembly": "A.dll", "description": 1, "tools": overlays}
    assert parsed(value) == parsed({**PYTHON, "tools": {"t": {}}})


@pytest.mark.parametrize("field", ["description", "schema", "argv", "pathArguments", "output"])
def test_the_short_form_and_a_list_are_never_mixed(field: str) -> None:
    for value in (SHORT.get(field), None, {}, "text"):
        refused = refusal(several(tool("t"), **{field: value}))
        assert refused.field == field
        assert "a set has a tools list, or the fields of its only tool at the root, never both" in refused.message


@pytest.mark.parametrize("field", ["command", "stdin", "argv", "output"])
def test_a_python_set_has_no_field_of_a_program(field: str) -> None:
    value = {"command": ["x"], "stdin": True, "argv": {}, "output": "text"}[field]
    for at_root, place in ((True, field), (False, f"tools.t.{field}")):
        refused = refusal({**PYTHON, field: value} if at_root else {**PYTHON, "tools": {"t": {field: value}}})
        assert refused.field == place
        assert refused.message == ("this field does not belong here: only a set with the runner exec has it; remove it")


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ({}, "runner", "this field is required; write exec or python"),
        ({"runner": None}, "runner", "expected exec or python, found null"),
        ({"runner": "bash", "command": ["x"]}, "runner", "expected exec or python, found 'bash'"),
        ({"runner": ["exec"]}, "runner", "expected exec or python, found a list"),
        ({"runner": "dotnet", "assembly": "A.dll"}, "runner", "write python here and name the set's .py file"),
        ({"runner": "python", "assembly": "A.dll"}, "assembly", "in the field module instead"),
        ({"runner": "python"}, "module", "this field is required"),
        ({"runner": "exec"}, "description", "this field is required"),
        ({**SHORT, "enabled": "yes"}, "enabled", 'expected true or false, found "yes"'),
        ({**SHORT, "approval": "never"}, "approval", 'expected inherit or always, found "never"'),
        ({**SHORT, "command": "deploy"}, "command", 'expected a list, found "deploy"'),
        ({**SHORT, "command": ["a", 5]}, "command[1]", "expected a text, found 5"),
        ({**SHORT, "command": ["a", "b\0"]}, "command[1]", "NUL"),
        ({**SHORT, "command": []}, "command", "a program is needed"),
        ({**SHORT, "command": ["", "x"]}, "command", "the first text is empty; name the program"),
        ({**SHORT, "stdin": 1}, "stdin", "expected true or false, found 1"),
        ({**SHORT, "description": None}, "description", "expected a text, found null"),
        ({**SHORT, "schema": []}, "schema", "expected an object, found a list"),
        ({**SHORT, "schema": {}}, "schema", "the schema does not say type 'object' at its root"),
        ({**SHORT, "schema": {**SCHEMA, "required": "path"}}, "schema", "'required' that is not a list of names"),
        ({**SHORT, "schema": {"type": "object", "properties": {"a": {"type": "text"}}}}, "schema", "type 'text'"),
        ({**SHORT, "schema": {"type": "object", "properties": {"a": {"type": 5}}}}, "schema", "neither a text nor"),
        ({**SHORT, "schema": {"type": "object", "properties": {"a": {"type": [[]]}}}}, "schema", "neither a text nor"),
        ({**SHORT, "argv": ["--env"]}, "argv", "expected an object, found a list"),
        ({**SHORT, "argv": {"environment": ["--env"]}}, "argv.environment", "expected a text, found a list"),
        ({**SHORT, "argv": {"environment": ""}}, "argv.environment", "the flag is empty"),
        ({**SHORT, "argv": {"environment": "-\0"}}, "argv.environment", "NUL"),
        ({**SHORT, "pathArguments": "path"}, "pathArguments", 'expected a list, found "path"'),
        ({**SHORT, "pathArguments": [""]}, "pathArguments[0]", "the name is empty"),
        ({**SHORT, "output": "json"}, "output", 'expected text or content, found "json"'),
        ({**SHORT, "timeoutSeconds": 0}, "timeoutSeconds", "expected a number of seconds from 1 to 4294967"),
        ({**SHORT, "timeoutSeconds": 4_294_968}, "timeoutSeconds", 'or "unlimited", found 4294968'),
        ({**SHORT, "timeoutSeconds": 1.5}, "timeoutSeconds", "found 1.5"),
        ({**SHORT, "timeoutSeconds": True}, "timeoutSeconds", "found true"),
        ({**SHORT, "timeoutSeconds": "120"}, "timeoutSeconds", 'found "120"'),
        ({**SHORT, "catalogs": []}, "catalogs", "a tool in neither catalog is never used"),
        ({**SHORT, "catalogs": ["plan", "review"]}, "catalogs", "expected plan or work, found 'review'"),
        ({**SHORT, "catalogs": [["plan"]]}, "catalogs", "expected plan or work, found a list"),
        ({**SHORT, "catalogs": "plan"}, "catalogs", "expected a list of plan and work, found a text"),
        (several(catalogs=[]), "catalogs", "the list is empty"),
        ({**SHORT, "module": "a.py"}, "module", "only a set with the runner python has it"),
        (several(tool("t"), types=["A"]), "types", "only a set with the runner python has it"),
        (several(), "tools", "the list is empty"),
        (several("t"), "tools[0]", 'expected an object, found "t"'),
        (several(tools={"t": tool("t")}), "tools", "expected a list, found an object"),
        (several({"description": "d", "schema": SCHEMA}), "tools[0].name", "this field is required"),
        (several(tool("a b")), "tools[0].name", "expected a tool name: a letter, then letters"),
        (several(tool("a.b")), "tools[0].name", "expected a tool name"),
        (several(tool("a\n")), "tools[0].name", "expected a tool name"),
        (several(tool("a" * 65)), "tools[0].name", "expected a tool name"),
        (several(tool("a"), {"name": "b", "schema": SCHEMA}), "tools[1].description", "this field is required"),
        (several(tool("a"), {"name": "b", "description": "d"}), "tools[1].schema", "this field is required"),
        (several(tool("a", schema={"type": "array"})), "tools[0].schema", "type 'object' at its root"),
        (several(tool("a"), tool("b"), tool("a")), "tools[2].name", "two tools of this set are named 'a'"),
        (several(tool("a"), command=[]), "tools[0].command", "a program is needed"),
        (several(tool("a", command=[""]), command=[]), "tools[0].command", "the first text is empty"),
        (several(tool("a"), command=[""]), "command", "the first text is empty"),
        (several(tool("a", approval="host")), "tools[0].approval", "expected inherit or always"),
        ({**PYTHON, "module": "../a.py"}, "module", "stay inside the tool set's folder"),
        ({**PYTHON, "module": "/a.py"}, "module", "relative to the tool set's folder"),
        ({**PYTHON, "module": ""}, "module", "name the tool set's .py file or package folder"),
        ({**PYTHON, "types": "Acme"}, "types", 'expected a list, found "Acme"'),
        ({**PYTHON, "types": []}, "types", "the list is empty"),
        ({**PYTHON, "types": ["Acme.Tool"]}, "types[0]", "such as AcmePlugin"),
        ({**PYTHON, "types": [""]}, "types[0]", "the name is empty"),
        ({**PYTHON, "shared": ["a/b"]}, "shared", "such as numpy"),
        ({**PYTHON, "pathArguments": ["path"]}, "pathArguments", "for each tool, in the field tools"),
        ({**PYTHON, "tools": [tool("t")]}, "tools", "expected an object, found a list"),
        ({**PYTHON, "tools": {"a b": {}}}, "tools.a b", "the key is expected to be a tool name"),
        ({**PYTHON, "tools": {"t": []}}, "tools.t", "expected an object, found a list"),
        ({**PYTHON, "tools": {"t": {"pathArguments": [5]}}}, "tools.t.pathArguments[0]", "expected a text, found 5"),
    ],
)
def test_a_wrong_field_is_named_with_what_helps(value: dict[str, Any], field: str, words: str) -> None:
    refused = refusal(value)
    assert (refused.field, words in refused.message) == (field, True), str(refused)
    assert str(PATH) in str(refused)


@pytest.mark.parametrize(("field", "value"), [("argv", {"paht": "-p"}), ("pathArguments", ["path", "paht"])])
def test_a_name_that_is_no_property_is_refused(field: str, value: Any) -> None:
    place = {"argv": "argv.paht", "pathArguments": "pathArguments[1]"}[field]
    assert refusal({**SHORT, field: value}).field == place
    refused = refusal(several(tool("t", **{field: value})))
    assert (refused.field, refused.message) == (
        f"tools[0].{place}",
        "'paht' is no property of the schema; name one that is, or add it there",
    )
    for schema in ({"type": "object"}, {**SCHEMA, "allOf": []}, {**SCHEMA, "patternProperties": {"^p": {}}}):
        assert exec_tools(several(tool("t", schema=schema, **{field: value})))


@pytest.mark.parametrize("catalogs", [[], ["full"], "work", None, [5]])
def test_ill_formed_catalogs_of_a_tool_leave_out_that_tool_alone(catalogs: Any) -> None:
    value = json.dumps(several(tool("a"), tool("b", catalogs=catalogs), tool("c")), indent=1).encode()
    found = parsed(value)
    assert isinstance(found.runner, ExecRunner)
    assert [each.name for each in found.runner.tools] == ["a", "c"]
    [omitted] = found.omitted
    line = 1 + next(at for at, text in enumerate(value.splitlines()) if b"catalogs" in text)
    assert omitted == OmittedTool(name="b", line=line, field="tools[1].catalogs", message=omitted.message)
    found = parsed({**PYTHON, "tools": {"a": {"catalogs": catalogs}, "c": {}}})
    assert [(each.name, each.field) for each in found.omitted] == [("a", "tools.a.catalogs")]
    assert found.overlay("a") is None
    assert found.overlay("c") == found.overlay("d") == ToolOverlay()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"runner": "exec", // no\n}', ", line 1, column 20: comments are not allowed in this file"),
        (b'{\n  "runner": "exec",\n}', ", line 2, column 19: a comma must not stand before a closing bracket"),
        (b'{"runner": "exec",\n"runner": "exec"}', ", line 2, field runner: this key stands twice in one object"),
        (b'{"runner": "\xff"}', ", line 1: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"", ": the file is empty; write a manifest into it or remove the folder"),
        (b"[]", ", line 1: expected an object, found a list"),
        (b'{"x": "' + b" " * MANIFEST_BYTES + b'"}', ": the file is larger than 64 KiB; make it smaller"),
        (b"[" * 60_000, ": objects and lists are nested deeper than 64; make it flatter"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_place(data: bytes, sentence: str) -> None:
    assert str(refusal(data)) == f"{PATH}{sentence}"


def test_a_fault_has_the_line_of_its_field() -> None:
    data = json.dumps(several(tool("a"), tool("b", argv={"x": "-x"})), indent=2).encode()
    line = 1 + next(at for at, text in enumerate(data.splitlines()) if b'"x"' in text)
    assert str(refusal(data)).startswith(f"{PATH}, line {line}, field tools[1].argv.x: ")


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf", b"\r\n"])
def test_a_byte_order_mark_and_windows_line_ends_are_accepted(data: bytes) -> None:
    assert parsed(data + json.dumps(SHORT).encode()) == parsed(SHORT)


@pytest.mark.parametrize(
    ("value", "says"), [({}, True), ({"enabled": False}, False), ({**SHORT, "enabled": "no"}, None)]
)
def test_a_refusal_knows_what_the_manifest_says_about_being_enabled(value: dict[str, Any], says: bool | None) -> None:
    assert refusal(value).enabled is says
    assert refusal(b"{").enabled is None
    assert parsed({**SHORT, "enabled": False}).enabled is False


def test_a_manifest_cannot_be_changed() -> None:
    [found] = exec_tools({**SHORT, "argv": {"path": "-p"}})
    for value in (found.schema, found.argv, found.schema["properties"]):
        with pytest.raises(TypeError, match="read-only"):
            value["x"] = 1
    with pytest.raises(AttributeError):
        found.name = "other"  # type: ignore[misc]


def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path / "home")


GOOD = json.dumps(several(tool("a", catalogs=["full"]), tool("b"))).encode()


def test_what_is_remembered_means_the_same(tmp_path: Path) -> None:
    for data in (GOOD, b"\xef\xbb\xbf" + GOOD, json.dumps(PYTHON).encode()):
        remembered = RememberedManifests(home(tmp_path))
        first = parse_tool_set(PATH, data, "Acme", remembered)
        remembered.save()
        again = RememberedManifests(home(tmp_path))
        assert again.knows("tools.json", data)
        assert parse_tool_set(PATH, data, "Acme", again) == first


def test_the_folders_name_is_checked_of_what_is_remembered_too(tmp_path: Path) -> None:
    data = json.dumps(SHORT).encode()
    remembered = RememberedManifests(home(tmp_path))
    parse_tool_set(PATH, data, "Acme", remembered)
    with pytest.raises(ManifestRefused, match="no tool name"):
        parse_tool_set(PATH, data, "Ac.me", remembered)


def test_what_is_refused_is_not_remembered(tmp_path: Path) -> None:
    data = json.dumps({**SHORT, "stdin": 1}).encode()
    for _ in range(2):
        remembered = RememberedManifests(home(tmp_path))
        with pytest.raises(ManifestRefused):
            parse_tool_set(PATH, data, "Acme", remembered)
        remembered.save()
    assert not home(tmp_path).root.exists()


@pytest.mark.parametrize("damage", ["missing", "garbage", "folder", "pipe", "no home"])
def test_a_damaged_memory_costs_a_check_and_nothing_else(tmp_path: Path, damage: str) -> None:
    place = home(tmp_path)
    file = place.cache / "manifests"
    file.parent.mkdir(parents=True)
    match damage:
        case "garbage":
            file.write_bytes(b"\xff\0" * 5000)
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "no home":
            file.parent.rmdir()
            place.root.rmdir()
            place.root.write_text("")
    remembered = RememberedManifests(place)
    assert not remembered.knows("tools.json", GOOD)
    assert parse_tool_set(PATH, GOOD, "Acme", remembered) == parsed(GOOD)
    remembered.save()


def test_the_memory_stays_small_and_keeps_what_was_just_met(tmp_path: Path) -> None:
    remembered = RememberedManifests(home(tmp_path))
    for number in range(MOST_REMEMBERED + 10):
        remembered.learn("tools.json", b"%d" % number)
    remembered.save()
    remembered = RememberedManifests(home(tmp_path))
    assert remembered.knows("tools.json", b"7")
    remembered.learn("tools.json", b"new")
    remembered.save()
    remembered = RememberedManifests(home(tmp_path))
    known = [data for data in (b"7", b"new", b"%d" % (MOST_REMEMBERED + 9)) if remembered.knows("tools.json", data)]
    assert known == [b"7", b"new"]
    assert len((home(tmp_path).cache / "manifests").read_text().split()) == MOST_REMEMBERED


def test_a_remembered_manifest_needs_no_pydantic(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from crystal.host.manifests.toolset import parse_tool_set\n"
        "from crystal.host.manifests.remembered import RememberedManifests\n"
        "from crystal.store.home import Home\n"
        f"remembered = RememberedManifests(Home(root=Path({str(tmp_path)!r})))\n"
        f"parse_tool_set(Path('p'), {GOOD!r}, 'Acme', remembered); remembered.save()\n"
        "print('pydantic' in sys.modules)"
    )
    said = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert said == ["True\n", "False\n"]


def test_the_published_schema_is_fresh() -> None:
    stored = Path(__file__).parents[2] / "crystal" / "schemas" / "tools.json"
    mend = "run: python -m crystal.host.manifests.toolset_schema > crystal/schemas/tools.json"
    assert json.loads(stored.read_text()) == tool_set_schema(), mend


def test_the_published_schema_accepts_what_is_accepted() -> None:
    checker = jsonschema.Draft202012Validator(tool_set_schema())
    overlaid = {**PYTHON, "tools": {"t": {"catalogs": ["plan"], "approval": "always"}}}
    good = [SHORT, several(tool("t")), PYTHON, overlaid, {**SHORT, "name": 5, "timeoutSeconds": "unlimited"}]
    assert [value for value in good if not checker.is_valid(value)] == []
    bad = [
        {},
        {"runner": "dotnet"},
        {**SHORT, "tools": []},
        {**SHORT, "catalogs": []},
        several(),
        several(tool("a b")),
        several(tool("t", catalogs=["full"])),
        {**PYTHON, "output": "text"},
        {**PYTHON, "tools": {"t": {"argv": {}}}},
        {**PYTHON, "tools": {"a b": {}}},
        {**SHORT, "timeoutSeconds": 0},
    ]
    assert [value for value in bad if checker.is_valid(value)] == []


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 4_294_968),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "exec", "python", "dotnet", "plan", "object", "a\0", "\x1b[2J", "\u202e", "x" * 70]),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.text(max_size=3), st.just([])), max_size=3),
)
VALID = st.sampled_from(
    [
        {**SHORT, "argv": {"path": "-p"}, "pathArguments": ["path"], "catalogs": ["plan"], "stdin": False},
        several(tool("a", argv={"path": "-p"}, command=["x"], output="content", catalogs=["work"]), tool("b")),
        {**PYTHON, "types": ["A"], "shared": ["n"], "tools": {"t": {"pathArguments": ["p"], "approval": "always"}}},
    ]
)


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value below ``value``."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in members:
        yield (*above, key)
        yield from places(item, (*above, key))


def holder(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        value = value[key]
    return value


@settings(max_examples=100, deadline=None)
@given(VALID, st.data())
def test_a_mutated_manifest_is_accepted_or_its_field_is_named(valid: dict[str, Any], data: st.DataObject) -> None:
    value = copy.deepcopy(valid)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(sorted(places(value), key=repr)))
        where, key = holder(value, place), place[-1]
        match data.draw(st.sampled_from(["replace", "remove", "double"])):
            case "replace":
                where[key] = data.draw(JUNK)
            case "remove":
                del where[key]
            case "double" if isinstance(where, list):
                where.append(copy.deepcopy(where[key]))
            case _:
                where["more"] = copy.deepcopy(where[key])
        if not value:
            break
    found = outcome(value)
    if isinstance(found, ManifestRefused):
        assert found.field
        assert f"field {found.field}: " in str(found)
        assert str(found).startswith(str(PATH))
    else:
        assert all(omitted.field and omitted.message for omitted in found.omitted)


@settings(max_examples=100, deadline=None)
@given(VALID, st.integers(0, 400), st.binary(max_size=4))
def test_any_bytes_are_a_manifest_or_a_refusal(valid: dict[str, Any], at: int, junk: bytes) -> None:
    data = json.dumps(valid).encode()
    found = outcome(data[:at] + junk + data[at + len(junk) :])
    assert isinstance(found, ToolSetManifest) or str(found).startswith(str(PATH))


def from_schema(schema: Any, definitions: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of the few words of JSON Schema that the published schema is written in."""
    if "$ref" in schema:
        return from_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return st.one_of([from_schema(part, definitions) for part in schema[word]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema.get("minimum"), schema.get("maximum"))
        case "string" if schema.get("pattern", "").startswith("^[A-Za-z]"):
            return st.from_regex(schema["pattern"], fullmatch=True)
        case "string":
            return st.text(st.sampled_from("abc_."), min_size=max(1, schema.get("minLength", 0)), max_size=6)
        case "array":
            items = from_schema(schema["items"], definitions)
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=3)
    names = {name: part for name, part in schema.get("properties", {}).items() if part is not False}
    if isinstance(schema.get("additionalProperties"), dict):
        keys = st.from_regex(schema.get("propertyNames", {}).get("pattern", "^[a-z]+$"), fullmatch=True)
        return st.dictionaries(keys, from_schema(schema["additionalProperties"], definitions), max_size=2)
    required = schema.get("required", ())
    made = {name: from_schema(part, definitions) for name, part in names.items()}
    return st.fixed_dictionaries(
        {name: made[name] for name in made if name in required},
        optional={name: made[name] for name in made if name not in required},
    )


def only_together(refused: ManifestRefused) -> bool:
    """Whether a refusal is about what no JSON Schema can say: fields together, paths, Python names."""
    said = ("two tools", "a program is needed", "is no property", "such as AcmePlugin", "such as numpy")
    return refused.message.startswith(("the first text", "a .py file", "the path")) or any(
        words in refused.message for words in said
    )


PUBLISHED = tool_set_schema()


@settings(max_examples=100, deadline=None)
@given(from_schema(PUBLISHED, PUBLISHED["$defs"]))
def test_what_the_published_schema_makes_is_accepted(value: dict[str, Any]) -> None:
    jsonschema.validate(value, PUBLISHED)
    found = outcome(value)
    if isinstance(found, ManifestRefused):
        assert only_together(found), str(found)
        assert found.field
    else:
        assert found.omitted == ()
