"""Starts a prepared query: its writer, its checkpoint, its trigger."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, lit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.trigger import Trigger
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.fresh_files import read_fresh_files
from sqlstream.spark.jvm.gateway import java_exceptions, set_active_session, set_pool
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.queries.batch_outputs import OTHER_VERSION, BatchOutputs, ServerFunction
from sqlstream.spark.queries.prepare import PreparedQuery
from sqlstream.spark.reading.python_code import import_name, is_data_source
from sqlstream.spark.reading.sources import TABLE
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.locks import HeldLock
from sqlstream.spark.storage.query_locks import note_remote_query
from sqlstream.spark.storage.storage import use_fast_checkpoint_files
from sqlstream.spark.writing.catalog_tables import table_options, table_provider
from sqlstream.spark.writing.kafka import written_rows
from sqlstream.spark.writing.late_rows import LateRowsWriter, late_target
from sqlstream.spark.writing.micro_batches import BatchWriter, SinkTarget, in_few_files
from sqlstream.spark.writing.outputs import checked_rows
from sqlstream.spark.writing.shared import FileBatchWriter, writer_of
from sqlstream.spark.writing.table_formats.table import FormatTable
from sqlstream.spark.writing.table_formats.table_writers import prepare_table, table_of
from sqlstream.state.runs.progress import ROWS_OUT
from sqlstream.version import __version__


@dataclass(frozen=True)
class StartOrder:
    """A prepared query with its lock and its paths.

    `checkpoint` and `output` are absolute paths or URIs. `checkpoint` is None for a batch model. `output` is a table
    name for the format `table`, and None for sinks without a location. With `is_fresh`, every start uses a new
    checkpoint, because Spark cannot resume the query. `after` are the models of the same run whose stored outputs it
    reads: it starts after they have ended, or, if they do not end, as soon as the outputs exist. `also` are the outputs
    in the further sinks of a query with `fan_out: shared`, in the order of the model's sinks. `is_unchecked`: the
    outputs must be checked before its first start, as before a restart. `quarantine` is the path, URI or table of the
    quarantine, None without one. `released` is the folder of Parquet files with rows of the quarantine that the first
    batch writes to the sinks, too. `late` is the path, URI or table of the late rows, None if they are not kept.
    `server` is the Spark Connect server that runs the query, None if Spark runs with a master.
    """

    query: PreparedQuery
    lock: HeldLock
    trigger: Trigger
    checkpoint: str | None
    output: str | None
    is_fresh: bool = False
    after: tuple[str, ...] = ()
    also: tuple[str | None, ...] = ()
    is_unchecked: bool = False
    quarantine: str | None = None
    released: str | None = None
    late: str | None = None
    server: str | None = None

    @property
    def is_batch(self) -> bool:
        """Whether the query is a batch model, which is written once."""
        return self.checkpoint is None

    @property
    def outputs(self) -> BatchOutputs:
        """Where the batches of the query go. Raises: ValueError for a batch model."""
        if self.checkpoint is None:
            raise ValueError("a batch model has no checkpoint")
        query = self.query
        paths = zip(query.model.outputs, (self.output, *self.also), strict=True)
        quarantine = None if query.marked is None else query.compiled.quarantines[query.model.unique_id]
        return BatchOutputs(query.model, tuple(paths), self.checkpoint, quarantine, self.quarantine, self.released)


def start_query(order: StartOrder, secrets: Secrets, writer: BatchWriter | None = None) -> StreamingQuery:
    """Starts the query and returns it. With a `writer`, that one gets its batches instead of its sinks; over Spark
    Connect there can be none. Raises: FindingsError, ValueError, Spark's errors.
    """
    if writer is not None and order.server is not None:
        raise ValueError("a server cannot call a writer of this process")
    query = order.query
    # the FAIR scheduler gives each pool its share of the cores
    set_pool(query.frame.sparkSession, query.model.config.pool or query.model.name)
    read_fresh_files(query.frame.sparkSession)
    _use_fast_checkpoint_files(order)
    if query.marked is None or writer is not None:
        frame = checked_rows(query.model, query.output, query.frame)
    else:
        frame = query.marked  # rows in quarantine break no constraint
    target = SinkTarget(query.model, query.output, order.output, frame, secrets)
    batches = order.outputs.writer(frame, secrets) if writer is None else writer
    if query.before_state is not None and writer is None:
        late = late_target(query.compiled, query.model, order.late, query.before_state, secrets)
        batches = LateRowsWriter(batches or writer_of(target, FileBatchWriter), late)
    table = table_of(target) if batches is None else None
    stream = (
        _frame_to_write(target, batches, table, order)
        .writeStream.outputMode(query.model.config.output_mode)
        .options(**target.options)
        .queryName(query_name(query))
        .option("checkpointLocation", order.checkpoint)
    )
    _check_trigger(stream, order)
    stream = with_trigger(stream, order.trigger)
    if order.server is not None and order.checkpoint is not None:
        note_remote_query(order.checkpoint, order.server, query.frame.sparkSession)
    if batches is not None:
        return _start_batches(stream, batches, target, order)
    if table is not None:
        return table.stream(stream)
    if query.output.partition_by:
        stream = stream.partitionBy(*query.output.partition_by)
    if query.output.python is not None:
        return _start_python(stream, query)
    if query.output.format == TABLE and order.output:
        session = query.frame.sparkSession
        provider, kept = table_provider(session, order.output), table_options(session, order.output, target.options)
        return (stream.format(provider) if provider else stream).options(**kept).toTable(order.output)
    stream = stream.format(query.output.format)
    return stream.start(order.output) if order.output else stream.start()


def _use_fast_checkpoint_files(order: StartOrder) -> None:
    """Lets Spark write the files of the checkpoint, and the logs of its file sinks, in a faster way if there is one."""
    compiled, model = order.query.compiled, order.query.model
    beside = ((compiled.quarantines, order.quarantine), (compiled.late_rows, order.late))
    written = [
        *zip(model.outputs, (order.output, *order.also), strict=True),
        *((rows[model.unique_id].outputs[0], path) for rows, path in beside if model.unique_id in rows),
    ]
    if any(output.table is not None for output, _ in written):
        return  # the folder of a table in a catalog can be anywhere
    paths = [path for output, path in written if not output.database_table]
    use_fast_checkpoint_files(order.query.frame.sparkSession, order.checkpoint, *paths)


def _frame_to_write(
    target: SinkTarget, batches: BatchWriter | None, table: FormatTable | None, order: StartOrder
) -> DataFrame:
    is_counted = batches is None and table is None and format_of(target.output.format).counts_rows
    if not is_counted and target.frame is not order.query.marked and order.trigger.facts.has_micro_batches:
        # the observation takes 0.3 µs for each row
        target = replace(target, frame=target.frame.observe(ROWS_OUT, count(lit(1)).alias("rows")))
    if batches is not None:
        return target.frame
    rows = written_rows(target.model, target.output, target.frame) if table is None else prepare_table(target, table)
    return in_few_files(rows, target.output)


def _start_batches(
    writer: DataStreamWriter, batches: BatchWriter, target: SinkTarget, order: StartOrder
) -> StreamingQuery:
    """Starts a query whose micro-batches sqlstream writes. Over Connect: a process of the server writes them, which
    does not check the lock, because the next run first ends the session. Raises: FindingsError, Spark's errors.
    """
    batches.open()
    if order.server is not None:
        return _start_on_server(writer, target, order)

    def write(rows: DataFrame, number: int) -> None:
        order.lock.confirm()
        (query,) = target.frame.sparkSession.streams.active  # each query has its own session
        with java_exceptions():
            batches.write(rows, target.batch(number, query.id))

    return writer.foreachBatch(write).start()


def _start_on_server(writer: DataStreamWriter, target: SinkTarget, order: StartOrder) -> StreamingQuery:
    """Starts a query whose micro-batches sqlstream writes in a process of a Spark Connect server. Raises: FindingsError
    if sqlstream is not there, Spark's errors.
    """
    try:
        return writer.foreachBatch(ServerFunction(order.outputs, target.secrets)).start()
    except PySparkException as error:
        reason = next((line.strip() for line in str(error).splitlines() if _NOT_INSTALLED.search(line)), None)
        if reason is None:
            raise
        extra = " with its extra `databases`" if order.outputs.drivers(target.secrets) else ""
        finding = Finding(
            "unsupported-target",
            f"`{target.model.name}` cannot run over Spark Connect: sqlstream writes each batch to sink "
            f"`{target.output.sink}` in a process of the server",
            f"the server reports: {reason}",
            f"install sqlstream {__version__}{extra}, and what python/ imports, for the Python of the server; or use a "
            "target with a master",
            target.model.location_of("sink"),
        )
        raise FindingsError([finding]) from error


_NOT_INSTALLED = re.compile(rf"No module named '|{OTHER_VERSION}")
"""Words in the error of a server on which sqlstream, or a package that python/ imports, is not installed."""


def _start_python(writer: DataStreamWriter, query: PreparedQuery) -> StreamingQuery:
    """Starts a query that Spark writes with a class in python/. Raises: FindingsError, Spark's errors."""
    obj = import_name(query.output.python or "", query.output.location)
    if is_data_source(obj):
        session = query.frame.sparkSession
        session.dataSource.register(obj)
        call_internal(
            session, "active session", lambda: set_active_session(session), lambda: _activate_publicly(session)
        )
        return writer.format(obj.name()).start()
    return writer.foreach(obj()).start()


