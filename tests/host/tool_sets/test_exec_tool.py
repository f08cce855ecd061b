"""A tool that is a program: real ones, started without a shell, given exactly what was fenced, ended whole."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from crystal.host.tool_sets.directories import SetDirectories
from crystal.host.tool_sets.exec_tool import ExecProgram, ExecTool
from crystal.types._readonly import read_only
from crystal.types.approval import ApprovalMode
from crystal.types.tools import Catalog, ToolCall, ToolContext, ToolDefinition, ToolOutput
from crystal.workspace.programs.keepers import Keepers

PNG = b"\x89PNG\r\n\x1a\nrest"
RECORDER = """#!{python}
import json, os, sys
json.dump({{
    "argv": sys.argv[1:], "stdin": sys.stdin.read(), "cwd": os.getcwd(),
    "env": {{k: v for k, v in os.environ.items() if k.startswith("CRYSTAL_")}},
}}, sys.stdout)
"""


class Place:
    """A workspace, a home and the directory of a set."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace"
        self.home = root / "home"
        self.folder = self.home / "tools" / "Acme.Tools"
        self.workspace.mkdir()
        self.folder.mkdir(parents=True)
        self.shown: list[str] = []
        self.permitted: frozenset[str] = frozenset()
        self.accepts_images = True

    def program(self, name: str, source: str) -> Path:
        path = self.folder / name
        path.write_text(source)
        path.chmod(0o755)
        return path

    @property
    def context(self) -> ToolContext:
        async def no_calls(name: str, arguments: Any) -> ToolOutput:
            raise AssertionError(f"{name} was called")

        return ToolContext(
            workspace=self.workspace,
            home=self.home,
            session_id="session-1",
            call_id="call",
            approval=ApprovalMode.EDIT,
            mode=Catalog.WORK,
            global_data=self.home / "data" / "tools" / "Acme.Tools",
            project_data=self.workspace / ".crystal" / "data" / "tools" / "Acme.Tools",
            accepts_images=self.accepts_images,
            permitted_paths=self.permitted,
            progress=self.shown.append,
            tools=(),
            call=no_calls,
        )

    def call(self, *command: str, arguments: Mapping[str, Any] | None = None, **fields: Any) -> ToolOutput:
        """Make one call of a tool and close what it left behind."""
        return asyncio.run(self.invoke(command, arguments or {}, fields))

    async def invoke(
        self, command: tuple[str, ...], arguments: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> ToolOutput:
        options: dict[str, Any] = {
            "flags": {},
            "path_arguments": (),
            "stdin": True,
            "content": False,
            "seconds": 60.0,
            **fields,
        }
        definition = ToolDefinition(name="acme", description="Acme.", schema={"type": "object"})
        keepers = Keepers()
        program = ExecProgram(definition=definition, folder=self.folder, command=command, **options)
        tool = ExecTool(program, SetDirectories("Acme.Tools"), keepers)
        try:
            return await tool.invoke(
                ToolCall(id="call", name="acme", arguments=read_only(dict(arguments))), self.context
            )
        finally:
            await keepers.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(Path(os.path.realpath(tmp_path)))


@pytest.fixture
def recorder(place: Place) -> Callable[..., dict[str, Any]]:
    place.program("record", RECORDER.format(python=sys.executable))

    def record(*suffix: str, arguments: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        output = place.call("record", *suffix, arguments=arguments, **fields)
        assert not output.failed, output.text
        found: dict[str, Any] = json.loads(output.text)
        return found

    return record


Record = Callable[..., dict[str, Any]]


def test_what_arrives_is_exactly_what_was_fenced(place: Place, recorder: Record) -> None:
    (place.workspace / "sub").mkdir()
    (place.workspace / "link").symlink_to("sub")
    found = recorder(
        "deploy",
        "now",
        arguments={"text": "-x; $(touch y) 'é'", "path": "link/new", "paths": ["sub", "./sub/../a"], "n": 5},
        flags={"path": "--path", "text": "--text", "paths": "-p"},
        path_arguments=("path", "paths"),
    )
    new, sub, a = (str(place.workspace / name) for name in ("sub/new", "sub", "a"))
    assert found["argv"] == ["deploy", "now", "--path", new, "--text", "-x; $(touch y) 'é'", "-p", sub, "-p", a]
    assert json.loads(found["stdin"]) == {"text": "-x; $(touch y) 'é'", "path": new, "paths": [sub, a], "n": 5}
    assert found["cwd"] == str(place.workspace)
    assert found["env"] == {
        "CRYSTAL_WORKSPACE": str(place.workspace),
        "CRYSTAL_SESSION": "session-1",
        "CRYSTAL_APPROVAL": "edit",
        "CRYSTAL_DATA_GLOBAL": str(place.home / "data/tools/Acme.Tools"),
        "CRYSTAL_DATA_PROJECT": str(place.workspace / ".crystal/data/tools/Acme.Tools"),
    }


def test_without_stdin_there_is_an_end_at_once(recorder: Record) -> None:
    assert recorder(arguments={"a": 1}, stdin=False)["stdin"] == ""


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "~/.ssh/id_rsa", "link/x", ""])
def test_a_path_that_was_not_approved_stops_the_call_before_the_program_starts(place: Place, path: str) -> None:
    place.program("run", "#!/bin/sh\ntouch ran\n")
    (place.workspace / "link").symlink_to("/etc")
    for arguments in ({"path": path}, {"path": ["ok", path]}):
        output = place.call("run", arguments=arguments, path_arguments=("path",))
        assert output.failed
        assert output.text.startswith("acme: ")
    assert not (place.workspace / "ran").exists()


