"""`sqlstream plan` on real checkpoints: it says what the next run does, with and without Spark, and changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.cli.main import cli
from sqlstream.state.verdicts import ProjectPlan, QueryVerdict, Verdict
from tests.spark.conftest import ProjectFolder

MODELS = {
    "clean": "select id, ts, kind, amount from {{ source('shop', 'orders') }}",
    "totals": "{{ config(sink='tables', output_mode='update', unique_key='kind') }}\n"
    "select kind, sum(amount) as total\nfrom {{ ref('clean') }} group by kind",
    "counts": "{{ config(sink='tables', output_mode='update', unique_key='kind') }}\n"
    "select kind, count(*) as n\nfrom {{ ref('clean') }} group by kind having count(*) > 1",
    "plain": "{{ config(sink='lake') }} select id, amount from {{ ref('clean') }}",
    "same": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
    "gone": "{{ config(sink='lake') }} select kind from {{ source('shop', 'orders') }}",
}


@pytest.fixture
def changed(orders: ProjectFolder) -> ProjectFolder:
    """A project whose queries have run, and then changed: one of each kind."""
    orders.write({f"models/{name}.sql": f"{sql}\n" for name, sql in MODELS.items()})
    orders.write({"models/_sinks.yml": "sinks: [{name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"})
    orders.run()
    (orders.root / "models/gone.sql").unlink()
    orders.write(
        {
            "models/totals.sql": MODELS["totals"].replace("sum(amount)", "sum(amount * 100)"),
            "models/counts.sql": MODELS["counts"].replace("> 1", "> 2"),
            "models/plain.sql": MODELS["plain"].replace("amount", "cast(amount as string) as amount"),
            "models/fresh.sql": "{{ config(sink='lake') }} select ts from {{ source('shop', 'orders') }}\n",
        }
    )
    return orders


def plan(folder: ProjectFolder, *, check: bool = False) -> tuple[ProjectPlan, dict[str, QueryVerdict]]:
    """Returns the plan of a project, and its verdicts by model."""
    found = plan_project(PlanRequest(ProjectRequest(folder.root, env=os.environ), check=check))
    return found, {query.model: query for query in found.queries}


def stored(folder: ProjectFolder) -> dict[str, bytes]:
    """Returns all files in the storage."""
    return {str(path): path.read_bytes() for path in (folder.root / "store").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_each_query_has_a_verdict(changed: ProjectFolder) -> None:
    """With Spark, each query is judged as a run would do it; nothing is written."""
    before = stored(changed)

    found, queries = plan(changed, check=True)

    verdicts = {name: query.verdict for name, query in queries.items()}
    assert verdicts == {
        "totals": Verdict.REFUSE,
        "counts": Verdict.RESUME,
        "plain": Verdict.REBUILD,
        "same": Verdict.UNCHANGED,
        "fresh": Verdict.NEW,
        "gone": Verdict.REMOVED,
    }
    assert found.is_refused
    assert queries["totals"].reason == (
        "the aggregates of the aggregation changed from `sum(shop.orders.amount)` to `sum(100 * shop.orders.amount)`"
    )
    (finding,) = queries["totals"].findings
    assert str(finding.location) == "models/totals.sql:2:14"
    assert [text.partition(":")[0] for text in queries["totals"].reads_again] == ["shop.orders"]
    assert stored(changed) == before


@pytest.mark.slow
def test_without_spark_only_what_it_alone_can_tell_is_open(changed: ProjectFolder) -> None:
    """Without Spark, the SQL decides what it can about the state, and never says that a refused query resumes."""
    changed.write({"models/totals.sql": MODELS["totals"].replace("sum(amount)", "sum(coalesce(amount, 0))")})

    _, queries = plan(changed)

    verdicts = {name: query.verdict for name, query in queries.items()}
    assert verdicts == {
        "totals": Verdict.UNDECIDED,
        "counts": Verdict.RESUME,
        "plain": Verdict.REBUILD,
        "same": Verdict.UNCHANGED,
        "fresh": Verdict.NEW,
        "gone": Verdict.REMOVED,
    }
    assert (queries["totals"].findings, "--check" in queries["totals"].reason) == ((), True)


@pytest.mark.slow
def test_a_refusal_without_spark_has_the_reason_of_spark(changed: ProjectFolder) -> None:
    """The SQL of a plain aggregation shows the same difference as Spark's plan."""
    _, without = plan(changed)
    _, with_spark = plan(changed, check=True)

    assert without["totals"].verdict is Verdict.REFUSE
    assert without["totals"].reason == with_spark["totals"].reason


def test_a_changed_view_names_the_other_queries(changed: ProjectFolder) -> None:
    """A changed view concerns all queries that read it."""
    changed.write({"models/clean.sql": MODELS["clean"] + " where amount > 1"})

    _, queries = plan(changed)

    assert queries["totals"].shared_with == (("clean", ("counts", "plain")),)
    assert [name for name, _, _ in queries["plain"].sql] == ["clean", "plain"]


