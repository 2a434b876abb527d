"""The one Spark session of a run, with sqlstream's defaults, and the child session of each query."""

from __future__ import annotations

import math
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.compiler.spark_versions import minor_version
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.values import Target
from sqlstream.spark.jvm.cluster import PARTITIONS, ClusterDefault
from sqlstream.spark.jvm.gateway import JVM_ERRORS, SPARK_ERRORS, is_jvm_gone
from sqlstream.spark.jvm.launch import forget_jvm, launch_jvm
from sqlstream.spark.jvm.quiet import quiet_pyspark
from sqlstream.spark.jvm.slow_classes import initialise
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import read_error

TIME_ZONE = "spark.sql.session.timeZone"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

FROZEN_SETTINGS = (PARTITIONS, PROVIDER, POLICY)
"""Settings that Spark keeps from a checkpoint's first batch on, so a resumed query gets the ledger's."""

LOOPBACK = "127.0.0.1"

NAMED_SOURCES_SINCE = (4, 3)
"""The first Spark whose checkpoints know a source by its name."""

LOG_LINES_KEPT = 200
"""Lines of the JVM's log that are looked through for the reason when Spark does not start."""

LASTING_JVM = "-XX:MetaspaceSize=256m"
"""What suits every JVM: at Java's own 21 MB the classes of Spark would start five collections of all garbage."""

ENDING_JVM = f"{LASTING_JVM} -XX:+UseParallelGC"
"""For a run that ends by itself: the collector that costs least in all, and pauses longest."""

BRIEF_JVM = f"{LASTING_JVM} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""For a JVM that lives for seconds: one quick compiler and a collector without threads leave more of the cores.

The quick compiler alone has room for the code of some hundred queries and then falls silent; 240 MB is what both have.
"""

JVM_OPTIONS, DEFAULT_OPTIONS = "spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"

_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
_OPTIONS_ELSEWHERE = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables in which a JVM of Spark's finds options."""

_JVM_REASON = re.compile(r"(?i)^(error:|exception in|invalid |could not |caused by:)|Exception: ")


@dataclass(frozen=True)
class SparkRuntime:
    """A started Spark: the root session, its version, whether this Spark can name its sources, and on a cluster the
    default of the shuffle partitions. `held` ends with the session.
    """

    session: SparkSession
    version: str
    names_sources: bool
    cluster: ClusterDefault | None = None
    held: ExitStack = field(default_factory=ExitStack)


def spark_settings(target: Target, app_name: str, warehouse: str) -> dict[str, str]:
    """Returns the configuration of a run, secrets aside: sqlstream's defaults, then the target's own `spark:`.

    `warehouse` is where managed tables go, so that Spark writes nothing into the working directory.
    """
    settings = {
        "spark.app.name": app_name,
        "spark.master": target.master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.warehouse.dir": warehouse,
        "spark.sql.streaming.stopTimeout": "60s",
        "spark.sql.streaming.stopActiveRunOnRestart": "false",
        # the text that runs is the compiled one: Spark would put variables of its own and the environment for ${...}
        "spark.sql.variable.substitute": "false",
        # pushed into the parser, a filter hides rows from the count of rows read
        "spark.sql.json.filterPushdown.enabled": "false",
        "spark.sql.csv.filterPushdown.enabled": "false",
        TIME_ZONE: "UTC",
    }
    settings |= _local_settings(target.master) if target.is_local else {PROVIDER: ROCKSDB}
    if target.packages:
        settings["spark.jars.packages"] = ",".join(target.packages)
    return settings | {name: value for name, value in target.spark.items() if isinstance(value, str)}


def _local_settings(master: str) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        PARTITIONS: str(_local_cores(master)),
    }


def _local_cores(master: str) -> int:
    """The cores of `local[cores]`, or of the workers of `local-cluster[workers,cores,megabytes]`."""
    numbers = master.partition("[")[2].rstrip("]").split(",")
    counts = numbers[:2] if master.startswith("local-cluster") else numbers[:1]
    if counts == ["*"]:
        return os.cpu_count() or 1
    return math.prod(int(count) for count in counts) if all(count.strip().isdigit() for count in counts) else 1


@dataclass(frozen=True)
class SparkLaunch:
    """What a start of Spark needs besides the target: the application's name, the folder of managed tables, who takes
    each line of the JVM's log, whether what console sinks print goes to stderr, what the JVM is for (`BRIEF_JVM`,
    `ENDING_JVM`, `LASTING_JVM`), and further options of it. Those of the target go over all of these. `classes` are
    initialised meanwhile (`slow_classes`).
    """

    app_name: str
    warehouse: str
    on_log: Callable[[str], None]
    console_to_stderr: bool = False
    purpose: str = LASTING_JVM
    java_options: str = ""
    classes: tuple[str, ...] = ()