def test_an_approved_path_reaches_the_program(place: Place, recorder: Record) -> None:
    outside = place.workspace.parent / "outside"
    place.permitted = frozenset({str(outside)})
    found = recorder(arguments={"path": "../outside"}, flags={"path": "--path"}, path_arguments=("path",))
    assert found["argv"] == ["--path", str(outside)]


def test_a_bare_name_is_taken_from_the_sets_directory_before_the_path(place: Place) -> None:
    place.program("git", "#!/bin/sh\necho mine\n")
    assert place.call("git").text == "mine\n"
    (place.folder / "git").unlink()
    assert place.call("git", "--version").text.startswith("git version")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program-at-all", "there is no program 'no-such-program-at-all'"),
        ("./missing", "is no program"),
        ("plain.txt", "there is no program 'plain.txt'"),
        ("./plain.txt", "make it executable"),
        ("../../outside", "leads out of the set's directory"),
        ("bin/out", "leads out of the set's directory"),
    ],
)
def test_a_program_that_cannot_be_started_is_named_with_the_mend(place: Place, command: str, said: str) -> None:
    (place.folder / "plain.txt").write_text("x")
    (place.folder / "bin").mkdir()
    (place.folder / "bin" / "out").symlink_to(shutil.which("true") or "")
    output = place.call(command)
    assert output.failed
    assert said in output.text


