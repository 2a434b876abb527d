"""Writes queries to tables of Delta Lake and Iceberg.

Spark's own streaming writers append rows, and replace all of them in complete mode: Delta's records the query and the
batch in each commit, Iceberg's in each snapshot, and both ignore a batch that they have. sqlstream applies keys itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import coalesce, expr, lit

from sqlstream.compiler.compiled import Output
from sqlstream.compiler.rules.contracts import required_columns
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.configuration.trigger import interval_seconds
from sqlstream.project.databases.row_history import (
    ARRIVED_AT,
    AT,
    CHANGES,
    IS_CURRENT,
    IS_DELETED,
    NAMES,
    VALID_FROM,
    VALID_TO,
    RowHistory,
)
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.reading.type_text import type_text
from sqlstream.spark.writing.micro_batches import (
    BatchWriter,
    MicroBatch,
    SinkTarget,
    cached,
    column_of,
    count_keys,
    discard,
    in_few_files,
)
from sqlstream.spark.writing.table_formats.merging import (
    DELETES,
    Tombstones,
    merge_sql,
    same_keys,
    spelled,
    table_beside,
)
from sqlstream.spark.writing.table_formats.table import FormatTable, committing, last_batch, table_at
from sqlstream.state.ledger import OutputColumn

VIEW = "sqlstream_batch"
"""The temp view of a batch, in the session of its query."""


def table_of(target: SinkTarget) -> FormatTable | None:
    """Returns the table of a sink of Delta Lake or Iceberg, None for other sinks. It may not exist yet."""
    output, session = target.output, target.frame.sparkSession
    if not format_of(output.format).is_table or target.path is None:
        return None
    if output.table is not None:
        return FormatTable(session, output.format, target.path)
    return table_at(session, output.format, path=target.path)


def table_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer of a batch model, and of a stream with keys; None if Spark's own writer serves the stream."""
    table, model = table_of(target), target.model
    if table is None:
        return None
    if not model.streaming:
        return ReplacingWriter(target, table)
    if not model.config.merges_rows:
        return None
    return HistoryWriter(target, table) if model.config.history else MergingWriter(target, table)


def prepare_table(target: SinkTarget, table: FormatTable) -> DataFrame:
    """Returns the rows for Spark's own streaming writer, after it has created the table or added new columns to it.

    In complete mode rows that meet `delete_when` are left out. Raises: Spark's errors.
    """
    create_or_extend(target, table)
    return table.align(_kept(target, target.frame))


def _kept(target: SinkTarget, rows: DataFrame) -> DataFrame:
    """Returns the rows that do not meet `delete_when`."""
    condition = target.model.config.delete_when
    return rows if condition is None else rows.where(~_condition(condition))


def create_or_extend(target: SinkTarget, table: FormatTable, more: Sequence[OutputColumn] = ()) -> None:
    """Creates the table with the columns of the query and `more`, or adds those that it lacks.

    Raises: Spark's errors.
    """
    columns = [*(OutputColumn(field.name, type_text(field.dataType)) for field in target.frame.schema), *more]
    if not table.exists():
        # Iceberg refuses rows in which Spark cannot prove that there is no null
        required = required_columns(target.model) if table.format == "delta" else ()
        table.create(columns, target.output.partition_by, _properties(target.output), required)
    else:
        table.extend(columns)


class _RecordingWriter:
    """Changes a table with each batch in one commit, which records the batch."""

    def __init__(self, target: SinkTarget, table: FormatTable) -> None:
        self._target, self._table = target, table
        self._is_first = True

    def open(self) -> None:
        """Creates the table, or adds columns. Raises: Spark's errors."""
        create_or_extend(self._target, self._table)

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Applies the rows, unless the table has the batch. Raises: RefusedRowsError, Spark's errors."""
        if self._is_first and self._has(rows.sparkSession, batch):
            discard(rows)
            return
        self._apply(rows, batch)
        self._is_first = False

    def _has(self, session: SparkSession, batch: MicroBatch) -> bool:
        """Returns whether an Iceberg table has the batch; only the first batch of a query can be a repeated one. Delta
        checks that in the commit itself.
        """
        return self._table.format == "iceberg" and last_batch(session, self._table.name, batch.query_id) >= batch.id

    def _apply(self, rows: DataFrame, batch: MicroBatch) -> None:
        raise NotImplementedError


