"""Shows rows of models without starting their queries: reads each source as a static table, each model as a batch.

A batch supports all SQL of a stream: Spark ignores watermarks there, and groups windows and sessions completely. A
source without a batch reader is sampled first, by a query that ends within seconds and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import view_of
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.errors import error_finding, read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record, tables_with_records
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.spark.reading.python_code import import_name
from sqlstream.spark.reading.sources import quoted
from sqlstream.state.shown_rows import ShownRows

NO_BATCH_READER = "is not a valid Spark SQL Data Source"
"""Spark's message about a source without a batch reader, such as `rate` or `socket` (_LEGACY_ERROR_TEMP_1135)."""

NO_SAMPLE_FIX = "check that its input exists, and fix the declaration of the source"
"""The fix if a stream returns no sample."""

STREAM_ONLY_OPTIONS = frozenset({("startingoffsets", "latest"), ("endingoffsets", "latest")})
"""Options of Kafka streams that its batch reader rejects, or with which it reads nothing."""

SAMPLE_PREFIX = "_sqlstream_sample_"
"""The prefix of the names of tables with samples."""

SAMPLE_SECONDS = 10.0
"""Time to wait for rows after the first batch: a source with one row per second returns ten, a silent source none."""

POLL_SECONDS = 0.2
"""The interval of checks whether there are enough rows."""

MAX_ROWS = 1_000
"""Rows to keep unless more are requested, so that a source with a million rows per second does not fill the memory."""

Opened = tuple[SourceTable, DataFrame]


@dataclass(frozen=True)
class SourceSamples:
    """The samples of one session, by full source name. A source is read again only if its declaration changes."""

    notify: Callable[[str], None]
    _taken: dict[str, Opened] = field(default_factory=dict)

    def rows(self, table: SourceTable, stream: DataFrame, wanted: int) -> DataFrame:
        """Returns the first rows of `stream`, a reader of `table`. Raises: Spark's errors."""
        known = self._taken.get(table.full_name)
        if known is None or known[0] != table:
            self.notify(
                f"Reading source {table.full_name} for up to {SAMPLE_SECONDS:.0f} s, because it can only stream"
            )
            name = f"{SAMPLE_PREFIX}{len(self._taken)}"
            self._taken[table.full_name] = known = table, take_sample(stream, name, wanted)
        return known[1]


@dataclass(frozen=True)
class Preview:
    """Opens each node of a compiled project once, as static rows."""

    inputs: NodeReader
    samples: SourceSamples
    limit: int
    _frames: dict[str, DataFrame] = field(default_factory=dict)

    def show(self, node_id: str) -> ShownRows:
        """Returns the first rows of a model, seed or source. Raises: FindingsError, at the node's lines."""
        frame = self._rows(node_id)
        try:
            rows = first_rows(frame, self.limit)
        except SPARK_ERRORS as error:
            raise FindingsError([self._failure(node_id, error)]) from error
        return ShownRows(view_of(node_id), node_id, columns_of(frame), rows, self.limit)

    def _rows(self, node_id: str) -> DataFrame:
        if node_id not in self._frames:
            model = self._compiled.models.get(node_id)
            self._frames[node_id] = self._open(node_id) if model is None else self._analyse(model)
        return self._frames[node_id]

    @property
    def _compiled(self) -> CompiledProject:
        return self.inputs.compiled

    def _analyse(self, model: CompiledModel) -> DataFrame:
        # open all inputs before the first is registered: views of their own inputs can have the same names
        frames = [self._rows(read.node_id) for read in model.reads]
        try:
            return self.inputs.analyse(model, frames)
        finally:
            self.inputs.drop_views(model)

    def _open(self, node_id: str) -> DataFrame:
        table = self.inputs.table(node_id)
        if table is None:
            return self.inputs.open_seed(node_id)
        frame = open_batch(self.inputs, table)
        return self._sample(table) if frame is None else frame

    def _sample(self, table: SourceTable) -> DataFrame:
        stream = self.inputs.open_source(table, None)
        try:
            return self.samples.rows(table, stream, self.limit)
        except SPARK_ERRORS as error:
            raise FindingsError([self.inputs.unreadable(table, error, NO_SAMPLE_FIX)]) from error

    def _failure(self, node_id: str, error: Exception) -> Finding:
        """Returns the finding that the rows of a node cannot be shown, at the model's line if Spark reports it."""
        what = f"the rows of `{view_of(node_id)}` cannot be shown"
        record = read_corrupt_record(error)
        if record is not None:
            place = Place(self._declared(node_id))
            tables = tables_with_records(self._compiled, node_id)
            return corrupt_record_finding(record, what, place, self.inputs.readers.secrets, tables)
        return error_finding(
            error,
            code="query-failed",
            what=what,
            place=self._place(node_id, error),
            secrets=self.inputs.readers.secrets,
            fix="fix the cause, or filter out these rows",
        )

    def _place(self, node_id: str, error: Exception) -> Place:
        """Returns the model's line that Spark's error quotes: Spark reports the text and its offset, not the view."""
        read = read_error(error)
        if read.offset is None or not read.fragment:
            return Place(self._declared(node_id))
        ancestors = self._compiled.upstream(node_id)
        nodes = (node_id, *(node for node in reversed(self._compiled.graph.order) if node in ancestors))
        for node in nodes:
            model = self._compiled.models.get(node)
            if model is not None and model.sql.startswith(read.fragment, read.offset):
                return self._compiled.locate(node, read.offset)
        return Place(self._declared(node_id))

    def _declared(self, node_id: str) -> Location:
        if node_id in self._compiled.models:
            return self._compiled.models[node_id].file.location
        table = self.inputs.table(node_id)
        if table is not None:
            return table.location
        return next(seed.location for seed in self._compiled.project.seeds if view_of(node_id) == seed.name)


