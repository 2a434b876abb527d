"""Source tables as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.columns import build_columns
from sqlstream.project.configuration.documents import SourceDocument, TableDocument
from sqlstream.project.configuration.freshness import build_freshness
from sqlstream.project.configuration.resources import Resources, SeenNames, places_of, written_table
from sqlstream.project.configuration.validate import Path
from sqlstream.project.declarations.messages import TableNode, build_table_schema, message_problems, pinned_ids
from sqlstream.project.declarations.on_corrupt import corrupt_table, on_corrupt_problems, time_problems
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable, Watermark
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
            findings.extend((*time_problems(table), *_refresh_problems(table)))
            tables.append(table)
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
            built = _build_table(source, source.tables[index], node, path, files, findings)
            written = written_table(resources.written[file], path, built.schema)
            yield replace(built, written={**written, **pinned_ids(built.messages)})


def _build_table(
    source: SourceDocument,
    table: TableDocument,
    node: YamlMapping,
    path: Path,
    files: ProjectFiles,
    findings: list[Finding],
) -> SourceTable:
    """The declared table, with an empty format if it has none."""
    options = {**source.options, **table.options}
    schema, messages = build_table_schema(TableNode(table, options, node, path, files, findings))
    return SourceTable(
        source=source.name,
        name=table.name,
        format=table.format or source.format or "",
        path=table.path,
        schema=schema,
        mode=table.mode,
        options=options,
        watermark=_watermark(table, node, path),
        columns=build_columns(table.columns, node, path, findings),
        description=table.description,
        tags=tuple(dict.fromkeys((*source.tags, *table.tags))),
        meta={**source.meta, **table.meta},
        location=locate(node, (*path, "name")),
        places=_places(node, path),
        table=table.table,
        python=table.class_,
        on_corrupt=table.on_corrupt,
        quarantine_sink=table.quarantine_sink,
        refresh=table.refresh,
        timestamp_unit=table.timestamp_unit,
        max_event_time=table.max_event_time,
        mask=table.mask,
        messages=messages,
        freshness=build_freshness(node, path, findings),
        previous_name=_previous_name(source, table),
    )


def _previous_name(source: SourceDocument, table: TableDocument) -> str | None:
    if source.previous_name is None and table.previous_name is None:
        return None
    return f"{source.previous_name or source.name}.{table.previous_name or table.name}"


def _places(node: YamlMapping, path: Path) -> Mapping[str, Location]:
    """Returns the locations of the table's keys, including those inherited from its source."""
    inherited = places_of(node, path[:2])
    taken = {key: place for key, place in inherited.items() if key in _INHERITED or key.startswith("options.")}
    return {**taken, **places_of(node, path)}


_INHERITED = ("format", "options", "tags", "meta", "previous_name")


def _watermark(table: TableDocument, node: YamlMapping, path: Path) -> Watermark | None:
    if table.watermark is None:
        return None
    return Watermark(table.watermark.column, table.watermark.delay, locate(node, (*path, "watermark")))


def _taken_names(tables: Sequence[SourceTable]) -> Iterator[Finding]:
    """Yields a finding for each former name that another table has or had, so that it does not say what continues."""
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
                table.places.get("previous_name", table.location),
            )


def _refresh_problems(table: SourceTable) -> Iterator[Finding]:
    if table.refresh is not None and table.format != "jdbc" and not format_of(table.format).is_file:
        yield Finding(
            "invalid-value",
            f"source {quoted(table.full_name)} sets refresh, but its format is {quoted(table.format)}",
            "only files and the tables of a format jdbc can be read once in a run",
            "remove `refresh`",
            table.places["refresh"],
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
