"""Tables of a catalog that lasts: one process writes, another reads."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import ProjectFolder, order_rows

from sqlstream.errors import FindingsError


@pytest.fixture
def catalog(orders: ProjectFolder) -> ProjectFolder:
    """The project of orders on a target whose catalog lies in the project, with a table sink."""
    where = orders.root / "metastore"
    orders.write(
        {
            "project.yml": "name: shop\ntargets:\n  local:\n    master: local[2]\n    storage: store\n    spark:\n"
            "      spark.sql.catalogImplementation: hive\n"
            f"      spark.hadoop.javax.jdo.option.ConnectionURL: 'jdbc:derby:;databaseName={where};create=true'\n"
            f"      spark.driver.extraJavaOptions: -Dderby.stream.error.file={orders.root}/derby.log\n",
            "models/_gold.yml": "sinks:\n  - {name: gold, format: table, table: 'gold_{{ model.name }}'}\n"
            "sources:\n  - name: gold\n    tables:\n"
            "      - {name: orders, format: table, table: gold_all, schema: 'id int, kind string'}\n"
            "      - {name: wrong, format: table, table: gold_all, schema: 'id string'}\n"
            "      - {name: fixed, format: table, table: gold_all, mode: batch}\n",
            "models/all.sql": "{{ config(sink='gold') }} select id, kind from {{ source('shop', 'orders') }}",
            "models/read.sql": "{{ config(sink='lake') }} select id from {{ source('gold', 'orders') }}",
            "models/joined.sql": "{{ config(sink='lake') }} select o.id from {{ source('shop', 'orders') }} o "
            "join {{ source('gold', 'fixed') }} f on f.id = o.id",
        }
    )
    return orders


def run(project: ProjectFolder, *arguments: str) -> tuple[int, str]:
    """Runs the command in a process of its own."""
    process = project.command("run", "--available-now", *arguments)
    output, _ = process.communicate(timeout=240)
    return process.returncode, output


def test_one_process_writes_a_table_that_the_next_ones_read(catalog: ProjectFolder, read_parquet: Any) -> None:
    """As a stream and as a static table; a declared schema must be the table's own."""
    assert run(catalog, "-s", "all")[0] == 0
    catalog.rows("in/orders/2.json", order_rows(2), modified=2)
    code, output = run(catalog, "-s", "all")
    assert (code, "gold_all" in output) == (0, True), output

    code, output = run(catalog, "-s", "read", "joined")

    assert code == 0, output
    ids = sorted(row["id"] for row in order_rows(0) + order_rows(1) + order_rows(2))
    assert sorted(row["id"] for row in read_parquet(catalog.root / "store/read")) == ids
    assert sorted(row["id"] for row in read_parquet(catalog.root / "store/joined")) == ids

    catalog.write({"models/wrong.sql": "{{ config(sink='lake') }} select id from {{ source('gold', 'wrong') }}"})
    code, output = run(catalog, "-s", "wrong")
    assert (code, "as int, and not as string" in output) == (1, True), output


def test_a_batch_model_takes_the_place_of_its_table_and_archives_it(catalog: ProjectFolder) -> None:
    """Each run writes the table anew under its name; the earlier ones stay, in their order, and none is left half."""
    catalog.write(
        {
            "models/_static.yml": "sources:\n  - name: fixed\n    tables:\n"
            "      - {name: orders, format: json, path: in/orders, schema: 'id int, kind string', mode: batch}\n"
            + "".join(
                f"      - {{name: {name}, format: table, table: gold_report{ending}, mode: batch}}\n"
                for name, ending in (("report", ""), ("first", "_archive_1"), ("second", "_archive_2"))
            ),
            "models/report.sql": "{{ config(sink='gold') }} select kind, count(*) as n from "
            "{{ source('fixed', 'orders') }} group by kind",
        }
    )
    for number in range(2, 4):
        code, output = run(catalog, "-s", "report")
        assert (code, "gold_report" in output) == (0, True), output
        catalog.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    assert run(catalog, "-s", "report")[0] == 0

    for name in ("report", "first", "second"):
        text = f"{{{{ config(sink='lake') }}}} select sum(n) as n from {{{{ source('fixed', '{name}') }}}}"
        catalog.write({f"models/of_{name}.sql": text})
    code, output = run(catalog, "-s", "of_report", "of_first", "of_second")

    assert code == 0, output
    found = {
        name: pq.read_table(catalog.root / f"store/of_{name}").to_pylist() for name in ("report", "first", "second")
    }
    assert found == {"report": [{"n": 20}], "first": [{"n": 10}], "second": [{"n": 15}]}
    assert not list(catalog.root.glob("spark-warehouse/*writing*"))


def test_a_catalog_in_memory_is_refused(orders: ProjectFolder) -> None:
    """The second run would find a folder in its way, and no table."""
    orders.write(
        {
            "models/_gold.yml": "sinks:\n  - {name: gold, format: table, table: all}\n",
            "models/all.sql": "{{ config(sink='gold') }} select id from {{ source('shop', 'orders') }}",
        }
    )

    with pytest.raises(FindingsError) as caught:
        orders.run()

    assert [finding.code for finding in caught.value.findings] == ["temporary-catalog"]
