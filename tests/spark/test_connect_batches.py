"""Sinks that sqlstream writes itself, over Spark Connect: a process of the server writes each batch."""

from __future__ import annotations

import json
import os
import random
import sys
import venv
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sqlstream.state.runs.events import Status
from tests.services.connect_server import ConnectServer, kill_in_turns, server_python, start_connect
from tests.spark.conftest import ProjectFolder, order_rows, wait_for

pytest.importorskip("grpc", reason="the client of Spark Connect needs the extra `connect`")

Read = Callable[[Path], list[dict[str, Any]]]

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))

TOTALS = """{{ config(sink='lake', output_mode='complete') }}
select kind, sum(amount) as amount from {{ source('shop', 'orders') }} group by kind
"""
SENT = "{{ config(sink='sent') }} select id, kind, amount from {{ source('shop', 'orders') }}"
SINKS = """sinks:
  - {name: lake, format: parquet, path: "{{ model.name }}"}
  - {name: screen, format: console}
  - {name: rejected, format: parquet, path: "rejected/{{ model.name }}"}
  - {name: sent, format: python, function: "sending:send", options: {token: "{{ env_var('SQLSTREAM_SECRET_TOKEN') }}"}}
"""
SENDING = """import json, os
from pathlib import Path
from shared_name import named

def send(rows, batch):
    folder = Path({folder!r})
    folder.mkdir(exist_ok=True)
    content = {{"query": batch.query_id, "ids": sorted(row.id for row in rows.collect()), "token": batch.options["token"]}}
    (folder / named(batch.id)).write_text(json.dumps(content))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A running server for the tests of this module."""
    started = start_connect(tmp_path_factory.mktemp("connect"))
    yield started
    started.stop()


def write_project(folder: ProjectFolder, address: str, models: dict[str, str]) -> None:
    """Gives the project `models` on a server, and sinks that need a process for each batch."""
    targets = f"{{far: {{remote: '{address}', storage: store}}}}"
    folder.write(
        {
            "project.yml": f"name: shop\nversion: 1.0.0\ndefault_target: far\ntargets: {targets}\n",
            "sinks.yml": SINKS,
            "python/sending.py": SENDING.format(folder=str(folder.root / "sent")),
            "python/shared_name.py": "def named(number):\n    return f'{number}.json'\n",
            **{f"models/{name}.sql": sql for name, sql in models.items()},
        }
    )


def totals_of(folder: ProjectFolder) -> list[int]:
    """Returns the amounts in the output of `totals`, as any reader of Parquet files sees them."""
    return [row["amount"] for row in pq.read_table(folder.root / "store/totals").to_pylist()]


