"""The metrics that a run exports, in Prometheus' conventions: base units, and `_total` for counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

RUN_LABELS = ("project", "target")
"""The labels of every metric."""

QUERY_LABELS = (*RUN_LABELS, "model")
SOURCE_LABELS = (*QUERY_LABELS, "source")

DURATION_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""The upper bounds of the histogram of batch durations, in seconds."""

_UNITS = {"_seconds": "s", "_bytes": "By"}


@dataclass(frozen=True)
class Metric:
    """A metric: its name without `sqlstream_`, its kind, its labels, and its description as a phrase."""

    short_name: str
    kind: Kind
    labels: tuple[str, ...]
    description: str

    @property
    def name(self) -> str:
        """The name in Prometheus, with `_total` for a counter."""
        return f"sqlstream_{self.short_name}" + ("_total" if self.kind == "counter" else "")

    @property
    def unit(self) -> str:
        """The unit in OpenTelemetry (UCUM): `s`, `By`, or `1`."""
        return next((unit for end, unit in _UNITS.items() if self.short_name.endswith(end)), "1")

    @property
    def otel_name(self) -> str:
        """The name in OpenTelemetry, which has the unit beside it: `sqlstream.batch_duration`."""
        end = next((end for end in _UNITS if self.short_name.endswith(end)), "")
        return f"sqlstream.{self.short_name.removesuffix(end)}"


def _run(name: str, kind: Kind, description: str, *labels: str) -> Metric:
    return Metric(name, kind, (*RUN_LABELS, *labels), description)


def _query(name: str, kind: Kind, description: str, *labels: str) -> Metric:
    return Metric(name, kind, (*QUERY_LABELS, *labels), description)


def _source(name: str, kind: Kind, description: str) -> Metric:
    return Metric(name, kind, SOURCE_LABELS, description)


BUILD_INFO = _run("build_info", "gauge", "Always 1; the labels have the versions.", "version", "spark_version")
RUN_START = _run("run_start_timestamp_seconds", "gauge", "When the run started, in Unix time.")
DROPPED_BATCHES = _run("observer_dropped_batches", "counter", "Batches dropped because observers could not keep up.")
QUERY_INFO = _query(
    "query_info", "gauge", "Always 1; the labels describe the query.", "kind", "sink", "format", "trigger"
)
STATUS = _query("query_status", "gauge", "1 for the current status of the query, 0 for the others.", "status")
SILENT = _query("query_silent", "gauge", "1 if the query runs but emits no rows, see `sqlstream status`.")
BATCHES = _query("batches", "counter", "Completed batches.")
ROWS_IN = _query("rows_in", "counter", "Rows that the sources of the query read.")
ROWS_OUT = _query("rows_out", "counter", "Rows that the query emitted.")
LATE_ROWS = _query("late_rows", "counter", "Rows that were dropped because they were behind the watermark.")
DROPPED_RECORDS = _query("dropped_records", "counter", "Corrupt records that sources with `on_corrupt: drop` dropped.")
RESTARTS = _query("restarts", "counter", "Restarts after a failure.")
FAILURES = _query("failures", "counter", "Failures, with and without a restart after them.")
INPUT_RATE = _query("input_rows_per_second", "gauge", "Rows per second that arrived before the last batch.")
PROCESSED_RATE = _query("processed_rows_per_second", "gauge", "Rows per second that the last batch processed.")
BATCH_DURATION = _query("batch_duration_seconds", "histogram", "Durations of batches.")
PART_SECONDS = _query(
    "batch_part_seconds", "counter", "Time in each part of the batches, with Spark's names of the parts.", "part"
)
LAST_BATCH_ID = _query("last_batch_id", "gauge", "The id of the last batch.")
LAST_BATCH = _query("last_batch_timestamp_seconds", "gauge", "When the last batch started, in Unix time.")
WATERMARK = _query("watermark_timestamp_seconds", "gauge", "The watermark of the last batch, in Unix time.")
NEWEST_EVENT = _query("newest_event_timestamp_seconds", "gauge", "The newest event time so far, in Unix time.")
WATERMARK_LAG = _query("watermark_lag_seconds", "gauge", "How far the watermark is behind the newest event time.")
ALERT_ACTIVE = _query(
    "alert_active", "gauge", "1 while the alert is open, 0 after it was resolved in this run.", "alert"
)
STATE_ROWS = _query("state_rows", "gauge", "Rows in the state of the query.")
STATE_BYTES = _query("state_memory_bytes", "gauge", "Memory of the state, as Spark reports it.")
SOURCE_ROWS = _source("source_rows", "counter", "Rows that the query read from the source.")
LAG_RECORDS = _source("source_lag_records", "gauge", "Records of Kafka that the query has not read yet.")
LAG_FILES = _source("source_lag_files", "gauge", "Files of a local folder that the query has not read yet.")
LAG_BYTES = _source("source_lag_bytes", "gauge", "Bytes of those files.")
LAG_VERSIONS = _source(
    "source_lag_versions", "gauge", "Versions of a local Delta table that the query has not read yet."
)

METRICS = tuple(value for value in list(vars().values()) if isinstance(value, Metric))
"""All metrics, in the order of the documentation."""
