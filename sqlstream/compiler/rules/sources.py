"""Rules about declared sources."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.operators.inputs import source_node
from sqlstream.compiler.flow.types.values import TIMESTAMP
from sqlstream.compiler.judged import is_judged
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.streams.watermarks import may_be_event_time
from sqlstream.errors import Finding
from sqlstream.project.formats.format import BATCH, BATCHES, STREAM, STREAMS
from sqlstream.project.formats.formats import format_of
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.on_corrupt import declared_sources
from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.parser import parse_schema
from sqlstream.project.types.types import Struct, read_json_schema
from sqlstream.project.values import Schema, SourceTable, Watermark
from sqlstream.project.wording import quoted, quoted_list

INFERENCE = "spark.sql.streaming.schemaInference"


@rule("missing-schema", "invalid-value", "missing-path")
def missing_schemas(compiled: CompiledProject) -> list[Finding]:
    """A stream of files needs a path, and a schema unless the target lets Spark infer it."""
    inferred = str(compiled.project.target.spark.get(INFERENCE, "false")).lower() == "true"
    findings: list[Finding] = []
    for table in declared_sources(compiled.project.sources):
        facts = format_of(table.format)
        if table.mode == STREAM and facts.schema == "required" and table.schema is None and not inferred:
            findings.append(_missing_schema(table))
        if any(name.lower() == "path" for name in table.options):
            findings.append(_path_option(table))
        elif facts.is_file and not table.path:
            findings.append(_missing_path(table))
    return findings


def _missing_schema(table: SourceTable) -> Finding:
    return Finding(
        "missing-schema",
        f"source `{table.full_name}` has no schema",
        f"Spark needs a declared schema to stream {table.format} files",
        'declare columns: or schema:, for example schema: "id bigint, ts timestamp"',
        table.location,
    )


def _missing_path(table: SourceTable) -> Finding:
    return Finding(
        "missing-path",
        f"source `{table.full_name}` has no path",
        f"a source of {table.format} files reads a folder",
        "add path: with a folder or a file pattern",
        table.location,
    )


def _path_option(table: SourceTable) -> Finding:
    return Finding(
        "invalid-value",
        f"source `{table.full_name}` sets its path as an option",
        "options go to Spark unchanged, so the path would be relative to the working directory",
        "write it as a key of the table, path:",
        table.places.get("options", table.location),
    )


@rule("fixed-schema", "invalid-value")
def fixed_schemas(compiled: CompiledProject) -> list[Finding]:
    """Generators, sockets and binary files have fixed columns. Generators and sockets are streams only; databases and
    the state of queries are static only.
    """
    findings: list[Finding] = []
    for table in declared_sources(compiled.project.sources):
        facts, schema = format_of(table.format), table.schema
        if facts.reads == BATCHES and table.mode == STREAM:
            findings.append(_batch_only(table))
        if facts.reads == STREAMS and table.mode == BATCH:
            findings.append(_stream_only(table))
        if facts.schema == "fixed" and schema is not None:
            findings.append(_fixed(table, facts.columns_with(table.options) or "", ""))
        if facts.schema == "extended" and schema is not None and not _begins_with(schema, facts.columns):
            findings.append(_fixed(table, facts.columns, ", in this order; you may add columns from the folder names"))
    return findings


def _fixed(table: SourceTable, columns: str, rest: str) -> Finding:
    return Finding(
        "fixed-schema",
        f"source `{table.full_name}` declares columns, but its format {table.format} has fixed columns",
        f"they are {columns}{rest}",
        "remove the schema, and the data_type of columns",
        table.schema.location if table.schema else table.location,
    )


def _stream_only(table: SourceTable) -> Finding:
    return Finding(
        "invalid-value",
        f"source `{table.full_name}` has mode: batch, but {table.format} is always a stream",
        f"Spark cannot read {table.format} as a static table",
        "remove `mode`, or read a file",
        table.places.get("mode", table.location),
    )


def _batch_only(table: SourceTable) -> Finding:
    return Finding(
        "invalid-value",
        f"source `{table.full_name}` is a stream, but Spark reads {table.format} only in batches",
        "a source is a stream unless it has mode: batch",
        "add mode: batch to the table",
        table.places.get("mode", table.location),
    )


def _begins_with(schema: Schema, columns: str) -> bool:
    """Whether `schema` has all of `columns` in their order; true if it cannot be read."""
    wanted = parse_schema(columns)
    try:
        found = read_json_schema(schema.json) if schema.json is not None else parse_schema(schema.ddl or "")
    except TypeSyntaxError:
        return True
    if not isinstance(found, Struct) or not isinstance(wanted, Struct):
        return True
    names = {field.name for field in wanted.fields}
    own = [(field.name, field.type) for field in found.fields if field.name in names]
    return own == [(field.name, field.type) for field in wanted.fields]


@rule("unknown-column", "watermark-type")
def source_watermarks(compiled: CompiledProject) -> list[Finding]:
    """The watermark of a source must be on one of its timestamp columns."""
    judges_types = is_judged(compiled.project.target)
    findings: list[Finding] = []
    for table in declared_sources(compiled.project.sources):
        columns = source_node(compiled.project.name, table).columns
        if table.watermark is None or columns is None or table.mode != "stream":
            continue
        name = table.watermark.column
        named = [column for column in columns if column.name.lower() == name.lower()]
        if not named and "." not in name and "`" not in name:
            findings.append(_no_event_time(table, table.watermark, [column.name for column in columns]))
        if judges_types:
            findings += [_wrong_event_time(table, column, columns) for column in named if not may_be_event_time(column)]
    return findings


@rule("unknown-column")
def masked_columns(compiled: CompiledProject) -> list[Finding]:
    """A masked column must exist."""
    findings: list[Finding] = []
    for table in declared_sources(compiled.project.sources):
        columns = source_node(compiled.project.name, table).columns
        names = [column.name for column in columns or ()]
        known = {name.lower() for name in names}
        findings += [
            Finding(
                "unknown-column",
                f"source `{table.full_name}` masks {quoted(name)}, which is not a column",
                f"the columns of the source are {quoted_list(names)}",
                did_you_mean(name, names),
                table.places.get("mask", table.location),
            )
            for name in table.mask
            if columns is not None and name.lower() not in known
        ]
    return findings


def _no_event_time(table: SourceTable, watermark: Watermark, names: Sequence[str]) -> Finding:
    return Finding(
        "unknown-column",
        f"the watermark of source `{table.full_name}` names {quoted(watermark.column)}, which is not a column",
        f"the columns of the source are {quoted_list(names)}",
        did_you_mean(watermark.column, names),
        table.places.get("watermark", table.location),
    )


def _wrong_event_time(table: SourceTable, column: Column, columns: Sequence[Column]) -> Finding:
    others = [other.name for other in columns if other.type == TIMESTAMP]
    instead = f"declare it on {quoted(others[0])}, which is a timestamp; or " if others else ""
    return Finding(
        "watermark-type",
        f"{quoted(column.name)} cannot have a watermark: its type is {column.type}",
        "Spark supports watermarks only on timestamps",
        f"{instead}convert it in a model, for example to_timestamp({column.in_sql}) as {column.in_sql}, and "
        "declare the watermark where you read that model",
        table.places.get("watermark", table.location),
    )


@rule("socket-available-now")
def socket_sources(compiled: CompiledProject) -> list[Finding]:
    """A socket source stores no rows, so it reads 0 rows with `available_now`."""
    sockets = {node: table for node, table in compiled.sources.items() if table.format == "socket"}
    return [
        Finding(
            "socket-available-now",
            f"`{model.name}` reads socket `{sockets[node].full_name}`, which does not work with available_now",
            "a socket stores no data, so the query would end with 0 rows",
            "use an interval trigger such as '10 seconds', and stop the run with Ctrl-C or --for 60s",
            model.place_of("trigger"),
        )
        for model in compiled.models.values()
        if model.output is not None and model.config.trigger.kind == "available_now"
        for node in sorted(compiled.graph.ancestors(model.unique_id) & sockets.keys())
    ]


def used_sources(compiled: CompiledProject) -> list[SourceTable]:
    """Returns the source tables that some model reads, or the corrupt records of which are written."""
    read = [table for node, table in compiled.sources.items() if compiled.graph.children[node]]
    names = {(table.corrupt_of or table).full_name for table in read}
    return [table for table in compiled.project.sources if table.full_name in names]
