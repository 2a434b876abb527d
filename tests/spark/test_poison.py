"""Bad messages among many good ones: each bad one is quarantined with its offset, and all others are rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlstream.project.messages.avro import PinnedSchema, pinned_path, pinned_text
from tests.services.avro_bytes import avro_long, avro_string, framed
from tests.services.kafka_topics import Message, Topic, create_topic
from tests.spark.conftest import ProjectFolder

ReadParquet = Callable[[Path], list[dict[str, Any]]]

EACH = 5_000
"""The messages of each of the two topics."""

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}
ID = 7
"""The id of the schema in the registry."""

JSON_POISON = [*5 * [b'{"id": '], *5 * [b'{"id": "one"}'], *3 * [None]]
AVRO_POISON = [*5 * [framed(ID, avro_long(1) + avro_long(3))], *5 * [framed(99, avro_long(1))], *2 * [None]]
"""Not JSON, of a wrong type, cut off, with an unknown schema, null: 25 messages of five kinds."""


def test_bad_messages_are_quarantined_with_their_offsets(
    folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet
) -> None:
    """Of 10,000 messages of JSON and Avro, the 25 bad ones are in the quarantines, and 9,975 in the sink."""
    topics = {"json": topic, "avro": create_topic(topic.servers, f"{topic.name}-avro")}
    poison = {"json": JSON_POISON, "avro": AVRO_POISON}
    bodies = {
        "json": lambda number: json.dumps({"id": number, "name": "x"}).encode(),
        "avro": lambda number: framed(ID, avro_long(number) + avro_string("x")),
    }
    places: dict[str, dict[int, bytes | None]] = {}
    for form, to in topics.items():
        step = EACH // len(poison[form])
        places[form] = {step * at + at: value for at, value in enumerate(poison[form])}
        to.send_bytes([Message(places[form].get(at, bodies[form](at))) for at in range(EACH)])
    tables = [
        f"{{name: {form}, value_format: {form}, {rest}, on_corrupt: quarantine, quarantine_sink: lake, "
        f"options: {{subscribe: {topics[form].name}}}}}"
        for form, rest in (
            ("json", "schema: 'id bigint, name string'"),
            ("avro", "schema_registry: {url: 'http://localhost:1', subject: orders}"),
        )
    ]
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', startingOffsets: earliest, maxOffsetsPerTrigger: 2000}}"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, format: kafka, options: {options}, "
            f"tables: [{', '.join(tables)}]}}]\n",
            "models/orders.sql": "{{ config(sink='lake') }} select id, _kafka_topic as topic from "
            "{{ source('bus', 'json') }} union all select id, _kafka_topic from {{ source('bus', 'avro') }}",
            pinned_path("orders"): pinned_text("orders", [PinnedSchema(1, ID, json.dumps(SCHEMA))]),
        }
    )

    results = {result.model: result.finding for result in folder.run().results}

    assert results == {"orders": None, "bus__json__corrupt": None, "bus__avro__corrupt": None}
    good = {(row["topic"], row["id"]) for row in read_parquet(folder.root / "store/orders")}
    assert good == {(topics[form].name, at) for form in topics for at in range(EACH) if at not in places[form]}
    assert len(good) == 9_975
    for form in topics:
        kept = read_parquet(folder.root / f"store/bus__{form}__corrupt")
        assert len(kept) == len(poison[form])
        assert {row["offset"]: row["value"] for row in kept} == places[form]
