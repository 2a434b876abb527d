"""The time of the newest data of a source, found with Spark: from a column, files, a log of commits, or offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, expr, unix_micros
from pyspark.sql.functions import max as newest_of
from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.configuration.freshness import Freshness
from sqlstream.project.files.paths import join
from sqlstream.project.formats.file_options import CHANGE_FEED
from sqlstream.project.formats.formats import format_of
from sqlstream.project.unknown_freshness import only_streams, unknown, what_is_unknown
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.endpoints import UnreachableError, check_brokers, source_endpoint
from sqlstream.spark.reading.infer import list_files
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.kafka_ends import newest_record_ms
from sqlstream.spark.reading.preview import as_batch, open_batch
from sqlstream.spark.reading.sources import delta_detail
from sqlstream.spark.storage.storage import storage_for
from sqlstream.state.sources.source_files import last_rows_added

TIMES = (TimestampType, TimestampNTZType, DateType, StringType)
"""The types that become a time. A number could count seconds, milliseconds or days."""


@dataclass(frozen=True)
class NewestData:
    """Finds the newest data of the sources of one session."""

    inputs: NodeReader

    def micros(self, table: SourceTable, freshness: Freshness) -> int | None:
        """Returns the time of the newest data of `table` in microseconds since 1970, None without data.

        Raises: FindingsError.
        """
        missing = self.inputs.readers.missing_secrets(table)
        if missing:
            raise FindingsError(missing)
        try:
            endpoint = source_endpoint(table, self.inputs.readers.secrets)
            check_brokers([endpoint] if endpoint.addresses else [])
            if table.loaded_at_field is not None:
                return self._newest_row(table, table.loaded_at_field, freshness.filter)
            return self._newest_change(table)
        except UnreachableError as error:
            fix = "start the broker, or fix the address"
            raise FindingsError([unknown(table, str(error), fix, error.endpoint.location)]) from error
        except SPARK_ERRORS as error:
            raise FindingsError([self._failure(table, error, table.location)]) from error
        except (OSError, ValueError) as error:  # a log that cannot be read
            raise FindingsError([unknown(table, str(error))]) from error

    def _newest_row(self, table: SourceTable, field: str, condition: str | None) -> int | None:
        frame = open_batch(self.inputs, table)
        if frame is None and table.reads_changes:  # a static table has no changes without a start, but it has rows
            feed = {name.lower() for name in CHANGE_FEED}
            options = {name: value for name, value in table.options.items() if name.lower() not in feed}
            frame = open_batch(self.inputs, table.model_copy(update={"options": options, "spark_schema": None}))
        if frame is None:
            raise FindingsError([only_streams(table)])
        rows, place = frame, table.locations["loaded_at_field"]
        if condition is not None:
            rows = self._analysed(table, table.locations["freshness.filter"], lambda: frame.where(expr(condition)))
        times = self._analysed(table, place, lambda: rows.select(expr(field).alias("at")))
        kind = times.schema["at"].dataType
        if not isinstance(kind, TIMES):
            why = f"`{field}` is of type {kind.simpleString()}, which is not a time"
            fix = "convert it, for example with timestamp_millis(...) or to_timestamp(...)"
            raise FindingsError([unknown(table, why, fix, place)])
        try:
            return _maximum(times, col("at").cast("timestamp"))
        except SPARK_ERRORS as error:
            raise FindingsError([self._failure(table, error, place)]) from error

    def _newest_change(self, table: SourceTable) -> int | None:
        """Returns the time that the source itself records. Raises: Spark's errors, OSError, FindingsError."""
        readers = self.inputs.readers
        if table.format == "kafka":
            return _micros(newest_record_ms(readers.session, readers.secrets.resolve_all(table.options)))
        if format_of(table.format).is_file:
            whole = as_batch(table).model_copy(
                update={"spark_schema": None, "on_corrupt": None, "schema_changes": None}
            )
            listed = list_files(self.inputs, whole)
            return _maximum(listed, col("modificationTime"))
        if table.format == "iceberg":
            return _maximum(self._snapshots(table).where("operation in ('append', 'overwrite')"), col("committed_at"))
        files, folder = storage_for(self._delta_folder(table), readers.session)
        return _micros(last_rows_added(files, folder, changes=table.reads_changes))

    def _snapshots(self, table: SourceTable) -> DataFrame:
        """Returns the snapshots of a table of Iceberg (https://iceberg.apache.org/docs/latest/spark-queries/)."""
        session = self.inputs.readers.session
        if table.table is not None:
            return session.table(f"{table.table}.snapshots")
        return session.read.format("iceberg").load(f"{self._path(table)}#snapshots")

    def _delta_folder(self, table: SourceTable) -> str:
        if table.table is None:
            return self._path(table)
        return str(delta_detail(self.inputs.readers.session, table.table)["location"])

    def _path(self, table: SourceTable) -> str:
        return join(str(self.inputs.readers.root), table.path or "")

    def _analysed(self, table: SourceTable, place: Location, analyse: Callable[[], DataFrame]) -> DataFrame:
        """Returns the result of `analyse`. Raises: FindingsError, at `place`."""
        try:
            return analyse()
        except SPARK_ERRORS as error:
            raise FindingsError([self._failure(table, error, place)]) from error

    def _failure(self, table: SourceTable, error: Exception, location: Location) -> Finding:
        return error_finding(
            error,
            code="freshness-unknown",
            what=what_is_unknown(table),
            place=Place(location),
            secrets=self.inputs.readers.secrets,
            fix="fix `loaded_at_field` or `filter`, or the declaration of the source",
        )


def _maximum(frame: DataFrame, time: Column) -> int | None:
    row = frame.agg(unix_micros(newest_of(time)).alias("newest")).first()
    newest = None if row is None else row["newest"]
    return None if newest is None else int(newest)


def _micros(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000
