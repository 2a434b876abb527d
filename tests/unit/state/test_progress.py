"""What a batch did, read from texts that Spark 4.3 reported (tests/unit/state/progress)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlstream.state.progress import BatchProgress, read_progress, total

TEXTS = Path(__file__).parent / "progress"


def spark_says(name: str) -> dict[str, Any]:
    """Returns one of the recorded reports."""
    report: dict[str, Any] = json.loads((TEXTS / f"{name}.json").read_text(encoding="utf-8"))
    return report


def read(report: dict[str, Any]) -> BatchProgress:
    """Returns what is read of a report."""
    return read_progress("orders", json.dumps(report))


def test_a_batch_over_files() -> None:
    """The file sink does not count its rows; the observation does."""
    assert read(spark_says("files")) == BatchProgress(
        model="orders",
        batch_id=1,
        started_at="2026-11-21T12:01:47.017Z",
        duration_ms=543,
        rows_in=4,
        rows_out=4,
        watermark=None,
    )


def test_a_batch_over_the_rate_source() -> None:
    """Its offsets are plain numbers."""
    progress = read(spark_says("rate"))

    assert (progress.batch_id, progress.rows_in, progress.rows_out) == (1, 5, 5)


def test_rows_of_a_dropped_reader_are_not_known() -> None:
    """`where false` over files: the offsets moved on, and nobody counted."""
    progress = read(spark_says("reader_dropped"))

    assert (progress.rows_in, progress.rows_out) == (None, 0)


def test_an_idle_batch_read_nothing() -> None:
    """The batch that Spark runs to close windows has no new files: 0 rows is the truth."""
    progress = read(spark_says("no_data"))

    assert (progress.rows_in, progress.rows_out) == (0, 0)
    assert progress.watermark == "2024-01-01T00:54:00.000Z"


def test_there_is_no_watermark_before_the_first_event() -> None:
    """Spark reports 1970 until then."""
    assert read(spark_says("before_watermark")).watermark is None


@pytest.mark.parametrize("observed", [None, {}, {"another": {"rows": 3}}, {"sqlstream_rows_out": {}}])
def test_rows_out_without_the_observation_are_not_known(observed: dict[str, Any] | None) -> None:
    """The optimizer may have dropped the observation with its part of the plan."""
    assert read({**spark_says("files"), "observedMetrics": observed}).rows_out is None


@pytest.mark.parametrize("rows", [{"numInputRows": -1}, {}])
def test_a_reader_that_does_not_count_makes_the_sum_unknown(rows: dict[str, int]) -> None:
    """The rows of the other reader are no substitute."""
    report = spark_says("rate")
    report["sources"].append({"description": "Own", "startOffset": 1, "endOffset": 2, **rows})

    assert read(report).rows_in is None


def test_the_rows_of_all_readers_are_added() -> None:
    """A self-join has two readers of one source."""
    report = spark_says("rate")
    report["sources"] *= 2

    assert read(report).rows_in == 10


def test_a_report_without_the_batch_duration_still_has_one() -> None:
    """The time of the whole trigger stands in for it."""
    report = spark_says("rate")
    del report["batchDuration"]

    assert read(report).duration_ms == 264


@pytest.mark.parametrize(
    ("counts", "expected"), [([], 0), ([1, 2], 3), ([0, 0], 0), ([1, None], None), ([None], None)], ids=str
)
def test_a_total_is_known_when_every_part_is(counts: list[int | None], expected: int | None) -> None:
    """A sum with an unknown part is not known."""
    assert total(counts) == expected
