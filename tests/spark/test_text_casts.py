"""The compiler's check of texts that cannot be cast agrees with Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.compiler.flow.expressions.checks import cannot_be_cast
from sqlstream.project.types.ddl import parse_type

TEXTS = (
    *(
        "1",
        " 1 ",
        "+1",
        "-1",
        "01",
        "1.5",
        "1.",
        ".5",
        "1e2",
        "1d",
        "1F",
        "1L",
        "0x1p3",
        "",
        " ",
        "abc",
        "1,000",
        "1_0",
    ),
    *("inf", "-Infinity", "NaN", "-nan", "infinit", "1 0", "\u0661", "true", "T", "yes", "on", "no", "0", "2"),
    *("2024", "2024-1", "2024-01-01", "2024-1-1", "24-01-01", "20240101", "1704067200", "01/02/2024", "2024/01/01"),
    *("2024-02-30", "2024-13-01", "2024-02-29", "2023-02-29", "2024-01-01 10", "2024-01-01T10:00:00Z", "2024-01-01x"),
    *("+2024-01-01", "-2024-01-01", "002024-01-01", "99999-01-01", "10:00", "T10:00", "1:2:3", "10", "today", "NOW"),
    *(
        "yesterday noon",
        "now please",
        "epoch x",
        "tomorrow Mars/Olympus",
        "today CET",
        "epoch UTC+1",
        "now +01:00",
        "today Z",
    ),
    *("yesterday UTC", "epoch", "tomorrow", "yesterdays", "2024-01-01 25:00", "2024-01-01 x", "0000-01-01"),
)
TYPES = ("bigint", "double", "decimal(38,10)", "timestamp", "timestamp_ntz", "date", "boolean")


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_a_text_that_cannot_be_cast_stops_the_query(spark: SparkSession, name: str) -> None:
    """The check refuses no text that Spark casts, and finds most of those that Spark refuses."""
    refused = {text for text in TEXTS if _refuses(spark, text, name)}
    known = {text for text in TEXTS if cannot_be_cast(text, parse_type(name))}

    assert known - refused == set()
    assert len(known) >= 0.8 * len(refused)


def _refuses(spark: SparkSession, text: str, name: str) -> bool:
    try:
        spark.sql(f"select cast(cast('{text}' as {name}) as string)").collect()
    except PySparkException:
        return True
    return False
