"""The Spark session of a run, with sqlstream's defaults, and a child session for each query.

Over Connect: `ConnectSessions` has the sessions.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from sqlstream.compiler.spark_versions import minor_version
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.target import DEFAULT_MASTER, Target, is_local_master
from sqlstream.project.connectors.connectors import EXTENSIONS
from sqlstream.project.secret_text import OptionValue
from sqlstream.spark.jvm.cluster import NOTICE_SECONDS, PARTITIONS, POLL_SECONDS, ClusterDefault
from sqlstream.spark.jvm.connect import CONNECT_MODE, PATIENCE, PATIENCE_SECONDS, ConnectSessions, refused_settings
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import JVM_ERRORS, SPARK_ERRORS, is_jvm_gone
from sqlstream.spark.jvm.internals import close_state_stores
from sqlstream.spark.jvm.kubernetes import EXECUTOR_IMAGE, IMAGE, K8S, NO_IMAGE, NO_IMAGE_FIX, refusal
from sqlstream.spark.jvm.launch import (
    JARS,
    end_jvm,
    end_jvm_without,
    environment,
    forget_jvm,
    launch_jvm,
    spark_env_script,
    with_local_files,
)
from sqlstream.spark.jvm.state_store import IS_BOUNDED, PROVIDER, ROCKSDB, memory_settings
from sqlstream.spark.secrets import Secrets
from sqlstream.state.spark_settings import OWN_DEFAULTS

TIME_ZONE = "spark.sql.session.timeZone"

LOOPBACK = "127.0.0.1"

NAMED_SOURCES_SINCE = (4, 3)
"""The first Spark version whose checkpoints identify sources by name."""

LOG_LINES_KEPT = 200
"""Lines of the JVM's log in which to look for the reason if Spark does not start."""

LONG_RUN_JVM = "-XX:MetaspaceSize=256m"
"""For every JVM: with Java's default of 21 MB, Spark's classes would cause five full garbage collections."""

FINITE_RUN_JVM = f"{LONG_RUN_JVM} -XX:+UseParallelGC"
"""For a run that ends by itself: the collector with the best throughput and the longest pauses."""

SHORT_LIVED_JVM = f"{LONG_RUN_JVM} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""For a JVM that lives for seconds: only the fast compiler, and a collector without threads, leave more of the cores.

The code cache for this compiler alone holds the code of about a hundred queries, then compilation stops. 240 MB is
Java's default for both compilers.
"""

JVM_OPTIONS, DEFAULT_OPTIONS = "spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"

EXECUTOR_PYTHON = "spark.pyspark.python"

FAILURES_COUNT_FOR = "spark.executor.failuresValidityInterval"
"""On YARN and Kubernetes, Spark ends an application that has lost too many executors. By default, no loss is ever too
old to count.
"""

FOR_EXECUTORS = (EXECUTOR_PYTHON, "spark.archives")
"""Settings that prepare the machines of a cluster, and are wrong on another one."""

YARN = "yarn"
"""The master of YARN."""

HADOOP_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
NO_HADOOP = "YARN is found by Hadoop's settings, and the variable HADOOP_CONF_DIR is not set"
NO_HADOOP_FIX = "set it to the folder with yarn-site.xml and core-site.xml: export HADOOP_CONF_DIR=/etc/hadoop/conf"

NO_CONTAINER_FIX = (
    "free memory in the queue, or set another one (spark.yarn.queue); if YARN does not answer at all, check "
    "yarn.resourcemanager.address in the folder HADOOP_CONF_DIR"
)

_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
_OPTIONS_ELSEWHERE = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Environment variables from which Spark's JVM reads options."""

_JVM_REASON = re.compile(r"(?i)^(error:|exception in|invalid |could not |caused by:)|Exception: ")

SLOW_CLASSES = {
    "org.apache.spark.sql.catalyst.util.CollationAwareUTF8String": re.compile(
        r"(?i)\b(?:upper|ucase|lower|lcase|initcap)\s*\("
    )
}
"""Slow classes, with the SQL that needs them. This one computes the title case of every character in one second."""

PYSPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""They print every analysis error to stderr, with its SQL."""

PY4J_LOGGERS = ("py4j", "py4j.java_gateway", "py4j.clientserver")
"""They report each lost connection to the JVM, also at its normal end. A filter does not apply to loggers below."""


@dataclass(frozen=True)
class SparkRuntime:
    """A started Spark: the root session, its version, whether it can name sources, and on a cluster the default of the
    shuffle partitions. `inherited` are the settings that neither sqlstream nor the target has set, such as those of a
    spark-defaults.conf. `resources` are closed with the session. `connect` has the sessions on a Spark Connect server,
    None if Spark runs with a master.
    """

    session: SparkSession
    version: str
    names_sources: bool
    cluster: ClusterDefault | None = None
    inherited: Mapping[str, str] = field(default_factory=dict)
    resources: ExitStack = field(default_factory=ExitStack)
    connect: ConnectSessions | None = None


@dataclass(frozen=True)
class SessionConnectors:
    """What a session needs for its connectors: the paths of their jars, and Spark settings. `per_core` are settings
    that a local session sets to its number of cores.
    """

    jars: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    per_core: tuple[str, ...] = ()


NO_CONNECTORS = SessionConnectors()


def spark_settings(
    target: Target, app_name: str, warehouse: str, connectors: SessionConnectors = NO_CONNECTORS
) -> dict[str, str]:
    """Returns the configuration of a run without secrets: sqlstream's defaults, then the target's `spark:`.

    `warehouse` is the folder of managed tables; by default Spark would write them to the working directory. The jars
    and the extensions of `connectors` are added to those of the target.
    """
    settings = {
        "spark.app.name": app_name,
        "spark.master": target.master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",  # a long batch of one query does not keep others waiting
        "spark.sql.warehouse.dir": warehouse,
        "spark.sql.streaming.stopTimeout": "60s",
        # otherwise a second start on a checkpoint ends the first query without an error
        "spark.sql.streaming.stopActiveRunOnRestart": "false",
        **OWN_DEFAULTS,
        **memory_settings(target.spark, is_local=target.is_local),
        TIME_ZONE: "UTC",
    }
    settings |= _local_settings(target.master, connectors.per_core) if target.is_local else _cluster_settings(target)
    settings |= {name: value for name, value in connectors.settings.items() if name != EXTENSIONS}
    if target.resolves_in_spark:
        settings["spark.jars.packages"] = ",".join(target.packages)
    settings |= {name: value for name, value in target.spark.items() if isinstance(value, str)}
    if connectors.jars:
        settings[JARS] = _listed(settings.get(JARS, ""), *connectors.jars)
    if EXTENSIONS in connectors.settings:
        settings[EXTENSIONS] = _listed(settings.get(EXTENSIONS, ""), connectors.settings[EXTENSIONS])
    return settings


def _listed(*values: str) -> str:
    """Returns the entries of comma-separated `values` as one list, each entry once."""
    return ",".join(dict.fromkeys(entry.strip() for value in values for entry in value.split(",") if entry.strip()))


_LOOPBACK_SETTINGS = {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}


def _local_settings(master: str, per_core: Sequence[str]) -> dict[str, str]:
    return {
        **dict.fromkeys((PARTITIONS, *per_core), str(_local_cores(master))),
        **_LOOPBACK_SETTINGS,
    }


def _cluster_settings(target: Target) -> dict[str, str]:
    old_name = FAILURES_COUNT_FOR.replace("spark.", "spark.yarn.", 1)  # Spark would prefer the new one
    failures = {} if old_name in target.spark else {FAILURES_COUNT_FOR: "1h"}
    return {PROVIDER: ROCKSDB, **failures}  # state can be larger than the heap of an executor


def _local_cores(master: str) -> int:
    """Returns the number of cores of `local[cores]`, or of all workers of `local-cluster[workers,cores,megabytes]`."""
    numbers = master.partition("[")[2].rstrip("]").split(",")
    counts = numbers[:2] if master.startswith("local-cluster") else numbers[:1]
    if counts == ["*"]:
        return os.cpu_count() or 1
    return math.prod(int(count) for count in counts) if all(count.strip().isdigit() for count in counts) else 1


@dataclass(frozen=True)
class SparkLaunch:
    """How to start Spark, besides the target.

    `warehouse` is the folder of managed tables. `on_log` gets each line of the JVM's log. With `console_to_stderr`,
    console sinks print to stderr. `purpose` is one of `SHORT_LIVED_JVM`, `FINITE_RUN_JVM`, `LONG_RUN_JVM`. The target's
    options override `purpose` and `java_options`. `classes` are initialized in the background (`slow_classes`).
    `executor_options` are settings with the JVM options of executors. With `is_submitted`, `spark-submit` has started
    the JVM of this process, with all settings and jars. With `on_this_machine`, Spark has the target's settings but not
    its master. A wait for YARN is reported to `notify`. It ends with what `check` raises, or with an error after
    `patience` seconds.
    """

    app_name: str
    warehouse: str
    on_log: Callable[[str], None]
    console_to_stderr: bool = False
    purpose: str = LONG_RUN_JVM
    java_options: str = ""
    classes: tuple[str, ...] = ()
    connectors: SessionConnectors = NO_CONNECTORS
    executor_options: tuple[tuple[str, str], ...] = ()
    is_submitted: bool = False
    on_this_machine: bool = False
    notify: Callable[[str], None] = lambda _: None
    check: Callable[[], None] = lambda: None
    patience: float = math.inf


def start_spark(target: Target, secrets: Secrets, launch: SparkLaunch) -> SparkRuntime:
    """Starts Spark, or sessions on the target's Spark Connect server. Raises: FindingsError, with the message of Spark
    or the JVM.
    """
    if target.remote is not None:
        return _connect(target, target.remote, secrets, launch)
    with ExitStack() as resources:
        resources.enter_context(quiet_pyspark())
        is_here = target.is_local or launch.on_this_machine
        resources.enter_context(environment(_python_variables(target, is_here=is_here)))
        session, given = _start_session(target, secrets, launch)
        try:
            cluster = None if is_here else ClusterDefault(session)
            inherited = {name: value for name, value in session.conf.getAll.items() if name not in given}
        except SPARK_ERRORS as error:  # such as a class that the file system of the warehouse lacks
            _stop_session(session)
            raise FindingsError([_start_finding(target, error, (), secrets)]) from error
        return SparkRuntime(session, session.version, names_sources(session), cluster, inherited, resources.pop_all())


def _connect(target: Target, remote: OptionValue, secrets: Secrets, launch: SparkLaunch) -> SparkRuntime:
    """Starts sessions on the server `remote`, with the settings and jars of the target. Raises: FindingsError."""
    url = secrets.resolve(remote)
    with ExitStack() as resources:
        resources.enter_context(quiet_pyspark())
        resources.enter_context(environment({CONNECT_MODE: "1"}))
        try:
            sessions = ConnectSessions(url, float(str(target.spark.get(PATIENCE, PATIENCE_SECONDS))))
            resources.callback(sessions.close)
            session = sessions.root
            before = set(session.conf.getAll)
            settings = remote_settings(target, secrets, launch.connectors)
            refused = refused_settings(session, settings)
            if launch.connectors.jars:
                session.addArtifacts(*launch.connectors.jars)
            inherited = {name: value for name, value in session.conf.getAll.items() if name not in settings}
        except (ImportError, OSError, ValueError, *SPARK_ERRORS) as error:
            raise FindingsError([_no_server(target, error, secrets)]) from error
        # Spark copies settings of a session to Hadoop with this prefix, so Hadoop does not know them
        refused.update({name: "" for name in settings if name.startswith("spark.hadoop.")})
        if refused:
            raise FindingsError([_server_setting(target, name) for name in refused])
        cluster = None if PARTITIONS in before else ClusterDefault(session)
        return SparkRuntime(
            session, session.version, names_sources(session), cluster, inherited, resources.pop_all(), sessions
        )


def remote_settings(target: Target, secrets: Secrets, connectors: SessionConnectors) -> dict[str, str]:
    """Returns the settings of a session on a Spark Connect server: sqlstream's defaults, then the target's `spark:`."""
    return {
        PROVIDER: ROCKSDB,  # as on a cluster
        IS_BOUNDED: "true",
        "spark.sql.streaming.stopTimeout": "60s",
        **OWN_DEFAULTS,
        TIME_ZONE: "UTC",
        **{name: value for name, value in connectors.settings.items() if name != EXTENSIONS},
        **secrets.resolve_all(target.spark),
        # the server ends a query that a killed run, perhaps of another user, has left on it
        "spark.sql.streaming.stopActiveRunOnRestart": "true",
    }


def _no_server(target: Target, error: Exception, secrets: Secrets) -> Finding:
    why, fix = read_error(error).message, "fix `remote` and `spark` of the target, or start the server"
    if isinstance(error, ImportError):
        fix = "install what the client of Spark Connect needs: pip install 'sqlstream[connect]'"
    elif isinstance(error, OSError):
        why = f"the server does not accept connections: {error}"
    return Finding(
        "spark-start",
        f"Spark Connect cannot be used for target `{target.name}`",
        secrets.redact(why),
        fix,
        target.location_of("remote"),
    )


def _server_setting(target: Target, name: str) -> Finding:
    return Finding(
        "spark-start",
        f"target `{target.name}` cannot set {name} over Spark Connect",
        "it is a setting of the server, which sessions cannot change",
        "remove it from `spark` of the target, and set it when the server starts",
        target.location,
    )


def _start_session(target: Target, secrets: Secrets, launch: SparkLaunch) -> tuple[SparkSession, Collection[str]]:
    """Returns the session, and the names of the settings that sqlstream or the target set. Raises: FindingsError."""
    settings = launch_settings(target, launch)
    starts_on_yarn = settings["spark.master"] == YARN and not launch.is_submitted
    if starts_on_yarn and not _knows_yarn(os.environ):
        raise FindingsError([_start_problem(target, NO_HADOOP, NO_HADOOP_FIX)])
    if starts_on_yarn:
        end_jvm()  # only a new JVM has what spark-submit prepares for YARN, such as PySpark for the executors
    end_jvm_without(launch.connectors.jars)  # before the configuration, which is an object of the JVM if there is one
    if is_local_master(settings["spark.master"]):
        settings = with_local_files(settings)
    conf = SparkConf(loadDefaults=False)
    if not launch.is_submitted:
        conf.setAll(list(settings.items()))
    log: deque[str] = deque(maxlen=LOG_LINES_KEPT)

    def on_log(line: str) -> None:
        log.append(line)
        launch.on_log(line)

    try:
        context = _start_context(conf, on_log, launch)
    except TimeoutError as error:
        raise FindingsError([_start_problem(target, str(error), NO_CONTAINER_FIX)]) from error
    except NoImageError as error:
        raise FindingsError([_start_problem(target, NO_IMAGE, NO_IMAGE_FIX)]) from error
    except SPARK_ERRORS as error:
        raise FindingsError([_start_finding(target, error, log, secrets)]) from error
    with_secrets = {name: value for name, value in target.spark.items() if not isinstance(value, str)}
    _set_secret_settings(context, secrets.resolve_all(with_secrets))
    # a JVM that is used again also has those with which it was started
    at_start = getattr(SparkContext._gateway, "given", ())  # noqa: SLF001
    return SparkSession(context), {*settings, *with_secrets, *at_start}


def launch_settings(target: Target, launch: SparkLaunch) -> dict[str, str]:
    """Returns all settings with which the JVM of a run starts, without secrets."""
    settings = spark_settings(target, launch.app_name, launch.warehouse, launch.connectors)
    if launch.on_this_machine and not target.is_local:
        settings = {name: value for name, value in settings.items() if name not in FOR_EXECUTORS}
        settings |= {"spark.master": DEFAULT_MASTER, **_LOOPBACK_SETTINGS}
    return {**settings, **dict(launch.executor_options), JVM_OPTIONS: _jvm_options(launch, settings)}


def _knows_yarn(env: Mapping[str, str]) -> bool:
    """Returns whether Spark may have the settings of Hadoop. It accepts an empty variable, and then waits for a YARN on
    this machine.
    """
    return any(map(env.get, HADOOP_FOLDERS)) or spark_env_script(env).exists()


def names_sources(session: SparkSession) -> bool:
    """Returns whether this Spark can name sources."""
    return hasattr(session.readStream, "name") and minor_version(session.version) >= NAMED_SOURCES_SINCE


def _jvm_options(launch: SparkLaunch, settings: Mapping[str, str]) -> str:
    """Returns the options of the JVM. The user's garbage collector replaces sqlstream's: a JVM refuses two."""
    target_options = settings.get(JVM_OPTIONS, "")
    elsewhere = (os.environ.get(name, "") for name in _OPTIONS_ELSEWHERE)
    others = " ".join([target_options, settings.get(DEFAULT_OPTIONS, ""), *elsewhere])
    purpose = _COLLECTOR.sub("", launch.purpose) if _COLLECTOR.search(others) else launch.purpose
    return " ".join(filter(None, (launch.java_options, purpose.strip(), target_options)))


def stop_spark(runtime: SparkRuntime) -> None:
    """Stops Spark, even if its JVM has died; a later start in this process then launches a new JVM."""
    with runtime.resources:
        if runtime.connect is None:
            _stop_session(runtime.session)


def _stop_session(session: SparkSession) -> None:
    with suppress(*SPARK_ERRORS):  # the stop says what is wrong
        close_state_stores(session)
    try:
        session.stop()
    except JVM_ERRORS as error:
        if not is_jvm_gone(error):
            raise
        forget_jvm()


def _start_context(conf: SparkConf, on_log: Callable[[str], None], launch: SparkLaunch) -> SparkContext:
    # Spark uses the JVM of an earlier run in this process again
    gateway = None if SparkContext._gateway else launch_jvm(conf, on_log, launch.console_to_stderr)  # noqa: SLF001
    if gateway is not None:
        initialize_classes(gateway, launch.classes)
    if str(conf.get("spark.master", "")).startswith(K8S) and not _has_image(conf, gateway):
        raise NoImageError
    if conf.get("spark.master") == YARN:
        queue = conf.get("spark.yarn.queue", "default")
        return _start_on_yarn(lambda: SparkContext(conf=conf, gateway=gateway), str(queue), launch)
    return SparkContext(conf=conf, gateway=gateway)


class NoImageError(Exception):
    """No setting names the image of executors on Kubernetes. Spark would start, and try in vain to create pods."""


def _has_image(conf: SparkConf, gateway: Any) -> bool:
    """Returns whether the target or a spark-defaults.conf names the image of executors."""
    started: Any = gateway or SparkContext._gateway  # noqa: SLF001
    known = SparkConf(loadDefaults=True, _jvm=started.jvm)
    return any(each.get(name, "") for each in (conf, known) for name in (EXECUTOR_IMAGE, IMAGE))


def _start_on_yarn(start: Callable[[], SparkContext], queue: str, launch: SparkLaunch) -> SparkContext:
    """Returns what `start` returns. It waits until YARN has a container for the application, for any length of time: if
    `launch.check` raises, the JVM ends, and so does the wait. Raises: TimeoutError after `launch.patience`.
    """
    began, is_reported = time.monotonic(), False
    with ThreadPoolExecutor(1, "spark-start") as threads, ExitStack() as after_error:
        after_error.callback(end_jvm)
        starting = threads.submit(start)
        while wait([starting], POLL_SECONDS).not_done:
            launch.check()
            waited = time.monotonic() - began
            if waited >= launch.patience:
                raise TimeoutError(f"YARN has not started the application within {waited:.0f} s in queue `{queue}`")
            if not is_reported and waited >= NOTICE_SECONDS:
                launch.notify(f"waiting for YARN: the application has not started yet in queue `{queue}`")
                is_reported = True
        after_error.pop_all()
    return starting.result()


def _start_finding(target: Target, error: Exception, log: Iterable[str], secrets: Secrets) -> Finding:
    lines = list(log)
    refused = refusal([*lines, str(error)]) if target.master.startswith(K8S) else None
    if refused is not None:
        return _start_problem(target, secrets.redact(refused[0]), refused[1])
    reason = jvm_reason(lines) if isinstance(error, PySparkException) else None
    why = reason or read_error(error).message
    fix = "fix master: and spark: of the target; `sqlstream debug` checks them, and logs/sqlstream.log has details"
    return _start_problem(target, secrets.redact(why), fix)


def _start_problem(target: Target, why: str, fix: str) -> Finding:
    what = f"Spark failed to start for target `{target.name}`"
    return Finding("spark-start", what, why, fix, target.location)


def jvm_reason(log: Iterable[str]) -> str | None:
    """Returns the first line of a JVM's log that gives the reason why it does not start, None without such a line."""
    return next((line.strip() for line in log if _JVM_REASON.search(line)), None)


