"""A broker that goes away for a while, and a topic that has lost its oldest records.

SQLSTREAM_OUTAGE_SECONDS sets the length of the outage (`make faults`: twenty).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.kafka_broker import KafkaBroker, start_kafka
from tests.services.kafka_topics import Topic
from tests.spark.conftest import PROJECT, ProjectFolder, wait_for

ReadParquet = Callable[[Path], list[dict[str, Any]]]

OUTAGE_SECONDS = float(os.environ.get("SQLSTREAM_OUTAGE_SECONDS", "3"))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A running broker that only the tests of this file stop."""
    broker = start_kafka(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture
def events(folder: ProjectFolder, topic: Topic) -> ProjectFolder:
    """A project whose query writes the records of the topic to Parquet files every second."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest}}"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {options}}}]}}]\n",
            "models/events.sql": "{{ config(sink='lake', trigger='1 second') }}\n"
            "select cast(value as string) as value from {{ source('bus', 'events') }}",
        }
    )
    return folder


@pytest.mark.slow
def test_a_query_outlives_an_outage_of_the_broker(
    events: ProjectFolder, kafka: KafkaBroker, topic: Topic, read_parquet: ReadParquet
) -> None:
    """While the broker is away the run continues, and afterwards it reads what is new, each record once."""
    topic.send([{"id": number} for number in range(5)])
    process = events.command("run")
    wait_for(process, "5 rows in")

    kafka.process.stop()
    threading.Event().wait(OUTAGE_SECONDS)
    kafka.process.start()
    topic.send([{"id": number} for number in range(5, 9)])

    wait_for(process, "4 rows in")
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    values = sorted(row["value"] for row in read_parquet(events.root / "store/events"))
    assert values == [f'{{"id": {number}}}' for number in range(9)]


@pytest.mark.slow
def test_lost_records_end_the_query(events: ProjectFolder, topic: Topic) -> None:
    """If the topic has lost records that the query has not read, the query fails at once, and names the option that skips
    them; with it the query continues.
    """
    topic.send([{"id": number} for number in range(5)])
    assert events.run("events").succeeded
    topic.send([{"id": number} for number in range(5, 9)])
    topic.delete_records()

    outcome = events.run("events")

    (result,) = outcome.results
    assert result.finding is not None
    assert result.finding.code == "query-failed"
    assert "failOnDataLoss: false" in result.finding.fix
    assert result.restarts == 0
    events.write(
        {
            "models/_bus.yml": (events.root / "models/_bus.yml")
            .read_text()
            .replace("earliest", "earliest, failOnDataLoss: false")
        }
    )
    topic.send([{"id": 9}])
    assert events.run("events").results[0].rows_out == 1


@pytest.mark.slow
def test_a_missing_topic_is_named(events: ProjectFolder, topic: Topic) -> None:
    """A source whose topic does not exist is named, with its topic, at the line that names it."""
    path = events.root / "models/_bus.yml"
    path.write_text(path.read_text().replace(topic.name, "ordres"))
    events.write({"project.yml": f"{PROJECT}models: {{+retries: 0}}\n"})

    finding = events.result().finding

    assert finding is not None
    assert (finding.code, str(finding.location)[:18]) == ("missing-topic", "models/_bus.yml:1:")
    assert "`ordres` of source `bus.events`" in finding.message
