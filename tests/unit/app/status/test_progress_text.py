"""What checkpoints say, as text and JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sqlstream.app.status.lags_text import lag_text, offset_text, progress_json, progress_texts
from sqlstream.app.status.status import ProjectStatus
from sqlstream.app.status.status_text import status_text
from sqlstream.numbers import epoch_text, long_seconds_text, since_text
from sqlstream.state.ledger import SourceUse
from sqlstream.state.sources.lag import (
    FileLag,
    Lag,
    QueryProgress,
    RecordLag,
    SourceProgress,
    VersionLag,
    VersionProgress,
)
from sqlstream.state.sources.positions import SourcePosition, VersionPosition

NOW = datetime(2024, 1, 1, 12, 5, 30, tzinfo=UTC)
ORDERS = SourceUse("shop__orders", "shop.orders", None)
AGAIN = SourceUse("shop__orders__2", "shop.orders", None)


def source(use: SourceUse, offset: Any, lag: Lag | None = None, problem: str | None = None) -> SourceProgress:
    """Returns the progress of a source."""
    return SourceProgress(SourcePosition(use.name, use, offset, {"file:///a": 1}), lag, problem)


def version(
    number: int, *sources: SourceProgress, parallel: bool = False, holder: str | None = None, **facts: Any
) -> VersionProgress:
    """Returns the progress of a version that started at noon."""
    position = VersionPosition(number, "2024-01-01T12:00:00+00:00", **facts)
    return VersionProgress(position, sources, parallel, holder)


def query(*current: VersionProgress, stored: tuple[int, ...] = (1,), **facts: Any) -> QueryProgress:
    """Returns the progress of a query."""
    return QueryProgress("totals", "model.shop.totals", "/store/queries/totals", stored, current, **facts)


def test_a_query() -> None:
    """A query shows its holder, and each version its batches, its watermark and its sources."""
    shown = query(
        version(
            2,
            source(ORDERS, {"logOffset": 1200}, FileLag(3, 1200)),
            source(AGAIN, {"t": {"0": 900, "1": 150}}, None, "no broker responds"),
            batch=12,
            committed_at=NOW.timestamp() - 90,
            open_batch=13,
            open_since=NOW.timestamp() - 40,
            watermark_ms=1704106800000,
            holder="process 4711 on shop, since 2024-01-01 11:00:00 UTC",
        ),
        stored=(1, 2),
    )

    (text,) = progress_texts([shown], NOW, None)

    assert text == (
        "totals: in use by process 4711 on shop, since 2024-01-01 11:00:00 UTC\n"
        "version 2 since 2024-01-01 12:00:00 UTC (stored: 1, 2)\n"
        "batch 12 committed 1 min 30 s ago, batch 13 begun 40 s ago and not committed\n"
        "watermark 2024-01-01 11:00:00 UTC, 1 h 05 min behind the current time\n"
        "\n"
        "source                          lag               offset\n"
        "──────────────────────────────────────────────────────────────────────────────\n"
        "shop.orders (shop__orders)      3 files, 1.2 kB   log entry 1,200, 1 file read\n"
        "shop.orders (shop__orders__2)   -                 1,050 in 2 partitions\n"
        "shop.orders: no broker responds"
    )


def test_two_versions_at_once() -> None:
    """A version that runs in parallel with the current one has its own holder, batches and offsets."""
    current = version(1, batch=7, watermark_ms=1704106800000)
    beside = version(2, batch=3, watermark_ms=1704105000000, parallel=True, holder="process 12 on shop")
    (text,) = progress_texts([query(current, beside, stored=(1, 2))], NOW, None)

    assert text == (
        "totals: not running\n"
        "version 1 since 2024-01-01 12:00:00 UTC (stored: 1, 2)\n"
        "batch 7 committed\n"
        "watermark 2024-01-01 11:00:00 UTC, 1 h 05 min behind the current time\n"
        "\n"
        "version 2 since 2024-01-01 12:00:00 UTC, in parallel with the current one: in use by process 12 on shop\n"
        "batch 3 committed\n"
        "watermark 2024-01-01 10:30:00 UTC, 1 h 35 min behind the current time, 30 min 00 s behind version 1"
    )


def test_queries_without_a_version() -> None:
    """Queries that have not started share a line; a query that cannot be read has the reason."""
    waiting, other = QueryProgress("a", "a", "/a"), QueryProgress("b", "b", "/b")
    broken = QueryProgress("c", "c", "s3a://c", problem="add --check")

    assert progress_texts([waiting, broken, other], NOW, None) == ["c: add --check", "not started: a, b"]


@pytest.mark.parametrize("width", [40, 80, 100, 200, None])
def test_no_table_is_wider_than_100_columns(width: int | None) -> None:
    """A long offset is cut: the JSON has all of it."""
    wide = query(version(1, source(ORDERS, {"snapshot": "x" * 300}, VersionLag(1))))

    (text,) = progress_texts([wide], NOW, width)

    assert max(map(len, text.split("\n\n")[1].splitlines())) <= min(width or 100, 100)
    assert "1 version" in text


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (None, "-"),
        (17, "17"),
        ({"reservoirVersion": 4, "index": -1}, "before version 4"),
        ({"reservoirVersion": 4, "index": 2}, "version 4, file 2"),
        ({"snapshot_id": 4, "position": 1}, '{"snapshot_id":4,"position":1}'),
    ],
)
def test_offsets(offset: Any, text: str) -> None:
    """Known offsets are words, others are JSON."""
    assert offset_text(SourcePosition("0", None, offset)) == text


def test_lags() -> None:
    """A lag has its unit."""
    lags = (None, FileLag(0, 0), FileLag(1, 20), VersionLag(2), RecordLag(1234, {}))

    assert [lag_text(lag) for lag in lags] == ["-", "0 files", "1 file, 20 B", "2 versions", "1,234 records"]


def test_json() -> None:
    """The JSON has the offset as Spark writes it, the lag with its unit, and times in UTC."""
    shown = query(version(1, source(ORDERS, {"logOffset": 3}, FileLag(1, 20)), batch=3, watermark_ms=1704106800000))

    (content,) = progress_json([shown], NOW)

    (found,) = content["versions"]
    assert (found["watermark"], found["watermark_behind_seconds"]) == ("2024-01-01T11:00:00+00:00", 3930)
    assert found["sources"] == [
        {
            "source": "shop.orders",
            "reader": "shop__orders",
            "form": "files",
            "offset": {"logOffset": 3},
            "files_read": 1,
            "lag": {"files": 1, "bytes": 20, "too_old": 0},
            "problem": None,
        }
    ]


def test_a_status_without_a_run() -> None:
    """Without a record of a run, the status begins with that, and then shows the checkpoints."""
    text = status_text(ProjectStatus((), (), (query(version(1)),)), NOW, None)

    assert text.startswith("This folder has no record of a run.\n\ntotals: not running\n")


def test_spans() -> None:
    """Long times are in days, and times that cannot be read or shown have a text, too."""
    assert [long_seconds_text(seconds) for seconds in (5, 90, 3 * 86400)] == ["5 s", "1 min 30 s", "3 days"]
    assert since_text("nonsense", NOW) == "some time"
    assert epoch_text(1_772_351_999_400.0) == "+58133-08-07T07:50:00+00:00"
    assert epoch_text(-(10.0**12)).startswith("-29719-")
