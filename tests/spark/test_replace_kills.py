"""`kill -9` in the middle of `sqlstream backfill --replace`, followed by the same command: the range is replaced once, and
the stream goes on.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.spark.conftest import LONGEST_WAIT_SECONDS, POLL_SECONDS, ProjectFolder, java_below, wait_until

ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}
REPLACE = ("backfill", "days", "--replace", "--by", "day", "--from", "2024-01-02", "--to", "2024-01-04")
FLAT = (
    "{{ config(sink='SINK') }}\nselect id, cast(ts as timestamp_ntz) as ts, to_date(ts) as day, -amount as amount "
    "from {{ source('shop', 'orders') }}"
)


def add_day(folder: ProjectFolder, day: int) -> None:
    """Writes a file with two orders of a day."""
    orders = [{"id": 10 * day + i, "ts": f"2024-01-{day:02}T0{i}:30:00Z", "amount": 1} for i in range(2)]
    folder.rows(f"in/orders/{day:02}.json", orders, modified=day)


def written(folder: ProjectFolder, sink: str) -> None:
    """Makes the query `days` write four days with negative amounts, and corrects it."""
    sql = FLAT.replace("SINK", sink)
    sql = sql.replace("'lake'", "'lake', partition_by='day'")
    folder.write({"models/days.sql": sql})
    for day in range(1, 5):
        add_day(folder, day)
    assert folder.run(env=ENV).succeeded
    folder.write({"models/days.sql": sql.replace("-amount as amount", "amount")})


OLD = {10 * day + i: -1 for day in range(1, 5) for i in range(2)}
NEW = {order: 1 if 20 <= order < 40 else -1 for order in OLD}


@contextmanager
def killed(folder: ProjectFolder) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Starts the command, and yields a function that waits until a condition is true. Then kills the command."""
    (folder.root / "tmp").mkdir(exist_ok=True)
    process = folder.command(*REPLACE, env={**ENV, "TMPDIR": str(folder.root / "tmp")})
    yield lambda condition: wait_until(process, condition)
    os.kill(java_below(process.pid), signal.SIGKILL)  # first, because its lock would outlive Python
    process.kill()
    process.communicate()


def replace_again(folder: ProjectFolder) -> None:
    """Runs the same command again."""
    os.environ.update(ENV)
    done = folder.invoke(*REPLACE)
    assert done.code == 0, done.out + done.err


def eventually(condition: Callable[[], object]) -> None:
    """Waits until a condition is true that no process of this test makes true."""
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(POLL_SECONDS)


@contextmanager
def held(server: DatabaseServer, table: str, *, shared: bool) -> Iterator[None]:
    """Locks the rows of a table for others, or with `shared` the table so that it cannot be dropped."""
    if "postgres" in server.url:
        mode = "access share" if shared else "exclusive"
        holder = server.client_process(f'begin; lock table "{table}" in {mode} mode; select pg_sleep(900)')
        sleeping = "select pid from pg_stat_activity where query like 'begin; lock%' and wait_event = 'PgSleep' and query like '%{}%'"
        end = "select pg_terminate_backend({})"
    else:
        first = f"start transaction; select count(*) from `{table}`{'' if shared else ' for update'}"
        holder = server.client_process(f"{first}; select sleep(900) as `{table}`")
        sleeping = "select id from information_schema.processlist where info like 'select sleep(900) as `{}`%'"
        end = "kill {}"
    found: list[list[str]] = []

    def is_held() -> bool:
        found[:] = server.run(sleeping.format(table))
        return bool(found)

    eventually(is_held)
    try:
        yield
    finally:
        server.run(end.format(found[0][0]))
        holder.wait()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_databases_replace_a_range_once(name: str, folder: ProjectFolder, request: pytest.FixtureRequest) -> None:
    """A command that is killed before its transaction changes nothing, and one that is killed after it has replaced the
    range, although its staging tables are still there.
    """
    server: DatabaseServer = request.getfixturevalue(name)
    folder.write({"sinks.yml": f"sinks:\n{server.sink('db')}"})
    written(folder, "db")

    def amounts() -> dict[int, int]:
        rows = [(int(number), int(amount)) for number, amount in server.run("select id, amount from days")]
        assert len(dict(rows)) == len(rows)
        return dict(rows)

    def staging() -> str:
        tables = [row[0] for row in server.run("select table_name from information_schema.tables")]
        names = [each for each in tables if each.startswith("_sqlstream_") and not each.endswith(("batches", "limits"))]
        return names[0] if any(each.endswith("_limits") for each in tables) else ""

    is_waiting = (
        "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        if name == "postgres"
        else "select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"
    )
    assert amounts() == OLD
    with held(server, "days", shared=False), killed(folder) as wait:
        wait(staging)
        wait(lambda: server.run(is_waiting))
    eventually(lambda: not server.run(is_waiting))
    assert amounts() == OLD
    with ExitStack() as undropped, killed(folder) as wait:
        with held(server, "days", shared=False):
            wait(lambda: server.run(is_waiting))
            undropped.enter_context(held(server, staging(), shared=True))
        wait(lambda: amounts() == NEW)
    assert amounts() == NEW
    replace_again(folder)
    assert amounts() == NEW
    assert staging() == ""
    add_day(folder, 5)
    assert folder.run(env=ENV).succeeded
    assert amounts() == NEW | {50: 1, 51: 1}


@pytest.mark.slow
def test_a_file_of_sqlite_replaces_a_range_once(folder: ProjectFolder) -> None:
    """A command that is killed while it waits for the file changes nothing, and the same command replaces the range."""
    folder.write({"sinks.yml": "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"})
    written(folder, "db")
    file = folder.root / "store/days.sqlite"

    def amounts() -> dict[int, int]:
        with sqlite3.connect(file) as reader:
            found = reader.execute("select id, amount from days").fetchall()
        assert len(dict(found)) == len(found)
        return dict(found)

    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("begin immediate")
    with killed(folder) as wait:
        wait(lambda: list((folder.root / "tmp").glob("sqlstream-*/rows/_SUCCESS")))
    connection.execute("rollback")
    connection.close()
    assert amounts() == OLD
    replace_again(folder)
    assert amounts() == NEW
    add_day(folder, 5)
    assert folder.run(env=ENV).succeeded
    assert amounts() == NEW | {50: 1, 51: 1}


@pytest.mark.slow
def test_a_file_sink_replaces_a_range_once(
    folder: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, int]]]
) -> None:
    """A command that is killed at any of its steps leaves the old rows or the new ones: in the batches that lead up to the
    new entry of the log, after the new files are there, and when the entry is there.
    """
    written(folder, "lake")
    output = folder.root / "store/days"
    checkpoint = folder.root / "store/queries/days/v1/checkpoint"

    def amounts() -> dict[int, int]:
        rows = [(row["id"], row["amount"]) for row in read_parquet(output)]
        assert len(dict(rows)) == len(rows)
        return dict(rows)

    steps = [
        lambda: (checkpoint / "offsets/6").exists(),
        lambda: any((folder.root / "store/_archive/days").glob("*/merged.json")),
        lambda: (checkpoint / "offsets/9").exists(),
        lambda: (output / "_spark_metadata/19.compact").exists(),
    ]
    for number, condition in enumerate(steps):
        with killed(folder) as wait:
            wait(condition)
        assert amounts() == OLD if number < 1 else amounts() in (OLD, NEW)
    replace_again(folder)
    assert amounts() == NEW
    add_day(folder, 5)
    assert folder.run(env=ENV).succeeded
    assert amounts() == NEW | {50: 1, 51: 1}
