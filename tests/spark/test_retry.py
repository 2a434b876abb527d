"""`sqlstream retry`: what failed, was skipped or did not end runs again, and nothing else."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ProjectFolder, wait_for, wait_until

Rows = Callable[[Path], list[dict[str, Any]]]

BRONZE = """{{ config(sink='lake', materialized='stored', retries=0) }}
select id, kind, amount from {{ source('shop', 'orders') }}"""
SILVER = "{{ config(sink='lake') }} select id, amount * 2 as amount from {{ ref('bronze') }}"
OTHER = "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"
TEST = """unit_tests:
  - name: keeps
    model: bronze
    given: [{input: "source('shop', 'orders')", rows: [{id: 1, kind: a, amount: 2}]}]
    expect: {rows: [{id: 1, kind: a, amount: 2}]}
"""
STUCK = f"{BRONZE} where id < 10 or reflect('java.lang.Thread', 'sleep', 600000L) is null"


def write_models(orders: ProjectFolder, bronze: str) -> None:
    """Writes two stages and a query beside them."""
    orders.write({"models/bronze.sql": bronze, "models/silver.sql": SILVER, "models/other.sql": OTHER})


def results(orders: ProjectFolder) -> dict[str, str]:
    """Returns the status of each node in run_results.json by its name."""
    entries = json.loads((orders.root / "target/run_results.json").read_text())["results"]
    return {entry.get("name") or entry["model"]: entry["status"] for entry in entries}


def versions(orders: ProjectFolder, query: str) -> set[str]:
    """Returns the versions of a query."""
    return {path.name for path in (orders.root / "store/queries" / query).glob("v*/")}


@pytest.mark.slow
def test_a_retry_of_a_build_repeats_the_failed_test_and_what_it_skipped(orders: ProjectFolder) -> None:
    """After the repair of a unit test, it runs again, with the query and the stage below, and the options of the build."""
    write_models(orders, BRONZE)
    orders.write({"tests/models/tests.yml": TEST.replace("expect: {rows: [{id: 1", "expect: {rows: [{ide: 1")})
    assert orders.invoke("build", "--available-now", "--exclude", "other").code == 1
    assert results(orders) == {"bronze.keeps": "error", "bronze": "skipped", "silver": "skipped"}

    orders.write({"tests/models/tests.yml": TEST})
    done = orders.invoke("retry", "--output", "json")

    found = json.loads(done.out)
    assert (done.code, found["command"], found["succeeded"]) == (0, "build", True)
    assert results(orders) == {"bronze.keeps": "passed", "bronze": "success", "silver": "success"}
    assert "3 of 3 nodes: unit test bronze.keeps, bronze, silver" in done.err
    assert orders.invoke("retry").out.startswith("Nothing to retry: ")


def test_a_retry_of_tests_repeats_those_that_failed(orders: ProjectFolder) -> None:
    """`retry` after `test` runs only the tests that did not pass."""
    write_models(orders, BRONZE)
    other = TEST.replace("keeps", "doubles").replace("amount: 2}]}\n", "amount: 4}]}\n")
    orders.write({"tests/models/tests.yml": TEST, "tests/models/other.yml": other})
    assert orders.invoke("test").code == 1
    assert results(orders) == {"bronze.doubles": "failed", "bronze.keeps": "passed"}

    orders.write({"tests/models/other.yml": TEST.replace("keeps", "doubles")})
    done = orders.invoke("retry", "--output", "json")

    assert (done.code, [result["name"] for result in json.loads(done.out)["results"]]) == (0, ["doubles"])
    assert orders.invoke("status").code == 2  # a test is no run


@pytest.mark.slow
def test_a_retry_of_a_run_repeats_the_failed_query_and_what_reads_its_output(orders: ProjectFolder) -> None:
    """A query whose source fails and the stage below it run again; the query that succeeded does not."""
    write_models(orders, BRONZE)
    broken = orders.root / "in/orders/1.json"
    good = broken.read_text()
    sources = orders.root / "sources.yml"
    sources.write_text(sources.read_text().replace("maxFilesPerTrigger: 1", "maxFilesPerTrigger: 1, mode: FAILFAST"))
    orders.run("other")
    broken.write_text("not json\n")
    assert orders.invoke("run", "--available-now").code == 1
    assert results(orders) == {"bronze": "error", "other": "success", "silver": "skipped"}

    broken.write_text(good)
    done = orders.invoke("retry", "--log-format", "json")

    assert done.code == 0
    assert results(orders) == {"bronze": "success", "silver": "success"}


@pytest.mark.slow
def test_a_retry_after_a_kill_continues_the_versions_of_a_full_refresh(
    orders: ProjectFolder, read_parquet: Rows
) -> None:
    """After `kill -9` in a full refresh, the killed query and the next stage continue the new versions that have begun;
    the finished query does not start over again.
    """
    write_models(orders, BRONZE)
    orders.run()
    write_models(orders, STUCK)
    process = orders.command("run", "--available-now", "--full-refresh", "--log-format", "json")
    wait_for(process, '"event": "query_ended"')
    wait_until(process, (orders.root / "store/queries/bronze/v2/checkpoint/commits/0").exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert results(orders) == {"bronze": "running", "other": "success", "silver": "pending"}

    write_models(orders, BRONZE)
    done = orders.invoke("retry")

    assert done.code == 0
    assert "--available-now --full-refresh`: 2 of 3 nodes: bronze, silver" in done.err
    assert results(orders) == {"bronze": "success", "silver": "success"}
    assert all(versions(orders, query) == {"v1", "v2"} for query in ("bronze", "silver", "other"))
    for name in ("bronze.v2", "silver.v2", "other.v2"):
        assert len(read_parquet(orders.root / "store" / name)) == 10
