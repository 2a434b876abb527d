"""One table of Delta Lake or Iceberg: its name in SQL, its columns, and how they change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sqlstream.compiler.digest import digest
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.spark.reading.type_text import type_text
from sqlstream.spark.storage.storage import storage_for
from sqlstream.state.ledger import OutputColumn

DELTA_LOG = "_delta_log"
"""The folder that makes a folder a Delta table."""

ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"


@dataclass(frozen=True)
class FormatTable:
    """A table in one session. `name` is its name in SQL, `path` its folder if a path identifies it."""

    session: SparkSession
    format: str
    name: str
    path: str | None = None

    def columns(self) -> tuple[OutputColumn, ...] | None:
        """Returns the columns, None if the table does not exist. Raises: Spark's errors."""
        if not self.exists():
            return None
        schema = self.session.table(self.name).schema
        return tuple(OutputColumn(field.name, type_text(field.dataType)) for field in schema)

    def exists(self) -> bool:
        """Returns whether the table exists. Raises: Spark's errors."""
        if self.format == "delta" and self.path is not None:  # Delta's catalog raises for a missing folder
            storage, path = storage_for(self.path, self.session)
            return storage.exists(f"{path}/{DELTA_LOG}")
        return self.session.catalog.tableExists(self.name)

    def partitions(self) -> tuple[str, ...]:
        """Returns the columns that partition the table, without Iceberg's transforms. Raises: Spark's errors."""
        return tuple(column.name for column in self.session.catalog.listColumns(self.name) if column.isPartition)

    def create(
        self, columns: Sequence[OutputColumn], partition_by: Sequence[str], properties: Mapping[str, str]
    ) -> None:
        """Creates the table unless it exists. Raises: Spark's errors."""
        parts = [f"CREATE TABLE IF NOT EXISTS {self.name} ({_ddl(columns)}) USING {self.format}"]
        if partition_by:
            parts.append(f"PARTITIONED BY ({', '.join(map(quote_identifier, partition_by))})")
        if properties:
            pairs = (f"{_literal(name)} = {_literal(value)}" for name, value in properties.items())
            parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
        self.session.sql(" ".join(parts))

    def add(self, columns: Sequence[OutputColumn]) -> None:
        """Adds columns, which are null in the existing rows. Raises: Spark's errors."""
        if columns:
            self.session.sql(f"ALTER TABLE {self.name} ADD COLUMNS ({_ddl(columns)})")

    def align(self, frame: DataFrame) -> DataFrame:
        """Returns `frame` with the columns of the table, in their order and with their types; missing ones are null.

        Iceberg's streaming writer takes no other order. Raises: Spark's errors.
        """
        names = {name.lower(): name for name in frame.columns}
        columns = []
        for field in self.session.table(self.name).schema:
            name = names.get(field.name.lower())
            value = lit(None) if name is None else col(quote_identifier(name))
            columns.append(value.cast(field.dataType).alias(field.name))
        return frame.select(columns)

    def stream(self, writer: DataStreamWriter) -> StreamingQuery:
        """Starts a query that writes to the table, which exists. Raises: Spark's errors."""
        writer = writer.format(self.format)
        is_delta_path = self.format == "delta" and self.path is not None
        return writer.start(self.path) if is_delta_path else writer.toTable(self.name)


def table_at(session: SparkSession, format_name: str, *, path: str) -> FormatTable:
    """Returns the table in the folder `path`. Changes the settings of `session` for Iceberg, which finds tables only
    in catalogs: the folder above `path` becomes one.
    """
    if format_name == "delta":
        return FormatTable(session, format_name, f"delta.{quote_identifier(path, always=True)}", path)
    parent, _, name = path.rpartition("/")
    catalog = f"sqlstream_{digest(parent)[:12]}"
    settings = {
        "": ICEBERG_CATALOG,
        ".type": "hadoop",
        ".warehouse": parent or "/",
        ".cache-enabled": "false",  # another process may change the table
    }
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
    return FormatTable(session, format_name, f"{catalog}.{quote_identifier(name, always=True)}", path)


def _ddl(columns: Sequence[OutputColumn]) -> str:
    return ", ".join(f"{quote_identifier(column.name)} {column.type}" for column in columns)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
