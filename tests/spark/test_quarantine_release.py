"""`sqlstream quarantine`: quarantined rows are shown, and released to the sinks of their model, each once."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from sqlstream.app.quarantine.quarantine import Released, ReleaseRequest
from sqlstream.app.quarantine.quarantine_query import release_rows
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import UsageError
from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder
from tests.support.violations import order

Rows = Callable[[Path], list[dict[str, Any]]]

ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}
MODEL = (
    "{{ config(sink='lake', quarantine_sink='QUARANTINE') }}\n"
    "select id, ts, kind, amount from {{ source('shop', 'orders') }}"
)
TESTS = """
models:
  - name: orders
    columns:
      - name: kind
        data_tests: [{not_null: {on_violation: quarantine}}]
    data_tests:
      - expression_is_true: {name: positive, expression: amount >= 0, on_violation: quarantine}
      - expression_is_true: {name: small, expression: amount < 50, on_violation: drop}
      - expression_is_true: {name: has_id, expression: id is not null, on_violation: fail}
      - expression_is_true: {name: even, expression: id % 2 = 0}
"""
SINKS = """sinks:
  - {name: files, format: json, path: 'bad [x]/{{ model.name }}'}
  - {name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}
  - {name: notes, format: python, function: 'notes:note'}
"""
BATCHES = [
    [order(1, "a", 1), order(2, None, 2), order(3, "b", -3)],
    [order(4, "b", None)],
    [order(5, None, -5), order(5, None, -5), order(6, "it's", 6), order(7, None, 7)],
]
"""Good are the ids 1, 4 and 6."""


@pytest.fixture
def shop(folder: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """A project with three files of orders, of which each is a batch, and sinks for a quarantine."""
    monkeypatch.chdir(folder.root)
    notes = "import os\ndef note(rows, batch):\n    assert not os.path.exists('broken')\n    rows.collect()\n"
    folder.write({"models/_sinks.yml": SINKS, "models/orders.yml": TESTS, "python/notes.py": notes})
    for number, rows in enumerate(BATCHES):
        folder.rows(f"in/orders/{number}.json", rows, modified=number)
    return folder


def release(folder: ProjectFolder, where: str | None = None, **options: Any) -> Released:
    """Releases rows of the model `orders`."""
    request = ProjectRequest(folder.root, env={**os.environ, **ENV})
    return release_rows(ReleaseRequest(request, "orders", where, **options))


def refusal(folder: ProjectFolder, command: Callable[[], object] | None = None) -> str:
    """Returns the code with which a release of all rows, or another command, is refused."""
    with pytest.raises(FindingsError) as refused:
        (command or (lambda: release(folder, every=True)))()
    (finding,) = refused.value.findings
    return finding.code


def shown(folder: ProjectFolder, *options: str) -> dict[str, Any]:
    """Returns what `quarantine show` prints as JSON."""
    done = folder.invoke("quarantine", "show", "orders", "--output", "json", *options)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def ids(rows: list[dict[str, Any]]) -> list[int]:
    """Returns the ids of rows in order."""
    return sorted(row["id"] for row in rows)


@pytest.mark.parametrize(
    "sink", [pytest.param("files", marks=pytest.mark.smoke), pytest.param("tables", marks=pytest.mark.slow)]
)
def test_released_rows_are_in_the_sink_once(shop: ProjectFolder, read_parquet: Rows, sink: str) -> None:
    """A release writes the chosen rows that violate no test any more, with new values, and never again."""
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", sink)})
    assert shop.result().finding is None
    found = shown(shop)
    assert (found["quarantined_rows"], found["released_rows"]) == (5, 0)
    assert found["tests"] == {"not_null_orders_kind": 4, "positive": 3, "even": 4}
    assert ids(found["rows"]) == [2, 3, 5, 5, 7]
    assert [row["_source"]["file"].rpartition("/")[2] for row in found["rows"]] == ["0.json"] * 2 + ["2.json"] * 3
    assert shown(shop, "--where", "array_contains(_errors.name, 'positive')")["quarantined_rows"] == 3

    planned = release(shop, "id = 2", changes={"kind": "'c'"}, dry_run=True)
    assert (planned.rows, planned.batch) == (1, None)
    first = release(shop, "id in (2, 3)", changes={"KIND": "coalesce(kind, 'c')"})
    assert (first.rows, first.batch, first.left_rows, first.left) == (1, 3, 1, {"positive": 1})
    again = release(shop, "id in (2, 3)", changes={"kind": "coalesce(kind, 'c')"})
    assert (again.rows, again.batch, again.left_rows) == (0, None, 1)
    shop.rows("in/orders/3.json", [order(8, "a", 8), order(9, None, 9)], modified=3)
    assert shop.result().batches == 1
    second = release(shop, every=True, changes={"kind": "'d'", "amount": "abs(amount)"})
    assert (second.rows, second.batch, second.left_rows) == (5, 5, 0)
    assert shop.result().batches == 0

    rows = read_parquet(shop.root / "store/orders")
    assert ids(rows) == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9]
    assert {row["id"]: (row["kind"], row["amount"]) for row in rows if row["id"] in (2, 3, 5)} == {
        2: ("c", 2),
        3: ("d", 3),
        5: ("d", 5),
    }
    assert (shown(shop)["quarantined_rows"], shown(shop)["released_rows"]) == (0, 6)
    assert shop.committed("orders") == {str(number) for number in range(6)}
    done = shop.invoke("replay", "orders", "--batch", "3")
    assert (done.code, "because `sqlstream quarantine release` wrote it" in done.err) == (1, True)


@pytest.mark.slow
def test_the_commands_say_what_they_did(shop: ProjectFolder) -> None:
    """The text of `show` and `release`, and wrong options."""
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "tables")})
    shop.result()
    text = shop.invoke("quarantine", "show", "orders", "--limit", "2").out
    assert text.startswith("`orders`, version 1: 5 rows in quarantine\n\nviolated test          rows\n")
    assert "orders__quarantine, the first 2 rows" in text
    assert text.splitlines()[-1].endswith("/in/orders/0.json")

    done = shop.invoke("quarantine", "release", "orders", "--where", "kind is null", "--set", "kind='x = y'")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "batch 3: 2 rows",
            "Left in quarantine: 2 rows; violated tests: positive (2)",
            "Released 2 rows of `orders`, version 1. The next run continues the stream.",
        ],
    )
    assert "version 1: 3 rows in quarantine, and 2 released" in shop.invoke("quarantine", "show", "orders").out
    nothing = shop.invoke("quarantine", "release", "orders", "--where", "id = 2")
    assert nothing.out == "Released no row of `orders`, version 1.\n"
    wrong = {
        (): "say which rows to release with --where, or release all with --all",
        ("--all", "--where", "true"): "--all and --where cannot be combined",
        ("--where", "nothing = 1"): "Spark cannot use --where `nothing = 1`: ",
        ("--where", "amount +"): "Spark cannot use --where `amount +`: ",
        ("--where", "amount"): "Spark cannot use --where `amount`: ",
        ("--all", "--set", "kinds='a'"): "--set: `orders` has no column `kinds`; did you mean `kind`?",
        ("--all", "--set", "_batch=1"): "--set: `orders` has no column `_batch`",
        ("--all", "--set", "kind"): "--set 'kind' is not of the form COLUMN=SQL",
        ("--all", "--set", "amount=cast('abc' as int)"): "Spark cannot use --set `amount=cast('abc' as int)`: ",
        ("--where", "1 / (id - 3) > 0"): "Spark cannot use --where `1 / (id - 3) > 0`: ",
        ("--set", "kind='a'"): "--set needs --where or --all",
        ("--all", "--set", "kind='a'", "--set", "KIND='b'"): "--set gives `KIND` two values",
        ("--all", "--set", "kind=nothing"): "Spark cannot use --set `kind=nothing`: ",
    }
    for options, message in wrong.items():
        refused = shop.invoke("quarantine", "release", "orders", *options)
        assert (refused.code, message in refused.err) == (2, True), refused.err
    assert shop.committed("orders") == {"0", "1", "2", "3"}


@pytest.mark.slow
def test_an_interrupted_release_is_completed_once(shop: ProjectFolder, read_parquet: Rows) -> None:
    """A run and a backfill are refused until the release is complete, whether or not the sink has its rows."""
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "files")})
    shop.result()
    assert release(shop, "id in (2, 7)", changes={"kind": "'c'"}).rows == 2
    checkpoint = shop.root / "store/queries/orders/v1/checkpoint"
    for lost in ("nothing", "sink", "offsets"):
        (checkpoint / "commits/3").unlink()
        if lost != "nothing":
            (shop.root / "store/orders/_spark_metadata/3").unlink()
        if lost == "offsets":
            (checkpoint / "offsets/3").unlink()
        assert refusal(shop, shop.run) == "unfinished-backfill"
        done = shop.invoke("backfill", "orders", "--full-range")
        assert (done.code, "complete it: `sqlstream quarantine release orders`" in done.err) == (1, True)
        if lost == "sink":
            planned = release(shop, every=True, dry_run=True)
            assert (planned.completed, planned.completed_batch, planned.rows, planned.left_rows) == (2, 3, 0, 3)
        completed = release(shop)
        assert (completed.completed, completed.completed_batch, completed.batch) == (2, 3, None)
    assert release(shop, "id = 2", changes={"kind": "'c'"}).rows == 0
    shop.rows("in/orders/3.json", [order(8, "a", 8)], modified=3)
    assert shop.result().batches == 1
    assert ids(read_parquet(shop.root / "store/orders")) == [1, 2, 4, 6, 7, 8]


@pytest.mark.slow
def test_a_failed_release_is_taken_back(shop: ProjectFolder) -> None:
    """If the sink fails, the rows stay in quarantine and the stream goes on."""
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "files").replace("'lake'", "'notes'")})
    shop.result()
    (shop.root / "broken").touch()
    assert refusal(shop, lambda: release(shop, "id = 2", changes={"kind": "'c'"})) == "query-failed"
    (shop.root / "broken").unlink()
    assert shown(shop)["quarantined_rows"] == 5
    shop.rows("in/orders/3.json", [order(8, "a", 8)], modified=3)
    assert shop.result().batches == 1
    assert release(shop, "id = 2", changes={"kind": "'c'"}).batch == 4


@pytest.mark.slow
def test_a_released_row_does_not_replace_a_later_one(shop: ProjectFolder) -> None:
    """With a key, `--replace` or `sequence_by` is needed; with `sequence_by` the latest row wins."""
    keyed = MODEL.replace("QUARANTINE", "files").replace("'lake'", "'tables', output_mode='update', unique_key='id'")
    shop.write({"models/orders.sql": keyed})
    shop.rows("in/orders/3.json", [{**order(7, "new", 70), "ts": "2024-02-01T00:00:00Z", "amount": 8}], modified=3)
    assert shop.result().finding is None
    assert refusal(shop) == "cannot-release"
    # two rows with one key: nothing has begun, and the stream goes on
    changes = {"kind": "'c'", "amount": "abs(amount)"}
    assert refusal(shop, lambda: release(shop, every=True, changes=changes, replaces=True)) == "cannot-release"
    assert shop.result().finding is None
    assert release(shop, "id = 2", changes=changes, replaces=True).rows == 1
    (shop.root / f"store/queries/orders/v1/checkpoint/commits/{max(map(int, shop.committed('orders')))}").unlink()
    assert release(shop).completed == 1

    shop.write({"models/orders.sql": keyed.replace("unique_key='id'", "unique_key='id', sequence_by='ts'")})
    assert shop.result(full_refresh=True).finding is None
    assert release(shop, "id in (2, 7)", changes={"kind": "'old'"}).rows == 2
    with sqlite3.connect(shop.root / "store/orders.sqlite") as connection:
        found = dict(connection.execute("select id, kind from orders_v2 where id in (2, 7)"))
    assert found == {2: "old", 7: "new"}


@pytest.mark.slow
def test_rows_of_closed_windows_are_released(shop: ProjectFolder, read_parquet: Rows) -> None:
    """A release into a query with state leaves its state and its watermark as they are."""
    shop.write(
        {
            "models/orders.sql": "{{ config(sink='lake', quarantine_sink='files') }}\n"
            "select /*+ WATERMARK(ts, '0 minutes') */ cast(date_format(window.start, 'H') as int) as id, "
            "sum(amount) as amount from {{ source('shop', 'orders') }} group by window(ts, '1 hour')",
            "models/orders.yml": "models: [{name: orders, data_tests: [{expression_is_true: "
            "{name: known, expression: amount is not null, on_violation: quarantine}}]}]",
        }
    )

    def at(hour: int, amount: int | None) -> dict[str, Any]:
        return {"id": 1, "ts": f"2024-01-01T{hour:02}:30:00Z", "kind": "a", "amount": amount}

    for number, rows in enumerate([[at(1, None), at(2, 1)], [at(2, 2)], [at(4, 5)]]):
        shop.rows(f"in/orders/{number}.json", rows, modified=number)
    assert shop.result().finding is None
    before = ids(read_parquet(shop.root / "store/orders"))
    assert shown(shop)["quarantined_rows"] == 1
    assert release(shop, every=True, changes={"amount": "0"}).rows == 1
    shop.rows("in/orders/3.json", [at(3, 9), at(4, 6), at(8, 1)], modified=3)
    assert shop.result().finding is None

    assert before == [2]
    amounts = {row["id"]: row["amount"] for row in read_parquet(shop.root / "store/orders")}
    assert amounts == {1: 0, 2: 3, 4: 11}


@pytest.mark.slow
def test_models_without_a_quarantine_that_can_be_read(shop: ProjectFolder) -> None:
    """A model without one, a function as its sink, and a query that has not run."""
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "notes")})
    with pytest.raises(UsageError, match=r"is in sink `notes` \(format python\), which sqlstream cannot read"):
        release(shop, every=True)
    shop.write({"models/orders.sql": MODEL.replace("QUARANTINE", "files")})
    assert refusal(shop) == "cannot-release"
    assert shown(shop)["quarantined_rows"] == 0
    shop.write({"models/orders.yml": TESTS.replace("quarantine", "drop")})
    with pytest.raises(UsageError, match="`orders` has no quarantine: it needs a data test"):
        release(shop, every=True)


EVERY_TYPE = """
{{ config(sink='lake', quarantine_sink='bad') }}
select id, kind, cast(7 as tinyint) as i1, cast(-300 as smallint) as i2, 9000000000 as i8, cast(1234567.1 as float) as f4,
  0.1d as f8, cast(12345.67 as decimal(12,2)) as d, cast(12345678901234567890.12 as decimal(24,2)) as long_d,
  true as b, 'naïve "quoted" \\\\ text' as s, x'00ff41' as bin, date '1969-12-31' as day,
  timestamp '1969-12-31 23:59:59.000001+00:00' as at, timestamp_ntz '2024-03-31 02:30:00.123456' as local,
  array(1, null, 3) as ints, map('k', 1.5d) as pairs, named_struct('a', 1, 'b', array('x')) as nested,
  cast(null as string) as nothing, array('') as texts,
  id + 1 as `odd.name`
