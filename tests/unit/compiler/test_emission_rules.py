"""When a query emits its rows, inferred without Spark; `tests/spark/test_emission.py` checks it with Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sqlstream import ProjectRequest, compile_models
from sqlstream.app.compile.explain_model import Explanation, explain_model
from sqlstream.compiler.emission import Emission, TimeWindow, read_window
from sqlstream.compiler.sql.intervals import parse_interval
from sqlstream.errors import UsageError

ORDERS = "{{ source('shop', 'orders') }}"
PAYMENTS = "{{ source('shop', 'payments') }}"
HINT = "/*+ WATERMARK(ts, '10 minutes') */"
OPEN = "{{ source('shop', 'open') }}"

LEFT_JOIN = (
    f"select a.id from (select {HINT} id, ts from {ORDERS}) a left join {PAYMENTS} b "
    "on a.id = b.id and b.ts between a.ts and a.ts + interval 1 hour"
)
CHAIN = (
    f"select window, count(*) as n from (select window_time(window) as at from (select {HINT} window from {ORDERS} "
    "group by window(ts, '5 minutes'))) group by window(at, '1 hour')"
)
AFTER_A_JOIN = (
    f"select window(b.ts, '1 hour') as w from (select {HINT} id, ts from {ORDERS}) a "
    f"join {PAYMENTS} b on a.id = b.id and a.ts > b.ts - interval 1 hour group by window(b.ts, '1 hour')"
)


def _explain(root: Path, sql: str, mode: str = "append", spark: str = "{}") -> Explanation:
    columns = "format: json, path: in, schema: 'id int, ts timestamp, kind string, loaded_at timestamp'"
    files = {
        "project.yml": f"name: shop\nversion: 1.0.0\ntargets: {{local: {{master: local, storage: s, spark: {spark}}}}}\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n"
        f"      - {{name: orders, {columns}}}\n"
        f"      - {{name: payments, {columns}, watermark: {{column: ts, delay: 1 hour}}}}\n"
        "      - {name: open, format: hudi, path: in}\n",
        "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
        "models/view.sql": f"select id from {ORDERS}",
        "models/asked.sql": f"{{{{ config(sink='nowhere', output_mode='{mode}') }}}}\n{sql}\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return explain_model(ProjectRequest(root, env={}), "asked")


def _emission(root: Path, sql: str, mode: str = "append", spark: str = "{}") -> Emission:
    found = _explain(root, sql, mode, spark)
    assert found.emission is not None, found.errors
    return found.emission


def _at(text: str, day: int = 1) -> datetime:
    return datetime.combine(datetime(2024, 1, day, tzinfo=UTC), datetime.strptime(text, "%H:%M").time(), UTC)


@pytest.mark.parametrize(
    ("key", "start", "end", "event"),
    [
        ("window(ts, '10 minutes')", _at("12:00"), _at("12:10"), _at("12:20")),
        ("window(ts, '1 hour', '30 minutes')", _at("12:00"), _at("13:00"), _at("13:10")),
        ("window(ts, '1 hour', '1 hour', '15 minutes')", _at("11:15"), _at("12:15"), _at("12:25")),
        ("window(ts, '1 day')", _at("00:00"), _at("00:00", 2), _at("00:10", 2)),
        ("window(ts, '7 days')", _at("00:00") - timedelta(days=4), _at("00:00", 4), _at("00:10", 4)),
        ("session_window(ts, '5 minutes')", _at("12:00"), _at("12:05"), _at("12:15")),
        ("ts", _at("12:00"), _at("12:00"), _at("12:10")),
    ],
)
def test_a_group_waits_for_an_event_a_delay_after_its_end(
    tmp_path: Path, key: str, start: datetime, end: datetime, event: datetime
) -> None:
    """A group is emitted after an event whose time is the group's end plus the watermark delay."""
    (step,) = _emission(tmp_path, f"select {HINT} kind, count(*) as n from {ORDERS} group by {key}, kind").steps

    assert step.example is not None
    assert (step.example.start, step.example.end, step.example.events) == (start, end, (event,))


def test_an_end_between_two_milliseconds_waits_for_the_later_one(tmp_path: Path) -> None:
    """A window end between two milliseconds waits for the later one, because watermarks have whole milliseconds."""
    key = "window(ts, '1 hour', '1 hour', '1500 microseconds')"
    (step,) = _emission(tmp_path, f"select {HINT} count(*) as n from {ORDERS} group by {key}").steps

    assert step.example is not None
    assert step.example.end == _at("12:00") + timedelta(microseconds=1500)
    assert step.example.events == (_at("12:10") + timedelta(milliseconds=2),)


