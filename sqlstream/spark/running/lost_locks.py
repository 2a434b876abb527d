"""Ends a query whose lock is lost, because another run may have taken it over."""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.errors import Finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.running.query_run import QueryRun
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.query_locks import query_lock_lost
from sqlstream.spark.writing.batch import BatchWrite


def stop_when_lost(run: QueryRun, query: StreamingQuery | BatchWrite) -> None:
    """Stops `query` at once when the lock of `run` is lost, in the thread that finds out."""

    def stop() -> None:
        try:
            query.stop()
        except SPARK_ERRORS:  # Spark's stopTimeout has passed, or the JVM is gone
            run.cannot_stop = True

    run.order.lock.when_lost(stop)


def lost_lock(run: QueryRun, secrets: Secrets) -> Finding | None:
    """Returns the finding for a query that has ended, or does not run, and whose lock is lost. Otherwise None."""
    why = run.order.lock.lost
    if why is None or (run.is_active and not run.has_ended and not run.cannot_stop):
        return None
    model = run.order.query.model
    return query_lock_lost(model.name, why, model.file.location, secrets)
