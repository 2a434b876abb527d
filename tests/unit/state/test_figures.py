"""What a query has done in a run, added up."""

from __future__ import annotations

from batches import batch, figures, source, state

from sqlstream.state.runs.figures import RATES_KEPT, moment


def test_totals_are_added_up() -> None:
    """Rows, late rows and batches; the last batch is kept as it is."""
    last = batch(7, 3, state=state(late=2), input_rows_per_second=4.5)

    found = figures(batch(5, 1, state=state(late=1)), last)

    assert (found.batches, found.rows_in, found.rows_out, found.late_rows) == (2, 12, 4, 3)
    assert found.last is last
    assert found.rates == (0.0, 4.5)


def test_a_total_with_an_unknown_part_is_not_known() -> None:
    """It stays so, whatever comes after."""
    found = figures(batch(None, None), batch(1, 1))

    assert (found.rows_in, found.rows_out) == (None, None)


def test_only_the_latest_rates_are_kept() -> None:
    """A run of months holds no more than one of minutes."""
    assert len(figures(*[batch()] * 100).rates) == RATES_KEPT


def test_the_lag_is_behind_the_newest_event_of_all_batches() -> None:
    """A later batch with older events does not make the watermark look nearer."""
    found = figures(
        batch(newest_event="2024-01-01T12:30:00.000Z"),
        batch(newest_event="2024-01-01T12:01:00.000Z", watermark="2024-01-01T12:20:00.000Z"),
    )

    assert found.lag_seconds == 600
    assert figures(batch(newest_event="2024-01-01T12:30:00.000Z")).lag_seconds is None


def test_quiet_begins_anew_with_each_row_out() -> None:
    """Batches without input do not count, as they could give nothing."""
    found = figures(
        batch(9, 1),
        batch(5, 0, sources=(source("a", 5), source("b", 0)), oldest_event="2024-01-01T12:01:00.000Z"),
        batch(0, 0, sources=(source("a", 0), source("b", 0))),
        batch(4, 0, sources=(source("a", 3), source("a", 1)), oldest_event="2024-01-01T12:02:00.000Z"),
    )

    assert (found.quiet.batches, found.quiet.rows_in) == (2, 9)
    assert dict(found.quiet.source_rows) == {"a": 9, "b": 0}
    assert found.quiet.oldest_event == "2024-01-01T12:01:00.000Z"


def test_rows_out_that_nobody_counted_may_be_rows() -> None:
    """Such a query is not called silent."""
    assert figures(batch(5, None)).quiet.batches == 0


def test_a_time_that_python_does_not_have_is_not_known() -> None:
    """Spark's calendar goes further."""
    assert moment("+12024-01-01T12:00:00.000Z") is None
    assert moment(None) is None


def test_the_records_dropped_of_a_static_table_are_counted_once() -> None:
    """Each batch reads the table anew; what streams dropped is added up."""
    added = figures(
        batch(5, 5, dropped_records=3, dropped_static=2), batch(5, 5, dropped_records=6, dropped_static=4), batch(5, 5)
    )

    assert (added.dropped_records, added.dropped_static) == (1 + 2 + 4, 4)
