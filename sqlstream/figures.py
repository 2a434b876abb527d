"""The figures of a batch: the one table from which the columns of metrics sinks and of the history, the metrics of
Prometheus and OpenTelemetry, and their documentation are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DURATION_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""The upper bounds of the histogram of batch durations, in seconds."""


@dataclass(frozen=True)
class Figure:
    """One figure. `name`, which ends with the unit, is the attribute of `BatchProgress` that has it, and its column in
    a metrics sink and in the history; with `of_query`, it is an attribute of `TrackedQuery` after the batch. `type` is
    Spark's SQL type, `text` a sentence for the documentation.

    `aggregate` says what several batches give: their `sum`, their `mean`, the mean of those that have a value (`rate`),
    their `max`, or only the `last` one. `metric` is the name of the figure in Prometheus, without `sqlstream_`: a
    counter if it is a sum (in seconds if the figure has milliseconds), otherwise the value of the last batch.
    """

    name: str
    type: str
    aggregate: Literal["sum", "mean", "rate", "max", "last"]
    text: str
    metric: str | None = None
    of_query: bool = False
    in_sink: bool = True
    in_history: bool = True

    @property
    def column(self) -> str:
        """The column in the history, which has times in milliseconds since 1970."""
        return f"{self.name}_ms" if self.type == "timestamp" else self.name


FIGURES = (
    Figure("duration_ms", "bigint", "mean", "The duration of the batch."),
    Figure("add_batch_ms", "bigint", "mean", "Reading, computing and writing the rows."),
    Figure("input_ms", "bigint", "mean", "Finding input: listing files, asking Kafka for its newest offsets."),
    Figure("planning_ms", "bigint", "mean", "Planning the batch."),
    Figure("wal_ms", "bigint", "mean", "Writing offsets and commits to the checkpoint."),
    Figure("other_ms", "bigint", "mean", "Everything else."),
    Figure(
        "core_ms",
        "bigint",
        "sum",
        "How long tasks of the query occupied a core, added up.",
        "core_seconds",
    ),
    Figure("tasks", "bigint", "sum", "Tasks of the query that have ended.", "tasks"),
    Figure("cores", "bigint", "max", "Cores of Spark at the end of the batch.", "cores"),
    Figure(
        "state_commit_ms",
        "bigint",
        "mean",
        "How long tasks wrote changes of the state to the checkpoint, added up.",
    ),
    Figure("rows_in", "bigint", "sum", "Rows that the sources read.", "rows_in"),
    Figure("rows_out", "bigint", "sum", "Rows that the query emitted.", "rows_out"),
    Figure("late_rows", "bigint", "sum", "Rows dropped because they were behind the watermark.", "late_rows"),
    Figure("dropped_records", "bigint", "sum", "Corrupt records that `on_corrupt: drop` dropped.", "dropped_records"),
    Figure(
        "new_field_rows",
        "bigint",
        "sum",
        "Records with fields that their sources, with `schema_changes`, do not declare.",
        "new_field_rows",
    ),
    Figure(
        "violations",
        "bigint",
        "sum",
        "Violations of data tests; a row counts for each test that it violates.",
        "violations",
    ),
    Figure(
        "quarantined_rows",
        "bigint",
        "sum",
        "Rows that violate data tests and went to the quarantine of the model.",
        "quarantined_rows",
    ),
    Figure(
        "input_rows_per_second",
        "double",
        "rate",
        "Rows per second that arrived since the previous batch.",
        "input_rows_per_second",
    ),
    Figure(
        "processed_rows_per_second",
        "double",
        "rate",
        "Rows per second that the batch processed.",
        "processed_rows_per_second",
    ),
    Figure("watermark", "timestamp", "last", "The watermark that the batch used.", "watermark_timestamp_seconds"),
    Figure(
        "watermark_lag_seconds",
        "double",
        "max",
        "How far the watermark is behind the newest event of the run.",
        "watermark_lag_seconds",
        of_query=True,
    ),
    Figure("newest_event", "timestamp", "last", "The newest event time of the batch.", in_history=False),
    Figure("state_rows", "bigint", "max", "Rows in the state after the batch.", "state_rows"),
    Figure("state_bytes", "bigint", "max", "Memory of the state, as Spark reports it.", "state_memory_bytes"),
    Figure(
        "restarts",
        "bigint",
        "sum",
        "Restarts of the query in this run.",
        "restarts",
        of_query=True,
        in_history=False,  # it has the restarts themselves
    ),
    Figure("lag", "bigint", "max", "Records of Kafka that the query has not read yet.", in_sink=False),
    Figure("lag_files", "bigint", "max", "Files that the query has not read yet.", in_sink=False),
    Figure("lag_bytes", "bigint", "max", "The size of these files.", in_sink=False),
    Figure("lag_versions", "bigint", "max", "Versions of Delta Lake that the query has not read yet.", in_sink=False),
)
"""All figures, in the order of the columns of a metrics sink."""

COUNTED = tuple(figure.name for figure in FIGURES if figure.aggregate == "sum" and not figure.of_query)
"""The figures that a run counts: their sums are in run_results.json."""

LAG_COLUMNS = {"records": "lag", "files": "lag_files", "bytes": "lag_bytes", "versions": "lag_versions"}
"""The figures of a lag, by unit. Units are never added up or compared."""

ADDED = (*COUNTED, *(figure.name for figure in FIGURES if figure.aggregate == "mean"))
"""The figures that a query adds up, batch by batch."""
