"""The part of a check that needs Spark: a session that is started, asked about every model, and stopped."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence

from sqlstream.app.loading.load import Loaded
from sqlstream.app.running.session import check_java, check_target, start_brief_session
from sqlstream.app.running.signals import StopSignals
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.refusals import SparkRefusal
from sqlstream.report.numbers import plural
from sqlstream.spark.jvm.session import stop_spark
from sqlstream.spark.running.check import ask_spark
from sqlstream.spark.secrets import Secrets


def ask_session(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    env: Mapping[str, str],
    notify: Callable[[str], None],
    signals: StopSignals,
) -> tuple[str, tuple[SparkRefusal, ...]]:
    """Returns the version of the Spark that was started, and what it refuses of `models` and all that they read.

    Raises: FindingsError where Spark cannot be started; StopAskedError.
    """
    check_target(loaded)
    check_java(env, signals)
    secrets = Secrets(env)
    notify(f"Starting Spark to check {plural(len(models), 'model')}, without data")
    # Spark makes the folder of managed tables when it starts, and a check leaves nothing in the target's storage
    with tempfile.TemporaryDirectory(prefix="sqlstream-check-") as warehouse:
        runtime = start_brief_session(loaded, secrets, warehouse)
        try:
            signals.install()
            return runtime.version, ask_spark(loaded.compiled, models, runtime, secrets, signals.check)
        finally:
            stop_spark(runtime)
