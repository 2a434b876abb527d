"""Reads declared source tables as DataFrames."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from pyspark.sql import Column, DataFrame, DataFrameReader, Observation, Row, SparkSession
from pyspark.sql.functions import coalesce, col, lit, nullif, struct
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import DataType, StructType

from sqlstream.compiler.origins import ORIGIN
from sqlstream.compiler.rewrite.data_tests import SOURCE_TYPE
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.databases.jdbc_options import reader_options
from sqlstream.project.declarations.schema_changes import RESCUED, rescues
from sqlstream.project.files.paths import escaped, has_special_characters, is_pattern, join
from sqlstream.project.formats.file_options import CHANGE_FEED
from sqlstream.project.formats.formats import format_of
from sqlstream.project.messages.message_format import METADATA
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.fresh_files import refuse_doubled_files
from sqlstream.spark.reading.corrupt import (
    FAILING,
    ColumnChecks,
    Counters,
    corrupt_policy,
    corrupt_rows,
    good_rows,
    new_counters,
    path_of_file,
    permissive_options,
    with_corrupt,
)
from sqlstream.spark.reading.file_lines import lines_of
from sqlstream.spark.reading.message_formats.parsers import DESCRIPTOR
from sqlstream.spark.reading.messages import read_messages
from sqlstream.spark.reading.python_code import import_name
from sqlstream.spark.reading.type_text import type_text, without_todays_times
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.hadoop import HadoopStorage, hadoop_file_system
from sqlstream.state.batch_logs import SINK_LOG
from sqlstream.state.runs.progress import DROPPED, NEW_FIELDS

TABLE = "table"
"""The format of sources and sinks that are tables of Spark's catalog."""

RECORDS_CHANGES = "delta.enableChangeDataFeed"
"""The property of a table of Delta Lake that records the changes of its rows."""

FILES_AT_ONCE = 5
"""The files of a batch whose paths all look like patterns. Spark lists the files of such a batch once for each of them,
up to 32 paths in the driver, and more in a slow job.
"""


