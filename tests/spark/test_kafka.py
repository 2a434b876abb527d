"""Queries that read Kafka, from a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.errors import FindingsError
from sqlstream.project.connectors.lock import LOCK_FILE, read_lock
from tests.services.alert_receiver import alerts_to, receiving
from tests.services.kafka_topics import Topic
from tests.spark.conftest import ProjectFolder

ReadParquet = Callable[[Path], list[dict[str, Any]]]

EVENTS = "{{ config(sink='lake') }}\nselect cast(value as string) as value, offset from {{ source('bus', 'events') }}"


@pytest.fixture
def events(folder: ProjectFolder, topic: Topic) -> ProjectFolder:
    """A project whose one query writes the records of the topic to Parquet files."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest}}"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {options}}}]}}]\n",
            "models/events.sql": EVENTS,
        }
    )
    return folder


def first_offsets(project: ProjectFolder) -> Path:
    """Returns the file with the offsets that the source started with."""
    (path,) = (project.root / "store/queries/events/v1/checkpoint/sources").glob("*/0")
    return path


@pytest.mark.slow
def test_a_process_that_ran_without_kafka_can_run_with_it(
    events: ProjectFolder, topic: Topic, read_parquet: ReadParquet
) -> None:
    """A second run in one process gets a new JVM if the first one lacks the connector's jars. Runs before the others."""
    events.rows("in/orders/1.json", [{"id": 1}])
    events.write(
        {"models/orders.sql": "{{ config(sink='lake') }}\nselect 1 as one from {{ source('shop', 'orders') }}"}
    )
    events.write({"models/events.sql": EVENTS.replace("lake'", "lake', enabled=false")})
    assert events.run("orders").succeeded
    events.write({"models/events.sql": EVENTS})
    topic.send([{"id": 1}])

    assert events.run("events").succeeded

    assert [row["value"] for row in read_parquet(events.root / "store/events")] == ['{"id": 1}']


@pytest.mark.slow
def test_quarantined_rows_have_their_offsets(events: ProjectFolder, topic: Topic) -> None:
    """A row that violates a data test goes to the quarantine with its topic, partition and offset."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest}}"
    sql = "select cast(value as string) as id, partition, offset from {{ source('bus', 'events') }}\n"
    sql += "union all select cast(id as string), _kafka_partition, _kafka_offset from {{ source('bus', 'typed') }}"
    tests = "{expression_is_true: {expression: id not like '%2%', on_violation: quarantine}}"
    events.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {options}}}, "
            f"{{name: typed, format: kafka, value_format: json, schema: id int, options: {options}}}]}}]\n",
            "models/_sinks.yml": "sinks: [{name: bad, format: json, path: bad}]\n",
            "models/events.sql": f"{{{{ config(sink='lake', quarantine_sink='bad') }}}} {sql}",
            "models/events.yml": f"models: [{{name: events, data_tests: [{tests}]}}]\n",
        }
    )
    topic.send([{"id": number} for number in range(4)])
    result = events.result("events")
    assert (result.finding, result.rows_out) == (None, 6)
    files = (events.root / "store/bad").rglob("*.json")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert sorted(row["_source"].pop("name") for row in rows) == ["bus.events", "bus.typed"]
    places = [{"topic": topic.name, "partition": row["partition"], "offset": row["offset"]} for row in rows]
    assert [row["_source"] for row in rows] == places


@pytest.mark.smoke
def test_a_query_resumes_with_each_record_once(events: ProjectFolder, topic: Topic, read_parquet: ReadParquet) -> None:
    """The second and third run read only what is new; a torn file of first offsets no longer matters to Spark."""
    for run, ids in enumerate((range(5), range(5, 8), range(8, 10))):
        topic.send([{"id": number} for number in ids])
        if run == 2:
            first_offsets(events).write_bytes(b"")
        assert events.run("events").succeeded

    values = sorted(row["value"] for row in read_parquet(events.root / "store/events"))
    assert values == [f'{{"id": {number}}}' for number in range(10)]


def test_torn_first_offsets_before_a_commit_are_damage(events: ProjectFolder, topic: Topic) -> None:
    """The run is refused, and after `state repair` it reads everything."""
    topic.send([{"id": 1}])
    assert events.run("events").succeeded
    for name in ("commits/0", "commits/.0.crc"):
        (events.root / "store/queries/events/v1/checkpoint" / name).unlink()
    first_offsets(events).write_bytes(b"\0v1\n{")

    with pytest.raises(FindingsError) as refused:
        events.run("events")

    assert [finding.code for finding in refused.value.findings] == ["torn-checkpoint"]


@pytest.mark.slow
def test_deps_pins_the_jars_that_runs_use(events: ProjectFolder, topic: Topic) -> None:
    """The command writes a lock with Kafka's jars, and a run with the lock succeeds."""
    topic.send([{"id": 1}])
    process = events.command("deps")
    out, _ = process.communicate(timeout=120)

    assert process.returncode == 0
    assert out.startswith("kafka: 4 jars")
    (jars,) = read_lock((events.root / LOCK_FILE).read_text()).jars.values()
    assert any("spark-sql-kafka" in jar.coordinate for jar in jars["kafka"])
    assert events.run("events").succeeded


def test_a_lag_is_raised_and_resolved(folder: ProjectFolder, topic: Topic) -> None:
    """A query that has more records of Kafka left than its limit raises an alert, until it has read them."""
    topic.send([{"id": number} for number in range(6)])
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest, "
    folder.write(
        {
            "sources.yml": "sources:\n  - name: bus\n    tables:\n      - name: records\n        format: kafka\n"
            f"        options: {options} maxOffsetsPerTrigger: 1}}\n",
            "models/records.sql": "{{ config(sink='nowhere') }}\nselect value from {{ source('bus', 'records') }}\n",
        }
    )
    with receiving() as receiver:
        alerts_to(folder.root, receiver.url, "{lag_over: 2}")
        assert folder.run().succeeded
    assert receiver.states() == [("lag_over", "raised"), ("lag_over", "resolved")]
    assert receiver.accepted[0]["value"] > 2
