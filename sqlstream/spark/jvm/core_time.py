"""How long the tasks of a query occupied a core, from a listener in the driver.

Spark's status store has the same sums, but forgets old jobs and stages, and Spark would call a listener in Python for
each task. CoreTime.java adds them up in the JVM, in a separate queue of listeners; reading the sums is one call.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.compiled_java import compiled_class
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.internals import call_internal

WAIT_MILLISECONDS = 20
"""The longest wait for the events of tasks that have ended. They usually arrive within one millisecond."""

logger = logging.getLogger("sqlstream.internals")


@dataclass(frozen=True)
class TaskTime:
    """What tasks have taken: the milliseconds that each occupied a core, added up, and their number. `cores` is what
    Spark has now.
    """

    core_ms: int
    tasks: int
    cores: int


class CoreTimes:
    """Adds up the times of tasks in one Spark context from its first use on. If this Spark does not have what it needs,
    all times are unknown, and nothing else changes. Over Connect: not available.
    """

    def __init__(self) -> None:
        self._listener: Any = None
        self._is_unknown = False

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
        except SPARK_ERRORS as error:
            logger.info("The core time of queries is unknown: %s", error)
        self._is_unknown = self._listener is None

    def take(self, groups: Sequence[str]) -> TaskTime | None:
        """Returns what the tasks of the job groups `groups` have taken since the last call, None if it is unknown."""
        if self._listener is None or not groups:
            return None
        try:
            taken = [self._listener.take(group, WAIT_MILLISECONDS).split() for group in groups]
        except SPARK_ERRORS as error:
            logger.info("The core time of a query is unknown: %s", error)
            return None
        core_ms, tasks = (sum(int(each[number]) for each in taken) for number in range(2))
        return TaskTime(core_ms, tasks, int(taken[-1][2]))
