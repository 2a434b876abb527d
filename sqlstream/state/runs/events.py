"""The events of a run, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.silence import Silence


class Status(StrEnum):
    """How a query ended. `SUCCESS`: by itself. `STOPPED`: after its running batch, because of a stop request; more data
    may remain. `INTERRUPTED`: in the middle of a batch, which the next run repeats. `ERROR`: it failed. `SKIPPED`: it
    did not start, because another query failed to start or a stop was requested first.
    """

    SUCCESS = "success"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class RunStarting:
    """A run begins: the contents of the project, and the versions that run it."""

    models: int
    sources: int
    sinks: int
    seeds: int
    sqlstream_version: str
    spark_version: str


@dataclass(frozen=True)
class WarningEmitted:
    """A warning about the project, before anything starts."""

    finding: Finding


@dataclass(frozen=True)
class SelectedQuery:
    """A query that a run will start: the model, the name and format of its sink, and the tables that it reads. `kind`
    is as in `QueryStarted`. Several sinks and formats are separated by commas.
    """

    model: str
    unique_id: str
    sink: str
    format: str
    output_mode: str
    trigger: str
    sources: tuple[str, ...]
    kind: str = "stream"


@dataclass(frozen=True)
class QueriesSelected:
    """The queries that a run will start. They compile; Spark has not analyzed them yet."""

    queries: tuple[SelectedQuery, ...]


@dataclass(frozen=True)
class QueryStarted:
    """The query of `model`, number `index` (from 1) of `total`, is about to start. `kind` is `stream`, or `batch` for a
    batch model, whose trigger has no effect.
    """

    model: str
    index: int
    total: int
    sink: str
    trigger: str
    kind: str = "stream"
    output: str | None = None
    checkpoint: str | None = None


@dataclass(frozen=True)
class QueryResumed:
    """The query of `model` has restarted for the `restarts`-th time in this run."""

    model: str
    restarts: int


@dataclass(frozen=True)
class QuerySilent:
    """The query of `model` reads or waits for data, and emits nothing. `is_new`: the reason was not reported before.
    `has_ended`: it emitted nothing until its end.
    """

    model: str
    silence: Silence
    is_new: bool
    has_ended: bool = False


@dataclass(frozen=True)
class QueryRestarting:
    """The query of `model` has failed `attempt` times in a row, and restarts in `delay_seconds`. It can fail `attempts`
    times.
    """

    model: str
    attempt: int
    attempts: int
    delay_seconds: float
    finding: Finding


@dataclass(frozen=True)
class QueryResult:
    """How a query ended. `rows_in` and `rows_out` are None if Spark does not know them. `seconds` is wall time, with
    `restarts` restarts. `kind` is `stream`, or `batch` for a batch model, which has no checkpoint. `dropped_records`
    counts the corrupt records that its sources dropped.
    """

    model: str
    unique_id: str
    index: int
    total: int
    status: Status
    batches: int
    rows_in: int | None
    rows_out: int | None
    seconds: float
    output: str | None
    checkpoint: str | None
    finding: Finding | None = None
    restarts: int = 0
    kind: str = "stream"
    dropped_records: int = 0

    @classmethod
    def skipped(cls, model: str, unique_id: str, index: int, total: int, kind: str = "stream") -> QueryResult:
        """Returns the result of a query that did not start."""
        return cls(model, unique_id, index, total, Status.SKIPPED, 0, None, None, 0.0, None, None, kind=kind)

    @property
    def started(self) -> bool:
        """Whether the query has started."""
        return self.status is not Status.SKIPPED

    def as_json(self) -> dict[str, object]:
        """Returns the entry of target/run_results.json."""
        return {
            "unique_id": self.unique_id,
            "kind": self.kind,
            "status": str(self.status),
            "batches": self.batches,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "dropped_records": self.dropped_records,
            "restarts": self.restarts,
            "duration_seconds": round(self.seconds, 3),
            "output": self.output,
            "checkpoint": self.checkpoint,
            "error": None if self.finding is None else self.finding.as_json(),
        }


@dataclass(frozen=True)
class Notice:
    """A sentence about the run or one query, reported once."""

    text: str


@dataclass(frozen=True)
class TableShown:
    """The table of a memory sink at the end of the run: its first rows, and the `count` of all rows. `rows` are JSON
    values, as in `ShownRows`.
    """

    model: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    count: int


RunEvent = (
    RunStarting
    | WarningEmitted
    | QueriesSelected
    | QueryStarted
    | BatchProgress
    | QuerySilent
    | QueryRestarting
    | QueryResumed
    | QueryResult
    | Notice
    | TableShown
)
