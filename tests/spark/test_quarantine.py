"""Rows that violate a data test with `on_violation: quarantine`: each is in the quarantine once, the others in the sink."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder
from tests.support.violations import counts, order

Rows = Callable[[Path], list[dict[str, Any]]]

MODEL = (
    "{{ config(sink='lake', quarantine_sink='QUARANTINE') }}\n"
    "select id, ts, kind, amount from {{ source('shop', 'orders') }}"
)
TESTS = """
models:
  - name: orders
    columns:
      - name: kind
        data_tests:
          - not_null: {on_violation: quarantine, description: an order has a kind}
          - accepted_values: {values: [a, b], on_violation: warn}
    data_tests:
      - expression_is_true: {name: positive, expression: amount >= 0, on_violation: quarantine}
      - expression_is_true: {name: small, expression: amount < 50, on_violation: drop}
      - expression_is_true: {name: has_id, expression: id is not null, on_violation: fail}
"""
SINKS = """sinks:
  - {name: files, format: json, path: 'bad/{{ model.name }}'}
  - {name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}
  - {name: notes, format: python, function: 'notes:note'}
"""
NOTES = """import json, os
def note(rows, batch):
    if os.path.exists('broken'):
        raise ValueError('the quarantine is broken')
    with open('notes.txt', 'a') as file:
        file.writelines(f'{line}\\n' for line in rows.toJSON().collect())
