"""Readers of a database keep one name through full refreshes, promotions and rollbacks."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import pytest

from sqlstream.app.request import ProjectRequest
from sqlstream.app.versions.publications import query_history
from sqlstream.app.versions.switch import promote, roll_back
from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import Notice
from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder, order_rows

ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}

SUMS = """{{{{ config(sink='db', output_mode='update', unique_key='kind', trigger='100 milliseconds') }}}}
select kind, cast(sum({amount}) as int) as total{more} from {{{{ source('shop', 'orders') }}}} group by kind"""
OLD, NEW = SUMS.format(amount="amount", more=""), SUMS.format(amount="amount * 1000", more=", count(*) as orders")


@dataclass(frozen=True)
class Shop:
    """A project whose model `sums` writes to a table of a server, or of a SQLite file without one."""

    project: ProjectFolder
    server: DatabaseServer | None

    @property
    def request(self) -> ProjectRequest:
        """The request for the project."""
        return ProjectRequest(self.project.root, env={**os.environ, **ENV})

    @property
    def name(self) -> str:
        """What readers use."""
        return "sums" if self.server else str(self.project.root / "store/sums.sqlite")

    def rows(self, query: str) -> list[list[str]]:
        """Returns the rows of a query as text."""
        if self.server is not None:
            return self.server.run(query)
        with closing(sqlite3.connect(self.project.root / "store/sums.sqlite")) as connection:
            return [[str(value) for value in row] for row in connection.execute(query)]

    def total(self, table: str = "sums") -> str:
        """Returns the sum of all orders in a table."""
        ((total,),) = self.rows(f"select sum(total) from {table}")
        return total

    def change(self, statement: str) -> None:
        """Runs a statement."""
        if self.server is not None:
            self.server.run(statement)
            return
        with closing(sqlite3.connect(self.project.root / "store/sums.sqlite")) as connection:
            connection.execute(statement)
            connection.commit()

    @contextmanager
    def watched(self, *totals: str) -> Iterator[None]:
        """Reads the plain name all the time while the body runs. Each time it has one of `totals`."""
        found, errors, is_done = set[str](), list[BaseException](), threading.Event()

        def read() -> None:
            while not is_done.is_set() and not errors:
                try:
                    found.add(self.total())
                except (AssertionError, sqlite3.Error) as error:
                    errors.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield
        finally:
            is_done.set()
            reader.join()
        assert errors == []
        assert found <= {*totals}


def shop_of(orders: ProjectFolder, server: DatabaseServer | None) -> Shop:
    """Returns the shop after two files of orders with the sum 20."""
    file = "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"
    sinks = file if server is None else "sinks:\n" + server.sink("db")
    orders.write({"models/_db.yml": sinks, "models/sums.sql": OLD})
    shop = Shop(orders, server)
    assert orders.result(env=ENV).output == shop.name
    return shop


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def shop(request: pytest.FixtureRequest, orders: ProjectFolder) -> Shop:
    """The shop on each database."""
    return shop_of(orders, None if request.param == "sqlite" else request.getfixturevalue(request.param))


@pytest.fixture
def file_shop(orders: ProjectFolder) -> Shop:
    """The shop with a SQLite file, whose versions switch without Spark."""
    return shop_of(orders, None)


@pytest.mark.slow
def test_readers_keep_one_name(shop: Shop) -> None:
    """The plain name has the rows of the current version after a full refresh, a rollback and a promotion, at any time.
    Each version goes on where it stopped, and each row counts once.
    """
    project = shop.project
    project.write({"models/sums.sql": NEW})
    with shop.watched("20", "10000", "20000"):
        assert project.result(env=ENV, full_refresh=True).output == shop.name
    assert (shop.total(), shop.total("sums_v1"), shop.total("sums_v2")) == ("20000", "20", "20000")

    with shop.watched("20", "20000"):
        done = roll_back(shop.request, "sums")
    assert (done.version, done.outputs, shop.total()) == (1, (shop.name,), "20")

    project.write({"models/sums.sql": OLD})
    (project.root / "store/queries/sums/v1/checkpoint/commits/1").unlink()
    shop.change("update sums_v1 set total = -1 where kind = 'a'")
    assert project.result(env=ENV).output == shop.name  # repeats a batch, which the table has
    assert shop.rows("select total from sums where kind = 'a'") == [["-1"]]
    project.rows("in/orders/2.json", order_rows(2), modified=2)
    assert project.result(env=ENV).rows_in == 5
    assert (shop.total(), shop.total("sums_v2")) == ("30", "20000")

    with shop.watched("30", "20000"):
        assert promote(shop.request, "sums").outputs == (shop.name,)
    project.write({"models/sums.sql": NEW})
    assert project.result(env=ENV).rows_in == 5
    assert (shop.total(), shop.total("sums_v1")) == ("30000", "30")
    if shop.server is None:
        places = [version.output for version in query_history(shop.request, "sums").versions]
        assert places == [f"{shop.name}#v1", shop.name]


KILLED = """
import os, signal, sys
from pathlib import Path
from sqlstream.app.request import ProjectRequest
from sqlstream.app.versions import switch
from sqlstream.spark.publication.database_views import TablePublication

