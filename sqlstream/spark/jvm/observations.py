"""Reads what Spark has observed of a query that may not have run."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, lit

from sqlstream.spark.jvm.internals import call_internal

USUAL_SECONDS = 1.0
"""Within this time Spark usually reports the metrics of a query that has run."""


def observed_values(session: SparkSession, observation: Observation) -> dict[str, Any] | None:
    """Returns the metrics of `observation`, None if no action of this thread has run its query to the end.

    `Observation.get` waits for ever then: a function may not read its rows, and some writers run a query in a way that
    Spark does not observe. Without internals this waits too.
    """
    is_known = call_internal(session, "state of an observation", lambda: _is_known(session, observation), lambda: True)
    return observation.get if is_known else None


def _is_known(session: SparkSession, observation: Observation) -> bool:
    end = time.monotonic() + USUAL_SECONDS
    while not _has_values(observation) and time.monotonic() < end:
        time.sleep(0.005)
    if not _has_values(observation):  # Spark reports in order, so what comes after a later query never comes
        later = Observation()
        session.range(1).observe(later, count(lit(1)).alias("rows")).collect()
        _ = later.get
    return _has_values(observation)


def _has_values(observation: Observation) -> bool:
    java: Any = observation._jo  # noqa: SLF001 - the only way to ask without waiting
    return bool(java.future().isCompleted())
