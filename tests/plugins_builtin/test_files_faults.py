"""Faults and hostile places under the file tools: what is on disk stays whole, and the answer names the reason."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crystal.types.tools import ToolOutput
from crystal.workspace.limits import OUTPUT_CHARACTERS
from plugins_builtin.files.edit import EditTool
from plugins_builtin.files.listing import ListTool
from plugins_builtin.files.read import ReadTool
from plugins_builtin.files.saving import LOADED_BYTES
from plugins_builtin.files.write import WriteTool
from tests.plugins_builtin.tool_calls import Session
from tests.workspace.moments import before_call


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EROFS, errno.EMFILE])
@pytest.mark.parametrize("tool", ["edit", "write", "create"])
def test_a_fault_at_any_moment_is_a_failed_result_and_leaves_a_whole_file_alone(
    session: Session, tool: str, fault: int
) -> None:
    def fail() -> None:
        raise OSError(fault, os.strerror(fault))

    number, failures = 0, 0
    while True:
        number += 1
        path = f"{number}/new/f" if tool == "create" else f"{number}/f"
        file = session.workspace / path
        if tool != "create":
            session.write(path, "old\n")
            session.call(ReadTool(), path=path)
        with before_call(number, fail) as calls:
            if tool == "edit":
                output = session.call(EditTool(), path=path, old_string="old", new_string="new")
            else:
                output = session.call(WriteTool(), path=path, content="new\n")
        if len(calls) < number:
            break
        content = file.read_text() if file.exists() else None
        if not output.failed:
            assert content == "new\n", calls
        else:
            failures += 1
            assert path in output.text
            assert content in ("new\n", None if tool == "create" else "old\n"), calls
            if tool == "create" and content is None:
                assert not (session.workspace / f"{number}").exists() or calls[number - 1] in ("mkdir", "rmdir"), calls
        if file.parent.exists():
            assert [name for name in os.listdir(file.parent) if name != "f"] == [], calls
    assert failures > 10


def test_a_folder_that_takes_no_file_is_named_as_the_reason_and_the_file_stays(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = session.write("sub/f", "old\n")
    real_open = os.open

    def open_without_permission(path: str, flags: int, *rest: int, **named: int) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_open(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", open_without_permission)
    output = session.call(EditTool(), path="sub/f", old_string="old", new_string="new")
    assert output.failed
    assert output.text == (
        "sub/f was not written: its folder does not let this user put a new file in its place (Permission denied); "
        "change the folder's mode first."
    )
    assert (file.read_text(), os.listdir(file.parent)) == ("old\n", ["f"])


def test_a_before_image_that_cannot_be_kept_stops_the_change(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    file = session.write("f", "old\n")

    def refuse(path: str, content: bytes | None, call_id: str) -> None:
        raise RuntimeError("the store is full")

    monkeypatch.setattr(session.memory, "keep_before_image", refuse)
    with pytest.raises(RuntimeError, match="store is full"):
        session.call(EditTool(), path="f", old_string="old", new_string="new")
    assert (file.read_text(), os.listdir(session.workspace)) == ("old\n", ["f"])


def test_before_images_hold_the_bytes_as_they_were(session: Session) -> None:
    contents = [bytes([0xA9, 13, 10]) + b"x", b"\xef\xbb\xbfx\r\n", "\ufeffx\n".encode("utf-16-be"), b"x", b"x\r\rx\n"]
    for number, content in enumerate(contents):
        session.write(f"f{number}", content)
        session.call(EditTool(), path=f"f{number}", old_string="x", new_string="y", replace_all=True)
    assert [content for _, content, _ in session.memory.before_images] == contents


def test_other_hard_links_are_spoken_of(session: Session) -> None:
    file = session.write("f", "old\n")
    os.link(file, session.workspace / "g")
    session.call(ReadTool(), path="f")
    note = "It had other hard links, which keep the old content."
    assert session.call(EditTool(), path="f", old_string="old", new_string="new").text.endswith(note)
    assert (file.read_text(), (session.workspace / "g").read_text()) == ("new\n", "old\n")
    assert note not in session.call(WriteTool(), path="f", content="x").text


def test_a_file_too_large_to_change_is_refused_without_being_loaded(session: Session) -> None:
    file = session.write("big", "x\n")
    os.truncate(file, LOADED_BYTES + 1)
    for output in (
        session.call(EditTool(), path="big", old_string="x", new_string="y"),
        session.call(WriteTool(), path="big", content="y"),
    ):
        assert output.failed
        assert "big is larger than" in output.text
    assert file.stat().st_size == LOADED_BYTES + 1


def test_a_binary_file_cannot_be_overwritten_and_the_way_on_is_named(session: Session) -> None:
    file = session.write("prog", b"\x7fELF\0\0")
    output = session.call(WriteTool(), path="prog", content="x")
    assert output.failed
    assert output.text == "prog exists and is a binary file, which read cannot show; remove it with bash to replace it."
    assert file.read_bytes() == b"\x7fELF\0\0"


def test_an_image_that_was_seen_may_be_overwritten(session: Session) -> None:
    session.write("logo.png", b"\x89PNG\r\n\x1a\n\0\0")
    assert session.call(WriteTool(), path="logo.png", content="x").failed
    session.call(ReadTool(), path="logo.png")
    assert session.call(WriteTool(), path="logo.png", content="x").text == (
        "Overwrote logo.png (1 line, 1 byte). It was a binary file and is UTF-8 text now."
    )


@pytest.mark.parametrize(
    "name",
    ["a\nb", "tab\there", "\x1b[31m", "é", "e\u0301", "\u202egnp", "-rf", "*", "n" * 255, " ", "a\\nb", "\udcff\udc80"],
)
def test_odd_names_are_made_read_edited_and_listed(session: Session, name: str) -> None:
    assert not session.call(WriteTool(), path=f"sub/{name}", content="one\n").failed
    assert os.listdir(session.workspace / "sub") == [name]
    assert session.call(ReadTool(), path=f"sub/{name}").text == "     1\tone"
    assert not session.call(EditTool(), path=f"sub/{name}", old_string="one", new_string="two").failed
    assert (session.workspace / "sub" / name).read_text() == "two\n"
    listed = session.call(ListTool(), path="sub").text
    assert listed.isprintable()
    if "\udcff" in name:
        assert listed == "\ufffd\ufffd (its name is not UTF-8; rename it with bash to use it)"
        copied = "sub/\ufffd\ufffd"
        for output in (
            session.call(ReadTool(), path=copied),
            session.call(EditTool(), path=copied, old_string="two", new_string="x"),
            session.call(WriteTool(), path=copied, content="x"),
        ):
            assert output.failed
            assert "cannot be given in a path" in output.text
        assert os.listdir(session.workspace / "sub") == [name]


def test_paths_that_are_too_long_are_refused_by_name(session: Session) -> None:
    for path in ("n" * 256, "d/" * 3_000 + "f", "sub/" + "é" * 128):
        outputs = [
            session.call(ReadTool(), path=path),
            session.call(ListTool(), path=path),
            session.call(WriteTool(), path=path, content="x"),
            session.call(EditTool(), path=path, old_string="x", new_string="y"),
        ]
        assert all(output.failed and len(output.text) < 1_000 for output in outputs)
    assert os.listdir(session.workspace) == []


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "nothing"])
def test_a_file_that_becomes_something_else_at_any_moment_holds_no_call_up(session: Session, kind: str) -> None:
    tools: dict[str, Callable[[str], ToolOutput]] = {
        "read": lambda path: session.call(ReadTool(), path=path),
        "edit": lambda path: session.call(EditTool(), path=path, old_string="old", new_string="new"),
        "write": lambda path: session.call(WriteTool(), path=path, content="new\n"),
    }
    for name, tool in tools.items():
        number = 0
        while True:
            number += 1
            path = f"{name}{number}"
            file = session.write(path, "old\n")
            session.call(ReadTool(), path=path)

            folder = os.open(session.workspace, os.O_RDONLY)

            def become(file: Path = file, folder: int = folder) -> None:
                file.unlink()
                if kind == "pipe":
                    os.mkfifo(file)
                elif kind == "folder":
                    file.mkdir()
                elif kind == "socket":
                    with socket.socket(socket.AF_UNIX) as server:
                        server.bind(f"/dev/fd/{folder}/{file.name}")

            with before_call(number, become) as calls:
                output = tool(path)
            os.close(folder)
            if len(calls) < number:
                assert not output.failed
                break
            assert path in output.text or not output.failed
            assert output.text.endswith(".") or "old" in output.text
        assert number > 8
    assert [name for name in os.listdir(session.workspace) if name.startswith(".crystal")] == []


def test_a_listing_is_cut_to_what_one_output_holds_and_goes_on_where_it_stopped(session: Session) -> None:
    for number in range(1_200):
        (session.workspace / f"{number:04}").symlink_to("t" * 300)
    names: list[str] = []
    offset = 1
    while True:
        text = session.call(ListTool(), offset=offset).text
        assert len(text) <= OUTPUT_CHARACTERS
        *page, last = text.split("\n")
        names += [line[:4] for line in page]
        if not last.startswith("("):
            names.append(last[:4])
            break
        offset = int(last.rpartition("offset ")[2].rstrip(".)"))
    assert names == [f"{number:04}" for number in range(1_200)]


def test_an_entry_that_vanishes_while_a_folder_is_listed_is_no_fault(session: Session) -> None:
    number = 0
    while True:
        number += 1
        folder = session.workspace / str(number)
        folder.mkdir()
        (folder / "kept").touch()
        (folder / "link").symlink_to("kept")
        os.mkfifo(folder / "pipe")

        def vanish(folder: Path = folder) -> None:
            for name in ("link", "pipe"):
                (folder / name).unlink()

        with before_call(number, vanish) as calls:
            output = session.call(ListTool(), path=str(number))
        assert not output.failed
        assert output.text.split("\n")[0] == "kept"
        if len(calls) < number:
            break
    assert number > 5


def test_a_huge_number_is_a_number(session: Session) -> None:
    session.write("f", "one\ntwo\n")
    huge = 10**400
    assert session.call(ReadTool(), path="f", limit=huge).text == "     1\tone\n     2\ttwo"
    for output in (session.call(ReadTool(), path="f", offset=huge), session.call(ListTool(), offset=huge)):
        assert output.failed
        assert "past its end" in output.text
    assert session.call(ReadTool(), path="f", offset=2.0, limit=1.0).text == "     2\ttwo"


MEASURED = """
import json, os, re, resource, sys
from pathlib import Path
sys.path[:0] = [os.getcwd()]
from plugins_builtin.files.edit import EditTool
from plugins_builtin.files.read import ReadTool
from plugins_builtin.files.write import WriteTool
from tests.plugins_builtin.tool_calls import Session
def peak():
    status = Path("/proc/self/status")
    if status.exists():  # what the system says of usage there includes the process that started this one
        return int(re.search(r"VmHWM:\\s*(\\d+)", status.read_text())[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
session = Session(Path(sys.argv[1]))
session.write("small", "x\\n")
session.call(ReadTool(), path="small")
before = peak()
offsets = (1, 19_999, 10**7)
texts = [session.call(ReadTool(), path=path, offset=offset).text for path in sys.argv[2:] for offset in offsets]
for path in sys.argv[2:]:
    texts.append(session.call(EditTool(), path=path, old_string="x", new_string="y").text)
    texts.append(session.call(WriteTool(), path=path, content="y").text)
print(json.dumps([peak() - before, texts]))
"""


def test_a_file_of_a_gigabyte_takes_no_memory_and_says_how_to_go_on(session: Session) -> None:
    kinds: dict[str, str | bytes] = {
        "lines": "line\n" * 2_000_000,
        "line": "x" * 6_000_000,
        "wide": "\U0001f600" * 2_000_000,
        "mixed": b"\xff\xf0\x9f\x98\x80" + b"y\n" * 3_000_000,
    }
    for name, beginning in kinds.items():
        file = session.write(name, beginning)
        # The rest is a hole: nothing may look at it.
        os.truncate(file, 1 << 30)
    finished = subprocess.run(
        [sys.executable, "-c", MEASURED, str(session.workspace.parent), *kinds], check=True, capture_output=True
    )
    grown, texts = json.loads(finished.stdout)
    assert grown <= 64 * 1024 * 1024
    assert max(map(len, texts)) <= OUTPUT_CHARACTERS
    assert texts[0].endswith("; go on with offset 8292.)")
    assert texts[1].startswith(" 19999\tline\n 20000\tline\n(The file goes on after line 20000")
    assert texts[2] == (
        "Offset 10000000 of lines lies beyond the 20000 lines that one call scans; "
        "find the place with bash, such as sed -n."
    )
    assert texts[3].endswith("(Line 1 goes on beyond what one call scans; find later parts with bash.)")
    assert all("larger than" in text for text in texts[12:])


RACING = """
import os, sys
from pathlib import Path
sys.path[:0] = [os.getcwd()]
from plugins_builtin.files.edit import EditTool
from tests.plugins_builtin.tool_calls import Session
session, name = Session(Path(sys.argv[1])), sys.argv[2]
for number in range(100):
    change = {"old_string": f"{name}{number}=0\\n", "new_string": f"{name}{number}=1\\n"}
    while session.call(EditTool(), path="f", **change).failed:
        session.memory.stamps.clear()
    session.memory.stamps.clear()
"""


def test_two_processes_that_edit_one_file_lose_no_edit(session: Session) -> None:
    file = session.write("f", "".join(f"{name}{number}=0\n" for number in range(100) for name in "ab"))
    racers = [
        subprocess.Popen([sys.executable, "-c", RACING, str(session.workspace.parent), name], stderr=subprocess.PIPE)
        for name in "ab"
    ]
    assert [racer.communicate()[1] for racer in racers] == [b"", b""]
    assert file.read_text() == "".join(f"{name}{number}=1\n" for number in range(100) for name in "ab")
    assert os.listdir(session.workspace) == ["f"]


def test_what_grows_while_it_is_read_ends_all_the_same(session: Session) -> None:
    image = session.write("logo.gif", b"GIF89a" + b"x" * 100)
    text = session.write("log", "line\n")

    def grow() -> None:
        for file in (image, text):
            os.truncate(file, file.stat().st_size + 22_000_000)

    for path in ("logo.gif", "log"):
        with before_call(0, grow) as counted:
            session.call(ReadTool(), path=path)
        for number in range(1, len(counted) + 1):
            image.write_bytes(b"GIF89a" + b"x" * 100)
            text.write_bytes(b"line\n")
            with before_call(number, grow):
                output = session.call(ReadTool(), path=path)
            assert len(output.text) <= OUTPUT_CHARACTERS
            assert all(len(shown.data) <= 20 * 1024 * 1024 for shown in output.images)
