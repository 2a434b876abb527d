"""The options of Kafka sources against a real broker: which messages a source reads, and how it logs in."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.kafka_broker import PASSWORD, KafkaBroker
from tests.services.kafka_topics import Message, Topic, create_topic
from tests.spark.conftest import ProjectFolder

ReadParquet = Callable[[Path], list[dict[str, Any]]]

TIME = 1_700_000_000_000
"""The timestamp of the first message in milliseconds; each later one is a second later."""


def written(name: str, count: int, partition: int = 0) -> list[Message]:
    """Returns messages whose values name them, such as `a3`."""
    return [Message(f"{name}{at}".encode(), partition=partition, timestamp=TIME + 1000 * at) for at in range(count)]


def positions(topic: Topic, first: int, second: int) -> str:
    """Returns offsets or times of both partitions, as an option in YAML."""
    return "'" + json.dumps({topic.name: {"0": first, "1": second}}) + "'"


@pytest.mark.slow
def test_options_choose_topics_and_messages(
    folder: ProjectFolder, topic: Topic, kafka: KafkaBroker, read_parquet: ReadParquet
) -> None:
    """Topics by name, pattern and partition; starts and ends by offset and time, in streams and static tables."""
    other = create_topic(kafka.servers, f"{topic.name}-other")
    topic.send_bytes([*written("a", 4), *written("b", 4, partition=1)])
    other.send_bytes(written("c", 2))
    name, late = topic.name, TIME + 2000
    tables = {
        "subscribed": (f"subscribe: '{name},{other.name}'", "", "a0 a1 a2 a3 b0 b1 b2 b3 c0 c1"),
        "matched": (f"subscribePattern: '{name}-o.*'", "", "c0 c1"),
        "assigned": (f"assign: '{json.dumps({name: [1]})}'", "", "b0 b1 b2 b3"),
        "from_offsets": (f"subscribe: {name}, startingOffsets: {positions(topic, 3, -2)}", "", "a3 b0 b1 b2 b3"),
        "from_time": (f"subscribe: {name}, startingTimestamp: {late}", "", "a2 a3 b2 b3"),
        "from_times": (
            f"subscribe: {name}, startingOffsetsByTimestamp: {positions(topic, late, TIME + 3000)}",
            "",
            "a2 a3 b3",
        ),
        "tuned": (
            f"subscribe: {name}, maxOffsetsPerTrigger: 3, minPartitions: 4, failOnDataLoss: false",
            "",
            "a0 a1 a2 a3 b0 b1 b2 b3",
        ),
        "batch": (f"subscribe: {name}", "mode: batch, ", "a0 a1 a2 a3 b0 b1 b2 b3"),
        "batch_to": (f"subscribe: {name}, endingOffsets: {positions(topic, 1, -1)}", "mode: batch, ", "a0 b0 b1 b2 b3"),
        "batch_to_time": (
            f"subscribe: {name}, startingTimestamp: {TIME + 1000}, endingTimestamp: {TIME + 3000}",
            "mode: batch, ",
            "a1 a2 b1 b2",
        ),
    }
    earliest = "startingOffsets: earliest, "
    declared = [
        f"{{name: {table}, {mode}value_format: text, options: "
        f"{{{'' if 'starting' in options else earliest}{options}}}}}"
        for table, (options, mode, _) in tables.items()
    ]
    models = {
        f"models/{table}.sql": "{{ config(sink='lake') }} select value from {{ source('bus', '" + table + "') }}"
        for table in tables
    }
    servers = f"kafka.bootstrap.servers: '{topic.servers}'"
    text = f"sources: [{{name: bus, format: kafka, options: {{{servers}}}, tables: [{', '.join(declared)}]}}]\n"
    folder.write({"models/_bus.yml": text, **models})

    results = {result.model: result for result in folder.run().results}

    assert {name: result.finding for name, result in results.items() if result.finding} == {}
    store = folder.root / "store"
    found = {table: sorted(row["value"] for row in _rows(store / table, read_parquet)) for table in tables}
    assert found == {table: wanted.split() for table, (_, _, wanted) in tables.items()}
    assert results["tuned"].batches > 1


def _rows(folder: Path, read_parquet: ReadParquet) -> list[dict[str, Any]]:
    """Returns the rows of a stream's output, or of a batch model's."""
    import pyarrow.parquet as pq

    if (folder / "_spark_metadata").exists():
        return read_parquet(folder)
    return [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]


def test_a_login_over_tls_uses_secrets(folder: ProjectFolder, topic: Topic, kafka: KafkaBroker) -> None:
    """TLS and SASL options come from secrets, which no file of the project or its storage contains afterwards."""
    topic.send_bytes(written("a", 2))
    options = {
        "kafka.bootstrap.servers": kafka.secure_servers,
        "subscribe": topic.name,
        "startingOffsets": "earliest",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required username=app "
        "password={{ env_var('SQLSTREAM_SECRET_KAFKA') }};",
        "kafka.ssl.truststore.location": str(kafka.trust_store),
        "kafka.ssl.truststore.password": "{{ env_var('SQLSTREAM_SECRET_KAFKA') }}",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }
    folder.write(
        {
            "models/_bus.yml": json.dumps(
                {
                    "sources": [
                        {
                            "name": "bus",
                            "tables": [{"name": "safe", "format": "kafka", "value_format": "text", "options": options}],
                        }
                    ]
                }
            ),
            "models/safe.sql": "{{ config(sink='lake') }} select value from {{ source('bus', 'safe') }}",
        }
    )

    result = folder.result("safe", env={"SQLSTREAM_SECRET_KAFKA": PASSWORD})

    assert (result.finding, result.rows_out) == (None, 2)
    files = [path for path in folder.root.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


@pytest.mark.slow
@pytest.mark.parametrize("trigger", ["{real_time: 5 seconds}", "{continuous: 1 second}"])
def test_messages_flow_from_kafka_to_kafka(trigger: str, folder: ProjectFolder, topic: Topic) -> None:
    """Real-time and continuous queries read typed values and write messages, before a stop ends them."""
    output = create_topic(topic.servers, f"{topic.name}-out")
    servers = f"kafka.bootstrap.servers: '{topic.servers}'"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: orders, format: kafka, value_format: json, "
            f"schema: id int, on_corrupt: drop, options: {{{servers}, subscribe: {topic.name}, "
            f"startingOffsets: earliest}}}}]}}]\nsinks: [{{name: out, format: kafka, options: {{{servers}, topic: "
            f"{output.name}}}}}]\nmodels: [{{name: doubled, config: {{sink: out, trigger: {trigger}}}}}]\n",
            "models/doubled.sql": "{{ config(output_mode='update') }} select cast(2 * id as string) as value "
            "from {{ source('bus', 'orders') }}",
        }
    )
    if "continuous" in trigger:
        folder.write(
            {"models/doubled.sql": (folder.root / "models/doubled.sql").read_text().replace("update", "append")}
        )
    topic.send_bytes([Message(b'{"id": 1}'), Message(b"no json"), Message(b'{"id": 4}')])
    process = folder.command("run")
    try:
        records = output.next_records(2)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=120)

    assert sorted(str(record.value) for record in records) == ["b'2'", "b'8'"], out
    if "real_time" in trigger:
        lines = (folder.root / "logs/events.jsonl").read_text().splitlines()
        batches = [event for event in map(json.loads, lines) if event["event"] == "batch"]
        assert [(each["rows_in"], each["rows_out"], each["dropped_records"]) for each in batches] == [(3, 2, 1)]
