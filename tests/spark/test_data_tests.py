"""Data tests while rows flow: counted, dropped, or the end of the query, and what a change of them means for state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from sqlstream.state.runs.events import AlertChanged, Status
from tests.spark.conftest import ProjectFolder
from tests.support.violations import counts, order

Rows = Callable[[Path], list[dict[str, Any]]]

MODEL = "{{ config(sink='lake') }} select id, ts, kind, amount from {{ source('shop', 'orders') }}"
OUT = "{{ config(sink='lake') }} select id from {{ ref('orders') }} where amount >= 0"
TESTS = """
models:
  - name: orders
    columns:
      - name: kind
        data_tests:
          - not_null: {on_violation: %s}
          - accepted_values: {values: [a, b]}
    data_tests:
      - expression_is_true: {name: positive, expression: amount >= 0, on_violation: %s}
      - expression_is_true: {name: small_b, expression: amount < 10, where: kind = 'b'}
"""
ROWS = [(1, "a", 1), (2, None, 2), (3, "b", -3), (4, "c", 4), (5, "a", None), (6, None, -6), (7, "b", 70)]


@pytest.mark.smoke
def test_violations_are_counted_and_dropped(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Each test counts all rows that reach the model, also those that others drop; null violates only `not_null`."""
    folder.write({"models/orders.sql": MODEL, "models/orders.yml": TESTS % ("drop", "drop")})
    folder.rows("in/orders/0.json", [order(*row) for row in ROWS], modified=0)
    result = folder.result()

    assert (result.rows_in, result.rows_out, result.violations) == (7, 4, 6)
    assert sorted(row["id"] for row in read_parquet(folder.root / "store/orders")) == [1, 4, 5, 7]
    assert counts(folder) == {
        "orders.not_null_orders_kind": (5, 2),
        "orders.accepted_values_orders_kind": (6, 1),
        "orders.positive": (5, 2),
        "orders.small_b": (6, 1),
    }
    folder.rows("in/orders/1.json", [order(8, "a", 1)], modified=1)
    folder.events.clear()
    assert folder.result().violations == 0
    assert set(counts(folder).values()) == {(1, 0)}


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("'violations': 5", "data tests of orders had 6 violations in the last hour; the limit is 5"),
        ("'percent': 12.5", "28.6 % of the rows of orders violated a data test in the last hour; the limit is 12.5 %"),
    ],
)
def test_results_and_alerts_have_the_violations(folder: ProjectFolder, limit: str, message: str) -> None:
    """run_results.json has the rows of each test, and an alert is raised over its limit."""
    rules = f"'expectation_failed_over': {{{limit}, 'per': '1 hour'}}"
    folder.write(
        {
            "models/orders.sql": MODEL.replace("sink='lake'", f"sink='lake', alerts={{{rules}}}"),
            "models/orders.yml": TESTS % ("drop", "drop"),
        }
    )
    folder.rows("in/orders/0.json", [order(*row) for row in ROWS], modified=0)
    folder.run()

    (result,) = json.loads((folder.root / "target/run_results.json").read_text())["results"]
    assert result["data_tests"]["orders.small_b"] == {"passed": 6, "failed": 1}
    raised = [event.message for event in folder.events if isinstance(event, AlertChanged) and event.state == "raised"]
    assert raised == [message]


UNIT_TEST = """
unit_tests:
  - name: bad_orders
    model: orders
    given:
      - input: source('shop', 'orders')
        batches:
          - rows: [{id: 1, ts: null, kind: a, amount: 1}, {id: 2, ts: null, kind: null, amount: -2}]
          - rows: [{id: 3, ts: null, kind: b, amount: -3}]
    expect:
      batches: [{rows: [{id: 1, ts: null, kind: a, amount: 1}]}, {rows: []}]
      violations: {%s}
"""


def test_unit_tests_expect_violations(folder: ProjectFolder) -> None:
    """A unit test runs the data tests of its models, and can expect their violations."""
    folder.write({"models/orders.sql": MODEL, "models/orders.yml": TESTS % ("drop", "drop")})
    folder.write({"tests/models/orders.yml": UNIT_TEST % "positive: 2, orders.small_b: 0, not_null_orders_kind: 1"})
    assert "PASS=1" in folder.invoke("test").out

    folder.write({"tests/models/orders.yml": UNIT_TEST % "positive: 3"})
    out = folder.invoke("test").out
    assert "violations of positive" in out
    folder.write({"tests/models/orders.yml": UNIT_TEST % "positiv: 3"})
    assert "`positiv` is not a data test of `orders`" in folder.invoke("test").out


