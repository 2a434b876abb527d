"""The one place that decides whether a Spark internal is used, or the public way beside it.

Internals are classes, methods and fields that are no API, so a release of Spark may move them. Where one is missing, or
the target sets `SETTING` to `false`, the public way is taken: queries run, stop and resume all the same, only with less
said before they start and with a batch that may run twice when they stop.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.spark_versions import is_later
from sqlstream.spark.jvm import gateway
from sqlstream.spark.jvm.gateway import JVM_ERRORS, Phase

logger = logging.getLogger("sqlstream.internals")

SETTING = "spark.sqlstream.internals"
"""The setting of a target that turns the internals off."""

T = TypeVar("T")

_PYSPARK_FIELD = re.compile(r"_j\w+|_gateway|_sc")
"""PySpark's own fields that lead into the JVM."""

_MISSING = re.compile(
    r"does not exist"  # what py4j says of a class, a method or a constructor
    r"|java\.lang\.ClassNotFoundException: org\.apache\.spark\."
    r"|java\.lang\.NoSuch(?:Method|Field)(?:Exception|Error)"
    r"|java\.lang\.(?:NoClassDefFound|IncompatibleClassChange|AbstractMethod|IllegalAccess)Error"
    r"|java\.lang\.IllegalAccessException"
)


def use(session: SparkSession, what: str, internal: Callable[[], T], public: Callable[[], T]) -> T:
    """Returns what `internal` returns, or what `public` does where this Spark does not have the internal, or the target
    of `session` turns it off. `what` names it in the log. Raises: what either raises.
    """
    return public() if is_turned_off(session) else _guarded(what, internal, public)


def can_act(session: SparkSession, version: str = "") -> bool:
    """Returns whether running queries may be changed by internals: not on a Spark that is later than the tested ones,
    where the same internals may mean something else. `version` is the one of `session` unless given.
    """
    return not is_turned_off(session) and not is_later(version or session.version)


def is_turned_off(session: SparkSession) -> bool:
    """Returns whether the target wants Spark's public API alone."""
    return (session.conf.get(SETTING, "true") or "").lower() == "false"


def is_missing(error: BaseException) -> bool:
    """Returns whether `error` says that a class, a method or a field is not there, and nothing else."""
    if isinstance(error, AttributeError):
        return bool(_PYSPARK_FIELD.fullmatch(error.name or ""))
    if isinstance(error, TypeError):
        return "'JavaPackage' object is not callable" in str(error)  # py4j takes an unknown class for a package
    return bool(_MISSING.search(str(error)))


def phase_of(query: StreamingQuery) -> Phase | None:
    """Returns what `query` is doing, None where this Spark does not show it."""
    return _guarded("stack of a query's thread", lambda: gateway.phase_of(query), _nothing)


def mark_stopped(query: StreamingQuery) -> bool:
    """Lets `query` end after its running batch, and returns whether this Spark can do so."""

    def mark() -> bool:
        gateway.mark_stopped(query)
        return True

    return _guarded("state of a query", mark, lambda: False)


def unfinished_batch(query: StreamingQuery) -> int | None:
    """Returns the batch of `query` that runs again next time; None where there is none, or where this Spark does not
    show it.
    """
    return _guarded("log of a query's batches", lambda: gateway.unfinished_batch(query), _nothing)


def listen(session: SparkSession, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> bool:
    """Calls `on_progress` and `on_end` for the queries of `session`, and returns whether this Spark can do so."""

    def hear() -> bool:
        gateway.listen(session, on_progress, on_end)
        return True

    return use(session, "listener of queries", hear, lambda: False)


def _guarded(what: str, internal: Callable[[], T], public: Callable[[], T]) -> T:
    try:
        return internal()
    except (AttributeError, TypeError, *JVM_ERRORS) as error:
        if not is_missing(error):
            raise
        logger.info("This Spark has no %s (%s), so sqlstream does without", what, error)
        return public()


def _nothing() -> None:
    return None
