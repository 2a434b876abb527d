"""Calls into Spark's JVM beyond PySpark's public API; the only module that uses py4j.

On a server of Spark Connect (`is_connect`) there is no JVM to call. Each docstring says what sqlstream does then.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from py4j import protocol
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import convert_exception
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from sqlstream.project.configuration.target import is_local_master
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.connect import is_server_gone

JVM_ERRORS = (Py4JError, ConnectionError)
"""The errors of a call into the JVM, PySpark's own aside; see `is_jvm_gone`."""

SPARK_ERRORS = (PySparkException, *JVM_ERRORS)
"""All errors of a call of Spark."""

COMMANDS = ("Command", "ParsedStatement", "InsertIntoDir")
"""The classes of parsed statements that are not queries (org.apache.spark.sql.catalyst.plans.logical)."""

LEAST_LONG = 2**31


def is_connect(session: SparkSession) -> bool:
    """Returns whether `session` is on a Spark Connect server: then this process has no JVM."""
    return not isinstance(session, SparkSession)


def runs_here(session: SparkSession) -> bool:
    """Returns whether all of Spark runs on this machine, so that it sees the project's folder. Over Connect: no."""
    return not is_connect(session) and is_local_master(str(session.sparkContext.master))


def analysed(frame: DataFrame) -> DataFrame:
    """Returns `frame`, which Spark has analyzed: over Connect it otherwise does so only at the first use.

    Raises: AnalysisException.
    """
    if is_connect(frame.sparkSession):
        _ = frame.schema
    return frame


def is_jvm_gone(error: BaseException) -> bool:
    """Returns whether `error` means that the JVM was killed or has crashed, or over Connect that the server has, or has
    ended the session.
    """
    if is_server_gone(error):
        return True
    # py4j wraps a lost connection in this class; an error that Java reports has a trace below its first line
    has_no_answer = type(error) is Py4JError and "\n" not in str(error).strip()
    return has_no_answer or isinstance(error, Py4JNetworkError | ConnectionError)


def has_application_ended(session: SparkSession) -> bool:
    """Returns whether Spark's application has ended while the JVM goes on, as when a cluster ends it. If the JVM has
    ended, too: no. Over Connect: no; there the server ends (`is_jvm_gone`).
    """
    if is_connect(session):
        return False
    context: Any = session.sparkContext._jsc  # noqa: SLF001 - None after a stop by Python
    try:
        return context is None or bool(context.sc().isStopped())
    except JVM_ERRORS:
        return False


@dataclass(frozen=True)
class Cause:
    """One exception in a chain of causes: the full name of its class, and its own message, without a plan or a trace.

    Spark's exceptions also have an error condition with parameters, a SQLSTATE, and the SQL fragment to which they
    refer, with its offset in the text; None or empty if unknown. `java` is the exception in the JVM.
    """

    kind: str
    message: str
    condition: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    sqlstate: str | None = None
    offset: int | None = None
    fragment: str = ""
    java: Any = field(default=None, repr=False, compare=False)

    @property
    def words(self) -> str:
        """The message of an exception without a condition, otherwise empty.

        Look for words only here: messages of conditions quote values, SQL and other text of the user.
        """
        return "" if self.condition else self.message

    def passed(self, class_name: str) -> bool:
        """Returns whether code of the Java class with this full name, or of a class in it, is in the stack."""
        frames = () if self.java is None else self.java.getStackTrace()
        return any(str(frame.getClassName()).split("$", 1)[0] == class_name for frame in frames)


@contextmanager
def java_exceptions() -> Iterator[None]:
    """Raises the Java exceptions of Spark's errors in the body, a function that Java calls.

    Otherwise it gets a Python traceback, which lacks the conditions and the causes of what Spark reports.
    """
    try:
        yield
    except PySparkException as error:
        java = getattr(error, "_origin", None)
        if java is None:
            raise
        raise Py4JJavaError(str(error).split("\n", 1)[0], java) from error


