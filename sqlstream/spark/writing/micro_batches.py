"""Sinks that sqlstream writes itself, one micro-batch at a time: what each batch is, and the keys of its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakSet

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    array_compact,
    array_contains,
    coalesce,
    col,
    concat,
    count,
    expr,
    lit,
    lower,
    max_by,
    raise_error,
    spark_partition_id,
    struct,
    to_json,
    when,
)
from pyspark.sql.functions import filter as filter_
from pyspark.sql.functions import sum as sum_
from pyspark.sql.types import ArrayType, CalendarIntervalType, DataType, MapType, StructType, VariantType

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.databases.statements import is_listed
from sqlstream.project.formats.format import TIME_PARSER
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted_list
from sqlstream.spark.jvm.cluster import parallelism
from sqlstream.spark.jvm.internals import free_rows
from sqlstream.spark.secrets import Secrets


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch of a query.

    `id` counts from 0 in each checkpoint. `query_id` is Spark's id of the query: it stays the same as long as the query
    resumes on its checkpoint, and a new checkpoint has another. After a failure Spark runs the last batch again, with
    the same `id` and the same rows, so a sink that remembers (query_id, id) writes each batch once.
    `options` are those of the sink, with the values of secrets; `repr` leaves them out.
    """

    id: int
    query_id: str
    model: str
    output_mode: str
    unique_key: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)


class BatchWriter(Protocol):
    """Writes the micro-batches of one query to one sink."""

    def open(self) -> None:
        """Prepares the sink, for example creates a table. Called once, before the query starts or restarts.

        Raises: FindingsError, Spark's errors.
        """

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows of `batch`. Called for each batch in order, again for a batch that Spark repeats.

        A writer that promises `exactly once` ignores a batch that it has written before, or replaces what it has
        written. Raises: any error, which ends the query.
        """


@dataclass(frozen=True)
class SinkTarget:
    """What a writer writes to: the sink of `model`, with the table or absolute path `path` if it has one.

    `frame` has the query's columns and session; do not run it.
    """

    model: CompiledModel
    output: Output
    path: str | None
    frame: DataFrame
    secrets: Secrets

    @property
    def options(self) -> dict[str, str]:
        """The options of the sink, with the values of secrets, and the defaults of its format."""
        time_parser = self.frame.sparkSession.conf.get(TIME_PARSER) or ""
        return format_of(self.output.format).writer_options(self.secrets.resolve_all(self.output.options), time_parser)

    def batch(self, number: int, query_id: str) -> MicroBatch:
        """Returns the micro-batch `number` of the query."""
        config = self.model.config
        model = self.model.file.rows_of or self.model.name
        return MicroBatch(number, query_id, model, config.output_mode, config.unique_key, self.options)


@contextmanager
def cached(rows: DataFrame) -> Iterator[None]:
    """Caches the rows while the body runs, if no caller keeps them. Spark then knows their size, by which it chooses
    how to join them.
    """
    if rows.is_cached or rows in _KEPT:
        yield
        return
    rows.persist()
    try:
        yield
    finally:
        rows.unpersist()


@contextmanager
def computed_once(rows: DataFrame) -> Iterator[DataFrame]:
    """Returns the rows for several uses in the body. The first use computes them, and Spark keeps them as they are;
    rows that a caller keeps are returned unchanged.

    To encode them, as `cached` does, takes as long as to compute simple rows again. If an executor is lost with its
    rows, the use ends with an error: computed again, the rows could be others.
    """
    if rows.is_cached or rows in _KEPT:
        yield rows
        return
    kept = rows.localCheckpoint(eager=False)
    _KEPT.add(kept)
    try:
        yield kept
    finally:
        free_rows(kept)


_KEPT: WeakSet[DataFrame] = WeakSet()
"""The rows of `computed_once`, for a nested use."""


def in_few_files(rows: DataFrame, output: Output) -> DataFrame:
    """Returns the rows in so many partitions that a batch has at most `files_per_batch` files, or so many in each
    folder of `partition_by`: a task of Spark writes a file for each folder of which it has rows.
    """
    most, facts = output.files_per_batch, format_of(output.format)
    if most is None or not (facts.writes_files or facts.is_table or output.table is not None):
        return rows
    if not output.partition_by:
        return rows.repartition(most)
    folders, tasks = map(column_of, output.partition_by), max(most, parallelism(rows.sparkSession))
    if most == 1:
        return rows.repartition(tasks, *folders)
    part = "sqlstream: part of a folder"
    parts = rows.withColumn(part, spark_partition_id() % most)
    return parts.repartition(tasks, *folders, column_of(part)).drop(part)


def discard(rows: DataFrame) -> None:
    """Runs the rows of a repeated batch without writing them: the state and the watermark of the batch then advance.

    Raises: Spark's errors.
    """
    rows.write.format("noop").mode("overwrite").save()


WriterFactory = Callable[[SinkTarget], BatchWriter | None]
"""Returns the writer for a sink, None if Spark's own writer serves it."""


