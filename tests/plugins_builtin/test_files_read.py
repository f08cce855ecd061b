"""The read tool: what a model sees of a file, and that no path makes it hang or lie."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from crystal.types.items import Image
from crystal.types.tools import ToolOutput
from crystal.workspace.limits import IMAGE_BYTES, OUTPUT_CHARACTERS
from plugins_builtin.files.read import ReadTool
from tests.plugins_builtin.tool_calls import Session

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(Path(os.path.realpath(tmp_path)))


def read(session: Session, path: str, **arguments: int) -> ToolOutput:
    return session.call(ReadTool(), path=path, **arguments)


def test_lines_are_numbered_and_a_file_shown_whole_needs_no_note(session: Session) -> None:
    session.write("a.txt", "one\n\ttwo\n\nfour")
    assert read(session, "a.txt") == ToolOutput(text="     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour")


def test_a_window_names_the_next_offset(session: Session) -> None:
    session.write("a.txt", "".join(f"line {number}\n" for number in range(1, 101)))
    assert read(session, "a.txt", offset=10, limit=2).text == (
        "    10\tline 10\n    11\tline 11\n(Lines 10-11 of 100; go on with offset 12.)"
    )
    assert read(session, "a.txt", offset=99).text == "    99\tline 99\n   100\tline 100"


def test_paging_by_the_named_offset_shows_every_line_once(session: Session) -> None:
    lines = [f"{number} " + "x" * (number % 700) for number in range(1, 1500)]
    session.write("a.txt", "\n".join(lines) + "\n")
    shown: list[str] = []
    offset = 1
    while True:
        text = read(session, "a.txt", offset=offset).text
        assert len(text) <= OUTPUT_CHARACTERS
        *numbered, last = text.split("\n")
        if not last.startswith("("):
            shown += [line.partition("\t")[2] for line in [*numbered, last]]
            break
        shown += [line.partition("\t")[2] for line in numbered]
        offset = int(last.rpartition("offset ")[2].rstrip(".)"))
    assert shown == lines


@pytest.mark.parametrize("offset", [6, 100])
def test_an_offset_past_the_end_names_the_real_number_of_lines(session: Session, offset: int) -> None:
    session.write("a.txt", "1\n2\n3\n4\n5\n")
    assert read(session, "a.txt", offset=offset) == ToolOutput(
        text=f"a.txt has 5 lines; offset {offset} is past its end.", failed=True
    )


@pytest.mark.parametrize("arguments", [{"offset": 0}, {"offset": -1}, {"limit": 0}, {"limit": -5}])
def test_offset_and_limit_below_one_are_answered_clearly(session: Session, arguments: dict[str, int]) -> None:
    session.write("a.txt", "1\n2\n")
    output = read(session, "a.txt", **arguments)
    assert output.failed
    assert next(iter(arguments)) in output.text
    assert "counts from 1" in output.text


def test_an_empty_file_is_said_to_be_empty(session: Session) -> None:
    session.write("empty", "")
    session.write("mark", b"\xef\xbb\xbf")
    assert read(session, "empty", offset=1) == ToolOutput(text="empty is empty.")
    assert read(session, "mark").text == "mark is empty but for its byte order mark."


def test_one_huge_line_is_cut_and_what_follows_is_still_shown(session: Session) -> None:
    session.write("a.min.js", "x" * 500_000 + "\nshort\n")
    text = read(session, "a.min.js").text
    assert len(text) <= OUTPUT_CHARACTERS
    assert "<… 498000 characters left out …>" in text
    assert text.endswith("     2\tshort")
    session.write("b.min.js", "é" * 2_000_000)
    text = read(session, "b.min.js").text
    assert len(text) <= OUTPUT_CHARACTERS
    assert "left out" in text


def test_one_call_scans_a_bounded_part_and_says_so(session: Session) -> None:
    session.write("many", "x\n" * 30_000)
    assert read(session, "many", offset=20_000).text == (
        " 20000\tx\n(The file goes on after line 20000, where one call stops scanning; find later lines with grep.)"
    )
    beyond = read(session, "many", offset=20_001)
    assert beyond.failed
    assert "one call scans" in beyond.text
    session.write("wide", ("y" * 999 + "\n") * 5_000)
    assert "     1\t" in read(session, "wide").text
    assert read(session, "wide", offset=1_001).failed
    session.write("exact", "x\n" * 20_000)
    assert read(session, "exact", offset=20_000).text == " 20000\tx"
    assert read(session, "exact", offset=20_001).text == "exact has 20000 lines; offset 20001 is past its end."


@pytest.mark.parametrize(("encoding", "name"), [("utf-16-le", "UTF-16 LE"), ("utf-16-be", "UTF-16 BE")])
def test_utf_16_with_a_mark_is_decoded_and_named(session: Session, encoding: str, name: str) -> None:
    session.write("w.txt", "\ufeffhi\r\nwörld\n".encode(encoding))
    text = read(session, "w.txt").text
    assert text == f"     1\thi\n     2\twörld\n(Encoding: {name} with byte order mark.)"


def test_bytes_outside_the_encoding_are_shown_as_the_sign_for_that_and_it_is_said(session: Session) -> None:
    session.write("latin", b"// \xa9 ACME\nx\n")
    assert read(session, "latin").text == (
        "     1\t// \ufffd ACME\n     2\tx\n(Bytes that are not UTF-8 are shown as U+FFFD.)"
    )


def test_binary_is_refused_with_its_size(session: Session) -> None:
    session.write("prog", bytes(range(256)) * 2)
    output = read(session, "prog")
    assert output == ToolOutput(
        text="prog is a binary file of 512 bytes; read shows only text and images.", failed=True
    )


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a\1\0\1\0", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_an_image_is_known_by_its_bytes_and_given_whole(session: Session, data: bytes, media_type: str) -> None:
    session.write("pictures/logo.txt", data)
    output = read(session, "pictures/logo.txt")
    assert output.images == (Image(media_type=media_type, data=data, name="logo.txt"),)
    assert (output.text, output.failed) == (f"pictures/logo.txt: {media_type}, {len(data)} bytes", False)


def test_without_image_input_an_image_is_refused_with_its_type_and_size(session: Session) -> None:
    session.accepts_images = False
    session.write("logo.png", PNG + b"x" * 5_000_000)
    assert read(session, "logo.png") == ToolOutput(
        text=f"logo.png: image/png, {len(PNG) + 5_000_000} bytes; the model in use takes no images, "
        "so it was not read.",
        failed=True,
    )
    assert session.memory.stamps == {}


def test_a_large_image_is_given_whole_up_to_the_limit_and_refused_past_it(session: Session) -> None:
    session.write("big.png", PNG + b"x" * (IMAGE_BYTES - len(PNG)))
    assert len(read(session, "big.png").images[0].data) == IMAGE_BYTES
    session.write("big.png", PNG + b"x" * (IMAGE_BYTES - len(PNG) + 1))
    output = read(session, "big.png")
    assert output.failed
    assert "smaller copy" in output.text


def test_pipes_sockets_devices_and_folders_are_refused_at_once(session: Session) -> None:
    os.mkfifo(session.workspace / "live.pipe")
    (session.workspace / "sub").mkdir()
    (session.workspace / "zero").symlink_to("/dev/zero")
    session.permitted = frozenset({"/dev/zero"})
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(session.workspace / "s"))
        outputs = {path: read(session, path) for path in ("live.pipe", "s", "zero", "sub")}
    assert all(output.failed for output in outputs.values())
    assert [outputs[path].text.partition(",")[0] for path in ("live.pipe", "s", "zero")] == [
        "live.pipe is a named pipe",
        "s is a socket",
        "/dev/zero is a device",
    ]
    assert outputs["sub"].text == "sub is a folder; use list to see its entries or name a file in it."


def test_a_missing_file_is_answered_with_names_like_it(session: Session) -> None:
    session.write("src/parser.py")
    output = read(session, "src/parsr.py")
    assert output.failed
    assert output.text == (
        "There is no file src/parsr.py; list its folder to see what is there. Similar names there: parser.py."
    )
    assert read(session, "nowhere/x").failed


@pytest.mark.parametrize(
    "path", ["../ws-evil/x", "out/f", "~/x", "a\0b", "", "/proc/self/root/etc/hosts", "~/.ssh/id_rsa", "dangling"]
)
def test_nothing_outside_is_read_without_approval(session: Session, path: str) -> None:
    other = session.workspace.parent / "other"
    other.mkdir()
    (other / "f").write_text("secret")
    (session.workspace.parent / "ws-evil").mkdir()
    (session.workspace.parent / "ws-evil" / "x").write_text("secret")
    (session.workspace / "out").symlink_to(other)
    (session.workspace / "dangling").symlink_to(other / "z")
    output = read(session, path)
    assert output.failed
    assert "secret" not in output.text
    assert output.text.isprintable()


def test_an_approved_path_outside_and_a_link_that_stays_inside_are_read(session: Session) -> None:
    outside = session.workspace.parent / "notes"
    outside.write_text("hello\n")
    session.permitted = frozenset({str(outside)})
    assert read(session, "../notes").text == "     1\thello"
    session.write("sub/f", "inside\n")
    (session.workspace / "in").symlink_to("sub")
    assert read(session, "in/f").text == "     1\tinside"


def test_reading_is_remembered_under_the_real_path(session: Session) -> None:
    file = session.write("sub/f", "x\n")
    (session.workspace / "link").symlink_to("sub/f")
    read(session, "link")
    stamp = session.memory.seen(str(file))
    assert stamp is not None
    assert (stamp.size, stamp.modified_ns, len(stamp.digest)) == (2, file.stat().st_mtime_ns, 64)
    read(session, "sub/missing")
    assert list(session.memory.stamps) == [str(file)]
