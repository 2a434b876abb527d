"""The plain names of tables in PostgreSQL and MariaDB: views that show readers the current version of a query."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import SparkSession

from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.session import spark_session
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from sqlstream.spark.publication.database_views import is_published, publish
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.databases import views
from sqlstream.spark.writing.databases.jdbc_database import JdbcDatabase
from sqlstream.spark.writing.writers import jdbc_database
from tests.services.database_server import DATABASE, PASSWORD, USER, DatabaseServer

MODELS = ("postgres", "mariadb")
WRITER, WRITERS_PASSWORD = "writer", "canary-4712-password"


@dataclass(frozen=True)
class Table:
    """The table `totals` of a server: version 1 has a row with 1, version 2 one with 2 and another column, version 3
    one with 3.
    """

    server: DatabaseServer
    database: JdbcDatabase
    model: CompiledModel

    def publish(self, version: int, *, rehearse: bool = False) -> bool:
        """Switches readers to a version."""
        return publish(self.database, self.model, version, rehearse=rehearse)

    def refused(self, version: int) -> str:
        """Returns why a switch is refused. Nothing has changed then."""
        with pytest.raises(FindingsError) as caught:
            self.publish(version, rehearse=True)
        (finding,) = caught.value.findings
        assert finding.code == "plain-name"
        return finding.why

    def read(self, table: str = "totals") -> list[list[str]]:
        """Returns the column `n` of a table or view."""
        return self.server.run(f"select n from {table}")


@pytest.fixture(scope="module")
def loaded(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: DatabaseServer, mariadb_server: DatabaseServer
) -> Loaded:
    """A project with a model for each server."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "models").mkdir()
    (folder / "project.yml").write_text("name: shop\ntargets: {local: {master: 'local[1]', storage: store}}\n")
    sinks = []
    for name, server in zip(MODELS, (postgres_server, mariadb_server), strict=True):
        sinks.append(
            f"  - {{name: {name}, format: jdbc, options: {{url: '{server.url}', user: {USER}, password: '{PASSWORD}', "
            "dbtable: totals}}\n"
        )
        (folder / f"models/{name}.sql").write_text(f"{{{{ config(sink='{name}') }}}} select 1 as n")
    (folder / "sinks.yml").write_text("sinks:\n" + "".join(sinks))
    return load_for_reading(ProjectRequest(folder))


@pytest.fixture(scope="module")
def session(loaded: Loaded) -> Iterator[SparkSession]:
    """A session with the drivers."""
    secrets = Secrets(os.environ)
    with spark_session(loaded, secrets, nodes=list(loaded.compiled.models)) as runtime:
        yield runtime.session


@pytest.fixture(params=MODELS)
def table(request: pytest.FixtureRequest, loaded: Loaded, session: SparkSession) -> Table:
    """The table on each server."""
    return make_table(request.param, request.getfixturevalue(request.param), loaded, session)


@pytest.fixture
def in_postgres(postgres: DatabaseServer, loaded: Loaded, session: SparkSession) -> Table:
    """The table in PostgreSQL."""
    return make_table("postgres", postgres, loaded, session)


def make_table(name: str, server: DatabaseServer, loaded: Loaded, session: SparkSession) -> Table:
    """Creates the tables of three versions."""
    model = next(model for model in loaded.compiled.models.values() if model.name == name)
    for version, columns in {"": "n int primary key", "_v2": "more int, n int", "_v3": "n int, last int"}.items():
        server.run(f"create table totals{version} ({columns})")
        server.run(f"insert into totals{version} (n) values ({version[-1:] or 1})")
    assert model.output is not None
    database = jdbc_database(model.output, "totals", session, Secrets(os.environ))
    assert database is not None
    return Table(server, database, model)


@pytest.mark.slow
def test_readers_see_one_version_at_any_time(table: Table) -> None:
    """The plain name has the rows of the last switch, the versions keep theirs, and views of the user follow. A client
    that reads all the time gets the row of one version and never an error.
    """
    table.server.run("create view doubled as select 2 * n as n from totals")
    found, is_done = set[tuple[tuple[str | None, ...], ...]](), threading.Event()
    errors: list[Exception] = []

    def read() -> None:
        with closing(table.database.connect()) as connection:
            while not is_done.is_set():
                try:
                    found.add(tuple(map(tuple, connection.all("select n from totals"))))  # type: ignore[arg-type]
                except Exception as error:
                    errors.append(error)
                    return

    reader = threading.Thread(target=read)
    reader.start()
    table.publish(2, rehearse=True)
    assert (table.read(), table.refused(4)) == ([["1"]], "the table totals_v4 of this version does not exist")
    for version in (2, 1, 3, 2, 3, 1):
        assert table.publish(version)
        assert not table.publish(version)
        assert is_published(table.database, table.model, version)
        assert (table.read(), table.read("doubled")) == ([[str(version)]], [[str(2 * version)]])
    is_done.set()
    reader.join()
    assert errors == []
    assert found <= {(("1",),), (("2",),), (("3",),)}
    assert [table.read(f"totals_v{version}") for version in (1, 2, 3)] == [[["1"]], [["2"]], [["3"]]]

    table.server.run("alter table totals_v1 add column new_one int")
    assert table.publish(1)
    assert table.server.run("select * from totals")[0][0] == "1"
    assert "sqlstream_next" not in str(table.server.run("select table_name from information_schema.tables"))


