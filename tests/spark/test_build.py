"""`sqlstream build`: unit tests first, then the queries that end, in the order of the graph."""

from __future__ import annotations

import json

import pytest

from tests.spark.conftest import ProjectFolder, order_rows

BRONZE = """{{ config(sink='lake', materialized='stored', trigger='available_now') }}
select id, ts, kind, amount from {{ source('shop', 'orders') }}"""
SILVER = """{{ config(sink='lake', materialized='stored', trigger='available_now') }}
select id, kind, amount * 2 as amount from {{ ref('bronze') }}"""
GOLD = "{{ config(sink='lake') }} select kind, sum(amount) as total from {{ ref('names') }} group by kind"
NAMES = "{{ config(sink='lake') }} select 1 as id, 'a' as kind, 5 as amount"
LIVE = "{{ config(sink='lake', trigger='10 seconds') }} select id from {{ source('shop', 'orders') }}"
TESTS = """unit_tests:
  - name: doubles
    model: silver
    given: [{input: ref('bronze'), rows: [{id: 1, kind: a, amount: 2}]}]
    expect: {rows: [{id: 1, kind: a, amount: 4}]}
  - name: keeps
    model: bronze
    given: [{input: "source('shop', 'orders')", rows: [{id: 1, ts: "2024-01-01 00:00:00", kind: a, amount: 2}]}]
    expect: {rows: [{id: 1, ts: "2024-01-01 00:00:00", kind: a, amount: EXPECTED}]}
  - name: later
    model: silver
    config: {enabled: false}
    given: [{input: ref('bronze'), rows: []}]
    expect: {rows: []}
"""


@pytest.fixture
def shop(orders: ProjectFolder) -> ProjectFolder:
    """Two stored stages with a unit test each, a batch model over another, and a query that never ends."""
    names = {"bronze": BRONZE, "silver": SILVER, "gold": GOLD, "names": NAMES, "live": LIVE}
    orders.write({f"models/{name}.sql": text for name, text in names.items()})
    orders.write({"tests/models/tests.yml": TESTS.replace("EXPECTED", "2")})
    return orders


def results(shop: ProjectFolder) -> dict[str, str]:
    """Returns the status of each node in run_results.json by its name."""
    entries = json.loads((shop.root / "target/run_results.json").read_text())["results"]
    return {entry.get("name") or entry["model"]: entry["status"] for entry in entries}


@pytest.mark.slow
def test_a_failed_unit_test_skips_its_model_and_all_downstream(shop: ProjectFolder) -> None:
    """The model of a failed unit test and the stored stage below do not run. Other queries do, except those that never
    end, which `status` does not show as skipped.
    """
    shop.write({"tests/models/tests.yml": TESTS.replace("EXPECTED", "3")})

    done = shop.invoke("build", "--log-format", "json")

    lines = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 1
    assert results(shop) == {
        "bronze.keeps": "failed",
        "silver.doubles": "passed",
        "bronze": "skipped",
        "silver": "skipped",
        "names": "success",
        "gold": "success",
        "live": "no-op",
    }
    ended = [line for line in lines if line["event"] in ("unit_test_ended", "query_ended", "query_not_run")]
    assert {line["reason"] for line in ended if line.get("status") == "skipped"} == {
        "unit test bronze.keeps did not pass"
    }
    (endless,) = (line for line in ended if line["event"] == "query_not_run")
    assert (endless["model"], "trigger `10 seconds` never ends" in endless["reason"]) == ("live", True)
    assert (lines[-1]["event"], lines[-1]["unit_tests"], lines[-1]["queries"]) == ("done", 2, 4)
    status = json.loads(shop.invoke("status", "--output", "json").out)
    assert {query["model"] for query in status["queries"]} == {"bronze", "silver", "names", "gold"}


def test_fail_fast_stops_before_any_query(shop: ProjectFolder) -> None:
    """With --fail-fast no query runs after a unit test that did not pass, and the summary counts as dbt does."""
    shop.write({"tests/models/tests.yml": TESTS.replace("amount: EXPECTED", "amount: 2, oops: 1")})

    done = shop.invoke("build", "-x", "--exclude", "live")

    assert done.code == 1
    assert "Done. PASS=0 WARN=0 ERROR=1 SKIP=5 TOTAL=6" in done.out
    assert not (shop.root / "store").exists()


def test_a_failed_query_skips_only_what_reads_its_output(shop: ProjectFolder) -> None:
    """If a query fails while it runs, the stage that reads its stored output is skipped."""
    shop.write(
        {
            "models/bronze.sql": BRONZE.replace("'lake',", "'lake', retries=0,").replace(
                " amount from", " assert_true(id < 0) as amount from"
            )
        }
    )
    shop.write({"models/silver.sql": SILVER.replace("amount * 2", "id"), "models/late.sql": LIVE})
    shop.rows("in/orders/2.json", order_rows(2), modified=2)

    done = shop.invoke("build", "--resource-type", "model", "--exclude", "live", "gold", "late")

    assert done.code == 1
    assert results(shop) == {"bronze": "error", "silver": "skipped", "names": "success"}
    assert "silver is skipped: bronze, whose stored output it reads, failed or was skipped" in done.out


def test_a_unit_test_file_that_cannot_be_read_refuses_the_build(shop: ProjectFolder) -> None:
    """A build of models whose unit tests are unknown runs nothing; without unit tests it runs."""
    shop.write(
        {"tests/models/tests.yml": "unit_tests: [{name: keeps, model: bronze, given: [{input: ref('a', 'b'), rows"}
    )

    refused = shop.invoke("build", "-s", "names")
    done = shop.invoke("build", "-s", "names", "--exclude-resource-type", "unit_test")

    assert (refused.code, "[yaml-syntax]" in refused.err) == (1, True)
    assert (done.code, results(shop)) == (0, {"names": "success"})
