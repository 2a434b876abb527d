"""Reads the Avro schemas of a source table from the project: a schema file, or the pinned schemas of a registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.documents import TableDocument
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.messages.avro_types import AvroSchemaError, avro_type
from sqlstream.project.messages.message_format import AVRO, SchemaRegistry
from sqlstream.project.messages.pinned import AvroSchemas, pinned_path, read_pinned
from sqlstream.project.secrets import OptionValue
from sqlstream.project.types.types import DataType


@dataclass(frozen=True)
class KeyOrValue:
    """Where the schema of keys or values is: a `subject` of the registry, and a `file` with the reader's schema.

    Errors are added to `findings`, at `place`.
    """

    files: ProjectFiles
    findings: list[Finding]
    place: Location
    subject: str | None
    file: str | None


def registry_of(
    document: TableDocument, options: Mapping[str, OptionValue], place: Location, findings: list[Finding]
) -> SchemaRegistry | None:
    """Returns the registry of a table, None without one. `options` are those of its reader, which name the topic."""
    declared = document.schema_registry
    if declared is None:
        return None
    topic = next((str(value).strip() for name, value in options.items() if name.lower() == "subscribe"), "")
    uses = {"subject": document.value_format == AVRO, "key_subject": document.key_format == AVRO}
    subjects: dict[str, str | None] = dict.fromkeys(uses)
    for (key, is_used), ending in zip(uses.items(), ("value", "key"), strict=True):
        named = getattr(declared, key) or (f"{topic}-{ending}" if topic and "," not in topic else None)
        if is_used and named is None:
            findings.append(_no_subject(key, place))
        subjects[key] = named if is_used else None
    return SchemaRegistry(declared.url, declared.username, declared.password, declared.token, **subjects)


def read_avro(part: KeyOrValue) -> tuple[AvroSchemas | None, DataType | None]:
    """Returns the Avro schemas of keys or values, and the Spark type of the reader's schema; None if there are none."""
    writers = _pinned(part)
    if part.file is not None:
        text = part.files.try_read(part.file, part.findings, part.place)
        if text is None or (part.subject is not None and writers is None):
            return None, None
        own = AvroSchemas(text, {}, part.file)
        return _checked(part, own if writers is None else replace(writers, reader=text))
    return _checked(part, writers) if writers is not None else (None, None)


def _pinned(part: KeyOrValue) -> AvroSchemas | None:
    """Returns the pinned schemas; None without a subject, or without its file, which a rule of the compiler reports."""
    if part.subject is None or not part.files.exists(pinned_path(part.subject)):
        return None
    path = pinned_path(part.subject)
    text = part.files.try_read(path, part.findings, part.place)
    try:
        return None if text is None else read_pinned(text, path)
    except AvroSchemaError as error:
        part.findings.append(_not_avro(path, error))
        return None


def _checked(part: KeyOrValue, schemas: AvroSchemas) -> tuple[AvroSchemas | None, DataType | None]:
    try:
        return schemas, avro_type(schemas.reader)
    except AvroSchemaError as error:
        part.findings.append(_not_avro(schemas.path, error))
        return None, None


def _not_avro(path: str, error: AvroSchemaError) -> Finding:
    return Finding(
        "invalid-value",
        f"`{path}` is not an Avro schema that Spark can read",
        str(error),
        "fix the schema; `sqlstream source schema` writes the files of a registry again",
        Location(path),
    )


def _no_subject(key: str, place: Location) -> Finding:
    return Finding(
        "missing-key",
        f"the schema registry needs the key `{key}`",
        "by default a subject is named after the topic, and the option subscribe does not name exactly one topic",
        f"add `{key}:` to schema_registry",
        place,
    )
