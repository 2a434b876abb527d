"""The only home of py4j: what sqlstream needs of Spark beyond PySpark's public API.

Nothing here works over Spark Connect; each function says what is lost there.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.project.values import SECRET_PREFIX

JVM_ERRORS = (Py4JError, ConnectionError)
"""What a call into the JVM raises besides PySpark's own errors; see `is_jvm_gone`."""

STDERR = 2
"""The descriptor: `sys.stderr` may be replaced by what has none."""

STATEFUL_NODES = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "Except",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "GlobalLimit",
        "Intersect",
        "TransformWithState",
        "TransformWithStateInPySpark",
    }
)
"""Logical operators that keep state when their input streams
(org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker and IncrementalExecution)."""


COMMANDS = ("Command", "ParsedStatement", "InsertIntoDir")
"""What a parsed text may hold that is no query (org.apache.spark.sql.catalyst.plans.logical)."""


def launch_jvm(conf: SparkConf, on_stderr: Callable[[str], None], console_to_stderr: bool = False) -> Any:
    """Starts the JVM so that it outlives Ctrl-C and SIGTERM, and returns py4j's gateway.

    A process started while a signal is ignored ignores it for good, and so do its Python workers: sent to the whole
    process group, a signal then stops no batch in the middle. Each line that the JVM writes to stderr goes to
    `on_stderr`, in a thread. Signals that arrive during the launch (about two seconds) are lost. Neither the JVM nor
    its workers get the secrets of the environment: SQL can read an environment, with `reflect` for one. Console sinks
    print to the JVM's stdout, which is this process's own, or its stderr with `console_to_stderr`.
    Over Connect: the server is not ours to start.
    """
    read_end, write_end = os.pipe()
    outputs = {"stderr": write_end, "stdout": STDERR if console_to_stderr else None}
    with _ignored(signal.SIGINT), _ignored(signal.SIGTERM), _without_secrets():
        try:
            gateway = launch_gateway(conf, popen_kwargs=outputs)  # type: ignore[no-untyped-call]
        except Exception:
            os.close(write_end)
            _read_lines(read_end, on_stderr)
            raise
    os.close(write_end)
    threading.Thread(target=_read_lines, args=(read_end, on_stderr), name="jvm-stderr", daemon=True).start()
    return gateway


@contextmanager
def _ignored(number: signal.Signals) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change signals; a library caller then keeps its own
        return
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def _without_secrets() -> Iterator[None]:
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(SECRET_PREFIX)}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _read_lines(descriptor: int, on_line: Callable[[str], None]) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            on_line(line.rstrip("\n"))


def is_jvm_gone(error: BaseException) -> bool:
    """Returns whether `error` says that the JVM has been killed or has crashed: py4j then has no answer to show."""
    torn = type(error) is Py4JError and "\n" not in str(error).strip()
    return torn or isinstance(error, Py4JNetworkError | ConnectionError)


def forget_jvm() -> None:
    """Lets the next start of Spark in this process launch a JVM of its own: the one that PySpark holds is gone."""
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def check_streaming(frame: DataFrame, output_mode: str) -> None:
    """Has Spark check that `frame` can stream in `output_mode`, as `start()` would, without starting anything.

    Raises: AnalysisException. Over Connect: legality shows only at start.
    """
    jvm = _jvm(frame.sparkSession)
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(_analyzed(frame), mode)


def command_in(session: SparkSession, sql: str) -> str | None:
    """Returns the name of the command (an INSERT, a CREATE, ...) that `sql` holds, None where it is a plain query.

    `spark.sql` carries a command out at once, so it must not see one. Raises: ParseException.
    Over Connect: only the words of the text tell.
    """
    java_session: Any = session._jsparkSession  # noqa: SLF001
    plan = java_session.sessionState().sqlParser().parsePlan(sql)
    jvm = _jvm(session)
    package = "org.apache.spark.sql.catalyst.plans.logical."
    kinds = [jvm.java.lang.Class.forName(package + name) for name in COMMANDS]
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if any(kind.isInstance(node) for kind in kinds):
            return str(node.nodeName())
        children = node.children()
        waiting += [children.apply(index) for index in range(children.size())]
    return None


def check_format(session: SparkSession, name: str) -> None:
    """Has Spark look up the data source `name`, as a writer would when it starts.

    Raises: Spark's error when there is none. Over Connect: an unknown format shows only at start.
    """
    java_session: Any = session._jsparkSession  # noqa: SLF001
    source = _jvm(session).org.apache.spark.sql.execution.datasources.DataSource
    source.lookupDataSource(name, java_session.sessionState().conf())


def check_file_schema(session: SparkSession, format_name: str, frame: DataFrame) -> None:
    """Has Spark check that the columns of `frame` can be written as `format_name`, one of its file formats.

    Raises: AnalysisException. Over Connect: an unfit type shows only in the first batch.
    """
    classes = {
        "csv": "csv.CSVFileFormat",
        "json": "json.JsonFileFormat",
        "orc": "orc.OrcFileFormat",
        "parquet": "parquet.ParquetFileFormat",
        "text": "text.TextFileFormat",
    }
    if format_name not in classes:
        return
    package = "org.apache.spark.sql.execution.datasources."
    instance = (
        _jvm(session).java.lang.Class.forName(package + classes[format_name]).getConstructors()[0].newInstance(None)
    )
    utils = _jvm(session).org.apache.spark.sql.execution.datasources.DataSourceUtils
    utils.verifySchema(instance, _java_frame(frame).schema(), False)


