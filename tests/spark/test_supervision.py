"""A failed query restarts if that may help and never stops the other queries; runs end when idle."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from sqlstream import ProjectRequest, RunRequest, run_models
from sqlstream.app.run import runner
from sqlstream.errors import Finding
from sqlstream.spark.jvm.launch import end_jvm
from sqlstream.spark.queries.failures import failure_finding
from sqlstream.state.runs.events import Notice, QueryRestarting, QueryResult, QueryStarted, RunEvent, Status
from sqlstream.state.runs.limits import RunLimits
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import PROJECT, ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

ALL = "select id from {{ source('shop', 'orders') }}"


def moody(mood: str) -> str:
    """Returns a model that fails while the JVM property `mood` is not a number; the JVM outlives a test."""
    bad_mood = f"reflect('java.lang.System', 'getProperty', '{mood}', 'bad')"
    return f"""{{{{ config(sink='lake', retries={{'attempts': 3, 'first_delay': '10 milliseconds'}}) }}}}
select id, reflect('java.lang.Integer', 'parseInt', {bad_mood}) as mood from ({ALL})
"""


def set_mood(mood: str) -> None:
    """Sets the property to a number in the JVM that runs the queries."""
    context = SparkContext._active_spark_context
    assert context is not None
    context._jvm.java.lang.System.setProperty(mood, "1")  # type: ignore[union-attr]


def restarts(events: list[RunEvent]) -> list[QueryRestarting]:
    """Returns the restarts among the events of a run."""
    return [event for event in events if isinstance(event, QueryRestarting)]


@pytest.mark.smoke
def test_a_failed_query_restarts(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A query that fails twice reports each cause, restarts, and then writes each row once."""
    orders.write({"models/moody.sql": moody("first")})
    events: list[RunEvent] = []

    def notify(event: RunEvent) -> None:
        events.append(event)
        if len(restarts(events)) == 2:
            set_mood("first")

    (result,) = run_models(RunRequest(ProjectRequest(orders.root), available_now=True), notify).results

    assert (result.status, result.restarts, result.rows_out) == (Status.SUCCESS, 2, 10)
    assert [(event.model, event.attempt, event.attempts) for event in restarts(events)] == [
        ("moody", 1, 3),
        ("moody", 2, 3),
    ]
    assert "bad" in restarts(events)[0].finding.why
    assert sorted(row["id"] for row in read_parquet(orders.root / "store/moody")) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert [type(event) for event in events].count(QueryStarted) == 1


@pytest.mark.slow
def test_a_restart_over_a_static_stored_output_is_reported(orders: ProjectFolder) -> None:
    """Such a query is prepared again, in a new session, whose batches are reported like those of the first one."""
    kinds = "{{ config(sink='lake', materialized='stored', output_mode='complete') }} select kind, count(*) as n from "
    joined = moody("joined") + "join {{ ref('kinds') }} using (kind)\n"
    orders.write(
        {
            "models/kinds.sql": kinds + "{{ source('shop', 'orders') }} group by kind",
            "models/joined.sql": joined.replace("select id from", "select id, kind from"),
        }
    )
    events: list[RunEvent] = []

    def notify(event: RunEvent) -> None:
        events.append(event)
        if restarts(events):
            set_mood("joined")

    results = run_models(RunRequest(ProjectRequest(orders.root), available_now=True), notify).results

    found = {result.model: (result.status, result.restarts, result.rows_out) for result in results}
    assert found == {"kinds": (Status.SUCCESS, 0, 4), "joined": (Status.SUCCESS, 1, 10)}


@pytest.mark.slow
def test_a_query_fails_after_its_last_attempt(orders: ProjectFolder) -> None:
    """After the last attempt the query is reported as failed; delays grow, and the other query runs to its end."""
    orders.write({"models/moody.sql": moody("second"), "models/good.sql": f"{{{{ config(sink='lake') }}}} {ALL}"})

    good, poor = orders.run().results

    assert (good.status, good.rows_out, poor.status, poor.restarts) == (Status.SUCCESS, 10, Status.ERROR, 3)
    delays = [event.delay_seconds for event in restarts(orders.events)]
    assert all(0.005 <= delays[0] <= 0.01 and before < after <= 4 * before for before, after in pairwise(delays))


@pytest.mark.slow
def test_a_query_whose_application_has_ended_does_not_restart(orders: ProjectFolder) -> None:
    """After a cluster has ended the application, the run fails at once and says so."""
    orders.write({"models/all_rows.sql": f"{{{{ config(sink='lake', retries=3) }}}} {ALL}"})
    events: list[RunEvent] = []

    def notify(event: RunEvent) -> None:
        events.append(event)
        context = SparkContext._active_spark_context
        if isinstance(event, BatchProgress) and context is not None:
            orders.rows("in/orders/2.json", order_rows(2), modified=2)
            context._jsc.sc().stop()

    try:
        (result,) = run_models(RunRequest(ProjectRequest(orders.root)), notify).results
    finally:
        end_jvm()

    assert (result.status, restarts(events)) == (Status.ERROR, [])
    assert result.finding is not None
    assert result.finding.why.startswith("Spark's application has ended: the cluster ended it")
    assert result.finding.fix.endswith("run again: the query continues where it stopped")


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    ["raise_error('no')", "cast(concat('x', id) as int)", "id / (id - id)", "element_at(array(id), 5)"],
)
def test_failures_that_rows_cause_are_not_retried(orders: ProjectFolder, expression: str) -> None:
    """Failures that the rows cause are not retried, because the same rows would come again."""
    orders.write({"models/poor.sql": f"{{{{ config(sink='nowhere') }}}} select {expression} as x from ({ALL})"})

    result = orders.result()

    assert (result.status, restarts(orders.events)) == (Status.ERROR, [])


