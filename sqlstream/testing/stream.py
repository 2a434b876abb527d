"""Runs the query of one case in memory: feeds it batch by batch, collects the output, restarts and upgrades it."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.project.unit_tests.unit_test import BetweenBatches
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, failure_of
from sqlstream.spark.jvm.internals import can_change_queries
from sqlstream.spark.jvm.plans import grouped_by_time
from sqlstream.spark.queries.watermarks import raise_watermarks, watermarks_of
from sqlstream.spark.reading.memory_streams import (
    Clock,
    JavaRows,
    MemoryOutput,
    RowMaker,
    batches_paused,
    progresses,
    select_rows,
    start_in_memory,
    stop_idle_query,
    watermark_of,
)
from sqlstream.state.runs.case_outcomes import Observed, Row
from sqlstream.state.runs.progress import Figures, add_batch, data_tests_in, read_progress
from sqlstream.testing.frames import CaseFrames

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - tempfile creates a private folder in it
"""The folder for checkpoints of cases, in memory, if the system has it."""

CHECKPOINT = "checkpoint"

AGGREGATIONS = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
"""The names of operators that drop late rows after grouping them (StateStoreSaveExec.shortName)."""


Sink = Callable[[DataFrame, int], object]
"""A function that gets the rows and the number of each micro-batch."""


class SinkError(Exception):
    """The project's Python code raised an error in a batch. The message is one line."""


def call_sink(sink: Sink, rows: DataFrame, number: int) -> None:
    """Passes the rows of the micro-batch `number` to `sink`. Raises: SinkError."""
    try:
        sink(rows, number)
    except Exception as error:
        raise SinkError(f"{type(error).__name__} in batch {number}: {error}") from error


@dataclass(frozen=True)
class IndexedBatch:
    """The rows of one micro-batch: their indexes, from 0, by node. `at` is the time of the clock from this batch on, in
    ms since 1970.
    """

    rows: Mapping[str, tuple[int, ...]]
    at: int | None = None


@dataclass(frozen=True)
class Part:
    """A model in one part of a case: its frames, its analyzed rows, and its output mode."""

    frames: CaseFrames
    frame: DataFrame
    mode: str