def is_stateful(frame: DataFrame) -> bool:
    """Returns whether a streaming query over `frame` keeps state. Over Connect: only the checkpoint tells."""
    return _keeps_state(_analyzed(frame))


def _keeps_state(node: Any) -> bool:
    children = node.children()
    below = [children.apply(index) for index in range(children.size())]
    name = node.getClass().getSimpleName()
    if name in STATEFUL_NODES and node.isStreaming():
        return True
    if name == "Join" and all(child.isStreaming() for child in below):
        return True
    return any(_keeps_state(child) for child in below if child.isStreaming())


class Phase(StrEnum):
    """Where in its loop a query is. Only in `WRITING` and `WAITING` may it be marked: a query that finds the mark
    between the two, when its batch is planned and its offsets are logged, interrupts itself (Spark 4.3,
    MicroBatchExecution.runBatch).
    """

    WAITING = "waiting for its next trigger"
    PLANNING = "planning a batch"
    WRITING = "running a batch"


def phase_of(query: StreamingQuery) -> Phase:
    """Returns what `query` is doing. Over Connect: only whether a trigger is active can be known."""
    if not query.status["isTriggerActive"]:
        return Phase.WAITING
    stack = _stack_text(_execution(query).queryExecutionThread())
    writing = "MicroBatchExecution.runBatch" in stack and "SQLExecution$.withNewExecutionId" in stack
    return Phase.WRITING if writing else Phase.PLANNING


def _stack_text(thread: Any) -> str:
    """What `thread` is doing, as text: py4j would need two calls per frame for the array itself."""
    jvm = _jvm(SparkSession.getActiveSession())
    carrier = jvm.java.lang.Throwable()
    carrier.setStackTrace(thread.getStackTrace())
    text = jvm.java.io.StringWriter()
    carrier.printStackTrace(jvm.java.io.PrintWriter(text))
    return str(text.toString())


def mark_stopped(query: StreamingQuery) -> None:
    """Lets `query` end after its running batch, whose offsets are then committed.

    `StreamingQuery.stop()` interrupts the batch, which is then run twice. A query that waits for its next trigger
    does not notice the mark: call `stop()` on it. Over Connect: only `stop()` is left.
    """
    _execution(query).state().set(_state("TERMINATED"))


def unmark_stopped(query: StreamingQuery) -> None:
    """Takes the mark back, for a query that began a batch in the moment it was marked."""
    _execution(query).state().set(_state("ACTIVE"))


def _execution(query: StreamingQuery) -> Any:
    return query._jsq.streamingQuery()  # noqa: SLF001


def _state(name: str) -> Any:
    jvm = _jvm(SparkSession.getActiveSession())
    state = jvm.java.lang.Class.forName(f"org.apache.spark.sql.execution.streaming.runtime.{name}$")
    return state.getField("MODULE$").get(None)


def listen(session: SparkSession, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
    """Calls `on_progress` with each batch's progress as JSON, and `on_end` once after the last, for every query of
    `session`, in a thread of py4j's.

    PySpark's own listener reads each progress field by field through py4j; one JSON text is many times cheaper.
    Over Connect: poll `recentProgress`.
    """
    context = session.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    wrapper = _jvm(session).org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
    session._jsparkSession.streams().addListener(wrapper(_Listener(on_progress, on_end)))  # noqa: SLF001


class _Listener:
    """Spark calls these from its listener bus, in the order of the events of one query."""

    def __init__(self, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self._on_progress = on_progress
        self._on_end = on_end

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - the Java interface's name
        """Nothing to tell: the runner knows what it started."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch has been run."""
        self._on_progress(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """A trigger found nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802, ARG002
        """The query has ended, well or not."""
        self._on_end()

    class Java:
        """What py4j reads to make a Java proxy of this class."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def default_file_system(session: SparkSession) -> str:
    """Returns the URI that paths without a scheme belong to, `file:///` unless configured. Over Connect: unknown."""
    return str(session.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///"))  # noqa: SLF001


def hadoop_file_system(session: SparkSession, uri: str) -> tuple[Any, Callable[[str], Any]]:
    """Returns Hadoop's file system for `uri` and the function that makes its paths. Over Connect: not to be had."""
    jvm = _jvm(session)
    make_path = jvm.org.apache.hadoop.fs.Path
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    return make_path(uri).getFileSystem(configuration), make_path


def hadoop_replace(session: SparkSession, source: str, destination: str) -> None:
    """Renames the file `source` over `destination` in one step, through Hadoop's FileContext."""
    jvm = _jvm(session)
    fs = jvm.org.apache.hadoop.fs
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    context = fs.FileContext.getFileContext(fs.Path(destination).toUri(), configuration)
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    options = gateway.new_array(fs.Options.Rename, 1)
    options[0] = fs.Options.Rename.OVERWRITE
    context.rename(fs.Path(source), fs.Path(destination), options)


def set_pool(session: SparkSession, name: str) -> None:
    """Gives queries started from this thread the fair-scheduler pool `name`. Over Connect: the server decides."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def _jvm(session: SparkSession | None) -> Any:
    if session is None:
        raise RuntimeError("there is no active Spark session")
    return session._jvm  # noqa: SLF001


def _java_frame(frame: DataFrame) -> Any:
    return frame._jdf  # noqa: SLF001


def _analyzed(frame: DataFrame) -> Any:
    return _java_frame(frame).queryExecution().analyzed()
