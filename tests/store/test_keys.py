from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from crystal.store.home import Home, HomeFileError
from crystal.store.keys import resolve_headers, resolve_key
from crystal.store.provider_definition import ProviderDefinition
from crystal.store.providers import ProviderError


def definition(**fields: object) -> ProviderDefinition:
    return ProviderDefinition(name="my-gate", protocol="openai", base_uri="https://a.example", **fields)  # type: ignore[arg-type]


def key_file(home: Home, name: str, data: bytes, mode: int = 0o600) -> Path:
    home.ensure()
    path = home.root / name
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_the_first_place_in_order_wins(home: Home) -> None:
    home.write_private(home.credentials_file, json.dumps({"my-gate": "from-credentials"}).encode())
    full = definition(api_key="from-file", api_key_environment="SPECIAL")
    environ = {"SPECIAL": "from-special", "MY_GATE_API_KEY": "from-name", "CRYSTAL_API_KEY": "from-shared"}
    found = [resolve_key(full, environ, home)]
    for variable in ("SPECIAL", "MY_GATE_API_KEY", "CRYSTAL_API_KEY"):
        del environ[variable]
        found.append(resolve_key(full, environ, home))
    found.append(resolve_key(definition(), environ, home))
    assert found == ["from-special", "from-name", "from-shared", "from-file", "from-credentials"]


def test_an_empty_variable_counts_as_absent_and_white_space_is_dropped(home: Home) -> None:
    environ = {"MY_GATE_API_KEY": " \n", "CRYSTAL_API_KEY": "key\n"}
    assert resolve_key(definition(), environ, home) == "key"


def test_the_shared_variable_is_never_sent_to_a_provider_without_a_key(home: Home) -> None:
    keyless = definition(requires_api_key=False)
    assert resolve_key(keyless, {"CRYSTAL_API_KEY": "shared"}, home) == ""
    assert resolve_key(keyless, {"MY_GATE_API_KEY": "own"}, home) == "own"


def test_a_missing_key_names_the_provider_and_every_place(home: Home) -> None:
    with pytest.raises(ProviderError) as raised:
        resolve_key(definition(api_key_environment="SPECIAL"), {}, home)
    assert str(raised.value) == (
        "provider my-gate needs an API key and none was found: set SPECIAL or MY_GATE_API_KEY or CRYSTAL_API_KEY, "
        f"write apiKey for it in {home.providers_file}, or write it into {home.credentials_file} "
        'as {"my-gate": "KEY"}'
    )


@pytest.mark.parametrize("text", ["{env:SET}", "${SET}", "${UNSET:-value of ${}"])
def test_a_key_may_name_a_variable(home: Home, text: str) -> None:
    assert resolve_key(definition(api_key=text), {"SET": "value of ${"}, home) == "value of ${"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{env:UNSET}", "the environment variable UNSET is not set"),
        ("${UNSET}", "the environment variable UNSET is not set"),
        ("Bearer {env:UNSET}", "the environment variable UNSET is not set"),
        ("{env:}", "a variable is written ${NAME}, ${NAME:-default} or {env:NAME}"),
    ],
)
def test_an_unset_variable_is_named_and_never_used_as_a_key(home: Home, text: str, problem: str) -> None:
    home.write_private(home.credentials_file, b'{"my-gate": "stored"}')
    with pytest.raises(ProviderError) as raised:
        resolve_key(definition(api_key=text), {}, home)
    assert str(raised.value) == f"{home.providers_file}, field my-gate.apiKey: {problem}"


def test_a_key_file_is_relative_to_the_home_and_loses_its_line_end(home: Home, tmp_path: Path) -> None:
    key_file(home, "key.txt", b"from-home\r\n")
    (tmp_path / "elsewhere").write_bytes(b"from-user\n")
    (tmp_path / "elsewhere").chmod(0o600)
    environ = {"HOME": str(tmp_path)}
    assert resolve_key(definition(api_key="{file:key.txt}"), environ, home) == "from-home"
    assert resolve_key(definition(api_key="{file:~/elsewhere}"), environ, home) == "from-user"
    assert resolve_key(definition(api_key=f"{{file:{tmp_path}/elsewhere}}"), environ, home) == "from-user"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_key_file_that_others_may_read_is_refused(home: Home, mode: int) -> None:
    path = key_file(home, "key.txt", b"sk-very-secret", mode)
    with pytest.raises(ProviderError) as raised:
        resolve_key(definition(api_key="{file:key.txt}"), {}, home)
    assert f"others may read {path}" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_key_file_that_holds_no_key_is_refused(home: Home) -> None:
    key_file(home, "empty", b"\n")
    key_file(home, "binary", b"\xff\xfe\x00")
    key_file(home, "lines", b"one\ntwo\n")
    os.mkfifo(home.root / "pipe", 0o600)
    for name, problem in {
        "empty": "is empty",
        "binary": "is not a text file",
        "lines": "holds characters no key has",
        "pipe": "is not a regular file",
        "missing": "cannot be read: no such file or directory",
    }.items():
        with pytest.raises(ProviderError, match=problem):
            resolve_key(definition(api_key=f"{{file:{name}}}"), {}, home)


@pytest.mark.parametrize("key", ["two\nlines", "k\u00e9y", "a\x7fb"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(home: Home, key: str) -> None:
    with pytest.raises(ProviderError) as raised:
        resolve_key(definition(), {"MY_GATE_API_KEY": key}, home)
    assert key not in str(raised.value)
    assert "MY_GATE_API_KEY" in str(raised.value)


def test_broken_credentials_are_named_and_not_shown(home: Home) -> None:
    home.write_private(home.credentials_file, b'{\n"a": "x",\n"b": ["sk-very-secret"]}')
    with pytest.raises(HomeFileError) as raised:
        resolve_key(definition(), {}, home)
    assert str(raised.value) == f"{home.credentials_file}, line 3, field b: expected a key as text, found a list"


def test_headers_have_their_variables_and_files_filled_in(home: Home) -> None:
    key_file(home, "key.txt", b"from-file\n")
    given = definition(
        headers={"A": "Bearer {env:SET}", "B": "{file:key.txt}", "C": "$${SET} $SET", "D": "${UNSET:-d}"}
    )
    assert resolve_headers(given, {"SET": "${SET}"}, home) == {
        "A": "Bearer ${SET}",
        "B": "from-file",
        "C": "${SET} $SET",
        "D": "d",
    }
    with pytest.raises(ProviderError, match=r"field my-gate\.headers\.X: the environment variable UNSET is not set"):
        resolve_headers(definition(headers={"X": "${UNSET}"}), {}, home)
