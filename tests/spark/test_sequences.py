"""Tables of databases whose rows are changed in the order of `sequence_by`, across batches."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder
from tests.support.keyed_changes import COLUMNS, as_text, keyed_changes

MODEL = (
    "{{{{ config(sink='table', unique_key='id', sequence_by={}, delete_when=\"op = 'd'\") }}}}\n"
    "select id, at, n, name, op from {{{{ source('shop', 'changes') }}}}"
)
SEQUENCE = "['at', 'n']"
SOURCES = f"""\
sources:
  - name: shop
    tables:
      - {{name: changes, format: json, path: in/changes, schema: "{COLUMNS}", options: {{maxFilesPerTrigger: 1}}}}
"""


@dataclass(frozen=True)
class Table:
    """The table `customers` in a database: `ask` runs a statement there and returns its rows."""

    ask: Callable[[str], Iterable[Sequence[object]]]
    tables: str

    def rows(self, columns: str = "id, at, n, name") -> list[tuple[str, ...]]:
        """Returns some columns of all rows as text, sorted."""
        return sorted(tuple(map(str, row)) for row in self.ask(f"select {columns} from customers"))

    @property
    def tombstones(self) -> str:
        """The table with the deleted keys."""
        (found,) = [str(row[0]) for row in self.ask(self.tables) if "_sqlstream_tombstones" in str(row[0])]
        return found


@pytest.fixture(
    params=["sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in ("postgres", "mariadb", "mysql"))]
)
def table(request: pytest.FixtureRequest, folder: ProjectFolder) -> Table:
    """A project with the model `customers`, and its table. `mysql` is MariaDB's server with MySQL's driver."""
    folder.write({"sources.yml": SOURCES, "models/customers.sql": MODEL.format(SEQUENCE)})
    if request.param == "sqlite":
        folder.write({"sinks.yml": "sinks: [{name: table, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"})

        def ask(statement: str) -> list[Sequence[object]]:
            with sqlite3.connect(folder.root / "store/customers.sqlite") as connection:
                return connection.execute(statement).fetchall()

        return Table(ask, "select name from sqlite_master")
    server: DatabaseServer = request.getfixturevalue("postgres" if request.param == "postgres" else "mariadb")
    folder.write({"sinks.yml": "sinks:\n" + server.sink("table", "mysql" if request.param == "mysql" else "")})
    return Table(server.run, "select table_name from information_schema.tables")


def run(folder: ProjectFolder) -> bool:
    """Runs the model on what there is."""
    return folder.run("customers", env={"SQLSTREAM_SECRET_DATABASE": PASSWORD}).succeeded


@pytest.mark.slow
def test_the_highest_sequence_wins_in_any_order(folder: ProjectFolder, table: Table) -> None:
    """Of 600 changes in random order over batches and two runs, those with the highest sequence of their key remain;
    a deletion is not undone by an older change.
    """
    changes = keyed_changes(7, 600, 40, 8)
    folder.batches("in/changes", changes.batches[:5])
    assert run(folder)
    folder.batches("in/changes", changes.batches[5:], first=5)
    assert run(folder)

    assert table.rows() == sorted(tuple(map(str, row)) for row in changes.remaining)


def test_an_older_change_does_not_bring_back_a_deleted_row(folder: ProjectFolder, table: Table) -> None:
    """A deletion counts until a newer row arrives. With equal sequences the later batch counts."""
    at = [
        [{"id": 1, "at": 1, "n": 5, "name": "old", "op": "u"}, {"id": 2, "at": 1, "n": 0, "name": "b", "op": "u"}],
        [{"id": 1, "at": 2, "n": 0, "op": "d"}, {"id": 3, "at": 9, "n": 0, "op": "d"}],
        [{"id": 1, "at": 1, "n": 9, "name": "late", "op": "u"}, {"id": 3, "at": 1, "n": 0, "name": "c", "op": "u"}],
        [{"id": 2, "at": 1, "n": 0, "name": "again", "op": "u"}],
    ]
    folder.batches("in/changes", at)
    assert run(folder)
    assert table.rows() == [("2", "1", "0", "again")]

    folder.rows("in/changes/4.json", [{"id": 1, "at": 3, "n": 0, "name": "new", "op": "u"}], modified=4)
    assert run(folder)
    assert table.rows() == [("1", "3", "0", "new"), ("2", "1", "0", "again")]


def test_a_deletion_is_forgotten_after_a_time(folder: ProjectFolder, table: Table) -> None:
    """After `keep_deletes_for` the next batch removes the tombstone, so that their number is bounded."""
    folder.rows("in/changes/0.json", [{"id": 3, "at": 9, "n": 0, "op": "d"}], modified=0)
    assert run(folder)
    assert [tuple(map(str, row)) for row in table.ask(f"select id, at, n from {table.tombstones}")] == [("3", "9", "0")]

    table.ask(f"update {table.tombstones} set _sqlstream_deleted_at = _sqlstream_deleted_at - 604801")
    folder.rows("in/changes/1.json", [{"id": 4, "at": 1, "n": 0, "op": "d"}], modified=1)
    assert run(folder)
    assert [tuple(map(str, row)) for row in table.ask(f"select id, at, n from {table.tombstones}")] == [("4", "1", "0")]
    folder.rows("in/changes/2.json", [{"id": 3, "at": 1, "n": 0, "name": "c", "op": "u"}], modified=2)
    assert run(folder)
    assert table.rows() == [("3", "1", "0", "c")]


def test_texts_are_ordered_as_in_spark(folder: ProjectFolder, table: Table) -> None:
    """A text is compared by its bytes: `a` is higher than `B`, and `é` higher than `z`."""
    folder.write({"models/customers.sql": MODEL.format("'name'")})
    names = ["B", "a", "C", "z", "\u00e9", "\uffff", "\U0001f600", "\ue000", "y"]
    for number, name in enumerate(names):
        folder.rows(f"in/changes/{number}.json", [{"id": 1, "at": number, "name": name, "op": "u"}], modified=number)
    assert run(folder)

    assert table.rows("at") == [("6",)]


def test_a_row_without_a_sequence_stops_the_query(folder: ProjectFolder, table: Table) -> None:
    """Such a row has no place in the order. The reason names it, and the query is not restarted."""
    del table
    folder.rows("in/changes/0.json", [{"id": 7, "at": 1, "name": "b", "op": "u"}], modified=0)
    result = folder.result("customers", env={"SQLSTREAM_SECRET_DATABASE": PASSWORD})

    assert result.finding is not None
    assert result.finding.code == "query-failed"
    assert "a row has null in sequence_by `at`, `n`" in result.finding.why
    assert '{"id":7}' in result.finding.why


HISTORY = (
    "{{ config(sink='table', unique_key='id', sequence_by='at', history=true, delete_when=\"op = 'd'\"TRACK) }}\n"
    "select id, at, n, name, op from {{ source('shop', 'changes') }}"
)
VERSIONS = "id, n, name, at, valid_from, valid_to, is_current"


@pytest.mark.slow
@pytest.mark.parametrize("tracked", [(), ("name",)])
def test_a_history_has_the_versions_of_each_row(folder: ProjectFolder, table: Table, tracked: tuple[str, ...]) -> None:
    """Changes in random order over batches and two runs make the same versions as in their order: late ones split a
    version, deletions end one, and with `track_columns` a change of another column begins none.
    """
    track = f", track_columns={list(tracked)}" if tracked else ""
    folder.write({"models/customers.sql": HISTORY.replace("TRACK", track)})
    changes = keyed_changes(5, 400, 25, 6, times=True)
    folder.batches("in/changes", changes.batches[:3])
    assert run(folder)
    folder.batches("in/changes", changes.batches[3:], first=3)
    assert run(folder)

    expected = changes.versions(*(tracked or ("n", "name")))
    assert as_text(table.ask(f"select {VERSIONS} from customers")) == as_text(expected)
