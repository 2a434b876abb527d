"""The times at which a query did not run, and the lines of charts, which do not cross them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.history.reads import Page, batch_rows, failures_beside
from sqlstream.history.series import SeriesRequest, read_series
from sqlstream.history.stops import MAX_EVENTS, Stop, read_stops
from sqlstream.history.store import History
from sqlstream.history.verdict import RunningFacts, read_verdict
from tests.support.journal import NOW, batch_text, event_text, history_of, write

MODEL, START = "payments_001", int(NOW * 1000)
FAILURE = {"message": "the query of `payments_001` failed in batch 21: n/a", "why": "a value is not a number"}


def minute(number: float) -> int:
    """Returns a time in ms."""
    return START + round(number * 60_000)


def query_text(event: str, at: float, run: str = "r1", **fields: object) -> str:
    """Returns the line of an event of the query some minutes after the start."""
    return event_text(event, NOW + 60 * at, run, model=MODEL, **fields)


def run_end_text(at: float, run: str, *, succeeded: bool) -> str:
    """Returns the line of the end of a run."""
    return event_text("run_ended", NOW + 60 * at, run, succeeded=succeeded)


def stops(history: History, alive_run: int | None = None, from_: float = 0, to: float = 100) -> list[Stop]:
    """Returns the stops of the query."""
    with history.reading() as connection:
        return list(read_stops(connection, 1, minute(from_), minute(to), alive_run))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two runs: one that ends after 20 minutes, and one from 34 to 60 minutes, whose process is killed."""
    write(tmp_path, query_text("query_started", 0), *map(batch_text, range(20)))
    write(tmp_path, query_text("query_ended", 20, error=None), run_end_text(20, "r1", succeeded=True))
    write(tmp_path, query_text("query_started", 34, "r2"), *(batch_text(batch, run="r2") for batch in range(34, 60)))
    return tmp_path


def test_the_time_between_two_runs(logs: Path) -> None:
    """The query did not run from the end of one run to the start of the next, and after it was killed."""
    with history_of(logs) as history:
        history.ingest()
        between = Stop(minute(20), minute(34), "ended")
        assert stops(history) == [between, Stop(minute(59), minute(100), "killed", is_over=False)]
        assert stops(history, alive_run=2) == [between]
        # a range within a run, within a stop, and before everything
        assert stops(history, 2, 40, 50) == stops(history, 2, 2, 10) == stops(history, 2, -50, -10) == []
        assert stops(history, 2, 22, 30) == [Stop(minute(20), minute(30), "ended", is_over=False)]


def test_a_killed_run_and_the_next(logs: Path) -> None:
    """A run without an end was killed when it wrote its last line; a range before the next run shows that, too."""
    write(logs, query_text("query_started", 80, "r3"), *(batch_text(batch, run="r3") for batch in range(80, 90)))
    with history_of(logs) as history:
        history.ingest()
        assert stops(history, 3, 40)[-1] == Stop(minute(59), minute(80), "killed")
        assert stops(history, 3, 40, 70) == [Stop(minute(59), minute(70), "killed", is_over=False)]


def test_a_start_that_the_journal_has_lost(tmp_path: Path) -> None:
    """The batch before a start shows that another run was there."""
    write(tmp_path, *map(batch_text, range(20)), query_text("query_started", 34, "r2"))
    with history_of(tmp_path) as history:
        history.ingest()
        assert stops(history, 2) == [Stop(minute(19), minute(34), "killed")]


def test_a_restart_after_a_failure(tmp_path: Path) -> None:
    """Between a failure and the restart nothing ran; a query whose restarts are used up has failed."""
    write(tmp_path, query_text("query_started", 0), *map(batch_text, range(20)))
    write(tmp_path, query_text("query_restarting", 20, delay_seconds=120.0, finding=FAILURE))
    write(tmp_path, query_text("query_restarted", 22), query_text("query_ended", 30, error=FAILURE))
    with history_of(tmp_path) as history:
        history.ingest()
        assert stops(history) == [
            Stop(minute(20), minute(22), "restarting"),
            Stop(minute(30), minute(100), "failed", is_over=False),
        ]
        with history.reading() as connection:
            rows = batch_rows(connection, 1, Page(limit=5))
            failures = failures_beside(connection, 1, Page(limit=5), rows)
            older = failures_beside(connection, 1, Page(limit=5, before=minute(15)), rows)
    assert [(each["at_ms"], each["batch_id"], each["restarts_in"], each["restarted"]) for each in failures] == [
        (minute(30), 21, None, False),
        (minute(20), 21, 120.0, True),
    ]
    assert older == []


@pytest.mark.parametrize("points", [800, 10])
def test_no_line_crosses_a_stop(logs: Path, points: int) -> None:
    """Between two points on both sides of a stop is one without values, in batches as in rollups."""
    with history_of(logs) as history:
        history.ingest()
        found = stops(history, to=60)
        with history.reading() as connection:
            request = SeriesRequest(1, START, minute(60), points, stops=tuple(found))
            series = read_series(connection, request)
    assert series.resolution == ("batch" if points == 800 else "5m")
    for stop in found[:1]:
        inside = [index for index, at in enumerate(series.times) if stop.from_ms < at * 1000 < stop.to_ms]
        assert inside
        assert all(values[index] is None for values in series.values.values() for index in inside)
        before, after = inside[0] - 1, inside[-1] + 1
        assert None not in (series.values["rows_in"][before], series.values["rows_in"][after])
    assert list(series.times) == sorted(set(series.times))