def has_batch_reader(table: SourceTable) -> bool:
    """Returns whether `table` can have a batch reader. For formats other than `python` and `delta`, only opening it
    tells.
    """
    if table.mode == "stream" and table.reads_changes:
        # a stream begins with the rows of the table, or at the `latest` version; a batch needs the number of a version
        given = {name.lower(): str(value).lower() for name, value in table.options.items()}
        return "startingtimestamp" in given or given.get("startingversion", "latest") != "latest"
    if table.mode == "batch" or table.python is None:
        return True
    data_source = import_name(table.python, table.locations.get("class", table.location))
    return data_source.reader is not DataSource.reader


def as_batch(table: SourceTable) -> SourceTable:
    """Returns `table` as a batch source, without the options that only streams support."""
    options = {name: value for name, value in table.options.items() if (name.lower(), value) not in STREAM_ONLY_OPTIONS}
    return table.model_copy(update={"mode": "batch", "options": options})


def open_batch(inputs: NodeReader, table: SourceTable) -> DataFrame | None:
    """Returns `table` as static rows, None if it has no batch reader. Raises: FindingsError."""
    if not has_batch_reader(table):
        return None
    try:
        return inputs.open_source(as_batch(table), None)
    except FindingsError as error:
        if table.mode == "batch" or NO_BATCH_READER not in str(error.__cause__):
            raise
        return None


def take_sample(stream: DataFrame, name: str, wanted: int) -> DataFrame:
    """Returns the first rows of `stream` as the static table `name` of its session.

    A query with a temporary checkpoint reads until it has `wanted` rows, or for `SAMPLE_SECONDS`.
    Raises: Spark's errors.
    """
    session = stream.sparkSession
    writer = stream.limit(max(wanted, MAX_ROWS)).writeStream.format("memory").queryName(name)
    with tempfile.TemporaryDirectory(prefix="sqlstream-sample-", ignore_cleanup_errors=True) as checkpoint:
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            _wait_for_rows(query, lambda: len(session.table(name).take(wanted)) >= wanted)
        finally:
            query.stop()
    rows = session.table(name)
    # in a self join, Spark can distinguish the columns of a memory table only with new ids
    return rows.select(*(rows[quoted(column)].alias(column) for column in rows.columns))


def _wait_for_rows(query: StreamingQuery, has_enough: Callable[[], bool]) -> None:
    began: float | None = None
    while not has_enough():
        if query.awaitTermination(POLL_SECONDS):  # type: ignore[arg-type] # also accepts fractions of a second
            return
        if began is None and query.lastProgress is not None:
            began = time.monotonic()
        if began is not None and time.monotonic() - began > SAMPLE_SECONDS:
            return
