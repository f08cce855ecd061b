"""The shape of ``config.json``, for checking and for the JSON Schema. Imports pydantic: see ``validated``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from crystal.store.json_files import JsonFile
from crystal.store.validation import FileSchema, expect, validate_file

Text = Annotated[str, expect("a text")]
Switch = Annotated[bool, expect("true or false")]
Seconds = Annotated[float, Field(gt=0), expect("a positive number of seconds")]
SourcePolicy = Annotated[Literal["author", "host"], expect('"author" or "host"')]
Effort = Annotated[
    str,
    Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$"),
    expect('an effort word such as "default", "off", "low", "medium" or "high"'),
]


class ApprovalModelSchema(FileSchema):
    """A model of its own for approval reviews."""

    enabled: Switch = False
    """Whether reviews use this model; when false they use the session model."""
    provider: Text = ""
    """Name of the provider."""
    model: Text = ""
    """Name of the model."""
    thinking_effort: Effort = "default"
    """Thinking effort of the reviewer."""


class ExternalToolApprovalSchema(FileSchema):
    """Whether the approval declarations of tool sets count, for each source."""

    home: SourcePolicy = "author"
    """For sets of the home."""
    project: SourcePolicy = "host"
    """For sets of the workspace."""


class ConfigSchema(FileSchema):
    """Settings of the operator. Every field may be left out."""

    provider: Text = ""
    """Provider used when none is named on the command line."""
    model: Text = ""
    """Model of that provider."""
    approval: Annotated[
        Literal["default", "edit", "review", "audit", "full"],
        expect('"default", "edit", "review", "audit" or "full"'),
    ] = "default"
    """Who is asked about which tool calls."""
    approval_model: ApprovalModelSchema = ApprovalModelSchema()
    """The model that reviews calls in the modes review and audit."""
    thinking_effort: Effort = "default"
    """Thinking effort asked of the model."""
    skills: Switch = True
    """Whether skills are offered."""
    external_tools: Switch = True
    """Whether tool sets are loaded."""
    external_tool_approval: ExternalToolApprovalSchema = ExternalToolApprovalSchema()
    """Whether the approval declarations of tool sets count."""
    plugins: Switch = True
    """Whether disk plugins, command plugins and installed packages are loaded."""
    disabled_plugins: Annotated[list[str], expect("a list of plugin names")] = Field(default_factory=list)
    """Installed packages that are not loaded."""
    extend: Switch = True
    """Whether the model may look for and make tools."""
    mcp: Switch = True
    """Whether MCP servers are started."""
    prompt_set: Text = ""
    """Name of a folder below promptsets/."""
    compaction_threshold: Annotated[float, Field(gt=0, le=1), expect("a number above 0 and at most 1")] = 0.8
    """Part of the usable context window at which the conversation is compacted."""
    bash_timeout_seconds: Annotated[
        Annotated[float, Field(gt=0)] | Literal["unlimited"],
        expect('a positive number of seconds or "unlimited"'),
    ] = 120.0
    """Limit of a shell command that names none."""
    bash_login: Switch = False
    """Whether every shell command runs in a login shell."""
    hook_timeout_seconds: Seconds = 60.0
    """Limit of one asynchronous hook."""
    tool_list_limit: Annotated[int, Field(gt=0), expect("a positive integer")] = 48
    """How many tools a request lists; the others are found by search."""
    export_directory: Text = ""
    """Where exports go; empty for exports/ in the home."""
    custom_status_line: Switch = False
    """Whether the status line shows the fields of statusLine."""
    status_line: Annotated[list[str], expect("a list of status fields")] = Field(default_factory=list)
    """Fields of the custom status line, in order."""
    estimated_tokens: Switch = False
    """Whether token figures are estimated while a response streams."""
    verbose_tools: Switch = False
    """Whether tool results are shown in full."""
    verbose_commands: Switch = False
    """Whether shell commands are shown in full."""
    verbose_approvals: Switch = False
    """Whether approvals are shown with their trace."""
    verbose_thinking: Switch = False
    """Whether reasoning is shown."""
    project_trust: Annotated[Literal["ask", "never"], expect('"ask" or "never"')] = "ask"
    """Whether the operator is asked to trust a workspace's own code."""


def validate_config(file: JsonFile) -> tuple[str, ...]:
    """Check ``config.json`` and return one text for each unknown key.

    :raises HomeFileError: for the first fault.
    """
    return validate_file(ConfigSchema, file)
