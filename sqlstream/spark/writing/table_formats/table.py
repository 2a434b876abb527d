"""One table of Delta Lake or Iceberg: its name in SQL, its columns, and the batches in its commits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, lit, struct, transform, transform_values, when
from pyspark.sql.functions import max as max_
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from sqlstream.compiler.digest import digest
from sqlstream.compiler.sql.sql_text import quote_identifier, quote_text
from sqlstream.project.files.paths import escaped
from sqlstream.spark.reading.type_text import type_text
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import MicroBatch
from sqlstream.state.ledger import OutputColumn
from sqlstream.state.output_columns import missing_fields, widening

DELTA_LOG = "_delta_log"
"""The folder that makes a folder a Delta table."""

ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"

QUERY, BATCH = "sqlstream.query-id", "sqlstream.batch-id"
"""The properties of an Iceberg snapshot that say which batch it is."""


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
        self,
        columns: Sequence[OutputColumn],
        partition_by: Sequence[str],
        properties: Mapping[str, str],
        required: Collection[str] = (),
    ) -> None:
        """Creates the table unless it exists. It allows no null in the `required` columns, which are in lower case.

        Raises: Spark's errors.
        """
        ddl = (f"{column.ddl}{' NOT NULL' if column.name.lower() in required else ''}" for column in columns)
        parts = [f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(ddl)}) USING {self.format}"]
        if partition_by:
            parts.append(f"PARTITIONED BY ({', '.join(map(quote_identifier, partition_by))})")
        if properties:
            pairs = (f"{quote_text(name)} = {quote_text(value)}" for name, value in properties.items())
            parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
        self.session.sql(" ".join(parts))

    def extend(self, columns: Sequence[OutputColumn]) -> None:
        """Adds those of `columns` that the table, which exists, does not have, and the fields that structs within its
        columns lack. They are null in the existing rows. Raises: Spark's errors.
        """
        existing = {column.name.lower(): column for column in self.columns() or ()}
        added = [column.ddl for column in columns if column.name.lower() not in existing]
        for column in columns:
            if column.name.lower() in existing:
                fields = missing_fields(existing[column.name.lower()], column)
                added += [f"{path} {type_}" for path, type_ in fields]
        if added:
            self.session.sql(f"ALTER TABLE {self.name} ADD COLUMNS ({', '.join(added)})")

    def widen(self, columns: Sequence[OutputColumn]) -> None:
        """Gives columns of the table, which exists, the types that they have in `columns`, where these are wider.

        Raises: Spark's errors.
        """
        existing = {column.name.lower(): column for column in self.columns() or ()}
        for column in columns:
            stored = existing.get(column.name.lower())
            if stored is not None and stored.type != column.type:
                for statement in widening(self.name, stored, column, self.format):
                    self.session.sql(statement)

    def align(self, frame: DataFrame) -> DataFrame:
        """Returns `frame` with the columns of the table and the fields of their structs, in their order and with their
        types; missing ones are null.

        Iceberg's streaming writer takes no other order. Raises: Spark's errors.
        """
        return frame.select(_fields_of(frame.schema, self.session.table(self.name).schema, _column_named))

    def stream(self, writer: DataStreamWriter) -> StreamingQuery:
        """Starts a query that writes to the table, which exists. Raises: Spark's errors."""
        writer = writer.format(self.format)
        is_delta_path = self.format == "delta" and self.path is not None
        return writer.start(self.path) if is_delta_path else writer.toTable(self.name)


def _column_named(name: str) -> Column:
    return col(quote_identifier(name))


def _fields_of(given: StructType, wanted: StructType, value_of: Callable[[str], Column]) -> list[Column]:
    """Returns the fields of `wanted`, each with the value of the field of `given` that has its name. `value_of` returns
    the value of a field of `given`.
    """
    fields = {field.name.lower(): field for field in given}
    columns = []
    for field in wanted:
        found = fields.get(field.name.lower())
        value = lit(None) if found is None else _by_name(value_of(found.name), found.dataType, field.dataType)
        columns.append(value.cast(field.dataType).alias(field.name))
    return columns


