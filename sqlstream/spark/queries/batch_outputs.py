"""The outputs of a query whose micro-batches sqlstream writes itself, and over Spark Connect the function that does so
in a Python process which the server starts for the query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.origins import ORIGIN
from sqlstream.compiler.rewrite.data_tests import ERRORS
from sqlstream.project.databases.jdbc_options import dialect_of
from sqlstream.project.databases.logins import PYTHON_DRIVERS
from sqlstream.project.files.paths import escaped
from sqlstream.project.secret_text import OptionValue
from sqlstream.spark.reading.python_code import add_archive, shipped_archive
from sqlstream.spark.secrets import Secrets, secret_names
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import BatchWriter, SinkTarget, column_of
from sqlstream.spark.writing.outputs import checked_rows
from sqlstream.spark.writing.quarantine import QuarantineCount, QuarantineWriter, quarantine_target
from sqlstream.spark.writing.shared import FileBatchWriter, SharedWriter, writer_of
from sqlstream.spark.writing.writers import batch_writer
from sqlstream.version import __version__


@dataclass(frozen=True)
class BatchOutputs:
    """The outputs of the query of `model`, each with its table, absolute path or URI if it has one, and its quarantine.

    `quarantine` is the model for the rows in quarantine, None without one; `released` is the folder of Parquet files
    with rows of it that the first batch writes to the outputs, too.
    """

    model: CompiledModel
    paths: tuple[tuple[Output, str | None], ...]
    checkpoint: str
    quarantine: CompiledModel | None = None
    quarantine_path: str | None = None
    released: str | None = None

    @property
    def _all(self) -> list[Output]:
        beside = () if self.quarantine is None else self.quarantine.outputs
        return [*(output for output, _ in self.paths), *beside]

    @property
    def options(self) -> list[Mapping[str, OptionValue]]:
        """The options of all sinks to which a batch goes."""
        return [output.options for output in self._all]

    def drivers(self, secrets: Secrets) -> frozenset[str]:
        """Returns the modules of the drivers in Python that a process without a JVM needs for the sinks' databases."""
        dialects = (dialect_of(output.format, secrets.resolve_all(output.options)) for output in self._all)
        return frozenset(PYTHON_DRIVERS[each.name] for each in dialects if each and each.name in PYTHON_DRIVERS)

    def writer(self, frame: DataFrame, secrets: Secrets) -> BatchWriter | None:
        """Returns the writer of the query's batches, None if Spark's own writer serves it. `frame` has the columns of a
        batch, and the session that writes them. Raises: FindingsError, Spark's errors.
        """
        if self.quarantine is None:
            return self._writer(frame, secrets)
        rows = frame.drop(ERRORS, ORIGIN)
        writer = self._writer(rows, secrets) or writer_of(self.target(rows, secrets), FileBatchWriter)
        place = quarantine_target(self.quarantine, self.quarantine_path, frame, secrets)
        released = None
        if self.released is not None:
            found = frame.sparkSession.read.parquet(escaped(self.released))
            released = found.select(*map(column_of, rows.columns))
        count = QuarantineCount(frame.sparkSession, self.checkpoint)
        return QuarantineWriter(writer, partial(checked_rows, self.model, self.paths[0][0]), place, count, released)

    def target(self, frame: DataFrame, secrets: Secrets) -> SinkTarget:
        """Returns the target of the first output."""
        output, path = self.paths[0]
        return SinkTarget(self.model, output, path, frame, secrets)

    def _writer(self, frame: DataFrame, secrets: Secrets) -> BatchWriter | None:
        first = self.target(frame, secrets)
        if len(self.paths) == 1:
            return batch_writer(first)
        return SharedWriter([replace(first, output=output, path=path) for output, path in self.paths])


class ServerFunction:
    """Writes the batches of a query to `outputs` in a Python process of a Spark Connect server, where sqlstream must be
    installed in the version of this process. It gets the project's python/ and the values of the sinks' secrets.
    """

    def __init__(self, outputs: BatchOutputs, secrets: Secrets) -> None:
        self._outputs = outputs
        self._secrets = secrets.only(name for each in outputs.options for name in secret_names(each.values()))
        self._python = shipped_archive()
        self._session = ""
        self._writer: BatchWriter | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # a server with another version of sqlstream must not try to read the content
        content = cloudpickle.dumps((self._outputs, self._secrets))  # type: ignore[no-untyped-call]
        return server_function, (__version__, self._python, content)

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Writes the batch `number`. Raises: any error, which ends the query."""
        session = str(rows.sparkSession.session_id)  # type: ignore[attr-defined]
        if self._writer is None or session != self._session:
            writer = self._outputs.writer(rows, self._secrets)
            if writer is None:
                raise ValueError("Spark's own writer should write this query")
            writer.open()
            self._writer, self._session = writer, session
        storage, checkpoint = storage_for(self._outputs.checkpoint, rows.sparkSession)
        query_id = json.loads(storage.read_text(f"{checkpoint}/metadata") or "{}")["id"]
        self._writer.write(rows, self._outputs.target(rows, self._secrets).batch(number, query_id))


def server_function(version: str, python: bytes | None, content: bytes) -> ServerFunction:
    """Returns the function that a process with the given version of sqlstream has sent. Raises: RuntimeError if this is
    another version; ModuleNotFoundError without the driver of a database.
    """
    if version != __version__:
        raise RuntimeError(f"{OTHER_VERSION}: it has {__version__}, and this run has {version}")
    if python is not None:
        add_archive(python)
    outputs, secrets = cloudpickle.loads(content)
    for driver in outputs.drivers(secrets):
        import_module(driver)
    return ServerFunction(outputs, secrets)


OTHER_VERSION = "the Spark Connect server has another version of sqlstream"
"""The start of the error for a server with another version."""
