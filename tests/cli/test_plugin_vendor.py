"""``crystal plugins vendor``: pip installs into the plugin's own ``lib``, and nowhere else."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from crystal.testing.crystaler import Crystaler


@pytest.fixture
def wheels(crystaler: Crystaler, tmp_path: Path) -> Path:
    """A folder with one built distribution, the only one that pip finds."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "acmelib-1.0.dist-info"
    with zipfile.ZipFile(folder / "acmelib-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("acmelib.py", "WORD = 'vendored'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: acmelib\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    crystaler.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder), PIP_CONFIG_FILE="/dev/null")
    return folder


@pytest.fixture
def folder(crystaler: Crystaler) -> Path:
    folder = crystaler.workspace / ".crystal" / "plugins" / "Acme"
    folder.mkdir(parents=True)
    (folder / "plugin.json").write_text('{"module": "acme.py"}')
    (folder / "acme.py").write_text(
        "from acmelib import WORD\nfrom crystal import hookimpl\n\nname = 'Acme'\n\n\n"
        "@hookimpl\ndef on_prompt():\n    return WORD\n"
    )
    return folder


def is_effective(crystaler: Crystaler) -> bool:
    [row] = json.loads(crystaler.command("plugins", "list", "--format", "json").stdout)
    return bool(row["effective"])


def test_what_is_vendored_into_a_trusted_plugin_is_trusted_with_it(
    crystaler: Crystaler, wheels: Path, folder: Path
) -> None:
    assert crystaler.command("trust", "--yes").exit_code == 0
    done = crystaler.command("plugins", "vendor", str(folder), "acmelib")
    assert done.exit_code == 0, done.stderr
    assert (folder / "lib" / "acmelib.py").is_file()
    assert is_effective(crystaler)
    crystaler.script([{"text": "Done."}])
    assert "vendored" in crystaler.run("go").requests[0].items[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("state", ["never trusted", "changed"])
def test_vendoring_gives_no_trust_that_was_not_there(
    crystaler: Crystaler, wheels: Path, folder: Path, state: str
) -> None:
    if state == "changed":
        assert crystaler.command("trust", "--yes").exit_code == 0
        (folder / "more.py").write_text("")
    assert crystaler.command("plugins", "vendor", str(folder), "acmelib").exit_code == 0
    assert not is_effective(crystaler)


def test_a_link_in_the_place_of_lib_is_refused_before_anything_is_installed(
    crystaler: Crystaler, wheels: Path, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "lib").symlink_to(elsewhere)
    refused = crystaler.command("plugins", "vendor", str(folder), "acmelib")
    assert refused.exit_code == 1
    assert f"{folder}/lib is a link that leads out of the plugin's folder; put a folder in its place" in refused.stderr
    assert list(elsewhere.iterdir()) == []
