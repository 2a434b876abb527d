"""What receivers of alerts get: their sentences, in sqlstream's JSON, Slack's, PagerDuty's, and a row of a sink."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import Any
from urllib.parse import quote

from sqlstream.app.alerts.measures import Measures
from sqlstream.compiler.own_rows import ALERT_COLUMNS
from sqlstream.numbers import plural, span_text
from sqlstream.project.configuration.alerts import PERCENT, AlertKind, AlertRule
from sqlstream.state.runs.events import AlertChanged
from sqlstream.state.runs.progress import moment

TEST = "test"
"""The kind and the state of a message that `sqlstream debug --alerts` sends."""

_SEVERITIES = {AlertKind.FAILED: "critical", AlertKind.NO_ROWS_FOR: "error", AlertKind.RESTARTS_OVER: "error"}
"""PagerDuty's words for kinds that are more than a warning."""

AlertRow = tuple[object, ...]

ALERTS_SCHEMA = ", ".join(f"{name} {type_}" for name, type_, _ in ALERT_COLUMNS)
"""The columns of the rows in Spark's DDL."""


@dataclass(frozen=True)
class AlertMessage:
    """A change of an alert, as a receiver gets it. `id` is the same whenever the message is sent again. `time` is when
    it changed and `since` when it was raised (UTC, ISO 8601). `invocation_id` is the run that noticed it. `url` is the
    page of the query, if the target says where that is.
    """

    id: str
    time: str
    project: str
    target: str
    invocation_id: str
    model: str
    alert: str
    state: str
    message: str
    alert_id: str
    since: str
    value: float | None
    limit: float | None
    url: str | None = None

    @property
    def severity(self) -> str:
        """How urgent the alert is, in PagerDuty's words."""
        return "info" if self.alert == TEST else _SEVERITIES.get(AlertKind(self.alert), "warning")

    @property
    def dedup_key(self) -> str:
        """Names the condition: the same in every run."""
        return f"sqlstream/{self.project}/{self.target}/{self.model}/{self.alert}"

    def as_json(self) -> dict[str, Any]:
        """Returns the message in sqlstream's form."""
        return {**asdict(self), "severity": self.severity, "dedup_key": self.dedup_key}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> AlertMessage:
        """Returns the message from its JSON. Raises: KeyError for another form."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if name != "url"}, url=values.get("url"))


@dataclass(frozen=True)
class RunNames:
    """The names of a run in its messages, and the URL of its page."""

    project: str
    target: str
    invocation_id: str
    ui_url: str | None = None

    def page_of(self, model: str) -> str | None:
        """Returns the URL of the page of a query, None if it is not known."""
        if self.ui_url is None:
            return None
        return f"{self.ui_url.rstrip('/')}/#/query/{quote(model, safe='')}?target={quote(self.target, safe='')}"


def message_of(change: AlertChanged, run: RunNames, identity: str, time: str) -> AlertMessage:
    """Returns the message about `change`, which happened at `time`."""
    return AlertMessage(
        id=identity,
        time=time,
        project=run.project,
        target=run.target,
        invocation_id=run.invocation_id,
        model=change.model,
        alert=change.alert,
        state=change.state,
        message=change.message,
        alert_id=change.id,
        since=change.since,
        value=change.value,
        limit=change.limit,
        url=run.page_of(change.model),
    )


def payload(message: AlertMessage, form: str, routing_key: str = "") -> dict[str, Any]:
    """Returns the JSON of a webhook in the form `json`, `slack` or `pagerduty`."""
    if form == "slack":
        return _slack(message)
    return _pagerduty(message, routing_key) if form == "pagerduty" else message.as_json()


def _title(message: AlertMessage) -> str:
    word = {"raised": "Alert", "repeated": "Still open", "resolved": "Resolved"}.get(message.state, "Test")
    return f"{word}: {message.message}"


def _slack(message: AlertMessage) -> dict[str, Any]:
    """Returns a message for an incoming webhook: https://docs.slack.dev/messaging/formatting-message-text."""
    color = {"resolved": ":large_green_circle:", TEST: ":white_circle:"}.get(message.state, ":red_circle:")
    text = html.escape(_title(message), quote=False)  # Slack knows no other entities
    facts = f"{message.project} · target {message.target} · `{message.alert}` · since {message.since}"
    if message.url is not None:
        facts += f" · <{html.escape(message.url, quote=False)}|{html.escape(message.model, quote=False)}>"
    return {
        "text": text,
        "blocks": [
            # Slack takes at most 3,000 characters, PagerDuty 1,024
            {"type": "section", "text": {"type": "mrkdwn", "text": f"{color} {text[:2_900]}"}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": facts}]},
        ],
    }


def _pagerduty(message: AlertMessage, routing_key: str) -> dict[str, Any]:
    """Returns an event for the Events API v2, which joins events by `dedup_key`:
    https://developer.pagerduty.com/docs/send-alert-event.
    """
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if message.state == "resolved" else "trigger",
        "dedup_key": message.dedup_key,
    }
    if message.state == "resolved":
        return event
    about = {
        "summary": message.message[:1_024],
        "source": f"sqlstream {message.project}/{message.target}",
        "severity": message.severity,
        "timestamp": message.time,
        "component": message.model,
        "class": message.alert,
        "custom_details": message.as_json(),
    }
    if message.url is not None:
        event["links"] = [{"href": message.url, "text": f"The page of {message.model}"}]
    return {**event, "payload": about}


