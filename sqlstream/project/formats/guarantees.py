"""How often a row arrives in each sink when runs fail and resume, and by what means: one table."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.project.formats.format import BATCH, STREAM
from sqlstream.project.formats.formats import format_of

EXACTLY_ONCE, AT_LEAST_ONCE, UNKNOWN, NOTHING = "exactly once", "at least once", "unknown", "nothing is kept"

APPEND, UPDATE, COMPLETE = "append", "update", "complete"
_STREAMS = (APPEND, UPDATE, COMPLETE)
_EVERY = (*_STREAMS, BATCH)
_FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
_DATABASES = ("jdbc", "sqlite")


@dataclass(frozen=True)
class Guarantee:
    """How often each row counts in a sink: one of the texts above, and the means."""

    rows: str
    means: str


@dataclass(frozen=True)
class _Entry:
    """The guarantee of some formats for queries of some modes. `batch` is the mode of batch models."""

    formats: tuple[str, ...]
    modes: tuple[str, ...]
    rows: str
    means: str


_TRANSACTION = "one transaction applies a batch and records its query and number; a repeated batch changes nothing"

_ENTRIES = (
    _Entry(
        _FILES,
        (APPEND,),
        EXACTLY_ONCE,
        "Spark's log of files, `_spark_metadata`; readers that list the folder also see files of an interrupted batch",
    ),
    _Entry(_FILES, (COMPLETE,), EXACTLY_ONCE, "each batch writes all files again, and then replaces the earlier ones"),
    _Entry(_FILES, (BATCH,), EXACTLY_ONCE, "the new files replace the earlier ones when they are complete"),
    _Entry(("delta",), (APPEND,), EXACTLY_ONCE, "the commit of a batch records its query and number, as `txn`"),
    _Entry(
        ("iceberg",),
        (APPEND,),
        EXACTLY_ONCE,
        "the snapshot of a batch records its query and number, in `spark.sql.streaming.epochId`",
    ),
    _Entry(
        ("delta", "iceberg"),
        (UPDATE, COMPLETE),
        EXACTLY_ONCE,
        "the commit that merges or replaces rows records the query and the batch; a repeated batch is skipped",
    ),
    _Entry(("delta", "iceberg"), (BATCH,), EXACTLY_ONCE, "one commit replaces the table"),
    _Entry(_DATABASES, _STREAMS, EXACTLY_ONCE, _TRANSACTION),
    _Entry(
        ("jdbc",),
        (BATCH,),
        EXACTLY_ONCE,
        "one transaction replaces all rows; in other databases than PostgreSQL, MariaDB and MySQL, Spark adds the rows "
        "again in each run",
    ),
    _Entry(("sqlite",), (BATCH,), EXACTLY_ONCE, "one transaction replaces all rows"),
    _Entry(
        ("table",),
        _STREAMS,
        UNKNOWN,
        "that of the table's format: a table of files like files, Delta and Iceberg exactly once",
    ),
    _Entry(("table",), (BATCH,), EXACTLY_ONCE, "a new table is renamed when it is complete; the earlier one is kept"),
    _Entry(
        ("kafka",),
        _STREAMS,
        AT_LEAST_ONCE,
        "a repeated batch writes its records again",
    ),
    _Entry(("kafka",), (BATCH,), AT_LEAST_ONCE, "a failed write may have written some records; it is not retried"),
    _Entry(
        ("python",),
        _EVERY,
        AT_LEAST_ONCE,
        "a repeated batch calls the code again; a function that stores `batch.query_id` and `batch.id` can skip it",
    ),
    _Entry(("console",), _EVERY, AT_LEAST_ONCE, "a repeated batch is printed again"),
    _Entry(("memory",), _EVERY, EXACTLY_ONCE, "the table lasts as long as the run, and every run starts over"),
    _Entry(("noop",), _EVERY, NOTHING, "the rows are computed and dropped"),
)

_OTHER = Guarantee(UNKNOWN, "that of the package that provides the format")


def guarantee_of(format_name: str, mode: str) -> Guarantee:
    """Returns the guarantee of sinks of a format for streams of an output mode, or for batch models (mode `batch`)."""
    found = next((entry for entry in _ENTRIES if format_name in entry.formats and mode in entry.modes), None)
    return _OTHER if found is None else Guarantee(found.rows, found.means)


def modes_of(format_name: str) -> tuple[str, ...]:
    """Returns the modes in which queries can write to sinks of a format: output modes, and `batch`."""
    known = {mode for entry in _ENTRIES if format_name in entry.formats for mode in entry.modes}
    writes = format_of(format_name).writes
    possible = (mode for mode in _EVERY if (BATCH if mode == BATCH else STREAM) in writes)
    return tuple(mode for mode in possible if not known or mode in known)


def guarantee_rows() -> tuple[tuple[tuple[str, ...], tuple[str, ...], Guarantee], ...]:
    """Returns the table: formats, modes and guarantee of each row."""
    return tuple((entry.formats, entry.modes, Guarantee(entry.rows, entry.means)) for entry in _ENTRIES)