@dataclass(frozen=True)
class Readers:
    """Creates readers in the session of a query. Relative paths start at `root`, the project's folder. `counters` are
    those of the static tables opened so far. Records of streams are counted if `counts`.
    With `caches`, Spark caches tables with `refresh: run` at their first use: `cached`. The caller unpersists them.
    """

    session: SparkSession
    secrets: Secrets
    root: Path
    counts: bool = True
    caches: bool = False
    counters: list[Observation] = field(default_factory=list, init=False, repr=False, compare=False)
    cached: list[DataFrame] = field(default_factory=list, init=False, repr=False, compare=False)

    def open_stream(self, table: SourceTable, name: str | None) -> DataFrame:
        """Returns a new streaming reader of `table` with the source's watermark. `name` identifies it in the
        checkpoint; None if this Spark cannot name sources. Raises: Spark's errors.
        """
        reader = self.session.readStream.options(**self.secrets.resolve_all(table.options))
        if name is not None:
            reader = reader.name(name)
        if table.stored is not None and not table.stored.exists:
            path = table.path or ""
            if format_of(table.format).is_file and has_special_characters(path):
                self._relative(path, table)  # now, not after the query that writes it has ended
            # the query that writes it has not started: a stream without rows, of a source without input
            return reader.format("rate").load().selectExpr(*_nulls(table)).where("false")
        frame = self._load(reader, table, self._counters(table, name))
        if table.watermark is None:
            return frame
        return frame.withWatermark(table.watermark.column, table.watermark.delay)

    def open_table(self, table: SourceTable) -> DataFrame:
        """Returns `table` as static rows. Raises: Spark's errors."""
        if table.stored is not None and not table.stored.exists:
            return self.session.range(0).selectExpr(*_nulls(table))
        options = self.secrets.resolve_all(table.options)
        reader = self.session.read.options(**(reader_options(options) if table.format == "jdbc" else options))
        if self.caches and table.refresh == "run":
            self.cached.append(self._load(reader, table, Counters()).persist())
            return self.cached[-1]
        counters = new_counters(table, drops=corrupt_policy(table, self.session) == "drop")
        found = (counters.dropped, counters.new_fields)
        self.counters.extend(each for each in found if isinstance(each, Observation))
        return self._load(reader, table, counters)

    def _counters(self, table: SourceTable, name: str | None) -> Counters:
        """Returns the counters of a stream, whose reader has a name or none."""
        if not self.counts:
            return Counters()
        reader = name or uuid4().hex
        return Counters(DROPPED + reader, f"{NEW_FIELDS}{table.full_name}/{reader}")

    def missing_secrets(self, table: SourceTable) -> list[Finding]:
        """Returns a finding for each secret in the options of `table` and its values that is not set."""
        missing = self.secrets.missing(table.options, table.locations.get("options", table.location))
        if table.messages is not None:
            place = table.locations.get("value_options", table.location)
            missing += self.secrets.missing(table.messages.options, place)
        return missing

    def parse_messages(self, frame: DataFrame, table: SourceTable, counters: Counters) -> DataFrame:
        """Returns the rows of a Kafka source in `frame`, which has the columns of Spark's reader. `counters` count
        messages.
        """
        if table.messages is None:
            return _declared(frame, _schema_of(table))
        options = self.secrets.resolve_all(table.messages.options)
        if DESCRIPTOR in options:
            options[DESCRIPTOR] = join(str(self.root), options[DESCRIPTOR])
        return read_messages(frame, table, table.messages, options, counters)

    def _load(self, reader: DataStreamReader | DataFrameReader, table: SourceTable, counters: Counters) -> DataFrame:
        """Returns `table` with the columns that it or its format declares. `counters` count records."""
        if table.messages is not None:
            return self.parse_messages(reader.format(table.format).load(), table, counters)
        if (table.corrupt_of or table).schema_changes is not None:
            return self._load_lines(reader, table, counters)
        checks = ColumnChecks(table.corrupt_of or table, self.secrets.resolve_all(table.options), self.session)
        # the table of corrupt records: what its source leaves out
        if table.corrupt_of is not None:
            declared = _struct(_schema_of(table.corrupt_of))
            frame = self._load_permissive(reader, table.corrupt_of, checks.parsed(declared))
            return corrupt_rows(frame, declared.names, _reason(checks, declared, frame), table.corrupt_of.format)
        schema = _schema_of(table)
        if has_own_columns(table):
            return _declared(_check_types(self._open_own(reader, table), schema, table), schema)
        policy = corrupt_policy(table, self.session)
        if policy in ("drop", "quarantine"):
            declared = _struct(schema)
            frame = self._load_permissive(reader, table, checks.parsed(declared))
            counted = counters.dropped if policy == "drop" else None
            rows = good_rows(frame, declared.names, _reason(checks, declared, frame), counted)
            return _typed(rows, checks, schema)
        reader = reader.format(self._format(table)).options(**(FAILING if policy == "fail" else {}))
        declared = _struct(schema)
        # a format with fixed columns refuses a schema
        if schema is not None and (table.spark_schema is not None or format_of(table.format).schema == "extended"):
            reader = reader.schema(checks.parsed(declared))

        def load(reader: DataStreamReader | DataFrameReader) -> DataFrame:
            return self._load_path(reader, table) if table.path else reader.load()

        frame = load(reader)
        if schema is None and format_of(table.format).is_parsed and not frame.isStreaming:
            # Spark infers a time of today from a text such as 08:30
            known = without_todays_times(frame.schema, lambda texts: load(reader.schema(texts)))
            return frame if known == frame.schema else load(reader.schema(known))
        if policy == "fail" and checks.problems(_columns(declared), frame):
            return frame.select(*checks.checked(declared, frame))
        return _typed(frame, checks, schema)

    def _load_lines(
        self, reader: DataStreamReader | DataFrameReader, table: SourceTable, counters: Counters
    ) -> DataFrame:
        """Returns a table of files that looks for new fields, or the corrupt records of one."""
        whole, options = table.corrupt_of or table, self.secrets.resolve_all(table.options)
        names = [each for each in _struct(_schema_of(whole)) if each.name != RESCUED or not rescues(whole)]
        lines = lines_of(whole, StructType(names), options, ColumnChecks(whole, options, self.session))

        def load(options: Mapping[str, str], schema: StructType) -> DataFrame:
            return self._load_path(reader.format("csv").options(**options).schema(schema), whole)

        frame = lines.open(load)
        if table.corrupt_of is not None:
            return lines.corrupt(frame)
        return lines.rows(frame, corrupt_policy(table, self.session) or "fail", counters)

    def _open_own(self, reader: DataStreamReader | DataFrameReader, table: SourceTable) -> DataFrame:
        """Returns a table that has its own columns, by its name in the catalog or its path, which is no pattern."""
        path = join(str(self.root), table.path or "")
        frame = reader.table(table.table) if table.table is not None else reader.format(table.format).load(path)
        ends = {name.lower() for name in table.options} & {"endingversion", "endingtimestamp"}
        if table.reads_changes and (frame.isStreaming or not ends):  # without an end, Delta reads up to the present
            self._check_changes(table)
        return frame

    def _check_changes(self, table: SourceTable) -> None:
        """Raises: FindingsError if a table does not record its changes: a stream would fail in its first batch."""
        name = delta_name(table, str(self.root))
        properties = delta_detail(self.session, name)["properties"]
        if str(properties.get(RECORDS_CHANGES)).lower() == "true":
            return
        options = {f"options.{name.lower()}" for name in CHANGE_FEED}
        finding = Finding(
            "source-unreadable",
            f"{table.described} cannot read the changes of {table.table or table.path}",
            f"the table does not record them: its property {RECORDS_CHANGES} is not true",
            f"run `ALTER TABLE {name} SET TBLPROPERTIES ({RECORDS_CHANGES} = true)`; it records changes from then on",
            next((place for key, place in table.locations.items() if key.lower() in options), table.location),
        )
        raise FindingsError([finding])

    def _load_permissive(
        self, reader: DataStreamReader | DataFrameReader, table: SourceTable, schema: StructType
    ) -> DataFrame:
        """Returns all records of `table` with the columns of `schema`, and the column for corrupt ones."""
        reader = reader.format(self._format(table)).options(**permissive_options(table))
        return self._load_path(reader.schema(with_corrupt(schema)), table)

    def _format(self, table: SourceTable) -> str:
        """Returns Spark's name of the format of `table`; registers the class if it is in the project's Python code."""
        if table.python is None:
            return table.format
        data_source = import_name(table.python, table.locations.get("class", table.location))
        self.session.dataSource.register(data_source)
        return str(data_source.name())

    def _load_path(self, reader: DataStreamReader | DataFrameReader, table: SourceTable) -> DataFrame:
        """Returns the rows at the path of `table`, which can be a pattern, except for the folder of the project.

        Raises: FindingsError if Spark would read files of a sink that are not part of its output.
        """
        root, given = str(self.root), table.path or ""
        path = join(root, given)
        if not format_of(table.format).is_file:
            return reader.load(path if table.python else self._pattern(path))
        if isinstance(reader, DataFrameReader):
            return self._load_static(reader, table, path)
        return refuse_doubled_files(self._load_stream(reader, table, path))

    def _load_static(self, reader: DataFrameReader, table: SourceTable, path: str) -> DataFrame:
        if self._is_pattern(table):
            return reader.options(**self._base_path(table, path)).load(self._pattern(path))
        if not has_special_characters(path):
            return reader.load(path)
        return reader.option("__globPaths__", "false").load(path)  # DataSource.GLOB_PATHS_KEY: no pattern

    def _load_stream(self, reader: DataStreamReader, table: SourceTable, path: str) -> DataFrame:
        if self._is_pattern(table):
            return reader.options(**self._base_path(table, path)).load(self._pattern(path))
        if not has_special_characters(path):
            return reader.load(path)
        if table.stored is not None or HadoopStorage(self.session).exists(f"{path}/{SINK_LOG}"):
            return reader.load(self._relative(path, table))
        # without a base path, Spark finds no partitions below a pattern
        reader = reader.option("basePath", path)
        if not {name.lower() for name in table.options} & {"maxfilespertrigger", "maxbytespertrigger"}:
            reader = reader.option("maxFilesPerTrigger", FILES_AT_ONCE)
        return reader.load(escaped(path))

    def _is_pattern(self, table: SourceTable) -> bool:
        return table.stored is None and is_pattern(table.path or "", str(self.root), HadoopStorage(self.session).exists)

    def _pattern(self, path: str) -> str:
        """Returns the absolute `path`, in which the folder of the project is no pattern."""
        root = f"{self.root}/"
        return escaped(root) + path.removeprefix(root) if path.startswith(root) else path

    def _base_path(self, table: SourceTable, path: str) -> dict[str, str]:
        """Returns the option with the folder in front of a pattern if the folders that match it are partitions of
        declared columns: without it, Spark ignores the names of these folders, and the columns are null.

        Raises: FindingsError if other files or folders match, too; Spark refuses them beside partitions.
        """
        schema, options = _schema_of(table), {name.lower(): value for name, value in table.options.items()}
        if schema is None or "basepath" in options or options.get("recursivefilelookup") == "true":
            return {}
        inside = path.removeprefix(f"{self.root}/")
        names = inside.split("/")
        first = next(at for at, name in enumerate(names) if has_special_characters(name))
        base = path[: len(path) - len(inside)] + "/".join(names[:first])
        columns = ",".join(escaped(name).replace(",", r"\,") for name in _struct(schema).names)
        system, make_path = hadoop_file_system(self.session, path)
        for at in range(first, len(names)):
            before = "/".join([self._pattern(base), *names[first:at]])
            partitions = len(system.globStatus(make_path(f"{before}/{{{columns}}}=*")) or ())
            if not partitions or not (names[at] == "*" or "=" in names[at]):
                continue
            # Spark reads no files or folders whose names begin with a dot or an underscore
            if names[at] == "*" and len(system.globStatus(make_path(f"{before}/[^._]*"))) > partitions:
                raise FindingsError([self._mixed_folders(table, base)])
            return {"basePath": base.rstrip("/") or "/"}
        return {}

    def _mixed_folders(self, table: SourceTable, base: str) -> Finding:
        return Finding(
            "source-unreadable",
            f"source `{table.full_name}` has partitions and other files below {base}",
            "a pattern matches both, so Spark ignores the names of the partitions, and their columns would be null",
            "move the other files; or set the option recursiveFileLookup: true if the files contain these columns",
            table.locations.get("path", table.location),
        )

    def _relative(self, path: str, table: SourceTable) -> str:
        """Returns `path` relative to the working directory of the JVM: Spark does not look into the log of a sink below
        a path that looks like a pattern. Raises: FindingsError if the relative path also looks like one.
        """
        system, _ = hadoop_file_system(self.session, path)
        place = str(system.getWorkingDirectory().toUri().getPath())
        relative = os.path.relpath(path, place)
        if path.startswith("/") and system.getScheme() == "file" and not has_special_characters(relative):
            return relative
        finding = Finding(
            "path-characters",
            f"{table.described} cannot be read as a stream at {path}",
            "Spark reads the characters [ ] { } * ? \\ in a path as a pattern, and then does not know which files are "
            "the output of a query",
            "rename the folder; if only the folder of the project has such characters, run sqlstream in that folder",
            table.locations.get("path", table.location),
        )
        raise FindingsError([finding])


