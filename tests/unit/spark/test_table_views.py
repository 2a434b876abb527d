"""Plain names of tables become views of the current version: SQLite's files, and how each database prints its views."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.spark.publication.database_views import is_published, publish
from sqlstream.spark.writing.databases.sqlite_file import SqliteFile, sqlite_file
from sqlstream.spark.writing.databases.views import MysqlViews, PostgresqlViews, check_writable

PROJECT = {
    "project.yml": "name: shop\ntargets: {local: {master: 'local[1]', storage: store}}\n",
    "sinks.yml": "sinks: [{name: db, format: sqlite, path: totals.sqlite}]\n",
    "totals.sql": "{{ config(sink='db') }} select 1 as n",
}


@pytest.fixture
def model(tmp_path: Path) -> CompiledModel:
    """The model `totals`, which writes to a SQLite file."""
    (tmp_path / "models").mkdir()
    for name, text in PROJECT.items():
        (tmp_path / ("models" if name.endswith("sql") else "") / name).write_text(text)
    (found,) = load_for_reading(ProjectRequest(tmp_path)).compiled.models.values()
    return found


@pytest.fixture
def totals(tmp_path: Path) -> SqliteFile:
    """A file with the table `totals` of version 1, that of version 2 with another column, and a view of the user."""
    file = sqlite_file(str(tmp_path / "totals.sqlite"), "totals")
    change(
        file,
        "create table totals (n int primary key); insert into totals values (1);"
        "create table totals_v2 (n int primary key, more int); insert into totals_v2 values (2, 20);"
        "create view doubled as select 2 * n from totals; create table log (n int);"
        "create trigger logged after insert on totals begin insert into log values (new.n); end",
    )
    return file


def change(file: SqliteFile, script: str) -> None:
    """Runs statements in the file."""
    with closing(sqlite3.connect(file.path)) as connection:
        connection.executescript(script)


def rows(file: SqliteFile, query: str) -> list[tuple[object, ...]]:
    """Returns the rows of a query."""
    with closing(sqlite3.connect(file.path)) as connection:
        return list(connection.execute(query))


def refused(file: SqliteFile, model: CompiledModel, version: int) -> Finding:
    """Returns the finding about a switch that is refused."""
    with pytest.raises(FindingsError) as caught:
        publish(file, model, version, rehearse=True)
    (finding,) = caught.value.findings
    assert finding.code == "plain-name"
    return finding


def test_the_plain_name_shows_the_version_of_the_last_switch(model: CompiledModel, totals: SqliteFile) -> None:
    """Each version keeps its rows under its own name, and the user's view and trigger go on."""
    publish(totals, model, 2, rehearse=True)
    assert rows(totals, "select * from totals") == [(1,)]

    assert publish(totals, model, 2)
    assert rows(totals, "select * from totals") == [(2, 20)]
    assert (rows(totals, "select * from totals_v1"), rows(totals, "select * from doubled")) == ([(1,)], [(4,)])
    assert (publish(totals, model, 2), is_published(totals, model, 2)) == (False, True)

    assert publish(totals, model, 1)
    change(totals, "insert into totals_v1 values (3)")
    assert rows(totals, "select * from totals") == [(1,), (3,)]
    assert (rows(totals, "select * from doubled"), rows(totals, "select n from log")) == ([(2,), (6,)], [(3,)])
    assert rows(totals, "select * from totals_v2") == [(2, 20)]

    change(totals, "drop view totals; alter table totals_v2 add column last int")
    assert publish(totals, model, 2)
    assert rows(totals, "select * from totals") == [(2, 20, None)]


def test_an_interrupted_first_switch_can_go_back(model: CompiledModel, totals: SqliteFile) -> None:
    """After a rollback version 1 writes to its new name, so its table gets it, although readers never saw another."""
    assert publish(totals, model, 1)
    assert rows(totals, "select * from totals") == rows(totals, "select * from totals_v1") == [(1,)]


def test_a_reader_never_finds_nothing(model: CompiledModel, totals: SqliteFile) -> None:
    """Whoever reads while versions are switched finds the rows of one of them each time."""
    found: set[tuple[tuple[int, ...], ...]] = set()
    errors: list[sqlite3.Error] = []
    is_done = threading.Event()

    def read() -> None:
        with closing(sqlite3.connect(totals.path)) as connection:
            while not is_done.is_set():
                try:
                    found.add(tuple(connection.execute("select n from totals").fetchall()))
                except sqlite3.Error as error:
                    errors.append(error)
                    return

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(40):
        publish(totals, model, 2 - number % 2)
    is_done.set()
    reader.join()
    assert errors == []
    assert found <= {((1,),), ((2,),)}


