"""Why a query of a run has failed, as a finding that names its batch."""

from __future__ import annotations

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.errors import Finding
from sqlstream.spark.corrupt_errors import corrupt_record_finding, read_corrupt_record
from sqlstream.spark.jvm import JVM_ERRORS, unfinished_batch
from sqlstream.spark.running import Running
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import at, error_finding, fragment_of

GOES_ON = "the query goes on where it stopped"
WRITTEN_AGAIN = "all is written anew, and an earlier output of files is as it was"


def failure_finding(running: Running, error: Exception, secrets: Secrets) -> Finding:
    """Returns the finding for `error`, with which the query of `running` has ended."""
    model, batch = running.order.query.model, _failed_batch(running)
    what = f"the query of `{model.name}` failed{'' if batch is None else f' in batch {batch}'}"
    place = running.order.place_of(*fragment_of(error))
    record = read_corrupt_record(error)
    if record is not None:
        return corrupt_record_finding(record, what, at(model.file.location), secrets)
    fix = "mend the cause and run again: " + (WRITTEN_AGAIN if running.order.is_batch else GOES_ON)
    return error_finding(error, code="query-failed", what=what, place=place, secrets=secrets, fix=fix)


def _failed_batch(running: Running) -> int | None:
    """The batch in which a query has failed, None where it was in none, or where the JVM is gone that knew."""
    try:
        return unfinished_batch(running.query) if isinstance(running.query, StreamingQuery) else None
    except JVM_ERRORS:
        return None