@pytest.mark.slow
def test_an_interrupted_first_switch_can_go_back(table: Table) -> None:
    """After a rollback version 1 writes to its new name, so its table gets it, although readers never saw another."""
    table.publish(1, rehearse=True)
    assert table.publish(1)
    assert table.read() == table.read("totals_v1") == [["1"]]
    assert table.publish(2)
    assert table.read() == [["2"]]


def test_names_of_others_are_refused(table: Table) -> None:
    """A table with the name for version 1, and a view of the user under the plain name, stay as they are."""
    table.server.run("create table totals_v1 (n int)")
    assert "totals_v1" in table.refused(2)
    table.server.run("drop table totals; ")
    table.server.run("create view totals as select n + 1 as n from totals_v2")
    assert "has not created" in table.refused(2)
    assert table.read() == [["3"]]


def test_rights_stay_and_missing_ones_are_reported(in_postgres: Table) -> None:
    """In PostgreSQL grants of SELECT on the table hold for the view, also when it is created again. A user that does
    not own the table cannot switch.
    """
    server = in_postgres.server
    server.run(
        f"create role {WRITER} login password '{WRITERS_PASSWORD}'; create role reader; create role clerk; "
        f"grant select on totals, totals_v2 to {WRITER}; grant create on schema public to {WRITER}; "
        "grant select on totals to reader with grant option; grant select (n) on totals to clerk"
    )
    try:
        assert "must be owner of table totals" in as_writer(in_postgres).refused(2)

        for version in (2, 1, 3):
            in_postgres.publish(version)
            rights = (
                "select has_table_privilege('{}', 'totals', '{}'), has_column_privilege('{}', 'totals', 'n', 'SELECT')"
            )
            assert server.run(rights.format("reader", "SELECT WITH GRANT OPTION", "clerk")) == [["t", "t"]]
            assert server.run(rights.format("clerk", "SELECT", "clerk")) == [["f", "t"]]
            assert server.run("set role reader; select n from totals")[-1] == [str(version)]
    finally:
        server.run(f"drop owned by {WRITER}, reader, clerk; drop role {WRITER}, reader, clerk")


@pytest.mark.parametrize("table", ["mariadb"], indirect=True)
def test_a_user_without_the_right_to_create_views_is_refused(table: Table) -> None:
    """MariaDB has no transactions for this, so the switch is tried with a view of another name."""
    table.server.run(f"create user {WRITER} identified by '{WRITERS_PASSWORD}'")
    try:
        table.server.run(f"grant select, insert, create, drop, alter on {DATABASE}.* to {WRITER}")
        assert "CREATE VIEW command denied" in as_writer(table).refused(2)
        table.server.run(f"grant create view on {DATABASE}.* to {WRITER}")
        assert as_writer(table).publish(2)
        assert table.read() == [["2"]]
    finally:
        table.server.run(f"drop user {WRITER}")


def as_writer(table: Table) -> Table:
    """Returns the table for a sink with another user."""
    options = {**table.database.options, "user": WRITER, "password": WRITERS_PASSWORD}
    return replace(table, database=replace(table.database, options=options))


def test_what_would_stay_with_the_old_version_is_refused(in_postgres: Table) -> None:
    """In PostgreSQL a materialized view would go on to read version 1, a view of the user may need a column that is
    gone, and row-level security does not apply to readers of a view.
    """
    server = in_postgres.server
    server.run("create materialized view daily as select n from totals")
    assert "materialized view daily" in in_postgres.refused(2)
    server.run("drop materialized view daily; alter table totals enable row level security")
    assert "row-level security" in in_postgres.refused(2)
    server.run("alter table totals disable row level security")

    in_postgres.publish(2)
    server.run("create view other with (security_barrier = true) as select more, n from totals")
    assert "more" in in_postgres.refused(1)
    assert in_postgres.read() == [["2"]]
    server.run("create or replace view other with (security_barrier = true) as select null::int as more, n from totals")
    in_postgres.publish(1)
    assert (in_postgres.read(), in_postgres.read("other")) == ([["1"]], [["1"]])
    assert server.run("select reloptions from pg_class where relname = 'other'") == [["{security_barrier=true}"]]


def test_names_with_a_schema_and_quotes(table: Table) -> None:
    """A name in quotes and in a schema gets its versions beside it."""
    is_postgres = "postgres" in table.server.url
    name, v1, v2 = (
        f'sales."My Totals{end}"' if is_postgres else f"{DATABASE}.`My Totals{end}`" for end in ("", "_v1", "_v2")
    )
    if is_postgres:
        table.server.run("create schema sales")
    table.server.run(f"create table {name} as select 1 as n")
    table.server.run(f"create table {v2} as select 2 as n, 3 as more")
    other = replace(table, database=replace(table.database, table=name))
    try:
        for version in (2, 1, 2):
            assert other.publish(version)
            assert is_published(other.database, other.model, version)
            assert (table.read(name), table.read(v1), table.read(v2)) == ([[str(version)]], [["1"]], [["2"]])
    finally:
        table.server.run("drop schema sales cascade" if is_postgres else f"drop view {name}")
        table.server.run("select 1" if is_postgres else f"drop table {v1}, {v2}")


def test_a_table_in_use_is_left_alone(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch gives up after a while, and readers go on with the version before."""
    monkeypatch.setattr(views, "LOCK_SECONDS", 1)
    with closing(table.database.connect()) as connection:
        connection.begin()
        connection.all("select n from totals")
        with pytest.raises(FindingsError) as caught:
            table.publish(2)
        assert "timeout" in caught.value.findings[0].why
        assert table.read() == [["1"]]
    assert table.publish(2)
    assert table.read() == [["2"]]