"""
BATCHES: list[list[tuple[int, str | None, int | None]]] = [
    [(1, "a", 1), (2, None, 2), (3, "b", -3), (4, "c", 4), (5, "a", 99)],
    [(6, "a", 1), (7, "b", None)],
    [(8, None, -8), (9, None, 99), (10, "a", 10)],
]
GOOD, BAD = [1, 4, 6, 7, 10], [2, 3, 8, 9]
"""The ids of the rows in the sink, and of those in the quarantine. The order 5 is dropped."""


@pytest.fixture
def shop(folder: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """A project with three files of orders, of which each is a batch, and sinks for a quarantine."""
    monkeypatch.chdir(folder.root)
    folder.write({"models/_sinks.yml": SINKS, "python/notes.py": NOTES, "models/orders.yml": TESTS})
    for number, rows in enumerate(BATCHES):
        folder.rows(f"in/orders/{number}.json", [order(*row) for row in rows], modified=number)
    return folder


def quarantined(folder: ProjectFolder, sink: str) -> list[dict[str, Any]]:
    """Returns the rows of the quarantine in a sink, by their ids."""
    found: list[dict[str, Any]] = []
    if sink == "tables":
        with sqlite3.connect(folder.root / "store/orders__quarantine.sqlite") as connection:
            connection.row_factory = sqlite3.Row
            found = [dict(row) for row in connection.execute("select * from orders__quarantine")]
        found = [row | {"_errors": json.loads(row["_errors"])} for row in found]
    elif sink == "files":
        root = folder.root / "store/bad/orders__quarantine"
        for file in root.rglob("*.json"):
            pairs = dict(part.split("=", 1) for part in file.relative_to(root).parts if "=" in part)
            found += [json.loads(line) | pairs | {"_batch": int(pairs["_batch"])} for line in file.open()]
    else:
        found = [json.loads(line) for line in (folder.root / "notes.txt").read_text().splitlines()]
    return sorted(found, key=lambda row: row["id"])


def file_of(source: dict[str, Any] | str) -> str:
    """Returns the name of the file of a row; a database has the source as JSON."""
    read: dict[str, Any] = json.loads(source) if isinstance(source, str) else source
    assert {name for name, value in read.items() if value is not None} == {"name", "file"}
    assert read["name"] == "shop.orders"
    return str(read["file"]).rpartition("/in/orders/")[2]


@pytest.mark.smoke
@pytest.mark.parametrize("sink", ["files", "tables", "notes"])
def test_each_row_is_in_the_sink_or_in_the_quarantine(shop: ProjectFolder, read_parquet: Rows, sink: str) -> None:
    """Good, quarantined and dropped rows are all rows, also if Spark repeats a batch; `_errors` has each violated test."""
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", sink)})
    result = shop.result()

    assert (result.batches, result.rows_in, result.rows_out, result.violations) == (3, 10, 5, 8)
    assert counts(shop)["orders.positive"] == (8, 2)
    assert sorted(row["id"] for row in read_parquet(shop.root / "store/orders")) == GOOD
    rows = quarantined(shop, sink)
    assert [row["id"] for row in rows] == BAD
    assert [[error["name"] for error in row["_errors"]] for row in rows] == [
        ["not_null_orders_kind"],
        ["positive"],
        ["not_null_orders_kind", "positive"],
        ["not_null_orders_kind", "small"],
    ]
    assert rows[1]["_errors"] == [{"name": "positive", "message": "amount >= 0", "columns": []}]
    assert rows[0]["_errors"][0] == {
        "name": "not_null_orders_kind",
        "message": "an order has a kind",
        "columns": ["kind"],
    }
    assert [(row["_query"], row["_batch"]) for row in rows] == [
        ("orders", 0),
        ("orders", 0),
        ("orders", 2),
        ("orders", 2),
    ]
    assert len({row["_query_id"] for row in rows}) == 1
    assert (rows[1]["kind"], rows[1]["amount"]) == ("b", -3)
    assert [file_of(row["_source"]) for row in rows] == ["0.json", "0.json", "2.json", "2.json"]
    assert all(row["_quarantined_at"] for row in rows)

    (entry,) = json.loads((shop.root / "target/run_results.json").read_text())["results"]
    assert entry["quarantined_rows"] == 4
    status = shop.invoke("status")
    assert "4 rows in quarantine; see `sqlstream quarantine show orders`" in status.out.splitlines()

    if sink == "notes":
        return
    (shop.root / "store/queries/orders/v1/checkpoint/commits/2").unlink()
    assert shop.result().batches == 1
    assert [row["id"] for row in quarantined(shop, sink)] == BAD
    status = shop.invoke("status", "--output", "json")
    assert json.loads(status.out)["checkpoints"][0]["versions"][0]["quarantined_rows"] == 4
    assert sorted(row["id"] for row in read_parquet(shop.root / "store/orders")) == GOOD


@pytest.mark.slow
def test_a_failing_quarantine_loses_no_row(shop: ProjectFolder, read_parquet: Rows) -> None:
    """A batch whose quarantine fails is repeated: the sink ignores it then, and the quarantine gets it."""
    shop.write(
        {"models/orders.sql": MODEL.replace("QUARANTINE", "notes").replace("sink='lake'", "retries=0, sink='lake'")}
    )
    (shop.root / "broken").touch()
    finding = shop.result().finding
    assert finding is not None
    assert "the quarantine is broken" in finding.why
    (shop.root / "broken").unlink()

    assert shop.result().finding is None
    assert sorted(row["id"] for row in read_parquet(shop.root / "store/orders")) == GOOD
    assert [row["id"] for row in quarantined(shop, "notes")] == BAD


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["lake", "tables", "both"])
def test_a_quarantine_begins_and_ends_on_the_same_checkpoint(
    shop: ProjectFolder, read_parquet: Rows, sink: str
) -> None:
    """A query gets a quarantine, and loses it, without a new version: its sinks have each row once."""
    sinks = "sink=['lake', 'tables'], fan_out='shared'" if sink == "both" else f"sink='{sink}'"
    model = MODEL.replace("QUARANTINE", "files").replace("sink='lake'", sinks)
    files = [shop.root / f"in/orders/{number}.json" for number in range(3)]
    hidden = [file.rename(shop.root / file.name) for file in files[1:]]
    shop.write({"models/orders.sql": model, "models/orders.yml": TESTS.replace("quarantine", "drop")})
    assert shop.result().rows_out == 2

    hidden[0].rename(files[1])
    shop.rows("in/orders/7.json", [order(20, None, 20), order(21, "a", 21)], modified=7)
    shop.write({"models/orders.yml": TESTS})
    assert shop.result().batches == 2
    assert [row["id"] for row in quarantined(shop, "files")] == [20]

    shop.write({"models/orders.yml": TESTS.replace("quarantine", "drop")})
    hidden[1].rename(files[2])
    assert shop.result().batches == 1
    good = [*GOOD, 21]
    if sink != "tables":
        assert sorted(row["id"] for row in read_parquet(shop.root / "store/orders")) == good
    if sink != "lake":
        with sqlite3.connect(shop.root / "store/orders.sqlite") as connection:
            assert [id_ for (id_,) in connection.execute("select id from orders order by id")] == good


@pytest.mark.slow
def test_groups_are_quarantined_after_the_state(shop: ProjectFolder) -> None:
    """A test of a model that aggregates is about its groups: one that violates it goes to the quarantine."""
    shop.write(
        {
            "models/orders.sql": "{{ config(sink='tables', quarantine_sink='files', output_mode='update', unique_key='id') }}\n"
            "select coalesce(kind, '-') as id, sum(amount) as amount from {{ source('shop', 'orders') }} group by 1",
            "models/orders.yml": "models: [{name: orders, data_tests: [{expression_is_true: "
            "{name: high, expression: amount < 50, on_violation: quarantine}}]}]",
        }
    )
    assert shop.result().finding is None
    with sqlite3.connect(shop.root / "store/orders.sqlite") as connection:
        assert list(connection.execute("select id, amount from orders order by id")) == [("-", 2), ("b", -3), ("c", 4)]
    assert sorted((row["id"], row["amount"], row.get("_source")) for row in quarantined(shop, "files")) == [
        ("-", 93, None),
        ("a", 100, None),
        ("a", 101, None),
        ("a", 111, None),
    ]


@pytest.mark.slow
def test_rows_come_with_their_files_through_views_and_joins(shop: ProjectFolder, read_parquet: Rows) -> None:
    """The file of a row is known behind a view with a test, CTEs, a join with a seed and UNION ALL, and the rows of the
    sink are those that they are without a quarantine.
    """
    sql = """{{ config(sink='lake', quarantine_sink='files') }}
