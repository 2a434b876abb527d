"""How long the tasks of a query occupied a core, from a listener in the driver.

Spark's status store has the same sums, but forgets old jobs and stages, and Spark would call a listener in Python for
each task. CoreTime.java adds them up in the JVM, in a separate queue of listeners; reading the sums is one call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.compiled_java import compiled_class
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.internals import call_internal

WAIT_MILLISECONDS = 20
"""The longest wait for the events of tasks that have ended. They usually arrive within one millisecond."""

IMPATIENT_SECONDS = 5.0
"""After events that did not arrive in time, other calls do not wait for so long. What is missing counts later."""

logger = logging.getLogger("sqlstream.internals")


@dataclass(frozen=True)
class TaskTime:
    """What tasks have taken: the milliseconds that each occupied a core, added up and of the longest one, and their
    number. `cores` is what Spark has now. `is_complete`: no task that has ended is missing.
    """

    core_ms: int
    tasks: int
    cores: int
    is_complete: bool
    longest_ms: int = 0


class CoreTimes:
    """Adds up the times of tasks in one Spark context from its first use on. If this Spark does not have what it needs,
    all times are unknown, and nothing else changes. Over Connect: all times are unknown.
    """

    def __init__(self) -> None:
        self._listener: Any = None
        self._is_unknown = False
        self._patient_from = 0.0

    def listen(self, session: SparkSession) -> None:
        """Begins to listen, unless it has begun. Call it before a query starts."""
        if self._listener is not None or self._is_unknown:
            return

        def add() -> Any:
            listener = compiled_class(session, "CoreTime").getConstructors()[0].newInstance(None)
            listener.listen(session.sparkContext._jsc.sc())  # noqa: SLF001
            return listener

        try:
            self._listener = call_internal(session, "listener of tasks", add, lambda: None)
        except (OSError, *SPARK_ERRORS) as error:  # CoreTime.java cannot be read from an archive
            logger.info("The core time of queries is unknown: %s", error)
        self._is_unknown = self._listener is None

    def take(self, groups: Sequence[str]) -> TaskTime | None:
        """Returns what the tasks of the job groups `groups` have taken since the last call, None if it is unknown. The
        last group is that of the query as it runs now; tasks of the others have ended.
        """
        if self._listener is None or not groups:
            return None
        wait = WAIT_MILLISECONDS if time.monotonic() >= self._patient_from else 0
        try:
            found = self._listener.take("\n".join(groups), wait)
        except SPARK_ERRORS as error:
            logger.info("The core time of a query is unknown: %s", error)
            return None
        core_ms, tasks, cores, is_complete, longest_ms = map(int, found.split())
        if wait and not is_complete:
            self._patient_from = time.monotonic() + IMPATIENT_SECONDS
        return TaskTime(core_ms, tasks, cores, bool(is_complete), longest_ms)

    def close(self) -> None:
        """Ends listening."""
        listener, self._listener, self._is_unknown = self._listener, None, True
        if listener is not None:
            with suppress(*SPARK_ERRORS):
                listener.end()