def with_origin(frame: DataFrame, table: SourceTable) -> DataFrame:
    """Returns the rows of a reader of `table`, a stream of files or Kafka, with the place of each in its source."""
    places: dict[str, Column] = {"name": lit(table.full_name)}
    if table.format == "kafka":
        for name in ("topic", "partition", "offset"):
            places[name] = col(METADATA[name].name if table.messages is not None else name)
    else:
        places["file"] = nullif(path_of_file(frame), lit(""))
    fields = _struct(SOURCE_TYPE)
    values = (places.get(each.name, lit(None)).cast(each.dataType).alias(each.name) for each in fields)
    return frame.select("*", struct(*values).alias(ORIGIN))


def delta_name(table: SourceTable, root: str) -> str:
    """Returns the name of a table of Delta Lake in SQL. A relative path starts at `root`."""
    return table.table or f"delta.{quoted(join(root, table.path or ''))}"


def delta_detail(session: SparkSession, name: str) -> Row:
    """Returns the `id`, `location`, `properties` and so on of a table of Delta Lake. Raises: Spark's errors."""
    (detail,) = session.sql(f"DESCRIBE DETAIL {name}").collect()
    return detail


def has_own_columns(table: SourceTable) -> bool:
    """Returns whether `table` is a table that records its columns, which a declared schema must match."""
    return table.format == TABLE or format_of(table.format).is_table


