"""The Spark session of a loaded project."""

from __future__ import annotations

import logging
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.logs import PROJECT_LOG
from sqlstream.app.request import ProjectRequest, silent
from sqlstream.app.session.project_jars import check_server, session_connectors
from sqlstream.app.session.signals import StopRequestedError, StopSignals, stop_signals
from sqlstream.app.session.start_driver import SUBMITTED
from sqlstream.app.session.target_storage import storage_base
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.numbers import plural
from sqlstream.project.configuration.target import Target
from sqlstream.project.files.paths import join
from sqlstream.spark.jvm.class_archive import use_options
from sqlstream.spark.jvm.launch import AVRO_LIMITS, executor_limits
from sqlstream.spark.jvm.pyspark_package import check_start, require_pyspark
from sqlstream.spark.jvm.session import SHORT_LIVED_JVM, SparkLaunch, SparkRuntime, start_spark, stop_spark
from sqlstream.spark.reading.python_code import check_python, ship_python
from sqlstream.spark.secrets import Secrets

spark_logger = logging.getLogger("sqlstream.spark")


@contextmanager
def spark_session(
    loaded: Loaded,
    secrets: Secrets,
    signals: StopSignals | None = None,
    nodes: Sequence[str] | None = None,
    *,
    notify: Callable[[str], None] = silent,
    notice: str = "",
    purpose: str = "",
    console_to_stderr: bool = True,
    classes: tuple[str, ...] = (),
    over_connect: bool = False,
    on_this_machine: bool = False,
    patience: float = math.inf,
) -> Iterator[SparkRuntime]:
    """Starts Spark with the connectors of `nodes` (unique ids, also of sources; default: all models), and stops it at
    the end. `notice` is passed to `notify` before the start.

    `purpose` is that of the JVM of a run, whose managed tables are in the target's storage. By default the task is
    short, and its tables are in a temporary folder. With `console_to_stderr`, console sinks print to stderr: stdout is
    for the result of the command. `classes` are initialized while Spark starts. With `over_connect`, the target can
    have `remote`: the command then gets sessions on a Spark Connect server, which has Java and managed tables. With
    `on_this_machine`, a target with a cluster as master starts here, with its settings. A wait for YARN ends after
    `patience` seconds. Raises: FindingsError, StopRequestedError.
    """
    env, project = loaded.compiled.options.env, loaded.compiled.project
    is_submitted = SUBMITTED in env
    if project.target.remote is not None and not over_connect:
        raise FindingsError([_needs_jvm(project.target)])
    check_installed(env, signals, starts=project.target.remote is None and not is_submitted)
    connectors = session_connectors(loaded, secrets, env, notify, nodes, fetches=not is_submitted)
    if notice:
        notify(notice)
    with ExitStack() as stack:
        if purpose:
            warehouse = join(storage_base(loaded), "warehouse")
        else:
            made = tempfile.TemporaryDirectory(prefix="sqlstream-", ignore_cleanup_errors=True)
            # the scheme, because other paths can be on HDFS by default
            warehouse = f"file:{stack.enter_context(made)}"
        launch = SparkLaunch(
            f"sqlstream {project.name}",
            warehouse,
            line_logger(secrets),
            console_to_stderr,
            purpose or SHORT_LIVED_JVM,
            classes=classes,
            connectors=connectors,
            is_submitted=is_submitted,
            on_this_machine=on_this_machine,
            notify=notify,
            check=signals.check if signals is not None else lambda: None,
            patience=patience,
        )
        runtime = _start(loaded, secrets, launch)
        stack.callback(stop_spark, runtime)
        if runtime.connect is not None:
            check_server(loaded, runtime.session, nodes)
        if signals is not None:
            signals.install()  # PySpark has installed its own handler
        yield runtime


def check_installed(env: Mapping[str, str], signals: StopSignals | None, *, starts: bool) -> None:
    """Checks the PySpark of this machine, and also its Spark and Java if Spark `starts` here.

    Raises: FindingsError if sqlstream cannot use them; StopRequestedError.
    """
    if not starts:
        require_pyspark()
        return
    wrong = check_start(env)
    if signals is not None:
        signals.check()  # a signal to the process group also ends the `java -version` process
    if wrong:
        raise FindingsError(wrong)


