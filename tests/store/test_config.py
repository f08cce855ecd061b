from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from crystal.store.config import (
    ApprovalModel,
    Config,
    ExternalToolApproval,
    camel_case,
    config_from,
    load_config,
)
from crystal.store.config_schema import ConfigSchema
from crystal.store.home import Home, HomeFileError
from crystal.types.approval import ApprovalMode
from crystal.types.notes import Note, NoteCode

EVERYTHING: dict[str, Any] = {
    "provider": "openai",
    "model": "gpt",
    "approval": "review",
    "approvalModel": {"enabled": True, "provider": "gemini", "model": "g", "thinkingEffort": "LOW"},
    "thinkingEffort": "High",
    "skills": False,
    "externalTools": False,
    "externalToolApproval": {"home": "host", "project": "author"},
    "plugins": False,
    "disabledPlugins": ["acme"],
    "extend": False,
    "mcp": False,
    "promptSet": "terse",
    "compactionThreshold": 1,
    "bashTimeoutSeconds": "unlimited",
    "bashLogin": True,
    "hookTimeoutSeconds": 5,
    "toolListLimit": 7,
    "exportDirectory": "~/exports",
    "customStatusLine": True,
    "statusLine": ["model", "tokens"],
    "estimatedTokens": True,
    "verboseTools": True,
    "verboseCommands": True,
    "verboseApprovals": True,
    "verboseThinking": True,
    "projectTrust": "never",
}


def write(home: Home, text: str) -> None:
    home.write_private(home.config_file, text.encode())


def test_a_missing_file_means_defaults_and_makes_nothing(home: Home) -> None:
    assert load_config(home) == (Config(), ())
    assert not home.root.exists()


def test_every_field_is_read(home: Home) -> None:
    write(home, json.dumps(EVERYTHING))
    config, notes = load_config(home)
    assert notes == ()
    assert config == Config(
        provider="openai",
        model="gpt",
        approval=ApprovalMode.REVIEW,
        approval_model=ApprovalModel(enabled=True, provider="gemini", model="g", thinking_effort="low"),
        thinking_effort="high",
        skills=False,
        external_tools=False,
        external_tool_approval=ExternalToolApproval(home="host", project="author"),
        plugins=False,
        disabled_plugins=("acme",),
        extend=False,
        mcp=False,
        prompt_set="terse",
        compaction_threshold=1.0,
        bash_timeout_seconds=None,
        bash_login=True,
        hook_timeout_seconds=5.0,
        tool_list_limit=7,
        export_directory="~/exports",
        custom_status_line=True,
        status_line=("model", "tokens"),
        estimated_tokens=True,
        verbose_tools=True,
        verbose_commands=True,
        verbose_approvals=True,
        verbose_thinking=True,
        project_trust="never",
    )


