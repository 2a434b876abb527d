"""Several queries over one view, and a query without batches."""

from __future__ import annotations

import signal
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sqlstream.state.runs.events import Notice, QueryStarted, RunEvent, Status
from tests.spark.conftest import LONGEST_WAIT_SECONDS, PROJECT, ProjectFolder, wait_for


def test_several_queries_read_one_view(
    orders: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """Each query over a view has its own checkpoint; one that is added later reads all rows from the start."""
    view = "select id, kind, amount from {{ source('shop', 'orders') }} where amount > 0"
    fan = {
        "big": "{{ config(sink='lake') }} select id from {{ ref('positive') }} where amount > 2",
        "small": "{{ config(sink='lake') }} select id, kind from {{ ref('positive') }} where amount <= 2",
    }
    orders.write({"models/positive.sql": view, **{f"models/{name}.sql": text for name, text in fan.items()}})
    assert [result.rows_out for result in orders.run().results] == [4, 4]

    orders.write({"models/late.sql": "{{ config(sink='lake') }} select * from {{ ref('positive') }}"})
    outcome = orders.run()
    assert [(result.model, result.status, result.rows_out) for result in outcome.results] == [
        ("big", Status.SUCCESS, 0),
        ("late", Status.SUCCESS, 8),
        ("small", Status.SUCCESS, 0),
    ]
    ids = {name: sorted(row["id"] for row in read_parquet(orders.root / "store" / name)) for name in ("big", "small")}
    assert ids == {"big": [3, 4, 13, 14], "small": [1, 2, 11, 12]}


@pytest.mark.slow
def test_a_further_sink_has_its_own_query(
    orders: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """The query that ran resumes on its checkpoint, and the one of the new sink reads everything from the start."""
    model = "{{{{ config(sink={sinks}) }}}} select id from {{{{ source('shop', 'orders') }}}}"
    orders.write({"models/_more.yml": "sinks: [{name: copies, format: parquet, path: 'copies/{{ model.name }}'}]"})
    orders.write({"models/ids.sql": model.format(sinks="'lake'")})
    assert orders.result("ids").rows_out == 10

    orders.write({"models/ids.sql": model.format(sinks="['lake', 'copies']")})
    first = orders.run("ids")
    assert [(result.model, result.rows_out) for result in first.results] == [("ids", 0), ("ids__copies", 10)]
    assert [result.rows_out for result in orders.run("sink:copies").results] == [0]
    assert len(read_parquet(orders.root / "store/copies/ids")) == 10


@pytest.mark.slow
def test_a_continuous_query_stops_and_resumes(folder: ProjectFolder) -> None:
    """A continuous query writes rows, Ctrl-C ends it successfully, and the next run resumes from its checkpoint."""
    folder.write(
        {
            "sources.yml": "sources: [{name: made, tables: [{name: ticks, format: rate, options: {rowsPerSecond: 10}}]}]\n",
            "sinks.yml": "sinks: [{name: screen, format: console}]\n",
            "models/twice.sql": "{{ config(sink='screen', trigger={'continuous': '200 milliseconds'}) }} "
            "select value, value * 2 as twice from {{ source('made', 'ticks') }} where value >= 0",
        }
    )
    for _ in range(2):
        process = folder.command("run")
        wait_for(process, "START stream twice -> screen, trigger continuous 200 milliseconds")
        for _ in range(4):  # a block is committed before the next one is printed
            wait_for(process, "|value|twice|")
        wait_for(process, "+-----+-----+")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
        assert "1 of 1 STOPPED stream twice" in said
        assert process.returncode == 0
    commits = {int(path.name) for path in (folder.root / "store/queries/twice/v1/checkpoint/commits").glob("[0-9]*")}
    assert len(commits) >= 6


def test_a_continuous_query_that_takes_every_core_gives_a_warning(orders: ProjectFolder) -> None:
    """A continuous query that takes every core gives a warning with its tasks, the cores and the waiting queries."""
    table = "{{name: ticks_{0}, format: rate, options: {{rowsPerSecond: 10, numPartitions: {0}}}}}"
    model = "{{{{ config(sink='nowhere', trigger={}) }}}} select {} from {{{{ source('{}', '{}') }}}}"
    continuous = "{'continuous': '1 second'}"
    orders.write(
        {
            "sources/made.yml": f"sources: [{{name: made, tables: [{table.format(1)}, {table.format(2)}]}}]\n",
            "models/one.sql": model.format(continuous, "value", "made", "ticks_1"),
            "models/two.sql": model.format(continuous, "value", "made", "ticks_2"),
            "models/ids.sql": model.format("'1 second'", "id", "shop", "orders"),
        }
    )

    def warnings(events: list[RunEvent]) -> list[str]:
        return [event.text for event in events if isinstance(event, Notice) and "keeps" in event.text]

    orders.run_until(lambda events: bool(warnings(events)), "two", "ids")
    (said,) = warnings(orders.events)
    assert said.startswith(
        "two keeps 2 tasks running until the end, and Spark has 2 cores: no core is left for ids; run two"
    )

    orders.run_until(lambda events: sum(isinstance(event, QueryStarted) for event in events) == 2, "one", "ids")
    assert warnings(orders.events) == []


@pytest.mark.smoke
def test_a_spark_without_real_time_triggers_is_a_finding(orders: ProjectFolder) -> None:
    """On a Spark without real-time triggers, the finding is at the trigger and the run continues without the query."""
    if "realTime" in signature(DataStreamWriter.trigger).parameters:
        pytest.skip("this Spark has the trigger")
    model = "{{ config(sink='nowhere', output_mode='update', trigger={'real_time': '5 minutes'}) }}\n"
    orders.write(
        {
            "project.yml": PROJECT + "rules: {real-time-trigger: ignore}\n",
            "models/now.sql": model + "select id from {{ source('shop', 'orders') }}",
        }
    )

    result = orders.result(available_now=False)

    assert result.status is Status.ERROR
    assert result.finding is not None
    assert (result.finding.code, str(result.finding.location)) == ("real-time-trigger", "models/now.sql:1:49")