@dataclass
class CaseStream:
    """Runs `parts` in order on one checkpoint in `folder`. The second part starts at an upgrade. Calls `sink` with the
    rows and the number of each micro-batch.
    """

    parts: Sequence[Part]
    clock: Clock
    folder: str
    sink: Sink | None = None
    counts: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    wrote: list[bool] = field(default_factory=list)
    is_late: bool = False

    def __post_init__(self) -> None:
        self._before: tuple[tuple[Row, ...], ...] = ()
        self._state_rows = 0
        self._progress: list[dict[str, Any]] = []
        self._part = self.parts[0]
        self._output = MemoryOutput(self._part.frame.sparkSession)

    def run(self, steps: Sequence[IndexedBatch | BetweenBatches], failed: Callable[[Exception], Observed]) -> Observed:
        """Returns the result. `failed` converts an error of Spark to a result."""
        query = None
        try:
            query = self._start()
            for step in steps:
                query = self._take(query, step)
            observed = self._observed(query)
            stop_idle_query(query)
        except (*SPARK_ERRORS, SinkError) as error:
            return failed(_cause(query, error))
        else:
            return observed
        finally:
            _stop(query)

    def _take(self, query: StreamingQuery, step: IndexedBatch | BetweenBatches) -> StreamingQuery:
        """Delivers a batch, or restarts the query, with the next model for an upgrade. Returns the running query."""
        if isinstance(step, IndexedBatch):
            self._deliver(query, step)
            return query
        self._save_state_rows(query)
        kept = watermarks_of(query) if can_change_queries(self._part.frame.sparkSession) else []
        stop_idle_query(query)
        if step is BetweenBatches.UPGRADE:
            self._upgrade()
            return self._start()
        query = self._start()
        if kept:
            raise_watermarks(query, kept)  # as a run does
        return query

    def _start(self) -> StreamingQuery:
        part = self._part
        query = start_in_memory(part.frame, part.mode, f"{self.folder}/{CHECKPOINT}", self._output.sink, self.clock)
        query.processAllAvailable()  # now it has read its checkpoint and waits for rows
        return query

    def _deliver(self, query: StreamingQuery, delivery: IndexedBatch) -> None:
        if delivery.at is not None:
            self.clock.set(delivery.at)
        # a batch drops rows that are behind the watermark of the batch before
        watermark, batches = watermark_of(query), len(progresses(query))
        streams = self._part.frames.streams
        given = {node: select_rows(streams[node].rows, numbers) for node, numbers in delivery.rows.items() if numbers}
        with batches_paused(query):
            for node_id, rows in given.items():
                streams[node_id].stream.add(rows)
        query.processAllAvailable()
        if self.sink is not None:
            part = self._part
            for number, rows in self._output.micro_batches():
                call_sink(self.sink, RowMaker(part.frame.sparkSession).frame(rows, part.frame.schema), number)
        count = self._output.take()
        self.counts.append(count or 0)
        self.wrote.append(count is not None)
        progress = progresses(query)[batches:]
        self._progress += progress
        self.late.append(self._late(progress, given, watermark))

    def _late(self, progress: Sequence[Mapping[str, Any]], given: Mapping[str, JavaRows], watermark: int) -> int:
        """Returns how many of the `given` rows were dropped because they were behind the watermark.

        Spark counts groups instead of rows if it groups rows before it checks their time: 10 late rows of one window
        count as 1.
        """
        dropped = {True: 0, False: 0}
        for operator in (operator for batch in progress for operator in batch["stateOperators"]):
            dropped[operator["operatorName"] in AGGREGATIONS] += operator["numRowsDroppedByWatermark"]
        self.is_late = self.is_late or any(dropped.values())
        if not dropped[True]:
            return dropped[False]
        grouped = grouped_by_time(self._part.frames.over(given), self._part.frame)
        return dropped[False] + (dropped[True] if grouped is None else grouped.count_until(watermark * 1000))

    def _upgrade(self) -> None:
        """Continues with the next part. Earlier output keeps its values in common columns, and has null in new ones."""
        before, batches = self._part.frame.columns, self._read()
        self._part = self.parts[-1]
        numbers = [before.index(name) if name in before else None for name in self._part.frame.columns]
        self._before = tuple(
            tuple(tuple(None if at is None else row[at] for at in numbers) for row in rows) for rows in batches
        )
        self.counts.clear()
        self._output.clear()

    def _save_state_rows(self, query: StreamingQuery) -> None:
        """Saves the number of rows in state, which a restarted query reports only after its first batch."""
        operators = [batch["stateOperators"] for batch in progresses(query) if batch["stateOperators"]]
        if operators:
            self._state_rows = sum(operator["numRowsTotal"] for operator in operators[-1])

    def _observed(self, query: StreamingQuery) -> Observed:
        self._save_state_rows(query)
        batches = self.batches()
        return Observed(
            columns=tuple(self._part.frame.dtypes),
            batches=batches,
            late=tuple(self.late),
            is_late=self.is_late,
            replaces=self._part.mode == "complete",
            watermark=watermark_of(query) or None,
            state_rows=self._state_rows,
            wrote=tuple(self.wrote),
            figures=None if any(batches) else quiet_figures(self._progress),
            violations=violations_in(self._progress),
        )

    def batches(self) -> tuple[tuple[Row, ...], ...]:
        """Returns the output of each delivery so far."""
        return (*self._before, *self._read())

    def _read(self) -> tuple[tuple[Row, ...], ...]:
        """Returns the output of each delivery in the present part."""
        frame = self._part.frame
        maker = RowMaker(frame.sparkSession)
        rows = iter(maker.rows(maker.frame(self._output.rows, frame.schema)))
        return tuple(tuple(next(rows) for _ in range(count)) for count in self.counts)


def violations_in(progress: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Returns the violations of each data test in batches, by `model.test`."""
    found: Counter[str] = Counter()
    for batch in progress:
        counts = data_tests_in(batch.get("observedMetrics") or {})
        found.update({name: count["failed"] for name, count in counts.items()})
    return dict(found)


def quiet_figures(progress: Sequence[Mapping[str, Any]]) -> Figures:
    """Returns the figures of a query that emitted no rows, from the progress of its batches.

    Leaves out sources, because in-memory streams have no names.
    """
    batches = (replace(read_progress("", json.dumps(each)), rows_out=0, sources=()) for each in progress)
    return reduce(add_batch, batches, Figures())


def _stop(query: StreamingQuery | None) -> None:
    if query is None:
        return
    with suppress(*SPARK_ERRORS):
        query.stop()


def _cause(query: StreamingQuery | None, error: Exception) -> Exception:
    """Returns the error that ended the query, if it has ended. The error of the waiting call has no details."""
    if query is None or isinstance(error, SinkError):
        return error
    with suppress(*SPARK_ERRORS):
        return failure_of(query) or error
    return error


@contextmanager
def checkpoint_folder() -> Iterator[str]:
    """Yields a temporary folder for one checkpoint, in memory if possible."""
    place = str(MEMORY_DISK) if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sqlstream-test-", dir=place, ignore_cleanup_errors=True) as folder:
        for name in ("offsets", "commits"):  # Spark starts a `chmod` process for each folder that it creates
            Path(folder, CHECKPOINT, name).mkdir(parents=True)
        yield folder


def write_each(make: Callable[[], Any]) -> Sink:
    """Returns a sink that passes each row to the `foreach` writer from `make`, and opens and closes it like PySpark."""
    make_once = cache(make)

    def sink(rows: DataFrame, number: int) -> None:
        writer = make_once()
        error = None
        try:
            is_open = not hasattr(writer, "open") or writer.open(0, number)
            for row in rows.collect() if is_open else ():
                writer.process(row)
        except Exception as raised:
            error = raised
            raise
        finally:
            if hasattr(writer, "close"):
                writer.close(error)

    return sink
