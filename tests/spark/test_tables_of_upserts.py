"""Databases whose tables do not fit a query: what `run` refuses before the first batch, `plan --check` refuses too."""

from __future__ import annotations

import os
import signal
import sqlite3
from dataclasses import dataclass

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.trigger import OUTLASTS
from sqlstream.state.runs.events import QueryRestarting, QueryStarted, RunEvent
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder, order_rows

ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}

SQLITE = "sinks:\n  - {name: file, format: sqlite, path: '{{ model.name }}.sqlite'}\n"


@dataclass(frozen=True)
class Shop:
    """A project whose model `orders` updates a table by `id` in the sink `sink`."""

    project: ProjectFolder
    sink: str
    server: DatabaseServer | None

    def write(self, columns: str, config: str = "unique_key='id'", model: str = "orders") -> None:
        """Writes the model with these columns."""
        select = f"select {columns} from {{{{ source('shop', 'orders') }}}}"
        self.project.write({f"models/{model}.sql": f"{{{{ config(sink='{self.sink}', {config}) }}}}\n{select}"})

    def run(self) -> None:
        """Runs everything."""
        assert self.project.run(env=ENV).succeeded

    def refused(self) -> Finding:
        """Runs everything, and returns why nothing started."""
        with pytest.raises(FindingsError) as caught:
            self.project.run(env=ENV)
        (finding,) = caught.value.findings
        return finding

    def plan(self, *, check: bool = True) -> QueryVerdict:
        """Returns the verdict of `plan`."""
        request = PlanRequest(ProjectRequest(self.project.root, env={**os.environ, **ENV}), check=check)
        (verdict,) = plan_project(request).queries
        return verdict

    def sql(self, statement: str) -> list[list[str]]:
        """Runs a statement in the database, and returns its rows as text."""
        if self.server is not None:
            return self.server.run(statement)
        with sqlite3.connect(self.project.root / "store/orders.sqlite") as connection:
            return [["" if value is None else str(value) for value in row] for row in connection.execute(statement)]


@pytest.fixture
def shop(request: pytest.FixtureRequest, orders: ProjectFolder) -> Shop:
    """Two files of orders, and a database without tables: the parameter, or SQLite."""
    name = getattr(request, "param", "sqlite")
    server = None if name == "sqlite" else request.getfixturevalue(name)
    orders.write({"sinks.yml": SQLITE + (server.sink("db") if server else "")})
    return Shop(orders, "db" if server else "file", server)


databases = pytest.mark.parametrize("shop", ["sqlite", "postgres", "mariadb"], indirect=True)


@pytest.mark.slow
@databases
def test_a_renamed_column_of_an_upsert_is_refused_until_the_table_has_it(shop: Shop) -> None:
    """Updated rows would keep the stale value. The statement of the fix renames the column, and the query continues;
    `plan` without Spark does not say that it resumes.
    """
    shop.write("id, amount as price, kind")
    shop.run()
    shop.write("kind, id, amount as cost")
    shop.project.rows("in/orders/2.json", [{"id": 1, "kind": "z", "amount": 99}], modified=2)

    assert shop.plan(check=False).verdict is Verdict.UNDECIDED
    planned, refused = shop.plan(), shop.refused()
    assert planned.verdict is Verdict.REBUILD
    assert planned.findings == (refused,)
    assert (refused.code, refused.location and refused.location.line) == ("output-columns", 1)
    assert sorted(shop.sql("select id, price from orders where id = 1")) == [["1", "1"]]
    statement = refused.fix.split(": ")[1].split("; ")[0]
    assert "RENAME COLUMN" in statement
    shop.sql(statement)

    assert shop.plan().verdict is Verdict.RESUME
    shop.run()
    assert shop.sql("select id, kind, cost from orders where id in (0, 1) order by id") == [
        ["0", "a", "0"],
        ["1", "z", "99"],
    ]
    assert shop.plan(check=False).verdict is Verdict.UNCHANGED