def plant_bug(monkeypatch: pytest.MonkeyPatch, step: str, name: str) -> None:
    """Makes a function that the runner calls raise an error of Python for the query of the model `name`."""
    real = getattr(runner, step)

    def fail(subject: Any, *rest: Any, **named: Any) -> Any:
        model = getattr(getattr(subject, "query", None), "model", None)
        if name in (subject, getattr(subject, "name", ""), getattr(model, "name", "")):
            raise KeyError("planted")
        return real(subject, *rest, **named)

    monkeypatch.setattr(runner, step, fail)


STEPS = ("failure_finding", "read_progress", "start_query", "stop_when_lost", "notify")
CHECKS = ("lost_lock", "must_wait", "has_been_idle")


@pytest.mark.slow
@pytest.mark.parametrize("step", [*STEPS, *CHECKS])
def test_a_bug_ends_only_its_query(
    orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch, read_parquet: Rows, step: str
) -> None:
    """A bug of sqlstream in the handling of a query ends that query with the text of the bug, and no other query."""
    fails = step == "failure_finding"
    orders.write(
        {
            "models/poor.sql": f"{{{{ config(sink='nowhere') }}}} select {'id / (id - id)' if fails else 'id'} as x from ({ALL})",
            "models/sound.sql": f"{{{{ config(sink='lake') }}}} {ALL}",
        }
    )
    events: list[RunEvent] = []

    def notify(event: RunEvent) -> None:
        events.append(event)
        if step == "notify" and isinstance(event, BatchProgress) and event.model == "poor":
            raise KeyError("planted")

    if step != "notify":
        plant_bug(monkeypatch, step, "poor")

    request = RunRequest(ProjectRequest(orders.root), available_now=True, limits=RunLimits(until_idle_seconds=60.0))
    poor, sound = run_models(request, notify).results

    assert (sound.status, sound.rows_out, len(read_parquet(orders.root / "store/sound"))) == (Status.SUCCESS, 10, 10)
    assert (poor.status, poor.finding and poor.finding.code) == (Status.ERROR, "internal-error")
    assert poor.finding is not None
    assert "KeyError: 'planted'" in poor.finding.why
    assert ("Division by zero" in poor.finding.why) is fails
    assert [event.model for event in events if isinstance(event, QueryResult)] in (["poor", "sound"], ["sound", "poor"])


def test_a_failure_that_is_read_slowly_delays_no_other_query(
    orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch, read_parquet: Rows
) -> None:
    """While the reason of a failure is asked from a server, the other query starts, runs and ends."""
    has_ended, real = threading.Event(), failure_finding

    def read_slowly(*given: Any) -> Finding:
        assert has_ended.wait(60)
        return real(*given)

    def notify(event: RunEvent) -> None:
        if isinstance(event, QueryResult) and event.model == "sound":
            has_ended.set()

    monkeypatch.setattr(runner, "failure_finding", read_slowly)
    orders.write(
        {
            "models/poor.sql": f"{{{{ config(sink='nowhere') }}}} select id / (id - id) as x from ({ALL})",
            "models/sound.sql": f"{{{{ config(sink='lake') }}}} {ALL}",
        }
    )
    request = RunRequest(ProjectRequest(orders.root), available_now=True, limits=RunLimits(threads=2))
    poor, sound = run_models(request, notify).results

    assert (sound.status, sound.rows_out) == (Status.SUCCESS, 10)
    assert (poor.status, poor.finding and poor.finding.code) == (Status.ERROR, "query-failed")


@pytest.mark.slow
def test_a_failing_expression_is_located_in_its_model(orders: ProjectFolder) -> None:
    """A failing expression is located in the model that contains it, also in an upstream view or below Jinja."""
    every = ALL.replace("id", "*")
    orders.write(
        {
            "models/ratios.sql": f"{{% set zero = 0 %}}\nselect id,\n  100 / amount as ratio from ({every})",
            "models/first.sql": "{{ config(sink='nowhere') }} select * from {{ ref('ratios') }}",
            "models/second.sql": "{{ config(sink='nowhere') }}\nselect id\nfrom {{ ref('kinds') }} where cast(kind as int) > 0",
            "models/kinds.sql": f"select id, kind from ({every})",
        }
    )

    found = {result.model: result.finding for result in orders.run().results}

    places = {name: str(finding.location) for name, finding in found.items() if finding is not None}
    assert places == {"first": "models/ratios.sql:3:3", "second": "models/second.sql:3:31"}