def start_spark(target: Target, secrets: Secrets, launch: SparkLaunch) -> SparkRuntime:
    """Starts Spark and returns it. Raises: FindingsError, with what Spark or the JVM said."""
    with ExitStack() as held:
        held.enter_context(quiet_pyspark())
        session = _start_session(target, secrets, launch)
        cluster = None if target.is_local else ClusterDefault(session)
        return SparkRuntime(session, session.version, names_sources(session), cluster, held.pop_all())


def _start_session(target: Target, secrets: Secrets, launch: SparkLaunch) -> SparkSession:
    """Raises: FindingsError."""
    _prepare_environment(target)
    conf = SparkConf(loadDefaults=False)
    settings = spark_settings(target, launch.app_name, launch.warehouse)
    conf.setAll([*settings.items(), (JVM_OPTIONS, _jvm_options(launch, settings))])
    said: deque[str] = deque(maxlen=LOG_LINES_KEPT)

    def keep(line: str) -> None:
        said.append(line)
        launch.on_log(line)

    try:
        context = _start_context(conf, keep, launch)
    except SPARK_ERRORS as error:
        raise FindingsError([_start_finding(target, error, said, secrets)]) from error
    hidden = {name: value for name, value in target.spark.items() if not isinstance(value, str)}
    _set_secret_settings(context, secrets.resolve_all(hidden))
    return SparkSession(context)


def names_sources(session: SparkSession) -> bool:
    """Returns whether this Spark can name its sources."""
    return hasattr(session.readStream, "name") and minor_version(session.version) >= NAMED_SOURCES_SINCE


def _jvm_options(launch: SparkLaunch, settings: Mapping[str, str]) -> str:
    """The options of the JVM; it does not start with two collectors, so that of the user's is the only one."""
    of_target = settings.get(JVM_OPTIONS, "")
    elsewhere = (os.environ.get(name, "") for name in _OPTIONS_ELSEWHERE)
    others = " ".join([of_target, settings.get(DEFAULT_OPTIONS, ""), *elsewhere])
    purpose = _COLLECTOR.sub("", launch.purpose) if _COLLECTOR.search(others) else launch.purpose
    return " ".join(filter(None, (launch.java_options, purpose.strip(), of_target)))


def stop_spark(runtime: SparkRuntime) -> None:
    """Stops Spark, also where its JVM has died; a later start in this process then launches a new one."""
    with runtime.held:
        _leave_accumulators(runtime.session.sparkContext)
        try:
            runtime.session.stop()
        except JVM_ERRORS as error:
            if not is_jvm_gone(error):
                raise
            forget_jvm()


def _leave_accumulators(context: Any) -> None:
    """Lets PySpark's server of accumulators end in a thread: it looks twice a second whether it shall."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        context._accumulatorServer = _InThread(server.shutdown)  # noqa: SLF001


@dataclass(frozen=True)
class _InThread:
    """What can be shut down, and is not waited for."""

    end: Callable[[], None]

    def shutdown(self) -> None:
        threading.Thread(target=self.end, name="accumulators", daemon=True).start()


def _start_context(conf: SparkConf, on_log: Callable[[str], None], launch: SparkLaunch) -> SparkContext:
    # a second run in one process finds the JVM of the first still there, and Spark keeps to it
    gateway = None if SparkContext._gateway else launch_jvm(conf, on_log, launch.console_to_stderr)  # noqa: SLF001
    if gateway is not None:
        initialise(gateway, launch.classes)
    return SparkContext(conf=conf, gateway=gateway)


def _start_finding(target: Target, error: Exception, said: Iterable[str], secrets: Secrets) -> Finding:
    reason = jvm_reason(said) if isinstance(error, PySparkException) else None
    why = reason or read_error(error).message
    return Finding(
        "spark-start",
        f"Spark failed to start for target `{target.name}`",
        secrets.redact(why),
        "fix master: and spark: of the target; `sqlstream debug` checks them, and logs/sqlstream.log has details",
        target.location,
    )


def jvm_reason(said: Iterable[str]) -> str | None:
    """Returns the first line of a JVM's log that says why it does not start, None where none does."""
    return next((line.strip() for line in said if _JVM_REASON.search(line)), None)


def _prepare_environment(target: Target) -> None:
    """Workers run the same Python as this command, a virtual environment that is not activated included."""
    if target.is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _set_secret_settings(context: SparkContext, settings: Mapping[str, str]) -> None:
    """Secret settings are set in the running JVM: on its command line every user of the machine could read them."""
    java = context._jsc  # noqa: SLF001
    for name, value in settings.items():
        if name.startswith("spark.hadoop."):
            java.hadoopConfiguration().set(name.removeprefix("spark.hadoop."), value)
        java.sc().conf().set(name, value)


def child_session(runtime: SparkRuntime, settings: Mapping[str, str]) -> SparkSession:
    """Returns a session of its own for one query: its own views and settings, on the same SparkContext."""
    child = runtime.session.newSession()
    for name, value in settings.items():
        child.conf.set(name, value)
    return child
