"""The progress of queries with Spark, which reads remote storage and asks the brokers of Kafka sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sqlstream.app.loading.load import Loaded
from sqlstream.app.observe.stored_journal import copy_stored_logs, stored_logs
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.session import spark_for_check
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_base, storage_location
from sqlstream.app.status.lags import LagUnknownError, ProgressReader, unreadable
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.reading.endpoints import UnreachableError, check_brokers, endpoints_of
from sqlstream.spark.reading.kafka_ends import first_and_end_offsets
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.storage import storage_for, storage_problems
from sqlstream.state.layout import query_root
from sqlstream.state.sources.lag import Lag, PartitionOffsets, QueryProgress, record_lag


def progress_with_spark(
    loaded: Loaded, models: Sequence[CompiledModel], request: ProjectRequest, reason: str | None = None
) -> tuple[tuple[QueryProgress, ...], Mapping[str, float]]:
    """Returns the progress of the queries of `models`; those that cannot be read have a `problem`. Also brings the
    project's copy of the journals of submitted runs up to date, and returns when these were alive. `reason` is as in
    `spark_for_check`.

    Raises: FindingsError if Spark cannot start; KeyboardInterrupt after a signal.
    """
    secrets = Secrets(request.env)
    with spark_for_check(loaded, models, request, secrets, "check", reason) as (runtime, signals):
        project, folder = loaded.compiled.project, stored_logs(storage_base(loaded))
        signs: Mapping[str, float] = {}
        with suppress(OSError, *SPARK_ERRORS):  # each query then has a problem
            signs = copy_stored_logs(*storage_for(folder, runtime.session), project.root, project.target.name)
        return tuple(_read(loaded, model, runtime, secrets, signals) for model in models), signs


def _read(
    loaded: Loaded, model: CompiledModel, runtime: SparkRuntime, secrets: Secrets, signals: StopSignals
) -> QueryProgress:
    signals.check()
    storage = storage_base(loaded)
    kafka = Brokers(loaded, runtime, secrets)
    reader = ProgressReader(loaded, storage, lambda path: storage_for(path, runtime.session), kafka.lag)
    root = query_root(storage, model.query_id, model.config.checkpoint)
    try:
        with storage_problems(root, storage_location(loaded, model), secrets):
            return reader.read(model)
    except FindingsError as error:
        return unreadable(model, root, f"{error.findings[0].message}: {error.findings[0].why}")


@dataclass(frozen=True)
class Brokers:
    """Asks the brokers of Kafka sources."""

    loaded: Loaded
    runtime: SparkRuntime
    secrets: Secrets

    def lag(self, model: CompiledModel, table: SourceTable, offset: PartitionOffsets) -> Lag:
        """Returns what `model` has not read of `table` after `offset`. Raises: LagUnknownError."""
        if self.runtime.connect is not None:
            raise LagUnknownError("over Spark Connect, sqlstream cannot ask brokers")
        missing = self.secrets.missing(table.options, table.location)
        if missing:
            raise LagUnknownError(missing[0].message)
        endpoints = endpoints_of(self.loaded.compiled, model, self.secrets)
        try:
            check_brokers(endpoint for endpoint in endpoints if endpoint.what == table.described)
            options = self.secrets.resolve_all(table.options)
            return record_lag(offset, *first_and_end_offsets(self.runtime.session, options, offset))
        except UnreachableError as error:
            raise LagUnknownError(f"no broker responds: {error}") from error
        except SPARK_ERRORS as error:
            raise LagUnknownError(self.secrets.redact(read_error(error).message)) from error
