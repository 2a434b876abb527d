"""Rules about declared sources."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.declared import source_columns
from sqlstream.compiler.flow.type_rules import TIMESTAMP, may_be_event_time
from sqlstream.compiler.graph import source_id
from sqlstream.compiler.rules.options import has_path_option
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule, source_rule
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.configuration.trigger import AVAILABLE_NOW
from sqlstream.project.formats.format import BATCH, BATCHES, STREAM, STREAMS
from sqlstream.project.formats.formats import format_of
from sqlstream.project.messages.avro import pinned_path
from sqlstream.project.types.data_types import Struct, read_json_schema
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import did_you_mean, quoted, quoted_list

INFERENCE = "spark.sql.streaming.schemaInference"


@source_rule("missing-schema")
def missing_schemas(compiled: CompiledProject, table: SourceTable) -> Problems:
    """A stream of files needs a schema unless the target lets Spark infer it."""
    is_inferred = str(compiled.project.target.spark.get(INFERENCE, "false")).lower() == "true"
    needs_schema = table.mode == STREAM and format_of(table.format).schema == "required"
    if needs_schema and table.spark_schema is None and not is_inferred:
        yield Problem(
            f"source `{table.full_name}` has no schema",
            f"Spark needs a declared schema to stream {table.format} files",
            'declare columns: or schema:, for example schema: "id bigint, ts timestamp"',
            table.location,
        )


@source_rule("missing-schema")
def unpinned_schemas(_: CompiledProject, table: SourceTable) -> Problems:
    """A source with a schema registry needs the registry's schemas in the project."""
    messages = table.messages
    if messages is None or messages.registry is None:
        return
    registry = messages.registry
    pinned = ((registry.subject, messages.avro), (registry.key_subject, messages.key_avro))
    for subject in (subject for subject, avro in pinned if subject is not None and avro is None):
        yield Problem(
            f"the schemas of subject {quoted(subject)} of source `{table.full_name}` are not in the project",
            f"sqlstream reads them from the project, in {pinned_path(subject)}, and not from the registry",
            f"run `sqlstream source schema {table.full_name}`, and commit the file",
            table.locations.get("schema_registry", table.location),
        )


@source_rule("missing-path")
def missing_paths(_: CompiledProject, table: SourceTable) -> Problems:
    """A source of files needs a path."""
    if format_of(table.format).is_file and not table.path and not has_path_option(table.options):
        yield Problem(
            f"source `{table.full_name}` has no path",
            f"a source of {table.format} files reads a folder",
            "add path: with a folder or a file pattern",
            table.location,
        )


@source_rule("invalid-value")
def source_path_options(_: CompiledProject, table: SourceTable) -> Problems:
    """The path of a source is a key, because a path in the options would be relative to the working directory."""
    if has_path_option(table.options):
        yield Problem(
            f"source `{table.full_name}` sets its path as an option",
            "options go to Spark unchanged, so the path would be relative to the working directory",
            "write it as a key of the table, path:",
            table.locations.get("options", table.location),
        )


@source_rule("invalid-value")
def source_modes(_: CompiledProject, table: SourceTable) -> Problems:
    """Generators and sockets are streams only; databases and the state of queries are static only."""
    reads, place = format_of(table.format).reads, table.locations.get("mode", table.location)
    if reads == BATCHES and table.mode == STREAM:
        yield Problem(
            f"source `{table.full_name}` is a stream, but Spark reads {table.format} only in batches",
            "a source is a stream unless it has mode: batch",
            "add mode: batch to the table",
            place,
        )
    if reads == STREAMS and table.mode == BATCH:
        yield Problem(
            f"source `{table.full_name}` has mode: batch, but {table.format} is always a stream",
            f"Spark cannot read {table.format} as a static table",
            "remove `mode`, or read a file",
            place,
        )


