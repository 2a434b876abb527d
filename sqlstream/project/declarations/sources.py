"""Source tables and sinks as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema, check_names, with_columns
from sqlstream.project.configuration.documents import SourceDocument, TableDocument
from sqlstream.project.configuration.freshness import inherit_freshness
from sqlstream.project.configuration.resources import DESCRIBING, Resources, locations_of, written_keys
from sqlstream.project.configuration.validate import Path, SeenNames
from sqlstream.project.declarations.message_schemas import TableNode, build_table_schema, message_problems, pinned_ids
from sqlstream.project.declarations.on_corrupt import (
    corrupt_table,
    on_corrupt_problems,
    required_problems,
    time_problems,
)
from sqlstream.project.declarations.schema_changes import schema_change_problems, with_rescued
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.formats.file_options import CHANGE_FEED
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import Field, Primitive
from sqlstream.project.values import Sink, SourceTable
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import YamlMapping, locate


def build_sources(resources: Resources, files: ProjectFiles, findings: list[Finding]) -> tuple[SourceTable, ...]:
    """Returns all source tables, sorted by name, with the streams of their corrupt records. Several files can declare
    one source, as in dbt.
    """
    names = SeenNames("source tables")
    tables: list[SourceTable] = []
    for table in _declared_tables(resources, files, findings):
        if _has_format(table, findings) and names.add(table.full_name, table.location, findings):
            findings.extend((*message_problems(table), *on_corrupt_problems(table)))
            findings.extend((*time_problems(table), *_refresh_problems(table), *_changes_problems(table)))
            findings.extend((*schema_change_problems(table), *required_problems(table)))
            tables.append(with_rescued(_with_changes(table) if table.changes else table))
    findings += _taken_names(tables)
    corrupt = [found for found in map(corrupt_table, tables) if found is not None]
    tables += [found for found in corrupt if names.add(found.full_name, found.location, findings)]
    return tuple(sorted(tables, key=lambda table: (table.source, table.name)))


def _declared_tables(resources: Resources, files: ProjectFiles, findings: list[Finding]) -> Iterator[SourceTable]:
    for file, (document, node) in resources.documents.items():
        entries = (
            (at, source, index) for at, source in enumerate(document.sources) for index in range(len(source.tables))
        )
        for at, source, index in entries:
            path: Path = ("sources", at, "tables", index)
            yield _build_table(source, source.tables[index], node, resources.written[file], path, files, findings)


def _build_table(
    source: SourceDocument,
    table: TableDocument,
    node: YamlMapping,
    written: YamlMapping,
    path: Path,
    files: ProjectFiles,
    findings: list[Finding],
) -> SourceTable:
    """The declared table, with an empty format if it has none."""
    options = {**source.options, **table.options}
    schema, messages = build_table_schema(TableNode(table, options, node, path, files, findings))
    check_names(table.columns, node, path, findings)
    freshness, loaded_at_field, places = inherit_freshness(node, path, findings)
    return SourceTable.model_construct(
        **{
            **vars(table),
            "source": source.name,
            "format": table.format or source.format or "",
            "options": options,
            "tags": tuple(dict.fromkeys((*source.tags, *table.tags))),
            "meta": {**source.meta, **table.meta},
            "freshness": freshness,
            "loaded_at_field": loaded_at_field,
            "previous_name": _previous_name(source, table),
            "spark_schema": schema,
            "messages": messages,
            "location": locate(node, (*path, "name")),
            "locations": {**_locations(node, path), **places, **_column_locations(table, source, node, path)},
            "written": {**_written_table(written, path, schema), **pinned_ids(messages)},
        }
    )


def _previous_name(source: SourceDocument, table: TableDocument) -> str | None:
    if source.previous_name is None and table.previous_name is None:
        return None
    return f"{source.previous_name or source.name}.{table.previous_name or table.name}"


def _locations(node: YamlMapping, path: Path) -> Mapping[str, Location]:
    """Returns the locations of the table's keys, including those inherited from its source."""
    inherited = locations_of(node, path[:2])
    taken = {key: place for key, place in inherited.items() if key in _INHERITED or key.startswith("options.")}
    return {**taken, **locations_of(node, path)}


def _column_locations(
    table: TableDocument, source: SourceDocument, node: YamlMapping, path: Path
) -> Mapping[str, Location]:
    """Returns the locations of the types of columns, for the format whose files are compared with them."""
    if (table.format or source.format) != "orc":
        return {}
    typed = [(index, column.name) for index, column in enumerate(table.columns) if column.data_type]
    return {f"columns.{name}": locate(node, (*path, "columns", index, "data_type")) for index, name in typed}


_INHERITED = ("format", "options", "tags", "meta", "previous_name")


def _taken_names(tables: Sequence[SourceTable]) -> Iterator[Finding]:
    """Yields a finding for each former name that another table has or had: it is unclear which of them continues."""
    owners: dict[str, SourceTable] = {table.full_name.casefold(): table for table in tables}
    for table in tables:
        former = table.previous_name
        owner = owners.setdefault(former.casefold(), table) if former else table
        if former and owner is not table:
            yield Finding(
                "duplicate-name",
                f"the former name of source {quoted(table.full_name)} also belongs to {quoted(owner.full_name)}",
                f"a query continues to read one table where it stopped reading {quoted(former)}, and "
                f"{quoted(owner.full_name)} is declared at {owner.location.path}:{owner.location.line}",
                "remove `previous_name` from one of them, or rename the other table",
                table.locations.get("previous_name", table.location),
            )


