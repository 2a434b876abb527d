"""Spark's internal writer of files, which `writeStream` uses: it keeps a log of the files of each batch.

Over Connect: `writing/logged_files.py` writes the same log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sqlstream.spark.jvm.gateway import java_array, java_class, jvm_of
from sqlstream.state.batch_logs import SINK_LOG

DATA_SOURCES = "org.apache.spark.sql.execution.datasources"


def file_sink(
    session: SparkSession, format_name: str, path: str, partition_by: Sequence[str], options: Mapping[str, str]
) -> Any:
    """Returns the JVM's FileStreamSink for the folder `path`; see `add_batch`.

    Raises: Spark's errors.
    """
    jvm: Any = jvm_of(session)
    partitions, made = jvm.PythonUtils.toSeq(list(partition_by)), jvm.PythonUtils.toScalaMap(dict(options))
    sink = java_class(session, "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink")
    return sink(session._jsparkSession, path, _file_format(session, format_name), partitions, made)  # noqa: SLF001


def add_batch(sink: Any, number: int, rows: DataFrame) -> None:
    """Writes the rows of a batch with `sink`, unless its log has the batch. Raises: Spark's errors."""
    sink.addBatch(number, rows._jdf)  # noqa: SLF001


def sink_log(session: SparkSession, path: str) -> Any:
    """Returns the JVM's FileStreamSinkLog of the folder `path`; see `add_empty_batch`. Raises: Spark's errors."""
    kind = java_class(session, "org.apache.spark.sql.execution.streaming.sinks.FileStreamSinkLog")
    no_retention = java_class(session, "scala.Option").empty()
    # 1 is FileStreamSinkLog.VERSION
    return kind(1, session._jsparkSession, f"{path}/{SINK_LOG}", no_retention)  # noqa: SLF001


def add_empty_batch(session: SparkSession, log: Any, number: int) -> None:
    """Adds a batch without files to `log`, unless it has the batch. Compacts the log as Spark does. Raises: Spark's
    errors.
    """
    status = java_class(session, "org.apache.spark.sql.execution.streaming.sinks.SinkFileStatus")
    log.add(number, java_array(session, status))


def is_compacted(log: Any, number: int) -> bool:
    """Returns whether entry `number` of the `sink_log` has all files of the entries before it."""
    return (number + 1) % int(log.compactInterval()) == 0


def _file_format(session: SparkSession, name: str) -> Any:
    """Returns Spark's FileFormat, as `DataSource.providingClass` does."""
    conf = session._jsparkSession.sessionState().conf()  # noqa: SLF001
    found = java_class(session, f"{DATA_SOURCES}.DataSource").lookupDataSource(name, conf)
    made = _instance(found)
    is_newer = java_class(session, "java.lang.Class").forName(f"{DATA_SOURCES}.v2.FileDataSourceV2").isInstance(made)
    return _instance(made.fallbackFileFormat()) if is_newer else made


def _instance(kind: Any) -> Any:
    return kind.getConstructors()[0].newInstance(None)
