"""The tables of history.sqlite."""

from __future__ import annotations

APPLICATION_ID = 0x73716C73
"""Marks the file as one of sqlstream ("sqls")."""

SCHEMA_VERSION = 2
"""The version of the tables. A file with another version is set aside and filled again from the journal."""

MINUTES_5, HOURS_2 = 300, 7_200
"""The sizes of the rollups' time spans, in seconds."""

ROLLUP_SIZES = (MINUTES_5, HOURS_2)

BATCH_COLUMNS = (
    "query",
    "at_ms",
    "run",
    "batch_id",
    "duration_ms",
    "rows_in",
    "rows_out",
    "input_rate",
    "processed_rate",
    "add_batch_ms",
    "planning_ms",
    "wal_ms",
    "watermark_ms",
    "watermark_lag_s",
    "state_rows",
    "state_bytes",
    "late_rows",
    "dropped_records",
    "lag",
    "sources",
)
"""The columns of a batch. Times are milliseconds since 1970, rates are rows per second. `sources` is JSON: a list of
`[name, start offset, end offset, rows]`.
"""

SUMS = (
    "rows_in",
    "rows_out",
    "input_rate",
    "processed_rate",
    "rates",
    "duration_ms",
    "add_batch_ms",
    "planning_ms",
    "wal_ms",
    "late_rows",
    "dropped_records",
    "restarts",
)
"""The columns of a rollup that add up. `rates` is the number of batches with known rates."""

MAXIMA = ("duration_max_ms", "watermark_lag_s", "state_rows", "state_bytes", "lag")
"""The columns of a rollup that have the maximum over its batches."""

_REALS = frozenset({"input_rate", "processed_rate", "watermark_lag_s"})


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {'REAL' if name in _REALS else 'INTEGER'}" for name in names)


TABLES = (
    # how far each journal file has been read; `head` is the digest of its first line, which a rename does not change
    "CREATE TABLE journal (head BLOB PRIMARY KEY, offset INTEGER NOT NULL, read_ms INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE runs (id INTEGER PRIMARY KEY, invocation TEXT NOT NULL UNIQUE, target TEXT, pid INTEGER,
    process_start TEXT, began_at TEXT NOT NULL, heard_at TEXT NOT NULL, succeeded INTEGER, sqlstream_version TEXT,
    spark_version TEXT, revision INTEGER NOT NULL)""",
    "CREATE INDEX runs_by_start ON runs (began_at)",
    # `entry` is the newest entry of a query in the journal, as in run_results.json; `run` is the run that wrote it
    """CREATE TABLE queries (id INTEGER PRIMARY KEY, target TEXT NOT NULL, model TEXT NOT NULL, unique_id TEXT,
    run INTEGER, heard_at TEXT NOT NULL DEFAULT '', entry TEXT, revision INTEGER NOT NULL, UNIQUE (target, model))""",
    "CREATE INDEX queries_by_revision ON queries (revision)",
    # WITHOUT ROWID stores rows in the order of the key, so the batches of a time range are next to each other
    f"""CREATE TABLE batches ({_columns(BATCH_COLUMNS[:-1])}, sources TEXT, PRIMARY KEY (query, at_ms, run, batch_id))
    WITHOUT ROWID""",
    f"""CREATE TABLE rollups (query INTEGER, size INTEGER, at INTEGER, batches INTEGER NOT NULL DEFAULT 0,
    {_columns(SUMS)}, {_columns(MAXIMA)}, PRIMARY KEY (query, size, at)) WITHOUT ROWID""",
    """CREATE TABLE events (id INTEGER PRIMARY KEY, query INTEGER NOT NULL, run INTEGER NOT NULL,
    at_ms INTEGER NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL)""",
    "CREATE INDEX events_of_query ON events (query, at_ms)",
    "CREATE INDEX alerts ON events (id) WHERE kind = 'alert'",
)