def _refresh_problems(table: SourceTable) -> Iterator[Finding]:
    if table.refresh is not None and table.format != "jdbc" and not format_of(table.format).is_file:
        yield Finding(
            "invalid-value",
            f"source {quoted(table.full_name)} sets refresh, but its format is {quoted(table.format)}",
            "only files and the tables of a format jdbc can be read once in a run",
            "remove `refresh`",
            table.locations["refresh"],
        )


CHANGE_COLUMNS = (
    Field("_change_type", Primitive("string")),
    Field("_commit_version", Primitive("bigint")),
    Field("_commit_timestamp", Primitive("timestamp")),
)
"""The columns that Delta Lake adds to the changes of a table."""


_WITHOUT_CHANGES = {
    "iceberg": "remove `changes`; a stream of the table has the rows that are added",
    "table": "remove `changes`; for a table of Delta Lake, set format: delta",
}


def _changes_problems(table: SourceTable) -> Iterator[Finding]:
    if not table.changes:
        return
    if table.format != "delta":
        iceberg = "Iceberg returns changes only through its procedure create_changelog_view, which no stream can read"
        yield Finding(
            "invalid-value",
            f"source {quoted(table.full_name)} sets changes, but its format is {quoted(table.format)}",
            iceberg if table.format == "iceberg" else "only tables of Delta Lake record the changes of their rows",
            _WITHOUT_CHANGES.get(table.format, "remove `changes`"),
            table.locations["changes"],
        )
    for name, value in table.options.items():
        if name.lower() in map(str.lower, CHANGE_FEED) and not table.reads_changes:
            yield Finding(
                "invalid-value",
                f"source {quoted(table.full_name)} sets both changes: true and {name}: {value}",
                "they contradict each other: `changes` sets this option of Delta",
                f"remove {name}, or remove `changes`",
                table.locations.get(f"options.{name}", table.locations["changes"]),
            )


def _with_changes(table: SourceTable) -> SourceTable:
    """Returns a table with Delta's option for changes, and with their columns if it declares columns."""
    schema, option, places = table.spark_schema, CHANGE_FEED[0], table.locations
    if not table.reads_changes:
        places = {**places, f"options.{option}": places["changes"]}
    return table.model_copy(
        update={
            "options": table.options if table.reads_changes else {**table.options, option: "true"},
            "locations": places,
            "spark_schema": None if schema is None else with_columns(schema, CHANGE_COLUMNS),
        }
    )


def _has_format(table: SourceTable, findings: list[Finding]) -> bool:
    if not table.format:
        findings.append(
            Finding(
                "missing-key",
                f"the source table {quoted(table.full_name)} needs the key `format`",
                "neither the table nor its source sets the format",
                "for example, add `format: json` to the table or the source",
                table.location,
            )
        )
    return bool(table.format)


_WRITTEN_OF_SOURCE = ("format", "options", "freshness", "loaded_at_field", "config")
"""Keys of a source that its tables inherit. dbt counts a change of freshness as a change, too."""


def _written_table(node: YamlMapping, path: Path, schema: Schema | None) -> Mapping[str, object]:
    """Returns the YAML of the source table at `path`, with the keys that it inherits from its source.

    A schema counts as its text, in a file or not, and columns as their names and types.
    """
    table, source = written_keys(node, path), written_keys(node, path[:2], (*DESCRIBING, "tables"))
    taken = {key: value for key, value in source.items() if key in _WRITTEN_OF_SOURCE}
    written = {**taken, **table}
    inherited, own = source.get("options"), table.get("options")
    if isinstance(inherited, dict) and isinstance(own, dict):
        written["options"] = inherited | own
    if written.pop("schema_file", None) is not None and schema is not None:
        written["schema"] = schema.ddl or schema.json
    columns = _typed_columns(written.pop("columns", None))
    return {**written, "columns": columns} if columns else written


def _typed_columns(columns: object) -> list[object]:
    """The names and types of columns that have a type, and those that are required."""
    entries = columns if isinstance(columns, list) else []
    return [
        [entry.get("name"), entry.get("data_type"), *(["required"] if entry.get("required") else [])]
        for entry in entries
        if isinstance(entry, dict) and (entry.get("data_type") is not None or entry.get("required"))
    ]


def build_sinks(resources: Resources, findings: list[Finding]) -> tuple[Sink, ...]:
    """Returns all sinks, sorted by name."""
    names = SeenNames("sinks")
    sinks: list[Sink] = []
    for file, (document, node) in resources.documents.items():
        for index, sink in enumerate(document.sinks):
            path: Path = ("sinks", index)
            location, written = locate(node, (*path, "name")), written_keys(resources.written[file], path)
            if names.add(sink.name, location, findings):
                places = locations_of(node, path)
                sinks.append(Sink.model_construct(**vars(sink), location=location, locations=places, written=written))
    return tuple(sorted(sinks, key=lambda sink: sink.name))
