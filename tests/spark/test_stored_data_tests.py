"""`sqlstream test --data`: the data tests of models on the rows that their sinks hold."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.services.spark_cluster import spark_cluster, without_folder
from tests.spark.conftest import ProjectFolder
from tests.support.violations import counts, order

MODEL = "{{ config(sink='SINK') }} select id, ts, kind, amount, id as `a.b 'c` from {{ source('shop', 'orders') }}"
SINKS = """sinks:
  - {name: files, format: json, path: 'files/{{ model.name }}'}
  - {name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}
  - {name: shown, format: console}
"""
TESTS = """
models:
  - name: orders
    columns:
      - name: id
        data_tests:
          - unique
          - unique: {name: unique_b, where: kind = 'b'}
          - unique: {name: unique_warns, config: {severity: WARN}}
          - unique: {name: few_repeated, config: {error_if: '> 5', warn_if: '> 5'}}
          - relationships: {arguments: {to: ref('kinds'), field: id}, name: known_id}
          - relationships: {to: "source('shop', 'orders')", field: id, name: same_id}
      - name: kind
        data_tests:
          - not_null
          - accepted_values: {values: [a, b]}
          - relationships: {to: ref('kinds'), field: kind, config: {severity: warn, store_failures: true, limit: 1}}
      - name: a.b 'c
        data_tests: [unique, not_null]
    data_tests:
      - expression_is_true: {name: positive, expression: amount >= 0}
      - expression_is_true: {name: small, expression: amount < 50, where: kind = 'b'}
      - unique_combination_of_columns: {combination_of_columns: [id, kind]}
"""
KINDS = "id,kind\n1,a\n2,a\n3,b\n4,b\n"
ROWS = [(1, "a", 1), (1, "a", None), (2, None, -2), (2, "b", 60), (2, "b", 60), (3, "c", 3), (4, "c", None)]
EXPECTED = {
    "unique_orders_id": ("fail", 2),
    "unique_b": ("fail", 1),
    "unique_warns": ("warn", 2),
    "few_repeated": ("pass", 2),
    "known_id": ("pass", 0),
    "same_id": ("pass", 0),
    "not_null_orders_kind": ("fail", 1),
    "accepted_values_orders_kind": ("fail", 2),
    "relationships_orders_kind": ("warn", 2),
    "unique_orders_a.b 'c": ("fail", 2),
    "not_null_orders_a.b 'c": ("pass", 0),
    "positive": ("fail", 1),
    "small": ("fail", 2),
    "unique_combination_of_columns_orders": ("fail", 2),
}


@pytest.fixture
def shop(folder: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """A project with orders, data tests of all kinds, and a seed to compare with."""
    monkeypatch.chdir(folder.root)
    folder.write({"models/_sinks.yml": SINKS, "models/orders.yml": TESTS, "seeds/kinds.csv": KINDS})
    folder.rows("in/orders/0.json", [order(*row) for row in ROWS], modified=0)
    return folder


def check(folder: ProjectFolder, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Returns the exit code, and each test by its name, of what `test --data` prints as JSON."""
    done = folder.invoke("test", "--data", "--output", "json", *options)
    assert "results" in done.out, done.err + done.out
    return done.code, {result["name"]: result for result in json.loads(done.out)["results"]}


def outcomes(results: dict[str, dict[str, Any]]) -> dict[str, tuple[str, int | None]]:
    """Returns the status and the failures of each test."""
    return {name: (result["status"], result["failures"]) for name, result in results.items()}


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param("lake", marks=pytest.mark.smoke),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("files", "tables")),
    ],
)
def test_each_test_counts_the_failures_of_stored_rows(shop: ProjectFolder, sink: str) -> None:
    """Files and databases have the same failures, with `where`, severities, other tables and strange names."""
    shop.write({"models/orders.sql": MODEL.replace("SINK", sink)})
    code, results = check(shop)
    assert (code, set(outcomes(results).values())) == (0, {("skipped", None)})
    assert "has written nothing yet" in results["positive"]["reason"]
    assert shop.result().finding is None

    code, results = check(shop)
    assert (code, outcomes(results)) == (1, EXPECTED)
    recorded = json.loads((shop.root / "target/run_results.json").read_text())
    assert (recorded["status"], recorded["args"]["data"]) == ("error", True)
    assert {each["name"]: (each["status"], each["failures"]) for each in recorded["results"]} == EXPECTED


