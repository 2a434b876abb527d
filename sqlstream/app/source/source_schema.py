"""`sqlstream source schema`: compares the columns in a source's data with those that it declares, and pins the schemas
of a registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
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
from sqlstream.project.types.data_types import DataType, Struct
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import did_you_mean
from sqlstream.project.yaml.writing import scalar_text
from sqlstream.report.rows import json_text, shown_text
from sqlstream.spark.reading.infer import InferredColumn, SourceColumns
from sqlstream.spark.reading.message_formats.schema_registry import RegistryError, registry_client
from sqlstream.spark.secrets import Secrets


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
    client = registry_client(registry, table.locations.get("schema_registry", table.location), secrets)
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
        table.locations.get("schema_registry", table.location),
    )


def columns_yaml(found: SourceColumns) -> str:
    """Returns `columns:` with the indentation of the table's keys, and a comment on where the columns come from."""
    margin = " " * found.indent
    lines = [*(f"# {line}" for line in _comments(found)), "columns:"]
    for column in found.columns:
        lines += _column(column, typed=not found.is_fixed)
    return "\n".join(f"{margin}{line}" for line in lines)


def require_comparison(found: SourceColumns) -> None:
    """Raises UsageError if the columns of a source could not be compared with its data."""
    if not found.is_compared:
        raise UsageError(
            f"--diff cannot compare {found.table}: it needs declared columns, and data that has columns without them; "
            f"its format is {found.format}"
        )


_SIGNS = {"new": "+", "missing": "-", "retyped": "~"}


def differences_text(found: SourceColumns) -> str:
    """Returns a line for each difference between the data and the declared columns, after one about the data."""
    lines = [f"# {_comments(found)[0]}"]
    for each in found.differences:
        what = {
            "new": f"{each.found}  # not declared",
            "missing": f"{each.declared}  # declared, but not in the data that was read",
            "retyped": f"{each.declared}  # declared type, but the data has {each.found}",
        }
        lines.append(f"{_SIGNS[each.kind]} {shown_text(each.path)}: {what[each.kind]}")
    return "\n".join(lines if found.differences else [*lines, "The data has the declared columns."])


def columns_json(found: SourceColumns) -> str:
    """Returns the columns as one JSON object. `files` is null for a format without files."""
    files = {"total": found.files, "looked_at": found.looked_at, "empty": found.empty}
    columns = [
        {
            "name": column.name,
            "data_type": column.data_type,
            "description": column.description,
            "notes": list(column.notes),
        }
        for column in found.columns
    ]
    return json_text(
        {
            "source": found.table,
            "format": found.format,
            "files": files if found.files else None,
            "columns": columns,
            "differences": [asdict(each) for each in found.differences],
        },
        indent=2,
    )


def _comments(found: SourceColumns) -> list[str]:
    if found.is_fixed:
        return [f"{found.table}: {found.format} has fixed columns, so declare no data_type"]
    lines = [f"{found.table}: read {found.looked_at:,} of {plural(found.files, 'file')}"]
    if not found.files:
        lines = [f"{found.table}: the columns of the {found.format} table"]
    if found.empty:
        lines[0] += f", {found.empty:,} of them empty"
    if found.replaces is not None:
        lines.append(f"replaces `{found.replaces}:`, which declares the schema now")
    return lines


def _column(column: InferredColumn, *, typed: bool) -> list[str]:
    lines = [f"  - name: {scalar_text(column.name)}"]
    if typed:
        lines.append(f"    data_type: {scalar_text(column.data_type)}")
    if note := "; ".join(column.notes if typed else [column.data_type, *column.notes]):
        lines[-1] += f"  # {note}"
    if column.description:
        lines.append(f"    description: {scalar_text(column.description)}")
    return lines
