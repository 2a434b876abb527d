"""How old the newest data of a source is, whether that is too old, and the text of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlstream.errors import Finding
from sqlstream.numbers import plural
from sqlstream.project.configuration.freshness import Freshness
from sqlstream.report.findings import finding_text
from sqlstream.report.run_text import TIME_LAYOUT
from sqlstream.report.table import node_line
from sqlstream.version import __version__

NEVER = datetime(1, 1, 1, tzinfo=UTC)
"""The time of the newest data of a source without data, as in dbt: it exceeds each threshold."""


class FreshnessStatus(StrEnum):
    """The result of a check, in dbt's words."""

    PASS = "pass"  # noqa: S105 - not a password
    WARN = "warn"
    ERROR = "error"
    RUNTIME_ERROR = "runtime error"


@dataclass(frozen=True)
class Measured:
    """The time of the newest data of a source, `NEVER` without data, and when it was looked up (both UTC)."""

    max_loaded_at: datetime
    snapshotted_at: datetime

    @property
    def age_seconds(self) -> float:
        """The age of the newest data; negative if its time is in the future."""
        return (self.snapshotted_at - self.max_loaded_at).total_seconds()


@dataclass(frozen=True)
class SourceFreshness:
    """The check of one source table. `measured` is None if its freshness is unknown; `finding` then has the reason."""

    unique_id: str
    name: str
    freshness: Freshness
    started_at: datetime
    seconds: float
    measured: Measured | None = None
    finding: Finding | None = None

    @property
    def status(self) -> FreshnessStatus:
        """The result of the check."""
        return FreshnessStatus.RUNTIME_ERROR if self.measured is None else judge(self.freshness, self.measured)


@dataclass(frozen=True)
class FreshnessResults:
    """The checks of one command, in order, the command's id, and its start and duration."""

    results: Sequence[SourceFreshness]
    invocation_id: str
    started_at: datetime
    seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether no source is older than its `error_after`, and the freshness of each is known."""
        return all(each.status in (FreshnessStatus.PASS, FreshnessStatus.WARN) for each in self.results)


def judge(freshness: Freshness, measured: Measured) -> FreshnessStatus:
    """Returns the status of a source; an age equal to a threshold passes, as in dbt."""
    age, error, warn = measured.age_seconds, freshness.error_after, freshness.warn_after
    if error is not None and age > error.seconds:
        return FreshnessStatus.ERROR
    return FreshnessStatus.WARN if warn is not None and age > warn.seconds else FreshnessStatus.PASS


SOURCES_SCHEMA = "https://schemas.getdbt.com/dbt/sources/v3.json"
"""dbt's schema, which the artifact follows."""

_WORDS = {
    FreshnessStatus.PASS: "PASS",
    FreshnessStatus.WARN: "WARN",
    FreshnessStatus.ERROR: "ERROR STALE",
    FreshnessStatus.RUNTIME_ERROR: "ERROR",
}


class FreshnessReporter:
    """Prints checks with `write` (one call per line, no newline), with the local time."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], datetime] = datetime.now) -> None:
        self._write, self._clock = write, clock

    def started(self, index: int, total: int, name: str) -> None:
        """Prints that a check starts."""
        self._print(node_line(index, total, f"START freshness of {name}", "RUN"))

    def ended(self, index: int, total: int, result: SourceFreshness) -> None:
        """Prints the result of a check, and of a failed one the reason."""
        word = _WORDS[result.status]
        self._print(node_line(index, total, f"{word} freshness of {result.name}", f"{word} in {result.seconds:.2f}s"))
        if result.finding is not None:
            self._write(finding_text(result.finding))
        elif result.measured is not None and result.status is not FreshnessStatus.PASS:
            self._print(stale_text(result, result.measured))

    def finish(self) -> None:
        """Prints the last line."""
        self._print("Done.")

    def _print(self, text: str) -> None:
        self._write(f"{self._clock():{TIME_LAYOUT}}  {text}")


def stale_text(result: SourceFreshness, measured: Measured) -> str:
    """Returns why a source is stale: the age of its newest data, and the threshold that it exceeds."""
    freshness, is_error = result.freshness, result.status is FreshnessStatus.ERROR
    limit = freshness.error_after if is_error else freshness.warn_after
    exceeded = f"{'error_after' if is_error else 'warn_after'} is {limit.text if limit else ''}"
    if measured.max_loaded_at == NEVER:
        return f"{result.name} has no data; {exceeded}"
    when = f"{measured.max_loaded_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"{result.name}: the newest data is {age_text(measured.age_seconds)} old ({when}); {exceeded}"


def age_text(seconds: float) -> str:
    """Returns an age in its two largest units: `3 days 4 h`, `4 h 10 min`, `10 min 5 s`."""
    age = timedelta(seconds=int(seconds))
    hours, rest = divmod(age.seconds, 3600)
    minutes, rest = divmod(rest, 60)
    if age.days:
        return f"{plural(age.days, 'day')} {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def sources_artifact(results: FreshnessResults, generated_at: datetime) -> dict[str, Any]:
    """Returns the content of sources.json. Times are in UTC."""
    return {
        "metadata": {
            "dbt_schema_version": SOURCES_SCHEMA,
            "sqlstream_version": __version__,
            "generated_at": _utc(generated_at),
            "invocation_id": results.invocation_id,
            "invocation_started_at": _utc(results.started_at),
            "env": {},
        },
        "results": [_result(each) for each in results.results],
        "elapsed_time": round(results.seconds, 6),
    }


def _result(result: SourceFreshness) -> dict[str, Any]:
    measured = result.measured
    if measured is None:
        error = None if result.finding is None else finding_text(result.finding)
        return {"unique_id": result.unique_id, "error": error, "status": str(result.status)}
    ended = result.started_at + timedelta(seconds=result.seconds)
    return {
        "unique_id": result.unique_id,
        "max_loaded_at": _utc(measured.max_loaded_at),
        "snapshotted_at": _utc(measured.snapshotted_at),
        "max_loaded_at_time_ago_in_s": measured.age_seconds,
        "status": str(result.status),
        "criteria": result.freshness.criteria,
        "adapter_response": {},
        "timing": [{"name": "execute", "started_at": _utc(result.started_at), "completed_at": _utc(ended)}],
        "thread_id": "MainThread",
        "execution_time": round(result.seconds, 6),
    }


def _utc(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
