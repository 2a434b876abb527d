"""The Spark session of a loaded project, and where its target stores."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.logs import PROJECT_LOG
from sqlstream.app.running.signals import StopSignals
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.files.paths import join
from sqlstream.spark.jvm.class_archive import use_options
from sqlstream.spark.jvm.java import find_java
from sqlstream.spark.jvm.session import SHORT_LIVED_JVM, SparkLaunch, SparkRuntime, start_spark, stop_spark
from sqlstream.spark.reading.python_code import check_python, ship_python
from sqlstream.spark.secrets import Secrets

spark_logger = logging.getLogger("sqlstream.spark")


def check_target(loaded: Loaded) -> None:
    """Raises: FindingsError where this version cannot start queries on the target."""
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


def storage_base(loaded: Loaded) -> str:
    """Returns the target's storage as an absolute path or URI."""
    project = loaded.compiled.project
    return join(str(project.root), project.target.storage)


def check_java(env: Mapping[str, str], signals: StopSignals) -> None:
    """Raises: FindingsError where there is no Java that Spark can use; StopAskedError."""
    java = find_java(env, start=False)
    signals.check()  # a signal to the whole group has also ended a Java that was asked for its version
    if isinstance(java, Finding):
        raise FindingsError([java])


def start_session(loaded: Loaded, secrets: Secrets, *, purpose: str, console_to_stderr: bool = False) -> SparkRuntime:
    """Returns a started Spark for the project's target; `purpose` is what its JVM is for, and console sinks print where
    `console_to_stderr` says. Raises: FindingsError.
    """
    warehouse = join(storage_base(loaded), "warehouse")
    launch = SparkLaunch(_app_name(loaded), warehouse, to_log(secrets), console_to_stderr, purpose)
    return _start(loaded, secrets, launch)


def start_brief_session(
    loaded: Loaded, secrets: Secrets, warehouse: str, classes: tuple[str, ...] = ()
) -> SparkRuntime:
    """Returns a started Spark for questions that are soon answered, whose folder of managed tables is `warehouse`;
    `classes` are initialized while Spark starts. Raises: FindingsError.
    """
    launch = SparkLaunch(
        _app_name(loaded),
        warehouse,
        to_log(secrets),
        console_to_stderr=True,  # stdout is for the answer: what resolves packages prints there
        purpose=SHORT_LIVED_JVM,
        classes=classes,
    )
    return _start(loaded, secrets, launch)


def to_log(secrets: Secrets) -> Callable[[str], None]:
    """Returns what logs a line of the JVM's log, without its secrets: a program may have handlers of its own."""
    return lambda line: spark_logger.info(secrets.redact(line))


def _start(loaded: Loaded, secrets: Secrets, launch: SparkLaunch) -> SparkRuntime:
    target = loaded.compiled.project.target
    missing = secrets.missing(target.spark, target.location)
    if missing:
        raise FindingsError(missing)
    PROJECT_LOG.take_other_threads()  # such as the one that reads what the JVM logs
    runtime = start_spark(target, secrets, replace(launch, java_options=use_options(os.environ)))
    ship_python(runtime.session, loaded.compiled.project.root)
    wrong = check_python(loaded.compiled)
    if wrong:
        stop_spark(runtime)
        raise FindingsError(wrong)
    return runtime


def _app_name(loaded: Loaded) -> str:
    return f"sqlstream {loaded.compiled.project.name}"
