"""Queries whose tasks never end, and what they leave to the other queries of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.spark.jvm.cluster import cores_of
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.running.query_run import Running
from sqlstream.state.runs.events import Notice, RunEvent

LASTING = frozenset({"continuous", "real_time"})
"""Triggers under which a task reads its partition for as long as the query, or a batch of minutes, lasts."""


class KeptCores:
    """Warns once for each such query when its tasks, and those of the ones before it, leave no core to others."""

    def __init__(self, notify: Callable[[RunEvent], None]) -> None:
        self._notify = notify
        self._tasks: dict[str, int] = {}

    def look(self, every: Sequence[Running]) -> None:
        """Counts the tasks of those that have begun since the last look; called again and again while queries run."""
        for running in every:
            if running.order.trigger.kind in LASTING and running.name not in self._tasks and running.is_active:
                tasks = _tasks_of(running)
                if tasks:
                    self._tasks[running.name] = tasks
                    self._warn(running.order.query.frame.sparkSession, every)

    def _warn(self, session: SparkSession, every: Sequence[Running]) -> None:
        left = [running.name for running in every if running.result is None]
        keepers = {name: tasks for name, tasks in self._tasks.items() if name in left}
        warning = warning_text(keepers, [name for name in left if name not in self._tasks], cores_of(session))
        if warning is not None:
            self._notify(Notice(warning))


def _tasks_of(running: Running) -> int:
    """The tasks of the jobs that a query runs now, 0 where it has not begun one or is about to end."""
    try:
        if not isinstance(running.query, StreamingQuery):
            return 0
        tracker = running.order.query.frame.sparkSession.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(running.query.runId))]
        stages = {int(stage) for job in jobs if job is not None and job.status == "RUNNING" for stage in job.stageIds}
        infos = [tracker.getStageInfo(stage) for stage in stages]
        return sum(int(info.numTasks) for info in infos if info is not None)
    except SPARK_ERRORS:
        return 0


def warning_text(keepers: dict[str, int], others: Sequence[str], cores: int) -> str | None:
    """Returns what to say of queries that keep so many tasks each, while `others` run on the same `cores`; None where
    there are cores enough.
    """
    tasks, names = sum(keepers.values()), ", ".join(keepers)
    if tasks < cores or (tasks == cores and not others):
        return None
    keep = f"{names} {'keeps' if len(keepers) == 1 else 'keep'} {_count(tasks, 'task')} running until the end"
    have = f"Spark has {_count(cores, 'core')}"
    missing = tasks - cores
    effects = [f"{missing} of the tasks cannot start, so their partitions are not read"] if missing else []
    if others:
        effects.append(f"no core is left for {', '.join(others)}")
    run_apart = f"run {names} separately, " if others else ""
    fix = f"{run_apart}give the target more cores, or read fewer partitions"
    return f"{keep}, and {have}: {' and '.join(effects)}; {fix}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
