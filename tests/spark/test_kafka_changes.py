"""Change events of Debezium from a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import ProjectFolder

ReadParquet = Callable[[Path], list[dict[str, Any]]]

COLUMNS = "id bigint, name string, day date, at timestamp, local timestamp_ntz, zoned timestamp"


def event(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, **more: Any) -> bytes:
    """Returns a change event."""
    return json.dumps({"op": op, "before": before, "after": after, "ts_ms": 1, "source": {}, **more}).encode()


def wrapped(value: bytes) -> bytes:
    """Returns JSON as Kafka Connect writes it with schemas."""
    return json.dumps({"schema": {"type": "struct"}, "payload": json.loads(value)}).encode()


FIRST = {
    "id": 1,
    "name": "a",
    "day": 19723,
    "at": 1704067200123456,
    "local": 1704067200123456,
    "zoned": "2024-01-01T02:00:00+02:00",
}
NEXT = {**FIRST, "name": "b", "day": "2024-01-02", "at": None}


def test_rows_before_and_after_a_change_are_columns(
    folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet
) -> None:
    """Events with and without schemas give typed rows; tombstones and heartbeats are skipped, and other messages are corrupt."""
    good = [
        event("c", None, FIRST),
        wrapped(event("u", FIRST, NEXT)),
        event("d", NEXT, None),
        event("r", None, {"id": 2}),
    ]
    bad = [
        event("t", None, None),
        event("u", FIRST, None),
        event("d", None, None),
        event("c", None, {"id": "x"}),
        event("c", None, {"id": 3, "at": "soon"}),
        b'{"id": 1}',
        b"no json",
    ]
    key = wrapped(b'{"id": 7}')
    skipped = [b'{"ts_ms": 1}', None]
    topic.send_bytes([Message(value, key) for value in (*good, *skipped, *bad)])
    options = f"kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest"
    folder.write(
        {
            "models/_bus.yml": "sources: [{name: bus, tables: [{name: changes, format: kafka, value_format: debezium, "
            f"schema: '{COLUMNS}', value_options: {{timeUnit: micros}}, key_format: json, "
            "key_columns: [{name: id, data_type: int}], on_corrupt: quarantine, quarantine_sink: lake, "
            f"options: {{{options}}}}}]}}]\n",
            "models/changes.sql": "{{ config(sink='lake') }} select op, before.name as old, after.name as new, row.*, "
            "_kafka_key.id as key, _kafka_offset as place from {{ source('bus', 'changes') }}",
        }
    )

    results = {result.model: result.finding for result in folder.run().results}

    assert results == {"changes": None, "bus__changes__corrupt": None}
    rows = sorted(read_parquet(folder.root / "store/changes"), key=lambda row: row["place"])
    found = [tuple(row[name] for name in ("op", "old", "new", "id", "name", "key")) for row in rows]
    assert found == [
        ("c", None, "a", 1, "a", 7),
        ("u", "a", "b", 1, "b", 7),
        ("d", "b", None, 1, "b", 7),
        ("r", None, None, 2, None, 7),
    ]
    moment = datetime.fromisoformat("2024-01-01T00:00:00.123456")
    assert (rows[0]["at"], rows[0]["local"], str(rows[0]["day"])) == (moment, moment, "2024-01-01")
    assert (rows[0]["zoned"], str(rows[1]["day"])) == (datetime.fromisoformat("2024-01-01"), "2024-01-02")
    kept = {row["value"]: row["reason"] for row in read_parquet(folder.root / "store/bus__changes__corrupt")}
    event_reason = "the value is not a change event of Debezium with the rows of its operation"
    json_reason = "the value is not a JSON object"
    assert [kept[value] for value in bad] == [
        "the value says that the table was truncated, which is not a change of a row",
        *2 * [event_reason],
        "the value has a field that cannot be read: `after.id` as bigint",
        "the value has a time that is neither ISO text nor a number of a known unit in the years 1 to 9999: `at`",
        event_reason,
        json_reason,
    ]