SHORT = """
models:
  - name: orders
    columns:
      - name: kind
        data_tests:
          - not_null: {config: {store_failures: true, limit: 1}}
          - accepted_values: {values: [a], config: {severity: warn}}
          - unique: {config: {store_failures: true}}
    data_tests:
      - expression_is_true: {name: positive, expression: amount >= 0}
  - name: printed
    data_tests: [{expression_is_true: {expression: id > 0}}]
  - name: plain
    data_tests: [{expression_is_true: {expression: id > 0}}]
"""


def stored(folder: Path) -> list[dict[str, Any]]:
    """Returns the failures that a test has stored."""
    found: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return found


@pytest.mark.slow
def test_failures_are_shown_and_stored(shop: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text has a line for each test, with masked rows; `store_failures` replaces what was stored before."""
    monkeypatch.setenv("SQLSTREAM_SECRET_KIND", "hunter2secret")
    model = "{{ config(sink='shown') }} select * from {{ ref('plain') }}"
    plain = "select id, kind, amount from {{ source('shop', 'orders') }}"
    orders = MODEL.replace("SINK", "tables")
    shop.write({"models/orders.sql": orders, "models/orders.yml": SHORT})
    shop.write({"models/printed.sql": model, "models/plain.sql": plain})
    rows = [(1, "hunter2secret", 1), (2, None, 2), (3, None, 3), (4, "a", -4), (5, "a", 0)]
    shop.rows("in/orders/0.json", [order(*row) for row in rows], modified=0)
    shop.result("orders")

    done = shop.invoke("test", "--data")
    lines = [line for line in done.out.splitlines() if " data test " in line]
    assert [line.split(" ....")[0].partition(" of ")[2] for line in lines] == [
        "6 SKIP data test plain.expression_is_true_plain",
        "6 SKIP data test printed.expression_is_true_printed",
        "6 FAIL data test orders.not_null_orders_kind",
        "6 WARN data test orders.accepted_values_orders_kind",
        "6 FAIL data test orders.unique_orders_kind",
        "6 FAIL data test orders.positive",
    ]
    assert (done.code, done.out.splitlines()[-1]) == (1, "Done. PASS=0 WARN=1 ERROR=3 SKIP=2 TOTAL=6")
    assert "models/orders.yml:7:13: [data-test-failed] 2 rows of `orders` violate `not_null_orders_kind`" in done.out
    assert "models/orders.yml:8:13: warning: [data-test-failed] 1 row of `orders` violates" in done.out
    assert "stored in target/data_tests/orders/not_null_orders_kind" in done.out
    assert "it is a view" in done.out
    assert "`shown (console)` cannot be read" in done.out
    assert "hunter2secret" not in done.out
    folder = shop.root / "target/data_tests/orders"
    assert [row["kind"] for row in stored(folder / "not_null_orders_kind")] == [None]
    assert stored(folder / "unique_orders_kind") == [{"kind": "a", "n_records": 2}]
    assert not (folder / "positive").exists()

    shop.rows("in/orders/1.json", [order(6, "a", -6)], modified=1)
    shop.result("orders")
    code, results = check(shop, "--store-failures", "--select", "orders")
    assert (code, results["positive"]["failures"]) == (1, 2)
    assert results["positive"]["stored_in"] == "target/data_tests/orders/positive"
    assert [row["id"] for row in results["positive"]["shown"]["rows"]] == [4, 6]
    assert len(stored(folder / "positive")) == 2
    assert stored(folder / "unique_orders_kind") == [{"kind": "a", "n_records": 3}]

    stopped = shop.invoke("test", "--data", "--select", "orders", "--fail-fast")
    assert (stopped.code, stopped.out.splitlines()[-1]) == (1, "Done. PASS=0 WARN=0 ERROR=1 SKIP=3 TOTAL=4")
    assert not (folder / "positive").exists() or len(stored(folder / "positive")) == 2
    assert shop.invoke("retry").code == 2


@pytest.mark.slow
def test_a_test_that_cannot_be_checked_is_an_error(shop: ProjectFolder) -> None:
    """A column that the sink does not have yet, and a lost value of text, are errors of their tests only."""
    shop.write({"models/orders.sql": MODEL.replace("SINK", "lake"), "models/orders.yml": "models: []\n"})
    shop.result()
    shop.write(
        {
            "models/orders.sql": MODEL.replace("SINK", "lake").replace("amount,", "amount, 1 as one,"),
            "models/orders.yml": "models:\n  - name: orders\n    columns:\n      - name: one\n"
            "        data_tests: [unique, not_null]\n      - {name: id, data_tests: [not_null]}\n",
        }
    )
    code, results = check(shop)
    assert (code, {name: result["status"] for name, result in results.items()}) == (
        1,
        {"unique_orders_one": "error", "not_null_orders_one": "error", "not_null_orders_id": "pass"},
    )
    assert results["unique_orders_one"]["finding"]["code"] == "data-test"


HISTORY = """{{ config(sink='tables', output_mode='update', unique_key='id', sequence_by='ts', history=true) }}
select id, ts, kind from {{ source('shop', 'orders') }}"""


@pytest.mark.slow
def test_only_current_versions_of_a_history_must_be_unique(shop: ProjectFolder) -> None:
    """A key has many versions in a history; conditions are about all of them."""
    shop.write(
        {
            "models/orders.sql": HISTORY,
            "models/orders.yml": "models:\n  - name: orders\n    columns:\n      - name: id\n        data_tests: [unique]\n"
            "      - name: kind\n        data_tests: [not_null, unique]\n",
        }
    )
    first = {**order(1, None, 1), "ts": "2024-01-01 00:00:00"}
    shop.rows("in/orders/0.json", [first, {**order(2, "b", 2), "ts": "2024-01-01 00:00:00"}], modified=0)
    shop.rows("in/orders/1.json", [{**order(1, "b", 1), "ts": "2024-01-02 00:00:00"}], modified=1)
    shop.result()

    code, results = check(shop)
    assert (code, outcomes(results)) == (
        1,
        {"unique_orders_id": ("pass", 0), "not_null_orders_kind": ("fail", 1), "unique_orders_kind": ("fail", 1)},
    )
    assert set(results["not_null_orders_kind"]["shown"]["rows"][0]) == {"id", "ts", "kind"}


@pytest.mark.slow
def test_rows_of_a_batch_model_and_no_rows_are_tested(shop: ProjectFolder) -> None:
    """A batch model is tested like a stream, and a sink without rows passes."""
    shop.write(
        {
            "models/orders.sql": MODEL.replace("SINK", "lake") + " where id > 100",
            "models/kind_rows.sql": "{{ config(sink='lake') }} select kind from {{ ref('kinds') }}",
            "models/kind_rows.yml": "models:\n  - name: kind_rows\n    columns:\n      - name: kind\n"
            "        data_tests: [unique, not_null, {relationships: {to: ref('orders'), field: kind}}]\n",
        }
    )
    shop.run()
    code, results = check(shop)
    assert code == 1
    assert {each["failures"] for each in results.values() if each["model"] == "orders"} == {0}
    assert outcomes({name: each for name, each in results.items() if each["model"] == "kind_rows"}) == {
        "unique_kind_rows_kind": ("fail", 2),
        "not_null_kind_rows_kind": ("pass", 0),
        "relationships_kind_rows_kind": ("fail", 4),
    }


@pytest.mark.slow
@pytest.mark.parametrize("server", ["postgres", "mariadb"])
def test_rows_of_a_database_server_are_tested(
    shop: ProjectFolder, server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures in a table of PostgreSQL or MariaDB are the same as in files, and can be stored."""
    database: DatabaseServer = request.getfixturevalue(server)
    monkeypatch.setenv("SQLSTREAM_SECRET_DATABASE", PASSWORD)
    shop.write(
        {
            "models/_sinks.yml": f"sinks:\n{database.sink('served')}\n",
            "models/orders.sql": MODEL.replace("SINK", "served"),
        }
    )
    assert shop.result().finding is None
    code, results = check(shop, "--store-failures")
    assert (code, outcomes(results)) == (1, EXPECTED)
    assert [row["id"] for row in stored(shop.root / results["positive"]["stored_in"])] == [2]


BLOCKS = """
{% test is_positive(model, column_name, minimum=0) %}
select * from {{ model }} where {{ column_name }} < {{ minimum }}
{% endtest %}
{% test is_odd(model, column_name) %}
with v as (select {{ column_name }} as n from {{ model }})
select n from v where n % 2 = 0
{% endtest %}
{% test known(model, column_name, to) %}
select m.id from {{ model }} m left join {{ to }} k on m.{{ column_name }} = k.id where k.id is null
{% endtest %}
{% test at_most(model, most) %}
select count(*) as n from {{ model }} having count(*) > {{ most }}
{% endtest %}
"""
GENERIC = """
models:
  - name: orders
    columns:
      - name: amount
        data_tests:
          - is_positive: {on_violation: drop}
          - is_positive: {arguments: {minimum: 50}, name: large, where: kind = 'b', config: {severity: warn}}
      - name: id
        data_tests:
          - is_odd: {store_failures: true, limit: 1}
          - is_odd: {name: odd_a, where: kind = 'a', error_if: '> 5', warn_if: '> 5'}
          - known: {to: ref('kinds')}
          - known: {name: known_self, to: "ref('orders')"}
    data_tests:
      - at_most: {most: 2}
      - at_most: {name: few, most: 100}
"""


@pytest.mark.slow
def test_generic_tests_are_checked_in_the_stream_and_on_stored_rows(shop: ProjectFolder) -> None:
    """A filter drops rows while they flow, and any query counts the rows that it returns from what the sink holds."""
    shop.write({"models/orders.sql": MODEL.replace("SINK", "lake"), "models/orders.yml": GENERIC})
    shop.write({"tests/generic/own.sql": BLOCKS, "seeds/kinds.csv": "id,kind\n1,a\n2,a\n"})
    result = shop.result()
    assert (result.rows_out, counts(shop)) == (6, {"orders.is_positive_orders_amount": (6, 1), "orders.large": (7, 0)})

    code, results = check(shop)
    assert (code, outcomes(results)) == (
        1,
        {
            "is_positive_orders_amount": ("pass", 0),
            "large": ("pass", 0),
            "is_odd_orders_id": ("fail", 3),
            "odd_a": ("pass", 0),
            "known_orders_id": ("fail", 2),
            "known_self": ("pass", 0),
            "at_most_orders": ("fail", 1),
            "few": ("pass", 0),
        },
    )
    assert results["at_most_orders"]["shown"]["rows"] == [{"n": 6}]
    assert "no row from: select count(*) as n from orders" in results["at_most_orders"]["finding"]["why"]
    assert len(stored(shop.root / "target/data_tests/orders/is_odd_orders_id")) == 1


def test_freshness_and_row_counts_as_in_the_docs(shop: ProjectFolder) -> None:
    """The blocks of docs/data-tests.md about whole tables are true or false of the stored rows."""
    page = (Path(__file__).parents[2] / "docs/data-tests.md").read_text(encoding="utf-8")
    (block,) = (text.split("```")[0] for text in page.split("```text\n-- tests/generic/tables.sql\n")[1:])
    tests = """models:
  - name: orders
    columns:
      - name: ts
        data_tests:
          - is_fresh
          - is_fresh: {name: newer_than_a_century, within: 1200 months}
          - rows_in_each_hour
          - rows_in_each_hour: {name: many, at_least: 1000}
"""
    shop.write(
        {
            "models/orders.sql": MODEL.replace("SINK", "lake"),
            "models/orders.yml": tests,
            "tests/generic/tables.sql": block,
        }
    )
    assert shop.result().finding is None
    assert check(shop)[1]["many"]["failures"] > 0
    assert {name: result["status"] for name, result in check(shop)[1].items()} == {
        "is_fresh_orders_ts": "fail",
        "newer_than_a_century": "pass",
        "rows_in_each_hour_orders_ts": "pass",
        "many": "fail",
    }


@pytest.mark.slow
def test_failures_of_a_cluster_are_stored_here(
    folder: ProjectFolder, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machines of a cluster do not have the project. The failures are in its target/ all the same, and nothing of
    them stays in the storage.
    """
    if subprocess.run([*without_folder(folder.root), "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no private mounts")
    monkeypatch.chdir(folder.root)
    shared = tmp_path_factory.mktemp("shared files")
    (shared / "in").mkdir()
    rows = [dict(zip(("id", "kind", "amount"), row, strict=True)) for row in ROWS]
    (shared / "in/0.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sources = (folder.root / "sources.yml").read_text().replace("in/orders", f"{shared}/in")
    model = "{{ config(sink='lake') }} select id, kind, amount from {{ source('shop', 'orders') }}"
    tests = SHORT[: SHORT.index("  - name: printed")]
    folder.write({"sources.yml": sources, "models/orders.sql": model, "models/orders.yml": tests})
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=1, hidden=folder.root) as cluster:
        target = {"master": cluster.master, "storage": f"{shared}/store", "spark": {"spark.executor.memory": "600m"}}
        folder.write({"project.yml": json.dumps({"name": "shop", "targets": {"prod": target}})})
        assert folder.run().succeeded
        for _ in range(2):
            code, results = check(folder, "--store-failures")

    assert (code, {name: result["failures"] for name, result in results.items()}) == (
        1,
        {"not_null_orders_kind": 1, "accepted_values_orders_kind": 4, "unique_orders_kind": 3, "positive": 1},
    )
    kept = {name: stored(folder.root / result["stored_in"]) for name, result in results.items()}
    assert [row["amount"] for row in kept["positive"]] == [-2]
    assert sorted((row["kind"], row["n_records"]) for row in kept["unique_orders_kind"]) == [
        ("a", 2),
        ("b", 2),
        ("c", 2),
    ]
    assert len(kept["accepted_values_orders_kind"]) == 4
    assert [path for path in (shared / "store/_data_tests").rglob("*") if path.is_file()] == []
