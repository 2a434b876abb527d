"""What a query costs, where its time goes, and the advice of each rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sqlstream.report.query_cost import PARTS, RULES, QueryFacts, TimeUse, advice, costs, time_json, time_use

FILES = {"format": "json", "path": "in/orders", "options": {}}
KAFKA = {"format": "kafka", "path": None, "options": {"kafka.bootstrap.servers": "kafka:9092"}}
QUERY = QueryFacts("orders", "10 seconds", (FILES,))
MOVABLE = replace(QUERY, can_repartition=True)


def limited(option: str, value: str, lag: dict[str, int]) -> QueryFacts:
    """Returns a query whose source has a limit, and what it has not read."""
    source = KAFKA if option == "maxOffsetsPerTrigger" else FILES
    return replace(QUERY, sources=({**source, "options": {option: value}},), lag=lag)


def use(*parts: int, waiting: int = 0, batches: int = 40, **figures: int | None) -> TimeUse:
    """Returns a use of time with these `PARTS` in ms."""
    return TimeUse(batches, 0, sum(parts) + waiting, dict(zip(PARTS, parts, strict=True)), **figures)


BUSY = use(100, 100, 8_000, 100, 100, cores=4, tasks=100, task_ms=10_000)
"""Processes most of the time, on one core of four."""
SMALL = use(900, 2_000, 4_000, 3_000, 100, cores=4, tasks=100, task_ms=4_000)
"""Spends most of each batch around its rows."""
LISTING = use(4_500, 500, 5_000, 100, 100, cores=4, tasks=100, task_ms=4_000)

NO_ADVICE = [
    pytest.param(BUSY, QUERY, id="nothing stands out"),
    pytest.param(replace(SMALL, batches=4), QUERY, id="too few batches"),
    pytest.param(SMALL, replace(QUERY, trigger="available_now"), id="a trigger that ends"),
    pytest.param(SMALL, replace(QUERY, trigger="real_time 5 minutes"), id="a real-time trigger"),
    pytest.param(SMALL, limited("maxFilesPerTrigger", "1", {"files": 2}), id="a longer trigger could fall behind"),
    pytest.param(SMALL, limited("maxBytesPerTrigger", "1", {"files": 99}), id="a limit in bytes"),
    pytest.param(SMALL, limited("MAXFILESPERTRIGGER", "ten", {"files": 99}), id="a limit that is no number"),
    pytest.param(SMALL, replace(QUERY, sources=({"format": "delta"},)), id="a table, which has a limit by default"),
    pytest.param(SMALL, replace(QUERY, sources=({**FILES, "path": "in/[1]"},)), id="a path that looks like a pattern"),
    pytest.param(SMALL, replace(QUERY, sources=()), id="sources that are not known"),
    pytest.param(replace(BUSY, task_ms=40_000, cores=None), QUERY, id="unknown cores"),
    pytest.param(replace(BUSY, task_ms=None), replace(MOVABLE, partitions=64), id="unknown core time"),
    pytest.param(replace(BUSY, tasks=40), replace(MOVABLE, partitions=64), id="many partitions with long tasks"),
    pytest.param(
        replace(BUSY, task_ms=9_000), replace(MOVABLE, partitions=7), id="fewer than two partitions for a core"
    ),
    pytest.param(replace(BUSY, tasks=400), replace(QUERY, partitions=64), id="state that cannot be repartitioned"),
    pytest.param(replace(BUSY, task_ms=29_600), replace(QUERY, partitions=4), id="cores that state could not use"),
    pytest.param(
        replace(BUSY, task_ms=30_000, cores=8),
        replace(MOVABLE, partitions=2, cores_of_run=2.0),
        id="more cores in use than partitions",
    ),
    pytest.param(replace(BUSY, task_ms=20_000, cores=8), replace(MOVABLE, partitions=2), id="unknown load of the run"),
]


@pytest.mark.parametrize(("time", "query"), NO_ADVICE)
def test_there_is_no_advice_in_doubt(time: TimeUse, query: QueryFacts) -> None:
    """Figures that are unknown, few or unclear give no advice."""
    assert advice(time, query) is None


ADVICE = [
    (
        "larger-batches",
        use(10, 10, 970, 10, 0, waiting=9_000),
        limited("maxFilesPerTrigger", "10", {"files": 30}),
        "A larger `maxFilesPerTrigger`, or a shorter trigger: it waits 90 % of the time, and falls behind.",
    ),
    (
        "larger-batches",
        SMALL,
        replace(limited("maxoffsetspertrigger", "500", {"records": 1_500}), trigger="available_now"),
        (
            "A larger `maxOffsetsPerTrigger`: 59 % of each batch is finding input, planning and committing, however few rows "
            "it has."
        ),
    ),
    (
        "nothing",
        use(10, 10, 270, 10, 0, waiting=9_700),
        limited("maxFilesPerTrigger", "10", {"files": 29}),
        "No change is needed: it waits for its trigger or for input 97 % of the time.",
    ),
    (
        "more-partitions",
        replace(BUSY, task_ms=15_000, cores=8),
        replace(MOVABLE, partitions=2, cores_of_run=2.0),
        (
            "More shuffle partitions (`sqlstream state repartition orders 8`): its state has 2, so it uses at most 2 of 8 "
            "cores at a time."
        ),
    ),
    (
        "more-cores",
        replace(BUSY, task_ms=29_600),
        replace(QUERY, cores_of_run=3.0),
        "More cores: its tasks use 3.7 of 4 cores while a batch computes.",
    ),
    (
        "more-cores",
        replace(BUSY, cores=1),
        replace(MOVABLE, partitions=1, cores_of_run=0.9),
        "More cores, and then more shuffle partitions than 1: the queries of the run use 0.9 of 1 core on average.",
    ),
    (
        "fewer-partitions",
        replace(BUSY, tasks=400, task_ms=12_000),
        replace(MOVABLE, partitions=64, cores_of_run=1.5),
        (
            "Fewer shuffle partitions (`sqlstream state repartition orders 4`): its state has 64 for 4 cores, and a task takes "
            "only 30 ms."
        ),
    ),
    (
        "list-less-often",
        LISTING,
        QUERY,
        "A longer `trigger`, if later results are fine: finding input takes 44 % of each batch.",
    ),
    (
        "fewer-batches",
        SMALL,
        replace(QUERY, trigger="default", sources=(FILES, KAFKA)),
        (
            "A `trigger` with an interval, if later results are fine: 59 % of each batch is finding input, planning and "
            "committing, however few rows it has."
        ),
    ),
    (
        "write-state-less-often",
        replace(BUSY, commit_ms=7_500),
        replace(MOVABLE, partitions=4),
        "A longer `trigger`, if later results are fine: tasks write state for 75 % of their time, in each batch.",
    ),
]


@pytest.mark.parametrize(("rule", "time", "query", "text"), ADVICE)
def test_the_first_rule_that_applies_gives_advice(rule: str, time: TimeUse, query: QueryFacts, text: str) -> None:
    """Each sign gives one sentence, which names the setting as users write it."""
    found = advice(time, query)

    assert found is not None
    assert (found.rule, found.text) == (rule, text)


def test_each_rule_has_a_case() -> None:
    """No rule is untested."""
    assert {rule for rule, *_ in ADVICE} == set(RULES)


def row(at_ms: int, duration_ms: int = 1_000, **figures: Any) -> dict[str, Any]:
    """Returns the figures of a batch that processes for half of its duration."""
    parts = {"input_ms": 100, "planning_ms": 200, "add_batch_ms": duration_ms - 500, "wal_ms": 150, "other_ms": 50}
    tasks = {"core_ms": 2_000, "tasks": 8, "cores": 4, "state_commit_ms": None}
    return {"at_ms": at_ms, "duration_ms": duration_ms, **parts, **tasks, **figures}


def test_the_parts_and_the_waiting_add_up_to_the_time() -> None:
    """What is not a part of a batch is the time between batches."""
    found = time_use([row(0), row(10_000), row(20_000, 2_000)])

    assert found is not None
    assert (found.batches, found.span_ms, found.busy_ms, found.waiting_ms) == (3, 22_000, 4_000, 18_000)
    assert found.cores_used == 6_000 / 2_500
    shown = time_json(found, QUERY)
    assert shown["span_ms"] == shown["waiting_ms"] + sum(shown[name] for name in PARTS)
    assert (shown["cores_used"], shown["state_share"], shown["advice"]) == (2.4, None, None)


def test_batches_without_all_parts_are_left_out() -> None:
    """Earlier versions did not store the time for finding input, and batch models have no parts."""
    assert time_use([row(0, input_ms=None), row(0, add_batch_ms=0)]) is None
    found = time_use([row(0, input_ms=None), row(5_000), row(6_000, core_ms=None, tasks=None)])
    assert found is not None
    assert (found.batches, found.span_ms, found.cores_used) == (2, 2_000, None)


def test_batches_that_overlap_do_not_wait() -> None:
    """After the clock was set back, the time between batches is not negative."""
    found = time_use([row(5_000), row(2_000)])

    assert found is not None
    assert (found.waiting_ms, time_json(found, QUERY)["span_ms"]) == (0, 2_000)


def test_the_cost_of_a_query() -> None:
    """Core seconds per hour and per million rows, and the share of all queries of the run."""
    entry = {"core_ms": 18_000, "duration_seconds": 1_800.0, "rows_in": 2_000_000}

    assert costs(entry, [entry, {"core_ms": 54_000}]) == {
        "core_seconds_per_hour": 36.0,
        "core_seconds_per_million_rows": 9.0,
        "share_of_run": 0.25,
    }


@pytest.mark.parametrize(
    ("entry", "run"),
    [
        ({}, [{}]),
        ({"core_ms": None, "duration_seconds": 10.0, "rows_in": 5}, None),
        ({"core_ms": 0, "duration_seconds": 0.0, "rows_in": 0}, [{"core_ms": 0}]),
        ({"core_ms": 5, "duration_seconds": 0.0, "rows_in": None}, [{"core_ms": 5}, {"core_ms": None}]),
        ({"core_ms": 5, "duration_seconds": 0.0, "rows_in": None}, None),
    ],
)
def test_what_is_unknown_is_not_zero(entry: dict[str, Any], run: list[dict[str, Any]] | None) -> None:
    """Without core time, time, rows or all queries of a run, the cost is unknown."""
    assert set(costs(entry, run).values()) == {None}


def test_waiting_since_the_last_batch_counts() -> None:
    """A query that was busy an hour ago and has waited since does not use its cores now."""
    busy = use(0, 0, 10_000, 0, 0, task_ms=36_000, cores=4)
    waiting = busy.until(3_600_000)
    assert busy.waits == 0.0
    assert waiting.waits == pytest.approx(0.997, abs=0.001)
    assert waiting.cores_over_time == pytest.approx(0.01)
    assert busy.until(0) == busy