from {{ source('shop', 'orders') }}
"""


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["json", "parquet", "sqlite", "postgres", "mariadb", "mysql"])
def test_every_type_comes_back(
    shop: ProjectFolder, read_parquet: Rows, request: pytest.FixtureRequest, sink: str
) -> None:
    """A released row has the values that it would have had without the quarantine, with each sink that can keep it."""
    if sink in ("json", "parquet", "sqlite"):
        declared = f"  - {{name: bad, format: {sink}, path: '{{{{ model.name }}}}'}}\n"
    else:
        server: DatabaseServer = request.getfixturevalue("postgres" if sink == "postgres" else "mariadb")
        declared = server.sink("bad", "mysql" if sink == "mysql" else "")
    shop.write(
        {
            "models/_bad.yml": f"sinks:\n{declared}",
            "models/orders.sql": EVERY_TYPE,
            "models/orders.yml": "models: [{name: orders, columns: [{name: kind, data_tests: "
            "[{not_null: {on_violation: quarantine}}]}]}]",
        }
    )
    for number in (1, 2):
        (shop.root / f"in/orders/{number}.json").unlink()
    assert shop.result(env=ENV).finding is None
    assert release(shop, "id = 2", changes={"kind": "'a'"}).rows == 1
    kept, released = (
        {name: value for name, value in row.items() if name not in ("id", "odd.name")}
        | {"odd": row["odd.name"] - row["id"]}
        for row in sorted(read_parquet(shop.root / "store/orders"), key=lambda row: int(row["id"]))
        if row["id"] in (1, 2)
    )
    assert released == kept
