"""When alerts are raised, sent again and resolved. The caller provides the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlstream.app.alerts.measures import Measures, Reading
from sqlstream.app.alerts.payloads import changed_limit_text, raised_text, resolved_text
from sqlstream.project.configuration.alerts import AlertKind, AlertRule
from sqlstream.state.runs.events import AlertChanged, RunEvent
from sqlstream.state.sources.lag import MeasuredLag
from sqlstream.times import utc_text

Key = tuple[str, AlertKind]
"""The model of an alert, and its kind."""


@dataclass(frozen=True)
class OpenAlert:
    """An alert that is not resolved. `sent_at` is when it was last sent, `since` when it was raised (with a zone)."""

    model: str
    kind: AlertKind
    id: str
    since: datetime
    sent_at: datetime
    message: str
    value: float | None = None
    limit: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns it without the model and the kind, as JSON that `from_json` reads."""
        times = {"since": self.since.timestamp(), "sent_at": self.sent_at.timestamp()}
        return {**times, "id": self.id, "message": self.message, "value": self.value, "limit": self.limit}

    @classmethod
    def from_json(cls, model: str, kind: str, found: Mapping[str, Any]) -> OpenAlert:
        """Returns the alert of a model that `as_json` has written. Raises: KeyError, TypeError, ValueError."""
        since, sent_at = (datetime.fromtimestamp(found[name], UTC) for name in ("since", "sent_at"))
        return cls(
            model, AlertKind(kind), found["id"], since, sent_at, found["message"], found["value"], found["limit"]
        )

    def changed(self, state: str, message: str | None = None, value: float | None = None) -> AlertChanged:
        """Returns the event that the alert is now in `state`."""
        return AlertChanged(
            model=self.model,
            alert=str(self.kind),
            state=state,
            message=self.message if message is None else message,
            id=self.id,
            since=utc_text(self.since),
            value=self.value if value is None else value,
            limit=self.limit,
        )


@dataclass(frozen=True)
class QueryRules:
    """The rules of one query, the interval of its trigger, and whether it only writes records that cannot be read."""

    rules: Mapping[AlertKind, AlertRule]
    trigger_seconds: float | None = None
    is_quarantine: bool = False


class AlertBook:
    """The alerts of the queries of a run, by their rules. `known` are the open alerts of earlier runs. An open alert is
    sent again after `repeat_seconds` (None: never). `new_id` returns a new identity.
    """

    def __init__(
        self,
        queries: Mapping[str, QueryRules],
        known: Iterable[OpenAlert],
        repeat_seconds: float | None,
        new_id: Callable[[], str],
    ) -> None:
        self._measures = {
            model: Measures(query.rules, query.trigger_seconds, query.is_quarantine) for model, query in queries.items()
        }
        self.open: dict[Key, OpenAlert] = {(alert.model, alert.kind): alert for alert in known}
        self._over_since: dict[Key, datetime] = {}
        self._repeat_seconds = repeat_seconds
        self._new_id = new_id

    def begin(self) -> list[AlertChanged]:
        """Returns the open alerts of earlier runs. Those without a rule, or with another limit, are resolved."""
        return self._continue(list(self.open))

    def adopt(self, known: Iterable[OpenAlert]) -> list[AlertChanged]:
        """Adds open alerts of earlier runs, except those that this run has raised itself, and returns what `begin` does
        for them.
        """
        new = {(alert.model, alert.kind): alert for alert in known if (alert.model, alert.kind) not in self.open}
        self.open |= new
        return self._continue(new)

    def _continue(self, keys: Iterable[Key]) -> list[AlertChanged]:
        changes = []
        for key in keys:
            alert = self.open[key]
            measures = self._measures.get(alert.model)
            rule = None if measures is None else measures.rules.get(alert.kind)
            if rule is not None and alert.limit in (None, rule.limit):  # `failed` has no limit
                changes.append(alert.changed("open"))
                continue
            del self.open[key]
            gone = f"{alert.model} has no rule `{alert.kind}` any more"
            why = gone if rule is None else changed_limit_text(alert.model, alert.kind, rule)
            changes.append(alert.changed("resolved", why))
        return changes

    def observe(self, model: str, event: RunEvent, at: datetime) -> list[AlertChanged]:
        """Returns what changes with an event of the query of `model`, which happened at `at`."""
        if model not in self._measures:
            return []
        self._measures[model].observe(event, at)
        return list(self._evaluate(model, at))

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the queries."""
        return tuple(self._measures)

    def tick(self, model: str, at: datetime, lag: MeasuredLag | None) -> list[AlertChanged]:
        """Returns what changes with the time for a query. `lag` is that of sources whose
        batches do not report it, None if it is unknown.
        """
        if lag is not None:
            self._measures[model].lag = lag
        return list(self._evaluate(model, at))

    def refuse(self, models: Iterable[str], error: str, at: datetime) -> list[AlertChanged]:
        """Returns what changes because the run ended before the queries of `models` started."""
        changes: list[AlertChanged] = []
        for model in models:
            if model in self._measures:
                self._measures[model].refuse(error)
                changes += self._evaluate(model, at)
        return changes

    def _evaluate(self, model: str, at: datetime) -> Iterator[AlertChanged]:
        measures = self._measures[model]
        for kind, rule in measures.rules.items():
            reading = measures.read(kind, at)
            key = (model, kind)
            if reading is None:
                continue
            change = self._follow_open(key, reading, rule, at) if key in self.open else self._raise(key, reading, at)
            if change is not None:
                yield change

    def _raise(self, key: Key, reading: Reading, at: datetime) -> AlertChanged | None:
        """Raises the alert if the condition lasts long enough."""
        if not reading.is_over:
            self._over_since.pop(key, None)
            return None
        model, kind = key
        since = self._over_since.setdefault(key, at)
        measures = self._measures[model]
        rule = measures.rules[kind]
        if (at - since).total_seconds() < rule.for_seconds:
            return None
        message = raised_text(model, kind, reading.value, measures)
        limit = None if kind is AlertKind.FAILED else rule.limit
        alert = OpenAlert(model, kind, self._new_id(), at, at, message, reading.value, limit)
        self.open[key] = alert
        return alert.changed("raised")

    def _follow_open(self, key: Key, reading: Reading, rule: AlertRule, at: datetime) -> AlertChanged | None:
        """Resolves an open alert, or sends it again."""
        alert = self.open[key]
        if reading.is_clear:
            del self.open[key]
            self._over_since.pop(key, None)
            counted = self._measures[alert.model].counted_seconds(at)
            text = resolved_text(alert.model, alert.kind, reading.value, rule, counted)
            return alert.changed("resolved", text, reading.value)
        if self._repeat_seconds is None or (at - alert.sent_at).total_seconds() < self._repeat_seconds:
            return None
        message, value = alert.message, alert.value
        if reading.is_over:
            value = reading.value
            message = raised_text(alert.model, alert.kind, value, self._measures[alert.model])
        self.open[key] = replace(alert, sent_at=at, message=message, value=value)
        return self.open[key].changed("repeated")
