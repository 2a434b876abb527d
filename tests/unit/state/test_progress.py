"""The progress of a batch, from reports of Spark 4.3 (tests/unit/state/progress), and what batches add up to."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from sqlstream.figures import FIGURES
from sqlstream.state.ledger import SourceUse
from sqlstream.state.runs.events import SelectedQuery
from sqlstream.state.runs.progress import (
    RATES_KEPT,
    BatchProgress,
    StateProgress,
    moment,
    read_progress,
    stored_batch,
    total,
)
from sqlstream.state.runs.tracked_run import TrackedQuery
from tests.support.batches import batch, figures, source, state

TEXTS = Path(__file__).parent / "progress"


def recorded(name: str) -> dict[str, Any]:
    """Returns one of the recorded reports."""
    report: dict[str, Any] = json.loads((TEXTS / f"{name}.json").read_text(encoding="utf-8"))
    return report


def read(report: dict[str, Any]) -> BatchProgress:
    """Returns the progress in a report."""
    return read_progress("orders", json.dumps(report))


def test_a_batch_over_files() -> None:
    """The number of rows that a file sink writes comes from the observation."""
    progress = read(recorded("files"))

    assert replace(progress, parts_ms={}, sources=()) == BatchProgress(
        model="orders",
        batch_id=1,
        started_at="2026-11-21T12:01:47.017Z",
        duration_ms=543,
        rows_in=4,
        rows_out=4,
        watermark=None,
        input_rows_per_second=progress.input_rows_per_second,
        processed_rows_per_second=progress.processed_rows_per_second,
    )


def test_a_batch_over_the_rate_source() -> None:
    """The offsets of the rate source are plain numbers."""
    progress = read(recorded("rate"))

    assert (progress.batch_id, progress.rows_in, progress.rows_out) == (1, 5, 5)


@pytest.mark.parametrize(
    ("observed", "counted", "rows"), [(4, -1, 4), (4, 9, 4), (None, 9, 9), (None, 0, 0), (None, -1, None)]
)
def test_the_rows_out_are_those_observed_or_counted_by_the_sink(
    observed: int | None, counted: int, rows: int | None
) -> None:
    """Spark reports -1 for a sink that does not count."""
    metrics = {} if observed is None else {"sqlstream_rows_out": {"rows": observed}}

    progress = read({**recorded("rate"), "observedMetrics": metrics, "sink": {"numOutputRows": counted}})

    assert progress.rows_out == rows


def test_rows_of_a_removed_reader_are_unknown() -> None:
    """With `where false` over files, the offsets advance, but no rows are counted."""
    progress = read(recorded("reader_dropped"))

    assert (progress.rows_in, progress.rows_out) == (None, 0)


def test_an_idle_batch_read_nothing() -> None:
    """The batch that Spark runs to close windows has no new files, so 0 rows is correct."""
    progress = read(recorded("no_data"))

    assert (progress.rows_in, progress.rows_out) == (0, 0)
    assert progress.watermark == "2024-01-01T00:54:00.000Z"


def test_there_is_no_watermark_before_the_first_event() -> None:
    """Before the first event, when Spark reports 1970, there is no watermark."""
    assert read(recorded("before_watermark")).watermark is None


@pytest.mark.parametrize("observed", [None, {}, {"another": {"rows": 3}}, {"sqlstream_rows_out": {}}])
def test_rows_out_without_the_observation_are_unknown(observed: dict[str, Any] | None) -> None:
    """Without the observation, which the optimizer can remove, the number of output rows is unknown."""
    assert read({**recorded("files"), "observedMetrics": observed}).rows_out is None


@pytest.mark.parametrize("rows", [{"numInputRows": -1}, {}])
def test_a_reader_that_does_not_count_makes_the_sum_unknown(rows: dict[str, int]) -> None:
    """If one reader does not count its rows, the sum is unknown."""
    report = recorded("rate")
    report["sources"].append({"description": "Own", "startOffset": 1, "endOffset": 2, **rows})

    assert read(report).rows_in is None


def test_the_rows_of_all_readers_are_added() -> None:
    """The rows of several readers are added, for example in a self-join."""
    report = recorded("rate")
    report["sources"] *= 2

    assert read(report).rows_in == 10


def test_a_report_without_the_batch_duration_still_has_one() -> None:
    """Without the duration of the batch, that of the trigger is used."""
    report = recorded("rate")
    del report["batchDuration"]

    assert read(report).duration_ms == 264


def test_a_batch_has_its_parts_its_times_and_its_state() -> None:
    """A batch has durations with Spark's names, its event times, and the state of all operators together."""
    progress = read(recorded("join"))

    assert (progress.parts_ms["addBatch"], progress.parts_ms["walCommit"]) == (1002, 96)
    assert (progress.oldest_event, progress.newest_event) == ("2024-01-01T12:01:00.000Z", "2024-01-01T12:01:00.000Z")
    assert progress.state == StateProgress(("symmetricHashJoin",), 3, 1, 0, 5376, 0, 730, 2)
    assert (progress.input_rows_per_second, progress.processed_rows_per_second) == (0.2, 0.6)


