"""For which targets it can be foretold without Spark what Spark accepts."""

from __future__ import annotations

from sqlstream.project.values import Target

CHANGES_SPARK = (
    "spark.sql.ansi.",
    "spark.sql.caseSensitive",
    "spark.sql.groupBy",
    "spark.sql.legacy.",
    "spark.sql.orderByOrdinal",
    "spark.sql.parser.",
    "spark.sql.streaming.realTimeMode.",
    "spark.sql.streaming.statefulOperator.",
    "spark.sql.streaming.unsupportedOperationCheck",
    "spark.sql.timeType.",
    "spark.sql.timestampType",
)
"""Settings, or what their names begin with, that change what Spark accepts or how it reads a name or a type."""


def is_judged(target: Target) -> bool:
    """Returns whether Spark behaves on `target` as it does by default, so that it can be foretold."""
    return not any(name.startswith(CHANGES_SPARK) for name in target.spark)