def test_names_of_others_are_refused(model: CompiledModel, totals: SqliteFile) -> None:
    """A view of the user under the plain name, a table under that of version 1, and a missing table stay as they are."""
    assert "totals_v3" in refused(totals, model, 3).why
    change(totals, "create table totals_v1 (other int)")
    assert "totals_v1" in refused(totals, model, 2).why

    change(totals, "drop table totals_v1; drop table totals; create view totals as select n + 1 as n from totals_v2")
    assert "has not created" in refused(totals, model, 2).why
    assert rows(totals, "select * from totals") == [(3,)]


def test_a_version_does_not_write_to_the_name_of_another(model: CompiledModel, totals: SqliteFile) -> None:
    """A view of the current version, a name that the database cuts, and the name that version 1 gets by a switch that
    was interrupted are no tables of version 1.
    """
    early = replace(totals, table='"totals_v1"')
    with closing(early.connect()) as connection, pytest.raises(FindingsError) as caught:
        check_writable(connection, early, model, '"totals"')
    assert "interrupted" in caught.value.findings[0].why
    publish(totals, model, 2)
    with closing(early.connect()) as connection:
        check_writable(connection, early, model, '"totals"')
    short = replace(totals, table='"totals_v12345"', dialect=replace(SQLITE, longest_name=9))
    for file, word in ((totals, "versions.json"), (short, "9 bytes")):
        with closing(file.connect()) as connection, pytest.raises(FindingsError) as caught:
            check_writable(connection, file, model, '"totals"')
        assert (caught.value.findings[0].code, word in caught.value.findings[0].why) == ("plain-name", True)


def test_versions_share_a_file_unless_they_have_their_own(tmp_path: Path) -> None:
    """A version writes to a table with its number; an older version goes on in its own file."""
    place = f"{tmp_path}/totals.sqlite"
    assert sqlite_file(f"{place}#v2", "totals") == SqliteFile(Path(place), '"totals_v2"')
    assert sqlite_file(f"{place}#1", "totals") == SqliteFile(Path(f"{place}#1"), '"totals"')
    Path(f"{place}.v2").touch()
    assert sqlite_file(f"{place}#v2", "totals") == SqliteFile(Path(f"{place}.v2"), '"totals"')


@pytest.mark.parametrize(
    ("definition", "table"),
    [
        (" SELECT totals_v2.kind,\n    totals_v2.n\n   FROM totals_v2;", "totals_v2"),
        (' SELECT "Kind", n FROM sales."Totals_v2";', "Totals_v2"),
        (" SELECT totals_v2.n AS m FROM totals_v2;", None),
        (" SELECT totals_v2.n + 1 AS n FROM totals_v2;", None),
        (" SELECT totals_v2.n FROM totals_v2 WHERE totals_v2.n > 1;", None),
        (" SELECT totals_v2.n FROM totals_v2, other;", None),
    ],
)
def test_postgresql_prints_views_of_sqlstream(definition: str, table: str | None) -> None:
    """Only a view that selects columns under their names is one of sqlstream."""
    assert PostgresqlViews().target(definition) == table


@pytest.mark.parametrize(
    ("definition", "table"),
    [
        (
            "select `shop`.`totals_v2`.`a` AS `a`,`shop`.`totals_v2`.`b``c` AS `b``c` from `shop`.`totals_v2`",
            "totals_v2",
        ),
        ("select `totals_v2`.`a` AS `a` from `totals_v2`", "totals_v2"),
        ("select `totals_v2`.`a` AS `b` from `totals_v2`", None),
        ("select `totals_v2`.`a` AS `a` from `totals_v2` where `totals_v2`.`a` > 1", None),
        ("select `t`.`a` + 1 AS `a` from `totals_v2` `t`", None),
        ("", None),
    ],
)
def test_mysql_prints_views_of_sqlstream(definition: str, table: str | None) -> None:
    """Only a view that selects columns under their names is one of sqlstream."""
    assert MysqlViews().target(definition) == table