@pytest.mark.slow
def test_a_view_is_tested_in_each_query_that_reads_it(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Rows that a view drops reach no query that reads it; a query that reads it twice counts its rows once."""
    folder.write(
        {
            "models/orders.sql": MODEL.replace("{{ config(sink='lake') }} ", ""),
            "models/orders.yml": TESTS % ("drop", "warn"),
            "models/both.sql": "{{ config(sink='lake') }} select id from {{ ref('orders') }} where amount < 3 "
            "union all select -id from {{ ref('orders') }}",
            "models/per_kind.sql": "{{ config(sink='lake', output_mode='complete') }} select kind, count(*) as n "
            "from {{ ref('orders') }} group by kind",
        }
    )
    folder.rows("in/orders/0.json", [order(*row) for row in ROWS], modified=0)
    folder.run()

    assert counts(folder)["orders.not_null_orders_kind"] == (10, 4)  # 7 rows in each of two queries
    assert sorted(row["id"] for row in read_parquet(folder.root / "store/both")) == [-7, -5, -4, -3, -1, 1, 3]


@pytest.mark.slow
@pytest.mark.parametrize("is_view", [False, True])
def test_a_query_fails_at_a_violation(folder: ProjectFolder, read_parquet: Rows, is_view: bool) -> None:
    """The query ends without a restart, also if it leaves out the rows that violate the test. The reason has the test, how
    many rows violate it and three of them; nothing of the batch is written.
    """
    sink = "" if is_view else "{{ config(sink='lake') }} "
    folder.write(
        {
            "models/orders.sql": MODEL.replace("{{ config(sink='lake') }} ", sink),
            "models/orders.yml": TESTS % ("drop", "fail"),
            **({"models/out.sql": OUT} if is_view else {}),
        }
    )
    folder.rows("in/orders/0.json", [order(1, "a", 1), order(6, None, -6)], modified=0)  # dropped before
    assert folder.result().status is Status.SUCCESS
    bad = [order(number, "b", -number) for number in (3, 4, 5, 6, 7)]
    folder.rows("in/orders/1.json", [order(2, "a", 2), *bad, order(8, None, -8)], modified=1)
    result = folder.result()

    assert (result.status, result.restarts) == (Status.ERROR, 0)
    assert result.finding is not None
    assert result.finding.code == "data-test-failed"
    assert result.finding.message.endswith("5 rows of `orders` violate the data test `positive`")
    start, *rows = re.split(r"(?<=\}), |(?<=are) ", result.finding.why)
    assert (start, [json.loads(row)["id"] for row in rows]) == ("3 of them are", [3, 4, 5])
    assert str(result.finding.location) == "models/orders.yml:10:9"
    output = folder.root / "store" / ("out" if is_view else "orders")
    assert [row["id"] for row in read_parquet(output)] == [1]
    folder.write({"models/orders.yml": TESTS % ("drop", "drop")})
    assert folder.result().status is Status.SUCCESS
    assert sorted(row["id"] for row in read_parquet(output)) == [1, 2]


@pytest.mark.slow
def test_a_tested_view_in_a_lateral_subquery(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Spark refuses such a subquery if its value may differ between two evaluations."""
    folder.write(
        {
            "models/kinds.sql": "select * from values ('a', 'apples'), ('b', 'berries') as t(kind, name)",
            "models/kinds.yml": "models: [{name: kinds, columns: [{name: name, "
            "data_tests: [not_null: {on_violation: fail}]}]}]\n",
            "models/named.sql": "{{ config(sink='lake') }} select o.id, k.name from {{ source('shop', 'orders') }} o, "
            "lateral (select name from {{ ref('kinds') }} n where n.kind = o.kind) k",
        }
    )
    folder.rows("in/orders/0.json", [order(1, "a", 1), order(2, "b", 2)], modified=0)

    assert folder.result().finding is None

    assert sorted(row["name"] for row in read_parquet(folder.root / "store/named")) == ["apples", "berries"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("{{ config(sink='rows') }} select value from {{ source('made', 'numbers') }}", "5 rows of `found` violate"),
        ("{{ config(sink='rows') }} select explode(array(1, 2)) as value", "2 rows of `found` violate"),
        (
            (
                "{{ config(sink='rows', output_mode='update', unique_key='value') }} "
                "select value, count(*) as n from {{ source('made', 'numbers') }} group by value"
            ),
            "a row of `found` violates",
        ),
    ],
    ids=["connector", "batch model", "state"],
)
def test_the_rows_that_end_a_query_are_counted(folder: ProjectFolder, model: str, message: str) -> None:
    """All rows of the batch count, also in batch models; behind a state only the first row is known."""
    source = "sources: [{name: made, tables: [{name: numbers, format: rate-micro-batch, options: {rowsPerBatch: 5}}]}]"
    folder.write(
        {
            "models/_sources.yml": source,
            "models/_sinks.yml": "sinks: [{name: rows, format: sqlite, path: '{{ model.name }}.sqlite'}]",
            "models/found.sql": model,
            "models/found.yml": "models: [{name: found, data_tests: "
            "[{expression_is_true: {name: none, expression: value < 0, on_violation: fail}}]}]",
        }
    )
    finding = folder.result(available_now=False).finding
    assert finding is not None
    assert f"{message} the data test `none`" in finding.message


