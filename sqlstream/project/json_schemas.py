"""JSON Schemas of the YAML files, with which editors complete and check them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlstream.project.configuration.config import ModelConfig, SeedConfig
from sqlstream.project.configuration.documents import (
    ExposureConfig,
    ProjectDocument,
    ResourceDocument,
    SelectorsDocument,
    SinkDocument,
    TableDocument,
)
from sqlstream.project.configuration.fields import Document
from sqlstream.project.configuration.validate import allowed_keys
from sqlstream.project.unit_tests.unit_test import BetweenBatches
from sqlstream.project.unit_tests.unit_test_documents import UnitTestsDocument

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that YAML language servers of editors support best."""


def json_schemas() -> Mapping[str, dict[str, Any]]:
    """Returns the schemas of project.yml, of selectors.yml, of the files below tests/models/ and of all other YAML
    files, by file name.
    """
    tests = _with_batch_words(_schema(UnitTestsDocument, "sqlstream: unit tests"))
    return {
        "project.schema.json": _with_folders(_schema(ProjectDocument, "sqlstream: project.yml")),
        "resources.schema.json": _with_tests(
            _schema(ResourceDocument, "sqlstream: sources, sinks, models and seeds"), tests
        ),
        "selectors.schema.json": _schema(SelectorsDocument, "sqlstream: selectors.yml"),
        "unit_tests.schema.json": tests,
    }


def _schema(model: type[Document], title: str) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs", {})
    return {"$schema": DIALECT, **schema, "title": title, "definitions": definitions}


def _with_batch_words(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema of unit tests that also allows the words between two batches."""
    given = dict(schema["definitions"]["GivenDocument"])
    batches = dict(given["properties"]["batches"])
    batches["items"] = {"anyOf": [batches["items"], {"type": "string", "enum": [str(mark) for mark in BetweenBatches]}]}
    given["properties"] = {**given["properties"], "batches": batches}
    return {**schema, "definitions": {**schema["definitions"], "GivenDocument": given}}


def _with_tests(schema: dict[str, Any], tests: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a file whose unit tests, which loading a project skips, are as in the schema `tests`."""
    unit_tests = {**schema["properties"]["unit_tests"], "items": tests["properties"]["unit_tests"]["items"]}
    properties = {**schema["properties"], "unit_tests": unit_tests}
    return {**schema, "properties": properties, "definitions": {**schema["definitions"], **tests["definitions"]}}


def _with_folders(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns project.yml's schema with what pydantic cannot express: `+` keys by folder, and overrides by name."""
    properties = dict(schema["properties"])
    definitions = dict(schema["definitions"])
    for section, model in (("models", ModelConfig), ("seeds", SeedConfig), ("exposures", ExposureConfig)):
        name = f"{model.__name__}Folder"
        definitions |= {name: _folder_schema(model, name)}
        properties[section] = {**properties[section], "$ref": f"#/definitions/{name}"}
    target = dict(definitions["TargetDocument"])
    target["properties"] = dict(target["properties"]) | {
        "sources": _overrides("sources", target, TableDocument),
        "sinks": _overrides("sinks", target, SinkDocument),
    }
    return {**schema, "properties": properties, "definitions": {**definitions, "TargetDocument": target}}


def _folder_schema(model: type[Document], name: str) -> dict[str, Any]:
    keys = model.model_json_schema()["properties"]
    return {
        "type": "object",
        "properties": {f"+{key}": schema for key, schema in keys.items()},
        "patternProperties": {rf"^\+(?!({'|'.join(keys)})$)": False},
        "additionalProperties": {"anyOf": [{"$ref": f"#/definitions/{name}"}, {"not": {"type": "object"}}]},
    }


def _overrides(key: str, target: dict[str, Any], model: type[Document]) -> dict[str, Any]:
    properties: dict[str, Any] = {name: {} for name in allowed_keys(model) if name != "name"}
    by_name = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**target["properties"][key], "additionalProperties": by_name}