@pytest.mark.parametrize(
    ("sql", "mode", "releases"),
    [
        (f"select id from {ORDERS} where id > 1", "append", ["row"]),
        (f"select id from {ORDERS} union all select id from {PAYMENTS}", "append", ["row"]),
        (f"select kind, count(*) as n from {ORDERS} group by kind", "update", ["change"]),
        (f"select kind, count(*) as n from {ORDERS} group by kind", "complete", ["whole"]),
        (f"select distinct ts from {PAYMENTS}", "append", ["time"]),
        (f"select id from {ORDERS} limit 5", "append", ["first"]),
        (f"select a.id from {ORDERS} a join {PAYMENTS} b on a.id = b.id", "append", ["match"]),
        (LEFT_JOIN, "append", ["match", "unmatched"]),
        (CHAIN, "append", ["window", "window"]),
        (f"select kind, count(*) as n from {ORDERS} group by kind order by n limit 2", "complete", ["whole"]),
        (
            f"select * from (select ts, kind, id from {PAYMENTS}) pivot (count(id) for kind in ('a', 'b'))",
            "append",
            ["time", "time"],
        ),
        (f"with unread as (select {HINT} ts from {ORDERS} group by ts) select id from {ORDERS}", "append", ["row"]),
    ],
)
def test_each_operator_has_its_steps(tmp_path: Path, sql: str, mode: str, releases: list[str]) -> None:
    """Each executed operator has its steps in the explanation, in order from the sources to the sink."""
    assert [step.release.value for step in _emission(tmp_path, sql, mode).steps] == releases


@pytest.mark.parametrize(
    ("call", "release"),
    [
        ("window(ts, '1 hour')", "window"),
        ("session_window(ts, '5 minutes')", "session"),
        ("window_time(window(ts, '1 hour'))", "time"),
    ],
)
def test_a_window_from_upstream_is_that_window(tmp_path: Path, call: str, release: str) -> None:
    """A window or session that a subquery makes, under another name, has the example of one that GROUP BY makes."""
    named = f"select w, kind from (select kind, {call} as w from {PAYMENTS}) group by w, kind"
    (found,) = _emission(tmp_path / "named", named).steps
    (expected,) = _emission(tmp_path / "here", f"select kind from {PAYMENTS} group by {call}, kind").steps

    assert (found.release.value, found.example, found.unknown) == (release, expected.example, expected.unknown)
    assert (found.time, found.operator) == (expected.time, "GROUP BY w, kind")


@pytest.mark.parametrize(
    ("sql", "release"),
    [
        (
            f"select kind from (select kind, session_window(ts, concat(id, ' hours')) as s from {PAYMENTS}) group by s, kind",
            "session",
        ),
        (
            f"select kind from {PAYMENTS} group by session_window(ts, case when id > 1 then '1 hour' else '5 minutes' end), kind",
            "session",
        ),
        (
            AFTER_A_JOIN,
            "window",
        ),
        (f"select count(*) as n from {OPEN} group by window(timestamp, '1 hour')", "unknown"),
    ],
)
def test_an_unknown_time_has_a_reason_and_no_example(tmp_path: Path, sql: str, release: str) -> None:
    """If the emission time is unknown, the step has a reason and no example."""
    (*_, step) = _emission(tmp_path, sql).steps

    assert (step.release.value, step.example) == (release, None)
    assert step.unknown


def test_each_watermark_needs_its_own_event(tmp_path: Path) -> None:
    """The example has one event for each watermark; the lowest counts, or the highest with the `max` policy."""
    sql = (
        f"select count(*) as n from (select {HINT} ts from {ORDERS} union all select ts from {PAYMENTS}) "
        "group by window(ts, '10 minutes')"
    )
    emission = _emission(tmp_path, sql)
    (step,) = emission.steps

    assert step.example is not None
    assert step.example.events == (_at("12:20"), _at("13:10"))
    assert not emission.highest
    assert _emission(tmp_path, sql, spark="{spark.sql.streaming.multipleWatermarkPolicy: max}").highest


def test_a_target_may_disable_batches_without_new_rows(tmp_path: Path) -> None:
    """If a target disables batches without new rows, the explanation says so."""
    sql = f"select distinct ts from {PAYMENTS}"

    assert _emission(tmp_path, sql).idle_batches
    assert not _emission(tmp_path, sql, spark="{spark.sql.streaming.noDataMicroBatches.enabled: false}").idle_batches


def test_an_invalid_query_has_errors_and_no_explanation(tmp_path: Path) -> None:
    """A query with errors gets its errors instead of an explanation."""
    found = _explain(tmp_path, f"select kind, count(*) as n from {ORDERS} group by kind")

    assert found.emission is None
    assert [error.code for error in found.errors] == ["append-without-watermark"]


