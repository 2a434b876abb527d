"""Contracts in runs: columns that only Spark knows, and constraints that queries and tables enforce."""

from __future__ import annotations

import sqlite3

import pytest

from sqlstream import FindingsError, ProjectRequest
from sqlstream.app.compile.check import check_models
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, Selection
from tests.spark.conftest import ProjectFolder

READS = "from {{ source('shop', 'orders') }}"
COLUMNS = "[{name: id, data_type: int, constraints: CONSTRAINTS}, {name: kind, data_type: string}]"


def with_contract(name: str, columns: str) -> str:
    """Returns the properties of a model with an enforced contract."""
    return f"models:\n  - name: {name}\n    config: {{contract: {{enforced: true}}}}\n    columns: {columns}\n"


@pytest.mark.smoke
def test_spark_checks_what_the_compiler_does_not_know(orders: ProjectFolder) -> None:
    """The columns of a Python model are compared by `compile --check` and by a run, also if it is only read."""
    orders.write(
        {
            "models/coded.py": "def model(sqlstream, spark):\n"
            "    return sqlstream.source('shop', 'orders').select('id', 'kind')\n",
            "models/all.sql": "{{ config(sink='lake') }} select id from {{ ref('coded') }}",
            "models/_coded.yml": with_contract(
                "coded", "[{name: kind, data_type: string}, {name: id, data_type: bigint}]"
            ),
        }
    )
    expected = ["contract models/_coded.yml:4:22", "contract models/_coded.yml:4:70"]

    with pytest.raises(FindingsError) as checked:
        check_models(ProjectRequest(orders.root), Selection(("all",)))
    with pytest.raises(FindingsError) as run:
        orders.run()
    for error in (checked, run):
        assert (
            sorted(f"{finding.code} {finding.location}" for finding in error.value.findings if finding.is_error)
            == expected
        )

    orders.write(
        {"models/_coded.yml": with_contract("coded", "[{name: id, data_type: int}, {name: kind, data_type: string}]")}
    )
    assert orders.run().succeeded


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraint", "sql", "words"),
    [
        ("{type: not_null}", f"select nullif(id, 3) as id, kind {READS}", "allows no null in `id`"),
        ("{type: check, name: small, expression: id < 3}", f"select id, kind {READS}", "check constraint small of all: id < 3"),
    ],
    ids=["not null", "check"],
)  # fmt: skip
def test_a_query_fails_at_a_row_that_breaks_a_constraint(
    orders: ProjectFolder, constraint: str, sql: str, words: str
) -> None:
    """The batch of the row is not written, and the query does not restart."""
    columns = COLUMNS.replace("CONSTRAINTS", f"[{constraint}]")
    orders.write(
        {"models/all.sql": "{{ config(sink='lake') }} " + sql, "models/_all.yml": with_contract("all", columns)}
    )

    result = orders.result("all")
    assert result.finding is not None
    assert words in result.finding.why
    assert not list(orders.root.glob("store/queries/all/v1/checkpoint/commits/0"))

    orders.write({"models/all.sql": "{{ config(sink='lake') }} select cast(null as string) as kind, id " + READS})
    orders.write(
        {"models/_all.yml": with_contract("all", "[{name: kind, data_type: string}, {name: id, data_type: int}]")}
    )
    assert orders.run("all", full_refresh=True).succeeded


def test_a_new_table_of_a_database_allows_no_null(orders: ProjectFolder) -> None:
    """`not_null` columns are NOT NULL in the table, and a row that deletes another one only needs its key."""
    columns = COLUMNS.replace("CONSTRAINTS", "[{type: primary_key}]").replace(
        "string}", "string, constraints: [{type: not_null}]}"
    )
    orders.write(
        {
            "models/_counts.yml": "sinks: [{name: counts, format: sqlite, path: '{{ model.name }}.sqlite'}]\n",
            "models/all.sql": "{{ config(sink='counts', unique_key='id', delete_when='kind is null') }}\n"
            f"select id, if(id = 3, null, kind) as kind {READS}",
            "models/_all.yml": with_contract("all", columns),
        }
    )

    assert orders.run().succeeded
    with sqlite3.connect(orders.root / "store/all.sqlite") as connection:
        required = {name: required for _, name, _, required, *_ in connection.execute('pragma table_info("all")')}
    assert required == {"id": 1, "kind": 1}


@pytest.mark.slow
def test_a_plan_names_what_breaks_a_contract(orders: ProjectFolder) -> None:
    """The ledger has the contract; after the next run, the new one counts."""
    columns = COLUMNS.replace("CONSTRAINTS", "[{type: not_null}]")
    sql = "{{ config(sink='lake') }} select COLUMNS " + READS
    orders.write(
        {"models/all.sql": sql.replace("COLUMNS", "id, kind"), "models/_all.yml": with_contract("all", columns)}
    )
    assert orders.run("all").succeeded

    def breaks() -> list[str]:
        (query,) = plan_project(PlanRequest(ProjectRequest(orders.root), Selection(("all",)))).queries
        return [f"{query.verdict} {each.kind} {each.name}: {each.reason}" for each in query.breaks]

    assert breaks() == []
    columns = "[{name: kind, data_type: string}, {name: id, data_type: int}]"
    orders.write(
        {"models/all.sql": sql.replace("COLUMNS", "kind, id"), "models/_all.yml": with_contract("all", columns)}
    )
    assert breaks() == [
        "resume contract all: column `id` can be null; nothing in the project reads it",
        "resume contract all: its columns had the order id, kind, and now have kind, id; nothing in the project reads it",
    ]
    orders.rows("in/orders/2.json", [{"id": 1}], modified=2)
    assert orders.run("all").succeeded
    assert breaks() == []
