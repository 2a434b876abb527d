"""Decides when a run stops by itself: at its time limit, or when no query has had work for some time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.running.query_run import QueryRun
from sqlstream.state.runs.limits import RunLimits

INITIALIZING = "Initializing"
"""The start of Spark's status message before a query first checks its input (StreamExecution of Spark 4.3)."""


def stop_reason(limits: RunLimits, runs: Sequence[QueryRun], seconds: float) -> str | None:
    """Returns why a run that has taken `seconds` must stop, None if it continues."""
    if limits.after_seconds is not None and seconds >= limits.after_seconds:
        return "the time limit was reached"
    idle = limits.idle_seconds
    unfinished = [run for run in runs if run.result is None and not (run.order.after and run.first_started is None)]
    if idle is not None and unfinished and all(_has_been_idle(run, idle) for run in unfinished):
        return f"no query had anything to read for {idle:g} s"
    return None


def _has_been_idle(run: QueryRun, seconds: float) -> bool:
    if run.order.trigger.kind == "continuous":
        return False  # Spark does not report what such a query reads
    if not run.is_active or run.query is None or time.monotonic() - run.active_at < seconds:
        return False
    try:
        status = run.query.status
    except SPARK_ERRORS:  # the query has ended
        return False
    is_starting, is_triggered = status["message"].startswith(INITIALIZING), status["isTriggerActive"]
    run.has_waited |= not is_starting and not is_triggered
    if is_starting or (is_triggered and (status["isDataAvailable"] or not run.has_waited)):
        run.active_at = time.monotonic()  # it starts, checks its input for the first time, or runs a batch
        return False
    return True
