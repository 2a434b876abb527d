"""The metrics that a run exports, in Prometheus' conventions: base units, and `_total` for counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlstream.figures import FIGURES, Figure

Kind = Literal["counter", "gauge", "histogram"]

RUN_LABELS = ("project", "target")
"""The labels of every metric."""

QUERY_LABELS = (*RUN_LABELS, "model")
SOURCE_LABELS = (*QUERY_LABELS, "source")

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
FAILURES = _query("failures", "counter", "Failures, with and without a restart after them.")
BATCH_DURATION = _query("batch_duration_seconds", "histogram", "Durations of batches.")
PART_SECONDS = _query(
    "batch_part_seconds", "counter", "Time in each part of the batches, with Spark's names of the parts.", "part"
)
LAST_BATCH_ID = _query("last_batch_id", "gauge", "The id of the last batch.")
LAST_BATCH = _query("last_batch_timestamp_seconds", "gauge", "When the last batch started, in Unix time.")
NEWEST_EVENT = _query("newest_event_timestamp_seconds", "gauge", "The newest event time so far, in Unix time.")
ALERT_ACTIVE = _query(
    "alert_active", "gauge", "1 while the alert is open, 0 after it was resolved in this run.", "alert"
)
DATA_TEST_ROWS = _query(
    "data_test_rows", "counter", "Rows that passed or failed the data test.", "check_name", "result"
)
SOURCE_ROWS = _source("source_rows", "counter", "Rows that the query read from the source.")
LAG_RECORDS = _source("source_lag_records", "gauge", "Records of Kafka that the query has not read yet.")
LAG_FILES = _source("source_lag_files", "gauge", "Files of a local folder that the query has not read yet.")
LAG_BYTES = _source("source_lag_bytes", "gauge", "Bytes of those files.")
LAG_VERSIONS = _source(
    "source_lag_versions", "gauge", "Versions of a local Delta table that the query has not read yet."
)


def _of_figure(figure: Figure) -> Metric:
    text = figure.text.removesuffix(".") + ", in Unix time." if figure.type == "timestamp" else figure.text
    return _query(figure.metric or figure.name, "counter" if figure.aggregate == "sum" else "gauge", text)


OF_FIGURES = {figure: _of_figure(figure) for figure in FIGURES if figure.metric is not None}
"""The metrics of figures."""

METRICS = (*(each for each in list(vars().values()) if isinstance(each, Metric)), *OF_FIGURES.values())
"""All metrics, in the order of the documentation."""
