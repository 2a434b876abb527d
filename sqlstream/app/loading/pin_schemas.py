"""The part of `sqlstream source schema` that pins the schemas of a registry in the project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.loading.load import Loaded
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.messages.avro_types import AvroSchemaError, avro_type
from sqlstream.project.messages.message_format import SchemaRegistry
from sqlstream.project.messages.pinned import PinnedSchema, pinned_path, pinned_text, pinned_versions
from sqlstream.project.types.types import DataType, Struct
from sqlstream.project.values import SourceTable
from sqlstream.report.numbers import plural
from sqlstream.spark.connectors.schema_registry import RegistryError, registry_client
from sqlstream.spark.secrets import Secrets
from sqlstream.state.results.source_columns import InferredColumn, SourceColumns


def pin_schemas(
    loaded: Loaded, table: SourceTable, registry: SchemaRegistry, secrets: Secrets, notify: Callable[[str], None]
) -> SourceColumns:
    """Writes all versions of the table's subjects to files of the project, and returns the columns of the newest value.

    Versions that the registry no longer has stay in the files: a topic can still have messages with them. Raises:
    FindingsError.
    """
    client = registry_client(registry, table.places.get("schema_registry", table.location), secrets)
    root = loaded.compiled.project.root
    for subject in registry.subjects:
        try:
            found = client.versions(subject)
        except RegistryError as error:
            raise FindingsError([_unreadable(table, subject, secrets.redact(str(error)))]) from error
        _write(root, subject, found, notify)
    columns = _columns(root, table, registry.subject) if registry.subject else ()
    return SourceColumns(table.full_name, "avro", columns, 0, 0, 0, is_fixed=True, replaces=None, indent=0)


def _write(root: Path, subject: str, found: list[PinnedSchema], notify: Callable[[str], None]) -> None:
    path = root / pinned_path(subject)
    known = {each.id: each for each in _known(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    every = {**known, **{each.id: each for each in found}}
    write_file(str(path), pinned_text(subject, list(every.values())).encode())
    new = len(every) - len(known)
    notify(f"{pinned_path(subject)} has {plural(len(every), 'version')} of {subject}, {new} of them new")


def _known(path: Path) -> list[PinnedSchema]:
    """Returns the versions in a file, none without a valid file, which is then replaced."""
    try:
        return pinned_versions(path.read_text(encoding="utf-8"))
    except (OSError, AvroSchemaError):
        return []


def _columns(root: Path, table: SourceTable, subject: str) -> tuple[InferredColumn, ...]:
    path = pinned_path(subject)
    newest = max(_known(root / path), key=lambda each: each.version)
    try:
        found: DataType = avro_type(newest.schema)
    except AvroSchemaError as error:
        raise FindingsError([_unreadable(table, subject, str(error))]) from error
    fields = found.fields if isinstance(found, Struct) else ()
    return tuple(InferredColumn(each.name, str(each.type)) for each in fields)


def _unreadable(table: SourceTable, subject: str, why: str) -> Finding:
    return Finding(
        "source-unreadable",
        f"the schemas of subject `{subject}` of source `{table.full_name}` cannot be read",
        why,
        "fix schema_registry of the source, or the schemas in the registry",
        table.places.get("schema_registry", table.location),
    )