class MergingWriter(_RecordingWriter):
    """Replaces and deletes rows by `unique_key`. With `sequence_by` a row that comes too late changes nothing."""

    def open(self) -> None:
        """Creates the table and that of its deleted keys, or adds columns. Raises: Spark's errors."""
        super().open()
        if self._keeps_deletes:
            self._tombstones(self._table, [column.name for column in self._table.columns() or ()]).prepare()

    @property
    def _keeps_deletes(self) -> bool:
        config = self._target.model.config
        return bool(config.sequence_by) and config.delete_when is not None

    def _tombstones(self, table: FormatTable, columns: Sequence[str]) -> Tombstones:
        config = self._target.model.config
        keys, sequence = spelled(config.unique_key, columns), spelled(config.sequence_by, columns)
        return Tombstones(table, keys, sequence, interval_seconds(config.keep_deletes_for))

    def _apply(self, rows: DataFrame, batch: MicroBatch) -> None:
        with cached(rows):  # read once for the keys, and up to three times by MERGE
            if count_keys(rows, batch.unique_key):
                self._merge(rows, batch)

    def _merge(self, rows: DataFrame, batch: MicroBatch) -> None:
        # Spark runs a batch in a clone of the query's session: its views and settings must be made there
        session = rows.sparkSession
        table, config = replace(self._table, session=session), self._target.model.config
        source = table.align(rows)
        columns, condition = source.columns, config.delete_when
        source = source.withColumn(DELETES, lit(False) if condition is None else _condition(condition))
        source.createOrReplaceTempView(VIEW)
        merged = VIEW
        if self._keeps_deletes:
            # a batch that runs again after this finds its own deletes, which change nothing
            tombstones = self._tombstones(table, columns)
            tombstones.add(source.where(DELETES))
            merged = tombstones.newer_rows(VIEW)
        with committing(session, self._table.format, batch):
            keys, sequence = config.unique_key, config.sequence_by
            unavailable = config.unavailable_columns or ""
            merge = merge_sql(self._table.name, merged, columns, keys, rows.columns, sequence, unavailable=unavailable)
            session.sql(merge)


class HistoryWriter(_RecordingWriter):
    """Keeps the versions of each row: adds the changes of a batch to those in a table beside the table, and replaces
    the versions of their keys.
    """

    def __init__(self, target: SinkTarget, table: FormatTable) -> None:
        super().__init__(target, table)
        self._config, self._names = target.model.config, target.frame.columns
        self._keys = spelled(self._config.unique_key, self._names)
        (self._at,) = spelled(self._config.sequence_by, self._names)

    def open(self) -> None:
        """Creates the table and that of its changes, or adds columns. A column with a wider type in the table has it in
        the columns that sqlstream adds, too. Raises: Spark's errors.
        """
        fields = [OutputColumn(field.name, type_text(field.dataType)) for field in self._target.frame.schema]
        (at,) = [column.type for column in fields if column.name == self._at]
        ends = [OutputColumn(VALID_FROM, at), OutputColumn(VALID_TO, at), OutputColumn(IS_CURRENT, "boolean")]
        create_or_extend(self._target, self._table, ends)
        self._table.widen(ends)
        added = [OutputColumn(AT, at), OutputColumn(IS_DELETED, "boolean"), OutputColumn(ARRIVED_AT, "bigint")]
        changes = self._changes(self._table)
        # in the types and the order of the table, with whose rows they are compared
        stored = {column.name.lower(): column for column in self._table.columns() or ()}
        columns = [stored[field.name.lower()] for field in fields]
        if changes.exists():
            changes.extend(columns)
            changes.widen([*columns, *added])
        else:
            changes.create([*columns, *added], (), {})

    def _changes(self, table: FormatTable) -> FormatTable:
        return table_beside(table, CHANGES, self._names)

    def _apply(self, rows: DataFrame, batch: MicroBatch) -> None:
        config, session = self._config, rows.sparkSession
        with cached(rows):  # read once for the keys, and several times by the statements
            if not count_keys(rows, (*self._keys, self._at)):
                return
            table, now = replace(self._table, session=session), int(time.time())
            deleted = lit(False) if config.delete_when is None else _condition(config.delete_when)
            typed = table.align(rows).select(*map(column_of, self._names))
            marks = {AT: column_of(self._at), IS_DELETED: deleted, ARRIVED_AT: lit(now).cast("bigint")}
            changes = typed.withColumns(marks)
            changes.createOrReplaceTempView(VIEW)
            stored, columns = self._changes(table).name, changes.columns
            forget = f"target.{ARRIVED_AT} < {now - int(interval_seconds(config.keep_deletes_for))}"
            session.sql(merge_sql(stored, VIEW, columns, (*self._keys, AT), columns, deletes=False, forget=forget))
            with committing(session, self._table.format, batch):
                columns = [*self._names, VALID_FROM, VALID_TO, IS_CURRENT]
                source = self._versions(table, stored)
                session.sql(merge_sql(self._table.name, source, columns, (*self._keys, VALID_FROM), columns))

    def _versions(self, table: FormatTable, changes: str) -> str:
        """Returns the query for the new versions of the keys of a batch, and for those to delete."""
        names, keys = self._names, self._keys
        others = [name for name in names if name not in (*keys, self._at)]
        quoted = {name: quote_identifier(name, always=True) for name in (*names, VALID_FROM, VALID_TO, IS_CURRENT)}
        history = RowHistory(
            keys=tuple(quoted[key] for key in keys),
            columns=tuple(quoted[name] for name in names),
            tracked=tuple(quoted[name] for name in spelled(self._config.track_columns, names) or others),
            **NAMES,
            differs="NOT ({} <=> {})",
            same="{} <=> {}",
        )
        asked = f"(SELECT DISTINCT {', '.join(history.keys)} FROM {VIEW})"
        versions = history.versions(history.changes(changes, table.name, asked))
        gone = (
            f"SELECT {', '.join(quoted.values())} FROM {table.name} AS target WHERE EXISTS (SELECT 1 FROM {asked} AS "
            f"source WHERE {same_keys(keys)}) AND NOT EXISTS (SELECT 1 FROM ({versions}) AS source WHERE "
            f"{same_keys((*keys, VALID_FROM))})"
        )
        return f"(SELECT *, false AS {DELETES} FROM ({versions}) UNION ALL SELECT *, true FROM ({gone}))"


