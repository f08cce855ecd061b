"""Admission: the rules by which a contributed entry enters the host, one rule in one place, as functions of data."""

from __future__ import annotations

from crystal.host.admission.clients import RegisteredClassifier, RegisteredFactory, admit_classifiers, admit_factories
from crystal.host.admission.commands import (
    RegisteredCommand,
    RegisteredPlaceholder,
    RegisteredStatusField,
    admit_commands,
    admit_placeholders,
    admit_status_fields,
)
from crystal.host.admission.tools import RegisteredTool, admit_tools, schema_fault

__all__ = [
    "RegisteredClassifier",
    "RegisteredCommand",
    "RegisteredFactory",
    "RegisteredPlaceholder",
    "RegisteredStatusField",
    "RegisteredTool",
    "admit_classifiers",
    "admit_commands",
    "admit_factories",
    "admit_placeholders",
    "admit_status_fields",
    "admit_tools",
    "schema_fault",
]
