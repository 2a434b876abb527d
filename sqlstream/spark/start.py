"""Starting one prepared query: its writer, its checkpoint, its trigger."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sqlstream.compiler.names import quote_identifier
from sqlstream.project.config import Trigger
from sqlstream.spark.jvm import set_pool
from sqlstream.spark.prepare import PreparedQuery
from sqlstream.spark.secrets import Secrets


@dataclass(frozen=True)
class StartOrder:
    """A prepared query and where it goes: `checkpoint` and `output` are absolute paths or URIs, `output` None for
    sinks without a path.
    """

    query: PreparedQuery
    trigger: Trigger
    checkpoint: str
    output: str | None


def start_query(order: StartOrder, secrets: Secrets) -> StreamingQuery:
    """Starts the query and returns it. Raises: Spark's errors."""
    query = order.query
    set_pool(query.frame.sparkSession, query.model.config.pool or query.model.name)
    writer = (
        query.frame.writeStream.format(query.output.format)
        .outputMode(query.model.config.output_mode)
        .options(**secrets.resolve_all(query.output.options))
        .queryName(query_name(query))
        .option("checkpointLocation", order.checkpoint)
    )
    if query.output.partition_by:
        writer = writer.partitionBy(*query.output.partition_by)
    writer = _with_trigger(writer, order.trigger)
    return writer.start(order.output) if order.output else writer.start()


def query_name(query: PreparedQuery) -> str:
    """Returns the name that Spark knows the query by: a memory sink takes it as SQL, for its table."""
    name = query.model.name
    return quote_identifier(name) if query.output.format == "memory" else name


def _with_trigger(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    """The writer with its trigger; `default` is Spark's own, a batch as soon as the last one has ended."""
    if trigger.kind == "interval" and trigger.interval:
        return writer.trigger(processingTime=trigger.interval)
    if trigger.kind == "available_now":
        return writer.trigger(availableNow=True)
    return writer.trigger(once=True) if trigger.kind == "once" else writer