def _python_variables(target: Target, *, is_here: bool) -> dict[str, str]:
    """Returns the variables that make workers run the Python of this command, even if its virtual environment is not
    activated; on a cluster the Python of the target, which PySpark reads only from the environment. `is_here`: all of
    Spark runs on this machine.
    """
    values = {"PYSPARK_DRIVER_PYTHON": sys.executable}
    on_cluster = target.spark.get(EXECUTOR_PYTHON)
    if not is_here and isinstance(on_cluster, str):
        values["PYSPARK_PYTHON"] = on_cluster
    if is_here:
        values |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", LOOPBACK)}
    return values


def _set_secret_settings(context: SparkContext, settings: Mapping[str, str]) -> None:
    """Sets secrets in the running JVM: every user of the machine could read them on its command line."""
    java = context._jsc  # noqa: SLF001
    for name, value in settings.items():
        if name.startswith("spark.hadoop."):
            java.hadoopConfiguration().set(name.removeprefix("spark.hadoop."), value)
        java.sc().conf().set(name, value)


def child_session(runtime: SparkRuntime, settings: Mapping[str, str]) -> SparkSession:
    """Returns a new session for one query: separate views and settings, same SparkContext."""
    child = runtime.session.newSession() if runtime.connect is None else runtime.connect.clone()
    for name, value in settings.items():
        child.conf.set(name, value)
    return child


