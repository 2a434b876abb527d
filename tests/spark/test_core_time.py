"""How long the tasks of each query occupied a core, compared with Spark's event log."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from sqlstream import ProjectRequest, RunRequest, run_models
from sqlstream.state.runs.events import QueryRestarting, RunEvent, Status
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import PROJECT, WITHOUT_INTERNALS, ProjectFolder

KINDS = """{{ config(sink='nowhere', output_mode='complete') }}
select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind
"""


def logged(folder: Path) -> dict[str, list[int]]:
    """Returns the milliseconds and the number of all tasks in Spark's event logs, by job group."""
    group_of: dict[int, str] = {}
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path in sorted(folder.rglob("events_*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            event: dict[str, Any] = json.loads(line)
            if event["Event"] == "SparkListenerStageSubmitted":
                group_of[event["Stage Info"]["Stage ID"]] = event["Properties"].get("spark.jobGroup.id", "")
            elif event["Event"] == "SparkListenerTaskEnd":
                counts = found[group_of[event["Stage ID"]]]
                counts[0] += event["Task Info"]["Finish Time"] - event["Task Info"]["Launch Time"]
                counts[1] += 1
    return found


@pytest.fixture
def observed(orders: ProjectFolder) -> ProjectFolder:
    """Queries with and without state, and a batch model, whose Spark forgets jobs at once and logs its events."""
    log = orders.root / "events"
    log.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.ui.retainedJobs": "1",
        "spark.ui.retainedStages": "1",
    }
    orders.write({"project.yml": PROJECT.replace("storage: store", f"storage: store, spark: {json.dumps(settings)}")})
    return orders


def core_times(folder: ProjectFolder) -> dict[str, tuple[int, int]]:
    """Returns the milliseconds and the number of the tasks of each query in the last run."""
    found: dict[str, tuple[int, int]] = {}
    for event in folder.events:
        if isinstance(event, BatchProgress):
            assert event.core_ms is not None
            assert event.tasks is not None
            assert event.longest_task_ms is not None
            assert event.core_ms / max(event.tasks, 1) <= event.longest_task_ms <= event.core_ms
            assert event.cores == 2
            before = found.get(event.model, (0, 0))
            found[event.model] = (before[0] + event.core_ms, before[1] + event.tasks)
    return found


FAILS_ONCE = """{{ config(sink='lake', retries={'attempts': 1, 'first_delay': '10 milliseconds'}) }}
select id, reflect('java.lang.Integer', 'parseInt', reflect('java.lang.System', 'getProperty', 'core_time', 'bad')) as n
from {{ source('shop', 'orders') }}
"""
"""Fails until the JVM has the property `core_time`."""


@pytest.mark.slow
def test_the_core_time_of_queries_is_that_of_their_tasks(observed: ProjectFolder) -> None:
    """The tasks of each query count exactly, of several queries at a time, also if Spark keeps only one job."""
    observed.write(
        {
            "models/kinds.sql": KINDS,
            "models/copies.sql": "{{ config(sink='lake') }}\nselect id from {{ source('shop', 'orders') }}\n",
        }
    )
    observed.batches("in/orders", [[{"id": number, "kind": "a"}] for number in range(8)], first=20)

    assert observed.run().succeeded

    found = core_times(observed)
    expected = sorted(tuple(each) for group, each in logged(observed.root / "events").items() if group)
    assert sorted(found.values()) == expected
    assert set(found) == {"kinds", "copies"}
    assert all(tasks > 0 for _, tasks in found.values())


@pytest.mark.slow
def test_failed_batches_batch_models_and_written_batches_count(observed: ProjectFolder) -> None:
    """The tasks of a batch that failed count with the next batch. Batch models and sinks that write batches count, too."""
    sources, sinks = ((observed.root / f"{name}.yml").read_text() for name in ("sources", "sinks"))
    static = "      - {name: customers, format: json, path: in/orders, schema: id int, mode: batch}\n"
    observed.write(
        {
            "sources.yml": sources + static,
            "sinks.yml": sinks + "  - {name: db, format: sqlite, path: shop.db}\n",
            "models/fragile.sql": FAILS_ONCE,
            "models/report.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'customers') }}",
            "models/rows.sql": "{{ config(sink='db') }} select id from {{ source('shop', 'orders') }}",
        }
    )

    def notify(event: RunEvent) -> None:
        observed.events.append(event)
        context = SparkContext._active_spark_context
        if isinstance(event, QueryRestarting) and context is not None and context._jvm is not None:
            context._jvm.java.lang.System.setProperty("core_time", "1")

    observed.events = []
    outcome = run_models(RunRequest(ProjectRequest(observed.root), available_now=True), notify)

    assert [result.status for result in outcome.results] == [Status.SUCCESS] * 3
    assert [result.restarts for result in outcome.results] == [1, 0, 0]
    in_log = [each for group, each in logged(observed.root / "events").items() if group]
    assert len(in_log) == 4
    found = core_times(observed).values()
    assert [sum(each) for each in zip(*found, strict=True)] == [sum(each) for each in zip(*in_log, strict=True)]
    assert all(tasks > 0 for _, tasks in found)


@pytest.mark.slow
def test_without_internals_the_core_time_is_unknown(orders: ProjectFolder) -> None:
    """On a Spark whose internals have moved, the figures are unknown, and the run succeeds."""
    orders.write(
        {
            "project.yml": WITHOUT_INTERNALS,
            "models/copies.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
        }
    )

    assert orders.run().succeeded

    batches = [event for event in orders.events if isinstance(event, BatchProgress)]
    assert {(each.core_ms, each.tasks, each.cores) for each in batches} == {(None, None, None)}
    entry = json.loads((orders.root / "target/run_results.json").read_text())["results"][0]
    assert (entry["core_ms"], entry["rows_in"]) == (None, 10)