def _activate_publicly(session: SparkSession) -> None:
    """Makes `session` active, as a side effect of creating a DataFrame from Python rows."""
    session.createDataFrame([], "id int")


def query_name(query: PreparedQuery) -> str:
    """Returns Spark's name of the query, quoted for a memory sink, which uses it as a table name in SQL."""
    name = query.model.name
    return quote_identifier(name) if query.output.format == "memory" else name


def _check_trigger(writer: DataStreamWriter, order: StartOrder) -> None:
    """Raises: FindingsError for a trigger that this Spark does not have: a real-time one before Spark 4.1."""
    model = order.query.model
    facts = order.trigger.facts
    if facts.argument and facts.argument not in signature(writer.trigger).parameters:
        finding = Finding(
            facts.code,
            f"`{model.name}` has a {facts.words} trigger, which the installed Spark does not have",
            f"this is Spark {order.query.frame.sparkSession.version}",
            "install a later PySpark, or use a trigger of batches, such as trigger='1 second'",
            model.location_of("trigger"),
        )
        raise FindingsError([finding])


def with_trigger(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    """Returns the writer with its trigger. Spark's default starts a batch as soon as the last one has ended."""
    given: dict[str, Any] = {trigger.facts.argument: trigger.interval or True}
    return writer.trigger(**given) if trigger.facts.argument else writer
