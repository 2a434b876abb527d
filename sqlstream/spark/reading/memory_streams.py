"""Streams whose rows are given and whose results are kept in memory, with a clock that is set: what unit tests run on.

Spark's own tests are made of these parts (`MemoryStream`, `MemorySink`, `ManualClock`), all of which are in its jars.
Nothing here works over Spark Connect.
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

from sqlstream.spark.jvm.gateway import java_class, jvm_of, mark_terminated
from sqlstream.spark.jvm.session import names_sources
from sqlstream.spark.reading.rows import JSON_OPTIONS, read_row, readable_schema

_SQL = "org.apache.spark.sql"

CONVERTERS = "scala.jdk.javaapi.CollectionConverters"

MOST_MS_TO_STOP = 5000
"""After this a query is interrupted."""

ANSI = "spark.sql.ansi.enabled"

JavaRows = Any
"""A java.util.List of Spark's rows, as the JVM holds them."""


class MemoryInput:
    """A stream in `session` whose rows are added here; `frame` reads it, as often as it is wanted."""

    def __init__(self, session: SparkSession, schema: StructType) -> None:
        java_schema = session._jsparkSession.parseDataType(schema.json())  # noqa: SLF001
        encoder = java_class(session, f"{_SQL}.catalyst.encoders.ExpressionEncoder").apply(java_schema)
        streams = java_class(session, f"{_SQL}.execution.streaming.runtime.MemoryStream")
        self._stream = streams.apply(encoder, session._jsparkSession)  # noqa: SLF001
        self._converters = java_class(session, CONVERTERS)
        self.frame = DataFrame(self._stream.toDF(), session)

    def add(self, rows: JavaRows) -> None:
        """Gives `rows` to the stream: they are one micro-batch where the query is idle."""
        self._stream.addData(self._converters.asScala(rows).toSeq())


class Clock:
    """What current_timestamp() and processing time are in queries that were started with it, in ms since 1970."""

    def __init__(self, session: SparkSession, milliseconds: int) -> None:
        self._java = java_class(session, "org.apache.spark.util.ManualClock")(milliseconds)

    def set(self, milliseconds: int) -> None:
        """Sets it; batches that are begun later have that time."""
        self._java.setTime(milliseconds)


class SystemClock(Clock):
    """The time of day."""

    def __init__(self, session: SparkSession) -> None:
        self._java = java_class(session, "org.apache.spark.util.SystemClock")()


class MemoryOutput:
    """Keeps the rows of a query, also of one that is started again on its checkpoint."""

    def __init__(self, session: SparkSession) -> None:
        self._converters = java_class(session, CONVERTERS)
        self._list = java_class(session, "java.util.ArrayList")
        self._rows = self._list()
        self._seen = -1
        self.sink = java_class(session, f"{_SQL}.execution.streaming.sources.MemorySink")()

    def take(self) -> int | None:
        """Returns how many rows have come out since it was last asked, None where no micro-batch has ended since; they
        are kept behind those of before.
        """
        latest = self.sink.latestBatchId()
        if not latest.isDefined() or latest.get() == self._seen:
            return None
        before = self._rows.size()
        self._rows.addAll(self._since(self._seen))
        self._seen = latest.get()
        return int(self._rows.size()) - int(before)

    def clear(self) -> None:
        """Forgets the rows that were taken."""
        self._rows = self._list()

    def micro_batches(self) -> list[tuple[int, JavaRows]]:
        """Returns the numbers and rows of the micro-batches that `take` has not taken; in complete mode all but the
        newest have none.
        """
        latest = self.sink.latestBatchId()
        numbers = range(self._seen + 1, latest.get() + 1) if latest.isDefined() else ()
        sizes = {number: self._since(number).size() for number in numbers}
        return [(number, self._first(self._since(number - 1), sizes[number])) for number in numbers]

    def _since(self, batch: int) -> JavaRows:
        return self._converters.asJava(self.sink.dataSinceBatch(batch))

    def _first(self, rows: JavaRows, later: int) -> JavaRows:
        return rows.subList(0, rows.size() - later)

    @property
    def rows(self) -> JavaRows:
        """All rows that were taken."""
        return self._rows


def start_in_memory(frame: DataFrame, mode: str, checkpoint: str, sink: Any, clock: Clock) -> StreamingQuery:
    """Starts a query over `frame` that writes into `sink` as soon as there are rows, and returns it.

    Raises: Spark's errors.
    """
    session = frame.sparkSession
    jvm = jvm_of(session)
    manager = session._jsparkSession.streams()  # noqa: SLF001
    option = java_class(session, "scala.Option")
    none = option.empty()
    names = [none] * (2 if names_sources(session) else 1)
    output_mode = getattr(java_class(session, f"{_SQL}.streaming.OutputMode"), mode.capitalize())()
    trigger = java_class(session, f"{_SQL}.streaming.Trigger").ProcessingTime(0)
    started = manager.startQuery(
        *names,
        option.apply(checkpoint),
        frame._jdf,  # noqa: SLF001
        jvm.PythonUtils.toScalaMap({}),
        sink,
        output_mode,
        False,
        True,
        trigger,
        clock._java,  # noqa: SLF001
        none,
        none,
    )
    return StreamingQuery(started)


