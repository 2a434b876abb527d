"""What the alerts of one query measure, from its events and the clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlstream.errors import Finding
from sqlstream.project.configuration.alerts import PERCENT, AlertKind, AlertRule
from sqlstream.state.runs.events import QueryRestarting, QueryResult, QueryResumed, QueryStarted, RunEvent, Status
from sqlstream.state.runs.progress import BatchProgress, TestCount, epoch_seconds
from sqlstream.state.sources.lag import MeasuredLag, add_lags

RECOVERED_SECONDS = 60.0
"""How long a query that failed in an earlier run must run, without a batch, until it counts as recovered."""

LONGEST_REASON = 500
"""The most characters of the reason of a failure."""

PARTS = 200
"""The most entries of a count, so that a long time with many batches needs little memory."""


@dataclass(frozen=True)
class Reading:
    """What a rule measures now: the `value`, whether the alert must be raised, and whether it can be resolved. Between
    the two limits neither is true.
    """

    value: float
    is_over: bool
    is_clear: bool


class RecentCount:
    """Counts what happened in the last `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._parts: deque[list[float]] = deque()

    def add(self, at: float, count: float) -> None:
        """Adds `count` at the Unix time `at`."""
        if not count:
            return
        if self._parts and at - self._parts[-1][0] < self._seconds / PARTS:
            self._parts[-1][1] += count
        else:
            self._parts.append([at, count])

    def total(self, now: float) -> float:
        """Returns the count of the last `seconds` before the Unix time `now`."""
        while self._parts and now - self._parts[0][0] > self._seconds:
            self._parts.popleft()
        return sum(count for _, count in self._parts)


@dataclass
class Measures:
    """The values of one query with the given `rules`. `trigger_seconds` is the interval of its trigger, if it has one.
    `is_quarantine`: all its rows are quarantined ones.
    `failure` says how it has failed. `lag` is that of sources whose batches do not report it. Times
    are Unix times.
    """

    rules: Mapping[AlertKind, AlertRule]
    trigger_seconds: float | None = None
    is_quarantine: bool = False
    failure: str = ""
    _started_at: float | None = None
    _runs_since: float | None = None
    _rows_at: float | None = None
    _has_rows: bool = False
    _watermark: float | None = None
    _batches: int = 0
    _last: BatchProgress | None = None
    _slow: int = 0
    _quick: int = 0
    _status: Status | None = None
    _counts: dict[AlertKind, RecentCount] = field(default_factory=dict)
    _tests: dict[str, tuple[RecentCount, RecentCount]] = field(default_factory=dict)
    _first_batch_at: float | None = None
    lag: MeasuredLag | None = None

    def observe(self, event: RunEvent, at: datetime) -> None:
        """Adds an event of the query, which happened at `at`."""
        now = at.timestamp()
        if isinstance(event, QueryStarted):
            self._started_at = self._runs_since = self._rows_at = now
        elif isinstance(event, QueryResumed):
            self._runs_since = now
        elif isinstance(event, QueryRestarting):
            self._runs_since = None
            self._count(AlertKind.RESTARTS_OVER, now, 1)
        elif isinstance(event, BatchProgress):
            self._add_batch(event, now)
        elif isinstance(event, QueryResult):
            self._status = event.status
            self.failure = "has failed" if event.finding is None else f"has failed: {_reason(event.finding)}"

    def refuse(self, error: str) -> None:
        """The run ended before the query started, because of `error`."""
        self._status, self.failure = Status.ERROR, f"did not start: {error}"

    def counted_seconds(self, at: datetime) -> float:
        """Returns for how long events have been counted at `at`."""
        return 0.0 if self._started_at is None else at.timestamp() - self._started_at

    @property
    def last_batch_seconds(self) -> float | None:
        """The duration of the last batch."""
        return None if self._last is None else self._last.duration_ms / 1000

    def _add_batch(self, batch: BatchProgress, now: float) -> None:
        self._batches += 1
        self._first_batch_at = now if self._first_batch_at is None else self._first_batch_at
        self._last = batch
        quarantined = (batch.rows_out or 0) if self.is_quarantine else batch.quarantined_rows
        self._count(AlertKind.QUARANTINED_OVER, now, quarantined)
        if batch.rows_out or (batch.rows_out is None and batch.rows_in != 0):
            self._rows_at, self._has_rows = now, True
        watermark = epoch_seconds(batch.watermark)
        self._watermark = self._watermark if watermark is None else watermark
        self._count(AlertKind.LATE_ROWS_OVER, now, batch.late_rows)
        self._count(AlertKind.EXPECTATION_FAILED, now, batch.violations)
        self._count_tests(batch.data_tests, now)
        if self.trigger_seconds is not None:
            is_slow = batch.duration_ms / 1000 > self.trigger_seconds
            self._slow, self._quick = (self._slow + 1, 0) if is_slow else (0, self._quick + 1)

    def _count(self, kind: AlertKind, at: float, count: float) -> None:
        rule = self.rules.get(kind)
        if rule is not None:
            self._counts.setdefault(kind, RecentCount(rule.per_seconds)).add(at, count)

    def _count_tests(self, tests: Mapping[str, TestCount], now: float) -> None:
        """Adds the rows that were tested, and those that violated each test."""
        rule = self.rules.get(AlertKind.EXPECTATION_FAILED)
        if rule is None or rule.unit != PERCENT:
            return
        for name, count in tests.items():
            both = RecentCount(rule.per_seconds), RecentCount(rule.per_seconds)
            tested, failed = self._tests.setdefault(name, both)
            tested.add(now, count["passed"] + count["failed"])
            failed.add(now, count["failed"])

    def _worst_percent(self, now: float) -> float | None:
        """Returns how many of a hundred rows violated the data test with the most violations, None before a batch."""
        counts = ((tested.total(now), failed.total(now)) for tested, failed in self._tests.values())
        least = 0.0 if self._batches else None
        return max((100 * failed / tested for tested, failed in counts if tested), default=least)

    def read(self, kind: AlertKind, at: datetime) -> Reading | None:
        """Returns what the rule of `kind` measures at `at`, None if there is nothing to measure."""
        rule, now = self.rules[kind], at.timestamp()
        if kind is AlertKind.FAILED:
            return self._read_failed(now)
        if kind is AlertKind.LAG_OVER and self._status is Status.SUCCESS:
            return Reading(0.0, is_over=False, is_clear=True)  # it ends by itself when it has read everything
        if kind is AlertKind.WATERMARK_AHEAD and self._watermark is not None:
            return _compared(
                max(self._watermark - now, 0.0), rule
            )  # after the end of the query too: the state keeps it
        if self._status is not None or self._rows_at is None:
            return None  # it has ended, or not started
        if kind is AlertKind.BATCH_SLOWER:
            return self._read_slow(rule)
        value = self._value(kind, rule, now)
        if value is None:
            return None
        reading = _compared(value, rule)
        if kind is AlertKind.LAG_OVER and self._is_lag_early:  # the first batch reads some of it
            return replace(reading, is_over=False)
        if kind is AlertKind.NO_ROWS_FOR and not self._has_rows:  # a start of the query is no row
            return replace(reading, is_clear=False)
        return reading

    @property
    def _is_lag_early(self) -> bool:
        """Whether `lag` is from before the end of the first batch of the run."""
        return self.lag is not None and (self._first_batch_at is None or self.lag.at < self._first_batch_at)

    def _read_failed(self, now: float) -> Reading:
        has_run = self._runs_since is not None and now - self._runs_since >= RECOVERED_SECONDS
        is_well = self._status in (Status.SUCCESS, Status.STOPPED)
        is_over = self._status is Status.ERROR
        is_clear = not is_over and (is_well or has_run or self._batches > 0)
        return Reading(float(is_over), is_over, is_clear)

    def _read_slow(self, rule: AlertRule) -> Reading | None:
        if self.trigger_seconds is None or not self._batches:
            return None
        return Reading(float(self._slow), self._slow >= rule.limit, self._quick >= rule.limit)

    def _value(self, kind: AlertKind, rule: AlertRule, now: float) -> float | None:
        """Returns the value of a kind that compares a number with a limit."""
        if kind is AlertKind.NO_ROWS_FOR:
            return None if self._rows_at is None else now - self._rows_at
        if kind is AlertKind.WATERMARK_BEHIND:
            return None if self._watermark is None else max(now - self._watermark, 0.0)
        if kind is AlertKind.LAG_OVER:
            return self._left_to_read(rule.unit)
        if kind is AlertKind.STATE_ROWS_OVER:
            rows = None if self._last is None else self._last.state_rows
            return None if rows is None else float(rows)
        if kind is AlertKind.EXPECTATION_FAILED and rule.unit == PERCENT:
            return self._worst_percent(now)
        count = self._counts.get(kind)
        total = 0.0 if count is None else count.total(now)
        return total if total or self._batches else None  # before its first batch, nothing shows that it is well

    def _left_to_read(self, unit: str) -> float | None:
        reported = {} if self._last is None else self._last.lag_by_unit
        measured = () if self.lag is None else self.lag.sources.values()
        found = add_lags((reported, *measured))
        return float(found[unit]) if unit in found else None


def _reason(finding: Finding) -> str:
    text, failure = f"{finding.message}; {finding.why}", finding.failure
    place = None if failure is None else failure.file or failure.position
    return (f"{text}; in {place}" if place and place not in text else text)[:LONGEST_REASON]


def _compared(value: float, rule: AlertRule) -> Reading:
    return Reading(value, value > rule.limit, value <= rule.resolve_at)