def test_the_checked_fields_and_defaults_are_those_of_the_value() -> None:
    assert [camel_case(name) for name in Config.__field_annotations__] == list(EVERYTHING)
    checked = ConfigSchema().model_dump(by_alias=True)
    assert list(checked) == list(EVERYTHING)
    assert config_from(checked) == Config()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '{\n"approval": "yolo"}',
            'line 2, field approval: expected "default", "edit", "review", "audit" or "full", found "yolo"',
        ),
        ('{"toolListLimit": 0}', "line 1, field toolListLimit: expected a positive integer, found 0"),
        ('{"toolListLimit": 1.5}', "line 1, field toolListLimit: expected a positive integer, found 1.5"),
        ('{"skills": "yes"}', 'line 1, field skills: expected true or false, found "yes"'),
        ('{"skills": null}', "line 1, field skills: expected true or false, found null"),
        ('{"provider": 5}', "line 1, field provider: expected a text, found 5"),
        (
            '{"plugins": true,\n"approvalModel": {\n"enabled": 1}}',
            "line 3, field approvalModel.enabled: expected true or false, found 1",
        ),
        ('{"approvalModel": []}', "line 1, field approvalModel: expected an object, found a list"),
        (
            '{"compactionThreshold": 1.01}',
            "line 1, field compactionThreshold: expected a number above 0 and at most 1, found 1.01",
        ),
        (
            '{"compactionThreshold": 1e999}',
            "line 1, field compactionThreshold: expected a number above 0 and at most 1, found Infinity",
        ),
        (
            '{"bashTimeoutSeconds": "2m"}',
            'line 1, field bashTimeoutSeconds: expected a positive number of seconds or "unlimited", found "2m"',
        ),
        ('{"disabledPlugins": [1]}', "line 1, field disabledPlugins: expected a list of plugin names, found a list"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(home: Home, text: str, sentence: str) -> None:
    write(home, text)
    with pytest.raises(HomeFileError) as raised:
        load_config(home)
    assert str(raised.value) == f"{home.config_file}, {sentence}"
    assert home.config_file.read_text() == text


def test_unknown_keys_are_noted_with_the_nearest_name_and_stay(home: Home) -> None:
    text = '{\n"modle": "m",\n"approvalModel": {"thinking_effort": "low"},\n"zzz": 1}'
    write(home, text)
    expected = (
        Note(
            code=NoteCode.CONFIG_UNKNOWN_KEY,
            source=str(home.config_file),
            text="config.json, line 2: unknown field modle; it is kept and ignored; did you mean model?",
        ),
        Note(
            code=NoteCode.CONFIG_UNKNOWN_KEY,
            source=str(home.config_file),
            text="config.json, line 3: unknown field approvalModel.thinking_effort; it is kept and ignored; "
            "did you mean thinkingEffort?",
        ),
        Note(
            code=NoteCode.CONFIG_UNKNOWN_KEY,
            source=str(home.config_file),
            text="config.json, line 4: unknown field zzz; it is kept and ignored",
        ),
    )
    assert load_config(home) == (Config(), expected)
    assert load_config(home) == (Config(), expected)
    assert home.config_file.read_text() == text


def loaded_modules(home: Home) -> set[str]:
    program = (
        "import sys; from pathlib import Path; from crystal.store.home import Home;"
        "from crystal.store.config import load_config; from crystal.store.providers import load_providers;"
        "home = Home(root=Path(sys.argv[1])); config, notes = load_config(home); load_providers(home);"
        "print(len(notes), config.provider, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(home.root)], check=True, capture_output=True, text=True)
    count, provider, *modules = done.stdout.split()
    assert (count, provider) == ("1", "openai")
    return set(modules)


def test_an_unchanged_file_needs_no_pydantic_and_keeps_its_notes(home: Home) -> None:
    write(home, '{"provider": "openai", "modle": 1}')
    home.write_private(home.providers_file, b'{"x": {"protocol": "scripted", "models": {"m": {"contextWindow": 9}}}}')
    assert "pydantic" in loaded_modules(home)
    assert not {"pydantic", "sqlite3", "difflib", "jsonschema"} & loaded_modules(home)


def test_a_changed_file_is_checked_again(home: Home) -> None:
    write(home, '{"skills": false}')
    load_config(home)
    write(home, '{"skills": "no"}')
    with pytest.raises(HomeFileError, match="field skills"):
        load_config(home)


@pytest.mark.parametrize(
    "damage",
    [b"", b"\x00\x00", b"[]", b'{"config.json": 5}', b'{"config.json": {"digest": 1, "notes": 2}}'],
)
def test_a_broken_memory_of_checks_is_ignored(home: Home, damage: bytes) -> None:
    write(home, '{"modle": "m", "skills": false}')
    good = load_config(home)
    (home.cache / "validated.json").write_bytes(damage)
    assert load_config(home) == good


def test_a_memory_that_cannot_be_written_costs_nothing_but_time(home: Home) -> None:
    write(home, '{"skills": false}')
    home.cache.write_text("a file where the folder should be")
    assert load_config(home)[0].skills is False
    assert load_config(home)[0].skills is False
