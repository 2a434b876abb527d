"""The lag of files and tables of Delta Lake goes from lines of the journal to its batches and their rollups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlstream.history.series import SeriesRequest, read_series
from sqlstream.history.store import History
from tests.support.journal import NOW, batch_text, event_text, history_of, write

LAGS = ("lag", "lag_files", "lag_bytes", "lag_versions")
START = int(NOW * 1000)


def lag_text(batch: int, seconds: float, **lag: int) -> str:
    """Returns the line of a lag that was read some seconds after the start of a batch."""
    at = NOW + 60 * batch + seconds
    return event_text("lag", at, model="payments_001", batch_id=batch, lag=lag)


def lags(history: History, points: int = 800, minutes: int = 60) -> dict[str, list[Any]]:
    """Returns the series of all units of the lag."""
    request = SeriesRequest(1, START, START + minutes * 60_000, points, LAGS)
    with history.reading() as connection:
        return read_series(connection, request).values


@pytest.mark.parametrize("parts", [1, 2])
def test_a_lag_belongs_to_its_batch(tmp_path: Path, parts: int) -> None:
    """A lag is that of the batch before it, also if later batches or another part of the journal are read first."""
    write(tmp_path, *map(batch_text, range(4)))
    with history_of(tmp_path) as history:
        if parts == 2:
            history.ingest()
        write(tmp_path, lag_text(1, 130, files=3, bytes=4_000), lag_text(3, 10, files=0, bytes=0))
        history.ingest()
        found = lags(history)
    assert found["lag_files"] == [None, 3, None, 0]
    assert found["lag_bytes"] == [None, 4_000, None, 0]
    assert found["lag"] == found["lag_versions"] == [None] * 4


def test_rollups_have_the_highest_lag(tmp_path: Path) -> None:
    """A rollup has the highest lag of its batches in each unit, and none in units that no batch has."""
    write(tmp_path, *map(batch_text, range(120)))
    write(tmp_path, *(lag_text(batch, 5, versions=batch) for batch in range(120)))
    with history_of(tmp_path) as history:
        history.ingest()
        found = lags(history, points=10, minutes=120)
    assert max(found["lag_versions"]) == 119
    assert found["lag_versions"] == sorted(found["lag_versions"])
    assert set(found["lag_files"]) == {None}


def test_a_checkpoint_may_be_ahead_of_the_journal(tmp_path: Path) -> None:
    """The lag after a batch that the journal does not have yet belongs to the batch before it."""
    write(tmp_path, *map(batch_text, range(3)), lag_text(3, -20, files=7, bytes=70))
    with history_of(tmp_path) as history:
        history.ingest()
        write(tmp_path, batch_text(3))
        history.ingest()
        assert lags(history)["lag_files"] == [None, None, 7, None]


@pytest.mark.parametrize(
    "line",
    [
        lag_text(-1, 5, files=1),
        event_text("lag", NOW + 60, "r2", model="payments_001", batch_id=1, lag={"files": 1}),
        event_text("lag", model="payments_001", batch_id=1, lag={"parsecs": 1}),
        event_text("lag", model="payments_001", batch_id=1, lag={}),
        event_text("lag", model="payments_001", batch_id=None, lag={"files": 1}),
    ],
    ids=["before all batches", "another run", "unknown unit", "no unit", "no batch"],
)
def test_a_lag_without_a_batch_is_left_out(tmp_path: Path, line: str) -> None:
    """A line that no batch of the history belongs to, or of another version of sqlstream, changes nothing."""
    write(tmp_path, *map(batch_text, range(2)), line)
    with history_of(tmp_path) as history:
        history.ingest()
        assert lags(history)["lag_files"] == [None, None]
