"""The part of `compile --check` that needs Spark: starts a session, has it analyze every model, and stops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlstream.app.loading.load import Loaded
from sqlstream.app.running.jars import session_connectors
from sqlstream.app.running.session import brief_session, check_java, check_target
from sqlstream.app.running.signals import StopSignals
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.refusals import SparkRefusal
from sqlstream.report.numbers import plural
from sqlstream.spark.running.check import check_with_spark
from sqlstream.spark.secrets import Secrets


def ask_session(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    env: Mapping[str, str],
    notify: Callable[[str], None],
    signals: StopSignals,
) -> tuple[str, tuple[SparkRefusal, ...]]:
    """Returns Spark's version, and what Spark refuses in `models` and everything upstream.

    Raises: FindingsError if Spark cannot start; StopRequestedError.
    """
    check_target(loaded)
    check_java(env, signals)
    secrets = Secrets(env)
    connectors = session_connectors(loaded, secrets, env, notify, [model.unique_id for model in models])
    notify(f"Starting Spark to check {plural(len(models), 'model')}, without data")
    with brief_session(loaded, secrets, connectors) as runtime:  # its warehouse is not in the target's storage
        signals.install()
        return runtime.version, check_with_spark(loaded.compiled, models, runtime, secrets, signals.check)