@pytest.mark.slow
@databases
def test_a_removed_column_of_an_upsert_is_refused(shop: Shop) -> None:
    """Without a new column of its type, the fix is to drop it; selected as null it becomes null. In complete and append
    mode nothing is stale, so the query resumes.
    """
    shop.write("id, amount, kind")
    shop.run()
    shop.write("id, kind")
    refused = shop.refused()
    assert (refused.code, shop.plan().findings) == ("output-columns", (refused,))
    assert "DROP COLUMN" in refused.fix
    assert "RENAME" not in refused.fix

    shop.write("id, cast(null as int) as amount, kind")
    shop.project.rows("in/orders/2.json", order_rows(0, 1), modified=2)
    shop.run()
    assert shop.sql("select count(*) from orders where amount is null") == [["1"]]
    shop.write("id")
    assert "`amount`" in shop.refused().why
    for name in ("amount", "kind"):
        shop.sql(f"alter table orders drop column {name}")
    shop.project.rows("in/orders/3.json", order_rows(3), modified=3)
    shop.run()
    assert shop.sql("select count(*) from orders") == [["15"]]


@pytest.mark.slow
@databases
def test_rows_that_are_added_keep_nothing(shop: Shop) -> None:
    """In append mode without a key, and in complete mode, a removed column is null in the new rows."""
    shop.write("id, kind, amount", "output_mode='append'")
    shop.run()
    shop.write("id, kind", "output_mode='append'")
    shop.project.rows("in/orders/2.json", order_rows(2), modified=2)

    assert shop.plan(check=False).verdict is Verdict.RESUME
    assert shop.plan().verdict is Verdict.RESUME
    shop.run()
    assert shop.sql("select count(*), count(amount) from orders") == [["15", "10"]]


@pytest.mark.slow
@databases
def test_new_and_retyped_columns_are_planned_as_they_run(shop: Shop) -> None:
    """A server gets no new column without its owner, a SQLite file does; another type fits neither."""
    shop.write("id, kind")
    shop.run()
    shop.write("id, kind, amount")
    assert shop.plan(check=False).verdict is Verdict.UNDECIDED
    if shop.server is not None:
        refused = shop.refused()
        assert (refused.code, shop.plan().findings) == ("output-columns", (refused,))
        shop.sql(refused.fix.split(": ")[1].split("; or")[0])
    assert shop.plan().verdict is Verdict.RESUME
    shop.run()

    shop.write("id, kind, cast(amount as string) as amount")
    assert shop.plan(check=False).verdict is Verdict.UNDECIDED
    refused = shop.refused()
    assert (refused.code, shop.plan().findings) == ("output-columns", (refused,))


@pytest.mark.slow
@pytest.mark.parametrize("shop", ["postgres", "mariadb"], indirect=True)
def test_a_server_shows_batches_of_another_checkpoint(shop: Shop) -> None:
    """Also under another name of the model, and with records of an earlier sqlstream, which do not name their table."""
    shop.write("id, kind", "checkpoint='one'")
    shop.run()
    shop.write("id, kind", "checkpoint='two'")
    assert shop.refused().code == "output-not-empty"
    shop.sql("update _sqlstream_batches set model = 'renamed'")
    refused = shop.refused()
    assert (refused.code, shop.plan().findings) == ("output-not-empty", (refused,))
    shop.sql("alter table _sqlstream_batches drop column output_table")
    assert shop.plan().verdict is Verdict.NEW
    shop.sql("update _sqlstream_batches set model = 'orders'")
    assert shop.refused().code == "output-not-empty"

    shop.write("id, kind", "checkpoint='one'")
    shop.project.rows("in/orders/2.json", order_rows(2), modified=2)
    shop.run()
    assert shop.sql("select count(*), max(output_table) from orders, _sqlstream_batches") == [["15", "orders"]]
    shop.sql(moved_way_out(shop))
    shop.run()
    assert shop.sql("select count(*) from orders") == [["30"]]


def moved_way_out(shop: Shop) -> str:
    """Moves the checkpoint again, and returns the statement with which the table keeps its rows and gets all again."""
    shop.write("id, kind", "checkpoint='two'")
    return shop.refused().fix.rpartition(" run ")[2]