def quoted(name: str) -> str:
    """Returns `name` in backquotes, as one SQL identifier."""
    return quote_identifier(name, always=True)


def declared_schema(table: SourceTable) -> StructType | None:
    """Returns the columns that a reader of `table` returns, None if neither `table` nor its format declares them.

    Raises: Spark's errors; SchemaError.
    """
    schema = _schema_of(table)
    return None if schema is None else _struct(schema)


def _schema_of(table: SourceTable) -> StructType | str | None:
    if table.spark_schema is not None:
        return _spark_schema(table.spark_schema)
    return format_of(table.format).columns_with(table.options)


def _declared(frame: DataFrame, schema: StructType | str | None) -> DataFrame:
    """Returns only the columns that `schema` declares, in its order; all columns without a schema.

    This removes the columns that Spark finds in folder names (`day=2024-01-01`): the compiler could not know them
    without the data.
    """
    if schema is None:
        return frame
    names = _struct(schema).names
    return frame if frame.columns == names else frame.select(*map(quoted, names))


def _columns(schema: StructType) -> list[tuple[str, Column, DataType]]:
    return [(each.name, col(quoted(each.name)), each.dataType) for each in schema]


def _typed(frame: DataFrame, checks: ColumnChecks, schema: StructType | str | None) -> DataFrame:
    """Returns only the columns that `schema` declares, with their types."""
    declared = _struct(schema)
    if checks.parsed(declared) == declared:
        return _declared(frame, schema)
    return frame.select(*(checks.typed(value, kind).alias(name) for name, value, kind in _columns(declared)))


