"""The Spark session of a loaded project."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.logs import PROJECT_LOG
from sqlstream.app.running.places import storage_base
from sqlstream.app.running.signals import StopSignals
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.files.paths import join
from sqlstream.spark.jvm.class_archive import use_options
from sqlstream.spark.jvm.java import find_java
from sqlstream.spark.jvm.launch import AVRO_LIMITS, executor_limits
from sqlstream.spark.jvm.session import (
    NO_CONNECTORS,
    SHORT_LIVED_JVM,
    SessionConnectors,
    SparkLaunch,
    SparkRuntime,
    start_spark,
    stop_spark,
)
from sqlstream.spark.reading.python_code import check_python, ship_python
from sqlstream.spark.secrets import Secrets

spark_logger = logging.getLogger("sqlstream.spark")


def check_target(loaded: Loaded) -> None:
    """Raises: FindingsError if sqlstream cannot start queries on the target."""
    target = loaded.compiled.project.target
    if target.remote is None:
        return
    problem = Finding(
        "unsupported-target",
        f"target `{target.name}` uses Spark Connect, and sqlstream cannot start queries there",
        f"remote: {target.remote} does not give a run the access to the Spark process that it needs",
        "use a master for the target, such as local[*] or spark://host:7077",
        target.location,
    )
    raise FindingsError([problem])


def check_java(env: Mapping[str, str], signals: StopSignals) -> None:
    """Raises: FindingsError if there is no Java that Spark can use; StopRequestedError."""
    java = find_java(env, start=False)
    signals.check()  # a signal to the process group also ends the `java -version` process
    if isinstance(java, Finding):
        raise FindingsError([java])


def start_session(
    loaded: Loaded,
    secrets: Secrets,
    *,
    purpose: str,
    connectors: SessionConnectors = NO_CONNECTORS,
    console_to_stderr: bool = False,
) -> SparkRuntime:
    """Starts Spark for the project's target. `purpose` decides the options of the JVM. Console sinks print to stdout,
    or to stderr with `console_to_stderr`. `connectors` are those of `session_connectors`. Raises: FindingsError.
    """
    warehouse = join(storage_base(loaded), "warehouse")
    launch = SparkLaunch(
        _app_name(loaded), warehouse, line_logger(secrets), console_to_stderr, purpose, connectors=connectors
    )
    return _start(loaded, secrets, launch)


@contextmanager
def brief_session(
    loaded: Loaded,
    secrets: Secrets,
    connectors: SessionConnectors = NO_CONNECTORS,
    classes: tuple[str, ...] = (),
) -> Iterator[SparkRuntime]:
    """Starts Spark for a short task, with a temporary folder for managed tables, and stops it at the end.
    `connectors` are those of `session_connectors`. `classes` are initialized while Spark starts. Raises: FindingsError.
    """
    with tempfile.TemporaryDirectory(prefix="sqlstream-", ignore_cleanup_errors=True) as warehouse:
        launch = SparkLaunch(
            _app_name(loaded),
            warehouse,
            line_logger(secrets),
            console_to_stderr=True,  # stdout is for the command's result, and Ivy would print there
            purpose=SHORT_LIVED_JVM,
            classes=classes,
            connectors=connectors,
        )
        runtime = _start(loaded, secrets, launch)
        try:
            yield runtime
        finally:
            stop_spark(runtime)


def line_logger(secrets: Secrets) -> Callable[[str], None]:
    """Returns a function that logs a line of the JVM's log, with secrets redacted for any handler."""
    return lambda line: spark_logger.info(secrets.redact(line))


def _start(loaded: Loaded, secrets: Secrets, launch: SparkLaunch) -> SparkRuntime:
    target = loaded.compiled.project.target
    missing = secrets.missing(target.spark, target.location)
    if missing:
        raise FindingsError(missing)
    PROJECT_LOG.adopt_other_threads()  # such as the thread that reads the JVM's log
    java_options = use_options(os.environ)
    if any(table.messages is not None and table.messages.has_avro for table in loaded.compiled.project.sources):
        java_options = f"{java_options} {AVRO_LIMITS}".strip()
        launch = replace(launch, executor_options=executor_limits(target.spark))
    runtime = start_spark(target, secrets, replace(launch, java_options=java_options))
    ship_python(runtime.session, loaded.compiled.project.root)
    wrong = check_python(loaded.compiled)
    if wrong:
        stop_spark(runtime)
        raise FindingsError(wrong)
    return runtime


def _app_name(loaded: Loaded) -> str:
    return f"sqlstream {loaded.compiled.project.name}"
