"""The sentences of alerts."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.project.alerts import AlertKind, AlertRule
from sqlstream.state.alerts.measures import Measures

_UNITS = (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0))


def raised_text(model: str, kind: AlertKind, value: float, query: Measures) -> str:
    """Returns why the alert is raised, as a sentence without a full stop."""
    rule = query.rules[kind]
    if kind is AlertKind.FAILED:
        return f"{model} {query.failure}"
    if kind is AlertKind.BATCH_SLOWER:
        trigger, last = span_text(query.trigger_seconds or 0.0), span_text(query.last_batch_seconds or 0.0)
        slow = f"{_count(value, 'batch', 'batches')} of {model} in a row took longer than the trigger, {trigger}"
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
        AlertKind.LAG_OVER: f"{model} has {_count(value, _unit(rule))} left to read",
        AlertKind.WATERMARK_BEHIND: f"the watermark of {model} is {span_text(value)} behind the clock",
        AlertKind.WATERMARK_AHEAD: f"the watermark of {model} is {span_text(value)} ahead of the clock",
        AlertKind.RESTARTS_OVER: f"{model} had {_count(value, 'restart')} {recently}",
        AlertKind.LATE_ROWS_OVER: f"{model} dropped {_count(value, 'late row')} {recently}",
        AlertKind.STATE_ROWS_OVER: f"the state of {model} has {_count(value, 'row')}",
        AlertKind.QUARANTINED_OVER: f"{model} quarantined {_count(value, 'record')} {recently}",
    }
    return sentences[kind]


def _limit(kind: AlertKind, rule: AlertRule) -> str:
    is_time = kind in (AlertKind.NO_ROWS_FOR, AlertKind.WATERMARK_BEHIND, AlertKind.WATERMARK_AHEAD)
    return span_text(rule.limit) if is_time else f"{rule.limit:,.0f}"


def _unit(rule: AlertRule) -> str:
    return rule.unit.removesuffix("s")


def _count(value: float, one: str, many: str = "") -> str:
    return f"{value:,.0f} {one if value == 1 else many or one + 's'}"


def span_text(seconds: float) -> str:
    """Returns a time in its largest unit with at most one decimal, such as `1.5 hours`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    name, size = next(((name, size) for name, size in _UNITS if round(seconds / size, 1) >= 1), _UNITS[-1])
    number = f"{seconds / size:.1f}".removesuffix(".0")
    return f"{number} {name}{'' if number == '1' else 's'}"
