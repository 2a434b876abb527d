"""A project whose sink `db` is a database, for tests with a master and over Spark Connect."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sqlstream.errors import Finding
from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder, order_rows

ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}
TOTALS = (
    "{{ config(sink='db', output_mode='update', unique_key='kind') }}\n"
    "select kind, count(*) as orders, cast(sum(amount) as int) as amount from {{ source('shop', 'orders') }} group by kind"
)

servers = pytest.mark.parametrize("shop", ["postgres", "mariadb"], indirect=True)
drivers = pytest.mark.parametrize("shop", ["postgres", "mariadb", "mysql"], indirect=True)


@dataclass(frozen=True)
class Shop:
    """A project whose sink `db` writes to a server."""

    project: ProjectFolder
    server: DatabaseServer

    def run(self, *models: str) -> bool:
        """Runs models, and returns whether all succeeded. A failed run prints why."""
        outcome = self.project.run(*models, env=ENV)
        for result in outcome.results:
            if result.finding is not None:
                print(result.finding)
        return outcome.succeeded

    @property
    def is_postgres(self) -> bool:
        """Whether the database is PostgreSQL."""
        return "postgres" in self.server.url

    def finding(self, model: str) -> Finding:
        """Runs a model, and returns why it failed."""
        finding = self.project.result(model, env=ENV).finding
        assert finding is not None
        return finding

    def rows(self, table: str, columns: str = "*") -> list[list[str]]:
        """Returns the sorted rows of a table as text."""
        return sorted(self.server.run(f"select {columns} from {table}"))

    def tables(self) -> list[str]:
        """Returns the names of all tables."""
        found = "select table_name from information_schema.tables where table_schema in ('public', 'shop')"
        return sorted(name for (name,) in self.server.run(found))


def database_shop(request: pytest.FixtureRequest, orders: ProjectFolder) -> Shop:
    """Returns the project with a server without tables: the parameter of the fixture, or PostgreSQL. `mysql` is MariaDB's
    server with the options of MySQL's driver.
    """
    name = getattr(request, "param", "postgres")
    server: DatabaseServer = request.getfixturevalue("postgres" if name == "postgres" else "mariadb")
    orders.write({"models/_db.yml": "sinks:\n" + server.sink("db", "mysql" if name == "mysql" else "")})
    return Shop(orders, server)


def check_update_mode(shop: Shop) -> None:
    """Asserts that the table has one row for each group, also after a restart, and a repeated batch changes nothing."""
    shop.project.write({"models/totals.sql": TOTALS})
    assert shop.run("totals")
    assert shop.rows("totals") == [["a", "6", "12"], ["b", "4", "8"]]

    (shop.project.root / "store/queries/totals/v1/checkpoint/commits/1").unlink()
    shop.server.run("update totals set orders = -1 where kind = 'a'")
    assert shop.run("totals")
    assert shop.rows("totals") == [["a", "-1", "12"], ["b", "4", "8"]]

    shop.project.rows("in/orders/2.json", order_rows(2, 1), modified=2)
    assert shop.run("totals")
    assert shop.rows("totals") == [["a", "7", "12"], ["b", "4", "8"]]
    assert shop.tables() == ["_sqlstream_batches", "totals"]
