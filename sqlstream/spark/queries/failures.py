"""Converts the failure of a query to a finding that names its batch, and decides whether a restart can help."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from sqlstream.compiler.allowances import lower_findings
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.graph import source_id
from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.numbers import span_text
from sqlstream.project.configuration.resources import COMMENT_START
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.errors import LOST_IN_KAFKA, OTHER_RUN_MESSAGES, error_finding, fragment_of, own_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, causes_of, has_application_ended
from sqlstream.spark.jvm.internals import unfinished_batch
from sqlstream.spark.jvm.plans import rows_of_failed_batch
from sqlstream.spark.queries.connections import ask_servers, servers_of
from sqlstream.spark.queries.failed_input import failure_of_input
from sqlstream.spark.queries.prepare import PreparedQuery
from sqlstream.spark.queries.query_run import QueryRun
from sqlstream.spark.reading.corrupt_errors import (
    SHOWN_ROWS,
    ViolatingRows,
    corrupt_record_finding,
    read_corrupt_record,
)
from sqlstream.spark.reading.data_tests import violations
from sqlstream.spark.reading.endpoints import UnreachableError
from sqlstream.spark.reading.kafka_ends import UNKNOWN_TOPIC
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.state_files import schema_finding, state_finding
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.state.runs.progress import TESTED

CONTINUES = "the query continues where it stopped"
STARTS_OVER = "the query starts from the beginning, with a new checkpoint"
WRITES_AGAIN = "everything is written again, and earlier output files stay unchanged"

PERMANENT_SQLSTATES = ("0A", "21", "22", "42", "P0")
"""Classes of SQLSTATEs that recur for the same SQL and rows: unsupported features, invalid SQL or data, and errors that
the SQL raises itself (https://spark.apache.org/docs/latest/sql-error-conditions-sqlstates.html).
"""

PERMANENT_DATABASE_STATES = ("22", "28", "3D", "42000", "42501")
"""The same of databases: data that a column cannot hold, a refused login, no such database, and missing rights. A table
or column that is missing is found before the restart.
"""

BUSY_DATABASE_STATES = ("53300", *(f"42000, error {code}" for code in (1203, 1226)))
"""The SQLSTATEs of a server, or a user, that has too many connections: the same statement may work later."""

PERMANENT_CONDITIONS = (
    *("CONCURRENT_STREAM_LOG_UPDATE", "FAILED_READ_FILE.FILE_NOT_EXIST", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"),
    *(LOST_IN_KAFKA, "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION"),
    *("STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE", "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE"),
    "STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY",
)
"""Other conditions that a restart cannot fix: the checkpoint belongs to another query, or input files are missing."""

_DATABASE_STATE = re.compile(r"\[SQLSTATE (\w{5}(?:, error \d+)?)\]")
"""The SQLSTATE in the message of a DatabaseError."""

CONNECTION_ERRORS = (
    *("ConnectException", "Connection refused", "Connection reset", "NoRouteToHostException"),
    *("SocketTimeoutException", "TimeoutException", "UnknownHostException", "Failed to create new Kafka"),
    *("I/O error occurred while sending to the backend", "Socket error"),
    *("the database system is ", "terminating connection due to", "unexpected end of stream", "Server shutdown"),
)
"""Words in errors about connections: of Java, of the drivers of databases, and of databases that stop or start
(https://www.postgresql.org/docs/current/errcodes-appendix.html).
"""

_LOGIN, _DATABASE, _ABSENT = ("28",), ("3D", "42000, error 1049"), ("08", "57P0", *BUSY_DATABASE_STATES)
_RIGHTS = ("42501", *(f"42000, error {code}" for code in (1044, 1142, 1143, 1227, 1370)))
"""The SQLSTATEs of a refused login, of a database that does not exist, of a server that is not reached, stops, or has
no connection left, and of missing rights. In MariaDB and MySQL, 42000 has many meanings, which their codes tell apart
(https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference).
"""

AHEAD_SECONDS = 86_400.0
"""How far a watermark may be ahead of the clock: clocks and time zones differ by less than a day."""


def failure_finding(run: QueryRun, error: Exception, secrets: Secrets) -> Finding:
    """Returns the finding for `error`, which ended the query of `run`, with what is known of the row and its file."""
    batch = _failed_batch(run)
    return replace(_finding(run, batch, error, secrets), failure=failure_of_input(error, batch, secrets))


def _finding(run: QueryRun, batch: int | None, error: Exception, secrets: Secrets) -> Finding:
    model = run.order.query.model
    what = f"the query of `{model.name}` failed{'' if batch is None else f' in batch {batch}'}"
    place = run.order.query.compiled.place_of_words(model, *fragment_of(error))
    # each of these knows one kind of error, and says more about it than Spark's message
    record = read_corrupt_record(error)
    if isinstance(record, ViolatingRows):
        record = _all_violations(run, record)
    if record is not None:
        return corrupt_record_finding(record, what, Place(model.file.location), secrets, run.order.query.tables)
    refused = schema_finding(model.name, what, error, model.file.location)
    if refused is not None:
        return refused
    lost = state_finding(model.name, what, error, run.order.checkpoint, model.file.location, secrets)
    if lost is not None:
        return lost
    if isinstance(error, UnreachableError):
        return _unreachable(model, error, secrets)
    if any(cause.kind.endswith(UNKNOWN_TOPIC) for cause in causes_of(error)):  # Kafka's error does not name the topic
        missing = _missing_topic(run, secrets)
        if missing is not None:
            return missing
    if has_application_ended(run.session):
        return _ended_application(run, what, error, secrets)
    reported = database_error(error)
    if reported is not None and (cannot_connect(reported) or is_connection_lost(error)):
        return database_finding(run.order.query, reported)
    fix = f"fix the cause and run again: {_next_run(run)}"
    found = error_finding(error, code="query-failed", what=what, place=place, secrets=secrets, fix=fix)
    return _with_addresses(found, run, error, secrets)


def _ended_application(run: QueryRun, what: str, error: Exception, secrets: Secrets) -> Finding:
    """Returns the finding for a query whose application has ended. What Spark reports of the query is often only a
    consequence.
    """
    ended = (
        "Spark's application has ended: the cluster ended it, perhaps because it lost too many executors, or it failed"
    )
    fix = f"look for the cause in logs/sqlstream.log and in the logs of the cluster, and run again: {_next_run(run)}"
    place = Place(run.order.query.model.file.location)
    found = error_finding(error, code="query-failed", what=what, place=place, secrets=secrets)
    return replace(found, why=f"{ended}; {found.why}", fix=fix)


def _all_violations(run: QueryRun, found: ViolatingRows) -> ViolatingRows:
    """Returns all rows of the failed batch that violate the same data test, or only the row at which the query failed
    if the others cannot be read.
    """
    query = run.order.query
    model = next((model for model in query.compiled.models.values() if model.name == found.model), None)
    tests = () if model is None else model.file.row_tests
    test = next((test for test in tests if test.name == found.test), None)
    if test is None:
        return found
    try:
        frame = query.frame if query.marked is None else query.marked
        rows = rows_of_failed_batch(run.stream, frame, f"{TESTED}{found.model}")
        count, shown = (0, ()) if rows is None else violations(rows, tests, test, SHOWN_ROWS)
    except SPARK_ERRORS:  # the files or records are gone, or Spark stops
        return found
    return replace(found, rows=shown, count=count) if count else found


_PATIENCE_SECONDS = 5.0
"""How long a failure waits for the brokers."""


def _missing_topic(run: QueryRun, secrets: Secrets) -> Finding | None:
    """Returns the finding for the first topic that the query names and its brokers do not have, None without one."""
    query = run.order.query
    compiled, project = query.compiled, query.compiled.project
    nodes = {query.model.unique_id, *compiled.upstream(query.model.unique_id)}
    for table in compiled.tables_of(query.model.unique_id):
        nodes |= {source_id(project.name, table.corrupt_of)} if table.corrupt_of is not None else set()
    servers = [each for each in servers_of(compiled, run.session, secrets, nodes) if each.kind == "kafka"]
    answers = (answer for _, answer in ask_servers(servers, secrets, _PATIENCE_SECONDS) if isinstance(answer, Finding))
    return next((answer for answer in answers if answer.code == "missing-topic"), None)


def _next_run(run: QueryRun) -> str:
    """Returns what the next run of the failed query does."""
    if run.order.is_batch:
        return WRITES_AGAIN
    return STARTS_OVER if run.order.is_fresh else CONTINUES


def _unreachable(model: CompiledModel, error: UnreachableError, secrets: Secrets) -> Finding:
    endpoint = error.endpoint
    return Finding(
        "query-failed",
        secrets.redact(f"the query of `{model.name}` cannot start: no broker of {endpoint.what} responds"),
        secrets.redact(str(error)),
        f"start the broker, or fix kafka.bootstrap.servers at {endpoint.location}",
        model.file.location,
    )


def fails_again(error: BaseException) -> bool:
    """Returns whether a restart after `error` would certainly fail with the same error."""
    own = own_error(error)
    if read_corrupt_record(error) is not None or (own is not None and own.kind.endswith(".RefusedRowsError")):
        return True
    reported = database_error(error)
    if reported is not None:
        state = reported.state
        return state.startswith(PERMANENT_DATABASE_STATES) and not state.startswith(BUSY_DATABASE_STATES)
    return any(
        cause.kind.endswith(("AnalysisException", ".ParseException"))
        or (cause.condition or "").startswith(PERMANENT_CONDITIONS)
        or (cause.sqlstate or "").startswith(PERMANENT_SQLSTATES)
        or any(words in cause.words for words in OTHER_RUN_MESSAGES)
        for cause in causes_of(error)
    )


def database_error(error: BaseException) -> DatabaseError | None:
    """Returns the error of a database that ended a query, None if another error did."""
    own = own_error(error)
    if own is None or not own.kind.endswith(".DatabaseError"):
        return None
    state = _DATABASE_STATE.search(own.message)
    return DatabaseError(own.message, state[1] if state else "")


def cannot_connect(error: DatabaseError) -> bool:
    """Returns whether a database refuses a connection for a reason that a repetition does not change."""
    return error.state.startswith((*_LOGIN, *_DATABASE, *_RIGHTS))


def is_connection_lost(error: BaseException) -> bool:
    """Returns whether a server may answer later: it is not reached, or it is stopping or starting."""
    reported = database_error(error)
    if isinstance(error, UnreachableError) or (reported is not None and reported.state.startswith(_ABSENT)):
        return True
    texts = [f"{cause.kind} {cause.words}" for cause in causes_of(error)]
    return any(word in text for word in CONNECTION_ERRORS for text in texts)


def database_finding(query: PreparedQuery, error: DatabaseError, output: Output | None = None) -> Finding:
    """Returns the finding that the database of a sink, `output` or the first one, cannot be used, at the line of the
    sink that can be wrong.
    """
    output = output or next(
        each for each in query.compiled.outputs_of(query.model) if format_of(each.format).is_database
    )
    sink = next(each for each in query.compiled.project.sinks if each.name == output.sink)
    places = {name.lower(): place for name, place in sink.locations.items()}
    problem, fix = "does not answer", "start the database, or fix the address in `url`"
    options: tuple[str, ...] = ()
    if error.state.startswith(_LOGIN):
        problem, fix, options = "refuses the login", "fix `user` and `password` of the sink", ("password", "user")
    elif error.state.startswith(_DATABASE):
        problem, fix = "refuses the connection", "fix the name of the database in `url`, or create the database"
    elif error.state.startswith(_RIGHTS):
        problem, fix, options = "refuses the statement", "grant the user what the message names", ("user",)
    found = (places.get(f"options.{name}") for name in (*options, "url"))
    return Finding(
        "database-refused" if cannot_connect(error) else "query-failed",
        f"`{query.model.name}` cannot write to sink `{output.sink}`: the database {problem}",
        str(error),
        fix,
        next(filter(None, found), output.location),
    )


def _with_addresses(finding: Finding, run: QueryRun, error: Exception, secrets: Secrets) -> Finding:
    """Adds the addresses of the query to the finding if the error is about a connection."""
    endpoints = run.order.query.endpoints
    if not endpoints or not is_connection_lost(error):
        return finding
    addresses = "; ".join(f"{endpoint.what} is at {endpoint.text}" for endpoint in endpoints)
    return replace(finding, why=secrets.redact(f"{finding.why}; {addresses}"))


def _failed_batch(run: QueryRun) -> int | None:
    """Returns the batch in which a query failed, None if it ran no batch, or if its JVM is gone."""
    try:
        return unfinished_batch(run.stream) if run.stream is not None else None
    except SPARK_ERRORS:
        return None


def ahead_finding(run: QueryRun, watermark: float | None) -> Finding | None:
    """Returns the finding that the `watermark` of a query with state, in seconds since 1970, is far ahead of the clock.
    None if it is not, or if the project allows it.
    """
    query = run.order.query
    ahead = 0.0 if watermark is None else watermark - time.time()
    if ahead <= AHEAD_SECONDS or not query.identity.stateful:
        return None
    model, project = query.model, query.compiled.project
    finding = Finding(
        "watermark-ahead",
        f"the watermark of `{model.name}` is {span_text(ahead)} ahead of the clock",
        "a row with a wrong time has moved it there; Spark drops each row before it as late, also in later runs",
        "set `max_event_time` of the source, and `timestamp_unit` for numbers in JSON, and run with --full-refresh; "
        f"if the times are right, allow this: -- {COMMENT_START} allow watermark-ahead because ...",
        model.file.location,
    )
    found = lower_findings(project, [finding], spark=query.frame.sparkSession.version, complete=False)
    return next((each for each in found if each.code == finding.code and each.is_error), None)
