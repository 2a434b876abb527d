"""In-memory streams, sinks and clocks for unit tests.

They use the same classes as Spark's own tests (`MemoryStream`, `MemorySink`, `ManualClock`), which are in its jars.
Over Connect: not available.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from sqlstream.spark.jvm.gateway import current_watermark, java_class, java_output_mode, jvm_of, mark_terminated
from sqlstream.spark.jvm.session import names_sources
from sqlstream.spark.reading.plain_rows import JSON_OPTIONS, read_row, readable_schema, with_exact_times

_SQL = "org.apache.spark.sql"

CONVERTERS = "scala.jdk.javaapi.CollectionConverters"

MAX_MS_TO_STOP = 5000
"""Time after which a query is interrupted."""

ANSI = "spark.sql.ansi.enabled"

JavaRows = Any
"""A java.util.List of Spark's rows, in the JVM."""


class MemoryInput:
    """A stream in `session` to which `add` adds rows. `frame` reads it; several queries can use it."""

    def __init__(self, session: SparkSession, schema: StructType) -> None:
        java_schema = session._jsparkSession.parseDataType(schema.json())  # noqa: SLF001
        encoder = java_class(session, f"{_SQL}.catalyst.encoders.ExpressionEncoder").apply(java_schema)
        streams = java_class(session, f"{_SQL}.execution.streaming.runtime.MemoryStream")
        self._stream = streams.apply(encoder, session._jsparkSession)  # noqa: SLF001
        self._converters = java_class(session, CONVERTERS)
        self.frame = DataFrame(self._stream.toDF(), session)

    def add(self, rows: JavaRows) -> None:
        """Adds `rows` to the stream; they become one micro-batch if the query is idle."""
        self._stream.addData(self._converters.asScala(rows).toSeq())


class Clock:
    """The current_timestamp() and processing time of queries started with it, in ms since 1970."""

    def __init__(self, session: SparkSession, milliseconds: int) -> None:
        self._java = java_class(session, "org.apache.spark.util.ManualClock")(milliseconds)

    def set(self, milliseconds: int) -> None:
        """Sets the time of later batches."""
        self._java.setTime(milliseconds)


class SystemClock(Clock):
    """The real time."""

    def __init__(self, session: SparkSession) -> None:
        self._java = java_class(session, "org.apache.spark.util.SystemClock")()


class MemoryOutput:
    """Collects the output rows of a query in `rows`, also across restarts from its checkpoint."""

    def __init__(self, session: SparkSession) -> None:
        self._converters = java_class(session, CONVERTERS)
        self._list = java_class(session, "java.util.ArrayList")
        self.rows: JavaRows = self._list()
        self._seen = -1
        self.sink = java_class(session, f"{_SQL}.execution.streaming.sources.MemorySink")()

    def take(self) -> int | None:
        """Collects the rows since the last call, and returns their number; None if no micro-batch has ended since."""
        latest = self.sink.latestBatchId()
        if not latest.isDefined() or latest.get() == self._seen:
            return None
        before = self.rows.size()
        self.rows.addAll(self._since(self._seen))
        self._seen = latest.get()
        return int(self.rows.size()) - int(before)

    def clear(self) -> None:
        """Deletes the collected rows."""
        self.rows = self._list()

    def micro_batches(self) -> list[tuple[int, JavaRows]]:
        """Returns the number and rows of each micro-batch since the last `take`; in complete mode, only the newest
        batch has rows.
        """
        latest = self.sink.latestBatchId()
        numbers = range(self._seen + 1, latest.get() + 1) if latest.isDefined() else ()
        # MemorySink returns only all rows after a batch, so those of later batches are cut off
        sizes = {number: self._since(number).size() for number in numbers}
        since = ((number, self._since(number - 1)) for number in numbers)
        return [(number, rows.subList(0, rows.size() - sizes[number])) for number, rows in since]

    def _since(self, batch: int) -> JavaRows:
        return self._converters.asJava(self.sink.dataSinceBatch(batch))


def start_in_memory(frame: DataFrame, mode: str, checkpoint: str, sink: Any, clock: Clock) -> StreamingQuery:
    """Starts a query that writes `frame` to `sink` as soon as rows arrive, and returns it. Raises: Spark's errors."""
    session = frame.sparkSession
    jvm = jvm_of(session)
    manager = session._jsparkSession.streams()  # noqa: SLF001
    option = java_class(session, "scala.Option")
    none = option.empty()
    # userSpecifiedName, and since Spark 4.3 userSpecifiedSinkName
    names = [none] * (2 if names_sources(session) else 1)
    output_mode = java_output_mode(session, mode)
    trigger = java_class(session, f"{_SQL}.streaming.Trigger").ProcessingTime(0)
    started = manager.startQuery(
        *names,
        option.apply(checkpoint),
        frame._jdf,  # noqa: SLF001
        jvm.PythonUtils.toScalaMap({}),
        sink,
        output_mode,
        False,  # useTempCheckpointLocation
        True,  # recoverFromCheckpointLocation
        trigger,
        clock._java,  # noqa: SLF001
        none,  # catalogAndIdent
        none,  # catalogTable
    )
    return StreamingQuery(started)


