"""Typed columns from the messages of a real broker, and what happens to messages without the declared format."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sqlstream.state.runs.events import TableShown
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import ProjectFolder

ReadParquet = Callable[[Path], list[dict[str, Any]]]

COLUMNS = "id bigint, name string, at timestamp"
QUARANTINE = "on_corrupt: quarantine, quarantine_sink: lake"

GOOD = [b'{"id": 1, "name": "a", "at": "2024-01-01T00:00:00Z"}', b'{"id": 2}', b"{}"]
BAD = {
    b"no json": "the value is not a JSON object",
    b'{"id": "one"}': "the value has a field that cannot be read: `id` as bigint",
    b'{"id": 3': "the value is not a JSON object",
    b"null": "the value is not a JSON object",
    b"[]": "the value is not a JSON object",
    b"": "the value is not a JSON object",
    b'{"id": 4, "at": 1704067200}': "`at` is 1704067200, a number of an unknown unit: set timestamp_unit of bus.events",
    b'{"id": 5, "at": "soon"}': "`at` is 'soon', which is not a timestamp in the years 1 to 9999",
    None: "the value is null",
}


def declare(folder: ProjectFolder, topic: Topic, rest: str, options: str = "") -> None:
    """Declares the topic as the source `bus.events`."""
    servers = f"kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: events, format: kafka, {rest}, "
            f"options: {{{servers}{options}}}}}]}}]\n"
        }
    )


def model(sql: str, config: str = "sink='lake'") -> str:
    """Returns the text of a model over the source."""
    return f"{{{{ config({config}) }}}}\n{sql} from {{{{ source('bus', 'events') }}}}\n"


def test_event_times_are_compared_with_the_timestamps_of_their_messages(
    folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet
) -> None:
    """With `max_event_time` a message is good or quarantined by its own timestamp, also beside a column `timestamp`."""
    limit = datetime.fromisoformat("2023-11-14T23:13:20Z")
    times = [limit - timedelta(seconds=1), limit, limit + timedelta(microseconds=1), limit + timedelta(days=1)]
    values = [f'{{"id": {number}, "timestamp": "{time.isoformat()}"}}'.encode() for number, time in enumerate(times)]
    topic.send_bytes([Message(value, timestamp=1_700_000_000_000) for value in values])
    keys = f"value_format: json, schema: 'id bigint, timestamp timestamp', max_event_time: 1 hour, {QUARANTINE}"
    declare(folder, topic, keys)
    folder.write({"models/whole.sql": model("select id, timestamp")})

    assert [result.finding for result in folder.run().results] == [None, None]

    assert sorted(row["id"] for row in read_parquet(folder.root / "store/whole")) == [0, 1]
    kept = read_parquet(folder.root / "store/bus__events__corrupt")
    assert {row["value"] for row in kept} == set(values[2:])
    assert all("more than 1 hour after the message was written (2023-11-14 22:13:20)" in row["reason"] for row in kept)


@pytest.mark.smoke
def test_good_and_quarantined_messages_are_complete(
    folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet
) -> None:
    """Every message is a row or is quarantined with its bytes and position, whichever columns a model reads."""
    topic.send_bytes([Message(value, b"k", timestamp=1_700_000_000_000) for value in (*GOOD, *BAD)])
    declare(folder, topic, f"value_format: json, schema: '{COLUMNS}', {QUARANTINE}")
    folder.write(
        {
            "models/whole.sql": model("select *"),
            "models/offsets.sql": model("select _kafka_offset"),
            "models/counted.sql": model("select count(*) as n", "sink='table', output_mode='complete'"),
        }
    )

    results = {result.model: result for result in folder.run().results}

    store = folder.root / "store"
    assert {name: result.finding for name, result in results.items() if result.finding} == {}
    rows = sorted(read_parquet(store / "whole"), key=lambda row: row["_kafka_offset"])
    assert [row["id"] for row in rows] == [1, 2, None]
    assert rows[0] == {
        "id": 1,
        "name": "a",
        "at": datetime.fromisoformat("2024-01-01"),
        "_kafka_key": b"k",
        "_kafka_topic": topic.name,
        "_kafka_partition": 0,
        "_kafka_offset": 0,
        "_kafka_timestamp": datetime.fromisoformat("2023-11-14T22:13:20"),
        "_kafka_timestamp_type": 0,
    }
    assert sorted(row["_kafka_offset"] for row in read_parquet(store / "offsets")) == [0, 1, 2]
    assert [event.rows for event in folder.events if isinstance(event, TableShown)] == [((3,),)]
    kept = read_parquet(store / "bus__events__corrupt")
    assert {(row["offset"], row["value"], row["reason"]) for row in kept} == {
        (number, value, reason) for number, (value, reason) in enumerate(BAD.items(), start=len(GOOD))
    }
    assert {(row["topic"], row["partition"], row["key"]) for row in kept} == {(topic.name, 0, b"k")}
    assert results["bus__events__corrupt"].rows_out == len(BAD)


@pytest.mark.parametrize("value", [None, b'{"id": "one"}'], ids=["null", "unread"])
def test_a_corrupt_message_fails_the_query(folder: ProjectFolder, topic: Topic, value: bytes | None) -> None:
    """By default each query ends with the position of the message and without a retry, also one that only counts, or
    leaves the message out.
    """
    topic.send_bytes([Message(GOOD[0]), Message(value)])
    declare(folder, topic, f"value_format: json, schema: '{COLUMNS}'")
    folder.write(
        {
            "models/counted.sql": model("select count(*) as n", "sink='table', output_mode='complete', retries=3"),
            "models/some.sql": model("select id") + "where id = 1",
        }
    )

    findings = {result.model: result.finding for result in folder.run().results}

    assert set(findings) == {"counted", "some"}
    for name, finding in findings.items():
        assert finding is not None
        assert (finding.code, str(finding.location)) == ("corrupt-record", f"models/{name}.sql:1:1")
        assert f"in topic {topic.name}, partition 0, at offset 1, {BAD[value]}" in finding.why


@pytest.mark.slow
def test_dropped_messages_are_counted(folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet) -> None:
    """`drop` skips corrupt messages and counts them, in streams and in static tables."""
    topic.send_bytes([Message(value) for value in (*GOOD, *BAD)])
    folder.write({"models/ids.sql": model("select id")})
    for mode in ("stream", "batch"):
        declare(folder, topic, f"value_format: json, mode: {mode}, schema: '{COLUMNS}', on_corrupt: drop")
        result = folder.result(full_refresh=mode == "batch")
        assert (result.finding, result.rows_out, result.dropped_records) == (None, len(GOOD), len(BAD))


def test_keys_text_headers_and_options(folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet) -> None:
    """A key has its own format, also a corrupt one; null keys are good, and headers come with `includeHeaders`."""
    keys = [b'{"id": 7}', None, b"no json"]
    topic.send_bytes([Message("é".encode(), key, headers=(("trace", b"\x01"),)) for key in keys])
    topic.send_bytes([Message(b"\xff", None)])
    rest = f"value_format: text, key_format: json, key_columns: [{{name: id, data_type: int}}], {QUARANTINE}"
    declare(folder, topic, rest, ", includeHeaders: true")
    folder.write({"models/lines.sql": model("select value, _kafka_key, _kafka_key.id as id, _kafka_headers")})

    assert folder.run().succeeded

    header = [{"key": "trace", "value": b"\x01"}]
    rows = sorted(read_parquet(folder.root / "store/lines"), key=lambda row: str(row["id"]))
    assert rows == [
        {"value": "é", "_kafka_key": {"id": 7}, "id": 7, "_kafka_headers": header},
        {"value": "é", "_kafka_key": None, "id": None, "_kafka_headers": header},
    ]
    kept = {row["offset"]: row["reason"] for row in read_parquet(folder.root / "store/bus__events__corrupt")}
    assert kept == {2: "the key is not a JSON object", 3: "the value is not UTF-8"}


def test_value_options_apply_to_the_values(folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet) -> None:
    """`value_options` are those of Spark's JSON parser, such as the pattern of times."""
    topic.send_bytes([Message(b'{"at": "31.12.2024 23:59"}')])
    declare(
        folder, topic, "value_format: json, schema: 'at timestamp', value_options: {timestampFormat: dd.MM.yyyy HH:mm}"
    )
    folder.write({"models/times.sql": model("select at")})

    assert folder.run().succeeded

    assert read_parquet(folder.root / "store/times") == [{"at": datetime.fromisoformat("2024-12-31T23:59")}]
