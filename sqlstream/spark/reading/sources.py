"""Readers: a declared source table as a DataFrame."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import DataType, StructType

from sqlstream.errors import Finding
from sqlstream.project.files.paths import join
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import Schema, SourceTable
from sqlstream.spark.reading.corrupt import FAILING, corrupt_rows, good_rows, handling, separating_options, with_corrupt
from sqlstream.spark.reading.dropped import new_count
from sqlstream.spark.reading.python_code import load_name
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.progress import DROPPED

TABLE = "table"
"""The format of sources and sinks that are tables of Spark's catalog."""


@dataclass(frozen=True)
class Readers:
    """Makes readers in one query's session. `root` is the project's folder, under which relative paths lie; `dropped`
    are the counts of corrupt records that the static tables opened so far drop.
    """

    session: SparkSession
    secrets: Secrets
    root: Path
    dropped: list[Observation] = field(default_factory=list, init=False, repr=False, compare=False)

    def open_stream(self, table: SourceTable, name: str | None) -> DataFrame:
        """Returns a new streaming reader of `table`, known to the checkpoint as `name` where this Spark can name
        sources, with the source's own watermark. Raises: Spark's errors.
        """
        reader = self.session.readStream.options(**self.secrets.resolve_all(table.options))
        if name is not None:
            reader = reader.name(name)
        frame = self._load(reader, table, DROPPED + (name or uuid4().hex))
        if table.watermark is None:
            return frame
        return frame.withWatermark(table.watermark.column, table.watermark.delay)

    def open_table(self, table: SourceTable) -> DataFrame:
        """Returns `table` as static rows. Raises: Spark's errors."""
        reader = self.session.read.options(**self.secrets.resolve_all(table.options))
        if handling(table, self.session) != "drop":
            return self._load(reader, table, None)
        self.dropped.append(new_count())
        return self._load(reader, table, self.dropped[-1])

    def missing_secrets(self, table: SourceTable) -> list[Finding]:
        """Returns a finding for each secret that the options of `table` name and the environment does not hold."""
        return self.secrets.missing(table.options, table.places.get("options", table.location))

    def _load(
        self, reader: DataStreamReader | DataFrameReader, table: SourceTable, metric: str | Observation | None
    ) -> DataFrame:
        """What `reader` reads of `table`, with the columns that are declared or that its format has. `metric` counts
        corrupt records that are dropped.
        """
        if table.corrupt_of is not None:
            return corrupt_rows(*self._load_separating(reader, table.corrupt_of))
        schema = _schema_of(table)
        if table.format == TABLE:
            return _declared(_typed(reader.table(table.table or ""), schema, table), schema)
        handled = handling(table, self.session)
        if handled in ("drop", "quarantine"):
            frame, names = self._load_separating(reader, table)
            return _declared(good_rows(frame, names, metric if handled == "drop" else None), schema)
        reader = reader.format(self._format(table)).options(**(FAILING if handled == "fail" else {}))
        if schema is not None and (table.schema is not None or format_of(table.format).schema == "extended"):
            reader = reader.schema(schema)
        return _declared(reader.load(self._path(table)) if table.path else reader.load(), schema)

    def _load_separating(
        self, reader: DataStreamReader | DataFrameReader, table: SourceTable
    ) -> tuple[DataFrame, Sequence[str]]:
        """All records of `table`, with the column for corrupt ones, and the names of the columns that are declared."""
        schema = _struct(_schema_of(table))
        reader = reader.format(self._format(table)).options(**separating_options(table))
        return reader.schema(with_corrupt(schema)).load(self._path(table)), schema.names

    def _format(self, table: SourceTable) -> str:
        """The name under which Spark knows the format of `table`; the project's own class is registered first."""
        if table.python is None:
            return table.format
        made = load_name(table.python, table.places.get("class", table.location))
        self.session.dataSource.register(made)
        return str(made.name())

    def _path(self, table: SourceTable) -> str:
        return join(escaped(self.root), table.path or "")


def escaped(path: Path | str) -> str:
    """Returns a file or folder of the project as Spark takes it: what is a pattern in the path of a source is just a
    name here.
    """
    return re.sub(r"([][{}*?\\])", r"\\\1", str(path))


def quoted(name: str) -> str:
    """Returns `name` in back-quotes, as one identifier of Spark's."""
    return "`" + name.replace("`", "``") + "`"


def declared_schema(table: SourceTable) -> StructType | None:
    """Returns the columns of `table` as a reader gives them, None where neither it nor its format declares any.

    Raises: Spark's errors; SchemaError.
    """
    schema = _schema_of(table)
    return None if schema is None else _struct(schema)


def _schema_of(table: SourceTable) -> StructType | str | None:
    if table.schema is not None:
        return _spark_schema(table.schema)
    return format_of(table.format).columns_with(table.options)


def _declared(frame: DataFrame, schema: StructType | str | None) -> DataFrame:
    """The columns that `schema` declares, in its order, where there is one.

    Spark adds those that it finds in the names of folders (`day=2024-01-01`): what a source has would then depend on
    the data, and nobody could tell without it what a model gives.
    """
    if schema is None:
        return frame
    names = _struct(schema).names
    return frame if frame.columns == names else frame.select(*map(quoted, names))


def _typed(frame: DataFrame, schema: StructType | str | None, table: SourceTable) -> DataFrame:
    """Returns `frame`, the rows of a table of the catalog, whose own types no reader changes. Raises: SchemaError."""
    own = {column.name.lower(): column.dataType.simpleString() for column in frame.schema.fields}
    for column in _struct(schema).fields:
        wanted, has = column.dataType.simpleString(), own.get(column.name.lower())
        if has != wanted:
            said = (
                f"no column `{column.name}`"
                if has is None
                else f"`{column.name}` as {has}, but the model needs {wanted}"
            )
            raise SchemaError(f"the table {table.table} has {said}")
    return frame


def _struct(schema: StructType | str | None) -> StructType:
    """The columns of `schema`, none for None. Raises: Spark's errors."""
    declared = DataType.fromDDL(schema) if isinstance(schema, str) else schema
    return declared if isinstance(declared, StructType) else StructType()


class SchemaError(ValueError):
    """A schema file's JSON is no schema of Spark's, or a table has other columns; the message is one line."""


def _spark_schema(schema: Schema) -> StructType | str:
    if schema.json is None:
        return schema.ddl or ""
    try:
        return StructType.fromJson(json.loads(schema.json))
    except (AttributeError, KeyError, TypeError) as error:
        # PySpark takes the JSON's form for granted
        raise SchemaError(f"a field of the JSON lacks {error}, or has it in another form") from error
