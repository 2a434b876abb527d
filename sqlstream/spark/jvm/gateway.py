"""The only home of py4j: what sqlstream needs of Spark beyond PySpark's public API.

Nothing here works over Spark Connect; each function says what is lost there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from sqlstream.project.formats.formats import format_of

JVM_ERRORS = (Py4JError, ConnectionError)
"""What a call into the JVM raises besides PySpark's own errors; see `is_jvm_gone`."""

SPARK_ERRORS = (PySparkException, *JVM_ERRORS)
"""All that a call of Spark raises."""

COMMANDS = ("Command", "ParsedStatement", "InsertIntoDir")
"""What a parsed text may hold that is no query (org.apache.spark.sql.catalyst.plans.logical)."""


def is_jvm_gone(error: BaseException) -> bool:
    """Returns whether `error` says that the JVM has been killed or has crashed: py4j then has no answer to show."""
    torn = type(error) is Py4JError and "\n" not in str(error).strip()
    return torn or isinstance(error, Py4JNetworkError | ConnectionError)


def java_words(error: BaseException) -> str | None:
    """Returns what the JVM said in an error that PySpark has not translated, with the Java class in front of it; None
    for any other error.
    """
    if isinstance(error, Py4JJavaError):
        return str(error).split("\n", 1)[-1]  # the first line is py4j's own
    return str(error).splitlines()[0] if isinstance(error, Py4JError) else None


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Gives `error` and its causes; PySpark keeps those of an error that was asked for and not raised in `_cause`."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = getattr(seen, "_cause", None) or seen.__cause__


def check_streaming(frame: DataFrame, output_mode: str) -> None:
    """Has Spark check that `frame` can stream in `output_mode`, as `start()` would, without starting anything.

    Raises: AnalysisException. Over Connect: legality shows only at start.
    """
    jvm = jvm_of(frame.sparkSession)
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(analyzed(frame), mode)


