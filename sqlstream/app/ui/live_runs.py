"""The runs and queries of all targets as they are now, brought up to date from the history, and what the page shows of
one query.
"""

from __future__ import annotations

import re
import sqlite3
import statistics
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from sqlstream.app.status.status import RunStatus, RunWithStatus, project_status, run_status
from sqlstream.figures import COUNTED, FIGURES
from sqlstream.history.reads import (
    MAX_RUNS,
    PastRun,
    alerts_after,
    changed_queries,
    changed_runs,
    latest_batches,
    revision,
)
from sqlstream.numbers import epoch_text
from sqlstream.report.query_cost import TIME_COLUMNS, TimeUse, costs, time_use
from sqlstream.state.runs.progress import BatchProgress, epoch_seconds, stored_batch
from sqlstream.state.runs.silence import recorded_silence
from sqlstream.state.sources.lag import LagByUnit, add_lags

SPARK_POINTS = 40
"""The number of batches in a small chart."""

SPARKS = ("at_ms", "input_rows_per_second", "duration_ms", "state_rows")

COLUMNS = (*SPARKS, *(name for name in TIME_COLUMNS if name not in SPARKS))
"""The figures of the latest batches: of the small charts, and of where the time goes."""

IDLE_SECONDS = 15.0
"""A running query without a batch for this time, and for three of its usual spans, has the rate 0."""

_VERSION = re.compile(r"/v([1-9][0-9]*)/checkpoint/?\Z")

WATCHED_RUNS = 20
"""The number of the newest runs without a result whose processes are checked."""

Key = tuple[str, str]
"""The target and the model of a query."""


