"""The totals of a query in a run."""

from __future__ import annotations

from sqlstream.state.runs.figures import RATES_KEPT, moment
from tests.support.batches import batch, figures, source, state


def test_totals_are_added_up() -> None:
    """Rows, late rows and batches are added; the last batch is stored."""
    last = batch(7, 3, state=state(late=2), input_rows_per_second=4.5)

    found = figures(batch(5, 1, state=state(late=1)), last)

    assert (found.batches, found.rows_in, found.rows_out, found.late_rows) == (2, 12, 4, 3)
    assert found.last is last
    assert found.rates == (0.0, 4.5)


def test_a_total_with_an_unknown_part_is_unknown() -> None:
    """It stays unknown with later batches."""
    found = figures(batch(None, None), batch(1, 1))

    assert (found.rows_in, found.rows_out) == (None, None)


def test_only_the_latest_rates_are_kept() -> None:
    """A run of months needs no more memory than one of minutes."""
    assert len(figures(*[batch()] * 100).rates) == RATES_KEPT


def test_the_lag_uses_the_newest_event_of_all_batches() -> None:
    """A later batch with older events does not reduce the lag."""
    found = figures(
        batch(newest_event="2024-01-01T12:30:00.000Z"),
        batch(newest_event="2024-01-01T12:01:00.000Z", watermark="2024-01-01T12:20:00.000Z"),
    )

    assert found.lag_seconds == 600
    assert figures(batch(newest_event="2024-01-01T12:30:00.000Z")).lag_seconds is None


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

    assert (added.dropped_records, added.dropped_static) == (1 + 2 + 4, 4)
