"""The JSON Schemas for editors."""

from __future__ import annotations

import json

from pydantic import BaseModel

from sqlstream.project.configuration.documents import ProjectDocument, ResourceDocument, SelectorsDocument
from sqlstream.project.json_schemas import json_schemas
from sqlstream.project.unit_tests.unit_test_documents import UnitTestsDocument


def _documents(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    seen.add(model)
    for field in model.model_fields.values():
        for part in _parts(field.annotation):
            if part not in seen:
                _documents(part, seen)
    return seen


def _parts(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [part for inner in getattr(annotation, "__args__", ()) for part in _parts(inner)]


def test_every_key_is_described() -> None:
    """Every key has a description, from which the documentation and the editors' hints are made."""
    seen: set[type[BaseModel]] = set()
    for root in (ProjectDocument, ResourceDocument, SelectorsDocument, UnitTestsDocument):
        documents = _documents(root, seen)
    assert len(documents) == 43
    missing = [
        (model, name) for model in documents for name, field in model.model_fields.items() if not field.description
    ]
    assert missing == []


def test_schemas_are_json_with_valid_references() -> None:
    """All schemas are plain JSON, and each reference has a definition."""
    schemas = json_schemas()
    assert set(schemas) == {
        "project.schema.json",
        "resources.schema.json",
        "selectors.schema.json",
        "unit_tests.schema.json",
    }
    for schema in schemas.values():
        text = json.dumps(schema)
        references = {part.split('"')[0] for part in text.split('"$ref": "#/definitions/')[1:]}
        assert references <= set(schema["definitions"])


def test_folder_configuration_accepts_plus_keys() -> None:
    """project.yml's schema accepts keys with + at any depth."""
    folder = json_schemas()["project.schema.json"]["definitions"]["ModelConfigFolder"]
    assert "+trigger" in folder["properties"]
    assert folder["additionalProperties"]["anyOf"][0] == {"$ref": "#/definitions/ModelConfigFolder"}
