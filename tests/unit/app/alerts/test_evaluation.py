"""When alerts are raised, sent again and resolved, with an explicit clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from sqlstream import ProjectRequest, compile_models
from sqlstream.app.alerts.evaluation import AlertBook, OpenAlert, QueryRules
from sqlstream.app.alerts.measures import PARTS, RecentCount
from sqlstream.app.alerts.run_alerts import query_rules
from sqlstream.errors import Finding
from sqlstream.numbers import span_text
from sqlstream.project.configuration.alerts import PERCENT, AlertKind, AlertRule
from sqlstream.state.runs.events import (
    AlertChanged,
    QueryRestarting,
    QueryResult,
    QueryResumed,
    QueryStarted,
    RunEvent,
    Status,
)
from sqlstream.state.runs.progress import BatchProgress, SourceProgress, StateProgress
from sqlstream.state.sources.lag import MeasuredLag

START = datetime(2024, 1, 1, tzinfo=UTC)
STARTED = QueryStarted("orders", 1, 1, "lake", "10 seconds")
FINDING = Finding("query-failed", "the query failed", "planted", "fix it")


def batch(
    *,
    rows_out: int | None = 1,
    late: int = 0,
    state: int | None = None,
    watermark: datetime | None = None,
    milliseconds: int = 100,
    lag: Mapping[str, int] | None = None,
    model: str = "orders",
) -> BatchProgress:
    """Returns a batch with the values that alerts look at."""
    sources = () if lag is None else (SourceProgress("s", "", None, None, 1, None, None, lag),)
    return BatchProgress(
        model,
        0,
        "2024-01-01T00:00:00Z",
        milliseconds,
        rows_in=1,
        rows_out=rows_out,
        watermark=None if watermark is None else watermark.isoformat(),
        state=None if state is None and not late else StateProgress((), state or 0, 0, 0, 0, late),
        sources=sources,
    )


def ended(status: Status) -> QueryResult:
    """Returns the end of the query."""
    finding = FINDING if status is Status.ERROR else None
    return QueryResult("orders", "model.shop.orders", 1, 1, status, 0, 0, 0, 1.0, None, None, finding)


@dataclass
class Clock:
    """A book of the alerts of one query, and its clock in seconds since the start."""

    rules: Mapping[AlertKind, AlertRule]
    known: tuple[OpenAlert, ...] = ()
    repeat_seconds: float | None = None
    trigger_seconds: float | None = None
    is_quarantine: bool = False
    lags: dict[str, MeasuredLag] = field(default_factory=dict)
    book: AlertBook = field(init=False)

    def __post_init__(self) -> None:
        numbers = count()
        query = QueryRules(self.rules, self.trigger_seconds, self.is_quarantine)
        self.book = AlertBook({"orders": query}, self.known, self.repeat_seconds, lambda: f"id{next(numbers)}")

    def at(self, seconds: float, event: RunEvent | None = None, model: str = "orders") -> list[str]:
        """Returns the states that alerts get at a time, by an event or by the time alone."""
        return [change.state for change in self.changes(seconds, event, model)]

    def changes(self, seconds: float, event: RunEvent | None = None, model: str = "orders") -> list[AlertChanged]:
        """Returns the changes at a time."""
        now = START + timedelta(seconds=seconds)
        if event is None:
            return self.book.tick(model, now, self.lags.get(model))
        return self.book.observe(model, event, now)

    def leave(self, seconds: float, files: int) -> None:
        """Sets the files that the two sources had left at a time: `files` and 3."""
        sources = {"shop.raw": {"files": files, "bytes": 100 * files}, "shop.more": {"files": 3}}
        self.lags = {"orders": MeasuredLag((START + timedelta(seconds=seconds)).timestamp(), sources)}


def rule(limit: float, resolve_at: float | None = None, per_seconds: float = 0.0) -> AlertRule:
    """Returns a rule without a margin."""
    return AlertRule(limit, limit if resolve_at is None else resolve_at, per_seconds=per_seconds)


def known(kind: AlertKind) -> OpenAlert:
    """Returns an alert that an earlier run left open."""
    before = START - timedelta(hours=1)
    return OpenAlert("orders", kind, "old", before, before, "it was bad")


def test_no_rows_for_counts_from_the_last_rows() -> None:
    """A query without rows raises an alert by the clock alone, batches without rows do not resolve it, and rows do."""
    clock = Clock({AlertKind.NO_ROWS_FOR: rule(60, 54)})
    assert clock.at(0) == []  # it has not started
    assert clock.at(0, STARTED) == []
    assert clock.at(50, batch()) == []
    assert clock.at(109) == []
    assert clock.at(111) == ["raised"]
    assert clock.at(112, batch(rows_out=0)) == []
    (change,) = clock.changes(113, batch())
    assert (change.state, change.id, change.message) == ("resolved", "id0", "orders emits rows again")
    assert clock.at(180) == ["raised"]
    assert clock.book.open["orders", AlertKind.NO_ROWS_FOR].id == "id1"


def test_rows_that_spark_does_not_count_are_rows() -> None:
    """If Spark does not count the rows of a batch with input, the batch counts as one with rows."""
    clock = Clock({AlertKind.NO_ROWS_FOR: rule(60)})
    clock.at(0, STARTED)
    clock.at(50, batch(rows_out=None))
    assert clock.at(100) == []


def test_a_margin_keeps_an_alert_open() -> None:
    """A value between the two limits neither raises nor resolves an alert."""
    clock = Clock({AlertKind.STATE_ROWS_OVER: rule(10, 5)})
    clock.at(0, STARTED)
    assert clock.at(1, batch(state=10)) == []
    assert clock.at(2, batch(state=11)) == ["raised"]
    assert clock.at(3, batch(state=6)) == []
    assert clock.at(4, batch(state=11)) == []
    assert clock.at(5, batch(state=5)) == ["resolved"]
    assert clock.at(6, batch(state=9)) == []


def test_for_needs_the_condition_without_a_break() -> None:
    """With `for`, the value must be over the limit all the time; the clock alone raises the alert."""
    clock = Clock({AlertKind.LAG_OVER: AlertRule(100, 90, 60, unit="records")})
    clock.at(0, STARTED)
    assert clock.at(1, batch(lag={"records": 200, "files": 9})) == []
    assert clock.at(30, batch(lag={"records": 100})) == []
    assert clock.at(40, batch(lag={"records": 300})) == []
    assert clock.at(90) == []
    (change,) = clock.changes(100)
    assert change.message == "orders has a lag of 300 records; the limit is 100"
    assert clock.at(101, batch(lag={"files": 1})) == []  # not reported: unknown
    assert clock.at(102, batch(lag={"records": 0})) == ["resolved"]


def test_files_are_counted_between_batches() -> None:
    """What the sources had left after the first batch of the run counts, also while no batch runs. A query that ends by
    itself has read everything.
    """
    clock = Clock({AlertKind.LAG_OVER: AlertRule(10, 9, unit="files")})
    clock.at(0, STARTED)
    clock.leave(0, 20)  # what the first batch reads
    assert clock.at(1) == []
    assert clock.at(2, batch()) == []
    assert clock.at(3) == []
    clock.leave(4, 8)
    assert clock.at(5) == ["raised"]
    clock.leave(9, 0)
    (change,) = clock.changes(10)
    assert (change.state, change.value) == ("resolved", 3)
    clock.leave(11, 8)
    assert clock.at(12) == ["raised"]
    assert clock.at(13, ended(Status.SUCCESS)) == ["resolved"]


def test_a_run_without_a_batch_resolves_an_open_lag() -> None:
    """Nothing is left, so the alert of an earlier run is resolved, although no batch shows it."""
    clock = Clock({AlertKind.LAG_OVER: AlertRule(10, 9, unit="files")}, (known(AlertKind.LAG_OVER),))
    clock.at(0, STARTED)
    clock.leave(1, 20)
    assert clock.at(2) == []
    clock.leave(6, 0)
    assert clock.at(7) == ["resolved"]


def test_the_watermark_is_compared_with_the_clock() -> None:
    """A watermark that stands still falls behind; without a watermark nothing is measured."""
    clock = Clock({AlertKind.WATERMARK_BEHIND: rule(600, 540)})
    clock.at(0, STARTED)
    assert clock.at(5_000, batch()) == []
    assert clock.at(5_001, batch(watermark=START + timedelta(seconds=4_900))) == []
    assert clock.at(5_501) == ["raised"]
    assert clock.at(5_502, batch()) == []
    assert clock.at(5_503, batch(watermark=START + timedelta(seconds=5_500))) == ["resolved"]


def test_a_watermark_ahead_of_the_clock_stays_an_alert_after_the_end() -> None:
    """A watermark ahead of the clock raises an alert, also one outside the calendar, and after its query has ended."""
    far = replace(batch(), watermark="+58133-08-07T07:50:00.000Z")
    for event in (batch(watermark=START + timedelta(days=2)), far):
        clock = Clock({AlertKind.WATERMARK_AHEAD: rule(3_600)})
        clock.at(0, STARTED)
        assert clock.at(1, batch(watermark=START)) == []
        assert clock.at(2, event) == ["raised"]
        assert clock.at(3, ended(Status.SUCCESS)) == []
        assert clock.at(90_000, batch(watermark=START)) == ["resolved"]


@pytest.mark.parametrize("kind", [AlertKind.LATE_ROWS_OVER, AlertKind.RESTARTS_OVER])
def test_counts_are_of_a_sliding_time(kind: AlertKind) -> None:
    """What is counted ages out, so an alert is resolved by the clock alone."""
    clock = Clock({kind: rule(1, 0, per_seconds=100)})
    happened = batch(late=1) if kind is AlertKind.LATE_ROWS_OVER else QueryRestarting("orders", 1, 3, 1.0, FINDING)
    clock.at(0, STARTED)
    clock.at(0, batch())
    assert clock.at(10, happened) == []
    clock.at(11, QueryResumed("orders", 1))
    assert clock.at(60, happened) == ["raised"]
    clock.at(61, QueryResumed("orders", 2))
    assert clock.at(120) == []
    assert clock.at(161) == ["resolved"]


def test_the_share_of_violations_is_that_of_the_worst_test() -> None:
    """The percentage of the test with the most violations counts, in a sliding time, and is resolved without rows."""
    limit = AlertRule(5.0, 4.5, per_seconds=60, unit=PERCENT)
    clock = Clock({AlertKind.EXPECTATION_FAILED: limit})

    def tested(**failed: int) -> BatchProgress:
        """Returns a batch of 100 rows, of which so many failed each test."""
        return replace(batch(), data_tests={name: {"passed": 100 - n, "failed": n} for name, n in failed.items()})

    clock.at(0, STARTED)
    assert clock.at(1, tested(one=3, other=4)) == []
    assert clock.at(2, tested(one=3, other=6)) == []
    (change,) = clock.changes(3, tested(one=0, other=8))
    assert change.message == "6 % of the rows of orders violated a data test in the last minute; the limit is 5 %"
    assert clock.at(4, tested(one=0, other=0)) == ["resolved"]
    assert clock.at(63, tested(one=0, other=90)) == ["raised"]
    assert clock.at(125, batch()) == ["resolved"]


def test_the_rows_of_a_quarantine_are_counted() -> None:
    """The rows that a quarantine of a source writes count in a sliding time, and those that data tests of a model
    quarantine, but not its good rows.
    """
    for is_quarantine, bad in ((True, batch(rows_out=2)), (False, replace(batch(rows_out=9), quarantined_rows=2))):
        clock = Clock({AlertKind.QUARANTINED_OVER: rule(0, per_seconds=60)}, is_quarantine=is_quarantine)
        clock.at(0, STARTED)
        (change,) = clock.changes(2, bad)
        assert change.message.startswith("orders quarantined 2 rows in the last minute")
        assert clock.at(63) == ["resolved"]


def test_each_quarantine_has_one_rule(tmp_path: Path) -> None:
    """A model with a quarantine has the rule, and a source's quarantine has the lowest of its readers; a model that
    only reads such a source has none.
    """
    source = "{name: t, format: json, path: in, schema: id int, on_corrupt: quarantine, quarantine_sink: out}"
    model = "{{ config(sink='out', alerts={'quarantined_over': LIMIT}) }} select id from {{ source('s', 't') }}"
    files = {
        "project.yml": "name: shop\n",
        "sources.yml": f"sources: [{{name: s, tables: [{source}]}}]\n",
        "sinks.yml": "sinks: [{name: out, format: noop}]\n",
        "models/both.sql": model.replace("LIMIT", "5, 'no_rows_for': '1 hour'").replace(
            "out',", "out', quarantine_sink='out',"
        ),
        "models/reads.sql": model.replace("LIMIT", "3"),
        "models/_.yml": "models: [{name: both, columns: [{name: id, data_tests: [not_null: {on_violation: quarantine}]}]}]",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    loaded = compile_models(ProjectRequest(tmp_path)).loaded
    assert not loaded.warnings
    found = query_rules(loaded.compiled, loaded.compiled.models.values())
    limits = {name: query.rules.get(AlertKind.QUARANTINED_OVER) for name, query in found.items()}
    assert {name: each and each.limit for name, each in limits.items()} == {
        "both": 5,
        "reads": None,
        "s__t__corrupt": 3,
    }
    assert [name for name, query in found.items() if query.is_quarantine] == ["s__t__corrupt"]


def test_slow_batches_must_follow_each_other() -> None:
    """Only batches in a row that are slower than the trigger count, and as many quick ones resolve the alert."""
    clock = Clock({AlertKind.BATCH_SLOWER: rule(2)}, trigger_seconds=1.0)
    clock.at(0, STARTED)
    slow, quick = batch(milliseconds=1_500), batch(milliseconds=1_000)
    assert [clock.at(number, each) for number, each in enumerate([slow, quick, slow])] == [[], [], []]
    (change,) = clock.changes(4, slow)
    assert change.message == (
        "2 batches of orders in a row took longer than the trigger, 1 second; the last one took 1.5 seconds"
    )
    assert [clock.at(number, each) for number, each in enumerate([quick, slow, quick])] == [[], [], []]
    assert clock.at(9, quick) == ["resolved"]


def test_a_failure_is_resolved_by_the_next_run() -> None:
    """`failed` is raised at the end, known in the next run, and resolved by a batch."""
    clock = Clock({AlertKind.FAILED: rule(0)})
    clock.at(0, STARTED)
    (change,) = clock.changes(1, ended(Status.ERROR))
    assert (change.state, change.message) == ("raised", "orders has failed: the query failed; planted")
    assert clock.at(500) == []

    later = Clock({AlertKind.FAILED: rule(0)}, (known(AlertKind.FAILED),))
    assert [change.state for change in later.book.begin()] == ["open"]
    assert later.at(0) == []
    assert later.at(1, STARTED) == []
    (change,) = later.changes(2, batch())
    assert (change.state, change.id) == ("resolved", "old")


@pytest.mark.parametrize(
    ("status", "states"),
    [(Status.SUCCESS, ["resolved"]), (Status.STOPPED, ["resolved"]), (Status.INTERRUPTED, []), (Status.ERROR, [])],
)
def test_the_end_of_a_query_resolves_a_failure(status: Status, states: list[str]) -> None:
    """A query that ends without a failure has recovered, also without a batch."""
    clock = Clock({AlertKind.FAILED: rule(0)}, (known(AlertKind.FAILED),))
    clock.at(0, STARTED)
    assert clock.at(1, ended(status)) == states


def test_a_query_that_runs_for_a_minute_has_recovered() -> None:
    """A query without new data resolves its failure after a minute without a failure."""
    clock = Clock({AlertKind.FAILED: rule(0)}, (known(AlertKind.FAILED),))
    clock.at(0, STARTED)
    clock.at(30, QueryRestarting("orders", 1, 3, 1.0, FINDING))
    clock.at(31, QueryResumed("orders", 1))
    assert clock.at(60) == []
    assert clock.at(91) == ["resolved"]


def test_a_refused_run_is_a_failure() -> None:
    """Queries that the run does not start have failed."""
    clock = Clock({AlertKind.FAILED: rule(0)})
    (change,) = clock.book.refuse(["orders", "unknown"], "its state does not fit", START)
    assert change.message == "orders did not start: its state does not fit"


def test_an_open_alert_is_repeated() -> None:
    """An open alert is sent again after the interval, also if an earlier run sent it last."""
    clock = Clock({AlertKind.STATE_ROWS_OVER: rule(10)}, repeat_seconds=7_200)
    clock.at(0, STARTED)
    assert clock.at(1, batch(state=11)) == ["raised"]
    assert clock.at(7_000) == []
    assert clock.at(7_201) == ["repeated"]
    assert clock.at(7_202) == []
    assert clock.at(14_401) == ["repeated"]

    before = Clock({AlertKind.STATE_ROWS_OVER: rule(10)}, (known(AlertKind.STATE_ROWS_OVER),), repeat_seconds=7_200)
    before.at(0, STARTED)
    assert before.at(1, batch(state=11)) == []
    assert before.at(3_601) == ["repeated"]


def test_an_alert_without_its_rule_is_resolved() -> None:
    """Alerts of rules or models that do not exist any more are resolved at the start."""
    gone = OpenAlert("gone", AlertKind.FAILED, "x", START, START, "")
    clock = Clock({AlertKind.NO_ROWS_FOR: rule(60)}, (known(AlertKind.FAILED), gone))
    assert [(change.model, change.state) for change in clock.book.begin()] == [
        ("orders", "resolved"),
        ("gone", "resolved"),
    ]
    assert clock.book.open == {}


def test_an_alert_with_another_limit_is_resolved() -> None:
    """If the limit of a rule has changed since an earlier run, its open alert ends at the start, with the new limit."""
    late = replace(known(AlertKind.LATE_ROWS_OVER), limit=10.0)
    same = Clock({AlertKind.LATE_ROWS_OVER: rule(10, per_seconds=60)}, (late,))
    other = Clock({AlertKind.LATE_ROWS_OVER: rule(20, per_seconds=60)}, (late,))

    assert [change.state for change in same.book.begin()] == ["open"]
    (change,) = other.book.begin()
    assert (change.state, change.message) == ("resolved", "the limit of `late_rows_over` of orders is now 20")
    assert other.book.open == {}


def test_a_count_that_began_in_this_run_says_so() -> None:
    """A count of the last minute that a new run has begun is not called that of the last minute."""
    clock = Clock({AlertKind.LATE_ROWS_OVER: rule(0, per_seconds=60)}, (known(AlertKind.LATE_ROWS_OVER),))
    clock.at(0, STARTED)

    (change,) = clock.changes(10, batch(rows_out=1))

    assert change.message == "orders dropped 0 late rows since this run started"


def test_a_repeated_alert_has_the_value_of_its_message() -> None:
    """Between its two limits, an open alert is repeated as it was when it was last over the limit."""
    clock = Clock({AlertKind.STATE_ROWS_OVER: rule(10, 5)}, repeat_seconds=60)
    clock.at(0, STARTED)
    clock.at(1, batch(state=12))

    (change,) = clock.changes(62, batch(state=8))

    assert (change.state, change.value, "12 rows" in change.message) == ("repeated", 12, True)


def test_an_alert_of_an_earlier_run_waits_for_a_batch() -> None:
    """What is counted begins at 0 in each run; only a batch shows that the query is well again."""
    clock = Clock({AlertKind.LATE_ROWS_OVER: rule(1, 0, per_seconds=60)}, (known(AlertKind.LATE_ROWS_OVER),))
    clock.at(0, STARTED)
    assert clock.at(100) == []
    assert clock.at(101, batch()) == ["resolved"]


def test_a_start_is_no_row() -> None:
    """An alert of an earlier run about missing rows stays open until this run emits rows, and is not raised twice."""
    clock = Clock({AlertKind.NO_ROWS_FOR: rule(60, 54)}, (known(AlertKind.NO_ROWS_FOR),))
    clock.at(0, STARTED)
    assert clock.at(1, batch(rows_out=0)) == []
    assert clock.at(100) == []
    assert clock.at(101, batch()) == ["resolved"]


def test_an_ended_query_changes_nothing_but_failed() -> None:
    """Alerts stay open when their query ends; the next run decides."""
    clock = Clock({AlertKind.STATE_ROWS_OVER: rule(10), AlertKind.NO_ROWS_FOR: rule(60)})
    clock.at(0, STARTED)
    assert clock.at(1, batch(state=11)) == ["raised"]
    assert clock.at(2, ended(Status.STOPPED)) == []
    assert clock.at(100) == []


def test_counting_needs_little_memory() -> None:
    """Many events within the time are kept as few numbers."""
    counted = RecentCount(1_000)
    for number in range(100_000):
        counted.add(number / 100, 1)
    assert counted.total(1_000) == 100_000
    assert len(vars(counted)["_parts"]) <= PARTS + 1
    assert counted.total(5_000) == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "250 ms"), (1, "1 second"), (90, "1.5 minutes"), (3_600, "1 hour"), (7_200, "2 hours"), (86_400, "1 day")],
)
def test_spans_are_short(seconds: float, text: str) -> None:
    """Times are shown in their largest unit."""
    assert span_text(seconds) == text
