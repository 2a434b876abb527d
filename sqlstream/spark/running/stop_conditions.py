"""Decides when a run stops by itself: at its time limit, or when no query has had work for some time."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlstream.project.configuration.trigger import interval_seconds
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.running.query_run import QueryRun
from sqlstream.state.runs.limits import RunLimits

INITIALIZING = "Initializing"
"""The start of Spark's status message before a query first checks its input (StreamExecution of Spark 4.3)."""


MARGIN_SECONDS = 0.5
"""The longest time until a trigger begins. Spark starts triggers at multiples of their interval since 1970
(ProcessingTimeExecutor).
"""


def stop_reason(limits: RunLimits, seconds: float, idle: Sequence[bool]) -> str | None:
    """Returns why a run that has taken `seconds` must stop, None if it continues. `idle` are its unfinished queries."""
    if limits.after_seconds is not None and seconds >= limits.after_seconds:
        return "the time limit was reached"
    if idle and all(idle):
        return f"no query had anything to read for {limits.idle_seconds:g} s"
    return None


def has_been_idle(run: QueryRun, seconds: float) -> bool | None:
    """Returns whether a query has read nothing for `seconds`, and a trigger after that has found nothing to read; None
    if it waits for the stored outputs of others.

    New data waits for the next trigger, so time alone does not show that there is none. Between triggers,
    `isDataAvailable` says whether the latest one found data.
    """
    if run.order.after and run.first_started is None:
        return None
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
    if status["isDataAvailable"] or _has_backlog(run):
        return False
    if run.order.trigger.kind != "interval":
        return True
    interval = interval_seconds(run.order.trigger.interval or "")
    since = time.time() % interval if interval else MARGIN_SECONDS
    found_nothing = not is_triggered and since >= min(MARGIN_SECONDS, interval / 4)
    return found_nothing and time.monotonic() - since >= run.active_at + seconds


def _has_backlog(run: QueryRun) -> bool:
    """Returns whether the last batch left records of Kafka, which a source may hold back until there are more."""
    last = run.figures.last
    return last is not None and any(count for source in last.sources for count in source.backlog.values())