@pytest.mark.slow
@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_start_that_fails(orders: ProjectFolder, fail_fast: bool) -> None:
    """After a failed start the others continue; with --fail-fast they end after their batch and no more start."""
    for name, trigger in (("a", "1 second"), ("b", "once"), ("c", "once")):
        orders.write({f"models/{name}.sql": f"{{{{ config(sink='lake', trigger='{trigger}') }}}} {ALL}"})
    orders.write({"store/b": "a file where the output folder should be"})
    limits = RunLimits(until_idle_seconds=3.0, fail_fast=fail_fast, threads=1)

    outcome = orders.run(available_now=False, limits=limits)

    after = Status.SKIPPED if fail_fast else Status.SUCCESS
    assert [result.status for result in outcome.results] == [Status.STOPPED, Status.ERROR, after]
    assert not outcome.succeeded
    printed = " ".join(event.text for event in orders.events if isinstance(event, Notice))
    assert ("b has failed" if fail_fast else "no query had anything to read for 3 s") in printed


@pytest.mark.slow
@pytest.mark.parametrize(("trigger", "idle"), [("100 milliseconds", 4.0), ("5 seconds", 1.0), ("5 seconds", 6.0)])
def test_new_rows_reset_the_idle_timer(orders: ProjectFolder, read_parquet: Rows, trigger: str, idle: float) -> None:
    """New rows reset the idle timer, also those that wait for a trigger longer than it, and the run writes all of them."""
    orders.write({"models/all.sql": f"{{{{ config(sink='lake', trigger='{trigger}') }}}} {ALL}"})
    events: list[RunEvent] = []

    def notify(event: RunEvent) -> None:
        events.append(event)
        batches = sum(getattr(event, "batch_id", None) is not None for event in events)
        if batches in (2, 3, 4):
            orders.rows(f"in/orders/{batches}.json", order_rows(batches), modified=batches)

    limits = RunLimits(until_idle_seconds=idle)
    (result,) = run_models(RunRequest(ProjectRequest(orders.root), limits=limits), notify).results

    assert (result.status, result.rows_out) == (Status.STOPPED, 25)
    assert len(read_parquet(orders.root / "store/all")) == 25


@pytest.mark.slow
def test_threads_limit_queries_that_end(orders: ProjectFolder) -> None:
    """With one thread, queries that end start one after the other; endless queries need no thread."""
    orders.write({"project.yml": PROJECT.replace("storage: store", "storage: store, threads: 1")})
    orders.write({f"models/{name}.sql": f"{{{{ config(sink='lake', trigger='once') }}}} {ALL}" for name in "abc"})
    orders.write({"models/d.sql": f"{{{{ config(sink='lake', pool='shared') }}}} {ALL}"})

    orders.run(available_now=False, limits=RunLimits(until_idle_seconds=3.0))

    order = [
        (type(event).__name__[5:], event.model)
        for event in orders.events
        if isinstance(event, QueryStarted | QueryResult) and event.model != "d"
    ]
    assert order == [(kind, name) for name in "abc" for kind in ("Started", "Result")]
    started = [event.model for event in orders.events if isinstance(event, QueryStarted)]
    assert started.index("d") == 1


SLOW = """
import os

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader


class Slow(DataSource):
    @classmethod
    def name(cls):
        return "slow"

    def schema(self):
        return "n int"

    def simpleStreamReader(self, schema):
        return Reader(self.options["gate"])


class Reader(SimpleDataSourceStreamReader):
    def __init__(self, gate):
        self.gate = gate

    def initialOffset(self):
        if os.path.exists(self.gate):  # Spark may ask more than once
            with open(self.gate) as gate:
                gate.read()
            os.remove(self.gate)
        return {"n": 0}

    def read(self, start):
        return iter([(n,) for n in range(start["n"], 3)]), {"n": 3}

    def readBetweenOffsets(self, start, end):
        return iter([(n,) for n in range(start["n"], end["n"])])
"""


@pytest.mark.slow
def test_a_query_is_not_idle_before_its_first_look(orders: ProjectFolder) -> None:
    """A query is not idle before its first look at the source, however long that takes; the run reads what it finds."""
    gate = orders.root / "gate"
    os.mkfifo(gate)
    orders.write(
        {
            "python/slow.py": SLOW,
            "models/_slow.yml": "sources: [{name: made, tables: [{name: slow, format: python, class: 'slow:Slow', "
            f"options: {{gate: '{gate}'}}}}]}}]\n",
            "models/all.sql": "{{ config(sink='lake', trigger='100 milliseconds') }} select n from {{ source('made', 'slow') }}",
        }
    )
    opening = threading.Timer(4.0, gate.write_text, ["open"])  # many times the idle limit
    opening.start()

    result = orders.result(available_now=False, limits=RunLimits(until_idle_seconds=1.0))

    opening.join()
    assert (result.status, result.rows_out) == (Status.STOPPED, 3)
