"""The operator's settings: ``config.json`` as a frozen value. Reading never writes the file."""

from __future__ import annotations

from typing import Any

from crystal.store.home import Home
from crystal.store.json_files import JsonFile, read_json_object
from crystal.store.validated import validate_once
from crystal.types._frozen import Frozen
from crystal.types.approval import ApprovalMode
from crystal.types.notes import Note

_APPROVAL_MODES = {mode.value: mode for mode in ApprovalMode}


class ApprovalModel(Frozen):
    """The reviewer's own model.

    :param enabled: when false, reviews use the session model and the other fields do not count.
    :param thinking_effort: ``default``, ``off`` or a lower-case effort word.
    """

    enabled: bool = False
    provider: str = ""
    model: str = ""
    thinking_effort: str = "default"


class ExternalToolApproval(Frozen):
    """For each tree of tool sets, whether approval declarations count: ``author``, or ``host`` when they do not."""

    home: str = "author"
    project: str = "host"


class Config(Frozen):
    """Settings; the defaults are those of a missing file.

    :param provider: empty when none is chosen; likewise ``model``, ``prompt_set`` and ``export_directory``.
    :param thinking_effort: ``default``, ``off`` or a lower-case effort word.
    :param compaction_threshold: part of the usable context window, above 0 and at most 1.
    :param bash_timeout_seconds: ``None`` for no limit.
    :param tool_list_limit: how many tools a request lists.
    :param project_trust: ``ask`` or ``never``.
    """

    provider: str = ""
    model: str = ""
    approval: ApprovalMode = ApprovalMode.DEFAULT
    approval_model: ApprovalModel = ApprovalModel()
    thinking_effort: str = "default"
    skills: bool = True
    external_tools: bool = True
    external_tool_approval: ExternalToolApproval = ExternalToolApproval()
    plugins: bool = True
    disabled_plugins: tuple[str, ...] = ()
    extend: bool = True
    mcp: bool = True
    prompt_set: str = ""
    compaction_threshold: float = 0.8
    bash_timeout_seconds: float | None = 120.0
    bash_login: bool = False
    hook_timeout_seconds: float = 60.0
    tool_list_limit: int = 48
    export_directory: str = ""
    custom_status_line: bool = False
    status_line: tuple[str, ...] = ()
    estimated_tokens: bool = False
    verbose_tools: bool = False
    verbose_commands: bool = False
    verbose_approvals: bool = False
    verbose_thinking: bool = False
    project_trust: str = "ask"


def load_config(home: Home) -> tuple[Config, tuple[Note, ...]]:
    """Read ``config.json``; a missing file gives the defaults.

    :returns: the settings, and one note for each unknown key.
    :raises HomeFileError: when the file is broken, with its line and field.
    """
    file = read_json_object(home.config_file)
    if file is None:
        return Config(), ()
    notes = validate_once(home, file, _validate)
    return config_from(file.value), notes


def config_from(value: dict[str, Any]) -> Config:
    """Turn the object of a valid ``config.json`` into settings; unknown keys are left out."""
    fields: dict[str, Any] = {}
    for name in Config.__field_annotations__:
        key = camel_case(name)
        if key in value:
            fields[name] = _CONVERSIONS[name](value[key]) if name in _CONVERSIONS else value[key]
    return Config(**fields)


def camel_case(name: str) -> str:
    """Return the file's spelling of a field: ``tool_list_limit`` is ``toolListLimit``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _approval_model(value: dict[str, Any]) -> ApprovalModel:
    return ApprovalModel(
        enabled=value.get("enabled", False),
        provider=value.get("provider", ""),
        model=value.get("model", ""),
        thinking_effort=value.get("thinkingEffort", "default").lower(),
    )


def _external_tool_approval(value: dict[str, Any]) -> ExternalToolApproval:
    return ExternalToolApproval(home=value.get("home", "author"), project=value.get("project", "host"))


def _limit(value: float | str) -> float | None:
    return None if isinstance(value, str) else float(value)


_CONVERSIONS: dict[str, Any] = {
    "approval": _APPROVAL_MODES.__getitem__,
    "approval_model": _approval_model,
    "thinking_effort": str.lower,
    "external_tool_approval": _external_tool_approval,
    "disabled_plugins": tuple,
    "status_line": tuple,
    "bash_timeout_seconds": _limit,
    "hook_timeout_seconds": float,
    "compaction_threshold": float,
}


def _validate(file: JsonFile) -> tuple[str, ...]:
    from crystal.store.config_schema import validate_config  # pydantic: only for a file that changed

    return validate_config(file)