def alert_row(message: AlertMessage) -> AlertRow:
    """Returns the row of a message, with the columns of `ALERT_COLUMNS`."""
    time = moment(message.time)
    values = {
        **message.as_json(),
        "time": time,
        "date": None if time is None else time.astimezone(UTC).date(),
        "since": moment(message.since),
        "message_id": message.id,
        "value": None if message.value is None else float(message.value),
        "threshold": None if message.limit is None else float(message.limit),
    }
    return tuple(values[name] for name, _, _ in ALERT_COLUMNS)


def raised_text(model: str, kind: AlertKind, value: float, query: Measures) -> str:
    """Returns why the alert is raised, as a sentence without a full stop."""
    rule = query.rules[kind]
    if kind is AlertKind.FAILED:
        return f"{model} {query.failure}"
    if kind is AlertKind.BATCH_SLOWER:
        trigger, last = span_text(query.trigger_seconds or 0.0), span_text(query.last_batch_seconds or 0.0)
        slow = f"{plural(round(value), 'batch', 'batches')} of {model} in a row took longer than the trigger, {trigger}"
        return f"{slow}; the last one took {last}"
    return f"{_measured(model, kind, value, rule)}; the limit is {_limit(kind, rule)}"


def resolved_text(model: str, kind: AlertKind, value: float, rule: AlertRule, counted_seconds: float) -> str:
    """Returns why the alert is resolved, as a sentence without a full stop. `counted_seconds` is how long this run has
    counted: counts begin at 0 in each run.
    """
    if kind is AlertKind.FAILED:
        return f"{model} runs again"
    if kind is AlertKind.NO_ROWS_FOR:
        return f"{model} emits rows again"
    if kind is AlertKind.BATCH_SLOWER:
        return f"the batches of {model} are shorter than its trigger again"
    return _measured(model, kind, value, rule, is_whole=counted_seconds >= rule.per_seconds)


def changed_limit_text(model: str, kind: AlertKind, rule: AlertRule) -> str:
    """Returns that an open alert ends because the limit of its rule has changed."""
    return f"the limit of `{kind}` of {model} is now {_limit(kind, rule)}"


def _measured(model: str, kind: AlertKind, value: float, rule: AlertRule, *, is_whole: bool = True) -> str:
    recently = f"in the last {span_text(rule.per_seconds).removeprefix('1 ')}" if is_whole else "since this run started"
    sentences: Mapping[AlertKind, str] = {
        AlertKind.NO_ROWS_FOR: f"{model} has emitted no rows for {span_text(value)}",
        AlertKind.LAG_OVER: f"{model} has a lag of {plural(round(value), rule.unit.removesuffix('s'))}",
        AlertKind.WATERMARK_BEHIND: f"the watermark of {model} is {span_text(value)} behind the clock",
        AlertKind.WATERMARK_AHEAD: f"the watermark of {model} is {span_text(value)} ahead of the clock",
        AlertKind.RESTARTS_OVER: f"{model} had {plural(round(value), 'restart')} {recently}",
        AlertKind.LATE_ROWS_OVER: f"{model} dropped {plural(round(value), 'late row')} {recently}",
        AlertKind.EXPECTATION_FAILED: f"data tests of {model} had {plural(round(value), 'violation')} {recently}",
        AlertKind.STATE_ROWS_OVER: f"the state of {model} has {plural(round(value), 'row')}",
        AlertKind.QUARANTINED_OVER: f"{model} quarantined {plural(round(value), 'row')} {recently}",
    }
    if rule.unit == PERCENT:
        return f"{value:.3g} % of the rows of {model} violated a data test {recently}"
    return sentences[kind]


def _limit(kind: AlertKind, rule: AlertRule) -> str:
    is_time = kind in (AlertKind.NO_ROWS_FOR, AlertKind.WATERMARK_BEHIND, AlertKind.WATERMARK_AHEAD)
    if rule.unit == PERCENT:
        return f"{rule.limit:g} %"
    return span_text(rule.limit) if is_time else f"{rule.limit:,.0f}"
