"""`kill -9` in the middle of a run leaves tables of databases that have each change in its order.

SQLSTREAM_KILLS sets the number of kills, and SQLSTREAM_EVENTS that of changes (`make sequences`: ten, and 20,000).
"""

from __future__ import annotations

import os
import sqlite3

import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import ProjectFolder
from tests.support.keyed_changes import SOURCES, as_text, keyed_changes, model

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
CHANGES = int(os.environ.get("SQLSTREAM_EVENTS", "2000"))
FILES = 6 * KILLS
ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}

VERSIONS = "id, n, name, at, valid_from, valid_to, is_current"


@pytest.mark.slow
def test_killed_runs_leave_the_last_change_and_all_versions(
    folder: ProjectFolder, postgres: DatabaseServer, mariadb: DatabaseServer
) -> None:
    """Changes in random order, with duplicates and deletions, end in the rows and versions that they have in their
    order, in SQLite, PostgreSQL and MariaDB, after several runs that were killed and one that finishes.
    """
    servers = {"postgres": postgres, "mariadb": mariadb}
    sinks = "".join(server.sink(name) for name, server in servers.items())
    sqlite = "  - {name: sqlite, format: sqlite, path: '{{ model.name }}.sqlite'}\n"
    names = ("sqlite", *servers)
    models = {f"models/last_{name}.sql": model(name) for name in names}
    models |= {f"models/versions_{name}.sql": model(name, ", history=true") for name in names}
    folder.write({"sources.yml": SOURCES, "sinks.yml": f"sinks:\n{sqlite}{sinks}", **models})
    changes = keyed_changes(3, CHANGES, CHANGES // 20, FILES, times=True)
    folder.batches("in/changes", changes.batches)
    folder.run_through_kills(KILLS, 7, 8, env=ENV)

    assert folder.run(env=ENV).succeeded

    def ask(name: str, columns: str, table: str) -> list[tuple[str, ...]]:
        if name in servers:
            return as_text(servers[name].run(f"select {columns} from {table}"))
        with sqlite3.connect(folder.root / f"store/{table}.sqlite") as connection:
            return as_text(connection.execute(f"select {columns} from {table}"))

    versions = changes.versions("n", "name")
    for name in names:
        assert ask(name, "id, at, n, name", f"last_{name}") == as_text(changes.remaining)
        assert ask(name, VERSIONS, f"versions_{name}") == as_text(versions)