def causes_of(error: BaseException) -> list[Cause]:
    """Returns what caused `error`, from the exception itself to the innermost.

    Leaves out Spark's StreamingQueryException around the cause of a failed query: it contains the plan of the query,
    and so all constants of the user's SQL.
    """
    causes: list[Cause] = []
    current: BaseException | None = error
    while current is not None:
        java = getattr(current, "_origin", None) or getattr(current, "java_exception", None)
        # a JVM that has ended since does not tell the cause
        causes += _python_causes(current) if java is None else _java_causes(java) or [Cause(type(current).__name__, "")]
        inner = None if java is not None else getattr(current, "_cause", None)  # of an error that PySpark returns
        current = inner or current.__cause__
    failed = [cause for cause in causes if not cause.kind.endswith(".StreamingQueryException")]
    return failed or [replace(cause, message=cause.message.split(_QUERY_TEXT, 1)[0]) for cause in causes]


_QUERY_TEXT = "\n=== Streaming Query ==="
"""The line in the message of a StreamingQueryException after which it prints the query and its plan."""


def _java_causes(error: Any) -> list[Cause]:
    """Returns the Java exception `error` and its causes, as far as the JVM responds."""
    causes: list[Cause] = []
    with suppress(*JVM_ERRORS):
        while error is not None:
            causes.append(_java_cause(error))
            error = error.getCause()
    return causes


def _java_cause(error: Any) -> Cause:
    kind = str(error.getClass().getName())
    is_analysis = kind.endswith("AnalysisException")  # its getMessage() adds the plan
    message = str((error.getSimpleMessage() if is_analysis else error.getMessage()) or kind)
    try:
        condition = error.getCondition()
    except JVM_ERRORS:  # it is not a SparkThrowable
        return Cause(kind, message, java=error)
    is_legacy = condition is None or condition.startswith("_LEGACY")
    contexts = [each for each in error.getQueryContext() if str(each.contextType()) == "SQL" and each.startIndex() >= 0]
    return Cause(
        kind,
        message,
        None if is_legacy else str(condition),
        dict(error.getMessageParameters() or {}),
        error.getSqlState(),
        int(contexts[0].startIndex()) if contexts else None,
        str(contexts[0].fragment()) if contexts else "",
        error,
    )


def _python_causes(error: BaseException) -> list[Cause]:
    kind = f"{type(error).__module__}.{type(error).__name__}"
    if isinstance(error, Py4JError):
        return [Cause(kind, str(error).splitlines()[0])]
    if not isinstance(error, PySparkException):
        return [Cause(kind, str(error) or type(error).__name__)]
    # without a Java exception: of PySpark itself, of a Connect server, or of an older trace
    text, _, trace = str(getattr(error, "_desc", None) or error).partition(_SERVER_TRACE)
    get_trace = getattr(error, "getStackTrace", lambda: None)
    first, *others = _TRACED.split(str(get_trace() or trace))
    kind = first.partition("\n")[0].partition(":")[0].strip() or kind
    contexts = [each for each in error.getQueryContext() if each.contextType().name == "SQL" and each.startIndex() >= 0]
    cause = Cause(
        kind,
        _REASON.sub("", text).strip(),
        error.getCondition(),
        error.getMessageParameters() or {},
        error.getSqlState(),
        int(contexts[0].startIndex()) if contexts else None,
        str(contexts[0].fragment()) if contexts else "",
    )
    return [cause, *map(_traced_cause, others)]


_SERVER_TRACE = "\n\nJVM stacktrace:\n"
"""The line after which a message of a Connect server has the stack trace of its JVM."""

_TRACED = re.compile(r"(?m)^Caused by: ")
_REASON = re.compile(r"^\([A-Z_]+\) ")
"""The name of the outer condition, with which PySpark begins the message of a query that failed on a Connect server."""
_TRACED_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\]")
_TRACED_SQLSTATE = re.compile(r"SQLSTATE: (\w{5})")
_TRACED_SQL = re.compile(r"== SQL \(line \d+, position \d+\) ==\n(?P<line>.+)\n(?P<blanks> *)(?P<marks>\^+)")
"""The first line of the SQL to which an exception refers, and the marks below its part, in a stack trace."""


