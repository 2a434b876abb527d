"""`sqlstream source schema`: compares the columns in a source's data with those that it declares, and pins the schemas
of a registry.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.request import SAMPLED_FILES, ProjectRequest
from sqlstream.app.session.signals import StopSignals, interruptible
from sqlstream.compiler.graph import source_id
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.numbers import plural
from sqlstream.project.configuration.documents import SchemaRegistry
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.project.messages.avro import (
    AvroSchemaError,
    PinnedSchema,
    avro_type,
    pinned_path,
    pinned_text,
    pinned_versions,
)
from sqlstream.project.types.types import DataType, Struct
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import did_you_mean
from sqlstream.spark.reading.message_formats.schema_registry import RegistryError, registry_client
from sqlstream.spark.secrets import Secrets
from sqlstream.state.source_columns import InferredColumn, SourceColumns


def source_schema(
    request: ProjectRequest,
    name: str,
    most_files: int = SAMPLED_FILES,
    notify: Callable[[str], None] = lambda _line: None,
) -> SourceColumns:
    """Returns the columns of the source `source.table`, from at most `most_files` of its files.

    Writes the schemas of a schema registry to the project, and no other files.

    `notify` gets progress messages. Raises: FindingsError; UsageError for an unknown source; KeyboardInterrupt.
    """
    loaded = load_for_reading(request)
    tables = {table.full_name: table for table in declared_sources(loaded.compiled.project.sources)}
    if name not in tables:
        raise UsageError(f"there is no source `{name}`; {did_you_mean(name, tables)}")
    messages = tables[name].messages
    if messages is not None and messages.registry is not None:
        return pin_schemas(loaded, tables[name], messages.registry, Secrets(request.env), notify)
    with interruptible() as signals:
        return _read_columns(request, loaded, tables[name], most_files, notify, signals)


def _read_columns(
    request: ProjectRequest,
    loaded: Loaded,
    table: SourceTable,
    most_files: int,
    notify: Callable[[str], None],
    signals: StopSignals,
) -> SourceColumns:
    from sqlstream.app.session.session import spark_session  # loads pyspark
    from sqlstream.spark.reading.infer import infer_columns, merge_columns
    from sqlstream.spark.reading.inputs import NodeReader
    from sqlstream.spark.reading.sources import Readers

    secrets, nodes = Secrets(request.env), [source_id(loaded.compiled.project.name, table)]
    notice = f"Starting Spark to read {table.full_name}"
    with spark_session(loaded, secrets, signals, nodes, notify=notify, notice=notice) as runtime:
        inputs = NodeReader(loaded.compiled, Readers(runtime.session, secrets, loaded.compiled.project.root))
        return merge_columns(table, infer_columns(inputs, table, most_files))


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