@dataclass
class LiveQuery:
    """One query of one target. `entry` is its newest entry, as in run_results.json, with its current `status`, and
    `recorded` the entry without that. `run` is the run that wrote it, and `batch` its last batch. `charts` are the
    latest values of small charts. `lags` are those in its checkpoint by source, and `open_batch` a batch that has begun
    there, with its time (seconds since 1970).
    """

    number: int
    model: str
    run: int | None = None
    heard_at: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)
    status: str | None = None
    charts: deque[tuple[Any, ...]] = field(default_factory=lambda: deque(maxlen=SPARK_POINTS))
    lags: Mapping[str, LagByUnit] = field(default_factory=dict)
    open_batch: tuple[int, float | None] | None = None
    alerts: dict[str, dict[str, Any]] = field(default_factory=dict)
    batch: BatchProgress | None = None

    @property
    def is_running(self) -> bool:
        """Whether the query runs now."""
        return self.status == "running"

    @property
    def version(self) -> int | None:
        """The version of the query that runs, from the path of its checkpoint; None if unknown."""
        match = _VERSION.search(str(self.entry.get("checkpoint") or ""))
        return int(match.group(1)) if match else None

    @property
    def is_idle(self) -> bool:
        """Whether the last batch is so long ago that nothing flows now."""
        if not self.is_running or not self.charts:
            return True
        at_ms, duration = self.charts[-1][0], self.charts[-1][2] or 0
        span = (at_ms - self.charts[-2][0]) / 1000 if len(self.charts) > 1 else 0.0
        return bool(time.time() - (at_ms + duration) / 1000 > max(IDLE_SECONDS, 3 * span))

    @property
    def batch_span_seconds(self) -> float:
        """The usual time between the starts of two batches that read rows, 0 before there are two."""
        starts = [at_ms for at_ms, input_rate, *_ in self.charts if input_rate]
        return statistics.median(after - before for before, after in pairwise(starts)) / 1000 if starts[1:] else 0.0

    def source_rates(self) -> dict[str, tuple[float, int]]:
        """Returns the rows per second of each table that the query reads now, and its number of readers."""
        if self.batch is None or self.is_idle:
            return {}
        return {
            name: (sum(reader.input_rows_per_second or 0.0 for reader in readers), len(readers))
            for name, readers in self.batch.by_source().items()
        }

    def source_lags(self) -> Mapping[str, LagByUnit]:
        """Returns what the query has not read yet, by source: as its last batch reported it, otherwise as the
        checkpoint has it.
        """
        batch = {} if self.batch is None else self.batch.by_source()
        reported = {name: add_lags(reader.lag for reader in readers) for name, readers in batch.items()}
        return {**self.lags, **{name: lag for name, lag in reported.items() if lag}}

    @property
    def lag(self) -> dict[str, int] | None:
        """What the query has not read yet of all sources, None if unknown."""
        return add_lags(self.source_lags().values()) or None

    def _sources(self) -> dict[str, dict[str, Any]]:
        """Returns what each table that the query reads gives it now, and what is left there."""
        rates, lags = self.source_rates(), self.source_lags()
        read = () if self.batch is None else self.batch.by_source()
        unknown = (0.0 if self.is_running else None, 0)
        return {
            name: {"rows_per_second": rates.get(name, unknown)[0], "lag": lags.get(name)}
            for name in sorted({*read, *lags})
        }

    def output_rate(self) -> float:
        """Returns the rows per second that the query emits now."""
        batch = self.batch
        if batch is None or self.is_idle or not batch.rows_out:
            return 0.0
        if batch.rows_in and batch.input_rows_per_second:
            return batch.input_rows_per_second * batch.rows_out / batch.rows_in
        return 1000.0 * batch.rows_out / max(batch.duration_ms, 1)

    def now(self, run: str | None, corrupt: int | None, quarantines: Sequence[str], *, tests: bool) -> dict[str, Any]:
        """Returns the query as the page shows it. `run` is the id of its run's invocation, and `quarantines` are the
        queries that have written `corrupt` records of its sources. `tests`: data tests have a quarantine, too.
        """
        batch = self.batch
        tested = (self.entry.get("quarantined_rows") or 0) if tests else None
        shown = {figure.name: getattr(batch, figure.name, None) for figure in FIGURES}
        if batch is not None and self.is_idle:
            rates = ("input_rows_per_second", "processed_rows_per_second")
            shown |= {"input_rows_per_second": 0.0} if self.is_running else dict.fromkeys(rates)
        return {
            **shown,
            **{name: self.entry.get(name) for name in _ENTRY_NAMES},
            "model": self.model,
            "run": run,
            "status": self.status,
            "heard_at": self.heard_at or None,
            "version": self.version,
            "data_tests": self.entry.get("data_tests") or {},
            "quarantined_rows": None if tested is None and corrupt is None else (tested or 0) + (corrupt or 0),
            "rows_in_quarantine": tested,
            "quarantines": list(quarantines),
            "output_rows_per_second": self.output_rate() if self.is_running else None,
            "lag": self.lag,
            "cost": costs(self.entry, None),
            "sources": self._sources(),
            "open_batch": self._open_batch(),
            "silence": recorded_silence(self.entry, has_input=self._has_input()),
            "batch_span_seconds": self.batch_span_seconds,
            "last_batch_id": None if batch is None else batch.batch_id,
            "last_batch_at": None if batch is None else batch.started_at,
            "alerts": list(self.alerts.values()),
            "spark": self._spark(),
        }

    def _open_batch(self) -> dict[str, Any] | None:
        """Returns the batch that runs now, as far as its checkpoint shows it."""
        if self.open_batch is None or not self.is_running:
            return None
        batch_id, began = self.open_batch
        if self.batch is not None and batch_id <= self.batch.batch_id:
            return None  # it has ended since the checkpoint was read
        started = epoch_seconds(self.entry.get("started_at"))  # an interrupted batch began in an earlier run
        times = [each for each in (began, started) if each is not None]
        return {"batch_id": batch_id, "since": epoch_text(max(times)) if times else None}

    def _has_input(self) -> bool:
        """Returns whether the query runs, and a batch runs or it has not read something."""
        lags = self.lags.values()
        return self.is_running and (self._open_batch() is not None or any(any(lag.values()) for lag in lags))

    def _spark(self) -> dict[str, list[Any]]:
        columns = list(zip(*self.charts, strict=True)) or [()] * len(COLUMNS)
        return {name: list(values) for name, values in zip(COLUMNS, columns, strict=True) if name in SPARKS[1:]}

    @property
    def time_use(self) -> TimeUse | None:
        """Where the time of the latest batches of its run goes, None if that is unknown. A query that waits now has
        waited since its last batch.
        """
        if self._batch_times is None or not self.is_running or self._open_batch() is not None:
            return self._batch_times
        return self._batch_times.until(round(1_000 * time.time()))

    @cached_property
    def _batch_times(self) -> TimeUse | None:
        since = 1_000 * (epoch_seconds(self.entry.get("started_at")) or 0.0)
        return time_use(dict(zip(COLUMNS, row, strict=True)) for row in self.charts if row[0] >= since)


_ENTRY_NAMES = (
    *("unique_id", "kind", "trigger", "sink", "output", "batches", "started_at", "duration_seconds"),
    *("newest_event", "newest_event_at", "error", "last_failure", "failed_at", "retry"),
    *COUNTED,
    *(figure.name for figure in FIGURES if figure.of_query),
)
"""What the page shows of an entry of run_results.json."""


def _last_batch(entry: Mapping[str, Any]) -> BatchProgress | None:
    """Returns the last batch of a query, None before it or if another version has written it in another form."""
    with suppress(KeyError, TypeError, ValueError, AttributeError):
        return stored_batch(entry["progress"])
    return None