class CommittingWriter(_RecordingWriter):
    """Does what Spark's own streaming writer does, for a query that writes to several sinks: adds the rows of each
    batch, or replaces all rows in complete mode.
    """

    def _apply(self, rows: DataFrame, batch: MicroBatch) -> None:
        aligned = self._table.align(_kept(self._target, rows))
        writer = in_few_files(aligned, self._target.output).writeTo(self._table.name)
        with committing(rows.sparkSession, self._table.format, batch):
            if batch.output_mode == "complete":
                writer.overwrite(lit(True))
            else:
                writer.append()


class ReplacingWriter:
    """Replaces all rows and columns of a table in one commit; the table keeps its earlier versions."""

    def __init__(self, target: SinkTarget, table: FormatTable) -> None:
        self._target, self._table = target, table

    def open(self) -> None:
        """Does nothing: the write creates the table."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Replaces the table. Rows that meet `delete_when` are left out. Raises: Spark's errors."""
        output = self._target.output
        kept = in_few_files(_kept(self._target, rows), output)
        if self._table.format == "delta":
            self._overwrite(kept, batch)
            return
        writer = kept.writeTo(self._table.name).using("iceberg").options(**batch.options)
        for name, value in _properties(output).items():
            writer = writer.tableProperty(name, value)
        partitions = [column_of(name) for name in output.partition_by]
        (writer.partitionedBy(*partitions) if partitions else writer).createOrReplace()

    def _overwrite(self, rows: DataFrame, batch: MicroBatch) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").options(**batch.options)
        if self._target.output.partition_by:
            writer = writer.partitionBy(*self._target.output.partition_by)
        if self._table.path is not None:
            writer.save(self._table.path)
        else:
            writer.saveAsTable(self._table.name)


def _condition(sql: str) -> Column:
    """Returns the condition, false where it is null."""
    return coalesce(expr(sql), lit(False))


def _properties(output: Output) -> dict[str, str]:
    """Returns the options of a sink that are properties of its table. Secrets never are: tables are read by others."""
    starts = format_of(output.format).properties
    return {name: value for name, value in output.options.items() if isinstance(value, str) and name.startswith(starts)}
