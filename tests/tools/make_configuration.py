"""Fills the tables of keys in docs/configuration.md from the pydantic models that validate YAML.

    .venv/bin/python -m tests.tools.make_configuration

A table is between `<!-- keys of SinkDocument -->` and `<!-- end of keys -->`; everything else is written by hand.
tests/unit/test_documentation.py fails when the page is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from sqlstream.project.configuration.alerts import AlertRulesDocument, AlertsDocument, Channel
from sqlstream.project.configuration.config import ContractDocument, ModelConfig, SeedConfig
from sqlstream.project.configuration.documents import (
    ConstraintDocument,
    DeclaredColumn,
    ExposureConfig,
    ExposureProperties,
    GroupConfig,
    GroupDocument,
    MetricsDocument,
    ModelColumn,
    ModelProperties,
    OwnerDocument,
    ProjectDocument,
    Repository,
    ResourceDocument,
    SchemaRegistry,
    SeedProperties,
    SelectorDocument,
    SelectorsDocument,
    SinkDocument,
    SourceColumn,
    SourceDocument,
    TableDocument,
    TargetDocument,
    VersionColumn,
    VersionDocument,
    Watermark,
)
from sqlstream.project.configuration.fields import Document
from sqlstream.project.configuration.freshness import Freshness, SourceConfigDocument, Threshold
from sqlstream.project.json_schemas import json_schemas
from sqlstream.project.unit_tests.unit_test_documents import (
    BatchDocument,
    ExpectDocument,
    ExpectedBatchDocument,
    GivenDocument,
    OverridesDocument,
    UnitTestConfig,
    UnitTestDocument,
    UnitTestsDocument,
    UpgradeDocument,
)

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"

HEADINGS: dict[type[Document], str] = {
    ProjectDocument: "project.yml",
    TargetDocument: "Targets",
    MetricsDocument: "Metrics",
    AlertsDocument: "Alerts",
    AlertRulesDocument: "Alerts",
    Channel: "Alerts",
    Repository: "Repositories",
    ResourceDocument: "Other YAML files",
    SourceDocument: "Sources",
    TableDocument: "Source tables",
    SchemaRegistry: "Schema registries",
    Watermark: "Watermark of a source table",
    Freshness: "Freshness of sources",
    Threshold: "Thresholds of freshness",
    SourceConfigDocument: "Configuration of sources",
    DeclaredColumn: "Columns",
    SourceColumn: "Columns of sources",
    SinkDocument: "Sinks",
    ModelProperties: "Properties of models",
    ModelConfig: "Configuration of models",
    ModelColumn: "Columns of models",
    VersionDocument: "Versions of models",
    VersionColumn: "Columns of versions",
    ConstraintDocument: "Constraints",
    ContractDocument: "Contract",
    GroupDocument: "Groups",
    GroupConfig: "Configuration of groups",
    SeedProperties: "Properties of seeds",
    SeedConfig: "Configuration of seeds",
    ExposureProperties: "Exposures",
    OwnerDocument: "Owners of exposures",
    ExposureConfig: "Configuration of exposures",
    SelectorsDocument: "selectors.yml",
    SelectorDocument: "Selectors",
    UnitTestsDocument: "Files of unit tests",
    UnitTestDocument: "Unit tests",
    GivenDocument: "Inputs of unit tests",
    BatchDocument: "Given batches",
    ExpectDocument: "Expectations",
    ExpectedBatchDocument: "Expected batches",
    OverridesDocument: "Overrides",
    UpgradeDocument: "Upgrades",
    UnitTestConfig: "Configuration of unit tests",
}
"""Every document, and the heading of its table on the page."""

_TABLE = re.compile(r"(?s)<!-- keys of (\w+) -->\n.*?<!-- end of keys -->")
_BY_NAME = {model.__name__: model for model in HEADINGS}


def fill_tables(page: str) -> str:
    """Returns the page with updated tables of keys."""
    return _TABLE.sub(lambda match: _table(_BY_NAME[match[1]]), page)


def _table(model: type[Document]) -> str:
    schema = json_schemas()["resources.schema.json"] if model is ResourceDocument else model.model_json_schema()
    properties = schema["properties"]
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    rows = [
        f"| `{key}` | {_type(properties[key])} | {_default(field)} | {(field.description or '').removesuffix('.')} |"
        for key, field in fields.items()
    ]
    head = ["| key | takes | default | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([f"<!-- keys of {model.__name__} -->", *head, *rows, "<!-- end of keys -->"])


def _type(schema: dict[str, Any]) -> str:
    """Describes the value of a key in words, from the JSON Schema that editors use."""
    if "$ref" in schema:
        return f"a mapping: {_link(schema['$ref'])}"
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"] if part.get("type") != "null")
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"`{str(value).lower() if isinstance(value, bool) else value}`" for value in values)
    if "type" not in schema:
        return "see its meaning"
    if schema["type"] == "array":
        items = schema["items"]
        if "anyOf" in items:
            return "a list of names and mappings"
        kind = items.get("$ref") or (items["title"] if items["type"] == "object" else None)
        return f"a list: {_link(kind)}" if kind else "a list of text"
    return _object(schema) if schema["type"] == "object" else _scalar(schema)


def _object(schema: dict[str, Any]) -> str:
    values = schema.get("additionalProperties")
    if not isinstance(values, dict):
        keys = ", ".join(f"`{key}`" for key in schema.get("properties", {}))
        return "a mapping" if values else f"a mapping of {'one of ' if 'maxProperties' in schema else ''}{keys}"
    if "$ref" in values:
        return f"a mapping by name: {_link(values['$ref'])}"
    if "enum" in values:
        return f"a mapping to {_type(values)}"
    return "a mapping by name" if values.get("type") == "object" else "a mapping to text, numbers, true or false"


def _scalar(schema: dict[str, Any]) -> str:
    if schema["type"] == "boolean":
        return "true or false"
    if schema["type"] in ("integer", "number"):
        return "a whole number" if schema["type"] == "integer" else "a number"
    if "examples" in schema:
        return "text such as " + " or ".join(f"`{example}`" for example in schema["examples"])
    return "a name" if "pattern" in schema else "text"


def _link(reference: str) -> str:
    heading = HEADINGS[_BY_NAME[reference.rsplit("/", 1)[-1]]]
    return f"[{heading}](#{heading.lower().replace(' ', '-').replace('.', '')})"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", (), {}) or isinstance(value, Document):
        return ""
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(fill_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
