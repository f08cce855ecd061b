"""A package that is installed inside the workspace is project code: it counts only when the operator trusts it."""

from __future__ import annotations

import json
import os
import py_compile
from pathlib import Path

import pytest

from crystal.testing.crystaler import Crystaler, RunResult

ENTRY = "[crystal]\nacme = acme_package\n"
SOURCE = """
from pathlib import Path
from crystal import hookimpl

name = "Acme"
(Path(__file__).parent.parent / "ran").touch()

@hookimpl
def on_user_message(message):
    return message.text + " {word}"
"""


@pytest.fixture
def site(crystaler: Crystaler) -> Path:
    """A folder inside the workspace that Python finds packages in, as a virtual environment there is."""
    folder = crystaler.workspace / ".venv"
    info = folder / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY)
    (folder / "acme_package").mkdir()
    (folder / "acme_package" / "__init__.py").write_text(SOURCE.format(word="first"))
    crystaler.environ["PYTHONPATH"] = str(folder)
    crystaler.script([{"text": "Done."}])
    return folder


def run(crystaler: Crystaler, *options: str) -> RunResult:
    result = crystaler.run("do it", "--format", "json", *options, in_process=False)
    assert result.exit_code == 0, result.stderr
    return result


def names(result: RunResult) -> list[str]:
    return [plugin["name"] for plugin in result.lines[0]["plugins"]]


def test_it_is_absent_until_it_is_trusted_as_it_is(crystaler: Crystaler, site: Path) -> None:
    result = run(crystaler)
    assert "package:acme" not in names(result)
    assert "packages/acme" in result.stderr
    assert "crystal trust" in result.stderr
    assert not (site / "ran").exists()
    shown = crystaler.command("trust", "--yes")
    assert shown.exit_code == 0
    assert "packages/acme" in shown.stdout
    assert not (site / "ran").exists()
    assert "package:acme" in names(run(crystaler))
    (site / "acme_package" / "__init__.py").write_text(SOURCE.format(word="other"))
    (site / "ran").unlink()
    changed = run(crystaler)
    assert "package:acme" not in names(changed)
    assert "packages/acme (changed)" in changed.stderr
    assert not (site / "ran").exists()


def test_bytecode_beside_a_trusted_package_is_not_run(crystaler: Crystaler, site: Path) -> None:
    assert crystaler.command("trust", "--yes").exit_code == 0
    source = site / "acme_package" / "__init__.py"
    good = source.read_text()
    bad = good.replace(".touch()", ".mkdir()")
    assert len(bad) == len(good)
    source.write_text(bad)
    stamp = source.stat()
    py_compile.compile(str(source), doraise=True)
    source.write_text(good)
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert "package:acme" in names(run(crystaler))
    assert (site / "ran").is_file()


def test_one_run_can_be_told_to_let_it_count(crystaler: Crystaler, site: Path) -> None:
    assert "package:acme" in names(run(crystaler, "--trust-project"))
    assert "package:acme" not in names(run(crystaler))
    assert not (crystaler.home / "trust.json").exists()


def test_never_means_never(crystaler: Crystaler, site: Path) -> None:
    crystaler.home.mkdir(exist_ok=True)
    (crystaler.home / "config.json").write_text(json.dumps({"projectTrust": "never"}))
    result = run(crystaler)
    assert "package:acme" not in names(result)
    assert "packages/acme" not in result.stderr
    refused = crystaler.run("do it", "--trust-project", in_process=False)
    assert refused.exit_code == 1
    assert "projectTrust is never" in refused.stderr


def test_the_list_says_why_it_does_not_count(crystaler: Crystaler, site: Path) -> None:
    rows = json.loads(crystaler.command("plugins", "list", "--format", "json").stdout)
    [row] = [row for row in rows if row["source"] == "package"]
    assert (row["plugin"], row["effective"], row["reason"]) == (
        "acme",
        False,
        "it is not trusted; 'crystal trust' asks",
    )
    listed = json.loads(crystaler.command("trust", "--list", "--format", "json").stdout)
    assert [(entry["entry"], entry["state"], entry["effect"]) for entry in listed] == [
        ("packages/acme", "new", "imports acme_package of acme 1.0")
    ]
    assert not (site / "ran").exists()


def test_a_link_out_of_the_package_cannot_be_trusted(crystaler: Crystaler, site: Path) -> None:
    (crystaler.workspace / "other.py").write_text("x = 1\n")
    (site / "acme_package" / "other.py").symlink_to(crystaler.workspace / "other.py")
    shown = crystaler.command("trust", "--yes")
    assert "packages/acme cannot be trusted" in shown.stderr
    assert "package:acme" not in names(run(crystaler))


def test_switched_off_it_is_not_even_looked_at(crystaler: Crystaler, site: Path) -> None:
    for options in (["--plugins", "off"], ["--no-plugin", "acme"]):
        result = run(crystaler, *options)
        assert "package:acme" not in names(result)
        assert "packages/acme" not in result.stderr


def test_trust_in_a_part_of_a_namespace_covers_every_folder_of_the_namespace(crystaler: Crystaler, site: Path) -> None:
    (site / "acme-1.0.dist-info" / "entry_points.txt").write_text("[crystal]\nacme = space.acme\n")
    other = crystaler.workspace / "other"
    (other / "space").mkdir(parents=True)
    (other / "space" / "words.py").write_text('WORD = "first"\n')
    (site / "space").mkdir()
    source = 'import space.words\nfrom crystal import hookimpl\nname = "Acme"\n'
    (site / "space" / "acme.py").write_text(source)
    crystaler.environ["PYTHONPATH"] = f"{site}{os.pathsep}{other}"
    assert "package:acme" not in names(run(crystaler))
    assert crystaler.command("trust", "--yes").exit_code == 0
    assert "package:acme" in names(run(crystaler))
    (other / "space" / "words.py").write_text('WORD = "other"\n')
    changed = run(crystaler)
    assert "package:acme" not in names(changed)
    assert "packages/acme (changed)" in changed.stderr