def _traced_cause(text: str) -> Cause:
    """Returns the exception that a stack trace shows after `Caused by: `. It has no parameters there."""
    header = text.partition("\n\tat ")[0].strip()
    kind, _, message = header.partition(": ")
    condition, state, sql = (pattern.search(message) for pattern in (_TRACED_CONDITION, _TRACED_SQLSTATE, _TRACED_SQL))
    first = len(sql["blanks"]) if sql else 0
    return Cause(
        kind,
        message or kind,
        condition[1] if condition else None,
        sqlstate=state[1] if state else None,
        fragment=sql["line"][first : first + len(sql["marks"])] if sql else "",
    )


def failure_of(query: StreamingQuery) -> Exception | None:
    """Returns the error that ended `query`, None if it has not failed.

    PySpark's `exception()` returns one without its Java exceptions, which know conditions and causes. Over Connect:
    `exception()`, whose causes are in the text of its stack trace.
    """
    if not isinstance(query, StreamingQuery):
        return query.exception()
    found = query._jsq.exception()  # noqa: SLF001
    return convert_exception(found.get()) if found.isDefined() else None


def jvm_process() -> int | None:
    """Returns the process id of the JVM, None if there is none. Over Connect: not available."""
    jvm = SparkContext._jvm  # noqa: SLF001
    return None if jvm is None else int(jvm.java.lang.ProcessHandle.current().pid())


def check_streaming(frame: DataFrame, output_mode: str) -> None:
    """Runs Spark's check that `frame` can stream in `output_mode`, as `start()` does, without starting anything.

    Raises: AnalysisException. Over Connect: only `start()` finds the error.
    """
    checker = jvm_of(frame.sparkSession).org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(analyzed(frame), java_output_mode(frame.sparkSession, output_mode))


def free_rows(rows: DataFrame) -> None:
    """Frees the rows of a frame that `localCheckpoint` returned, without waiting for it. Over Connect: Spark frees them
    when nothing refers to them.
    """
    rows._jdf.queryExecution().analyzed().rdd().unpersist(False)  # noqa: SLF001 - PySpark frees only what it has cached


def java_output_mode(session: SparkSession, name: str) -> Any:
    """Returns Spark's output mode append, update or complete."""
    return getattr(java_class(session, "org.apache.spark.sql.streaming.OutputMode"), name.capitalize())()


def command_in(session: SparkSession, sql: str) -> str | None:
    """Returns the name of the command (an INSERT, a CREATE, ...) in `sql`, None if it is a query.

    `spark.sql` would execute the command at once. Raises: ParseException. Over Connect: only the text can be searched.
    """
    java_session: Any = session._jsparkSession  # noqa: SLF001
    plan = java_session.sessionState().sqlParser().parsePlan(sql)
    package = "org.apache.spark.sql.catalyst.plans.logical."
    classes = java_class(session, "java.lang.Class")
    kinds = [classes.forName(package + name) for name in COMMANDS]
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if any(kind.isInstance(node) for kind in kinds):
            return str(node.nodeName())
        waiting += seq_items(node.children())
    return None


def check_format(session: SparkSession, name: str) -> None:
    """Looks up the data source `name`, as a writer does when it starts.

    Raises: Spark's error if it does not exist. Over Connect: only `start()` finds the error.
    """
    java_session: Any = session._jsparkSession  # noqa: SLF001
    source = jvm_of(session).org.apache.spark.sql.execution.datasources.DataSource
    source.lookupDataSource(name, java_session.sessionState().conf())


def check_file_schema(session: SparkSession, format_name: str, frame: DataFrame) -> None:
    """Runs Spark's check that the file format `format_name` supports the columns of `frame`.

    Raises: AnalysisException. Over Connect: only the first batch finds the error.
    """
    name = format_of(format_name).file_format_class
    if not name:
        return
    package = "org.apache.spark.sql.execution.datasources."
    instance = jvm_of(session).java.lang.Class.forName(package + name).getConstructors()[0].newInstance(None)
    utils = jvm_of(session).org.apache.spark.sql.execution.datasources.DataSourceUtils
    utils.verifySchema(instance, _java_frame(frame).schema(), False)  # for a write, not a read


def check_types(frame: DataFrame) -> None:
    """Runs Spark's check that a query can return the types of `frame`, as `start()` does.

    Raises: AnalysisException. Over Connect: only `start()` finds the error.
    """
    conf = _java_frame(frame).sparkSession().sessionState().conf()
    utils = jvm_of(frame.sparkSession).org.apache.spark.sql.catalyst.util.TypeUtils
    utils.failUnsupportedDataType(_java_frame(frame).schema(), conf)


