"""Tables of Delta Lake and Iceberg over Spark Connect, on a real server of Spark 4.1."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from tests.services.connect_server import ConnectServer, connector_jars, kill_in_turns, start_connect
from tests.spark.conftest import ProjectFolder, wait_for
from tests.support.lake_tables import FORMATS, SETTINGS, SINKS, lake_session, rows

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
FILES_FOR_A_KILL = 4

QUERIES = {
    "plain": "{{ config(sink='FORMAT') }} select id, kind, amount from {{ source('shop', 'orders') }}",
    "totals": "{{ config(sink='FORMAT', output_mode='update', unique_key='kind') }}\n"
    "select kind, sum(amount) as total, count(*) as orders from {{ source('shop', 'orders') }} group by kind",
}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server with the jars and the settings of both formats."""
    settings = {name.replace(".", "__"): value for name, value in SETTINGS.items() if "catalog.files" not in name}
    folder = tmp_path_factory.mktemp("connect")
    started = start_connect(folder, spark__jars=connector_jars(*FORMATS), **settings)
    yield started
    started.stop()


def use_target(folder: ProjectFolder, address: str, name: str) -> None:
    """Makes the project use the server (`far`), or a master with the same storage (`near`)."""
    targets = f"{{far: {{remote: '{address}', storage: store}}, near: {{master: 'local[2]', storage: store}}}}"
    folder.write({"project.yml": f"name: shop\nversion: 1.0.0\ndefault_target: {name}\ntargets: {targets}\n"})


def write_models(folder: ProjectFolder) -> None:
    """Writes each query with a table of each format."""
    models = {
        f"models/{name}_{each}.sql": sql.replace("FORMAT", each) for name, sql in QUERIES.items() for each in FORMATS
    }
    folder.write({"sinks.yml": SINKS, **models})


def orders_of(file: int) -> list[dict[str, Any]]:
    """Returns the five orders of a file."""
    return [{"id": 10 * file + each, "kind": "ab"[each % 2], "amount": each} for each in range(5)]


def add_files(folder: ProjectFolder, first: int, count: int) -> None:
    """Adds files, each of which is a batch."""
    for number in range(first, first + count):
        folder.rows(f"in/orders/{number}.json", orders_of(number), modified=number)


def check_tables(folder: ProjectFolder, files: int) -> None:
    """Checks the rows of all tables, which Spark reads, after the orders of `files` files."""
    orders = [row for number in range(files) for row in orders_of(number)]
    plain = sorted(((row["id"], row["kind"], row["amount"]) for row in orders), key=str)
    kinds = sorted({row["kind"] for row in orders})
    amounts = {kind: [row["amount"] for row in orders if row["kind"] == kind] for kind in kinds}
    with lake_session(folder) as session:
        for each in FORMATS:
            assert rows(session, folder, each, f"plain_{each}") == plain
            assert rows(session, folder, each, f"totals_{each}") == [
                (kind, sum(amounts[kind]), len(amounts[kind])) for kind in kinds
            ]


@pytest.mark.smoke
def test_tables_are_written_on_either_target(folder: ProjectFolder, server: ConnectServer) -> None:
    """Rows are added and replaced over Spark Connect, and a target with a master goes on, and back."""
    write_models(folder)
    for number, name in enumerate(("far", "near", "far", "near")):
        use_target(folder, server.address, name)
        if number < 3:
            add_files(folder, 2 * number, 2)
        results = folder.run().results
        assert [result.rows_in for result in results] == [10 if number < 3 else 0] * 4

    check_tables(folder, 6)


@pytest.mark.slow
def test_a_server_without_the_extension_of_delta(folder: ProjectFolder, tmp_path: Path) -> None:
    """Without Delta's extension, whose SQL has another MERGE than Spark's, rows can be added but not merged."""
    write_models(folder)
    add_files(folder, 0, 1)
    server = start_connect(tmp_path, spark__jars=connector_jars(*FORMATS))
    try:
        use_target(folder, server.address, "far")
        with pytest.raises(FindingsError) as refused:
            folder.run()
        added = folder.run("plain_delta", "plain_iceberg", "totals_iceberg")
    finally:
        server.stop()

    (finding,) = refused.value.findings
    assert (finding.code, str(finding.location)) == ("spark-start", "models/totals_delta.sql:1:47")
    assert finding.fix.endswith("--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension")
    assert added.succeeded


@pytest.mark.slow
def test_killed_runs_and_servers_leave_exact_tables(folder: ProjectFolder, server: ConnectServer) -> None:
    """After `kill -9` of servers and runs, in turns, all tables are as after one run without kills."""
    write_models(folder)
    use_target(folder, server.address, "far")
    order, files = random.Random(41), 0
    names = [f"{name}_{each}" for name in ("totals", "plain") for each in FORMATS]
    for number in range(KILLS):
        add_files(folder, files, FILES_FOR_A_KILL)
        files += FILES_FOR_A_KILL
        process = folder.command("run", "--available-now", "--log-format", "json")
        for _ in range(order.randint(1, FILES_FOR_A_KILL - 1)):
            wait_for(process, f'"event": "batch", "model": "{names[number // 2 % 4]}"')
        kill_in_turns(process, server, number)
    add_files(folder, files, 1)
    assert folder.run().succeeded

    use_target(folder, server.address, "near")
    assert folder.run().succeeded
    check_tables(folder, files + 1)
