"""Writes a batch model: all its rows, once per run; complete output replaces the earlier output."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, DataFrameWriter, Observation, SparkSession
from pyspark.sql.functions import count, lit

from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, set_job_group, set_pool
from sqlstream.spark.jvm.internals import call_internal, cancel_jobs
from sqlstream.spark.queries.start import StartOrder, query_name
from sqlstream.spark.reading.corrupt import observed_counts
from sqlstream.spark.reading.sources import TABLE
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.local import LocalStorage, try_exchange
from sqlstream.spark.storage.storage import Storage, free_archive, storage_for
from sqlstream.spark.writing.catalog_tables import replace_table, table_options, table_provider
from sqlstream.spark.writing.kafka import written_rows
from sqlstream.spark.writing.micro_batches import SinkTarget, in_few_files
from sqlstream.spark.writing.outputs import checked_rows
from sqlstream.spark.writing.writers import batch_writer
from sqlstream.state.layout import beside_table, writing_folder
from sqlstream.state.runs.progress import ROWS_OUT
from sqlstream.times import utc_text

_OLD_WRITERS = "spark.sql.sources.useV1SourceList"
"""The formats that Spark writes through the first version of its API for data sources."""

USUAL_SECONDS = 1.0
"""Within this time Spark usually reports the metrics of a query that has run."""


class BatchWrite:
    """Writes a batch model in its own thread, with the interface of `StreamingQuery` for the runner.

    Calls `on_progress` once, after the output is in place, with JSON in the format of Spark's progress, and then
    `on_end`. After a failure it calls only `on_end`. `job_group` is the group of its jobs.
    """

    def __init__(
        self, order: StartOrder, secrets: Secrets, on_progress: Callable[[str], None], on_end: Callable[[], None]
    ) -> None:
        self._order = order
        self._secrets = secrets
        self._on_progress, self._on_end = on_progress, on_end
        self.job_group = f"{order.query.model.name} {uuid4().hex}"
        self._error: Exception | None = None
        self._is_stopped = False
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.job_group, daemon=True)

    def start(self) -> BatchWrite:
        """Starts the thread, and returns at once."""
        self._thread.start()
        return self

    @property
    def isActive(self) -> bool:  # noqa: N802 - the name in StreamingQuery
        """Whether the write has not ended yet."""
        return not self._has_ended.is_set()

    @property
    def status(self) -> dict[str, Any]:
        """The status of a streaming query during a batch."""
        return {"message": "Processing new data", "isTriggerActive": True, "isDataAvailable": True}

    def exception(self) -> Exception | None:
        """Returns the error of the write, None without one."""
        return self._error

    def stop(self) -> None:
        """Cancels the write; the earlier output stays in place."""
        self._is_stopped = True
        cancel_jobs(self._order.query.frame.sparkSession, self.job_group)

    def _run(self) -> None:
        try:
            began, started_at = time.monotonic(), datetime.now(UTC)
            rows = self._write()
            seconds = time.monotonic() - began
            if not self._is_stopped:
                counted = {} if rows is None else {ROWS_OUT: {"rows": rows}}
                observed = {**counted, **observed_counts(self._order.query.counters)}
                self._on_progress(_progress(started_at, seconds, observed))
        except Exception as error:
            self._error = error
        finally:
            self._has_ended.set()
            self._on_end()

    def _write(self) -> int | None:
        """Writes all rows, and returns their number, None if Spark does not know it."""
        query = self._order.query
        session = query.frame.sparkSession
        set_pool(session, query.model.config.pool or query.model.name)
        if query.output.format == "kafka":
            session.conf.set(_OLD_WRITERS, "")  # Spark does not observe what the old writer of Kafka runs
        set_job_group(session, self.job_group, query.model.name)
        observed = Observation(ROWS_OUT)
        frame = checked_rows(query.model, query.output, query.frame)
        frame = frame.observe(observed, count(lit(1)).alias("rows"))
        facts = format_of(query.output.format)
        target = SinkTarget(query.model, query.output, self._order.output, frame, self._secrets)
        writer = batch_writer(target)
        if writer is not None:
            self._order.lock.confirm()
            writer.open()
            writer.write(frame, target.batch(0, uuid4().hex))  # no two runs write the same batch
        elif query.output.format == "memory":
            # the rows of now: a view of the query would read its inputs again each time
            frame.localCheckpoint().createOrReplaceTempView(query_name(query))
        elif facts.writes_files and self._order.output is not None:
            self._write_files(frame, self._order.output)
        elif query.output.format == TABLE and self._order.output is not None:
            self._write_table(frame, self._order.output)
        else:
            self._write_rows(frame, "overwrite" if facts.replaces_rows else "append", self._order.output)
        values = observed_values(session, observed)
        return None if values is None else int(values["rows"])

    def _write_files(self, frame: DataFrame, output: str) -> None:
        """Writes files to another folder, and then replaces the output.

        A killed run leaves the earlier output or the new one in place. Storage that cannot exchange them takes two
        moves; between them the earlier output is in the archive.
        """
        storage, path = storage_for(output, frame.sparkSession)
        aside = f"{writing_folder(path)}/{uuid4().hex}"
        self._write_rows(frame, "error", aside)
        if not self._is_stopped:
            # the write may have taken long, and another run may have the query since
            self._order.lock.confirm()
            replace_output(storage, aside, path)

    def _write_table(self, frame: DataFrame, name: str) -> None:
        """Writes a table with another name, and renames it when it is complete."""
        session, aside = frame.sparkSession, beside_table(name, f"writing_{uuid4().hex}")
        provider, writer = table_provider(session, name), self._writer(frame, "error")
        writer = writer.options(**table_options(session, name, self._order.query.output.options))
        is_complete = False
        try:
            (writer.format(provider) if provider else writer).saveAsTable(aside)
            is_complete = not self._is_stopped
            if is_complete:
                self._order.lock.confirm()
                replace_table(session, aside, name)
        finally:
            with suppress(*SPARK_ERRORS):  # an error of the write itself matters more
                _drop_unless_only_copy(session, aside, name, is_complete=is_complete)

    def _write_rows(self, frame: DataFrame, mode: str, path: str | None) -> None:
        self._writer(frame, mode).format(self._order.query.output.format).save(path)

    def _writer(self, frame: DataFrame, mode: str) -> DataFrameWriter:
        query, output = self._order.query, self._order.query.output
        target = SinkTarget(query.model, output, self._order.output, frame, self._secrets)
        rows = in_few_files(written_rows(query.model, output, frame), output)
        writer = rows.write.options(**target.options).mode(mode)
        return writer.partitionBy(*output.partition_by) if output.partition_by else writer


def _drop_unless_only_copy(session: SparkSession, aside: str, name: str, *, is_complete: bool) -> None:
    """Drops the table `aside`, but not if it is complete and the table `name`, which it replaces, is gone."""
    if not is_complete or session.catalog.tableExists(name):
        session.sql(f"DROP TABLE IF EXISTS {aside}")


def replace_output(storage: Storage, complete: str, path: str) -> str | None:
    """Moves the folder `complete` to `path`, and its earlier content to the archive beside it; returns that path.

    On a local disk that can exchange folders, readers find the earlier or the new content at any moment.
    Raises: OSError or Spark's errors; each move is complete or not done.
    """
    if not storage.exists(path):
        storage.move(complete, path)
        return None
    archived = free_archive(storage, path)
    if isinstance(storage, LocalStorage) and try_exchange(Path(complete), Path(path)):
        storage.move(complete, archived)
    else:
        storage.move(path, archived)
        storage.move(complete, path)
    return archived


def _progress(started_at: datetime, seconds: float, observed: Mapping[str, object]) -> str:
    """Returns the write as progress of a micro-batch (StreamingQueryProgress.json), without a count of rows read."""
    milliseconds = round(1000 * seconds)
    return json.dumps(
        {
            "batchId": 0,
            "timestamp": utc_text(started_at),
            "batchDuration": milliseconds,
            "durationMs": {"triggerExecution": milliseconds},
            "stateOperators": [],
            "sources": [{"description": "static", "startOffset": None, "endOffset": None, "numInputRows": -1}],
            "observedMetrics": observed,
        }
    )


def observed_values(session: SparkSession, observation: Observation) -> dict[str, Any] | None:
    """Returns the metrics of `observation`, None if no action of this thread has run its query to the end.

    `Observation.get` waits for ever then: a function may not read its rows, and some writers run a query in a way that
    Spark does not observe. Without internals this waits too.
    """
    is_known = call_internal(session, "state of an observation", lambda: _is_known(session, observation), lambda: True)
    return observation.get if is_known else None


def _is_known(session: SparkSession, observation: Observation) -> bool:
    end = time.monotonic() + USUAL_SECONDS
    while not _has_values(observation) and time.monotonic() < end:
        time.sleep(0.005)
    if not _has_values(observation):  # Spark reports in order, so what comes after a later query never comes
        later = Observation()
        session.range(1).observe(later, count(lit(1)).alias("rows")).collect()
        _ = later.get
    return _has_values(observation)


def _has_values(observation: Observation) -> bool:
    """Returns whether `observation` has its metrics. Over Connect: `get` waits for them."""
    java: Any = observation._jo  # noqa: SLF001 - the only way to ask without waiting
    return bool(java.future().isCompleted())
