"""Tables of AUTO CDC, from Spark's declarative pipelines, beside those of `sequence_by` and `history` in databases.

`make auto-cdc` makes the tables of AUTO CDC first, from 20,000 changes, and sets the number of kills to ten.
"""

from __future__ import annotations

import sqlite3

import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder
from tests.support.auto_cdc_tables import FILE, KILLS, MODELS, columns, models, read_auto_cdc
from tests.support.keyed_changes import SOURCES, as_text

ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}


@pytest.mark.slow
@pytest.mark.skipif(not FILE, reason="runs with `make auto-cdc`")
def test_tables_of_databases_are_those_of_auto_cdc(
    folder: ProjectFolder, postgres: DatabaseServer, mariadb: DatabaseServer
) -> None:
    """Changes in random order over batches, with duplicates and deletions, make the same tables of type 1 and 2 in each
    database, through kills. `mysql` is MariaDB's server with MySQL's driver.
    """
    auto_cdc = read_auto_cdc()
    servers = {"postgres": postgres, "mariadb": mariadb, "mysql": mariadb}
    sinks = ["sqlite", *servers]
    declared = "".join(server.sink(name, name if name == "mysql" else "") for name, server in servers.items())
    sqlite = "  - {name: sqlite, format: sqlite, path: '{{ model.name }}.sqlite'}\n"
    folder.write({"sources.yml": SOURCES, "sinks.yml": f"sinks:\n{sqlite}{declared}", **models(sinks)})
    folder.batches("in/changes", auto_cdc.batches())

    folder.run_through_kills(KILLS, 7, 2 * len(sinks), env=ENV)
    assert folder.run(env=ENV).succeeded

    for table in MODELS:
        for sink in sinks:
            select = f"select {', '.join(columns(table))} from {table}_{sink}"
            if sink == "sqlite":
                with sqlite3.connect(folder.root / f"store/{table}_sqlite.sqlite") as connection:
                    found = as_text(connection.execute(select))
            else:
                found = as_text(servers[sink].run(select))
            assert found == auto_cdc.tables[table], f"{table} in {sink}"