def stop_idle_query(query: StreamingQuery) -> None:
    """Stops `query`, which waits for rows. It sees the mark at once; an interrupted query would first sleep 100 ms
    (UninterruptibleThread.runUninterruptibly).
    """
    mark_terminated(query)
    query._jsq.streamingQuery().queryExecutionThread().join(MAX_MS_TO_STOP)  # noqa: SLF001
    query.stop()


@contextmanager
def batches_paused(query: StreamingQuery) -> Iterator[None]:
    """Keeps `query` from starting a batch, so that rows added to several streams become one batch."""
    lock = query._jsq.streamingQuery().awaitProgressLock()  # noqa: SLF001
    lock.lock()
    try:
        yield
    finally:
        lock.unlock()


def watermark_of(query: StreamingQuery) -> int:
    """Returns the watermark of the next batch of `query`, in ms since 1970; 0 before the first watermark."""
    return current_watermark(query) or 0


def progresses(query: StreamingQuery) -> list[dict[str, Any]]:
    """Returns the progress of the batches of `query` since its start, oldest first."""
    return [json.loads(progress.json()) for progress in query._jsq.recentProgress()]  # noqa: SLF001


@dataclass(frozen=True)
class RowMaker:
    """Converts JSON to Spark's rows and back, in one session."""

    session: SparkSession

    def strings(self, texts: Sequence[str]) -> DataFrame:
        """Returns `texts` as rows with the column `value`."""
        encoder = java_class(self.session, f"{_SQL}.Encoders").STRING()
        return DataFrame(self.session._jsparkSession.createDataset(list(texts), encoder).toDF(), self.session)  # noqa: SLF001

    def java_rows(self, frame: DataFrame) -> JavaRows:
        """Returns the rows of the static `frame`. Raises: Spark's errors."""
        rows = java_class(self.session, CONVERTERS).asJava(self._local(frame))
        return java_class(self.session, "java.util.ArrayList")(rows)

    def frame(self, rows: JavaRows, schema: StructType) -> DataFrame:
        """Returns `rows` as a static table."""
        java = self.session._jsparkSession  # noqa: SLF001
        return DataFrame(java.createDataFrame(rows, self._type(schema)), self.session)

    def parse(self, texts: Sequence[str], written: StructType, wanted: StructType) -> DataFrame:
        """Returns JSON objects as a static table: parsed as `written`, and cast to `wanted` column by column."""
        functions = java_class(self.session, f"{_SQL}.functions")
        with strict_casts(self.session):
            return self._cast(functions, texts, written, wanted)

    def _cast(self, functions: Any, texts: Sequence[str], written: StructType, wanted: StructType) -> DataFrame:
        read = functions.from_json(functions.col("value"), self._type(written)).cast(self._type(wanted))
        # the empty Seq is Scala's further columns
        rows = self.strings(texts)._jdf.withColumn("value", read).select("value.*", self._seq())  # noqa: SLF001
        return DataFrame(rows, self.session)

    def rows(self, frame: DataFrame) -> list[tuple[object, ...]]:
        """Returns the rows of the static `frame` as JSON values (`read_row`). Raises: Spark's errors."""
        functions = java_class(self.session, f"{_SQL}.functions")
        readable = functions.struct("*", self._seq()).cast(self._type(readable_schema(frame.schema)))
        texts = with_exact_times(frame)._jdf.select(self._seq(functions.to_json(readable, JSON_OPTIONS)))  # noqa: SLF001
        return [read_row(text) for text in self.texts(DataFrame(texts, self.session))]

    def texts(self, frame: DataFrame) -> list[str]:
        """Returns the only column of the static `frame`, texts without line ends. Raises: Spark's errors."""
        lines = str(self._local(frame).mkString("\n"))
        return [line[1:-1] for line in lines.split("\n")] if lines else []  # Spark prints a row in brackets

    def _seq(self, *items: Any) -> Any:
        return java_class(self.session, CONVERTERS).asScala(list(items)).toSeq()

    def _type(self, schema: StructType) -> Any:
        return self.session._jsparkSession.parseDataType(schema.json())  # noqa: SLF001

    def _local(self, frame: DataFrame) -> Any:
        """Returns the rows of the static `frame` without a query execution, whose events and plan text cost time."""
        rows = frame._jdf.queryExecution().executedPlan().executeCollectPublic()  # noqa: SLF001
        return java_class(self.session, "scala.collection.immutable.ArraySeq").unsafeWrapArray(rows)


@contextmanager
def strict_casts(session: SparkSession) -> Iterator[None]:
    """Makes casts of invalid values fail while the body runs, regardless of the target; they could return null."""
    setting = session.conf.get(ANSI, "true")
    session.conf.set(ANSI, "true")
    try:
        yield
    finally:
        session.conf.set(ANSI, setting or "true")


def select_rows(rows: JavaRows, numbers: Sequence[int]) -> JavaRows:
    """Returns the rows with these numbers, counted from 0."""
    first, last = min(numbers), max(numbers)
    if tuple(numbers) == tuple(range(first, last + 1)):
        return rows.subList(first, last + 1)
    return [rows.get(number) for number in numbers]