def slow_classes(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the slow classes that the SQL `texts` need."""
    known = tuple(texts)
    return tuple(name for name, needs in SLOW_CLASSES.items() if any(map(needs.search, known)))


def initialize_classes(gateway: Any, classes: Sequence[str]) -> None:
    """Starts a thread that initializes `classes` in the JVM of `gateway`."""
    if classes:
        threading.Thread(target=_initialize, args=(gateway, classes), name="slow-classes", daemon=True).start()


def _initialize(gateway: Any, classes: Sequence[str]) -> None:
    # the JVM may end first, or not have the class
    with suppress(*JVM_ERRORS):
        for name in classes:
            getattr(gateway.jvm, "java.lang.Class").forName(name)


class _OwnRecords(logging.Filter):
    """Drops records from sqlstream's threads while a session or a parser runs.

    These are the threads that start it, and all threads that start later. Threads of the program that already run
    keep their records, and so do all levels and handlers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._users = 0
        self._others: set[int | None] = set()
        self._null_handler = logging.NullHandler()

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether the record is from a thread of the program."""
        return record.thread in self._others

    def begin(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._others = {thread.ident for thread in threading.enumerate()}
                self._attach()
            self._others.discard(threading.get_ident())

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                for logger in _loggers():
                    logger.removeFilter(self)
                logging.getLogger().removeHandler(self._null_handler)

    def _attach(self) -> None:
        for logger in _loggers():
            logger.addFilter(self)
        if not logging.getLogger().handlers:
            # py4j reports a lost JVM to the root logger, and configures it if it has no handler
            logging.getLogger().addHandler(self._null_handler)


def _loggers() -> list[logging.Logger]:
    # PySpark must create its own loggers: a standard logger does not accept its arguments
    return [*map(PySparkLogger.getLogger, PYSPARK_LOGGERS), *map(logging.getLogger, PY4J_LOGGERS)]


_OWN_RECORDS = _OwnRecords()


@contextmanager
def quiet_pyspark() -> Iterator[None]:
    """Drops the log records of PySpark and py4j about sqlstream's calls while the body runs."""
    _OWN_RECORDS.begin()
    try:
        yield
    finally:
        _OWN_RECORDS.end()