TablePublication.switch_to = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
getattr(switch, sys.argv[2])(ProjectRequest(Path(sys.argv[1]), env=os.environ), "sums")
"""


def killed(shop: Shop, command: str) -> None:
    """Runs `promote` or `roll_back`, and kills it between versions.json and the database."""
    arguments = [sys.executable, "-c", KILLED, str(shop.project.root), command]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_killed_switch_is_finished(file_shop: Shop) -> None:
    """Until the next command, readers see the version before. The next promotion, rollback or run finishes the switch."""
    shop, project = file_shop, file_shop.project
    project.write({"models/sums.sql": NEW})
    project.run(parallel=("sums",))
    assert (shop.total(), shop.total("sums_v2")) == ("20", "20000")

    killed(shop, "promote")
    assert shop.total() == "20"
    assert roll_back(shop.request, "sums").outputs == (shop.name,)
    assert shop.total() == shop.total("sums_v1") == "20"

    killed(shop, "promote")
    assert shop.total() == "20"
    assert project.result().output == shop.name
    assert shop.total() == "20000"

    killed(shop, "roll_back")
    assert shop.total() == "20000"
    project.write({"models/sums.sql": OLD})
    assert project.result().output == shop.name
    assert (shop.total(), shop.total("sums_v2")) == ("20", "20000")

    killed(shop, "promote")
    done = promote(shop.request, "sums")
    assert (done.version, done.before, done.outputs) == (2, 1, (shop.name,))
    assert shop.total() == "20000"


@pytest.mark.slow
def test_a_switch_that_would_fail_changes_nothing(file_shop: Shop) -> None:
    """A promotion is refused before versions.json changes, and a full refresh says that readers still see the old
    version. The next run makes up for it.
    """
    shop, project = file_shop, file_shop.project
    shop.change("create table sums_v1 (mine int)")
    project.write({"models/sums.sql": NEW})
    project.run(parallel=("sums",))
    with pytest.raises(FindingsError) as caught:
        promote(shop.request, "sums")
    assert caught.value.findings[0].code == "plain-name"
    assert json.loads((project.root / "store/queries/sums/versions.json").read_text())["current"] == 1

    assert project.result(full_refresh=True).output == f"{shop.name}#v3"
    notices = [event.text for event in project.events if isinstance(event, Notice)]
    assert any("readers still see the version before" in text and "sums_v1" in text for text in notices)
    assert (shop.total(), shop.total("sums_v3")) == ("20", "20000")

    shop.change("alter table sums_v1 rename to mine")
    assert project.result().output == shop.name
    assert shop.total() == "20000"

    shop.change("drop table sums_v3")
    with pytest.raises(FindingsError) as caught:
        project.run()
    assert "sums_v3" in caught.value.findings[0].why
    assert project.result(full_refresh=True).output == shop.name
    assert shop.total() == shop.total("sums_v4") == "20000"


@pytest.mark.slow
def test_batch_models_and_complete_mode_replace_behind_the_name(orders: ProjectFolder) -> None:
    """A later run replaces the rows of the current version, which readers see; the earlier version stays."""
    orders.write(
        {
            "models/_db.yml": "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\n",
            "models/kinds.sql": "{{ config(sink='db') }} select * from {{ ref('names') }}",
            "models/latest.sql": "{{ config(sink='db', output_mode='complete') }}\n"
            "select kind, max(id) as id from {{ source('shop', 'orders') }} group by kind",
            "seeds/names.csv": "kind,name\na,first\n",
        }
    )
    assert orders.run().succeeded
    orders.write({"seeds/names.csv": "kind,name\nb,second\n"})
    assert orders.run(full_refresh=True).succeeded
    orders.write({"seeds/names.csv": "kind,name\nc,third\n"})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    assert orders.run().succeeded

    found = {}
    for name in ("kinds", "latest"):
        with closing(sqlite3.connect(orders.root / f"store/{name}.sqlite")) as connection:
            tables = [name, f"{name}_v1", f"{name}_v2"]
            found[name] = [sorted(connection.execute(f"select * from {table}").fetchall()) for table in tables]
    assert found["kinds"] == [[("c", "third")], [("a", "first")], [("c", "third")]]
    assert found["latest"] == [[("a", 24), ("b", 23)], [("a", 14), ("b", 13)], [("a", 24), ("b", 23)]]
