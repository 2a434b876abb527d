"""Decides whether to use a Spark internal or its public fallback.

Internals are classes, methods and fields outside Spark's API, which any release of Spark can move. If one is missing,
the target sets `SETTING` to `false`, or Spark is a Connect server, sqlstream uses the public fallback. Queries still
run, stop and resume, but sqlstream finds fewer errors before the start, and a stop can make a batch run twice.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.spark_versions import is_later
from sqlstream.spark.jvm import gateway
from sqlstream.spark.jvm.gateway import JVM_ERRORS, OperatorWatermarks, Phase, causes_of, is_connect

logger = logging.getLogger("sqlstream.internals")

SETTING = "spark.sqlstream.internals"
"""The setting of a target that disables the internals."""

T = TypeVar("T")

_PYSPARK_FIELD = re.compile(r"_j\w+|_gateway|_sc")
"""PySpark's private fields that hold JVM objects."""

_MISSING = re.compile(
    r"java\.lang\.ClassNotFoundException: org\.apache\.spark\."
    r"|java\.lang\.NoSuch(?:Method|Field)(?:Exception|Error)"
    r"|java\.lang\.(?:NoClassDefFound|IncompatibleClassChange|AbstractMethod|IllegalAccess)Error"
    r"|java\.lang\.IllegalAccessException"
)


def call_internal(session: SparkSession, what: str, internal: Callable[[], T], public: Callable[[], T]) -> T:
    """Returns the result of `internal`, or of `public` if this Spark does not have the internal or the target of
    `session` disables internals. `what` names it in the log. Raises: what either raises.
    """
    return public() if _is_disabled(session) else _with_fallback(what, internal, public)


def can_change_queries(session: SparkSession, version: str = "") -> bool:
    """Returns whether internals may change running queries: not on a Spark later than the tested ones, where they may
    work differently. `version` is Spark's version (default: that of `session`).
    """
    return not _is_disabled(session) and not is_later(version or session.version)


def _is_disabled(session: SparkSession) -> bool:
    return is_connect(session) or (session.conf.get(SETTING, "true") or "").lower() == "false"


def is_missing(error: BaseException) -> bool:
    """Returns whether `error` means only that a class, a method or a field does not exist."""
    if isinstance(error, AttributeError):
        return bool(_PYSPARK_FIELD.fullmatch(error.name or ""))
    if isinstance(error, TypeError):
        return "'JavaPackage' object is not callable" in str(error)  # to py4j, an unknown class is a package
    causes = causes_of(error)
    if causes[0].kind == "py4j.protocol.Py4JError":  # py4j's message for a class, a method or a constructor
        return "does not exist" in str(error)
    return any(_MISSING.match(f"{cause.kind}: {cause.words}") for cause in causes)


def free_rows(rows: DataFrame) -> None:
    """Frees the rows that `localCheckpoint` keeps. Without the internal, Spark does so when nothing refers to them."""
    call_internal(rows.sparkSession, "rows that are kept", lambda: gateway.free_rows(rows), lambda: None)


def phase_of(query: StreamingQuery) -> Phase | None:
    """Returns the phase of `query`, None if this Spark does not show it."""
    return _with_fallback("stack of a query's thread", lambda: gateway.phase_of(query), lambda: None)


def mark_terminated(query: StreamingQuery) -> bool:
    """Ends `query` after its running batch, and returns whether this Spark can do so."""

    def mark() -> bool:
        gateway.mark_terminated(query)
        return True

    return _with_fallback("state of a query", mark, lambda: False)


def unfinished_batch(query: StreamingQuery) -> int | None:
    """Returns the batch of `query` that runs again at the next start, None without one, or if this Spark hides it."""
    return _with_fallback("log of a query's batches", lambda: gateway.unfinished_batch(query), lambda: None)


def operator_watermarks(query: StreamingQuery) -> OperatorWatermarks | None:
    """Returns the watermarks of the operators of `query`, None before it has read its checkpoint, or if this Spark
    hides them.
    """
    return _with_fallback("watermarks of operators", lambda: gateway.operator_watermarks(query), lambda: None)


def current_watermark(query: StreamingQuery) -> int | None:
    """Returns the watermark of the next batch of `query` in ms since 1970, None if this Spark hides it."""
    return _with_fallback("watermark of a query", lambda: gateway.current_watermark(query), lambda: None)


def add_listener(session: SparkSession, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> bool:
    """Calls `on_progress` and `on_end` for the queries of `session`, and returns whether this Spark can do so."""

    def add() -> bool:
        gateway.add_listener(session, on_progress, on_end)
        return True

    return call_internal(session, "listener of queries", add, lambda: False)


def close_state_stores(session: SparkSession) -> None:
    """Closes the state stores of queries that have ended, if this Spark can do so."""
    call_internal(session, "end of state stores", lambda: gateway.close_state_stores(session), lambda: None)


def cancel_jobs(session: SparkSession, group: str) -> None:
    """Cancels the jobs of `group`, and if this Spark can do so, also those that start later."""
    call_internal(
        session,
        "cancellation of later jobs",
        lambda: gateway.cancel_future_jobs(session, group),
        lambda: gateway.cancel_job_group(session, group),
    )


def _with_fallback(what: str, internal: Callable[[], T], public: Callable[[], T]) -> T:
    try:
        return internal()
    except (AttributeError, TypeError, *JVM_ERRORS) as error:
        if not is_missing(error):
            raise
        logger.info("This Spark has no %s (%s); sqlstream uses the public API instead", what, error)
        return public()