def check_partitions(frame: DataFrame, names: Sequence[str]) -> None:
    """Runs Spark's check that `frame` can be partitioned by its columns `names`, in any letter case.

    Raises: AnalysisException. Over Connect: only `start()` finds the error.
    """
    jvm = jvm_of(frame.sparkSession)
    partitions = jvm.org.apache.spark.sql.execution.datasources.PartitioningUtils
    listed = jvm.PythonUtils.toSeq(list(names))
    partitions.validatePartitionColumn(_java_frame(frame).schema(), listed, False)  # not case-sensitive


def infer_csv_schema(lines: DataFrame, options: Mapping[str, str]) -> StructType:
    """Returns the schema that Spark infers from `lines`, whose only column contains lines of CSV.

    Over Connect: Spark can only infer the schema of files.
    """
    session = lines.sparkSession
    java_session: Any = session._jsparkSession  # noqa: SLF001
    reader = java_session.read()
    for name, value in {**options, "inferSchema": "true"}.items():
        reader = reader.option(name, value)
    texts = getattr(_java_frame(lines), "as")(jvm_of(session).org.apache.spark.sql.Encoders.STRING())
    return StructType.fromJson(json.loads(reader.csv(texts).schema().json()))


class Phase(StrEnum):
    """A query's position in its loop. It is safe to mark it TERMINATED only in `WRITING` and `WAITING`: a query that
    finds the mark while it plans a batch and logs the offsets interrupts itself (Spark 4.3,
    MicroBatchExecution.runBatch).
    """

    WAITING = "waiting for its next trigger"
    PLANNING = "planning a batch"
    WRITING = "running a batch"


def phase_of(query: StreamingQuery) -> Phase:
    """Returns the phase of `query`. Over Connect: only whether a trigger is active."""
    if not query.status["isTriggerActive"]:
        return Phase.WAITING
    # runBatch plans the batch first; only what runs it has an execution id
    stack = _stack_text(execution_of(query).queryExecutionThread())
    writing = "MicroBatchExecution.runBatch" in stack and "SQLExecution$.withNewExecutionId" in stack
    return Phase.WRITING if writing else Phase.PLANNING


def _stack_text(thread: Any) -> str:
    """Returns the stack trace of `thread` as text. Reading the array itself takes two py4j calls per frame."""
    jvm = jvm_of(SparkSession.getActiveSession())
    carrier = jvm.java.lang.Throwable()
    carrier.setStackTrace(thread.getStackTrace())
    text = jvm.java.io.StringWriter()
    carrier.printStackTrace(jvm.java.io.PrintWriter(text))
    return str(text.toString())


def mark_terminated(query: StreamingQuery) -> None:
    """Ends `query` after its running batch has committed.

    `StreamingQuery.stop()` interrupts the batch, which then runs twice. A query that waits for its next trigger
    does not notice the mark: call `stop()` on it. Over Connect: only `stop()`.
    """
    execution_of(query).state().set(_state("TERMINATED"))


def mark_active(query: StreamingQuery) -> None:
    """Removes the mark, for a query that began a batch at the moment of `mark_terminated`."""
    execution_of(query).state().set(_state("ACTIVE"))


def unfinished_batch(query: StreamingQuery) -> int | None:
    """Returns the newest batch of `query` if it began but did not commit; it runs again at the next start.

    Over Connect: read the checkpoint's files.
    """
    execution = execution_of(query)
    begun, committed = execution.offsetLog().getLatestBatchId(), execution.commitLog().getLatestBatchId()
    if not begun.isDefined() or (committed.isDefined() and begun.get() == committed.get()):
        return None
    return int(begun.get())


