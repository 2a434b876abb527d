"""The messages that a unit test gives to a Kafka source, as rows with the columns of Spark's Kafka reader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sqlstream.project.types.types import Array, Field, Primitive, Struct
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.values import SourceTable
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence, plain

_BINARY, _STRING = Primitive("binary"), Primitive("string")
_HEADERS = Array(Struct((Field("key", _STRING), Field("value", _BINARY))))

FIELDS = (
    Field("key", _BINARY),
    Field("value", _BINARY),
    Field("topic", _STRING),
    Field("partition", Primitive("int")),
    Field("offset", Primitive("bigint")),
    Field("timestamp", Primitive("timestamp")),
    Field("timestampType", Primitive("int")),
    Field("headers", _HEADERS),
)
"""The columns of Spark's Kafka reader, and the keys of a message in a unit test."""

FIRST_TIME = "1970-01-01 00:00:00"
"""The timestamp of messages without one, unless the source compares event times with it."""

_PARTS = ("key", "value")
"""The keys whose lists and mappings become JSON."""


def message_rows(batches: Sequence[Rows], table: SourceTable) -> list[Rows]:
    """Returns all messages of an input as rows, batch by batch.

    A message without a topic, partition or timestamp is in the source's first topic and partition 0, and has the time
    `FIRST_TIME`, or that of the test if the source has `max_event_time`. A message without an offset has the next one
    of its partition.
    """
    offsets: Counter[str] = Counter()
    time = FIRST_TIME if table.max_event_time is None else f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z"
    return [replace(rows, rows=tuple(_row(row, table, offsets, time) for row in rows.rows)) for rows in batches]


def _row(message: YamlMapping, table: SourceTable, offsets: Counter[str], time: str) -> YamlMapping:
    given = {entry.key.casefold(): entry for entry in message.entries}
    entries = [entry._replace(value=_value(entry)) for entry in message.entries]
    partition = str(plain(given["partition"].value)) if "partition" in given else "0"
    defaults = {"topic": _topic(table), "partition": "0", "timestamp": time, "timestamptype": "0"}
    defaults["offset"] = str(offsets[partition])
    at = message.location
    entries += [YamlEntry(key, at, YamlScalar(text, text, at)) for key, text in defaults.items() if key not in given]
    offset = next(str(plain(entry.value)) for entry in entries if entry.key.casefold() == "offset")
    offsets[partition] = int(offset) + 1 if offset.isdecimal() else offsets[partition] + 1
    return replace(message, entries=tuple(entries))


def _value(entry: YamlEntry) -> YamlNode:
    node = entry.value
    if entry.key.casefold() in _PARTS and isinstance(node, YamlMapping | YamlSequence):
        text = json.dumps(plain(node), ensure_ascii=False, default=str)
        return YamlScalar(text, text, node.location)
    if entry.key.casefold() == "headers" and isinstance(node, YamlMapping):
        return YamlSequence(tuple(_header(each) for each in node.entries), node.location)
    return node


def _header(entry: YamlEntry) -> YamlMapping:
    at = entry.key_location
    return YamlMapping(
        (YamlEntry("key", at, YamlScalar(entry.key, entry.key, at)), YamlEntry("value", at, entry.value)), at
    )


def _topic(table: SourceTable) -> str:
    named = next((str(value) for name, value in table.options.items() if name.lower() == "subscribe"), table.name)
    return named.split(",")[0].strip()