def test_the_parts_of_a_batch_add_up_to_its_duration() -> None:
    """Listing files and fetching their offsets is finding input; what Spark does not report is the rest."""
    progress = read(recorded("join"))

    parts = (progress.input_ms, progress.planning_ms, progress.add_batch_ms, progress.wal_ms, progress.other_ms)
    assert parts == (90 + 21, 421, 1_002, 96 + 115, 66)
    assert sum(parts) == progress.duration_ms
    assert (progress.state_commit_ms, progress.core_ms) == (730, None)


def test_core_time_adds_up_until_a_batch_is_unknown() -> None:
    """A run adds up the tasks of its batches. A sum with an unknown part is unknown, not too small."""
    known = figures(batch(core_ms=900, tasks=4, cores=2), batch(core_ms=100, tasks=2, cores=2))
    assert (known.sums["core_ms"], known.sums["tasks"]) == (1_000, 6)
    assert figures(batch(core_ms=900), batch()).sums["core_ms"] is None


def test_late_rows_are_those_of_all_operators() -> None:
    """Late rows of all operators are added; an unknown number (-1) does not reduce the sum."""
    report = recorded("join")
    operator = report["stateOperators"][0]
    report["stateOperators"] = [operator | {"numRowsDroppedByWatermark": late} for late in (2, -1, 3)]

    state = read(report).state

    assert state is not None
    assert (state.late_rows, state.rows) == (5, 9)


def test_sources_have_their_tables_offsets_and_rows() -> None:
    """Files are identified by their path in any notation; offsets are Spark's JSON."""
    uses = [SourceUse("x", "shop.a", None, "/data/in/a/"), SourceUse("y", "shop.b", None, "file:///data/in/b")]
    a, b = read_progress("orders", json.dumps(recorded("join")), uses).sources

    assert (a.name, a.start_offset, a.end_offset, a.rows_in) == ("shop.a", '{"logOffset": 0}', '{"logOffset": 1}', 1)
    assert (b.name, b.description, b.rows_in) == ("shop.b", "FileStreamSource[file:/data/in/b]", 0)


def test_an_ambiguous_source_keeps_sparks_description() -> None:
    """A source that can be one of two tables has Spark's description as its name."""
    uses = [SourceUse("x", "shop.a", None, "/data/in/a"), SourceUse("y", "shop.b", None, "/data/in/a")]

    assert [source.name for source in read_progress("orders", json.dumps(recorded("join")), uses).sources] == [
        "FileStreamSource[file:/data/in/a]",
        "FileStreamSource[file:/data/in/b]",
    ]
    one = [SourceUse("x", "shop.a", None)]
    assert read_progress("orders", json.dumps(recorded("rate")), one).sources[0].name == "shop.a"


def test_secrets_in_descriptions_of_sources_are_masked() -> None:
    """Secrets in descriptions and offsets of sources are masked."""
    report = recorded("join")
    report["sources"][0]["startOffset"] = "hunter2"
    text = json.dumps(report).replace("/data/in/a", "/hunter2")

    progress = read_progress("orders", text, (), lambda said: said.replace("hunter2", "***"))

    assert "hunter2" not in repr(progress)


@pytest.mark.parametrize(
    ("counts", "expected"), [([], 0), ([1, 2], 3), ([0, 0], 0), ([1, None], None), ([None], None)], ids=str
)
def test_a_total_is_known_when_every_part_is(counts: list[int | None], expected: int | None) -> None:
    """A sum with an unknown part is unknown."""
    assert total(counts) == expected


def test_dropped_records_are_those_of_all_readers() -> None:
    """Dropped records of all readers are added; each reader has its own counter."""
    report = recorded("files")
    dropped = {"sqlstream_dropped_shop__orders": {"rows": 2}, "sqlstream_dropped_shop__orders__2": {"rows": 3}}
    report["observedMetrics"] = report["observedMetrics"] | dropped

    progress = read(report)

    assert (progress.dropped_records, progress.rows_out) == (5, 4)


