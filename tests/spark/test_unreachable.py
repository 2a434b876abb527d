"""A query whose socket or broker does not answer names the address and retries until it is stopped."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest
from pyspark import SparkContext

from sqlstream import FindingsError, ProjectRequest, RunRequest, run_models
from sqlstream.app.run import runner
from sqlstream.location import Location
from sqlstream.spark.jvm.errors import hadoop_version
from sqlstream.spark.queries.query_run import QueryRun
from sqlstream.spark.queries.start import StartOrder
from sqlstream.spark.reading.endpoints import Endpoint, UnreachableError, check_brokers
from sqlstream.state.runs.events import QueryRestarting, QueryResult, RunEvent, Status, TableShown
from sqlstream.state.runs.limits import RunLimits
from tests.spark.conftest import ProjectFolder

RETRIES = "retries={'attempts': 2, 'first_delay': '10 milliseconds'}"


def closed_port() -> int:
    """Returns a port of this machine on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def restarts(events: list[RunEvent]) -> list[int]:
    """Returns the numbers of the attempts."""
    return [event.attempt for event in events if isinstance(event, QueryRestarting)]


def test_a_refused_socket_is_named_and_retried(orders: ProjectFolder) -> None:
    """A refused socket is named and retried with a new checkpoint per attempt, because Spark cannot resume a socket."""
    port = closed_port()
    orders.write(
        {
            "models/_lines.yml": "sources: [{name: net, tables: [{name: lines, format: socket, "
            f"options: {{host: localhost, port: {port}}}}}]}}]\n",
            "models/lines.sql": f"{{{{ config(sink='nowhere', trigger='1 second', {RETRIES}) }}}}\n"
            "select value from {{ source('net', 'lines') }}",
        }
    )

    result = orders.result(available_now=False)

    assert (result.status, result.restarts, restarts(orders.events)) == (Status.ERROR, 2, [1, 2])
    assert result.finding is not None
    assert f"localhost:{port}" in result.finding.why
    assert (orders.root / "store/queries/lines/v3").exists()


def test_a_memory_query_is_retried_from_the_beginning(orders: ProjectFolder) -> None:
    """A retried memory query starts from the beginning: its table has each row once, also from earlier batches."""
    bad_mood = "reflect('java.lang.System', 'getProperty', 'mood', 'bad')"
    mood = f"case when id < 10 then 1 else reflect('java.lang.Integer', 'parseInt', {bad_mood}) end"
    orders.write(
        {
            "models/look.sql": f"{{{{ config(sink='look', trigger='available_now', {RETRIES}) }}}}\n"
            f"select id, {mood} as mood from {{{{ source('shop', 'orders') }}}}",
            "models/_look.yml": "sinks: [{name: look, format: memory}]\n",
        }
    )
    events: list[RunEvent] = []

    def notify(event: RunEvent) -> None:
        events.append(event)
        if restarts(events) == [1]:
            context = SparkContext._active_spark_context
            context._jvm.java.lang.System.setProperty("mood", "1")  # type: ignore[union-attr]

    (result,) = run_models(RunRequest(ProjectRequest(orders.root)), notify).results

    assert (result.status, restarts(events)) == (Status.SUCCESS, [1])
    assert [event.count for event in events if isinstance(event, TableShown)] == [10]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """A list of unreachable brokers that every query of this test reads from."""
    endpoint = Endpoint("source `bus.orders`", "kafka", (("localhost", closed_port()),), Location("sources.yml", 5, 29))

    def reading(order: StartOrder, index: int) -> QueryRun:
        return QueryRun(replace(order, query=replace(order.query, endpoints=(endpoint,))), index)

    monkeypatch.setattr(runner, "QueryRun", reading)
    return endpoint


def test_a_broker_that_is_down_is_named_and_retried(orders: ProjectFolder, broker: Endpoint) -> None:
    """A broker that is down is named before Spark connects, because Kafka's client would wait for minutes."""
    orders.write(
        {
            "models/all.sql": f"{{{{ config(sink='nowhere', {RETRIES}) }}}} select id from {{{{ source('shop', 'orders') }}}}"
        }
    )

    result = orders.result()

    assert (result.status, result.batches, restarts(orders.events)) == (Status.ERROR, 0, [1, 2])
    assert result.finding is not None
    assert broker.text in result.finding.why
    assert "sources.yml:5:29" in result.finding.fix


def test_a_stop_takes_effect_while_a_broker_is_down(orders: ProjectFolder, broker: Endpoint) -> None:
    """A stop during the wait for the next attempt takes effect at once."""
    assert broker.addresses
    model = "{{ config(sink='nowhere', trigger='1 second', retries={'attempts': 9, 'first_delay': '1 hour', 'longest_delay': '1 hour'}) }}"
    orders.write({"models/all.sql": f"{model} select id from {{{{ source('shop', 'orders') }}}}"})

    outcome = orders.run(available_now=False, limits=RunLimits(for_seconds=1.0))

    ended = [event for event in orders.events if isinstance(event, QueryResult)]
    assert [event.status for event in ended] == [Status.ERROR]
    assert not outcome.succeeded


def test_one_broker_of_a_list_is_enough() -> None:
    """One reachable broker of a list is enough; if none answers, the message names them all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port, closed = server.getsockname()[1], closed_port()
        check_brokers([Endpoint("a", "kafka", (("127.0.0.1", closed), ("127.0.0.1", port)), Location("a", 1, 1))])
        check_brokers([Endpoint("a", "socket", (("127.0.0.1", closed),), Location("a", 1, 1))])
        with pytest.raises(UnreachableError) as unreachable:
            check_brokers([Endpoint("a", "kafka", (("127.0.0.1", closed),), Location("a", 1, 1))])

    assert str(unreachable.value) == f"127.0.0.1:{closed}: Connection refused"


@pytest.mark.parametrize(
    ("scheme", "package"),
    [("s3a", "hadoop-aws"), ("abfss", "hadoop-azure"), ("gs", "hadoop-gcp"), ("s3", "hadoop-aws")],
)
def test_a_missing_file_system_package_is_named(orders: ProjectFolder, scheme: str, package: str) -> None:
    """A missing file system package is named on the source's line, in the version that Spark's Hadoop needs."""
    sources = (orders.root / "sources.yml").read_text()
    orders.write(
        {
            "sources.yml": sources
            + f"      - {{name: far, format: json, path: '{scheme}://c@a/in', schema: id int}}\n",
            "models/far.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'far') }}",
        }
    )

    with pytest.raises(FindingsError) as refused:
        orders.run("far")
    (finding,) = refused.value.findings

    assert f"org.apache.hadoop:{package}:{hadoop_version()}" in finding.fix
    assert finding.location is not None
    assert finding.location.path == "sources.yml"
