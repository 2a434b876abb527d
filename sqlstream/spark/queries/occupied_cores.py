"""Warns about queries whose tasks never end and leave too few cores to the other queries of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.cluster import cores_of
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, is_connect
from sqlstream.spark.queries.query_run import QueryRun
from sqlstream.state.runs.events import Notice, RunEvent


class OccupiedCores:
    """Warns once for each such query if its tasks, with those of earlier ones, leave no core to others."""

    def __init__(self, notify: Callable[[RunEvent], None]) -> None:
        self._notify = notify
        self._tasks: dict[str, int] = {}

    def check(self, run: QueryRun, runs: Sequence[QueryRun]) -> None:
        """Counts the tasks of `run`, one of `runs`, once it has started. The runner calls it several times a second."""
        is_new = not run.order.trigger.facts.has_micro_batches and run.name not in self._tasks and run.is_active
        tasks = _running_tasks(run) if is_new else 0
        if tasks:
            self._tasks[run.name] = tasks
            self._warn(run.session, runs)

    def _warn(self, session: SparkSession, runs: Sequence[QueryRun]) -> None:
        unfinished = [run.name for run in runs if run.result is None]
        tasks = {name: count for name, count in self._tasks.items() if name in unfinished}
        warning = warning_text(tasks, [name for name in unfinished if name not in tasks], cores_of(session))
        if warning is not None:
            self._notify(Notice(warning))


def _running_tasks(run: QueryRun) -> int:
    """Returns the number of tasks in the running jobs of a query, 0 if it has no job yet, or ends. Over Connect: 0,
    because its jobs are unknown.
    """
    try:
        if is_connect(run.session) or run.stream is None:
            return 0
        tracker = run.session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(run.stream.runId))]
        stages = {int(stage) for job in jobs if job is not None and job.status == "RUNNING" for stage in job.stageIds}
        infos = [tracker.getStageInfo(stage) for stage in stages]
        return sum(int(info.numTasks) for info in infos if info is not None)
    except SPARK_ERRORS:
        return 0


def warning_text(lasting: Mapping[str, int], others: Sequence[str], cores: int) -> str | None:
    """Returns the warning about `lasting` queries, with their numbers of tasks, and `others` on the same `cores`; None
    if there are enough cores.
    """
    tasks, names = sum(lasting.values()), ", ".join(lasting)
    if tasks < cores or (tasks == cores and not others):
        return None
    keep = f"{names} {'keeps' if len(lasting) == 1 else 'keep'} {_count(tasks, 'task')} running until the end"
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