class OperatorWatermarks:
    """The watermarks that a running query keeps in memory: one for each operator, in the order of its plan. Over
    Connect: not available.
    """

    def __init__(self, tracker: Any, plan: Any) -> None:
        field = tracker.getClass().getDeclaredField("operatorToWatermarkMap")
        field.setAccessible(True)
        self._by_node = field.get(tracker)
        self._nodes = [node.nodeId() for node in plan_nodes(plan) if node_class(node) == "EventTimeWatermark"]

    def values(self) -> list[int | None]:
        """Returns the watermarks in ms since 1970, None for those without rows."""
        found = map(self._by_node.apply, self._nodes)
        return [int(each.get()) if each.isDefined() else None for each in found]

    def raise_to(self, values: Sequence[int | None]) -> None:
        """Raises each watermark to that in `values`; does nothing for another number of operators."""
        if len(values) != len(self._nodes):
            return
        option = getattr(SparkContext._jvm, "scala.Option")  # noqa: SLF001
        for node, now, value in zip(self._nodes, self.values(), values, strict=True):
            # py4j passes smaller numbers as an Integer, which Spark cannot read as a Long
            if value is not None and value >= LEAST_LONG and value > (now or 0):
                self._by_node.update(node, option.apply(value))


def operator_watermarks(query: StreamingQuery) -> OperatorWatermarks | None:
    """Returns the watermarks of the operators of `query`, None until it has read its checkpoint.

    Over Connect: after a restart the lowest watermark waits for new rows of each input.
    """
    execution = execution_of(query)
    tracker = execution.watermarkTracker()
    return None if tracker is None else OperatorWatermarks(tracker, execution.logicalPlan())


def current_watermark(query: StreamingQuery) -> int | None:
    """Returns the watermark of the next batch of `query` in ms since 1970, None until it has read its checkpoint.

    Over Connect: that of the last batch.
    """
    tracker = execution_of(query).watermarkTracker()
    return None if tracker is None else int(tracker.currentWatermark())


def plan_nodes(node: Any) -> Iterator[Any]:
    """Yields a plan and all plans below it, or an expression and all its parts, parents first."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(seq_items(node.children()))


def node_class(node: Any) -> str:
    """Returns the name of the class of a plan or an expression, without its package."""
    return str(node.getClass().getSimpleName())


def execution_of(query: StreamingQuery) -> Any:
    """Returns Spark's execution of `query`. Over Connect: not available."""
    return query._jsq.streamingQuery()  # noqa: SLF001


def _state(name: str) -> Any:
    """Returns a state of Spark's execution of a query. Over Connect: not available."""
    # not jvm_of(): the calling thread may have no active session
    classes = getattr(SparkContext._jvm, "java.lang.Class")  # noqa: SLF001
    state = classes.forName(f"org.apache.spark.sql.execution.streaming.runtime.{name}$")
    return state.getField("MODULE$").get(None)