with known as (select * from {{ ref('view') }} v left join {{ ref('names') }} using (kind)),
     doubled as (select id, kind, amount, title from known union all select -id, kind, amount, title from known k)
select d.*, size(array(d.id, *)) as n from doubled d"""
    tests = TESTS.replace("accepted_values: {values: [a, b], on_violation: warn}", "not_null: {name: kept}")
    view = (
        "  - name: view\n    data_tests: [{expression_is_true: {name: v, expression: id <> 2, on_violation: drop}}]\n"
    )
    shop.write(
        {
            "seeds/names.csv": "kind,title\na,first\nb,second\n",
            "models/view.sql": "select id, kind, amount, id as x from {{ source('shop', 'orders') }}",
            "models/orders.sql": sql.replace(", size(array(d.id, *)) as n", ""),
            "models/orders.yml": tests + view,
        }
    )
    assert shop.result().finding is None
    assert sorted(row["id"] for row in read_parquet(shop.root / "store/orders")) == [
        -10,
        -7,
        -6,
        -4,
        -1,
        1,
        4,
        6,
        7,
        10,
    ]
    rows = quarantined(shop, "files")
    assert [row["id"] for row in rows] == [-9, -8, -3, 3, 8, 9]
    assert [file_of(row["_source"]) for row in rows] == [f"{at}.json" for at in (2, 2, 0, 0, 2, 2)]
    assert not any("_sqlstream" in name for row in rows for name in row)

    shop.rows("in/orders/4.json", [order(11, None, 11)], modified=4)
    shop.write({"models/orders.sql": sql})
    assert shop.result().finding is None
    assert [(row["id"], row.get("_source")) for row in quarantined(shop, "files") if abs(row["id"]) == 11] == [
        (-11, None),
        (11, None),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["files", "tables", "postgres"])
def test_a_quarantine_without_the_source_of_rows_gets_it(
    shop: ProjectFolder, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, sink: str
) -> None:
    """A quarantine of an earlier sqlstream has no column `_source`. A run adds it, or says which statement does, before
    it writes a row; the earlier rows have no source.
    """
    monkeypatch.setenv("SQLSTREAM_SECRET_DATABASE", PASSWORD)
    server: DatabaseServer | None = request.getfixturevalue("postgres") if sink == "postgres" else None
    if server is not None:
        shop.write({"models/_postgres.yml": f"sinks:\n{server.sink('postgres')}"})
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", sink)})
    assert shop.result().finding is None
    if server is not None:
        server.run("alter table orders__quarantine drop column _source")
    elif sink == "tables":
        with sqlite3.connect(shop.root / "store/orders__quarantine.sqlite") as connection:
            connection.execute("alter table orders__quarantine drop column _source")
    else:
        for file in (shop.root / "store/bad").rglob("*.json"):
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            file.write_text("\n".join(json.dumps({**row, "_source": None}) for row in rows))
            file.with_name(f".{file.name}.crc").unlink()
    shop.rows("in/orders/3.json", [order(11, None, 11), order(12, "a", 12)], modified=3)

    if server is None:
        assert shop.result().batches == 1
    else:
        with pytest.raises(FindingsError) as caught:
            shop.run()
        (finding,) = caught.value.findings
        assert finding.code == "output-columns"
        statement = 'ALTER TABLE orders__quarantine ADD COLUMN "_source" jsonb'
        assert finding.fix == f"run in PostgreSQL: {statement}"
        server.run(statement)
        assert shop.result().batches == 1

    done = shop.invoke("quarantine", "show", "orders", "--output", "json", "--limit", "9")
    sources = {row["id"]: row["_source"] and file_of(row["_source"]) for row in json.loads(done.out)["rows"]}
    assert sources == {2: None, 3: None, 8: None, 9: None, 11: "3.json"}


@pytest.mark.slow
def test_a_row_that_fails_the_query_is_nowhere(shop: ProjectFolder, read_parquet: Rows) -> None:
    """A test with `fail` ends the query before either sink has a row of the batch."""
    shop.rows("in/orders/1.json", [order(6, "a", 1), order(None, "a", 1), order(None, None, 2)], modified=1)  # type: ignore[arg-type]
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "files")})
    finding = shop.result().finding
    assert finding is not None
    assert (finding.code, str(finding.location)) == ("data-test-failed", "models/orders.yml:12:9")
    assert sorted(row["id"] for row in read_parquet(shop.root / "store/orders")) == [1, 4]
    assert [row["id"] for row in quarantined(shop, "files")] == [2, 3]


def test_the_folder_of_a_query_is_no_quarantine(shop: ProjectFolder) -> None:
    """A folder with the log of a streaming query is refused: readers would not see the rows of the quarantine."""
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "files")})
    (shop.root / "store/bad/orders__quarantine/_spark_metadata").mkdir(parents=True)
    result = shop.result()
    assert result.finding is not None
    assert result.finding.code == "quarantine"
    assert "_spark_metadata" in result.finding.why


def test_spark_checks_the_sink_of_a_quarantine(shop: ProjectFolder) -> None:
    """A sink that cannot have the columns `_errors` and `_source` is refused before the query starts."""
    shop.write(
        {
            "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n  - {name: csv, format: csv, path: bad}\n"
        }
    )
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "csv")})
    with pytest.raises(FindingsError) as caught:
        shop.run()
    assert [found.code for found in caught.value.findings] == ["sink-schema", "sink-schema"]


@pytest.mark.parametrize("history", [False, True])
def test_rows_without_a_sequence_can_be_quarantined(shop: ProjectFolder, history: bool) -> None:
    """A data test on the column of `sequence_by` keeps rows without a place in the order from ending the query."""
    config = "unique_key='id', sequence_by='amount'" + (", history=true" if history else ", output_mode='update'")
    tests = "models: [{name: orders, columns: [{name: amount, data_tests: [{not_null: {on_violation: quarantine}}]}]}]"
    shop.write(
        {
            "models/orders.sql": MODEL.replace("sink='lake'", f"sink='tables', {config}").replace(
                "QUARANTINE", "files"
            ),
            "models/orders.yml": tests,
        }
    )
    assert shop.result().finding is None
    with sqlite3.connect(shop.root / "store/orders.sqlite") as connection:
        ids = [row[0] for row in connection.execute("select id from orders order by id")]
    assert ids == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert [row["id"] for row in quarantined(shop, "files")] == [7]