def _needs_jvm(target: Target) -> Finding:
    return Finding(
        "unsupported-target",
        f"this command cannot use target `{target.name}`, which has `remote`",
        "it works with files and plans in the Java process of Spark, and over Spark Connect there is none here",
        "use another target with the same storage and a master, such as local[*]: --target NAME",
        target.location_of("remote"),
    )


def line_logger(secrets: Secrets) -> Callable[[str], None]:
    """Returns a function that logs a line of the JVM's log, with secrets redacted for any handler."""
    return lambda line: spark_logger.info(secrets.redact(line))


def _start(loaded: Loaded, secrets: Secrets, launch: SparkLaunch) -> SparkRuntime:
    target = loaded.compiled.project.target
    missing = secrets.missing(target.spark, target.location)
    if target.remote is not None:
        missing += secrets.missing({"remote": target.remote}, target.location_of("remote"))
    if missing:
        raise FindingsError(missing)
    PROJECT_LOG.adopt_other_threads()  # such as the thread that reads the JVM's log
    java_options = "" if launch.is_submitted else use_options(os.environ)
    launch = with_avro_limits(loaded, replace(launch, java_options=java_options))
    runtime = start_spark(target, secrets, launch)
    ship_python(runtime.session, loaded.compiled.project.root)
    wrong = check_python(loaded.compiled)
    if wrong:
        stop_spark(runtime)
        raise FindingsError(wrong)
    return runtime


def with_avro_limits(loaded: Loaded, launch: SparkLaunch) -> SparkLaunch:
    """Returns `launch` with the options with which Avro refuses damaged messages, if a source has any in Avro."""
    project = loaded.compiled.project
    if not any(table.messages is not None and table.messages.has_avro for table in project.sources):
        return launch
    options = f"{launch.java_options} {AVRO_LIMITS}".strip()
    return replace(launch, java_options=options, executor_options=executor_limits(project.target.spark))


def starting_text(loaded: Loaded) -> str:
    """Returns the first words of the notice before `spark_session`."""
    return "Starting Spark" if loaded.compiled.project.target.remote is None else "Connecting to Spark"


def spark_for_check(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    request: ProjectRequest,
    secrets: Secrets,
    purpose: str,
    reason: str | None = None,
) -> AbstractContextManager[tuple[SparkRuntime, StopSignals]]:
    """Returns `spark_for` a check, also over Spark Connect. `purpose` is a verb for the notice. `reason` says why the
    command starts Spark although the user did not ask for it; then Spark starts on this machine, not on a cluster.
    """
    notice = f"{starting_text(loaded)} to {purpose} {plural(len(models), 'query', 'queries')}, without data"
    if reason is None:
        return spark_for(loaded, models, request, secrets, notice, over_connect=True)
    request.notify(f"{notice}, because {reason}")  # also before the finding that there is no Java
    return spark_for(loaded, models, request, secrets, "", over_connect=True, on_this_machine=True)


@contextmanager
def spark_for(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    request: ProjectRequest,
    secrets: Secrets,
    notice: str,
    *,
    over_connect: bool = False,
    on_this_machine: bool = False,
) -> Iterator[tuple[SparkRuntime, StopSignals]]:
    """Starts Spark with the connectors of `models`, and stops it at the end. `notice` says why. `over_connect` and
    `on_this_machine` are as in `spark_session`.

    Raises: FindingsError if Spark cannot start; KeyboardInterrupt if the body finds that a stop was requested.
    """
    with stop_signals() as signals:
        try:
            runtime = spark_session(
                loaded,
                secrets,
                signals,
                [model.unique_id for model in models],
                notify=request.notify,
                notice=notice,
                over_connect=over_connect,
                on_this_machine=on_this_machine,
            )
            with runtime as started:
                yield started, signals
        except StopRequestedError as error:
            raise KeyboardInterrupt from error
