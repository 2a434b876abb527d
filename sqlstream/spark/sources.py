"""Readers: a declared source table as a DataFrame."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from sqlstream.errors import Finding
from sqlstream.project.paths import join
from sqlstream.project.values import Schema, SourceTable
from sqlstream.spark.secrets import Secrets


@dataclass(frozen=True)
class Readers:
    """Makes readers in one query's session. `root` is the project's folder, under which relative paths lie."""

    session: SparkSession
    secrets: Secrets
    root: Path

    def open_stream(self, table: SourceTable, name: str | None) -> DataFrame:
        """Returns a new streaming reader of `table`, known to the checkpoint as `name` where this Spark can name
        sources, with the source's own watermark. Raises: Spark's errors.
        """
        reader = self.session.readStream.format(table.format).options(**self.secrets.resolve_all(table.options))
        if table.schema is not None:
            reader = reader.schema(_spark_schema(table.schema))
        if name is not None:
            reader = reader.name(name)
        frame = _declared(reader.load(self._path(table)) if table.path else reader.load(), table)
        if table.watermark is None:
            return frame
        return frame.withWatermark(table.watermark.column, table.watermark.delay)

    def open_table(self, table: SourceTable) -> DataFrame:
        """Returns `table` as static rows. Raises: Spark's errors."""
        reader = self.session.read.format(table.format).options(**self.secrets.resolve_all(table.options))
        if table.schema is not None:
            reader = reader.schema(_spark_schema(table.schema))
        return _declared(reader.load(self._path(table)) if table.path else reader.load(), table)

    def missing_secrets(self, table: SourceTable) -> list[Finding]:
        """Returns a finding for each secret that the options of `table` name and the environment does not hold."""
        return self.secrets.missing(table.options, table.places.get("options", table.location))

    def _path(self, table: SourceTable) -> str:
        return join(escaped(self.root), table.path or "")


def escaped(path: Path) -> str:
    """Returns a file or folder of the project as Spark takes it: what is a pattern in the path of a source is just a
    name here.
    """
    return re.sub(r"([][{}*?\\])", r"\\\1", str(path))


def quoted(name: str) -> str:
    """Returns `name` in back-quotes, as one identifier of Spark's."""
    return "`" + name.replace("`", "``") + "`"


def _declared(frame: DataFrame, table: SourceTable) -> DataFrame:
    """The columns that the schema of `table` declares, in its order, where it has one.

    Spark adds those that it finds in the names of folders (`day=2024-01-01`): what a source has would then depend on
    the data, and nobody could tell without it what a model gives.
    """
    if table.schema is None:
        return frame
    schema = _spark_schema(table.schema)
    declared = DataType.fromDDL(schema) if isinstance(schema, str) else schema
    names = declared.names if isinstance(declared, StructType) else frame.columns
    return frame if frame.columns == names else frame.select(*map(quoted, names))


class SchemaError(ValueError):
    """A schema file's JSON is no schema of Spark's; the message is one line."""


def _spark_schema(schema: Schema) -> StructType | str:
    if schema.json is None:
        return schema.ddl or ""
    try:
        return StructType.fromJson(json.loads(schema.json))
    except (AttributeError, KeyError, TypeError) as error:
        # PySpark takes the JSON's form for granted
        raise SchemaError(f"a field of the JSON lacks {error}, or has it in another form") from error