@dataclass
class LiveRuns:
    """All runs by their numbers in the history, and all queries by target and model. `lives` are the states of runs,
    and `signs` the times at which submitted runs were alive.
    """

    runs: dict[int, PastRun] = field(default_factory=dict)
    lives: dict[int, RunStatus] = field(default_factory=dict)
    signs: dict[str, float] = field(default_factory=dict)
    queries: dict[Key, LiveQuery] = field(default_factory=dict)
    _revision: int = -1
    _alert: int = -1
    _by_number: dict[int, Key] = field(default_factory=dict)
    _idle: set[Key] = field(default_factory=set)
    _cores: dict[int | None, float | None] = field(default_factory=dict)

    def update(self, connection: sqlite3.Connection) -> set[Key]:
        """Reads what is new in the history, and returns the queries that have changed. The work is proportional to what
        is new.
        """
        changed: set[Key] = set()
        self._cores.clear()
        newest = revision(connection)
        if newest != self._revision:
            if newest < self._revision:
                self._start_over()  # another history replaced a damaged one
            changed |= self._read(connection)
            self._revision = newest
        changed |= self._check_lives()
        for key in changed:
            self._set_status(self.queries[key])
        return changed | self._idle_changes()

    def _start_over(self) -> None:
        self.runs, self.lives, self.queries, self._by_number = {}, {}, {}, {}
        self._revision = self._alert = -1

    def _read(self, connection: sqlite3.Connection) -> set[Key]:
        for run in changed_runs(connection, self._revision):
            self.runs[run.number] = run
        changed = set()
        for stored in changed_queries(connection, self._revision):
            key = stored.target, stored.model
            query = self.queries.setdefault(key, LiveQuery(stored.number, stored.model))
            if (query.run, query.entry.get("checkpoint")) != (stored.run, stored.entry.get("checkpoint")):
                query.lags, query.open_batch = {}, None  # of another checkpoint
            query.run, query.heard_at, query.entry = stored.run, stored.heard_at, stored.entry
            query.recorded = stored.entry
            query.batch = _last_batch(stored.entry)
            after = query.charts[-1][0] if query.charts else -1
            query.charts.extend(latest_batches(connection, stored.number, COLUMNS, SPARK_POINTS, after))
            vars(query).pop("_batch_times", None)
            self._by_number[stored.number] = key
            changed.add(key)
        self._read_alerts(connection, changed)
        self._drop_old_runs()
        return changed

    def _read_alerts(self, connection: sqlite3.Connection, changed: set[Key]) -> None:
        for number, query, detail in alerts_after(connection, self._alert):
            self._alert = number
            key = self._by_number.get(query)
            if key is None:
                continue
            alerts, name = self.queries[key].alerts, str(detail.get("alert") or detail.get("kind") or "")
            if detail.get("state") == "resolved":
                alerts.pop(name, None)
            else:
                alerts[name] = detail
            changed.add(key)

    def _drop_old_runs(self) -> None:
        used = {query.run for query in self.queries.values()}
        for number in sorted(self.runs, key=lambda each: self.runs[each].began_at)[:-MAX_RUNS]:
            if number not in used:
                del self.runs[number]
                self.lives.pop(number, None)

    def _check_lives(self) -> set[Key]:
        """Returns the queries whose runs have begun, ended, or died without a result."""
        unfinished = [run for run in self.runs.values() if self.lives.get(run.number) is not RunStatus.ENDED]
        watched = {run.number for run in sorted(unfinished, key=lambda run: run.began_at)[-WATCHED_RUNS:]}
        changed = set()
        for run in unfinished:
            before = self.lives.get(run.number)
            if before is None or run.succeeded is not None or run.number in watched:
                self.lives[run.number] = run_status(run, self.signs)
                if self.lives[run.number] is not before:
                    changed.add(run.number)
        return {key for key, query in self.queries.items() if query.run in changed} if changed else set()

    def _set_status(self, query: LiveQuery) -> None:
        run = self.runs.get(query.run) if query.run is not None else None
        if run is None or not query.recorded:
            return
        past = replace(run, queries={query.model: dict(query.recorded)})
        (found,) = project_status([RunWithStatus(past, self.lives[run.number])], None).queries
        query.entry, query.status = found.entry, found.status

    def _idle_changes(self) -> set[Key]:
        """Returns the running queries that became idle, or are no longer."""
        idle = {key for key, query in self.queries.items() if query.is_running and query.is_idle}
        changed, self._idle = idle ^ self._idle, idle
        return changed

    def of_target(self, target: str | None) -> dict[str, LiveQuery]:
        """Returns the queries of a target by model."""
        return {model: query for (name, model), query in self.queries.items() if name == (target or "")}

    def cores_of_run(self, run: int | None) -> float | None:
        """Returns the cores that the queries of a run use together on average, None if that is unknown; as of the last
        `update`.
        """
        if run not in self._cores:
            self._cores[run] = self._cores_of(run)
        return self._cores[run]

    def _cores_of(self, run: int | None) -> float | None:
        uses = [query.time_use for query in self.queries.values() if query.run == run and query.is_running]
        known = [use.cores_over_time for use in uses if use is not None and use.cores_over_time is not None]
        return sum(known) if known and len(known) == len(uses) else None

    def runs_of(self, target: str | None) -> list[PastRun]:
        """Returns the runs of a target, the newest first; those of all targets for None."""
        found: Iterable[PastRun] = self.runs.values()
        return sorted(
            (run for run in found if target is None or run.target == target), key=lambda run: run.began_at, reverse=True
        )
