"""Follows a run to raise and resolve its alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from sqlstream.app.running.alerts.outbox import Change
from sqlstream.app.running.observers.observer import Observed, Snapshot
from sqlstream.errors import Finding
from sqlstream.project.alerts import AlertKind
from sqlstream.state.alerts.evaluation import AlertBook
from sqlstream.state.runs.backlog import Unread
from sqlstream.state.runs.events import AlertChanged, QueriesSelected
from sqlstream.state.runs.run_state import LiveStatus

IN_USE = "query-in-use"


class AlertObserver:
    """Passes each change of the alerts in `book` to `put`. `unread` returns what models have left to read."""

    name = "the alerts"

    def __init__(
        self, book: AlertBook, put: Callable[[Change], None], unread: Callable[[], Mapping[str, Unread]]
    ) -> None:
        self._book, self._put, self._unread = book, put, unread
        self._refusal: str | None = None

    def observe(self, seen: Observed) -> None:
        """Raises or resolves alerts after an event."""
        if isinstance(seen.event, QueriesSelected):
            self._put_all(self._book.begin(), seen.at)
        elif seen.query is not None and not isinstance(seen.event, AlertChanged):
            self._put_all(self._book.observe(seen.query.query.model, seen.event, seen.at), seen.at)

    def tick(self, now: Snapshot) -> None:
        """Raises or resolves alerts after some time. If that fails for one query, raises the error after the others."""
        unread, bugs = self._unread(), list[Exception]()
        for model in self._book.models:
            try:
                self._put_all(self._book.tick(model, now.at, unread.get(model)), now.at)
            except Exception as bug:  # a bug in the alerts of one query must not hide those of the others
                bugs.append(bug)
        if bugs:
            raise bugs[0]

    def refuse(self, findings: Iterable[Finding]) -> None:
        """The run ends because of `findings`. Call it before `close`, which raises the alerts. A run that is refused
        because another one has its queries is no failure of these queries.
        """
        self._refusal = next((finding.message for finding in findings if finding.code != IN_USE), None)

    def close(self, last: Snapshot) -> None:
        """Raises `failed` for the queries that did not start, if the run was refused."""
        if self._refusal is not None:
            queries = last.run.queries
            waiting = [model for model, query in queries.items() if query.status is LiveStatus.PENDING]
            self._put_all(self._book.refuse(waiting, self._refusal, last.at), last.at)

    def _put_all(self, changes: Iterable[AlertChanged], at: datetime) -> None:
        for change in changes:
            self._put(Change(change, self._book.open.get((change.model, AlertKind(change.alert))), at))