@pytest.mark.slow
def test_the_command_starts_no_java(changed: ProjectFolder, tmp_path: Path) -> None:
    """Without --check the command runs where there is no Java, and prints what it knows."""
    bare = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    env = {**bare, "PATH": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-X", "importtime", "-m", "sqlstream", "plan"]

    done = subprocess.run(command, cwd=changed.root, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "Plan for target local (without Spark): 1 new, 1 unchanged, 1 resume, 1 refuse, 1 rebuild, 1 removed"
    )
    assert "pyspark" not in done.stderr


@pytest.mark.slow
def test_other_formats(changed: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON has all facts, and Markdown a row for each changed query with its SQL."""
    monkeypatch.chdir(changed.root)

    as_json = CliRunner().invoke(cli, ["plan", "-s", "plain same", "--output", "json"])
    as_markdown = CliRunner().invoke(cli, ["plan", "-s", "plain same", "--output", "markdown"])

    found = json.loads(as_json.stdout)
    by_model = {query["model"]: query for query in found["queries"]}
    assert {name: query["verdict"] for name, query in by_model.items()} == {"plain": "rebuild", "same": "unchanged"}
    assert by_model["plain"]["findings"][0]["code"] == "output-columns"
    assert (as_json.exit_code, as_markdown.exit_code) == (1, 1)
    assert "| `plain` | **rebuild** |" in as_markdown.stdout
    assert "`same`" not in as_markdown.stdout
    assert "```diff" in as_markdown.stdout


def test_nothing_is_refused(orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan in which nothing is refused ends with 0."""
    orders.write({"models/same.sql": MODELS["same"]})
    monkeypatch.chdir(orders.root)

    done = CliRunner().invoke(cli, ["plan"])

    assert (done.exit_code, done.stdout) == (0, "new: same\n\nPlan for target local (without Spark): 1 new\n")


DOWNSTREAM = {
    "models/bronze.sql": "{{ config(sink='lake', materialized='stored') }}\n"
    "select id, kind, amount from {{ source('shop', 'orders') }}\n",
    "models/silver.sql": "{{ config(sink='lake') }} select * from {{ ref('bronze') }}\n",
    "models/ids.sql": "{{ config(sink='lake') }} select id from {{ ref('bronze') }}\n",
    "models/kinds.sql": "{{ config(sink='lake') }} select a as kind, 1 as n from {{ ref('names') }}\n",
    "seeds/names.csv": "a\nx\n",
    "models/_exposures.yml": "exposures:\n"
    "  - {name: board, type: dashboard, owner: {name: Ada}, depends_on: [ref('silver')]}\n"
    "  - {name: app, type: application, owner: {email: app@example.com}, depends_on: [ref('bronze'), ref('kinds')]}\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("check", [False, True])
def test_a_changed_type_breaks_what_is_downstream(orders: ProjectFolder, *, check: bool) -> None:
    """A query whose column changes its type names its sink, the queries that read its stored output, and exposures."""
    orders.write(DOWNSTREAM)
    orders.run()
    orders.write(
        {"models/bronze.sql": DOWNSTREAM["models/bronze.sql"].replace(" amount", " cast(amount as string) as amount")}
    )

    _, queries = plan(orders, check=check)

    change = "column `amount` was int, and is now string"
    start = "it reads the stored output of `bronze`, and must start over after a full refresh of it"
    assert queries["bronze"].verdict is Verdict.REBUILD
    assert [(str(each.kind), each.name, each.reason) for each in queries["bronze"].breaks] == [
        ("sink", "lake", f"{change}; a full refresh writes its rows to a new version of the output"),
        ("model", "ids", start),
        ("model", "silver", start if check else f"its {change}"),
        ("exposure", "app", f"it reads `bronze`, whose {change}"),
        (
            "exposure",
            "board",
            f"it reads `silver`, {start.replace('it reads', 'which reads') if check else f'whose {change}'}",
        ),
    ]
    assert queries["ids"].breaks == ()


@pytest.mark.slow
@pytest.mark.parametrize("check", [False, True])
def test_a_changed_batch_model_is_not_unchanged(orders: ProjectFolder, *, check: bool) -> None:
    """A changed batch model shows its differences and what they break; an unchanged one shows none."""
    orders.write(DOWNSTREAM)
    orders.run()
    _, before = plan(orders, check=check)
    orders.write({"models/kinds.sql": DOWNSTREAM["models/kinds.sql"].replace("1 as n", "2 as m")})

    _, queries = plan(orders, check=check)

    assert (before["kinds"].verdict, before["kinds"].changes) == (Verdict.UNCHANGED, ())
    assert queries["kinds"].verdict is Verdict.RESUME
    assert queries["kinds"].columns == ("column `n` was removed, or renamed to `m`", "column `m` is new")
    assert [name for name, _, _ in queries["kinds"].sql] == ["kinds"]
    assert [each.name for each in queries["kinds"].breaks] == ["lake", "app"]