def command_in(session: SparkSession, sql: str) -> str | None:
    """Returns the name of the command (an INSERT, a CREATE, ...) that `sql` holds, None where it is a plain query.

    `spark.sql` carries a command out at once, so it must not see one. Raises: ParseException.
    Over Connect: only the words of the text tell.
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
        children = node.children()
        waiting += [children.apply(index) for index in range(children.size())]
    return None


def check_format(session: SparkSession, name: str) -> None:
    """Has Spark look up the data source `name`, as a writer would when it starts.

    Raises: Spark's error when there is none. Over Connect: an unknown format shows only at start.
    """
    java_session: Any = session._jsparkSession  # noqa: SLF001
    source = jvm_of(session).org.apache.spark.sql.execution.datasources.DataSource
    source.lookupDataSource(name, java_session.sessionState().conf())


def check_file_schema(session: SparkSession, format_name: str, frame: DataFrame) -> None:
    """Has Spark check that the columns of `frame` can be written as `format_name`, one of its file formats.

    Raises: AnalysisException. Over Connect: an unfit type shows only in the first batch.
    """
    name = format_of(format_name).file_format_class
    if not name:
        return
    package = "org.apache.spark.sql.execution.datasources."
    instance = jvm_of(session).java.lang.Class.forName(package + name).getConstructors()[0].newInstance(None)
    utils = jvm_of(session).org.apache.spark.sql.execution.datasources.DataSourceUtils
    utils.verifySchema(instance, _java_frame(frame).schema(), False)


def check_types(frame: DataFrame) -> None:
    """Has Spark check that a query may give rows with the types of `frame`, as it does when the query starts.

    Raises: AnalysisException. Over Connect: an unfit type shows only at start.
    """
    conf = _java_frame(frame).sparkSession().sessionState().conf()
    utils = jvm_of(frame.sparkSession).org.apache.spark.sql.catalyst.util.TypeUtils
    utils.failUnsupportedDataType(_java_frame(frame).schema(), conf)


def check_partitions(frame: DataFrame, names: Sequence[str]) -> None:
    """Has Spark check that the rows of `frame` can be partitioned by its columns `names`, whatever their letter case.

    Raises: AnalysisException. Over Connect: an unfit type shows only at start.
    """
    jvm = jvm_of(frame.sparkSession)
    partitions = jvm.org.apache.spark.sql.execution.datasources.PartitioningUtils
    listed = jvm.PythonUtils.toSeq(list(names))
    partitions.validatePartitionColumn(_java_frame(frame).schema(), listed, False)


def infer_csv_schema(lines: DataFrame, options: Mapping[str, str]) -> StructType:
    """Returns the schema that Spark infers from the one column of `lines`, each of which is a row of CSV.

    Over Connect: lines can be read by a path only.
    """
    session = lines.sparkSession
    java_session: Any = session._jsparkSession  # noqa: SLF001
    reader = java_session.read()
    for name, value in {**options, "inferSchema": "true"}.items():
        reader = reader.option(name, value)
    texts = getattr(_java_frame(lines), "as")(jvm_of(session).org.apache.spark.sql.Encoders.STRING())
    return StructType.fromJson(json.loads(reader.csv(texts).schema().json()))


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
    jvm = jvm_of(SparkSession.getActiveSession())
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


def unfinished_batch(query: StreamingQuery) -> int | None:
    """Returns the newest batch of `query` where it was begun and not committed, so that it runs again next time.

    Over Connect: the checkpoint's files tell.
    """
    execution = _execution(query)
    begun, committed = execution.offsetLog().getLatestBatchId(), execution.commitLog().getLatestBatchId()
    if not begun.isDefined() or (committed.isDefined() and begun.get() == committed.get()):
        return None
    return int(begun.get())


def _execution(query: StreamingQuery) -> Any:
    return query._jsq.streamingQuery()  # noqa: SLF001


def _state(name: str) -> Any:
    # a thread that has no active session may ask, too
    classes = getattr(SparkContext._jvm, "java.lang.Class")  # noqa: SLF001
    state = classes.forName(f"org.apache.spark.sql.execution.streaming.runtime.{name}$")
    return state.getField("MODULE$").get(None)


def listen(session: SparkSession, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
    """Calls `on_progress` with each batch's progress as JSON, and `on_end` once after the last, for every query of
    `session`, in a thread of py4j's.

    PySpark's own listener reads each progress field by field through py4j; one JSON text is many times cheaper.
    Over Connect: poll `recentProgress`.
    """
    context = session.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    wrapper = jvm_of(session).org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
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


def set_pool(session: SparkSession, name: str) -> None:
    """Gives queries started from this thread the fair-scheduler pool `name`. Over Connect: the server decides."""
    session.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def activate(session: SparkSession) -> None:
    """Makes `session` the one of this thread: a writer looks there for the data sources that have been registered.

    Over Connect: there is one session.
    """
    java_session = session._jsparkSession  # noqa: SLF001
    jvm_of(session).org.apache.spark.sql.classic.SparkSession.setActiveSession(java_session)


def jvm_of(session: SparkSession | None) -> Any:
    """Returns py4j's view of the JVM of `session`. Raises: RuntimeError where there is no session."""
    if session is None:
        raise RuntimeError("there is no active Spark session")
    return session._jvm  # noqa: SLF001


def java_class(session: SparkSession, name: str) -> Any:
    """Returns the class `name` of the JVM in one call: a name with dots in Python asks for each of its packages."""
    return getattr(jvm_of(session), name)


def _java_frame(frame: DataFrame) -> Any:
    return frame._jdf  # noqa: SLF001


def analyzed(frame: DataFrame) -> Any:
    """Returns Spark's analysed logical plan of `frame`. Over Connect: there is none to look at."""
    return _java_frame(frame).queryExecution().analyzed()


def rows_of(frame: DataFrame, plan: Any) -> DataFrame:
    """Returns the rows of `plan`, a part of the analysed plan of `frame`. Over Connect: there is no plan to take."""
    session = frame.sparkSession
    dataset = jvm_of(session).org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)  # noqa: SLF001
