"""The runs and queries of all targets as they are now, brought up to date from the history."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sqlstream.app.status import run_status
from sqlstream.app.ui.live_query import SPARK_POINTS, SPARKS, LiveQuery
from sqlstream.history.reads import (
    StoredRun,
    alerts_after,
    changed_queries,
    changed_runs,
    latest_batches,
    revision,
)
from sqlstream.state.runs.history import PastRun
from sqlstream.state.runs.status import RunStatus, RunWithStatus, project_status

MAX_RUNS = 200
"""The number of runs to keep, the newest."""

WATCHED_RUNS = 20
"""The number of the newest runs without a result whose processes are checked."""

Key = tuple[str, str]
"""The target and the model of a query."""


@dataclass
class LiveRuns:
    """All runs by their numbers in the history, and all queries by target and model. `lives` are the states of runs."""

    runs: dict[int, StoredRun] = field(default_factory=dict)
    lives: dict[int, RunStatus] = field(default_factory=dict)
    queries: dict[Key, LiveQuery] = field(default_factory=dict)
    _revision: int = -1
    _alert: int = -1
    _by_number: dict[int, Key] = field(default_factory=dict)
    _idle: set[Key] = field(default_factory=set)

    def update(self, connection: sqlite3.Connection) -> set[Key]:
        """Reads what is new in the history, and returns the queries that have changed. The work is proportional to what
        is new.
        """
        changed: set[Key] = set()
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
            query.run, query.heard_at, query.entry = stored.run, stored.heard_at, stored.entry
            after = query.charts[-1][0] if query.charts else -1
            query.charts.extend(latest_batches(connection, stored.number, SPARKS, SPARK_POINTS, after))
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
                self.lives[run.number] = run_status(past_run(run))
                if self.lives[run.number] is not before:
                    changed.add(run.number)
        return {key for key, query in self.queries.items() if query.run in changed} if changed else set()

    def _set_status(self, query: LiveQuery) -> None:
        run = self.runs.get(query.run) if query.run is not None else None
        if run is None or not query.entry:
            return
        past = replace(past_run(run), queries={query.model: dict(query.entry)})
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

    def runs_of(self, target: str | None) -> list[StoredRun]:
        """Returns the runs of a target, the newest first; those of all targets for None."""
        found: Iterable[StoredRun] = self.runs.values()
        return sorted(
            (run for run in found if target is None or run.target == target), key=lambda run: run.began_at, reverse=True
        )


def past_run(run: StoredRun) -> PastRun:
    """Returns a run of the history without its queries."""
    return PastRun(run.invocation, run.target, run.pid, run.process_start, run.began_at, run.heard_at, run.succeeded)