@pytest.mark.slow
def test_complete_files_and_functions(
    orders: ProjectFolder, server: ConnectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files in complete mode are replaced as a whole; a function gets each batch, its number and the values of secrets;
    the next run goes on with the next batch.
    """
    monkeypatch.setenv("SQLSTREAM_SECRET_TOKEN", "open sesame")
    write_project(orders, server.address, {"totals": TOTALS, "sent": SENT})
    first = orders.run().results
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    second = orders.run().results

    assert [result.status for result in (*first, *second)] == [Status.SUCCESS] * 4
    batches = [json.loads((orders.root / f"sent/{number}.json").read_text()) for number in range(2)]
    assert [batch["token"] for batch in batches] == ["open sesame"] * 2
    assert (
        batches[0]["query"]
        == batches[1]["query"]
        == json.loads((orders.root / "store/queries/sent/v1/checkpoint/metadata").read_text())["id"]
    )
    assert sum(totals_of(orders)) == sum(row["amount"] for number in range(3) for row in order_rows(number))


@pytest.mark.slow
def test_a_quarantine(orders: ProjectFolder, server: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that violate a test go to the quarantine, and the others to each sink of a shared query."""
    monkeypatch.setenv("SQLSTREAM_SECRET_TOKEN", "open sesame")
    config = "sink=['sent', 'screen'], fan_out='shared', quarantine_sink='rejected'"
    write_project(orders, server.address, {"sent": SENT.replace("sink='sent'", config)})
    test = "expression_is_true: {name: small, expression: id <> 3, on_violation: quarantine}"
    orders.write({"models/sent.yml": f"models:\n  - name: sent\n    data_tests:\n      - {test}\n"})
    outcome = orders.run()

    assert [(result.status, result.rows_in) for result in outcome.results] == [(Status.SUCCESS, 10)]
    sent = [json.loads(file.read_text())["ids"] for file in (orders.root / "sent").iterdir()]
    files = (orders.root / "store/rejected").rglob("*.parquet")
    rejected = [row["id"] for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    assert (sorted(chain(*sent)), rejected) == ([0, 1, 2, 4, 10, 11, 12, 13, 14], [3])


@pytest.mark.slow
def test_a_function_that_fails(orders: ProjectFolder, server: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a function ends the query with its message, without the value of a secret."""
    monkeypatch.setenv("SQLSTREAM_SECRET_TOKEN", "open sesame")
    write_project(orders, server.address, {"sent": SENT.replace("sink='sent'", "sink='sent', retries=0")})
    orders.write({"python/sending.py": "def send(rows, batch):\n    raise OSError(f'no {batch.options[\"token\"]}')\n"})
    result = orders.result()

    assert result.finding is not None
    assert "OSError: no *****" in result.finding.why
    assert "sesame" not in str(result)


@pytest.mark.slow
def test_a_server_without_sqlstream(orders: ProjectFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server's Python has no sqlstream, the query is refused with the way out before its first batch."""
    monkeypatch.setenv("SQLSTREAM_SECRET_TOKEN", "x")
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "env/lib").glob("python*/site-packages")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(packages))  # Python does not read the .pth of sqlstream in them
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    server = start_connect(tmp_path, python=str(tmp_path / "env/bin/python"))
    try:
        write_project(orders, server.address, {"totals": TOTALS})
        result = orders.result()
    finally:
        server.stop()

    assert result.finding is not None
    assert (result.finding.code, "install sqlstream" in result.finding.fix) == ("unsupported-target", True), result


@pytest.mark.slow
def test_killed_servers_leave_exact_totals(folder: ProjectFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    """After `kill -9` of the server in a batch, the next run on a new server continues with exact totals."""
    server = start_connect(tmp_path_factory.mktemp("connect"))
    order = random.Random(41)
    expected = 0
    try:
        write_project(folder, server.address, {"totals": TOTALS})
        text = (folder.root / "project.yml").read_text()
        patience = "storage: store, spark: {spark.sqlstream.connect.patience: 5}"
        folder.write({"project.yml": text.replace("storage: store", patience)})
        for number in range(KILLS):
            for file in range(6 * number, 6 * number + 6):
                rows = order_rows(file % 10)
                expected += sum(row["amount"] for row in rows)
                folder.rows(f"in/orders/{file}.json", rows, modified=file)
            process = folder.command("run", "--log-format", "json")
            for _ in range(order.randint(1, 3)):
                wait_for(process, '"event": "batch"')
            server.kill()
            printed, _ = process.communicate()
            assert process.returncode == 1, printed
            server.start()
        outcome = folder.run()
    finally:
        server.stop()

    assert [result.status for result in outcome.results] == [Status.SUCCESS]
    assert sum(totals_of(folder)) == expected


LOGGED = """{{ config(sink=['lake', 'kinds'], fan_out='shared', quarantine_sink='rejected') }}
select id, kind, amount from {{ source('shop', 'orders') }}
"""


def write_logged_files(folder: ProjectFolder, address: str) -> None:
    """Gives the project the model `logged`, with a quarantine and two sinks of files that grow, and targets on a server
    and, with the same storage, in this process.
    """
    settings = "spark: {spark.sql.streaming.fileSink.log.compactInterval: 3, spark.sqlstream.connect.patience: 5}"
    write_project(folder, address, {"logged": LOGGED})
    text = (folder.root / "project.yml").read_text()
    near = f"near: {{master: 'local[2]', storage: store, {settings}}}"
    kinds = "  - {name: kinds, format: parquet, path: 'by kind/{{ model.name }}', partition_by: [kind]}\n"
    test = "expression_is_true: {name: small, expression: id % 10 <> 3, on_violation: quarantine}"
    folder.write(
        {
            "project.yml": text.replace("storage: store}", f"storage: store, {settings}}}, {near}"),
            "sinks.yml": SINKS + kinds,
            "models/logged.yml": f"models:\n  - name: logged\n    data_tests:\n      - {test}\n",
        }
    )


@pytest.mark.slow
def test_files_that_grow(
    folder: ProjectFolder, read_parquet: Read, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a quarantine and several sinks, the log of a sink of files lists the files of each batch once, through
    kills of the server and of the run; a target with a master continues it, and Spark reads the same rows.
    """
    monkeypatch.setenv("SQLSTREAM_SECRET_TOKEN", "x")
    server = start_connect(tmp_path_factory.mktemp("connect"))
    order, files = random.Random(47), 0
    rows: list[dict[str, Any]] = []

    def add(count: int) -> None:
        nonlocal files
        for number in range(files, files + count):
            rows.extend({**row, "id": 100 * number + row["id"] % 10} for row in order_rows(number % 10))
            folder.rows(f"in/orders/{number}.json", rows[-5:], modified=number)
        files += count

    try:
        write_logged_files(folder, server.address)
        for number in range(KILLS):
            add(6)
            process = folder.command("run", "--log-format", "json")
            for _ in range(order.randint(1, 4)):
                wait_for(process, '"event": "batch"')
            kill_in_turns(process, server, number)
        add(1)
        far = folder.run().results
    finally:
        server.stop()
    add(4)
    near = folder.command("run", "--available-now", "--target", "near", python=server_python())
    printed, _ = near.communicate()

    assert [result.status for result in far] == [Status.SUCCESS]
    assert near.returncode == 0, printed
    expected = sorted((row["id"], row["kind"], row["amount"]) for row in rows if row["id"] % 10 != 3)
    (commits,) = (folder.root / "store").glob("**/logged/**/commits")
    batches = {int(each.name) for each in commits.iterdir() if each.name.isdecimal()}
    for path in ("store/logged", "store/by kind/logged"):
        found = [(row["id"], row["kind"], row["amount"]) for row in read_parquet(folder.root / path)]
        assert sorted(found) == expected
        entries = {
            int(name.partition(".")[0])
            for name in (each.name for each in (folder.root / path / "_spark_metadata").iterdir())
            if name[0] != "."
        }
        assert entries == batches  # after a kill, a batch can have a file more than the source asks for
    assert not list((folder.root / "store").glob("**/_writing/*/*"))
