"""Notes: the host's one way to tell the operator that something was skipped or deserves attention."""

from __future__ import annotations

from enum import Enum

from crystal.types._frozen import Frozen


class Severity(Enum):
    """How much a note matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class NoteCode(Enum):
    """Every code a note can carry; published by ``crystal schema notes`` and stable."""

    HOOK_ERROR = "hook-error"
    HOOK_UNMARKED = "hook-unmarked"
    HOOK_TIMEOUT = "hook-timeout"
    HOOK_SLOW = "hook-slow"
    HOOK_RESULT = "hook-result"
    HOOK_UNKNOWN = "hook-unknown"
    HOOK_ARGUMENT = "hook-argument"
    HOOK_WRAPPER = "hook-wrapper"
    CONTRACT_REFUSED = "contract-refused"
    GUARD_FAILED = "guard-failed"
    RAW_HOOK = "raw-hook"
    RAW_HOOK_FAILURE = "raw-hook-failure"
    PLUGIN_INVALID = "plugin-invalid"
    PLUGIN_WARNING = "plugin-warning"
    PLUGIN_DUPLICATE = "plugin-duplicate"
    MANIFEST_INVALID = "manifest-invalid"
    MANIFEST_UNSUPPORTED = "manifest-unsupported"
    EXTENSION_NAME = "extension-name"
    EXTENSION_FOLDER = "extension-folder"
    PROJECT_UNTRUSTED = "project-untrusted"
    CONTRIBUTION_INVALID = "contribution-invalid"
    TOOL_NAME = "tool-name"
    TOOL_RESERVED = "tool-reserved"
    TOOL_DUPLICATE = "tool-duplicate"
    TOOL_CATALOG = "tool-catalog"
    TOOL_SCHEMA = "tool-schema"
    MODEL_CLIENTS = "model-clients"
    DATA_DIRECTORY = "data-directory"
    COMMAND_OUTPUT = "command-output"
    STATUS_FIELD = "status-field"
    PLACEHOLDER = "placeholder"
    PROMPT_FILE = "prompt-file"
    CONTRIBUTION_NAME = "contribution-name"
    CONTRIBUTION_RESERVED = "contribution-reserved"
    CONTRIBUTION_DUPLICATE = "contribution-duplicate"
    PROTOCOL_RESERVED = "protocol-reserved"
    PROTOCOL_DUPLICATE = "protocol-duplicate"
    CONFIG_UNKNOWN_KEY = "config-unknown-key"
    SESSION_REPAIRED = "session-repaired"
    SESSION_MOVED = "session-moved"
    MODEL_OUTPUT = "model-output"
    REQUEST_NOTICE = "request-notice"
    CLIENT_ERROR = "client-error"
    GRANT_NOT_SAVED = "grant-not-saved"


class Note(Frozen):
    """One thing worth telling.

    :param text: one plain English sentence or two; never tool arguments or results.
    :param source: who it is about: a plugin name, a file, or ``crystal``.
    """

    code: NoteCode
    text: str
    source: str = "crystal"
    severity: Severity = Severity.WARNING