def _reason(checks: ColumnChecks, schema: StructType, frame: DataFrame) -> Column | None:
    """Returns why a record of `frame` that Spark can read is corrupt, None if none can be."""
    reasons = checks.problems(_columns(schema), frame)
    return coalesce(*reasons) if reasons else None


def _check_types(frame: DataFrame, schema: StructType | str | None, table: SourceTable) -> DataFrame:
    """Returns `frame`, a table whose types a reader cannot change. Raises: SchemaError if they differ."""
    name = table.table or table.path
    types = {column.name.lower(): column.dataType.simpleString() for column in frame.schema.fields}
    for column in _struct(schema).fields:
        wanted, found = column.dataType.simpleString(), types.get(column.name.lower())
        if found is None:
            raise SchemaError(f"the table {name} has no column `{column.name}`")
        if found != wanted:
            raise SchemaError(f"the table {name} has `{column.name}` as {found}, but the model needs {wanted}")
    return frame


def _struct(schema: StructType | str | None) -> StructType:
    """Returns the columns of `schema`, none for None. Raises: Spark's errors."""
    declared = DataType.fromDDL(schema) if isinstance(schema, str) else schema
    return declared if isinstance(declared, StructType) else StructType()


def _nulls(table: SourceTable) -> list[str]:
    """Returns the columns of a stored output that does not exist yet, as expressions. Raises: Spark's errors."""
    fields = _struct(_schema_of(table)).fields
    return [f"cast(null as {type_text(field.dataType)}) as {quoted(field.name)}" for field in fields]


class SchemaError(ValueError):
    """A schema file does not contain a Spark schema, or a table has other columns; the message is one line."""


def _spark_schema(schema: Schema) -> StructType | str:
    if schema.json is None:
        return schema.ddl or ""
    try:
        return StructType.fromJson(json.loads(schema.json))
    except (AttributeError, KeyError, TypeError) as error:
        # PySpark does not check the structure of the JSON
        raise SchemaError(f"a field of the JSON has no {error}, or its structure is wrong") from error