def stop_idle(query: StreamingQuery) -> None:
    """Stops `query`, which waits for rows: it sees the mark at once, where an interrupted one sleeps 100 ms
    (UninterruptibleThread.runUninterruptibly).
    """
    mark_terminated(query)
    query._jsq.streamingQuery().queryExecutionThread().join(MOST_MS_TO_STOP)  # noqa: SLF001
    query.stop()


@contextmanager
def no_batch(query: StreamingQuery) -> Iterator[None]:
    """Lets `query` begin no batch meanwhile: rows that are added to several streams then come in one."""
    lock = query._jsq.streamingQuery().awaitProgressLock()  # noqa: SLF001
    lock.lock()
    try:
        yield
    finally:
        lock.unlock()


def watermark_of(query: StreamingQuery) -> int:
    """Returns the watermark, in ms since 1970, that the next batch of `query` would have; 0 before there is one."""
    return int(query._jsq.streamingQuery().watermarkTracker().currentWatermark())  # noqa: SLF001


def progresses(query: StreamingQuery) -> list[dict[str, Any]]:
    """Returns what Spark tells of the batches of `query` since it was started, oldest first."""
    return [json.loads(progress.json()) for progress in query._jsq.recentProgress()]  # noqa: SLF001


@dataclass(frozen=True)
class RowMaker:
    """Makes Spark's rows from JSON, and JSON from Spark's rows, in one session."""

    session: SparkSession

    def strings(self, texts: Sequence[str]) -> DataFrame:
        """Returns `texts` as the one column `value`."""
        encoder = java_class(self.session, f"{_SQL}.Encoders").STRING()
        return DataFrame(self.session._jsparkSession.createDataset(list(texts), encoder).toDF(), self.session)  # noqa: SLF001

    def rows_of(self, frame: DataFrame) -> JavaRows:
        """Returns the rows of static `frame`. Raises: Spark's errors."""
        rows = java_class(self.session, CONVERTERS).asJava(self._local(frame))
        return java_class(self.session, "java.util.ArrayList")(rows)

    def frame(self, rows: JavaRows, schema: StructType) -> DataFrame:
        """Returns `rows` as a static table."""
        java = self.session._jsparkSession  # noqa: SLF001
        return DataFrame(java.createDataFrame(rows, self._type(schema)), self.session)

    def parse(self, texts: Sequence[str], written: StructType, wanted: StructType) -> DataFrame:
        """Returns objects of JSON as a static table: read as `written`, and cast to `wanted` column by column."""
        functions = java_class(self.session, f"{_SQL}.functions")
        with strict_casts(self.session):
            return self._cast(functions, texts, written, wanted)

    def _cast(self, functions: Any, texts: Sequence[str], written: StructType, wanted: StructType) -> DataFrame:
        read = functions.from_json(functions.col("value"), self._type(written)).cast(self._type(wanted))
        rows = self.strings(texts)._jdf.withColumn("value", read).select("value.*", self._seq())  # noqa: SLF001
        return DataFrame(rows, self.session)

    def rows(self, frame: DataFrame) -> list[tuple[object, ...]]:
        """Returns the rows of static `frame` as values of JSON (`read_row`). Raises: Spark's errors."""
        functions = java_class(self.session, f"{_SQL}.functions")
        readable = functions.struct("*", self._seq()).cast(self._type(readable_schema(frame.schema)))
        texts = frame._jdf.select(self._seq(functions.to_json(readable, JSON_OPTIONS)))  # noqa: SLF001
        return [read_row(text) for text in self.texts(DataFrame(texts, self.session))]

    def texts(self, frame: DataFrame) -> list[str]:
        """Returns the one column of static `frame`, texts without line ends. Raises: Spark's errors."""
        lines = str(self._local(frame).mkString("\n"))
        return [line[1:-1] for line in lines.split("\n")] if lines else []  # a row is written in brackets

    def _seq(self, *items: Any) -> Any:
        return java_class(self.session, CONVERTERS).asScala(list(items)).toSeq()

    def _type(self, schema: StructType) -> Any:
        return self.session._jsparkSession.parseDataType(schema.json())  # noqa: SLF001

    def _local(self, frame: DataFrame) -> Any:
        """The rows of static `frame`, read without the events, and the text of the plan, of a query of its own."""
        rows = frame._jdf.queryExecution().executedPlan().executeCollectPublic()  # noqa: SLF001
        return java_class(self.session, "scala.collection.immutable.ArraySeq").unsafeWrapArray(rows)


@contextmanager
def strict_casts(session: SparkSession) -> Iterator[None]:
    """Has Spark refuse meanwhile what does not fit its type, whatever the target says: else it would become null."""
    said = session.conf.get(ANSI, "true")
    session.conf.set(ANSI, "true")
    try:
        yield
    finally:
        session.conf.set(ANSI, said or "true")


def picked(rows: JavaRows, numbers: Sequence[int]) -> JavaRows:
    """Returns the rows of these numbers, from 0."""
    first, last = min(numbers), max(numbers)
    if tuple(numbers) == tuple(range(first, last + 1)):
        return rows.subList(first, last + 1)
    return [rows.get(number) for number in numbers]
