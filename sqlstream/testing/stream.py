"""The query of one case in memory: rows given batch by batch, what comes out of each, restarts and upgrades between."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.project.unit_tests.values import BetweenBatches
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
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
from sqlstream.spark.running.plans import grouped_by_time
from sqlstream.state.results.unit_tests import Observed, Row
from sqlstream.state.runs.figures import Figures, add_batch
from sqlstream.state.runs.progress import read_progress
from sqlstream.testing.frames import CaseFrames

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - a file system in memory, in which tempfile makes a folder of its own
"""Where checkpoints of cases lie where there is such a place."""

CHECKPOINT = "checkpoint"

AGGREGATIONS = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
"""The names of the operators that drop late rows after they have grouped them (StateStoreSaveExec.shortName)."""


Sink = Callable[[DataFrame, int], object]
"""What takes the rows of a micro-batch, and its number."""


class SinkError(Exception):
    """The project's own code has raised an error while it took a batch; the message is one line."""


@dataclass(frozen=True)
class Delivery:
    """Rows that come in one micro-batch: by node the numbers of its rows, from 0; `at` is what the clock says from then
    on, in ms since 1970.
    """

    rows: Mapping[str, tuple[int, ...]]
    at: int | None = None


@dataclass(frozen=True)
class Part:
    """A model that runs for a while: its frames, its analysed rows, and its output mode."""

    frames: CaseFrames
    frame: DataFrame
    mode: str


@dataclass
class CaseStream:
    """Runs `parts` one after the other on one checkpoint in `folder`: the second from an upgrade on. `sink` is called
    with the rows and the number of each micro-batch.
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
        self._told: list[dict[str, Any]] = []
        self._part = self.parts[0]
        self._output = MemoryOutput(self._part.frame.sparkSession)

    def run(self, steps: Sequence[Delivery | BetweenBatches], failed: Callable[[Exception], Observed]) -> Observed:
        """Returns what came out; `failed` makes it of an error of Spark's."""
        query = None
        try:
            query = self._start()
            for step in steps:
                if isinstance(step, Delivery):
                    self._deliver(query, step)
                    continue
                self._remember_state(query)
                stop_idle_query(query)
                if step is BetweenBatches.UPGRADE:
                    self._upgrade()
                query = self._start()
            observed = self._observed(query)
            stop_idle_query(query)
        except (*SPARK_ERRORS, SinkError) as error:
            return failed(_cause(query, error))
        else:
            return observed
        finally:
            if query is not None:
                with suppress(*SPARK_ERRORS):
                    query.stop()

    def _start(self) -> StreamingQuery:
        part = self._part
        query = start_in_memory(part.frame, part.mode, f"{self.folder}/{CHECKPOINT}", self._output.sink, self.clock)
        query.processAllAvailable()  # it has read its checkpoint, and waits for rows
        return query

    def _deliver(self, query: StreamingQuery, delivery: Delivery) -> None:
        if delivery.at is not None:
            self.clock.set(delivery.at)
        watermark, batches = watermark_of(query), len(progresses(query))
        streams = self._part.frames.streams
        given = {node: select_rows(streams[node].rows, numbers) for node, numbers in delivery.rows.items() if numbers}
        with batches_paused(query):
            for node_id, rows in given.items():
                streams[node_id].stream.add(rows)
        query.processAllAvailable()
        if self.sink is not None:
            for number, rows in self._output.micro_batches():
                self._call_sink(self.sink, rows, number)
        count = self._output.take()
        self.counts.append(count or 0)
        self.wrote.append(count is not None)
        told = progresses(query)[batches:]
        self._told += told
        self.late.append(self._late(told, given, watermark))

    def _call_sink(self, sink: Sink, rows: JavaRows, number: int) -> None:
        frame = RowMaker(self._part.frame.sparkSession).frame(rows, self._part.frame.schema)
        try:
            sink(frame, number)
        except Exception as error:
            raise SinkError(f"{type(error).__name__} in batch {number}: {error}") from error

    def _late(self, told: Sequence[Mapping[str, Any]], given: Mapping[str, JavaRows], watermark: int) -> int:
        """How many of the rows that were `given` count nowhere, since they came behind the watermark.

        Spark itself counts the groups that it makes of such rows before it looks at their time: 10 late rows of one
        window are 1 there.
        """
        dropped = {True: 0, False: 0}
        for operator in (operator for batch in told for operator in batch["stateOperators"]):
            dropped[operator["operatorName"] in AGGREGATIONS] += operator["numRowsDroppedByWatermark"]
        self.is_late = self.is_late or any(dropped.values())
        if not dropped[True]:
            return dropped[False]
        grouped = grouped_by_time(self._part.frames.over(given), self._part.frame)
        return dropped[False] + (dropped[True] if grouped is None else grouped.count_until(watermark * 1000))

    def _upgrade(self) -> None:
        """Goes on with the next part. What came out before keeps its values in the columns that both have; those that
        only the next one has are null there.
        """
        before, batches = self._part.frame.columns, self._read()
        self._part = self.parts[-1]
        numbers = [before.index(name) if name in before else None for name in self._part.frame.columns]
        self._before = tuple(
            tuple(tuple(None if at is None else row[at] for at in numbers) for row in rows) for rows in batches
        )
        self.counts.clear()
        self._output.clear()

    def _remember_state(self, query: StreamingQuery) -> None:
        """Keeps how many rows are in state, which a query that is started again tells after its first batch only."""
        told = [batch["stateOperators"] for batch in progresses(query) if batch["stateOperators"]]
        if told:
            self._state_rows = sum(operator["numRowsTotal"] for operator in told[-1])

    def _observed(self, query: StreamingQuery) -> Observed:
        self._remember_state(query)
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
            figures=None if any(batches) else quiet_figures(self._told),
        )

    def batches(self) -> tuple[tuple[Row, ...], ...]:
        """Returns what has come out by each delivery so far."""
        return (*self._before, *self._read())

    def _read(self) -> tuple[tuple[Row, ...], ...]:
        """What has come out by each delivery of the present part."""
        frame = self._part.frame
        maker = RowMaker(frame.sparkSession)
        rows = iter(maker.rows(maker.frame(self._output.rows, frame.schema)))
        return tuple(tuple(next(rows) for _ in range(count)) for count in self.counts)


