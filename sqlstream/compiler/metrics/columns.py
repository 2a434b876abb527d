"""The columns of the rows of metrics and alerts."""

from __future__ import annotations

METRICS_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("time", "timestamp", "When the batch started."),
    ("date", "date", "Its day in UTC, for `partition_by`."),
    ("project", "string", "The project."),
    ("target", "string", "The target."),
    ("model", "string", "The model of the query."),
    ("invocation_id", "string", "The run, as in events.jsonl."),
    ("batch_id", "bigint", "The number of the batch in the checkpoint."),
    ("duration_ms", "bigint", "The duration of the batch."),
    ("add_batch_ms", "bigint", "Reading, computing and writing the rows."),
    ("planning_ms", "bigint", "Planning the batch."),
    ("wal_ms", "bigint", "Writing offsets and commits to the checkpoint."),
    ("other_ms", "bigint", "Everything else, such as asking the sources for new data."),
    ("rows_in", "bigint", "Rows that the sources read."),
    ("rows_out", "bigint", "Rows that the query emitted."),
    ("late_rows", "bigint", "Rows that were dropped behind the watermark."),
    ("dropped_records", "bigint", "Corrupt records that `on_corrupt: drop` dropped."),
    ("input_rows_per_second", "double", "Rows per second that arrived."),
    ("processed_rows_per_second", "double", "Rows per second that the batch processed."),
    ("watermark", "timestamp", "The watermark that the batch used."),
    ("watermark_lag_seconds", "double", "How far it is behind the newest event of the run."),
    ("newest_event", "timestamp", "The newest event time of the batch."),
    ("state_rows", "bigint", "Rows in the state after the batch."),
    ("state_bytes", "bigint", "Memory of the state."),
    ("restarts", "bigint", "Restarts of the query in this run, before the batch."),
    ("sources", "string", "JSON: name, rows_in and offsets of each reader, and its backlog for Kafka."),
)
"""The columns of the rows: name, Spark's type, description."""

ALERT_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("time", "timestamp", "When the alert changed."),
    ("date", "date", "Its day in UTC, for `partition_by`."),
    ("project", "string", "The project."),
    ("target", "string", "The target."),
    ("model", "string", "The model of the query."),
    ("alert", "string", "The kind, such as `failed`."),
    ("state", "string", "`raised`, `repeated` or `resolved`."),
    ("severity", "string", "`critical`, `error` or `warning`."),
    ("message", "string", "The sentence."),
    ("value", "double", "What was measured: seconds, or a count."),
    ("threshold", "double", "The limit of the rule."),
    ("since", "timestamp", "When the alert was raised."),
    ("alert_id", "string", "The same in all rows of an alert, from raised to resolved."),
    ("message_id", "string", "The same if a row is written twice."),
    ("invocation_id", "string", "The run, as in events.jsonl."),
)
"""The columns of the rows of alerts: name, Spark's type, description."""
