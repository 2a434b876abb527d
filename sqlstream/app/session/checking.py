"""Starts Spark for a command that starts no query of the project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from sqlstream.app.loading.load import Loaded
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.signals import StopRequestedError, StopSignals, stop_signals
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.numbers import plural
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.secrets import Secrets


def spark_for_check(
    loaded: Loaded, models: Sequence[CompiledModel], request: ProjectRequest, secrets: Secrets, purpose: str
) -> AbstractContextManager[tuple[SparkRuntime, StopSignals]]:
    """Returns `spark_for` a check. `purpose` is a verb for the notice."""
    notice = f"Starting Spark to {purpose} {plural(len(models), 'query', 'queries')}, without data"
    return spark_for(loaded, models, request, secrets, notice)


@contextmanager
def spark_for(
    loaded: Loaded, models: Sequence[CompiledModel], request: ProjectRequest, secrets: Secrets, notice: str
) -> Iterator[tuple[SparkRuntime, StopSignals]]:
    """Starts Spark with the connectors of `models`, and stops it at the end. `notice` says why.

    Raises: FindingsError if Spark cannot start; KeyboardInterrupt if the body finds that a stop was requested.
    """
    with stop_signals() as signals:
        try:
            ids = [model.unique_id for model in models]
            with spark_session(loaded, secrets, signals, ids, notify=request.notify, notice=notice) as runtime:
                yield runtime, signals
        except StopRequestedError as error:
            raise KeyboardInterrupt from error