def test_a_short_stop_within_a_rollup(tmp_path: Path) -> None:
    """A stop of seconds breaks the line between two rollups; a chart leaves out one that nobody can see."""
    write(tmp_path, query_text("query_started", 0), *map(batch_text, range(60)))
    write(tmp_path, query_text("query_ended", 21, error=None), query_text("query_started", 22, "r2"))
    with history_of(tmp_path) as history:
        history.ingest()
        found = stops(history, 2, to=60)
        with history.reading() as connection:
            series = read_series(connection, SeriesRequest(1, START, minute(60), 10, stops=tuple(found)))
        assert None in series.values["rows_in"]
        long = stops(history, 2, to=10_000)
        assert long == found
        assert not any(stop.is_visible(START, minute(10_000)) for stop in long)


def failures(history: History, before: int | None = None) -> list[tuple[float, int | None, bool]]:
    """Returns the time in minutes, the batch, and whether it restarted, of the failures beside the newest batches."""
    with history.reading() as connection:
        request = Page(before=before)
        found = failures_beside(connection, 1, request, batch_rows(connection, 1, request))
    return [((each["at_ms"] - START) / 60_000, each["batch_id"], each["restarted"]) for each in found]


def test_a_query_that_is_stopped_while_it_waits_failed_once(tmp_path: Path) -> None:
    """The end repeats the finding of the failure. The same failure after a restart is another one."""
    write(tmp_path, query_text("query_started", 0), *map(batch_text, range(20)))
    write(tmp_path, query_text("query_restarting", 20, delay_seconds=60.0, finding=FAILURE))
    write(tmp_path, query_text("query_restarted", 21))
    write(tmp_path, query_text("query_restarting", 22, delay_seconds=600.0, finding=FAILURE))
    with history_of(tmp_path) as history:
        history.ingest()
        assert failures(history) == [(22, 21, False), (20, 21, True)]
        write(tmp_path, query_text("query_ended", 23, error=FAILURE))
        history.ingest()
        assert failures(history) == [(22, 21, False), (20, 21, True)]
        write(tmp_path, query_text("query_started", 40, "r2"), *(batch_text(each, run="r2") for each in range(40, 45)))
        history.ingest()
        assert failures(history, before=minute(40)) == [(22, 21, False), (20, 21, True)]


def test_a_failure_that_ends_a_restarted_query_counts(tmp_path: Path) -> None:
    """A restart between two equal findings makes them two failures; a page that ends between them knows of it."""
    write(tmp_path, query_text("query_started", 0), *map(batch_text, range(20)))
    write(tmp_path, query_text("query_restarting", 20, delay_seconds=60.0, finding=FAILURE))
    write(tmp_path, query_text("query_restarted", 21), query_text("query_ended", 22, error=FAILURE))
    with history_of(tmp_path) as history:
        history.ingest()
        assert failures(history) == [(22, 21, False), (20, 21, True)]
        assert failures(history, before=minute(20.5)) == [(20, 21, True)]


@pytest.mark.parametrize(
    ("finding", "batch"),
    [
        ({"message": "the query of `in batch 3` failed: ünï 'x'", "failure": {"batch": 21}}, 21),
        ({"message": "the query failed", "failure": {"batch": 0}}, 0),
        ({"message": "the query failed in batch 4: n/a", "failure": {"batch": None}}, 4),
        ({"message": "the query failed in batch 4: n/a", "failure": None}, 4),
        ({"message": None}, None),
    ],
)
def test_the_batch_of_a_failure(tmp_path: Path, finding: dict[str, object], batch: int | None) -> None:
    """The finding has the number of the batch; in old journals only its message does."""
    write(tmp_path, query_text("query_started", 0), batch_text(0), query_text("query_ended", 5, error=finding))
    with history_of(tmp_path) as history:
        history.ingest()
        assert failures(history) == [(5, batch, False)]


def test_the_first_stop_of_a_range_with_too_many_events(tmp_path: Path) -> None:
    """If the oldest events of the range are cut off, the first stop begins with the last of these."""
    write(tmp_path, query_text("query_started", -10), *map(batch_text, range(2)))
    for number in range(1, MAX_EVENTS // 2 + 2):
        again = query_text("query_restarted", number / 100 + 0.005)
        write(tmp_path, query_text("query_restarting", number / 100, delay_seconds=0.3, finding=FAILURE), again)
    write(tmp_path, query_text("query_ended", 90, error=None))
    with history_of(tmp_path) as history:
        history.ingest()
        assert stops(history)[0] == Stop(minute(0.02), minute(0.025), "restarting")


def test_the_verdict_is_about_the_time_since_a_short_stop(tmp_path: Path) -> None:
    """Batches before a restart of seconds do not count, however long the range is."""
    write(tmp_path, query_text("query_started", 0), *map(batch_text, range(20)))
    write(tmp_path, query_text("query_restarting", 19.5, delay_seconds=5.0, finding=FAILURE))
    write(tmp_path, query_text("query_restarted", 19.6), *map(batch_text, range(20, 24)))
    with history_of(tmp_path) as history:
        history.ingest()
        day = minute(24 * 60)
        with history.reading() as connection:
            found = read_stops(connection, 1, START, day, 1)
            verdict = read_verdict(connection, 1, START, day, found, RunningFacts(day / 1000))
        assert not any(stop.is_visible(START, day) for stop in found)
        assert (verdict.kind, verdict.why[:21]) == ("unknown", "Fewer than 10 batches")
