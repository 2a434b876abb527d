"""Explains why a query emits no rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sqlstream.compiler.emission import Delay, Emission, Step, WaitsFor
from sqlstream.compiler.sql.edits import Where
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.silence import Cause, Silence, recorded_silence, why_ended_silent, why_silent
from tests.support.batches import batch, figures, source, state

HERE = Where("model.shop.orders", 0)
TEN = Delay("ts", "10 minutes", timedelta(minutes=10), HERE)
TWO = Delay("at", "2 minutes", timedelta(minutes=2), HERE)


def emission(
    release: WaitsFor, time: str | None = None, delays: tuple[Delay, ...] = (TEN,), highest: bool = False
) -> Emission:
    """Returns the emission of a query with one stateful operator."""
    return Emission((Step(release, "GROUP BY", HERE, time),), delays, highest, True)


HOURLY = emission(WaitsFor.WINDOW, "window(ts, '1 hour')")


def held(**known: Any) -> BatchProgress:
    """Returns a batch whose rows all stay in the state."""
    times = {"oldest_event": "2024-01-01T12:01:00.000Z", "newest_event": "2024-01-01T12:40:00.000Z"}
    return batch(
        **{
            "state": state(),
            "watermark": "2024-01-01T12:30:00.000Z",
            "sources": (source("shop.a", 5),),
            **times,
            **known,
        }
    )


def silence(waits: Emission | None, *batches: BatchProgress) -> Silence:
    """Returns why the query is silent after `batches`."""
    found = why_silent(figures(*batches), waits)
    assert found is not None
    return found


def test_no_input_at_all() -> None:
    """A query without input is silent because no rows have arrived."""
    assert silence(HOURLY, batch(0, 0, sources=(source("shop.a", 0),))) == Silence(
        Cause.NO_INPUT, "no rows have arrived from shop.a since it started"
    )


def test_rows_without_input_are_output() -> None:
    """A batch without input that closes windows emits rows, so the query is not silent."""
    assert why_silent(figures(batch(0, 2, sources=(source("shop.a", 0),))), HOURLY) is None


@pytest.mark.parametrize("last", [batch(5, 1), batch(5, None)], ids=["a row", "perhaps a row"])
def test_a_query_that_emitted_rows_is_not_silent(last: BatchProgress) -> None:
    """A query that emitted rows, or whose rows are not counted, is not silent."""
    assert why_silent(figures(batch(), batch(), batch(), last), HOURLY) is None


def test_two_batches_are_too_few() -> None:
    """Two batches with input are too few to look for a reason."""
    assert why_silent(figures(batch(), batch(), batch(0)), None) is None


def test_all_rows_are_filtered_out() -> None:
    """Conditions have removed all rows if the query is stateless, or its state did not change."""
    assert silence(None, batch(), batch(), batch()).cause is Cause.FILTERED
    found = silence(HOURLY, *[held(state=state(updated=0))] * 3)
    assert found == Silence(
        Cause.FILTERED,
        "15 rows were read in 3 batches, but conditions or joins removed all of them before they reached its state",
    )


def test_all_rows_are_late() -> None:
    """If rows were dropped and none changed the state, all were late."""
    found = silence(HOURLY, *[held(state=state(updated=0, late=1))] * 3)

    assert found.cause is Cause.LATE
    assert "behind the watermark, 2024-01-01 12:30; the newest event time was 2024-01-01 12:40" in found.text


def test_all_rows_are_duplicates() -> None:
    """If the state of a deduplication did not change, all rows were duplicates."""
    assert silence(None, *[held(state=state(updated=0, operator="dedupe"))] * 3).cause is Cause.DUPLICATES


def test_a_limit_is_reached() -> None:
    """A query whose LIMIT is reached emits no more rows."""
    assert silence(emission(WaitsFor.FIRST), *[held(state=state(updated=0))] * 3).cause is Cause.LIMIT


def test_the_watermark_has_not_reached_the_end_of_the_first_window() -> None:
    """The text names the source that holds it back, the end of the window, and the event that advances it."""
    assert silence(HOURLY, *[held()] * 3) == Silence(
        Cause.WATERMARK,
        "the watermark is at 2024-01-01 12:30, held back by shop.a, and the first window ends at 2024-01-01 13:00; "
        "an event with the time 2024-01-01 13:10 or later must arrive to advance it past that",
        "2024-01-01T13:10:00.000Z",
    )


def test_before_the_first_watermark() -> None:
    """Before the first watermark, the oldest event determines the first window."""
    found = silence(HOURLY, *[held(watermark=None)] * 3)

    assert found.text.startswith("there is no watermark yet, and the first window ends at 2024-01-01 13:00")


@pytest.mark.parametrize(
    ("waits", "end"),
    [
        (emission(WaitsFor.WINDOW, "window(ts, '1 hour', '15 minutes')"), "ends at 2024-01-01 12:45;"),
        (emission(WaitsFor.WINDOW, "window(ts, '1 hour', '1 hour', '5 minutes')"), "ends at 2024-01-01 13:05;"),
        (
            emission(WaitsFor.SESSION, "session_window(ts, '5 minutes')"),
            "the latest session ends at 2024-01-01 12:45;",
        ),
        (
            emission(WaitsFor.SESSION, "session_window(ts, g)"),
            "the latest session ends after that; newer events must arrive to advance it past that",
        ),
        (emission(WaitsFor.TIME, "ts"), "the first group is of 2024-01-01 12:30;"),
        (
            emission(WaitsFor.WINDOW, "w"),
            "the first window ends after that; newer events must arrive to advance it past that",
        ),
    ],
    ids=["sliding", "offset", "session", "unknown gap", "time", "unknown length"],
)
def test_the_end_of_the_first_group(waits: Emission, end: str) -> None:
    """The first group is the first window after the watermark, or the session of the newest event. None of these ends
    stays: the oldest row has left its window, or the end moves with each event.
    """
    found = silence(waits, *[held()] * 3)

    assert found is not None
    assert end in found.text
    assert found.due_event is None


def test_a_window_that_ends_at_the_watermark_was_emitted() -> None:
    """A window that ends at the watermark was emitted, so the next one is the first."""
    assert "ends at 2024-01-01 14:00;" in silence(HOURLY, *[held(watermark="2024-01-01T13:00:00.000Z")] * 3).text


def test_an_idle_source_holds_the_lowest_watermark() -> None:
    """An idle source holds the lowest watermark; the text names the events that it must send."""
    two = emission(WaitsFor.WINDOW, "window(ts, '1 hour')", (TEN, TWO))
    found = silence(two, *[held(sources=(source("shop.a", 5), source("shop.b", 0)))] * 3)

    assert found == Silence(
        Cause.IDLE_SOURCE,
        "the watermark is at 2024-01-01 12:30 and the first window ends at 2024-01-01 13:00; the lowest of "
        "2 watermarks counts, and shop.b has sent no rows for 3 batches: events with the time 2024-01-01 13:10 or "
        "later for `ts` and with the time 2024-01-01 13:02 or later for `at` must arrive to advance it past that",
    )


def test_equal_watermarks_are_named_once() -> None:
    """Two inputs with the same column and delay need the same events."""
    same = emission(WaitsFor.WINDOW, "window(ts, '1 hour')", (TEN, TEN))
    found = silence(same, *[held(sources=(source("shop.a", 5), source("shop.b", 0)))] * 3)

    assert found.text.endswith(
        "events with the time 2024-01-01 13:10 or later for `ts` must arrive for each of the 2 watermarks to advance it "
        "past that"
    )


def test_an_idle_source_does_not_matter_for_the_highest_watermark() -> None:
    """With the policy `max`, an idle source does not hold the watermark back."""
    two = emission(WaitsFor.WINDOW, "window(ts, '1 hour')", (TEN, TWO), highest=True)

    assert silence(two, *[held(sources=(source("shop.a", 5), source("shop.b", 0)))] * 3).cause is Cause.WATERMARK


def test_a_join_that_matches_nothing() -> None:
    """If a join matches nothing, the text names the idle side."""
    join = emission(WaitsFor.MATCH)
    both, one = (source("shop.a", 5), source("shop.b", 5)), (source("shop.a", 5), source("shop.b", 0))

    assert silence(join, *[held(sources=both)] * 3).cause is Cause.NO_MATCH
    idle = silence(join, *[held(sources=one)] * 3)
    assert (idle.cause, "shop.b has sent no rows" in idle.text) == (Cause.IDLE_SOURCE, True)


def test_an_outer_join_waits_until_a_match_is_impossible() -> None:
    """An outer join waits until the watermark rules out a match."""
    outer = emission(WaitsFor.UNMATCHED)

    found = silence(outer, *[held(sources=(source("shop.a", 5), source("shop.b", 5)))] * 3)

    assert found.cause is Cause.WATERMARK
    assert "rows without a match are emitted once the watermark rules out a match, which is at 2" in found.text


def test_a_condition_after_the_aggregation() -> None:
    """If groups were completed or changed, but none was emitted, HAVING removed all of them."""
    assert silence(HOURLY, *[held(state=state(removed=1))] * 3).cause is Cause.FILTERED
    assert silence(emission(WaitsFor.CHANGE), *[held()] * 3).cause is Cause.FILTERED


def test_an_unknown_reason_is_reported_as_unknown() -> None:
    """The reason is unknown for the state of a Python model, or of an unsupported operator."""
    assert silence(None, *[held()] * 3).cause is Cause.UNKNOWN
    assert silence(emission(WaitsFor.UNKNOWN), *[held()] * 3).cause is Cause.UNKNOWN


def test_a_time_beyond_the_calendar() -> None:
    """An event in the year 9999 causes no error."""
    far = held(watermark="9999-12-31T23:50:00.000Z", newest_event="9999-12-31T23:59:00.000Z")

    assert silence(HOURLY, *[far] * 3).cause is Cause.WATERMARK


def ended(waits: Emission | None, *batches: BatchProgress) -> Silence | None:
    """Returns why a query that has ended after `batches` emitted nothing."""
    return why_ended_silent(figures(*batches), waits)


def test_an_ended_query_has_a_reason_after_one_batch() -> None:
    """An ended query has a reason after its first batch, because no more will come."""
    assert why_silent(figures(batch(5, 0)), None) is None
    assert ended(None, batch(1, 0)) == Silence(
        Cause.FILTERED, "1 row was read in 1 batch, but conditions or joins in the query removed all of them"
    )
    tested = ended(None, replace(batch(1, 0), data_tests={"orders.x": {"passed": 0, "failed": 1}}))
    assert tested is not None
    assert tested.text.endswith("but data tests, conditions or joins in the query removed all of them")
    found = ended(HOURLY, held())
    assert found is not None
    assert (found.cause, "the first window ends at 2024-01-01 13:00" in found.text) == (Cause.WATERMARK, True)


def test_an_idle_source_is_named_after_fewer_batches() -> None:
    """In an ended query, a source without rows in all batches is named, even after one batch."""
    rows = (source("shop.a", 5), source("shop.b", 0))
    found = ended(emission(WaitsFor.WINDOW, "window(ts, '1 hour')", (TEN, TWO)), held(sources=rows))

    assert found is not None
    assert (found.cause, "shop.b has sent no rows for 1 batch" in found.text) == (Cause.IDLE_SOURCE, True)


def test_only_corrupt_records_are_a_reason() -> None:
    """If all records are corrupt, that is the reason, and not a condition."""
    found = ended(None, batch(5, 0, dropped_records=5))

    assert found == Silence(
        Cause.CORRUPT, "5 rows were read in 1 batch, but all are corrupt, and the source drops corrupt records"
    )


@pytest.mark.parametrize("last", [batch(5, 1), batch(5, None), batch(0, 0)], ids=["a row", "perhaps", "nothing read"])
def test_an_end_with_rows_or_without_input_needs_no_reason(last: BatchProgress) -> None:
    """A query that emitted rows, perhaps uncounted, or had no input, needs no reason at its end."""
    assert ended(None, last) is None


@pytest.mark.parametrize(
    ("watermark", "end"),
    [
        ("2024-01-01T12:30:00.000Z", "the first window ends at 2024-01-01 13:00 or later"),
        (None, "rows of earlier runs"),
    ],
)
def test_rows_of_earlier_runs_may_be_older(watermark: str | None, end: str) -> None:
    """A window of an earlier run may end before those of this run: only the watermark limits it."""
    times = {"oldest_event": "2024-01-01T15:00:00.000Z", "newest_event": "2024-01-01T15:10:00.000Z"}
    found = silence(HOURLY, *[held(state=state(rows=9, updated=2), watermark=watermark, **times)] * 3)

    assert end in found.text
    assert "16:00" not in found.text


@pytest.mark.parametrize(
    ("cause", "has_input", "is_said"), [("no_input", True, False), ("no_input", False, True), ("late", True, True)]
)
def test_a_query_with_input_does_not_lack_it(cause: str, *, has_input: bool, is_said: bool) -> None:
    """A recorded reason that no rows have arrived is not repeated while there are some that the query has not read."""
    silence = {"cause": cause, "text": "why", "due_event": None}

    assert (recorded_silence({"silence": silence}, has_input=has_input) == silence) == is_said
    assert recorded_silence({"silence": None}, has_input=has_input) is None
