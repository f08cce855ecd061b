"""What the file and search tools tell the host and the model: small, strict definitions."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from crystal.types.tools import Catalog, ToolContribution
from plugins_builtin import files, search

CONTRIBUTIONS = [*files.contribute_tools(), *search.contribute_tools()]


def test_the_tools_stand_in_their_catalogs_with_their_path_argument() -> None:
    assert {entry.name: (entry.catalogs, dict(entry.default_paths)) for entry in CONTRIBUTIONS} == {
        "read": (Catalog.BOTH, {}),
        "list": (Catalog.BOTH, {"path": "."}),
        "edit": (Catalog.WORK, {}),
        "write": (Catalog.WORK, {}),
        "tree": (Catalog.BOTH, {"path": "."}),
        "glob": (Catalog.BOTH, {"path": "."}),
        "grep": (Catalog.BOTH, {"path": "."}),
        "search": (Catalog.BOTH, {"path": "."}),
    }
    assert {entry.path_arguments for entry in CONTRIBUTIONS} == {("path",)}
    assert [entry.name for entry in CONTRIBUTIONS if entry.capabilities] == ["read", "edit", "write"]


@pytest.mark.parametrize("contribution", CONTRIBUTIONS, ids=lambda entry: entry.name)
def test_a_definition_is_a_strict_schema_of_at_most_six_hundred_bytes(contribution: ToolContribution) -> None:
    definition = contribution.tool.definition
    assert definition.name == contribution.name
    Draft202012Validator.check_schema(definition.schema)
    assert definition.schema["additionalProperties"] is False
    sent = {"name": definition.name, "description": definition.description, "parameters": definition.schema}
    assert len(json.dumps(sent, separators=(",", ":"))) <= 600