@pytest.mark.slow
def test_what_is_dropped_before_a_state_is_part_of_it(folder: ProjectFolder) -> None:
    """A test that drops rows before a state is a change of the state. One that only counts them, or fails, is not, also
    if the SQL changes with it.
    """
    per_kind = (
        "{{ config(sink='lake', output_mode='complete') }} select kind, %s as n "
        "from {{ ref('orders') }} where id > 0 group by kind"
    )
    folder.write(
        {
            "models/orders.sql": MODEL.replace("{{ config(sink='lake') }} ", ""),
            "models/orders.yml": TESTS % ("drop", "warn"),
            "models/per_kind.sql": per_kind % "count(*)",
        }
    )
    folder.rows("in/orders/0.json", [order(*row) for row in ROWS], modified=0)
    folder.result()
    folder.write({"models/orders.yml": (TESTS % ("drop", "warn")).replace("[a, b]", "[a, b, c]")})
    assert folder.result().status is Status.SUCCESS

    folder.write(
        {"models/orders.yml": "\n" + TESTS % ("drop", "fail"), "models/per_kind.sql": per_kind % "count(*) + 0"}
    )
    folder.rows("in/orders/1.json", [order(8, "a", 1)], modified=1)
    assert folder.result().status is Status.SUCCESS

    for words in (("drop", "drop"), ("warn", "warn"), ("fail", "warn")):
        folder.write({"models/orders.yml": TESTS % words})
        with pytest.raises(FindingsError) as caught:
            folder.run()
        (found,) = caught.value.findings
        assert found.code == "state-change"
        assert "the data tests of `orders` drop other rows" in found.message