def test_settings_that_change_spark_are_reported(tmp_path: Path) -> None:
    """Settings that change how Spark interprets queries are reported in `is_foreseen`."""
    sql = f"select id from {ORDERS}"

    assert _explain(tmp_path, sql).is_foreseen
    assert not _explain(tmp_path, sql, spark="{spark.sql.caseSensitive: 'true'}").is_foreseen


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        (f"select count(*) from (select {HINT} * from {ORDERS}) where id > 1 group by window(ts, '5 minutes')", 1),
        (f"select {HINT} count(*) from {ORDERS} where id > 1 group by window(ts, '5 minutes') having count(*) > 3", 1),
        (f"select {HINT} count(*) from (select * from {ORDERS} where id > 1) group by window(ts, '5 minutes')", 0),
        (f"select {HINT} id from {ORDERS} where id > 1", 1),
        (f"select id from {ORDERS} where id > 1", 0),
    ],
)
def test_conditions_after_a_watermark_are_listed(tmp_path: Path, sql: str, count: int) -> None:
    """Conditions applied after the watermark are listed, because rows that they drop do not advance it."""
    assert len(_emission(tmp_path, sql).filters) == count


@pytest.mark.parametrize(
    ("condition", "advance", "others"),
    [
        ("ts < timestamp'2030-01-01'", ["ts"], False),
        ("id > 1", [], True),
        ("id > 1 and ts < timestamp'2030-01-01' and (kind = 'a')", ["ts"], True),
        ("id > 1 or ts < timestamp'2030-01-01'", ["ts"], False),
        ("(year(ts) < 2030 and date(ts) > '2020-01-01')", ["ts", "ts"], False),
        ("t2 < timestamp'2030-01-01'", ["t2"], False),
        ("y < 2030 and id > 1", ["y"], True),
        ("rand() < 0.5", [], False),
    ],
)
def test_spark_checks_the_event_time_after_the_watermark(
    tmp_path: Path, condition: str, advance: list[str], others: bool
) -> None:
    """Parts of a condition that read the event time are told apart from those that Spark checks before the watermark."""
    rows = f"select {HINT} *, ts as t2, year(ts) as y from {ORDERS}"
    filters = _emission(
        tmp_path, f"select count(*) from ({rows}) where {condition} group by window(ts, '1 day')"
    ).filters

    assert [item.column for item in filters if item.column] == advance
    assert any(item.column is None for item in filters) == others


LIMITS = (
    "ts < timestamp'2030-01-01'",
    "timestamp'2030-01-01' > ts",
    "ts <= now() + interval 1 hour",
    "ts - interval 1 hour < now()",
    "now() - ts > interval '0' second",
    "ts between timestamp'2020-01-01' and timestamp'2030-01-01'",
    "not ts > timestamp'2030-01-01'",
    "not (kind = 'a' or ts > timestamp'2030-01-01')",
    "kind = 'a' or ts < timestamp'2030-01-01'",
    "year(ts) < 2030",
    "extract(year from ts) <= 2030",
    "date(ts) = date'2024-01-01'",
    "ts <> timestamp'9999-12-31'",
    "date_format(ts, 'yyyy') < '2030'",
    "case when ts < now() then true else false end",
    "ts < loaded_at",
    "ts in (timestamp'2024-01-01', timestamp'2024-01-02')",
)
"""Conditions that remove later rows than those that they keep."""

NO_LIMITS = (
    "ts > timestamp'2020-01-01'",
    "ts >= now() - interval 1 day",
    "timestamp'2020-01-01' <= ts",
    "not ts < timestamp'2020-01-01'",
    "date(ts) >= date'2020-01-01' and year(ts) > 2020",
    "unix_timestamp(ts) > 1577836800",
    "ts + interval 1 hour > now()",
    "ts is not null",
    "isnotnull(ts)",
    "hour(ts) between 9 and 17",
    "extract(hour from ts) = 9",
    "dayofweek(ts) in (1, 7)",
    "month(date(ts)) = 12",
    "loaded_at < now()",
    "kind = 'a'",
)
"""Conditions that remove no later rows, or do not read the event time."""


def _warned(root: Path, queries: Mapping[str, str]) -> dict[str, int]:
    """Returns the number of warnings on conditions behind a watermark by query; `queries` are SQL by any name."""
    _explain(root, f"select id from {ORDERS}")
    names = {f"models/q{number}.sql": name for number, name in enumerate(queries)}
    for path, name in names.items():
        (root / path).write_text(f"{{{{ config(sink='nowhere', output_mode='append') }}}}\n{queries[name]}\n")
    findings = compile_models(ProjectRequest(root, env={})).findings
    warned = [names[it.location.path] for it in findings if it.location and it.code == "filter-behind-watermark"]
    return {name: warned.count(name) for name in queries}


