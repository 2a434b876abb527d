"""The jobs that one thread has Spark run, named together so that they can be ended together."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.internals import use


def group_jobs(session: SparkSession, group: str, what: str) -> None:
    """Puts all jobs that this thread has Spark run from now on into `group`; `what` is what Spark's pages show."""
    session.sparkContext.setJobGroup(group, what, interruptOnCancel=True)


def cancel_jobs(session: SparkSession, group: str) -> None:
    """Ends the jobs of `group`, also those that it begins later. Over Connect: operations are tagged instead."""
    context = session.sparkContext
    use(
        session,
        "end of later jobs",
        lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(group),  # noqa: SLF001
        lambda: context.cancelJobGroup(group),
    )