@source_rule("fixed-schema")
def fixed_schemas(_: CompiledProject, table: SourceTable) -> Problems:
    """Generators, sockets and binary files have fixed columns."""
    facts, schema = format_of(table.format), table.spark_schema
    if schema is None or table.messages is not None:
        return
    if facts.schema == "fixed":
        columns = facts.columns_with(table.options) or ""
    elif facts.schema == "extended" and not _begins_with(schema, facts.columns):
        columns = f"{facts.columns}, in this order; you may add columns from the folder names"
    else:
        return
    typed = "; to parse the values, add value_format:" if table.format == "kafka" else ""
    yield Problem(
        f"source `{table.full_name}` declares columns, but its format {table.format} has fixed columns",
        f"they are {columns}",
        f"remove the schema, and the data_type of columns{typed}",
        schema.location,
    )


def _begins_with(schema: Schema, columns: str) -> bool:
    """Returns whether `schema` has all of `columns` in their order; true if it cannot be parsed."""
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


@source_rule("unknown-column")
def columns_of_watermarks(compiled: CompiledProject, table: SourceTable) -> Problems:
    """The watermark of a source must be on one of its columns."""
    if table.watermark is None or table.mode != STREAM:
        return
    columns = source_columns(source_id(compiled.project.name, table), table)
    if columns is None:
        return
    name, names = table.watermark.column, [column.name for column in columns]
    # `a.b` can be a field of a struct.
    if name.lower() not in map(str.lower, names) and "." not in name and "`" not in name:
        yield Problem(
            f"the watermark of source `{table.full_name}` names {quoted(name)}, which is not a column",
            f"the columns of the source are {quoted_list(names)}",
            did_you_mean(name, names),
            table.locations.get("watermark", table.location),
        )


@source_rule("watermark-type")
def types_of_watermarks(compiled: CompiledProject, table: SourceTable) -> Problems:
    """The watermark of a source must be on a timestamp column."""
    if table.watermark is None or table.mode != STREAM or not rules_apply(compiled.project.target):
        return
    columns = source_columns(source_id(compiled.project.name, table), table) or ()
    others = [other.name for other in columns if other.type == TIMESTAMP]
    instead = f"declare it on {quoted(others[0])}, which is a timestamp; or " if others else ""
    for column in columns:
        if column.name.lower() == table.watermark.column.lower() and not may_be_event_time(column.type):
            yield Problem(
                f"{quoted(column.name)} cannot have a watermark: its type is {column.type}",
                "Spark supports watermarks only on timestamps",
                f"{instead}convert it in a model, for example to_timestamp({column.in_sql}) as {column.in_sql}, and "
                "declare the watermark where you read that model",
                table.locations.get("watermark", table.location),
            )


@source_rule("unknown-column")
def masked_columns(compiled: CompiledProject, table: SourceTable) -> Problems:
    """A masked column must exist."""
    columns = source_columns(source_id(compiled.project.name, table), table) if table.mask else None
    names = [column.name for column in columns or ()]
    for name in table.mask if columns is not None else ():
        if name.lower() not in map(str.lower, names):
            yield Problem(
                f"source `{table.full_name}` masks {quoted(name)}, which is not a column",
                f"the columns of the source are {quoted_list(names)}",
                did_you_mean(name, names),
                table.locations.get("mask", table.location),
            )


@output_rule("socket-available-now")
def socket_sources(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """A socket source stores no rows, so it reads 0 rows with `available_now`."""
    tables = compiled.tables_of(model.unique_id) if model.config.trigger == AVAILABLE_NOW else ()
    return (
        Problem(
            f"`{model.name}` reads socket `{table.full_name}`, which does not work with available_now",
            "a socket stores no data, so the query would end with 0 rows",
            "use an interval trigger such as '10 seconds', and stop the run with Ctrl-C or --for 60s",
            model.location_of("trigger"),
        )
        for table in tables
        if table.format == "socket"
    )


def used_sources(compiled: CompiledProject) -> list[SourceTable]:
    """Returns the source tables that models read, and the tables whose corrupt records models read."""
    read = [table for node, table in compiled.sources.items() if compiled.graph.children[node]]
    names = {(table.corrupt_of or table).full_name for table in read}
    return [table for table in compiled.project.sources if table.full_name in names]