def test_an_upper_limit_on_the_event_time_behind_its_watermark_is_a_warning(tmp_path: Path) -> None:
    """A condition that may remove later rows than it keeps is a warning behind the watermark, and none in front."""
    behind = f"select {HINT} count(*) as n from {ORDERS} where LIMIT group by window(ts, '1 day')"
    front = f"select {HINT} count(*) as n from (select * from {ORDERS} where LIMIT) group by window(ts, '1 day')"
    queries = {limit: behind.replace("LIMIT", limit) for limit in (*LIMITS, *NO_LIMITS)}
    queries |= {f"in front: {limit}": front.replace("LIMIT", limit) for limit in LIMITS}

    found = _warned(tmp_path, queries)

    assert found == {name: int(name in LIMITS) for name in queries}


def test_limits_on_windows_and_joined_rows(tmp_path: Path) -> None:
    """A limit on a window or on one side of a join is a warning; one between two sides, or without state, is none."""
    window = f"select {HINT} window(ts, '1 day') as w from {ORDERS} group by 1"
    joined = (
        f"select a.id from (select {HINT} id, ts from {ORDERS}) a join {PAYMENTS} b on a.id = b.id "
        "and a.ts >= b.ts - interval 1 hour and b.ts >= a.ts - interval 1 hour"
    )
    warned = {
        f"select count(*) as n from {PAYMENTS} where ts < now() group by window(ts, '1 day')",
        f"{window} having w.end < timestamp'2030-01-01'",
        f"{joined} and a.ts < timestamp'2030-01-01'",
    }
    others = {
        f"{window} having max(ts) < timestamp'2030-01-01'",
        f"select {HINT} id, ts from {ORDERS} where ts < now()",
        f"{joined} where a.ts < b.ts",
    }

    assert _warned(tmp_path, {sql: sql for sql in warned | others}) == {
        sql: int(sql in warned) for sql in warned | others
    }


UNITED = f"select * from (select {HINT} ts from {ORDERS} union all select ts from {PAYMENTS})"
FORGETS = "{spark.sqlstream.internals: 'false'}"


@pytest.mark.parametrize(
    ("trigger", "spark", "count"),
    [
        ("available_now", FORGETS, 1),
        ("once", FORGETS, 1),
        ("available_now", "{}", 0),
        ("10 seconds", FORGETS, 0),
        ("available_now", "{spark.sqlstream.internals: false, spark.sql.streaming.multipleWatermarkPolicy: max}", 0),
    ],
)
def test_single_runs_that_forget_watermarks_are_a_warning(tmp_path: Path, trigger: str, spark: str, count: int) -> None:
    """A query of single runs with several watermarks is a warning only where sqlstream cannot restore them."""
    _explain(tmp_path, f"select id from {ORDERS}", spark=spark)
    sql = f"select count(*) as n from ({UNITED}) group by window(ts, '1 day')"
    path = tmp_path / "models/asked.sql"
    path.write_text(f"{{{{ config(sink='nowhere', output_mode='append', trigger='{trigger}') }}}}\n{sql}\n")

    findings = compile_models(ProjectRequest(tmp_path, env={})).findings

    assert [finding.code for finding in findings].count("forgotten-watermark") == count


def test_a_view_and_an_unknown_name_are_usage_errors(tmp_path: Path) -> None:
    """Explaining a view or an unknown model is a usage error."""
    _explain(tmp_path, f"select id from {ORDERS}")
    for name in ("view", "askd"):
        with pytest.raises(UsageError):
            explain_model(ProjectRequest(tmp_path, env={}), name)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("window(ts, '5 minutes')", TimeWindow(False, timedelta(minutes=5))),
        ("WINDOW(a.b, '1 hour', '5 minutes')", TimeWindow(False, timedelta(hours=1), timedelta(minutes=5))),
        ("session_window(f(a, b), '5 minutes')", TimeWindow(True, timedelta(minutes=5))),
        ("session_window(ts, if(a, '1 hour', '2 hours'))", TimeWindow(True, None)),
        ("window(ts, '5 minutes', '5 minutes', '-1 minute')", TimeWindow(False, None)),
        ("window", None),
        ("window_time(window)", None),
        ("kind", None),
    ],
)
def test_calls_of_window_functions_are_read(text: str, call: TimeWindow | None) -> None:
    """The length and slide of a window are read only if they are plain intervals."""
    assert read_window(text) == call


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("10 minutes", timedelta(minutes=10)),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("1.5 seconds", timedelta(milliseconds=1500)),
        ("2 months", timedelta(days=62)),
        ("1 week", timedelta(days=7)),
    ],
)
def test_intervals_are_durations(text: str, span: timedelta) -> None:
    """Intervals are converted to durations, and a month counts as 31 days."""
    assert parse_interval(text).span == span
