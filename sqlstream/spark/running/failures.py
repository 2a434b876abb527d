"""Why a query of a run has failed, as a finding that names its batch."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding
from sqlstream.spark.jvm.gateway import JVM_ERRORS, causes_of
from sqlstream.spark.jvm.internals import unfinished_batch
from sqlstream.spark.reading.corrupt_errors import corrupt_record_finding, read_corrupt_record
from sqlstream.spark.running.endpoints import UnreachableError
from sqlstream.spark.running.query_run import Running
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import at, error_finding, fragment_of
from sqlstream.spark.storage.state_files import state_finding
from sqlstream.spark.storage.state_schemas import schema_finding

GOES_ON = "the query continues where it stopped"
BEGINS_ANEW = "the query starts from the beginning, with a new checkpoint"
WRITTEN_AGAIN = "everything is written again, and earlier output files stay unchanged"


OF_CONNECTIONS = (
    *("ConnectException", "Connection refused", "Connection reset", "NoRouteToHostException"),
    *("SocketTimeoutException", "TimeoutException", "UnknownHostException", "Failed to create new Kafka"),
)
"""Words in the errors of Java that are about a connection."""


def failure_finding(running: Running, error: Exception, secrets: Secrets) -> Finding:
    """Returns the finding for `error`, with which the query of `running` has ended."""
    model, batch = running.order.query.model, _failed_batch(running)
    what = f"the query of `{model.name}` failed{'' if batch is None else f' in batch {batch}'}"
    place = running.order.query.compiled.place_of_words(model, *fragment_of(error))
    record = read_corrupt_record(error)
    if record is not None:
        return corrupt_record_finding(record, what, at(model.file.location), secrets, running.order.query.tables)
    refused = schema_finding(model.name, what, error, model.file.location)
    if refused is not None:
        return refused
    lost = state_finding(model.name, what, error, running.order.checkpoint, model.file.location, secrets)
    if lost is not None:
        return lost
    if isinstance(error, UnreachableError):
        return _unreachable(model, error, secrets)
    fix = f"fix the cause and run again: {_next_run(running)}"
    found = error_finding(error, code="query-failed", what=what, place=place, secrets=secrets, fix=fix)
    return _with_addresses(found, running, error, secrets)


def _next_run(running: Running) -> str:
    """What the next run of a query does that has failed."""
    if running.order.is_batch:
        return WRITTEN_AGAIN
    return BEGINS_ANEW if running.order.is_fresh else GOES_ON


def _unreachable(model: CompiledModel, error: UnreachableError, secrets: Secrets) -> Finding:
    endpoint = error.endpoint
    return Finding(
        "query-failed",
        secrets.redact(f"the query of `{model.name}` cannot start: no broker of {endpoint.what} responds"),
        secrets.redact(str(error)),
        f"start the broker, or fix kafka.bootstrap.servers at {endpoint.location}",
        model.file.location,
    )


def _with_addresses(finding: Finding, running: Running, error: Exception, secrets: Secrets) -> Finding:
    """The finding with the addresses that the query connects to, where the error is about a connection."""
    endpoints = running.order.query.endpoints
    said = " ".join(str(cause) for cause in causes_of(error))
    if not endpoints or not any(word in said for word in OF_CONNECTIONS):
        return finding
    addresses = "; ".join(f"{endpoint.what} is at {endpoint.text}" for endpoint in endpoints)
    return replace(finding, why=secrets.redact(f"{finding.why}; {addresses}"))


def _failed_batch(running: Running) -> int | None:
    """The batch in which a query has failed, None where it was in none, or where the JVM is gone that knew."""
    try:
        query = running.query if isinstance(running.query, StreamingQuery) else None
        return unfinished_batch(query) if query else None
    except JVM_ERRORS:
        return None
