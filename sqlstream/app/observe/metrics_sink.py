"""Collects a row of metrics for each batch, and writes them to a sink in a background thread."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC
from itertools import count

from sqlstream.app.observe.metrics import RunFacts
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.compiler.own_rows import METRICS_COLUMNS
from sqlstream.errors import FindingsError
from sqlstream.figures import FIGURES
from sqlstream.state.runs.progress import BatchProgress, SourceProgress, moment
from sqlstream.state.runs.tracked_run import TrackedQuery

MAX_ROWS = 20_000
"""The number of rows to keep while the sink cannot be written."""

FIRST_DELAY_SECONDS = 5.0
LONGEST_DELAY_SECONDS = 300.0
"""The delays before an attempt is repeated: they double."""

FINISH_SECONDS = 20.0
"""How long the end of a run waits for the last rows."""

MetricsRow = tuple[object, ...]

METRICS_SCHEMA = ", ".join(f"{name} {type_}" for name, type_, _ in METRICS_COLUMNS)
"""The columns of the rows in Spark's DDL."""

Write = Callable[[int, Sequence[MetricsRow]], None]
"""Writes the batch with a number. The same number again is the same batch."""

logger = logging.getLogger("sqlstream.metrics")


class MetricsSink:
    """Writes metrics to the sink `sink` every `interval_seconds`, while `writing` lasts. `report` gets sentences."""

    name = "the sink of the metrics"

    def __init__(
        self,
        sink: str,
        interval_seconds: float,
        facts: RunFacts,
        invocation_id: str,
        report: Callable[[str], None],
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
        max_rows: int = MAX_ROWS,
    ) -> None:
        self._sink, self._interval, self._report = sink, interval_seconds, report
        self._facts, self._invocation_id = facts, invocation_id
        self._first_delay = first_delay_seconds
        self._rows: deque[MetricsRow] = deque(maxlen=max_rows)
        self._pending: tuple[int, list[MetricsRow]] | None = None
        self._numbers = count()
        self._lost = 0
        self._failures = 0
        self._changed = threading.Condition()
        self._is_ending = False

    def observe(self, seen: Observed) -> None:
        """Keeps the row of a batch. If there are too many, the oldest one is lost."""
        if not isinstance(seen.event, BatchProgress):
            return
        row = metrics_row(self._facts, self._invocation_id, seen.event, seen.query)
        with self._changed:
            self._lost += len(self._rows) == self._rows.maxlen  # append() drops the oldest row of a full deque
            self._rows.append(row)

    def tick(self, now: Snapshot) -> None:
        """Does nothing."""

    def close(self, last: Snapshot) -> None:
        """Does nothing: `writing` has ended before."""

    @contextmanager
    def writing(self, write: Write, drain: Callable[[], object]) -> Iterator[None]:
        """Writes rows during the body, and the last ones after it. `drain` waits until all events were observed."""
        work = copy_context().run
        thread = threading.Thread(target=work, args=(self._work, write), name="metrics sink", daemon=True)
        thread.start()
        try:
            yield
        finally:
            drain()
            with self._changed:
                self._is_ending = True
                self._changed.notify_all()
            thread.join(FINISH_SECONDS)
            self._report_lost()
            self._report = lambda _text: None  # the thread may still fail, after Spark has stopped

    def _work(self, write: Write) -> None:
        while True:
            with self._changed:
                delay = self._interval
                if self._failures:
                    doublings = min(self._failures - 1, 64)  # 2.0 ** 1024 overflows
                    delay = min(self._first_delay * 2.0**doublings, LONGEST_DELAY_SECONDS)
                self._changed.wait_for(lambda: self._is_ending, delay)
                is_last = self._is_ending
            self._write_all(write)
            if is_last:
                return

    def _write_all(self, write: Write) -> None:
        """Writes the batch that failed before, if any, and then all other rows, until one fails."""
        while (batch := self._next_batch()) is not None:
            try:
                write(*batch)
            except Exception as error:  # the sink must not harm the run; it is tried again
                self._note_failure(error)
                return
            with self._changed:
                self._pending = None
                self._failures = 0

    def _next_batch(self) -> tuple[int, list[MetricsRow]] | None:
        with self._changed:
            if self._pending is None and self._rows:
                self._pending = (next(self._numbers), list(self._rows))
                self._rows.clear()
            return self._pending

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        logger.warning("metrics could not be written to %s", self._sink, exc_info=error)
        if self._failures == 1:
            why = error.findings[0].why if isinstance(error, FindingsError) else _first_line(error)
            self._report(
                f"metrics cannot be written to sink {self._sink} ({why}); the queries continue, and it is tried again"
            )

    def _report_lost(self) -> None:
        with self._changed:
            left = len(self._rows) + (len(self._pending[1]) if self._pending else 0)
            lost = self._lost + left
        if lost:
            self._report(f"{lost:,} rows of metrics were not written to sink {self._sink}")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def metrics_row(facts: RunFacts, invocation_id: str, batch: BatchProgress, query: TrackedQuery | None) -> MetricsRow:
    """Returns the row of a batch; `query` is the state of its query after it."""
    time = moment(batch.started_at)
    values: dict[str, object] = {
        "time": time,
        "date": None if time is None else time.astimezone(UTC).date(),
        "project": facts.project,
        "target": facts.target,
        "model": batch.model,
        "invocation_id": invocation_id,
        "batch_id": batch.batch_id,
        "sources": json.dumps([_source(source) for source in batch.sources]),
    }
    for figure in FIGURES:
        value = getattr(query if figure.of_query else batch, figure.name, None)
        values[figure.name] = moment(value) if figure.type == "timestamp" else value
    return tuple(values[name] for name, _, _ in METRICS_COLUMNS)


def _source(source: SourceProgress) -> dict[str, object]:
    return {
        "name": source.name,
        "rows_in": source.rows_in,
        "start_offset": source.start_offset,
        "end_offset": source.end_offset,
        "lag": dict(source.lag),
    }
