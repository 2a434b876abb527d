"""The tables of history.sqlite."""

from __future__ import annotations

from collections.abc import Iterable

from sqlstream.figures import FIGURES

APPLICATION_ID = 0x73716C73
"""Marks the file as one of sqlstream ("sqls")."""

SCHEMA_VERSION = 3
"""The version of the tables. A file with another version is set aside and filled again from the journal. An existing
file gets the column of a new figure, without another version.
"""

MINUTES_5, HOURS_2 = 300, 7_200
"""The sizes of the rollups' time spans, in seconds."""

ROLLUP_SIZES = (MINUTES_5, HOURS_2)

KEPT = tuple(figure for figure in FIGURES if figure.in_history)

BATCH_COLUMNS = ("query", "at_ms", "run", "batch_id", *(figure.column for figure in KEPT), "sources")
"""The columns of a batch. Times are milliseconds since 1970. `sources` is JSON: a list of
`[name, start offset, end offset, rows]`.
"""

SUMS = {
    "batches": "count(*)",
    **{figure.column: f"sum({figure.column})" for figure in KEPT if figure.aggregate in ("sum", "mean", "rate")},
    **{f"{figure.column}_known": f"count({figure.column})" for figure in KEPT if figure.aggregate == "rate"},
}
"""The columns of a rollup that add up, and how they come from batches. Unknown values count as nothing."""

MAXIMA = {
    "duration_max_ms": "max(duration_ms)",
    **{figure.column: f"max({figure.column})" for figure in KEPT if figure.aggregate == "max"},
}
"""The columns of a rollup that have the maximum over its batches."""

_REALS = frozenset(figure.column for figure in KEPT if figure.type == "double")


def _declared(name: str) -> str:
    return f"{name} {'TEXT' if name == 'sources' else 'REAL' if name in _REALS else 'INTEGER'}"


def _columns(names: Iterable[str]) -> str:
    return ", ".join(map(_declared, names))


BATCHES = f"batches ({_columns(BATCH_COLUMNS)}, PRIMARY KEY (query, at_ms, run, batch_id)) WITHOUT ROWID"
"""The table of batches, for CREATE TABLE."""

ROLLUP_COLUMNS = ("query", "size", "at", *SUMS, *MAXIMA, "restarts")
"""The columns of a rollup. `restarts` comes from events."""

COLUMNS = {
    "batches": {name: _declared(name) for name in BATCH_COLUMNS},
    "rollups": {name: _declared(name) for name in ROLLUP_COLUMNS},
}
"""The declarations of the columns of tables with figures."""

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
    f"CREATE TABLE {BATCHES}",
    f"CREATE TABLE rollups ({_columns(ROLLUP_COLUMNS)}, PRIMARY KEY (query, size, at)) WITHOUT ROWID",
    """CREATE TABLE events (id INTEGER PRIMARY KEY, query INTEGER NOT NULL, run INTEGER NOT NULL,
    at_ms INTEGER NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL)""",
    "CREATE INDEX events_of_query ON events (query, at_ms)",
    "CREATE INDEX alerts ON events (id) WHERE kind = 'alert'",
)
