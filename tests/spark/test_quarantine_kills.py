"""`kill -9` in the middle of runs and of a release: each poisoned row is in quarantine once, with the rule that it
violates, and each other row in the sink once.

SQLSTREAM_KILLS sets the number of kills, and SQLSTREAM_EVENTS that of rows (`make poison`: ten, and 100,000).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder, java_below, wait_until

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
ROWS = int(os.environ.get("SQLSTREAM_EVENTS", "2000"))
FILES = 6 * KILLS
EACH = 25
"""The poisoned rows of each kind."""
ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}

GOOD = {"kind": "a", "name": "order 1", "amount": 5, "paid": 5, "currency": "EUR", "code": "AB-12"}
POISON: dict[str, dict[str, Any]] = {
    "has_kind": {"kind": None},
    "known_kind": {"kind": "z"},
    "in_range": {"amount": -1, "paid": -1},
    "short_name": {"name": "x" * 41},
    "coded": {"code": "12-AB"},
    "paid_at_most_amount": {"paid": 6},
    "three_letters": {"currency": "Euro"},
    "named": {"name": None},
}
"""What makes a row violate one of the tests, by its name."""

TESTS = """
      - {name: kind, data_tests: [
          {not_null: {name: has_kind, on_violation: quarantine}},
          {accepted_values: {name: known_kind, values: [a, b], on_violation: quarantine}}]}
      - {name: amount, data_tests: [{accepted_range: {name: in_range, min_value: 0, on_violation: quarantine}}]}
      - {name: name, data_tests: [
          {accepted_length: {name: short_name, max_value: 40, on_violation: quarantine}},
          {not_null: {name: named, where: "id % 2 = 0", on_violation: quarantine}}]}
      - {name: code, data_tests: [{matches_regex: {name: coded, regex: '^[A-Z]+-', on_violation: quarantine}}]}
      - {name: currency, data_tests: [{expression_is_true: {name: three_letters, expression: "like '___'", on_violation: quarantine}}]}
    data_tests: [{expression_is_true: {name: paid_at_most_amount, expression: paid <= amount, on_violation: quarantine}}]
"""
SOURCE = (
    "sources: [{name: shop, tables: [{name: orders, format: json, path: in/orders, options: {maxFilesPerTrigger: 1}, "
    "schema: 'id int, kind string, name string, amount int, paid int, currency string, code string'}]}]\n"
)


def poisoned_rows() -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Returns all rows in random order, and the violated test of each poisoned one by its id."""
    ids = random.Random(5).sample(range(0, ROWS, 2), EACH * len(POISON))
    expected = {id_: list(POISON)[number % len(POISON)] for number, id_ in enumerate(ids)}
    rows = [{"id": id_, **GOOD, **POISON.get(expected.get(id_, ""), {})} for id_ in range(ROWS)]
    random.Random(6).shuffle(rows)
    return rows, expected


@pytest.mark.slow
def test_each_row_is_in_one_place_once(
    folder: ProjectFolder, postgres: DatabaseServer, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """Rows of eight kinds of poison among good ones, into files, SQLite and PostgreSQL, through several killed runs; then
    all of them are released, through a killed release.
    """
    names = ("files", "sqlite", "postgres")
    sinks = "sinks:\n  - {name: files, format: parquet, path: '{{ model.name }}'}\n"
    sinks += "  - {name: sqlite, format: sqlite, path: '{{ model.name }}.sqlite'}\n" + postgres.sink("postgres")
    config = "{{{{ config(sink='{0}', quarantine_sink='{0}') }}}} select * from {{{{ source('shop', 'orders') }}}}"
    models = {f"models/in_{name}.sql": config.format(name) for name in names}
    properties = "".join(f"  - name: in_{name}\n    columns:{TESTS}" for name in names)
    folder.write({"sources.yml": SOURCE, "sinks.yml": sinks, "models/_tests.yml": f"models:\n{properties}", **models})
    rows, expected = poisoned_rows()
    for number in range(FILES):
        folder.rows(f"in/orders/{number:03}.json", rows[number::FILES], modified=number)
    folder.run_through_kills(KILLS, 7, 8, env=ENV)
    assert folder.run(env=ENV).succeeded

    def ids(name: str) -> list[int]:
        if name == "postgres":
            return sorted(int(row[0]) for row in postgres.run("select id from in_postgres"))
        if name == "sqlite":
            return sorted(row[0] for row in _sqlite(folder, "in_sqlite", "id"))
        return sorted(row["id"] for row in read_parquet(folder.root / "store/in_files"))

    def quarantined(name: str) -> list[tuple[int, list[str]]]:
        done = folder.invoke("quarantine", "show", f"in_{name}", "--limit", str(ROWS), "--output", "json")
        assert done.code == 0, done.err
        return sorted((row["id"], row["_errors"]) for row in json.loads(done.out)["rows"])

    os.environ.update(ENV)
    good, bad = (
        [id_ for id_ in range(ROWS) if id_ not in expected],
        sorted((id_, [test]) for id_, test in expected.items()),
    )
    for name in names:
        assert ids(name) == good
        assert quarantined(name) == bad

    mended = [f"--set={column}={value!r}" for column, value in GOOD.items()]
    for name in names:
        process = folder.command("quarantine", "release", f"in_{name}", "--all", *mended, env=ENV)
        entry = folder.root / f"store/queries/in_{name}/v1/backfills.json"
        wait_until(process, entry.exists)
        os.kill(java_below(process.pid), signal.SIGKILL)  # first, because its lock would outlive Python
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        done = folder.invoke("quarantine", "release", f"in_{name}", "--all", *mended)
        assert done.code == 0, done.err
        assert ids(name) == list(range(ROWS))
        assert quarantined(name) == []


def _sqlite(folder: ProjectFolder, table: str, columns: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(folder.root / f"store/{table}.sqlite") as connection:
        return list(connection.execute(f"select {columns} from {table}"))