@pytest.mark.slow
@pytest.mark.parametrize("shop", ["postgres", "mariadb"], indirect=True)
def test_a_lost_table_of_a_server_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a run and in it: a table that is dropped while the query runs ends it at its next batch."""
    shop.write("id, kind", "unique_key='id', trigger='100 milliseconds', retries={'first_delay': '10 milliseconds'}")
    shop.run()
    shop.sql("create table saved as select * from orders")
    shop.sql("drop table orders")
    refused = shop.refused()
    assert (refused.code, shop.plan().findings) == ("output-lost", (refused,))
    shop.sql("create table orders as select * from saved")
    shop.sql("alter table orders add primary key (id)")
    assert shop.plan().verdict is Verdict.UNCHANGED
    shop.sql("update _sqlstream_batches set batch_id = 0")
    assert shop.refused().code == "output-lost"
    shop.sql("update _sqlstream_batches set batch_id = 1")

    def add_rows() -> None:
        shop.project.rows("in/orders/2.json", order_rows(2), modified=2)

    def lose_table() -> None:
        shop.sql("drop table orders")
        shop.project.rows("in/orders/3.json", order_rows(3), modified=3)

    steps = [add_rows, lose_table]

    def lose(events: list[RunEvent]) -> bool:
        """Adds a file when the query starts, and drops the table after the batch that reads it."""
        if steps and isinstance(events[-1], QueryStarted if len(steps) > 1 else BatchProgress):
            steps.pop(0)()
        return False

    monkeypatch.setenv(*next(iter(ENV.items())))
    outcome = shop.project.run_until(lose)
    (result,) = outcome.results
    assert result.finding is not None
    assert result.finding.code == "output-lost"
    assert shop.sql("select count(*) from information_schema.tables where table_name = 'orders'") == [["0"]]


@pytest.mark.slow
@pytest.mark.parametrize("shop", ["postgres", "mariadb"], indirect=True)
def test_a_refused_connection_is_a_finding_of_the_sink(shop: Shop) -> None:
    """A wrong password and a wrong database are found before the run, at their own lines; a port where nothing listens
    is retried, because the server may start.
    """
    shop.write("id, kind", "unique_key='id', retries={'attempts': 1, 'first_delay': '10 milliseconds'}")
    assert shop.server is not None
    good = (shop.project.root / "sinks.yml").read_text()

    shop.project.write({"sinks.yml": good.replace("password: ", "password: x")})
    refused = shop.refused()
    assert refused.location is not None
    assert (refused.code, refused.location.path, refused.location.line) == ("database-refused", "sinks.yml", 8)
    (planned,) = shop.plan().findings
    assert (planned.code, planned.location) == (refused.code, refused.location)

    shop.project.write({"sinks.yml": good.replace("/shop'", "/nowhere'")})
    refused = shop.refused()
    assert refused.location is not None
    assert (refused.code, refused.location.line) == ("database-refused", 6)

    shop.project.write({"sinks.yml": good.replace(shop.server.url.split("/")[2], "127.0.0.1:1")})
    assert shop.plan().verdict is Verdict.UNDECIDED
    result = shop.project.result(env=ENV)
    assert result.finding is not None
    assert result.finding.location is not None
    found = (result.restarts, result.finding.code, result.finding.location.path, result.finding.location.line)
    assert found == (1, "query-failed", "sinks.yml", 6)


@pytest.mark.slow
@pytest.mark.parametrize("shop", ["postgres"], indirect=True)
def test_an_endless_query_outlasts_a_server_that_is_away(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default it restarts more often than other queries while its database does not answer, and then continues."""
    monkeypatch.setenv(*next(iter(ENV.items())))
    shop.write("id, kind", "unique_key='id', trigger='100 milliseconds'")
    assert shop.server is not None
    server = shop.server

    def done(events: list[RunEvent]) -> bool:
        last = events[-1]
        if isinstance(last, QueryStarted):
            server.process.stop(signal.SIGKILL)
        if isinstance(last, QueryRestarting) and last.attempt == 4:
            server.restart()
        return sum(isinstance(event, BatchProgress) for event in events) == 2

    assert shop.project.run_until(done).succeeded

    restarts = [event for event in shop.project.events if isinstance(event, QueryRestarting)]
    assert {event.finding.location.path for event in restarts if event.finding.location} == {"sinks.yml"}
    assert {(event.finding.code, event.attempts) for event in restarts} == {("query-failed", OUTLASTS)}
    assert shop.sql("select count(*) from orders") == [["10"]]