def _by_name(value: Column, given: DataType, wanted: DataType) -> Column:
    """Returns a value with the fields of `wanted` in its structs. A cast would find them by their position."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        if [name.lower() for name in given.names] != [name.lower() for name in wanted.names] or _has_structs(given):
            fields = _fields_of(given, wanted, value.getField)
            return when(value.isNotNull(), struct(*fields))
    elif isinstance(given, ArrayType) and isinstance(wanted, ArrayType) and _has_structs(given):
        return transform(value, lambda item: _by_name(item, given.elementType, wanted.elementType))
    elif isinstance(given, MapType) and isinstance(wanted, MapType) and _has_structs(given):
        return transform_values(value, lambda _, item: _by_name(item, given.valueType, wanted.valueType))
    return value


def _has_structs(type_: DataType) -> bool:
    """Returns whether a value of the type has structs within it."""
    inner = [field.dataType for field in type_] if isinstance(type_, StructType) else []
    inner += [type_.elementType] if isinstance(type_, ArrayType) else []
    inner += [type_.valueType] if isinstance(type_, MapType) else []
    return any(isinstance(each, StructType) or _has_structs(each) for each in inner)


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


_DELTA = {"spark.databricks.delta.write.txnAppId": "query_id", "spark.databricks.delta.write.txnVersion": "id"}
"""Delta writes these into the commit of a MERGE, and ignores a MERGE with a version that it has seen already
(https://docs.delta.io/latest/delta-streaming.html#idempotent-table-writes-in-foreachbatch).
"""


_ICEBERG = {
    f"spark.sql.iceberg.snapshot-property.{QUERY}": "query_id",
    f"spark.sql.iceberg.snapshot-property.{BATCH}": "id",
}


_SPARK_QUERY = "spark.sql.streaming.queryId"
"""The property for the query in snapshots of Iceberg's own streaming writer."""


@contextmanager
def committing(session: SparkSession, format_name: str, batch: MicroBatch) -> Iterator[None]:
    """Makes the commits of `session` inside the block record `batch`."""
    settings: Mapping[str, str] = _DELTA if format_name == "delta" else _ICEBERG
    try:
        for name, attribute in settings.items():
            session.conf.set(name, str(getattr(batch, attribute)))
        yield
    finally:
        for name in settings:
            session.conf.unset(name)


def last_batch(session: SparkSession, table: str, query_id: str) -> int:
    """Returns the last batch of a query that an Iceberg table has, -1 without one. Raises: Spark's errors.

    Ignores snapshots that a rollback has removed from the table's history.
    """
    batches = current_snapshots(session, table).where(col("summary")[QUERY] == query_id)
    (found,) = batches.select(col("summary")[BATCH].cast("bigint").alias("id")).agg(max_("id")).collect()
    return -1 if found[0] is None else int(found[0])


def current_snapshots(session: SparkSession, table: str) -> DataFrame:
    """Returns `summary` and `committed_at` of each snapshot in the history of an Iceberg table."""
    current = session.table(f"{table}.history").where("is_current_ancestor").select("snapshot_id")
    return session.table(f"{table}.snapshots").join(current, "snapshot_id").select("summary", "committed_at")


def query_of_snapshot() -> Column:
    """Returns the column with the id of the streaming query that wrote a snapshot, null if none did."""
    return coalesce(col("summary")[QUERY], col("summary")[_SPARK_QUERY])


def queries_in(table: FormatTable) -> list[str]:
    """Returns Spark's ids of the streaming queries that have written batches to a table, which exists.

    Delta Lake keeps them in its log, Iceberg as long as their snapshots exist. Raises: Spark's errors, OSError.
    """
    if table.format == "delta":
        return _delta_queries(table)
    ids = query_of_snapshot().alias("id")
    rows = current_snapshots(table.session, table.name).select(ids).distinct().collect()
    return sorted(str(row["id"]) for row in rows if row["id"] is not None)


def _delta_queries(table: FormatTable) -> list[str]:
    """Reads the transactions in the last checkpoint of the log and in the commits after it, as
    https://github.com/delta-io/delta/blob/master/PROTOCOL.md describes them.
    """
    session = table.session
    path = table.path or str(session.sql(f"DESCRIBE DETAIL {table.name}").collect()[0]["location"])
    files, log = storage_for(f"{path}/{DELTA_LOG}", session)
    last = int(json.loads(files.read_text(f"{log}/_last_checkpoint") or "{}").get("version", -1))
    names, checkpoint = files.names(log), f"{last:020d}.checkpoint."
    texts = [name for name in names if _COMMIT.fullmatch(name) and int(name[:20]) > last]
    # a checkpoint is one Parquet file, several, or since version 2 of checkpoints perhaps JSON
    texts += [name for name in names if name.startswith(checkpoint) and name.endswith(".json")]
    # commits of large tables have many lines, and few of them are transactions
    lines = [line for name in texts for line in (files.read_text(f"{log}/{name}") or "").splitlines()]
    actions = (json.loads(line) for line in lines if '"txn"' in line)
    found = {str(action["txn"]["appId"]) for action in actions if "txn" in action}
    parts = [name for name in names if name.startswith(checkpoint) and name.endswith(".parquet")]
    if parts:
        paths = [escaped(f"{path}/{DELTA_LOG}/{name}") for name in parts]  # Spark reads paths as patterns
        rows = session.read.schema("txn struct<appId: string>").parquet(*paths).where("txn is not null")
        found |= {str(row["txn"]["appId"]) for row in rows.collect()}
    return sorted(found)


_COMMIT = re.compile(r"\d{20}\.json")
"""The name of a commit in the log of a Delta table."""
