"""Switching an extension changes ``enabled`` in its manifest and no other byte."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.host.manifests.reading import ManifestRefused, read_manifest
from crystal.host.manifests.switch import switched, with_enabled, write_manifest


@pytest.mark.parametrize(
    ("before", "enabled", "after"),
    [
        ('{"module": "a.py"}', True, '{"module": "a.py"}'),
        ('{"module": "a.py"}', False, '{"enabled": false, "module": "a.py"}'),
        ('{"module": "a.py", "enabled": false}', True, '{"module": "a.py", "enabled": true}'),
        ('{"enabled":true,"module":"a.py"}', False, '{"enabled":false,"module":"a.py"}'),
        ('{\n    "module": "a.py"\n}\n', False, '{\n    "enabled": false,\n    "module": "a.py"\n}\n'),
        ('{\r\n\t"module": "a.py"\r\n}', False, '{\r\n\t"enabled": false,\r\n\t"module": "a.py"\r\n}'),
        (' \n{ "x": {"enabled": true}, "enabled" : true }', False, ' \n{ "x": {"enabled": true}, "enabled" : false }'),
        ('{"x": "\\"enabled\\": true", "enabled": true}', False, '{"x": "\\"enabled\\": true", "enabled": false}'),
        ('{"ena\\u0062led": true}', False, '{"ena\\u0062led": false}'),
        ("{ }", False, '{ "enabled": false}'),
    ],
)
def test_only_the_value_changes(before: str, enabled: bool, after: str) -> None:
    assert with_enabled(before, enabled) == after


OBJECTS = st.dictionaries(
    st.text(max_size=4) | st.just("enabled"), st.recursive(st.booleans() | st.text(max_size=4), st.lists, max_leaves=4)
)


@settings(max_examples=100, deadline=None)
@given(OBJECTS, st.booleans(), st.sampled_from([None, 0, 2, "\t"]))
def test_every_other_member_stays_in_its_order(value: dict[str, Any], enabled: bool, indent: int | str | None) -> None:
    changed = with_enabled(json.dumps(value, indent=indent), enabled)
    found = json.loads(changed)
    assert found.get("enabled", True) is enabled
    assert [(key, found[key]) for key in found if key != "enabled"] == [
        (key, value[key]) for key in value if key != "enabled"
    ]
    assert with_enabled(changed, enabled) == changed


def test_the_file_keeps_mark_mode_and_place(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "real.json").write_bytes(b'\xef\xbb\xbf{"module": "\xc3\xa9.py"}\r\n')
    (folder / "real.json").chmod(0o640)
    (folder / "plugin.json").symlink_to("real.json")
    file = read_manifest(folder, "plugin.json")
    write_manifest(file, switched(file, False))
    assert (folder / "plugin.json").is_symlink()
    written = folder / "real.json"
    assert written.read_bytes() == b'\xef\xbb\xbf{"enabled": false, "module": "\xc3\xa9.py"}\r\n'
    assert stat.S_IMODE(written.stat().st_mode) == 0o640
    assert sorted(os.listdir(folder)) == ["plugin.json", "real.json"]


def test_a_file_that_changed_in_the_meantime_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    path = folder / "plugin.json"
    path.write_text('{"module": "a.py"}')
    file = read_manifest(folder, "plugin.json")
    path.write_text('{"module": "b.py", "more": 1}')
    with pytest.raises(ManifestRefused, match="it changed while it was being written; try again"):
        write_manifest(file, switched(file, False))
    path.unlink()
    with pytest.raises(ManifestRefused, match="it changed"):
        write_manifest(file, switched(file, False))
    assert os.listdir(folder) == []
