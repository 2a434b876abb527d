"""The groups that an append stream has emitted at a watermark, computed by a batch over the same rows."""

from __future__ import annotations

from datetime import datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlstream.spark.reading.static_stream import closed_groups

NOON = 1_704_110_400  # 2024-01-01 12:00 UTC, in seconds since 1970

MINUTES = {"a": (0, 5, 30), "b": (2, 60)}
"""The minutes after noon at which each device sent a signal."""


@pytest.fixture
def signals(spark: SparkSession) -> DataFrame:
    """Creates the signals as a view, in the time zone of the tests."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = [(NOON + 60 * minute, device) for device, minutes in MINUTES.items() for minute in minutes]
    frame = spark.createDataFrame(rows, "second bigint, device string")
    frame = frame.selectExpr("timestamp_seconds(second) as at", "device").withWatermark("at", "10 minutes")
    frame.createOrReplaceTempView("signals")
    return frame


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "closed"),
    [
        ("device, count(*) as n from signals group by session_window(at, '10 minutes'), device", [("a", 2), ("b", 1)]),
        (
            "device, session_window.end as until from signals group by session_window(at, '10 minutes'), device",
            [("a", datetime(2024, 1, 1, 12, 15)), ("b", datetime(2024, 1, 1, 12, 12))],
        ),
        ("device, count(*) as n from signals group by window(at, '10 minutes'), device", [("a", 2), ("b", 1)]),
        (
            "device, count(*) as n from signals group by session_window(at, '10 minutes'), device having count(*) > 1",
            [("a", 2)],
        ),
    ],
)
def test_groups_that_the_watermark_has_passed_are_closed(
    spark: SparkSession, signals: DataFrame, sql: str, closed: list[tuple[object, ...]]
) -> None:
    """Groups behind the watermark are closed, whether or not the query selects its windows and sessions."""
    found = closed_groups(spark.sql(f"select {sql}"), (NOON + 60 * 20) * 1_000_000)

    assert found is not None
    assert sorted(map(tuple, found.collect())) == closed


def test_rows_without_a_time_group_are_unchanged(spark: SparkSession, signals: DataFrame) -> None:
    """Rows without a time group are returned unchanged; for two aggregations the result is unknown."""
    plain = spark.sql("select device from signals")
    twice = spark.sql("select count(*) as n from (select device, count(*) as n from signals group by device)")

    assert closed_groups(plain, 0) is plain
    assert closed_groups(twice, 0) is None