class LastRowsWriter:
    """Gives `writer` only the last row of each key in a batch, as `sequence_by` orders them."""

    def __init__(self, writer: BatchWriter, config: ModelConfig) -> None:
        self.writer, self._config = writer, config

    def open(self) -> None:
        self.writer.open()

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the last rows. Raises: RefusedRowsError for a row without a sequence; any error, which ends the
        query.
        """
        config = self._config
        keys = (*config.unique_key, *config.sequence_by) if config.history else config.unique_key
        with refusing_no_sequence():
            last = last_rows(rows, keys, config.sequence_by, config.delete_when, config.unavailable_columns)
            self.writer.write(last, batch)


class FunctionWriter:
    """Calls a function of the project with the rows and the `MicroBatch`."""

    def __init__(self, function: Callable[[DataFrame, MicroBatch], object]) -> None:
        self._function = function

    def open(self) -> None:
        """Does nothing."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Calls the function."""
        self._function(rows, batch)


class RefusedRowsError(Exception):
    """A batch cannot be applied, now or later: its rows contradict the keys of the sink."""


def count_keys(rows: DataFrame, keys: Sequence[str]) -> int:
    """Returns the number of rows, of which no two have the same values in the columns `keys`.

    Runs one Spark job. Raises: RefusedRowsError, Spark's errors.
    """
    columns = [column_of(key) for key in keys]
    # one job answers both: how many rows there are, and which key most of them share
    same = rows.groupBy(*columns).agg(count(lit(1)).alias("n")).select("n", to_json(struct(*columns)).alias("key"))
    (found,) = same.agg(sum_("n"), max_by(struct("n", "key"), "n")).collect()
    if found[1] is not None and found[1][0] > 1:
        raise RefusedRowsError(
            f"{found[1][0]} rows of the batch have the same unique_key {found[1][1]}, so it is not defined which of "
            "them the table should keep; set sequence_by to the columns that order the rows, or add the columns that "
            "distinguish them to unique_key"
        )
    return found[0] or 0  # the sum of no rows is null


_NO_SEQUENCE = re.compile(
    r"a row has null in sequence_by .*?: leave such rows out, or use coalesce\(\); its unique_key is \{.*?\}"
)
"""The message with which Spark ends a job that finds a row without a sequence."""


@contextmanager
def refusing_no_sequence() -> Iterator[None]:
    """Raises: RefusedRowsError for a row without a sequence, which a job on `last_rows` in the body has found."""
    try:
        yield
    except Exception as error:
        found = _NO_SEQUENCE.search(str(error))
        if found is None:
            raise
        raise RefusedRowsError(found.group()) from error


def last_rows(
    rows: DataFrame,
    keys: Sequence[str],
    sequence: Sequence[str],
    delete_when: str | None = None,
    unavailable: str | None = None,
) -> DataFrame:
    """Returns for each combination of values in the columns `keys` the row with the greatest values of `sequence`.

    Of several such rows the one that meets `delete_when` counts, and then the one with the greatest values in the other
    columns that can be compared, in their order: the result does not depend on the order of the rows. A job on the rows
    ends with an error if a row has null in `sequence`.

    A value that the row does not have, because its column `unavailable` lists the name, is that of the last earlier row
    with one, null after a deletion. The list keeps the names without such a row.
    """
    named = quoted_list(sequence)
    text = f"a row has null in sequence_by {named}: leave such rows out, or use coalesce(); its unique_key is "
    refused = raise_error(concat(lit(text), to_json(struct(*map(column_of, keys)))))
    order = [when(column_of(name).isNull(), refused).otherwise(column_of(name)) for name in sequence]
    order += [] if delete_when is None else [coalesce(expr(delete_when), lit(False))]
    order += [col(quote_identifier(field.name)) for field in rows.schema if _is_ordered(field.dataType)]
    last = max_by(struct("*"), struct(*order)).alias("row")
    if unavailable is None:
        return rows.groupBy(*map(column_of, keys)).agg(last).select("row.*")
    fixed = {name.lower() for name in (*keys, *sequence, unavailable)}
    filled = [name for name in rows.columns if name.lower() not in fixed]
    deletes = lit(False) if delete_when is None else coalesce(expr(delete_when), lit(False))
    known = {}
    for number, name in enumerate(filled):  # max_by leaves out rows whose order is null
        has_value = deletes | ~expr(is_listed(name, quote_identifier(unavailable)))
        value = struct(when(~deletes, column_of(name)).alias("value"))
        known[name] = max_by(value, when(has_value, struct(*order))).alias(f"known_{number}")
    found = rows.groupBy(*map(column_of, keys)).agg(last, *known.values())
    columns = {name: col("row").getField(name) for name in rows.columns}
    (listed,) = (name for name in rows.columns if name.lower() == unavailable.lower())
    names = []
    for number, name in enumerate(filled):
        earlier = col(f"known_{number}")
        names.append(when(earlier.isNotNull(), name.lower()))
        is_filled = expr(is_listed(name, f"row.{quote_identifier(listed)}")) & earlier.isNotNull()
        columns[name] = when(is_filled, earlier.getField("value")).otherwise(columns[name])
    columns[listed] = filter_(columns[listed], lambda item: ~array_contains(array_compact(array(*names)), lower(item)))
    return found.select(*(value.alias(name) for name, value in columns.items()))


def _is_ordered(kind: DataType) -> bool:
    """Returns whether Spark can compare values of a type."""
    if isinstance(kind, ArrayType):
        return _is_ordered(kind.elementType)
    if isinstance(kind, StructType):
        return all(_is_ordered(field.dataType) for field in kind)
    return not isinstance(kind, MapType | VariantType | CalendarIntervalType)


def column_of(name: str) -> Column:
    """Returns the column with this name, in which a dot is part of the name."""
    return col(quote_identifier(name))
