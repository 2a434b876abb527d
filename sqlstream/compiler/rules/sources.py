"""Rules about declared sources."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.node_ids import source_id
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding
from sqlstream.project.fixed_columns import BINARY_FILE, fixed_columns
from sqlstream.project.type_parser import TypeSyntaxError, parse_schema
from sqlstream.project.types import Struct, read_json_schema
from sqlstream.project.values import Schema, SourceTable

SCHEMA_FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "xml"})
"""File streams that Spark does not start without a schema
(https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html#schema-inference-and-partition-of-streaming-dataframesdatasets)."""

PATH_FORMATS = SCHEMA_FORMATS | {"text", "binaryFile"}
STREAMS_ONLY = frozenset({"rate", "rate-micro-batch", "socket"})
INFERENCE = "spark.sql.streaming.schemaInference"


@rule("missing-schema", "invalid-value", "missing-path")
def missing_schemas(compiled: CompiledProject) -> list[Finding]:
    """A stream of files needs a path, and a declared schema unless the target has Spark infer it."""
    inferred = str(compiled.project.target.spark.get(INFERENCE, "false")).lower() == "true"
    findings: list[Finding] = []
    for table in used_sources(compiled):
        if table.mode == "stream" and table.format in SCHEMA_FORMATS and table.schema is None and not inferred:
            findings.append(_missing_schema(table))
        if any(name.lower() == "path" for name in table.options):
            findings.append(_path_option(table))
        elif table.format in PATH_FORMATS and not table.path:
            findings.append(_missing_path(table))
    return findings


def _missing_schema(table: SourceTable) -> Finding:
    return Finding(
        "missing-schema",
        f"source `{table.full_name}` has no schema",
        f"Spark starts a stream of {table.format} files only with a declared schema",
        'declare its columns: or schema:, for example schema: "id bigint, ts timestamp"',
        table.location,
    )


def _missing_path(table: SourceTable) -> Finding:
    return Finding(
        "missing-path",
        f"source `{table.full_name}` has no path",
        f"a source of {table.format} files reads a folder",
        "add path: with a folder or a pattern of files",
        table.location,
    )


def _path_option(table: SourceTable) -> Finding:
    return Finding(
        "invalid-value",
        f"source `{table.full_name}` has its path among the options",
        "an option goes to Spark as it is: the path would lie under the working directory, whoever runs this",
        "say it as the table's own key, path:",
        table.places.get("options", table.location),
    )


@rule("fixed-schema", "invalid-value")
def fixed_schemas(compiled: CompiledProject) -> list[Finding]:
    """The generators and sockets have columns of their own, and only as streams; so have binary files."""
    findings: list[Finding] = []
    for table in used_sources(compiled):
        if table.format in STREAMS_ONLY:
            findings += [_fixed(table, fixed_columns(table) or "", "")] if table.schema is not None else []
            findings += [_stream_only(table)] if table.mode == "batch" else []
        elif (
            table.format.lower() == "binaryfile" and table.schema is not None and not _has_binary_columns(table.schema)
        ):
            findings.append(_fixed(table, BINARY_FILE, ", in this order; columns of the folders' names may be added"))
    return findings


def _fixed(table: SourceTable, columns: str, rest: str) -> Finding:
    return Finding(
        "fixed-schema",
        f"source `{table.full_name}` declares columns, and its format {table.format} has its own",
        f"they are {columns}{rest}",
        "leave out the schema, and the data_type of columns",
        table.schema.location if table.schema else table.location,
    )


def _stream_only(table: SourceTable) -> Finding:
    return Finding(
        "invalid-value",
        f"source `{table.full_name}` has mode: batch, and {table.format} can only be a stream",
        f"Spark has no static table of format {table.format}",
        "delete `mode`, or read a file",
        table.places.get("mode", table.location),
    )


def _has_binary_columns(schema: Schema) -> bool:
    """Whether the four columns of binary files are there, in their order, or nobody can tell."""
    wanted = parse_schema(BINARY_FILE)
    try:
        found = read_json_schema(schema.json) if schema.json is not None else parse_schema(schema.ddl or "")
    except TypeSyntaxError:
        return True
    if not isinstance(found, Struct) or not isinstance(wanted, Struct):
        return True
    names = {field.name for field in wanted.fields}
    own = [(field.name, field.type) for field in found.fields if field.name in names]
    return own == [(field.name, field.type) for field in wanted.fields]


@rule("socket-available-now")
def socket_sources(compiled: CompiledProject) -> list[Finding]:
    """Under `available_now` a socket source reads 0 rows: it keeps nothing that could be available."""
    name = compiled.project.name
    sockets = {source_id(name, table): table for table in used_sources(compiled) if table.format == "socket"}
    return [
        Finding(
            "socket-available-now",
            f"`{model.name}` reads socket `{sockets[node].full_name}`, which available_now cannot read",
            "a socket keeps nothing that is already there, so Spark would end with 0 rows",
            "use an interval trigger such as '10 seconds', and stop the run with Ctrl-C or --for 60s",
            model.place_of("trigger"),
        )
        for model in compiled.models.values()
        if model.output is not None and model.config.trigger.kind == "available_now"
        for node in sorted(compiled.graph.ancestors(model.unique_id) & sockets.keys())
    ]


def used_sources(compiled: CompiledProject) -> list[SourceTable]:
    """Returns the source tables that some model reads, or the corrupt records of which are written."""
    name = compiled.project.name
    read = [table for table in compiled.project.sources if compiled.graph.children[source_id(name, table)]]
    names = {(table.corrupt_of or table).full_name for table in read}
    return [table for table in compiled.project.sources if table.full_name in names]
