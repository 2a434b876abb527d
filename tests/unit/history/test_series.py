"""Time series come from batches or rollups, in about the number of points that a chart has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqlstream.history.reads import Page, batch_rows
from sqlstream.history.series import SeriesRequest, read_series
from sqlstream.history.store import History
from tests.support.journal import NOW, batch_text, event_text, history_of, write

START, MINUTE = int(NOW * 1000), 60_000
COUNT = 3_000
"""The number of batches, one per minute: two days."""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """The history of one query."""
    logs = tmp_path_factory.mktemp("logs")
    write(logs, *map(batch_text, range(COUNT)))
    restart = event_text("query_restarted", model="payments_001", restarts=1)
    write(logs, restart)
    with history_of(logs) as history:
        history.ingest()
        yield history


@pytest.mark.parametrize(
    ("minutes", "points", "resolution", "count"),
    [(100, 800, "batch", 101), (COUNT, 300, "5m", 300), (COUNT, 100, "5m", 100), (COUNT, 10, "2h", 13)],
)
def test_about_the_wanted_points_come_back(
    history: History, minutes: int, points: int, resolution: str, count: int
) -> None:
    """Few batches are points themselves; many are added up, with a step that gives about as many points as wanted."""
    with history.reading() as connection:
        found = read_series(connection, SeriesRequest(1, START, START + minutes * MINUTE, points))
    assert found.resolution == resolution
    assert abs(len(found.times) - count) <= max(count * 0.4, 2)
    assert all(len(values) == len(found.times) for values in found.values.values())
    assert list(found.times) == sorted(found.times)


def test_counts_are_the_same_at_each_resolution(history: History) -> None:
    """Rows and restarts add up to the same numbers, whether they come from batches or from rollups."""
    sums = []
    for points in (5_000, 200, 10):
        with history.reading() as connection:
            found = read_series(connection, SeriesRequest(1, START, START + COUNT * MINUTE, points)).values
        sums.append(
            (sum(found["rows_in"]), sum(found["rows_out"]), sum(found["restarts"]), max(found["duration_max_ms"]))
        )
    assert sums[0] == sums[1] == sums[2]
    assert sums[0][2] == 1


def test_only_the_named_series_come_back(history: History) -> None:
    """A chart asks for its own values only."""
    with history.reading() as connection:
        request = SeriesRequest(1, START, START + 10 * MINUTE, names=("rows_in", "nothing"))
        assert list(read_series(connection, request).values) == ["rows_in"]


def test_the_slowest_batches_of_a_part(history: History) -> None:
    """The slowest batches between two times are those of a full sort."""
    first, last = START + 7 * MINUTE, START + 900 * MINUTE
    with history.reading() as connection:
        every = [row["duration_ms"] for row in batch_rows(connection, 1, Page(first, last, limit=1_000))]
        found = [row["duration_ms"] for row in batch_rows(connection, 1, Page(first, last, slowest=True, limit=20))]
    assert len(every) == 894
    assert found == sorted(every, reverse=True)[:20]


def test_pages_of_batches_follow_each_other(history: History) -> None:
    """`before` continues where the last page ended, without gaps and doubles."""
    with history.reading() as connection:
        first = batch_rows(connection, 1, Page(limit=40))
        second = batch_rows(connection, 1, Page(limit=40, before=first[-1]["at_ms"]))
    ids = [row["batch_id"] for row in (*first, *second)]
    assert ids == list(range(COUNT - 1, COUNT - 81, -1))
    assert first[0]["sources"][0]["end_offset"] == '{"logOffset": 2999}'
    assert first[0]["other_ms"] >= 0
