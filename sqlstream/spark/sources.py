"""Readers: a declared source table or seed as a DataFrame."""

from __future__ import annotations

import json
import re
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
        path = f"{_escape(self.root)}/{seed.path}"
        plain = self.session.read.options(**_CSV).csv(path)
        inferred = self.session.read.options(**_CSV).csv(path, inferSchema=True).schema
        declared = {column.name.lower(): column.data_type for column in seed.columns if column.data_type}
        types = {field.name: declared.get(field.name.lower(), field.dataType.simpleString()) for field in inferred}
        return plain.select(*(plain[quoted(name)].cast(types[name]).alias(name) for name in plain.columns))

    def _path(self, table: SourceTable) -> str:
        return join(_escape(self.root), table.path or "")


_CSV = {"header": "true", "multiLine": "true", "escape": '"'}
"""CSV as RFC 4180 and every spreadsheet write it: a quote within quotes is doubled, and a line may break there."""


def _escape(root: Path) -> str:
    """The project's folder as Spark takes it: what is a pattern in the path of a source is just a name here."""
    return re.sub(r"([][{}*?\\])", r"\\\1", str(root))


def quoted(name: str) -> str:
    """Returns `name` in back-quotes, as one identifier of Spark's."""
    return "`" + name.replace("`", "``") + "`"


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