def quiet_figures(told: Sequence[Mapping[str, Any]]) -> Figures:
    """Returns what a query did in all that no rows came out of; `told` is what Spark says of its batches. The streams
    in memory have no names to show.
    """
    batches = (replace(read_progress("", json.dumps(each)), rows_out=0, sources=()) for each in told)
    return reduce(add_batch, batches, Figures())


def _cause(query: StreamingQuery | None, error: Exception) -> Exception:
    """What ended the query, where it has ended: the call that waits for it says only that."""
    if query is None or isinstance(error, SinkError):
        return error
    with suppress(*SPARK_ERRORS):
        return query.exception() or error
    return error


@contextmanager
def checkpoint_folder() -> Iterator[str]:
    """Gives a folder for one checkpoint, in memory where there is such a place, and clears it away."""
    place = str(MEMORY_DISK) if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sqlstream-test-", dir=place, ignore_cleanup_errors=True) as folder:
        for name in ("offsets", "commits"):  # Spark starts a `chmod` for each folder that it makes
            Path(folder, CHECKPOINT, name).mkdir(parents=True)
        yield folder


def write_each(make: Callable[[], Any]) -> Sink:
    """Returns what gives each row to the `foreach` writer that `make` makes, opened and closed as in PySpark."""
    writers: list[Any] = []

    def sink(rows: DataFrame, number: int) -> None:
        if not writers:
            writers.append(make())
        (writer,) = writers
        error = None
        try:
            if not hasattr(writer, "open") or writer.open(0, number):
                for row in rows.collect():
                    writer.process(row)
        except Exception as raised:
            error = raised
            raise
        finally:
            if hasattr(writer, "close"):
                writer.close(error)

    return sink