@pytest.mark.slow
def test_batch_models_and_python_models_are_tested(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Models in Python, and batch models over static tables and seeds, are tested in the same way."""
    folder.write(
        {
            "models/kinds.sql": "{{ config(sink='lake') }} select * from {{ ref('kinds_seed') }}",
            "seeds/kinds_seed.csv": "kind,name\na,Apple\nb,\n",
            "models/plain.py": "def model(sqlstream, session):\n"
            "    sqlstream.config(sink='lake')\n"
            "    return sqlstream.source('shop', 'orders')\n",
            "models/orders.yml": "models:\n"
            "  - {name: kinds, columns: [{name: name, data_tests: [{not_null: {on_violation: drop}}]}]}\n"
            "  - {name: plain, data_tests: [{expression_is_true: {name: kind, expression: kind = 'a', "
            "on_violation: drop}}]}\n",
        }
    )
    folder.rows("in/orders/0.json", [order(*row) for row in ROWS], modified=0)
    results = {result.model: result for result in folder.run().results}

    assert (results["kinds"].rows_out, results["kinds"].violations) == (1, 1)
    assert sorted(row["id"] for row in read_parquet(folder.root / "store/plain")) == [1, 2, 5, 6]
    assert counts(folder) == {"kinds.not_null_kinds_name": (1, 1), "plain.kind": (4, 3)}


@pytest.mark.slow
def test_sources_are_tested_in_each_query_that_reads_them(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Tests of a source count, leave rows out and end queries before the models compute anything; `test --data` checks
    those of a static table, selected by its source.
    """
    columns = (
        "{name: kind, data_type: string, data_tests: [not_null: {on_violation: drop}, accepted_values: {values: [a]}]}"
    )
    files = {
        "models/_more.yml": "sources:\n  - name: more\n    tables:\n      - name: orders\n        format: json\n"
        f"        path: in/orders\n        columns: [{{name: id, data_type: bigint}}, {columns}]\n"
        "        data_tests: [{expression_is_true: {name: small, expression: id < 5, on_violation: fail}}]\n"
        "      - name: kinds\n        format: json\n        mode: batch\n        path: in/kinds\n"
        "        columns: [{name: kind, data_type: string, data_tests: [unique]}]\n",
        "models/totals.sql": "{{ config(sink='lake', retries=0) }} select id, o.kind from {{ source('more', 'orders') }} o "
        "left semi join {{ source('more', 'kinds') }} k on o.kind = k.kind",
        "models/kinds.sql": "{{ config(sink='lake') }} select kind from {{ source('more', 'orders') }}",
    }
    folder.write(files)
    folder.rows("in/orders/0.json", [{"id": 1, "kind": "a"}, {"id": 2}, {"id": 3, "kind": "b"}], modified=0)
    folder.rows("in/kinds/0.json", [{"kind": "b"}, {"kind": "a"}, {"kind": "a"}])
    assert folder.run("totals kinds").succeeded
    assert sorted(row["id"] for row in read_parquet(folder.root / "store/totals")) == [1, 3]
    assert sorted(row["kind"] for row in read_parquet(folder.root / "store/kinds")) == ["a", "b"]
    assert counts(folder) == {
        "more__orders.not_null_more_orders_kind": (4, 2),
        "more__orders.accepted_values_more_orders_kind": (4, 2),
        "more__orders.small": (6, 0),
    }

    folder.rows("in/orders/1.json", [{"id": 6, "kind": "a"}, {"id": 7}], modified=1)
    finding = folder.result("totals").finding
    assert finding is not None
    assert (finding.code, str(finding.location)) == ("data-test-failed", "models/_more.yml:8:23")
    assert '{"id":6,"kind":"a"}' in finding.why

    done = folder.invoke("test", "--data", "--select", "source:more.kinds")
    assert (done.code, done.out.splitlines()[-1]) == (1, "Done. PASS=0 WARN=0 ERROR=1 SKIP=0 TOTAL=1")
    assert "1 value of `more__kinds` violates `unique_more_kinds_kind`" in done.out


@pytest.mark.parametrize("condition", ["amount > rand()", "to_number(kind, 'x') > 1", "amount in (select 1)"])
def test_a_condition_that_cannot_be_evaluated_is_shown_at_its_test(folder: ProjectFolder, condition: str) -> None:
    """What Spark cannot evaluate while rows flow is an error at the test, before the query starts."""
    own = f'data_tests: [{{expression_is_true: {{name: odd, expression: "{condition}"}}}}]'
    folder.write({"models/orders.sql": MODEL, "models/orders.yml": f"models:\n  - name: orders\n    {own}\n"})
    folder.rows("in/orders/0.json", [order(1, "a", 1)], modified=0)
    with pytest.raises(FindingsError) as caught:
        folder.run()
    assert [f"{found.code} {found.location}" for found in caught.value.findings] == ["data-test models/orders.yml:3:19"]


def test_names_and_columns_of_any_kind(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Columns with odd names, two columns of one name, tests with names of Spark's, and several sinks change nothing."""
    folder.write(
        {
            "models/odd.sql": "{{ config(sink=['lake', 'nowhere']) }} select id as `a.b``c`, kind as `rows`, amount "
            "from {{ source('shop', 'orders') }}",
            "models/twice.sql": "{{ config(sink='nowhere') }} select id, id, map(kind, amount) as m "
            "from {{ source('shop', 'orders') }}",
            "models/odd.yml": """
models:
  - name: odd
    columns:
      - name: A.B`c
        data_tests:
          - accepted_range: {name: rows, max_value: 5, on_violation: drop}
      - name: rows
        data_tests:
          - accepted_values: {name: COUNT, values: ["a", "it's \\\\ \\n odd"]}
  - name: twice
    data_tests:
      - expression_is_true: {name: never, expression: 'm is not null', on_violation: fail}
""",
        }
    )
    rows = [order(1, "a", 1), order(7, "a", 1), order(2, "it's \\ \n odd", 1), order(3, "b", 1)]
    folder.rows("in/orders/0.json", rows, modified=0)
    results = {result.model: result for result in folder.run().results}

    assert {name: (result.status, result.rows_out) for name, result in results.items()} == {
        "odd": (Status.SUCCESS, 3),
        "odd__nowhere": (Status.SUCCESS, 3),
        "twice": (Status.SUCCESS, 4),
    }
    assert counts(folder) == {"odd.rows": (6, 2), "odd.COUNT": (6, 2), "twice.never": (4, 0)}
    assert sorted(row["a.b`c"] for row in read_parquet(folder.root / "store/odd")) == [1, 2, 3]