def test_a_program_of_the_workspace_on_the_path_is_not_taken(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = place.workspace / "bin" / "unheard-of"
    theirs.parent.mkdir()
    theirs.write_text("#!/bin/sh\ntouch ran\n")
    theirs.chmod(0o755)
    monkeypatch.setenv("PATH", f"{theirs.parent}{os.pathsep}{os.environ['PATH']}")
    assert "outside the workspace" in place.call("unheard-of").text


def test_a_script_without_an_interpreter_is_a_failed_answer(place: Place) -> None:
    place.program("odd", "#!/no/such/interpreter\n")
    output = place.call("odd")
    assert output.failed
    assert "odd could not be started: No such file" in output.text


@pytest.mark.parametrize(
    ("script", "text", "failed"),
    [
        ("echo out; echo err >&2", "out\nerr\n", False),
        ("echo err >&2; echo out; exit 3", "out\nerr\n(exit 3)", True),
        ("true", "(no output)", False),
        ("exit 1", "(exit 1)", True),
        ("kill -TERM $$", "(ended by signal 15)", True),
        ("printf 'a\\377b'", "a\ufffdb\n(bytes that are no text are shown as U+FFFD)\n", False),
    ],
)
def test_the_answer_is_stdout_then_stderr_and_a_bad_end(place: Place, script: str, text: str, failed: bool) -> None:
    output = place.call("sh", "-c", script)
    assert (output.text, output.failed) == (text, failed)


def test_a_long_output_is_cut_in_the_middle(place: Place) -> None:
    output = place.call("sh", "-c", "seq 1 200000; echo last")
    assert len(output.text) <= 100_000
    assert output.text.startswith("1\n2\n")
    assert "bytes left out" in output.text
    assert output.text.endswith("last\n")


def test_lines_are_shown_while_it_runs(place: Place) -> None:
    place.call("sh", "-c", "echo one; echo two >&2")
    assert sorted(place.shown) == ["one", "two"]


def test_a_timeout_ends_it_with_everything_it_started(place: Place) -> None:
    output = place.call("sh", "-c", "setsid sleep 600 & echo $!; exec sleep 600", seconds=1.0)
    assert output.failed
    number, _, said = output.text.partition("\n")
    assert said == "(timed out after 1 s; the program and everything it started were ended)"
    assert not Path(f"/proc/{number}").exists()


def test_an_input_that_is_refused_ends_it(place: Place) -> None:
    output = place.call("sh", "-c", "exec 0<&-; exec sleep 600", arguments={"text": "x" * 1_000_000})
    assert output.failed
    assert "closed its standard input unread" in output.text


def test_its_own_status_stays_when_it_ends_unread(place: Place) -> None:
    output = place.call("sh", "-c", "exit 7", arguments={"text": "x" * 1_000_000})
    assert output.text == "(exit 7)"


def test_directories_are_made_at_the_first_call(place: Place) -> None:
    place.call("sh", "-c", 'echo x > "$CRYSTAL_DATA_GLOBAL/a"; echo y > "$CRYSTAL_DATA_PROJECT/b"')
    assert (place.home / "data/tools/Acme.Tools/a").read_text() == "x\n"
    assert (place.workspace / ".crystal/data/tools/Acme.Tools/b").read_text() == "y\n"
    assert (place.workspace / ".crystal/data/.gitignore").read_text() == "*\n"
    assert stat.S_IMODE((place.home / "data/tools").stat().st_mode) == 0o700


def test_a_link_in_their_path_refuses_the_call(place: Place) -> None:
    (place.workspace / ".crystal").symlink_to(place.home)
    output = place.call("sh", "-c", "touch ran")
    assert output.failed
    assert ".crystal is a link" in output.text
    assert not (place.workspace / "ran").exists()


CONTENT = {
    "text": "seen",
    "images": [
        {"mimeType": "image/png", "base64": base64.b64encode(PNG).decode()},
        {"mimeType": "image/png", "path": "shot.png"},
    ],
}


def test_content_is_a_text_and_images(place: Place) -> None:
    (place.workspace / "shot.png").write_bytes(PNG + b"2")
    (place.folder / "content.json").write_text(json.dumps(CONTENT))
    output = place.call("sh", "-c", f"echo working >&2; cat '{place.folder}/content.json'", content=True)
    assert (output.text, output.failed) == ("seen", False)
    assert [image.data for image in output.images] == [PNG, PNG + b"2"]
    assert place.shown == ["working"]


def test_images_for_a_model_that_sees_none_are_refused_in_words(place: Place) -> None:
    place.accepts_images = False
    (place.workspace / "shot.png").write_bytes(PNG)
    output = place.call("sh", "-c", f"echo '{json.dumps(CONTENT)}'", content=True)
    assert output.failed
    assert output.text == "seen\n(acme answered 2 images, which this model cannot be shown.)"
    assert place.call("sh", "-c", """echo '{"text": "words"}'""", content=True).text == "words"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../outside.png", "outside the workspace"),
        ("/etc/passwd", "outside the workspace"),
        ("link.png", "outside the workspace"),
        ("missing.png", "missing.png"),
        (".", "folder"),
    ],
)
def test_an_image_outside_the_fence_is_not_read(place: Place, path: str, said: str) -> None:
    (place.workspace.parent / "outside.png").write_bytes(PNG)
    (place.workspace / "link.png").symlink_to(place.workspace.parent / "outside.png")
    content = {"text": "x", "images": [{"mimeType": "image/png", "path": path}]}
    output = place.call("sh", "-c", f"echo '{json.dumps(content)}'", content=True)
    assert output.failed
    assert not output.images
    assert said in output.text


def test_an_image_in_the_sets_own_directory_is_read(place: Place) -> None:
    script = 'cp shot.png "$CRYSTAL_DATA_GLOBAL/x.png"; printf \'{"text": "", "images": [{"mimeType": "image/png", '
    script += '"path": "%s/x.png"}]}\' "$CRYSTAL_DATA_GLOBAL"'
    (place.workspace / "shot.png").write_bytes(PNG)
    output = place.call("sh", "-c", script, content=True)
    assert [image.data for image in output.images] == [PNG], output.text


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo words", "The output of acme is not one JSON object"),
        ("echo log >&2; echo words", "log\n"),
        ("""echo '{"text": "x"}'; exit 3""", '{"text": "x"}\n(exit 3)'),
        ("head -c 33554433 /dev/zero", "33,554,433 bytes, but content may have 33,554,432"),
    ],
)
def test_output_that_is_no_content_is_a_failed_answer(place: Place, script: str, said: str) -> None:
    output = place.call("sh", "-c", script, content=True)
    assert output.failed
    assert said in output.text
