"""Rows of metrics: what is in them, and how they reach a sink that may fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from datetime import UTC, date, datetime

from sqlstream.app.observe.metrics import RunFacts
from sqlstream.app.observe.metrics_sink import MetricsRow, MetricsSink
from sqlstream.app.observe.observers import Observed
from sqlstream.compiler.own_rows import METRICS_COLUMNS
from sqlstream.state.runs.progress import BatchProgress, SourceProgress, StateProgress

NOW = datetime(2024, 1, 1, tzinfo=UTC)
FACTS = RunFacts("shop", "local", "1.2.3", NOW)
SECONDS = 30
LONG = 1e6


def seen(number: int) -> Observed:
    """Returns a batch as an observer gets it."""
    source = SourceProgress(
        "shop.raw", "KafkaV2[raw]", '{"raw":{"0":1}}', '{"raw":{"0":2}}', 1, None, None, {"records": 4}
    )
    batch = BatchProgress(
        "orders", number, "2024-01-01T23:59:59.5Z", 100, 1, 0, "2024-01-01T12:00:00Z",
        parts_ms={"addBatch": 60, "queryPlanning": 10, "walCommit": 5, "commitOffsets": 4},
        state=StateProgress(("x",), 9, 2, 0, 4096, 3), sources=(source,),
    )  # fmt: skip
    return Observed(NOW, batch, None)


class Sink:
    """A sink that fails as often as `failures` says."""

    def __init__(self, failures: int = 0) -> None:
        self.batches: list[tuple[int, list[object]]] = []
        self.attempts: list[int] = []
        self.written = threading.Event()
        self._failures = failures

    def write(self, number: int, rows: Sequence[MetricsRow]) -> None:
        """Keeps the number of the batch, and the numbers of the batches in its rows."""
        self.attempts.append(number)
        if len(self.attempts) <= self._failures:
            raise OSError("the disk is full\nand more")
        position = [name for name, _, _ in METRICS_COLUMNS].index("batch_id")
        self.batches.append((number, [row[position] for row in rows]))
        self.written.set()


def metrics_sink(reports: list[str], interval: float = LONG, max_rows: int = 100) -> MetricsSink:
    """Returns a sink of metrics that repeats attempts at once."""
    return MetricsSink("lake", interval, FACTS, "run-1", reports.append, first_delay_seconds=0.0, max_rows=max_rows)


def test_a_row_has_all_figures_of_its_batch() -> None:
    """The row of a batch has the documented columns, with times as values and sources as JSON."""
    rows: list[MetricsRow] = []
    sink = metrics_sink([])
    with sink.writing(lambda _, batch: rows.extend(batch), lambda: None):
        sink.observe(seen(7))
    ((*values,),) = rows
    row = dict(zip([name for name, _, _ in METRICS_COLUMNS], values, strict=True))
    assert row["time"] == datetime(2024, 1, 1, 23, 59, 59, 500_000, tzinfo=UTC)
    assert row["date"] == date(2024, 1, 1)
    assert [row[name] for name in ("project", "target", "model", "invocation_id", "batch_id")] == [
        "shop", "local", "orders", "run-1", 7,
    ]  # fmt: skip
    assert [row[f"{name}_ms"] for name in ("duration", "add_batch", "planning", "wal", "other")] == [100, 60, 10, 9, 21]
    assert (row["rows_in"], row["rows_out"], row["late_rows"], row["state_rows"]) == (1, 0, 3, 9)
    assert row["watermark"] == datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert json.loads(str(row["sources"]))[0]["lag"] == {"records": 4}


def test_rows_are_written_together_at_the_interval_and_at_the_end() -> None:
    """Rows wait for the interval; those of the last batches are written when the run ends."""
    reports: list[str] = []
    often, sink = metrics_sink(reports, interval=0.01), Sink()
    with often.writing(sink.write, lambda: None):
        often.observe(seen(0))
        assert sink.written.wait(SECONDS)

    late, rarely = metrics_sink(reports), Sink()
    with late.writing(rarely.write, lambda: late.observe(seen(2))):
        late.observe(seen(0))
        late.observe(seen(1))
    assert sink.batches == [(0, [0])]
    assert rarely.batches == [(0, [0, 1, 2])]
    assert reports == []


def test_a_batch_that_failed_is_repeated_as_it_was() -> None:
    """After errors the same rows come again with the same number, later rows after them; one message says so."""
    reports: list[str] = []
    sink, failing = metrics_sink(reports, interval=0.01), Sink(failures=3)
    with sink.writing(failing.write, lambda: None):
        sink.observe(seen(0))
        assert failing.written.wait(SECONDS)
        sink.observe(seen(1))
    assert failing.batches == [(0, [0]), (1, [1])]
    assert failing.attempts == [0, 0, 0, 0, 1]
    assert reports == [
        "metrics cannot be written to sink lake (the disk is full); the queries continue, and it is tried again"
    ]


def test_a_sink_that_failed_very_often_gets_its_rows() -> None:
    """The delay between two attempts stops growing, so that a sink which fails for days is still tried again."""
    sink, failing = metrics_sink([], interval=0.01), Sink(failures=1_100)
    with sink.writing(failing.write, lambda: None):
        sink.observe(seen(0))
        assert failing.written.wait(SECONDS)
    assert failing.batches == [(0, [0])]


def test_lost_rows_are_counted() -> None:
    """A sink that never works costs the oldest rows while the run lasts, and the others at its end."""
    reports: list[str] = []
    sink = metrics_sink(reports, max_rows=2)
    with sink.writing(Sink(failures=1000).write, lambda: None):
        for number in range(5):
            sink.observe(seen(number))
    assert reports[-1] == "5 rows of metrics were not written to sink lake"
