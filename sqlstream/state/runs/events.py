"""What a run tells whoever watches it, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.silence import Silence


class Status(StrEnum):
    """How a query ended.

    `SUCCESS`: by itself. `STOPPED`: after its running batch, because a stop was asked for; there may be more to read.
    `INTERRUPTED`: in the middle of a batch, which runs again next time. `ERROR`: it failed. `SKIPPED`: it was not
    started, because another one failed to start or a stop was asked for before.
    """

    SUCCESS = "success"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class ProjectFound:
    """A run begins: what the project has, and the versions that run it."""

    models: int
    sources: int
    sinks: int
    seeds: int
    sqlstream_version: str
    spark_version: str


@dataclass(frozen=True)
class Warned:
    """A warning about the project, told before anything starts."""

    finding: Finding


@dataclass(frozen=True)
class ChosenQuery:
    """A query that a run is to start: the model, the name and the format of its sink, and the tables it reads.

    `kind` is as for `QueryStarted`.
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
class QueriesChosen:
    """The queries that a run is to start, once it is known that they compile; Spark has not been asked yet."""

    queries: tuple[ChosenQuery, ...]


@dataclass(frozen=True)
class QueryStarted:
    """The query of `model`, number `index` (from 1) of `total`, is about to start; `kind` is `stream`, or `batch` for
    a batch model, whose trigger means nothing.
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
    """The query of `model` has been started again, for the `restarts`-th time in this run."""

    model: str
    restarts: int


@dataclass(frozen=True)
class QuerySilent:
    """The query of `model` reads, or waits for something to read, and gives nothing; `is_new` where it has not been
    told before that this is why. It `has_ended` where it gave nothing until its end.
    """

    model: str
    silence: Silence
    is_new: bool
    has_ended: bool = False


@dataclass(frozen=True)
class QueryRestarting:
    """The query of `model` has failed for the `attempt`-th time in a row, and starts again in `delay_seconds`; it
    may do so `attempts` times.
    """

    model: str
    attempt: int
    attempts: int
    delay_seconds: float
    finding: Finding


@dataclass(frozen=True)
class QueryResult:
    """How a query ended. `rows_in` and `rows_out` are None where Spark does not know them; `seconds` is wall time, in
    which it was started again `restarts` times. `kind` is `stream`, or `batch` for a batch model, which has no
    checkpoint. `dropped_records` are the corrupt ones that its sources left out.
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
        """Returns the result of a query that was not started."""
        return cls(model, unique_id, index, total, Status.SKIPPED, 0, None, None, 0.0, None, None, kind=kind)

    @property
    def started(self) -> bool:
        """Whether the query was started at all."""
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
    """A sentence about the run as a whole or one query, said once."""

    text: str


@dataclass(frozen=True)
class TableShown:
    """The table that a memory sink held when the run ended: its first rows, and the `count` of all of them.

    `rows` are values as JSON has them, as those of `ShownRows` are.
    """

    model: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    count: int


RunEvent = (
    ProjectFound
    | Warned
    | QueriesChosen
    | QueryStarted
    | BatchProgress
    | QuerySilent
    | QueryRestarting
    | QueryResumed
    | QueryResult
    | Notice
    | TableShown
)