def add_listener(session: SparkSession, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
    """Calls `on_progress` with each batch's progress as JSON, and `on_end` once after the last batch, for every query
    of `session`, in a py4j thread.

    PySpark's own listener reads progress field by field through py4j; one JSON text is many times cheaper.
    Over Connect: poll `recentProgress`.
    """
    context = session.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    wrapper = jvm_of(session).org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
    session._jsparkSession.streams().addListener(wrapper(_Listener(on_progress, on_end)))  # noqa: SLF001


class _ListenerInterface:
    implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


class _Listener:
    """Spark's listener bus calls these methods, in the order of a query's events."""

    Java = _ListenerInterface  # py4j reads it to create a Java proxy of this class

    def __init__(self, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self._on_progress = on_progress
        self._on_end = on_end

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - the Java interface's name
        """Does nothing: the runner knows which queries it started."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Reports the progress of a batch."""
        self._on_progress(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Does nothing: the trigger found no data."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802, ARG002
        """Reports the end of the query, failed or not."""
        self._on_end()


def set_pool(session: SparkSession, name: str) -> None:
    """Puts queries that this thread starts into the fair-scheduler pool `name`. Over Connect: the server decides."""
    if is_connect(session):
        return
    session.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def set_active_session(session: SparkSession) -> None:
    """Makes `session` the active session of this thread, where a writer looks for registered data sources.

    Over Connect: there is only one session.
    """
    jvm = jvm_of(session)
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # noqa: SLF001


def set_job_group(session: SparkSession, group: str, description: str) -> None:
    """Makes what this thread starts part of a group for `cancel_job_group`. Over Connect: gives it a tag."""
    if is_connect(session):
        session.addTag(group)
    else:
        session.sparkContext.setJobGroup(group, description, interruptOnCancel=True)


def cancel_job_group(session: SparkSession, group: str) -> None:
    """Cancels the running jobs of `group`. Over Connect: interrupts the operations with this tag."""
    if is_connect(session):
        session.interruptTag(group)
    else:
        session.sparkContext.cancelJobGroup(group)


def cancel_future_jobs(session: SparkSession, group: str) -> None:
    """Cancels the jobs of `group`, also those that start later. Over Connect: operations have tags instead."""
    session.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(group)  # noqa: SLF001


def call_in_other_jvm(method: Any, *arguments: object) -> Any:
    """Calls a Java method in a JVM that is not PySpark's, and returns its result. Raises: `JVM_ERRORS`.

    In a process that has had a session, PySpark converts the exceptions of every call of py4j, and looks for them in
    its own JVM, which does not know those of others.
    """
    parts, _ = method._build_args(*arguments)  # noqa: SLF001
    command = f"{protocol.CALL_COMMAND_NAME}{method.command_header}{parts}{protocol.END_COMMAND_PART}"
    answer = method.gateway_client.send_command(command)
    return protocol.get_return_value(answer, method.gateway_client, method.target_id, method.name)


def jvm_of(session: SparkSession | None) -> Any:
    """Returns py4j's view of the JVM of `session`. Raises: RuntimeError without a session.

    Over Connect: not available.
    """
    if session is None:
        raise RuntimeError("there is no active Spark session")
    return session._jvm  # noqa: SLF001


def java_class(session: SparkSession, name: str) -> Any:
    """Returns the class `name` of the JVM in one call; attribute access would call the JVM for each package."""
    return getattr(jvm_of(session), name)


def close_state_stores(session: SparkSession) -> None:
    """Closes the state stores that queries have left open in this JVM. RocksDB compacts files in the background. If the
    JVM ends during that, it can hang (seen in a soak): it waits for RocksDB's thread, which waits for Java to log.

    Over Connect: those of the server stay open.
    """
    java_class(session, "org.apache.spark.sql.execution.streaming.state.StateStore").stop()


def iceberg_table_id(session: SparkSession, name: str | None, path: str | None) -> str:
    """Returns the UUID of a table of Iceberg, which has a name in a catalog or only a path.

    Raises: Spark's and Iceberg's errors. Over Connect: read the file of the table's metadata.
    """
    if name is not None:
        table = java_class(session, "org.apache.iceberg.spark.Spark3Util").loadIcebergTable(
            session._jsparkSession,  # noqa: SLF001
            name,
        )
    else:
        configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        table = java_class(session, "org.apache.iceberg.hadoop.HadoopTables")(configuration).load(path)
    return str(table.uuid().toString())


def java_array(session: SparkSession, kind: Any) -> Any:
    """Returns an empty array of the class `kind`. Over Connect: not available."""
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    return gateway.new_array(kind, 0)


def default_setting(session: SparkSession, name: str) -> str | None:
    """Returns the default of a setting of Spark, None if it has none or Spark does not know it. Over Connect: not
    available.
    """
    with suppress(*SPARK_ERRORS):
        found = java_class(session, "org.apache.spark.sql.internal.SQLConf")().getConfString(name)
        return None if found is None else str(found)
    return None


def variable_of_java(session: SparkSession, kind: str, name: str) -> str | None:
    """Returns a variable of the environment of the JVM (`env`) or one of its properties; None if it is not set. Over
    Connect: not available.
    """
    system = java_class(session, "java.lang.System")
    value = system.getenv(name) if kind == "env" else system.getProperty(name)
    return None if value is None else str(value)


def unsafe_bytes(session: SparkSession, value: Any, type_: Any) -> bytes:
    """Returns Spark's own bytes of a `value` of the Spark type `type_`, which differ for different values (UnsafeRow).
    Over Connect: not available.
    """
    package, jvm = "org.apache.spark.sql.catalyst.expressions.", jvm_of(session)
    values = session.sparkContext._gateway.new_array(java_class(session, "java.lang.Object"), 1)  # type: ignore[union-attr]  # noqa: SLF001
    values[0] = value
    column = jvm.java.util.ArrayList()
    column.add(java_class(session, f"{package}BoundReference")(0, type_, True))
    columns = jvm.org.apache.spark.api.python.PythonUtils.toSeq(column)
    # generated classes all have one name, which py4j takes for one class
    projection = java_class(session, f"{package}InterpretedUnsafeProjection").createProjection(columns)
    return bytes(projection.apply(java_class(session, f"{package}GenericInternalRow")(values)).getBytes())


def seq_items(seq: Any) -> list[Any]:
    """Returns the items of a Scala Seq."""
    return [seq.apply(index) for index in range(seq.size())]


def _java_frame(frame: DataFrame) -> Any:
    """Returns the Java object of `frame`. Over Connect: not available."""
    return frame._jdf  # noqa: SLF001


def analyzed(frame: DataFrame) -> Any:
    """Returns Spark's analyzed logical plan of `frame`. Over Connect: not available."""
    return _java_frame(frame).queryExecution().analyzed()


def optimized(frame: DataFrame) -> Any:
    """Returns the logical plan of `frame` as Spark's optimizer returns it. Over Connect: not available."""
    java = _java_frame(frame)
    return java.sparkSession().sessionState().optimizer().execute(java.queryExecution().analyzed())


def batch_plan(frame: DataFrame, output_mode: str, *, with_state: bool) -> Any:
    """Returns the physical plan of the first batch of the streaming `frame`, without reading data. `with_state` also
    has Spark check the schemas of the state stores, which it writes into a temporary folder. Over Connect: not
    available.

    The watermark is not 0, because Spark follows watermarks through a plan only when there is one. Raises: the error of
    Spark's planner (org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution).
    """
    session, package = frame.sparkSession, "org.apache.spark.sql.execution.streaming."
    execution = java_class(session, f"{package}runtime.IncrementalExecution")
    offsets = java_class(session, f"{package}checkpointing.OffsetSeqMetadata")
    no_settings = jvm_of(session).PythonUtils.toScalaMap(java_class(session, "java.util.HashMap")())
    watermarks = java_class(session, f"{package}runtime.WatermarkPropagator")
    run_id = java_class(session, "java.util.UUID").randomUUID()
    query = _java_frame(frame).queryExecution()
    java_session, mode = query.sparkSession(), java_output_mode(session, output_mode)
    with tempfile.TemporaryDirectory(prefix="sqlstream-check-") as folder:
        values = [java_session, query.analyzed(), mode, f"{Path(folder).as_uri()}/state", run_id, run_id]
        # batch 0 after none, at the watermark 1 and the time 0, as its first batch if the schemas are checked
        values += [0, java_class(session, "scala.Option").empty(), offsets(1, 0, no_settings)]
        values += [watermarks.apply(java_session.sessionState().conf()), with_state]
        constructor = java_class(session, "java.lang.Class").forName(execution._fqn).getConstructors()[0]  # noqa: SLF001
        for number in range(len(values) + 1, constructor.getParameterCount() + 1):
            values.append(getattr(execution, f"$lessinit$greater$default${number}")())  # the default of a parameter
        return execution(*values).executedPlan()


def has_current_time(frame: DataFrame) -> bool:
    """Returns whether `frame` calls `now()` or a similar function. Over Connect: not available."""
    return calls_clock(frame.sparkSession, analyzed(frame))


def calls_clock(session: SparkSession, plan: Any) -> bool:
    """Returns whether an analyzed plan calls `now()` or a similar function. Over Connect: not available."""
    pattern = java_class(session, "org.apache.spark.sql.catalyst.trees.TreePattern").CURRENT_LIKE()
    return bool(plan.containsPattern(pattern))


def frame_of_plan(frame: DataFrame, plan: Any) -> DataFrame:
    """Returns `plan`, a part of the analyzed plan of `frame`, as a DataFrame. Over Connect: not available."""
    session = frame.sparkSession
    dataset = jvm_of(session).org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)  # noqa: SLF001


def static_frame(frame: DataFrame) -> DataFrame:
    """Returns the rows of `frame`, a part of the plan of one batch, as a DataFrame that is no stream, and can be
    written. Over Connect: not available.
    """
    java, session = _java_frame(frame), frame.sparkSession
    rows = session._jsparkSession.internalCreateDataFrame(java.queryExecution().toRdd(), java.schema(), False)  # noqa: SLF001
    return DataFrame(rows, session)
