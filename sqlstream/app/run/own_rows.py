"""Writes what runs say about themselves, metrics and alerts, to sinks of the project."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from pyspark.sql import DataFrame

from sqlstream.app.alerts.payloads import ALERTS_SCHEMA
from sqlstream.app.loading.load import Loaded
from sqlstream.app.observe.metrics_sink import METRICS_SCHEMA
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.target_storage import versioned_output
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, set_pool
from sqlstream.spark.jvm.session import SparkRuntime, child_session
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.micro_batches import BatchWriter, MicroBatch, SinkTarget
from sqlstream.spark.writing.shared import refuse_logged_folder, writer_of


@dataclass(frozen=True)
class OwnRows:
    """What the rows are: `metrics` or `alerts`, and their columns in Spark's DDL."""

    name: str
    schema: str

    @property
    def code(self) -> str:
        """The code of findings about their sink."""
        return f"{self.name}-sink"


class OwnRowsWriter:
    """Adds `rows` to the sink of `model`, whose path or table is `path`. Only one thread can use it."""

    def __init__(
        self, rows: OwnRows, runtime: SparkRuntime, model: CompiledModel, path: str | None, secrets: Secrets
    ) -> None:
        self._rows = rows
        self._runtime, self._model, self._path, self._secrets = runtime, model, path, secrets
        self._query_id = uuid4().hex
        self._target: SinkTarget | None = None
        self._writer: BatchWriter | None = None

    def write(self, number: int, rows: Sequence[tuple[object, ...]]) -> None:
        """Writes the batch `number`. After an error, call it again with the same number and rows: databases and tables
        of Delta Lake and Iceberg then ignore what they have.

        Raises: FindingsError, errors of databases.
        """
        try:
            self._write(number, rows)
        except SPARK_ERRORS as error:
            raise FindingsError([self._failed(error)]) from error

    def _write(self, number: int, rows: Sequence[tuple[object, ...]]) -> None:
        target = self._target = self._target or self._open()
        if self._writer is None:
            writer = writer_of(target, partial(_FolderWriter, self._rows))
            writer.open()
            self._writer = writer
        set_pool(target.frame.sparkSession, self._model.name)
        frame = target.frame.sparkSession.createDataFrame(list(rows), self._rows.schema, verifySchema=False)
        # one small file for each batch, not one for each core
        self._writer.write(frame.coalesce(1), target.batch(number, self._query_id))

    def _failed(self, error: BaseException) -> Finding:
        what = f"{self._rows.name} cannot be written to sink `{self._model.outputs[0].sink}`"
        place = Place(self._model.location_of("sink"))
        return error_finding(error, code=self._rows.code, what=what, place=place, secrets=self._secrets)

    def _open(self) -> SinkTarget:
        session = child_session(self._runtime, {})
        frame = session.createDataFrame([], self._rows.schema)
        return SinkTarget(self._model, self._model.outputs[0], self._path, frame, self._secrets)


class _FolderWriter:
    """Adds files to a folder, without the log that a streaming query keeps there: several runs can add to it."""

    def __init__(self, rows: OwnRows, target: SinkTarget, folder: str) -> None:
        self._rows = rows
        self._target, self._folder = target, folder

    def open(self) -> None:
        """Checks that no streaming query writes to the folder. Raises: FindingsError."""
        refuse_logged_folder(self._target, self._folder, self._rows.code, self._rows.name)

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Adds the rows, in one more file for each partition. Raises: Spark's errors."""
        output = self._target.output
        writer = rows.write.format(output.format).options(**batch.options).mode("append")
        (writer.partitionBy(*output.partition_by) if output.partition_by else writer).save(self._folder)


METRICS_ROWS, ALERT_ROWS = OwnRows("metrics", METRICS_SCHEMA), OwnRows("alerts", ALERTS_SCHEMA)

Write = Callable[[int, Sequence[tuple[object, ...]]], None]
"""Writes the batch with a number. The same number again is the same batch."""


def write_own_rows(
    loaded: Loaded, model: CompiledModel | None, rows: OwnRows, runtime: SparkRuntime, secrets: Secrets
) -> Write:
    """Returns the function that writes rows of metrics or alerts to their sink."""
    if model is None:
        return lambda _number, _rows: None
    path = versioned_output(loaded, model.outputs[0], version=1, published=())
    return OwnRowsWriter(rows, runtime, model, path, secrets).write


@contextmanager
def writing_alerts(loaded: Loaded, secrets: Secrets) -> Iterator[Write]:
    """Starts Spark for the body, which can write rows of alerts to their sink. Raises: FindingsError."""
    nodes = [model.unique_id for model in filter(None, [loaded.compiled.alerts])]
    with spark_session(loaded, secrets, nodes=nodes) as runtime:
        yield write_own_rows(loaded, loaded.compiled.alerts, ALERT_ROWS, runtime, secrets)
