"""Readers: a declared source table or seed as a DataFrame."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sqlstream.project.paths import join
from sqlstream.project.values import Schema, Seed, SourceTable
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
        frame = reader.load(self._path(table)) if table.path else reader.load()
        if table.watermark is None:
            return frame
        return frame.withWatermark(table.watermark.column, table.watermark.delay)

    def open_table(self, table: SourceTable) -> DataFrame:
        """Returns `table` as static rows. Raises: Spark's errors."""
        reader = self.session.read.format(table.format).options(**self.secrets.resolve_all(table.options))
        if table.schema is not None:
            reader = reader.schema(_spark_schema(table.schema))
        return reader.load(self._path(table)) if table.path else reader.load()

    def open_seed(self, seed: Seed) -> DataFrame:
        """Returns the rows of a seed: the header names its columns, and types not declared are inferred.

        A declared type is applied by a cast of the text, so that a zip code 01234 declared `string` stays itself.
        """
        path = str(self.root / seed.path)
        plain = self.session.read.csv(path, header=True, enforceSchema=False)
        inferred = self.session.read.csv(path, header=True, inferSchema=True).schema
        types = {field.name: field.dataType.simpleString() for field in inferred}
        types |= {column.name: column.data_type for column in seed.columns if column.data_type}
        expressions = [f"cast(`{name}` as {types[name]}) as `{name}`" for name in plain.columns]
        return plain.selectExpr(*expressions)

    def _path(self, table: SourceTable) -> str:
        return join(str(self.root), table.path or "")


def _spark_schema(schema: Schema) -> StructType | str:
    if schema.json is not None:
        return StructType.fromJson(json.loads(schema.json))
    return schema.ddl or ""