def test_totals_are_added_up() -> None:
    """Rows, late rows and batches are added; the last batch is stored."""
    last = batch(7, 3, state=state(late=2), input_rows_per_second=4.5)

    found = figures(batch(5, 1, state=state(late=1)), last)

    assert [found.batches, *map(found.sums.get, ("rows_in", "rows_out", "late_rows", "duration_ms"))] == [
        2,
        12,
        4,
        3,
        200,
    ]
    assert found.last is last
    assert found.rates == (0.0, 4.5)


def test_a_total_with_an_unknown_part_is_unknown() -> None:
    """It stays unknown with later batches."""
    found = figures(batch(None, None), batch(1, 1))

    assert (found.sums["rows_in"], found.sums["rows_out"]) == (None, None)


def test_only_the_latest_rates_are_kept() -> None:
    """A run of months needs no more memory than one of minutes."""
    assert len(figures(*[batch()] * 100).rates) == RATES_KEPT


def test_the_lag_uses_the_newest_event_of_all_batches() -> None:
    """A later batch with older events does not reduce the lag."""
    found = figures(
        batch(newest_event="2024-01-01T12:30:00.000Z"),
        batch(newest_event="2024-01-01T12:01:00.000Z", watermark="2024-01-01T12:20:00.000Z"),
    )

    assert found.watermark_lag_seconds == 600
    assert figures(batch(newest_event="2024-01-01T12:30:00.000Z")).watermark_lag_seconds is None


def test_the_silent_span_restarts_with_each_output_row() -> None:
    """Each output row starts a new silent span, in which batches without input do not count."""
    found = figures(
        batch(9, 1),
        batch(5, 0, sources=(source("a", 5), source("b", 0)), oldest_event="2024-01-01T12:01:00.000Z"),
        batch(0, 0, sources=(source("a", 0), source("b", 0))),
        batch(4, 0, sources=(source("a", 3), source("a", 1)), oldest_event="2024-01-01T12:02:00.000Z"),
    )

    assert (found.quiet.batches, found.quiet.rows_in) == (2, 9)
    assert dict(found.quiet.source_rows) == {"a": 9, "b": 0}
    assert found.quiet.oldest_event == "2024-01-01T12:01:00.000Z"


def test_an_unknown_number_of_rows_out_is_not_silence() -> None:
    """A query whose output rows are not counted is not called silent."""
    assert figures(batch(5, None)).quiet.batches == 0


def test_a_time_beyond_pythons_range_is_unknown() -> None:
    """A time beyond the year 9999, which Spark supports, counts as unknown."""
    assert moment("+12024-01-01T12:00:00.000Z") is None
    assert moment(None) is None


def test_dropped_records_of_a_static_table_are_counted_once() -> None:
    """Each batch reads the table again; the records that streams drop are added."""
    added = figures(
        batch(5, 5, dropped_records=3, dropped_static=2), batch(5, 5, dropped_records=6, dropped_static=4), batch(5, 5)
    )

    assert (added.sums["dropped_records"], added.dropped_static) == (1 + 2 + 4, 4)


def test_each_figure_is_an_attribute_of_its_batch_or_query() -> None:
    """The table of figures names what a batch, or the query after it, has; sums begin at 0."""
    query = TrackedQuery(SelectedQuery("orders", "id", "lake", "kafka", "append", "once", ()))
    for figure in FIGURES:
        getattr(query if figure.of_query else batch(), figure.name)
    assert set(query.figures.sums.values()) == {0}


def test_a_batch_is_read_from_the_journal() -> None:
    """A batch that was written as JSON is the same when it is read; earlier versions wrote less, and `backlog`."""
    whole = batch(5, 3, state=state(late=2), sources=(source("a", 5),), parts_ms={"addBatch": 60, "commitBatch": 7})
    written = json.loads(json.dumps(asdict(whole)))
    read = stored_batch(written)
    assert asdict(read) == asdict(whole) | {"state": asdict(whole)["state"] | {"operators": ["stateStoreSave"]}}
    assert (read.late_rows, read.add_batch_ms, read.wal_ms, read.other_ms, read.lag) == (2, 60, 7, 33, None)

    early = {
        "model": "a",
        "batch_id": 1,
        "started_at": "2024-01-01T00:00:00Z",
        "sources": [{"backlog": {"records": 4}}],
    }
    assert (stored_batch(early).lag, stored_batch(early).rows_in, stored_batch(early).state_rows) == (4, None, None)
