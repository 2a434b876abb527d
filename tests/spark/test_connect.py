"""Runs over Spark Connect, on a real server: queries run, resume, fail and stop there, and survive what can break."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.progress import BatchProgress
from tests.services.connect_server import ConnectServer, connector_jars, server_python, start_connect
from tests.services.cut import cut
from tests.services.kafka_topics import Topic, create_topic
from tests.spark.conftest import ProjectFolder, order_rows, wait_for, wait_until

pytest.importorskip("grpc", reason="the client of Spark Connect needs the extra `connect`")

Read = Callable[[Path], list[dict[str, Any]]]

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))

PLAIN = "{{ config(sink='lake') }} select id, kind, amount from {{ source('shop', 'orders') }}"
SUMS = """{{ config(sink='lake', output_mode='append') }}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, kind, sum(amount) as amount
from {{ source('shop', 'orders') }}
group by window(ts, '1 hour'), kind
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A running server for the tests of this module."""
    started = start_connect(tmp_path_factory.mktemp("connect"))
    yield started
    started.stop()


def over_connect(folder: ProjectFolder, address: str, models: dict[str, str], *more: str) -> ProjectFolder:
    """Gives the project `models`, and targets on a server and, with the same storage, in this process."""
    keys = ", ".join([f"remote: '{address}'", "storage: store", *more])
    targets = f"{{far: {{{keys}}}, near: {{master: 'local[2]', storage: store}}}}"
    folder.write(
        {
            "project.yml": f"name: shop\nversion: 1.0.0\ndefault_target: far\ntargets: {targets}\n",
            **{f"models/{name}.sql": sql for name, sql in models.items()},
        }
    )
    return folder


def order_batches(folder: ProjectFolder, count: int, first: int = 0) -> None:
    """Adds `count` files of five orders each."""
    for number in range(first, first + count):
        folder.rows(f"in/orders/{number}.json", order_rows(number % 10), modified=number)


def codes(refused: pytest.ExceptionInfo[FindingsError]) -> list[tuple[str, str]]:
    """Returns the code and the place of each finding."""
    return [(finding.code, str(finding.location)) for finding in refused.value.findings]


@pytest.mark.smoke
def test_a_query_runs_and_resumes(orders: ProjectFolder, server: ConnectServer, read_parquet: Read) -> None:
    """Queries with and without state run on the server and count their rows; the next run reads only what is new."""
    folder = over_connect(orders, server.address, {"plain": PLAIN, "sums": SUMS})
    first = folder.run().results
    folder.rows("in/orders/2.json", order_rows(2), modified=2)
    second = folder.run().results

    assert [(result.status, result.rows_in, result.rows_out) for result in first] == [
        (Status.SUCCESS, 10, 10),
        (Status.SUCCESS, 10, 0),
    ]
    assert [(result.rows_in, result.rows_out) for result in second] == [(5, 5), (5, 2)]
    assert len(read_parquet(folder.root / "store/plain")) == 15
    sums = sorted((row["hour"].hour, row["kind"], row["amount"]) for row in read_parquet(folder.root / "store/sums"))
    assert sums == [(0, "a", 6), (0, "b", 4)]


@pytest.mark.slow
def test_the_same_storage_works_with_a_master(orders: ProjectFolder, server: ConnectServer) -> None:
    """A query that ran over Spark Connect resumes on another target with a master, and back."""
    folder = over_connect(orders, server.address, {"sums": SUMS})
    assert folder.result().rows_in == 10
    folder.rows("in/orders/2.json", order_rows(2), modified=2)
    near = folder.command("run", "--available-now", "--target", "near", "--log-format", "json", python=server_python())
    assert '"rows_in": 5' in "\n".join(wait_for(near, '"event": "done"'))
    near.communicate()
    folder.rows("in/orders/3.json", order_rows(3), modified=3)

    assert (folder.result().rows_in, folder.result().rows_in) == (5, 0)


@pytest.mark.slow
def test_commands_without_a_run(orders: ProjectFolder, server: ConnectServer) -> None:
    """`compile --check`, `plan --check`, `show` and `debug` use the server; `plan` and `status` need none."""
    folder = over_connect(orders, server.address, {"plain": PLAIN, "sums": SUMS})
    folder.run()

    checked = folder.invoke("compile", "--check")
    assert (checked.code, "accepts 2 models" in checked.out + checked.err) == (0, True), checked
    planned = folder.invoke("plan", "--check")
    assert (planned.code, "unchanged: plain, sums" in planned.out) == (0, True), planned
    shown = folder.invoke("show", "--select", "plain", "sums", "--limit", "3", "--output", "json")
    assert shown.code == 0, shown
    rows = [len(each["rows"]) for each in json.loads(shown.out)["results"]]
    assert rows == [3, 3]
    debugged = folder.invoke("debug")
    assert (debugged.code, "ERROR" in debugged.out) == (0, False), debugged
    assert "unchanged: plain, sums" in folder.invoke("plan").out
    assert folder.invoke("status").code == 0


@pytest.mark.slow
def test_an_unsafe_edit_is_refused(orders: ProjectFolder, server: ConnectServer) -> None:
    """An edit that changes the content of the state is refused; one of a query without state is not."""
    folder = over_connect(orders, server.address, {"plain": PLAIN, "sums": SUMS})
    folder.run()
    folder.write({"models/sums.sql": SUMS.replace("sum(amount)", "max(amount)")})
    with pytest.raises(FindingsError) as refused:
        folder.run("sums")
    folder.write({"models/plain.sql": PLAIN.replace("id, ", "id + 1 as id, ")})

    assert [code for code, _ in codes(refused)] == ["state-change", "output-columns"]
    assert folder.result("plain").status is Status.SUCCESS


@pytest.mark.slow
def test_a_failed_query_is_found_in_its_sql(orders: ProjectFolder, server: ConnectServer) -> None:
    """A query that fails on the server is reported at the expression in the model, with the condition of Spark."""
    sql = "{{ config(sink='lake', retries=0) }}\nselect id,\n  cast(kind as int) as kind\nfrom {{ source('shop', 'orders') }}"
    folder = over_connect(orders, server.address, {"broken": sql})
    result = folder.result()

    assert result.finding is not None
    assert (result.finding.code, str(result.finding.location)) == ("query-failed", "models/broken.sql:3:3")
    assert "CAST_INVALID_INPUT" in result.finding.why
    assert "JVM stacktrace" not in result.finding.why


@pytest.mark.slow
def test_python_seeds_and_batch_models(orders: ProjectFolder, server: ConnectServer) -> None:
    """Python functions reach the server; seeds, batch models and memory tables work there."""
    folder = over_connect(
        orders,
        server.address,
        {
            "doubled": "{{ config(sink='table') }} select id, twice(amount) as amount, name "
            "from {{ source('shop', 'orders') }} join {{ ref('kinds') }} using (kind)",
            "listed": "{{ config(sink='lake') }} select * from {{ ref('kinds') }}",
        },
    )
    folder.write(
        {
            "seeds/kinds.csv": "kind,name\na,first\nb,second\n",
            "python/things.py": "from pyspark.sql.functions import udf\n\n@udf('int')\ndef twice(number):\n    return 2 * number\n",
            "project.yml": (folder.root / "project.yml").read_text() + "functions: [things:twice]\n",
        }
    )
    results = {result.model: result for result in folder.run().results}

    assert {name: (result.status, result.rows_out) for name, result in results.items()} == {
        "doubled": (Status.SUCCESS, 10),
        "listed": (Status.SUCCESS, 2),
    }


@pytest.mark.slow
def test_a_setting_of_the_server_is_refused(orders: ProjectFolder, server: ConnectServer) -> None:
    """Settings that only the start of a server can set are refused, each with its name."""
    settings = "spark: {spark.executor.memory: 2g, spark.sql.warehouse.dir: /tmp/x, spark.sql.shuffle.partitions: 3}"
    folder = over_connect(orders, server.address, {"plain": PLAIN}, settings)
    with pytest.raises(FindingsError) as refused:
        folder.run()

    assert [code for code, _ in codes(refused)] == ["spark-start", "spark-start"]


def test_a_server_that_does_not_answer(orders: ProjectFolder) -> None:
    """A server that does not answer is one finding, at once."""
    folder = over_connect(orders, "sc://127.0.0.1:1", {"plain": PLAIN})
    with pytest.raises(FindingsError) as refused:
        folder.run()

    assert codes(refused) == [("spark-start", "project.yml:4:25")]


@pytest.mark.slow
def test_a_stop_request_ends_the_query_on_the_server(orders: ProjectFolder, server: ConnectServer) -> None:
    """After a signal the query ends on the server, too: the next run finds nothing left there."""
    folder = over_connect(orders, server.address, {"plain": PLAIN})
    outcome = folder.run_until(lambda events: any(isinstance(event, BatchProgress) for event in events))

    assert [result.status for result in outcome.results] == [Status.STOPPED]
    assert json.loads((folder.root / "store/queries/plain/v1.remote.json").read_text()) == {}


@pytest.mark.slow
def test_killed_clients_leave_exact_outputs(folder: ProjectFolder, server: ConnectServer, read_parquet: Read) -> None:
    """After `kill -9` of the run, its query goes on at the server. The next run ends it there, and resumes exactly."""
    over_connect(folder, server.address, {"plain": PLAIN})
    (folder.root / "in/orders").mkdir(parents=True)
    order = random.Random(37)
    for number in range(KILLS):
        process = folder.command("run", "--log-format", "json")
        wait_for(process, '"event": "query_started"')
        order_batches(folder, 6, first=6 * number)  # not before: the query of the run before may read them
        for _ in range(order.randint(1, 3)):
            wait_for(process, '"event": "batch"')
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    near = folder.command("run", "--available-now", "--target", "near", python=server_python())
    refused, _ = near.communicate()
    outcome = folder.run()

    assert (near.returncode, "query-in-use" in refused) == (1, True), refused
    assert [result.status for result in outcome.results] == [Status.SUCCESS]
    rows = read_parquet(folder.root / "store/plain")
    assert len(rows) == 30 * KILLS
    assert len({row["id"] for row in rows}) == min(30 * KILLS, 50)


@pytest.mark.slow
def test_killed_servers_leave_exact_outputs(
    folder: ProjectFolder, tmp_path_factory: pytest.TempPathFactory, read_parquet: Read
) -> None:
    """After `kill -9` of the server the run ends with a finding; with a new server, the next run resumes exactly."""
    server = start_connect(tmp_path_factory.mktemp("connect"))
    order = random.Random(73)
    try:
        over_connect(folder, server.address, {"sums": SUMS}, "spark: {spark.sqlstream.connect.patience: 5}")
        for number in range(KILLS):
            order_batches(folder, 6, first=6 * number)
            process = folder.command("run", "--log-format", "json")
            for _ in range(order.randint(1, 3)):
                wait_for(process, '"event": "batch"')
            server.kill()
            printed, _ = process.communicate()
            assert (process.returncode, "the Spark Connect server has ended" in printed) == (1, True), printed
            server.start()
        outcome = folder.run()
    finally:
        server.stop()

    assert [result.status for result in outcome.results] == [Status.SUCCESS]
    amounts = sum(row["amount"] for row in read_parquet(folder.root / "store/sums"))
    assert amounts > 0


@pytest.mark.slow
def test_broken_connections_do_not_end_a_run(folder: ProjectFolder, server: ConnectServer, read_parquet: Read) -> None:
    """A run goes on after its connections to the server have broken, and reports all batches in between."""
    with cut(server.port) as middle:
        over_connect(folder, f"sc://127.0.0.1:{middle.port}", {"plain": PLAIN})
        order_batches(folder, 3)
        process = folder.command("run", "--log-format", "json")
        printed = []
        for number in range(KILLS):
            printed += wait_for(process, '"event": "batch"')
            wait_until(process, middle.break_all)  # the client connects again in a moment
            order_batches(folder, 3, first=3 + 3 * number)
        while len([line for line in printed if '"event": "batch"' in line]) < 3 + 3 * KILLS:
            printed += wait_for(process, '"event": "batch"')
        process.send_signal(signal.SIGTERM)
        process.communicate()

    assert process.returncode == 0
    assert len(read_parquet(folder.root / "store/plain")) == 5 * (3 + 3 * KILLS)


@pytest.mark.slow
def test_kafka(
    folder: ProjectFolder,
    server: ConnectServer,
    topic: Topic,
    read_parquet: Read,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Queries read Kafka and write to it, and resume, on a server that has the connector; others are refused."""
    copied = "{{ config(sink=['lake', 'copies']) }}\nselect cast(value as string) as value from {{ source('bus', 'events') }}"
    where = f"kafka.bootstrap.servers: '{topic.servers}'"
    read = f"{{{where}, subscribe: {topic.name}, startingOffsets: earliest}}"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {read}}}]}}]\n"
            f"sinks: [{{name: copies, format: kafka, options: {{{where}, topic: '{topic.name}-copies'}}}}]\n",
        }
    )
    over_connect(folder, server.address, {"copied": copied})
    with pytest.raises(FindingsError) as refused:
        folder.run()
    with_kafka = start_connect(tmp_path_factory.mktemp("connect"), spark__jars=connector_jars("kafka"))
    try:
        over_connect(folder, with_kafka.address, {"copied": copied})
        create_topic(topic.servers, f"{topic.name}-copies")
        topic.send([{"id": 1}, {"id": 2}])
        first = folder.run().results
        topic.send([{"id": 3}])
        second = folder.run().results
    finally:
        with_kafka.stop()

    assert codes(refused) == [("spark-start", "models/_bus.yml:1:55")]
    assert [(result.status, result.rows_in) for result in (*first, *second)] == [
        *[(Status.SUCCESS, 2)] * 2,
        *[(Status.SUCCESS, 1)] * 2,
    ]
    assert [row["value"] for row in read_parquet(folder.root / "store/copied")] == [f'{{"id": {n}}}' for n in (1, 2, 3)]
