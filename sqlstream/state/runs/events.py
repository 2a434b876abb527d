"""The events of a run, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.state.runs.case_outcomes import CaseResult
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.silence import Silence

NO_OP = "no-op"
"""The status of a query that a build does not run because it never ends, as dbt calls nodes with nothing to do."""


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
    exposures: int = 0


@dataclass(frozen=True)
class WarningEmitted:
    """A warning about the project, before anything starts."""

    finding: Finding


@dataclass(frozen=True)
class SelectedQuery:
    """A query that a run will start: the model, the name and format of its sink, and the tables that it reads. `kind`
    is as in `QueryStarted`. Several sinks and formats are separated by commas. `is_quarantine`: it writes only corrupt
    records, so it emits no rows while all is well.
    """

    model: str
    unique_id: str
    sink: str
    format: str
    output_mode: str
    trigger: str
    sources: tuple[str, ...]
    kind: str = "stream"
    is_quarantine: bool = False


@dataclass(frozen=True)
class QueriesSelected:
    """The queries that a run will start. They compile; Spark has not analyzed them yet."""

    queries: tuple[SelectedQuery, ...]


@dataclass(frozen=True)
class SelectedTest:
    """A unit test that a build will run: its name, and its model (None if the test does not say)."""

    name: str
    unique_id: str
    model: str | None


@dataclass(frozen=True)
class UnitTestsSelected:
    """The unit tests that a build will run before its queries."""

    tests: tuple[SelectedTest, ...]


@dataclass(frozen=True)
class UnitTestStarted:
    """A unit test, number `index` (from 1) of `total` nodes of a build, starts."""

    test: SelectedTest
    index: int
    total: int


@dataclass(frozen=True)
class UnitTestEnded:
    """How a unit test of a build ended."""

    test: SelectedTest
    index: int
    total: int
    result: CaseResult


@dataclass(frozen=True)
class QueryNotRun:
    """A build does not run the query of `model`, for a `reason` that is no failure: the query never ends."""

    model: str
    unique_id: str
    index: int
    total: int
    trigger: str
    reason: str
    kind: str = "stream"

    def as_json(self) -> dict[str, object]:
        """Returns the entry of target/run_results.json."""
        return {
            "unique_id": self.unique_id,
            "model": self.model,
            "kind": self.kind,
            "status": NO_OP,
            "trigger": self.trigger,
            "reason": self.reason,
        }


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
class QueryWaiting:
    """A query that has had no batch has looked for data: it found none, and `waits`; or its first batch runs."""

    model: str
    waits: bool


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
    `restarts` restarts. `kind` is `stream`, or `batch` for a batch model, which has no checkpoint. `late_rows` counts
    the rows that were dropped behind the watermark (see StateProgress), `dropped_records` the corrupt records that its
    sources dropped, and `violations` those of data tests. `reason` is why it was skipped.
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
    late_rows: int = 0
    dropped_records: int = 0
    violations: int = 0
    reason: str | None = None

    @classmethod
    def skipped(
        cls, model: str, unique_id: str, index: int, total: int, kind: str = "stream", reason: str | None = None
    ) -> QueryResult:
        """Returns the result of a query that did not start."""
        skip = Status.SKIPPED
        return cls(model, unique_id, index, total, skip, 0, None, None, 0.0, None, None, kind=kind, reason=reason)

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
            "late_rows": self.late_rows,
            "dropped_records": self.dropped_records,
            "restarts": self.restarts,
            "duration_seconds": round(self.seconds, 3),
            "output": self.output,
            "checkpoint": self.checkpoint,
            "error": None if self.finding is None else self.finding.as_json(),
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Notice:
    """A sentence about the run or one query, reported once."""

    text: str


@dataclass(frozen=True)
class AlertChanged:
    """An alert of the query of `model`: `alert` is its kind, such as `failed`. `state` is `raised`, `repeated` (it is
    still open, and sent again), `open` (known from an earlier run) or `resolved`. `id` is the same until it is
    resolved. `value` is what was measured (seconds or a count), `since` is when it was raised (UTC, ISO 8601).
    """

    model: str
    alert: str
    state: str
    message: str
    id: str
    since: str
    value: float | None = None
    limit: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether the alert is open after this."""
        return self.state != "resolved"


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
    | UnitTestsSelected
    | UnitTestStarted
    | UnitTestEnded
    | QueriesSelected
    | QueryNotRun
    | QueryStarted
    | BatchProgress
    | QueryWaiting
    | QuerySilent
    | QueryRestarting
    | QueryResumed
    | QueryResult
    | Notice
    | AlertChanged
    | TableShown
)
