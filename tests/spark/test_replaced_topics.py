"""Topics of a real broker that are deleted and created again between two runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.state.runs.events import QueryRestarting, RunEvent, Status
from tests.services.kafka_broker import KafkaBroker
from tests.services.kafka_topics import Topic, create_topic, replace_topic
from tests.spark.conftest import ProjectFolder

ReadParquet = Callable[[Path], list[dict[str, Any]]]

LEDGER = "store/queries/rides/v1/ledger.json"


@pytest.fixture
def second(kafka: KafkaBroker, topic: Topic) -> Topic:
    """Another topic, whose name begins like that of the first one."""
    return create_topic(kafka.servers, f"{topic.name}-more")


@pytest.fixture(params=["subscribe: '{first}, {second}'", "subscribePattern: '{first}.*'", "assign: '{partitions}'"])
def rides(folder: ProjectFolder, topic: Topic, second: Topic, request: pytest.FixtureRequest) -> ProjectFolder:
    """A project whose query writes the ids in both topics, which it names in one of three ways."""
    partitions = json.dumps({name: [0, 1] for name in (topic.name, second.name)})
    topics = request.param.format(first=topic.name, second=second.name, partitions=partitions)
    options = f"kafka.bootstrap.servers: '{topic.servers}', startingOffsets: earliest, failOnDataLoss: false, {topics}"
    folder.write(
        {
            "models/_bus.yml": "sources: [{name: bus, tables: [{name: rides, format: kafka, value_format: json, "
            f"schema: id bigint, options: {{{options}}}}}]}}]\n",
            "models/rides.sql": "{{ config(sink='lake') }} select id from {{ source('bus', 'rides') }}",
        }
    )
    return folder


def ids(project: ProjectFolder) -> dict[str, str]:
    """Returns the ids of topics in the ledger."""
    found = json.loads((project.root / LEDGER).read_text())["input_ids"]
    return dict(found.get("bus.rides", {}))


@pytest.mark.slow
def test_a_replaced_topic_is_refused(
    rides: ProjectFolder, topic: Topic, second: Topic, read_parquet: ReadParquet
) -> None:
    """Neither a run nor a plan continues on another topic of the same name, which has as many records as the old one,
    until the user decides; a ledger without ids gets them.
    """
    topic.send([{"id": number} for number in range(4)])
    second.send([{"id": 10}])
    assert rides.result().rows_out == 5
    known = ids(rides)
    assert set(known) == {topic.name, second.name}

    ledger = json.loads((rides.root / LEDGER).read_text())
    (rides.root / LEDGER).write_text(json.dumps({**ledger, "input_ids": {}}))
    assert rides.result().status is Status.SUCCESS
    assert ids(rides) == known

    replace_topic(topic)
    topic.send([{"id": number} for number in range(20, 40)])
    planned = rides.invoke("plan", "--check")
    assert planned.code == 1
    assert planned.out.count("[source-replaced]") == 1
    refused = rides.invoke("run", "--available-now")
    assert (refused.code, "[source-replaced]" in refused.err, topic.name in refused.err) == (1, True, True)
    assert second.name not in refused.err.split("why:")[0]
    assert ids(rides) == known

    accepted = rides.run(accept_state_change=("rides",)).results[0]
    assert accepted.finding is None
    assert ids(rides)[topic.name] != known[topic.name]
    replace_topic(second)
    second.send([{"id": 50}])
    assert rides.result(full_refresh=True).rows_out == 21
    assert rides.result().status is Status.SUCCESS


@pytest.mark.slow
def test_a_topic_that_is_replaced_during_a_run_is_refused_at_the_restart(folder: ProjectFolder, topic: Topic) -> None:
    """If a query fails because its topic was deleted, and another one has its name by the restart, it is refused."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest}}"
    failing = "reflect('java.lang.Integer', 'parseInt', cast(value as string))"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: rides, format: kafka, options: {options}}}]}}]\n",
            "models/rides.sql": "{{ config(sink='lake', retries={'attempts': 3, 'first_delay': '10 milliseconds'}) }} "
            f"select {failing} as id from {{{{ source('bus', 'rides') }}}}",
        }
    )
    topic.send([{"id": 1}])

    def replace_at_failure(events: list[RunEvent]) -> bool:
        if isinstance(events[-1], QueryRestarting):
            replace_topic(topic)
        return False

    result = folder.run_until(replace_at_failure).results[0]

    assert result.finding is not None
    assert result.finding.code == "source-replaced"
