"""Installed packages: found by their entry point without an import, loaded in order, and contained."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crystal.host.sources.packages import find_packages, load_packages
from crystal.testing.crystaler import Crystaler
from crystal.types.notes import NoteCode

SOURCE = """
from crystal import hookimpl, tool, Risk

name = "{name}"

@tool(risk=Risk.READ)
def {tool}() -> str:
    \"\"\"Say so.\"\"\"
    return "from {name}"

@hookimpl
def contribute_tools():
    return [{tool}]
"""


def install(site: Path, distribution: str, entries: str, **modules: str) -> None:
    """Lay a distribution out as an installer does."""
    info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    for name, source in modules.items():
        (site / f"{name}.py").write_text(source)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    known = set(sys.modules)
    yield folder
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def test_packages_are_sorted_by_name_and_not_imported(site: Path) -> None:
    install(site, "zeta-plugin", "[crystal]\nalpha = zeta_module\n", zeta_module="raise SystemExit")
    install(site, "acme-plugin", "[crystal]\nomega = acme_module:Plugin\n", acme_module="raise SystemExit")
    install(site, "other", "[console_scripts]\ncrystal = other:main\n[other.crystal]\nx = other\n")
    found = find_packages([str(site), str(site / "missing")])
    assert [(plugin.full_name, plugin.value, plugin.distribution) for plugin in found] == [
        ("package:alpha", "zeta_module", "zeta-plugin 1.0"),
        ("package:omega", "acme_module:Plugin", "acme-plugin 1.0"),
    ]
    assert found[0].places() == (site / "zeta_module.py",)
    assert not {"zeta_module", "acme_module"} & set(sys.modules)


def test_a_package_is_loaded_by_a_run(crystaler: Crystaler, site: Path) -> None:
    install(site, "acme", "[crystal]\nacme = acme_greeter\n", acme_greeter=SOURCE.format(name="Acme", tool="greet"))
    crystaler.script([{"toolCalls": [{"name": "greet", "arguments": {}}]}, {"text": "Done."}])
    result = crystaler.run()
    assert [call.output for call in result.calls] == ["from Acme"]


@pytest.mark.parametrize("value", ["acme_missing", "acme_broken", "acme_exits", "acme_fine:absent"])
def test_a_package_that_cannot_be_imported_is_a_note(site: Path, value: str) -> None:
    install(
        site,
        "acme",
        f"[crystal]\nacme = {value}\nfine = acme_fine\n",
        acme_broken="def (",
        acme_exits="raise SystemExit(3)",
        acme_fine="name = 'Fine'",
    )
    loaded, notes = load_packages(find_packages([str(site)]))
    assert [plugin.name for plugin in loaded] == ["package:fine"]
    assert [(note.code, note.source) for note in notes] == [(NoteCode.PLUGIN_INVALID, "package:acme")]
    assert value in notes[0].text
    assert "acme 1.0" in notes[0].text


@pytest.mark.parametrize("way", ["switch", "disabled", "option", "option by full name"])
def test_a_package_that_is_off_is_not_imported(crystaler: Crystaler, site: Path, way: str) -> None:
    canary = crystaler.workspace / "imported"
    install(
        site,
        "acme",
        "[crystal]\nacme = acme_canary\n",
        acme_canary=f"import pathlib\npathlib.Path({str(canary)!r}).touch()\nname = 'A'",
    )
    crystaler.script([{"text": "Done."}])
    match way:
        case "switch":
            crystaler.makeconfig(plugins=False)
        case "disabled":
            crystaler.makeconfig(disabledPlugins=["acme"])
    options = {"option": ["--no-plugin", "acme"], "option by full name": ["--no-plugin", "package:acme"]}
    assert crystaler.run("go", *options.get(way, [])).exit_code == 0
    assert not canary.exists()
    crystaler.makeconfig()
    crystaler.script([{"text": "Done."}])
    crystaler.run("go")
    assert canary.exists(), "the canary works"


def test_a_broken_entry_point_file_is_nobodys_plugin(site: Path) -> None:
    install(site, "broken", "[crystal\n\x00=")
    assert find_packages([str(site)]) == ()


@pytest.mark.parametrize("name", ["../acme", "a/b", "1acme", "a b", ".."])
def test_an_entry_point_whose_name_could_choose_a_path_is_a_note(site: Path, name: str) -> None:
    install(site, "acme", f"[crystal]\n{name} = acme_canary\n", acme_canary="raise SystemExit")
    loaded, notes = load_packages(find_packages([str(site)]))
    assert loaded == []
    assert [note.code for note in notes] == [NoteCode.PLUGIN_INVALID]
    assert "its name must be a letter, then letters, digits" in notes[0].text
    assert "acme_canary" not in sys.modules


def test_the_folders_of_a_namespace_are_places_of_what_lies_in_it(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = site.parent / "other"
    (other / "space").mkdir(parents=True)
    (site / "space" / "acme").mkdir(parents=True)
    (site / "space" / "acme" / "__init__.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(str(other))
    install(site, "acme", "[crystal]\nacme = space.acme:Plugin\n")
    [found] = find_packages([str(site)])
    assert set(found.places()) == {other / "space", site / "space", site / "space" / "acme"}
    assert found.lies_in(other)
