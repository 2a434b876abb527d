"""The Avro schemas of a registry that are pinned in the project: one JSON file for each subject.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format: a message
begins with a zero byte and the id of its writer's schema as four bytes, most significant first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sqlstream.project.messages.avro_types import AvroSchemaError, avro_type

FOLDER = "registry"
"""The folder of the files, in the project."""


@dataclass(frozen=True)
class PinnedSchema:
    """One version of a subject: its number, the id in the registry, and the schema as JSON."""

    version: int
    id: int
    schema: str


@dataclass(frozen=True)
class AvroSchemas:
    """The schemas of keys or values. `reader` gives the columns. `writers` are the schemas by id, empty for messages
    without ids, which are written with `reader`. `path` is the file of the project with the schemas.
    """

    reader: str
    writers: Mapping[int, str]
    path: str


def pinned_path(subject: str) -> str:
    """Returns the path of a subject's file in the project."""
    return f"{FOLDER}/{quote(subject, safe='')}.json"


def pinned_text(subject: str, versions: Sequence[PinnedSchema]) -> str:
    """Returns the text of a subject's file, in the order of the versions, so that a diff shows only what is new."""
    listed = [
        {"version": each.version, "id": each.id, "schema": json.loads(each.schema)}
        for each in sorted(versions, key=lambda each: each.version)
    ]
    return json.dumps({"subject": subject, "versions": listed}, indent=2, ensure_ascii=False) + "\n"


def pinned_versions(text: str) -> list[PinnedSchema]:
    """Returns the versions in a subject's file. Raises: AvroSchemaError."""
    try:
        versions = json.loads(text)["versions"]
        return [PinnedSchema(int(each["version"]), int(each["id"]), json.dumps(each["schema"])) for each in versions]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"it is not a file of `sqlstream source schema`: {type(error).__name__} {error}"
        raise AvroSchemaError(message) from error


def read_pinned(text: str, path: str) -> AvroSchemas:
    """Returns the schemas of a subject's file; its newest version is the reader's. Raises: AvroSchemaError."""
    found = pinned_versions(text)
    if not found:
        message = "it has no versions"
        raise AvroSchemaError(message)
    newest = max(found, key=lambda each: each.version)
    avro_type(newest.schema)
    return AvroSchemas(newest.schema, {each.id: each.schema for each in found}, path)
