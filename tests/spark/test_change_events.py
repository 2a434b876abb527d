"""Messages of Debezium's connectors, as Kafka Connect writes them with and without schemas, become rows in Spark."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema, fields_of
from sqlstream.project.messages.message_format import BYTES, MessageFormat, change_columns
from sqlstream.project.types.data_types import Struct
from sqlstream.project.unit_tests.fixtures import FIELDS
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.corrupt import Counters
from sqlstream.spark.reading.message_formats.parsers import struct_of
from sqlstream.spark.reading.messages import read_messages

CONNECT, TIME, DATA = "org.apache.kafka.connect.data", "io.debezium.time", "io.debezium.data"
Field = Mapping[str, Any]
AT = datetime(2024, 1, 31, 17, 51, 4, 777777)
MICROS = 1_706_723_464_777_777
"""The time AT in microseconds since 1970."""


def field(name: str, kind: str, meaning: str | None = None, **more: Any) -> Field:
    """Returns the schema of a field, as Kafka Connect writes it."""
    named = {} if meaning is None else {"name": meaning, "version": 1}
    return {"type": kind, "optional": True, **named, "field": name, **more}


def decimal_field(name: str, scale: int, **more: Any) -> Field:
    """Returns the schema of a decimal in bytes."""
    return field(name, "bytes", f"{CONNECT}.Decimal", parameters={"scale": str(scale)}, **more)


def decimal_bytes(unscaled: int) -> str:
    """Returns a decimal as Kafka Connect writes it: bytes of the unscaled value, with the highest one first."""
    size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


def event(
    op: str, before: Any, after: Any, fields: Sequence[Field] | None = None, connector: str = "postgresql", **more: Any
) -> dict[str, Any]:
    """Returns an event of a table; with the schemas of its columns, in an envelope with a schema."""
    source = {"version": "3.3.1.Final", "connector": connector, "name": "shop", "ts_ms": 1, "snapshot": "false"}
    payload = {"before": before, "after": after, "source": source, "transaction": None, "op": op, "ts_ms": 2, **more}
    if fields is None:
        return payload
    rows = [{"type": "struct", "fields": fields, "optional": True, "field": name} for name in ("before", "after")]
    others = [{"type": "struct", "fields": [field("connector", "string")], "field": "source"}, field("op", "string")]
    schema = {"type": "struct", "fields": [*rows, *others], "optional": False, "name": "shop.Envelope", "version": 2}
    return {"schema": schema, "payload": payload}


def read(
    spark: SparkSession, columns: str, values: Sequence[Any], keys: str = "", **options: str
) -> tuple[list[Row], dict[int, str]]:
    """Returns the rows of messages, and the reasons of those that are corrupt by their place in `values`. With `keys`,
    each value is a pair of a key with these columns and a value.
    """
    place = Location("sources.yml")
    fields = {ddl: fields_of(Schema(place, ddl=ddl)) if ddl else () for ddl in (columns, keys)}
    key = {"key_format": "json", "key": Struct(fields[keys])} if keys else {"key": BYTES}
    messages = MessageFormat("debezium", change_columns(fields[columns], options), options=options, **key)
    table = SourceTable(source="shop", name="t", format="kafka", location=place, messages=messages, on_corrupt="drop")
    pairs = values if keys else [(None, value) for value in values]
    frame = spark.createDataFrame(
        [
            (_bytes(key), _bytes(value), "t", 0, offset, datetime(2024, 1, 1), 0, None)
            for offset, (key, value) in enumerate(pairs)
        ],
        struct_of(FIELDS),
    )
    rows = read_messages(frame, table, messages, options, Counters()).collect()
    corrupt = table.model_copy(update={"corrupt_of": table})
    reasons = read_messages(frame, corrupt, messages, options, Counters()).collect()
    return rows, {row["offset"]: row["reason"].removeprefix("the value ") for row in reasons}


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return json.dumps(value, separators=(",", ":")).encode()


def one(spark: SparkSession, columns: str, value: Any, **options: str) -> tuple[Any, ...]:
    """Returns the columns `row` of the only row of one message."""
    rows, reasons = read(spark, columns, [value], **options)
    assert reasons == {}
    return tuple(rows[0]["row"])


POSTGRESQL = [
    field("id", "int32"),
    decimal_field("price", 2),
    field("free", "struct", f"{DATA}.VariableScaleDecimal"),
    field("day", "int32", f"{TIME}.Date"),
    field("local", "int64", f"{TIME}.MicroTimestamp"),
    field("zoned", "string", f"{TIME}.ZonedTimestamp"),
    field("clock", "int64", f"{TIME}.MicroTime"),
    field("spell", "int64", f"{TIME}.MicroDuration"),
    field("doc", "string", f"{DATA}.Json"),
    field("uid", "string", f"{DATA}.Uuid"),
    field("bits", "bytes", f"{DATA}.Bits", parameters={"length": "10"}),
    field("days", "array", items={"type": "int32", "optional": True, "name": f"{TIME}.Date", "version": 1}),
    field(
        "prices",
        "array",
        items={"type": "bytes", "optional": True, "name": f"{CONNECT}.Decimal", "parameters": {"scale": "1"}},
    ),
    field("tags", "map", keys={"type": "string"}, values={"type": "string"}),
]
POSTGRESQL_DDL = (
    "id int, price decimal(12,2), free decimal(20,6), day date, local timestamp_ntz, zoned timestamp, clock bigint, "
    "spell bigint, doc string, uid string, bits binary, days array<date>, prices array<decimal(9,1)>, "
    "tags map<string, string>"
)


@pytest.mark.slow
def test_types_of_postgresql(spark: SparkSession) -> None:
    """The schema of an event says which numbers are times of which unit, and which bytes are decimals."""
    row = {
        "id": 1,
        "price": decimal_bytes(-12345),
        "free": {"scale": 4, "value": decimal_bytes(31415926)},
        "day": 19753,
        "local": MICROS,
        "zoned": "2024-01-31T18:51:04.777777+01:00",
        "clock": 64264777777,
        "spell": 90061000000,
        "doc": '{"a": 1}',
        "uid": "0e0c2c3a-0000-4000-8000-000000000001",
        "bits": "AQI=",
        "days": [19753, None],
        "prices": [decimal_bytes(15), None, decimal_bytes(-1)],
        "tags": {"color": "red"},
    }
    found = one(spark, POSTGRESQL_DDL, event("c", None, row, POSTGRESQL), timeUnit="millis")

    day = date(2024, 1, 31)
    utc = AT.replace(tzinfo=UTC).astimezone().replace(tzinfo=None)
    prices = [Decimal("1.5"), None, Decimal("-0.1")]
    times = (day, AT, utc, 64264777777, 90061000000)
    rest = (row["doc"], row["uid"], b"\x01\x02", [day, None], prices, row["tags"])
    assert found == (1, Decimal("-123.45"), Decimal("3141.592600"), *times, *rest)


@pytest.mark.slow
def test_types_of_mysql(spark: SparkSession) -> None:
    """DATETIME has milliseconds or microseconds by its precision, TIMESTAMP is text, and unsigned numbers are bytes."""
    fields = [
        field("id", "int64"),
        field("made", "int64", f"{TIME}.Timestamp"),
        field("seen", "int64", f"{TIME}.MicroTimestamp"),
        field("zoned", "string", f"{TIME}.ZonedTimestamp"),
        decimal_field("big", 0),
        field("year", "int32", f"{TIME}.Year"),
        field("size", "string", f"{DATA}.Enum", parameters={"allowed": "s,m,l"}),
        field("colors", "string", f"{DATA}.EnumSet", parameters={"allowed": "red,blue"}),
        field("flag", "boolean"),
    ]
    row = {
        "id": 1,
        "made": MICROS // 1000,
        "seen": MICROS,
        "zoned": "2024-01-31T17:51:04Z",
        "big": decimal_bytes(2**64 - 1),
        "year": 2024,
        "size": "m",
        "colors": "red,blue",
        "flag": True,
    }
    ddl = "id bigint, made timestamp_ntz, seen timestamp_ntz, zoned timestamp_ntz, big decimal(20,0), year int, "
    found = one(spark, f"{ddl} size string, colors string, flag boolean", event("r", None, row, fields, "mysql"))

    times = (AT.replace(microsecond=777000), AT, AT.replace(microsecond=0))
    assert found == (1, *times, Decimal(2**64 - 1), 2024, "m", "red,blue", True)


@pytest.mark.slow
def test_types_of_sql_server(spark: SparkSession) -> None:
    """One table can have times in milliseconds, microseconds and nanoseconds, and money in bytes."""
    fields = [
        field("made", "int64", f"{TIME}.Timestamp"),
        field("fine", "int64", f"{TIME}.MicroTimestamp"),
        field("finest", "int64", f"{TIME}.NanoTimestamp"),
        field("zoned", "string", f"{TIME}.ZonedTimestamp"),
        decimal_field("price", 4),
        field("day", "int64", f"{TIME}.Timestamp"),
    ]
    row = {
        "made": MICROS // 1000,
        "fine": MICROS,
        "finest": MICROS * 1000 + 100,
        "zoned": "2024-01-31T17:51:04.7777771Z",
        "price": decimal_bytes(10**15 + 1),
        "day": -1,
    }
    ddl = "made timestamp_ntz, fine timestamp_ntz, finest timestamp_ntz, zoned timestamp_ntz, price decimal(19,4), "
    found = one(spark, f"{ddl} day date", event("u", row, row, fields, "sqlserver"))

    assert found == (AT.replace(microsecond=777000), AT, AT, AT, Decimal("100000000000.0001"), date(1969, 12, 31))


@pytest.mark.slow
def test_types_of_other_modes(spark: SparkSession) -> None:
    """With `time.precision.mode` connect or isostring, and with decimals as text or numbers, the values are the same."""
    connect = [
        field("day", "int32", f"{CONNECT}.Date"),
        field("at", "int64", f"{CONNECT}.Timestamp"),
        field("price", "double"),
    ]
    iso = [
        field("day", "string", f"{TIME}.IsoDate"),
        field("at", "string", f"{TIME}.IsoTimestamp"),
        field("price", "string"),
    ]
    exact = [*connect[:2], decimal_field("price", 0)]
    ddl = "day date, at timestamp_ntz, price decimal(20,2)"
    times, at = {"day": 19753, "at": MICROS // 1000}, AT.replace(microsecond=777000)
    cases = [
        event("c", None, {**times, "price": 1234.5}, connect),
        event("c", None, {"day": "2024-01-31Z", "at": "2024-01-31T17:51:04.777Z", "price": "1234.5"}, iso),
        event("c", None, {"day": "2024-01-31Z", "at": "2024-01-31T17:51:04.777Z", "price": "1234"}, iso),
        # the JSON converter's decimal.format is NUMERIC
        json.dumps(event("c", None, {**times, "price": 0}, exact)).replace('"price": 0', '"price": 1234').encode(),
        event("c", None, {**times, "price": "1234"}, exact),
    ]
    rows, reasons = read(spark, ddl, cases)

    assert reasons == {}
    prices = [Decimal("1234.5"), Decimal("1234.5"), Decimal(1234), Decimal(1234), Decimal(-2658824)]
    assert [tuple(row["row"]) for row in rows] == [(date(2024, 1, 31), at, price) for price in prices]


@pytest.mark.slow
def test_decimals_without_a_schema(spark: SparkSession) -> None:
    """Without a schema `decimalMode` says what a text is; without it, text that may also be bytes is corrupt."""
    ddl, values = "price decimal(38,2)", ["12.50", "1234", "AfQ=", "1e10", "no", "MTIz!"]
    largest = 10**38 - 1
    bare = [event("c", None, {"price": value}) for value in (*values, 12.5, 1234, {"scale": 1, "value": "AfQ="})]
    binary = [
        event("c", None, {"price": decimal_bytes(number)}) for number in (0, -1, 127, 128, -129, largest, -largest)
    ]

    rows, reasons = read(spark, ddl, bare)
    assert [row["row"]["price"] for row in rows] == [Decimal(text) for text in ("12.50", "12.50", "1234", "50")]
    assert reasons == {
        **dict.fromkeys((1, 2, 3, 4, 5), "has a decimal whose decimalMode is not in value_options: `price`")
    }

    rows, reasons = read(spark, ddl, bare, decimalMode="string")
    assert [str(row["row"]["price"]) for row in rows] == [
        "12.50",
        "1234.00",
        "10000000000.00",
        "12.50",
        "1234.00",
        "50.00",
    ]
    wrong = "has a decimal that cannot be read as decimal(38,2): `price`"
    assert reasons == dict.fromkeys((2, 4, 5), wrong)

    rows, reasons = read(
        spark, ddl, [*binary, event("c", None, {"price": decimal_bytes(2**130)}), bare[0]], decimalMode="precise"
    )
    numbers = [Decimal(text) for text in ("0.00", "-0.01", "1.27", "1.28", "-1.29")]
    assert [row["row"]["price"] for row in rows] == [
        *numbers,
        Decimal(f"{largest}e-2"),
        Decimal(f"-{largest}e-2"),
    ]
    assert reasons == dict.fromkeys((7, 8), wrong)


@pytest.mark.slow
def test_values_that_cannot_be_read_are_corrupt(spark: SparkSession) -> None:
    """A number that is no time, a time outside of the calendar, and a decimal with too many digits are never a value."""
    ddl = "id int, day date, at timestamp, price decimal(6,2), days array<date>"

    def changed(name: str, value: Any, schema: Field) -> dict[str, Any]:
        return event("c", None, {"id": 1, name: value}, [field("id", "int32"), schema])

    days = field("days", "array", items={"type": "string", "optional": True})
    cases = [
        changed("at", 64264777777, field("at", "int64", f"{TIME}.MicroTime")),
        changed("at", 2024, field("at", "int32", f"{TIME}.Year")),
        changed("at", 9223371331200000000, field("at", "int64", f"{TIME}.MicroTimestamp")),  # infinity of PostgreSQL
        changed("at", 9223372036825200000, field("at", "int64", f"{TIME}.Timestamp")),
        changed("at", 1706723464777, field("at", "int64")),
        changed("day", 1706723464777, field("day", "int64")),
        changed("day", 2**31, field("day", "int32", f"{TIME}.Date")),
        changed("price", decimal_bytes(1000000), decimal_field("price", 2)),
        changed("price", "AfQ=", field("price", "bytes")),
        changed("price", "1234", field("price", "bytes")),
        changed("price", {"scale": 2}, field("price", "struct", f"{DATA}.VariableScaleDecimal")),
        changed("days", ["2024-01-31", "soon"], days),
    ]
    rows, reasons = read(spark, ddl, cases)

    assert rows == []
    time = "has a time that is neither ISO text nor a number of a known unit in the years 1 to 9999"
    price = "has a decimal that cannot be read as decimal(6,2): `price`"
    assert list(reasons.values()) == [
        *[f"{time}: `at`"] * 5,
        *[f"{time}: `day`"] * 2,
        *[price] * 4,
        f"{time}: `days`",
    ]


@pytest.mark.slow
def test_values_that_are_not_known_are_corrupt(spark: SparkSession) -> None:
    """What Debezium writes for a large value that a change of PostgreSQL leaves as it is, for each type, is never a
    value of a row. The reason names the column and REPLICA IDENTITY FULL.
    """
    text = "__debezium_unavailable_value"
    data = base64.b64encode(text.encode()).decode()
    numbers = list(text.encode())
    place = "0101000020E6100000000000FC83D797C1000000FC83D797C1"
    unknown = {
        "body": text,
        "raw": data,
        "base64": data,
        "hex": text.encode().hex(),
        "doc": text,
        "tags": [text],
        "raws": [data],
        "ints": numbers,
        "bigints": numbers,
        "days": numbers,
        "uids": [str(uuid.UUID(bytes=hashlib.md5(text.encode()).digest(), version=3))],
        "pairs": {text: text},
        "hstore": json.dumps({text: text}, separators=(",", ":")),
        "shape": {"srid": 4326, "wkb": base64.b64encode(bytes.fromhex(place)).decode()},
        "spot": {"x": -99999999, "y": -99999999, "wkb": None},
    }
    ddl = (
        "body string, raw binary, base64 string, hex string, doc variant, tags array<string>, raws array<binary>, "
        "ints array<int>, bigints array<bigint>, days array<date>, uids array<string>, pairs map<string, string>, "
        "hstore string, shape struct<srid: int, wkb: binary>, spot struct<x: double, y: double, wkb: binary>"
    )
    known = {
        "body": f"{text}.",
        "raw": "AQI=",
        "doc": {"a": text},
        "tags": ["a"],
        "ints": numbers[1:],
        "days": [1, None],
        "pairs": {text: "a"},
        "shape": {"srid": 4326, "wkb": "AQI="},
        "spot": {"x": -99999999, "y": 1},
    }
    cases = [event("u", None, {name: value}) for name, value in unknown.items()]
    rows, reasons = read(spark, ddl, [*cases, event("u", unknown, known), event("d", unknown, None)])

    why = f"only `{text}`, because the change left it as it was; PostgreSQL sends it with REPLICA IDENTITY FULL"
    assert reasons == {place: f"has no value for `{name}`, {why}" for place, name in enumerate(unknown)}
    assert [row["op"] for row in rows] == ["u", "d"]


HEARTBEAT = {"ts_ms": 1, "ts_us": 1, "ts_ns": 1}
TRANSACTION = {"status": "END", "id": "571:1", "event_count": 2, "data_collections": [], "ts_ms": 1}
SCHEMA_CHANGE = {
    "source": {"connector": "mysql"},
    "ts_ms": 1,
    "databaseName": "shop",
    "schemaName": None,
    "ddl": "ALTER TABLE t ADD c INT",
    "tableChanges": [{"type": "ALTER", "id": '"shop"."t"', "table": {}}],
}
LOG_MESSAGE = {"op": "m", "ts_ms": 1, "source": {}, "message": {"prefix": "p", "content": "AQI="}}


def test_messages_without_a_row_are_skipped(spark: SparkSession) -> None:
    """Tombstones, heartbeats, transactions, changes of tables and messages in the log are neither rows nor corrupt."""
    skipped = [HEARTBEAT, TRANSACTION, SCHEMA_CHANGE, LOG_MESSAGE]
    wrapped = [{"schema": {"type": "struct", "fields": []}, "payload": value} for value in skipped]
    snapshot = event("r", None, {"id": 1})
    truncated = event("t", None, None)
    del truncated["before"], truncated["after"]
    other = [{"id": 1, "ts_ms": 1}, {"status": "a", "id": 1, "event_count": 1}, {"op": "m", "id": 1}, {}]
    rows, reasons = read(spark, "id bigint", [*skipped, *wrapped, None, snapshot, truncated, *other, b'{"ts_ms": 1'])

    assert [(row["op"], row["row"]["id"], row["_kafka_offset"]) for row in rows] == [("r", 1, 9)]
    event_reason = "is not a change event of Debezium with the rows of its operation"
    assert reasons == {
        10: "says that the table was truncated, which is not a change of a row",
        **dict.fromkeys(range(11, 15), event_reason),
        15: "is not a JSON object",
    }


@pytest.mark.slow
def test_unwrapped_rows(spark: SparkSession) -> None:
    """Rows of ExtractNewRecordState that says which rows are deleted are changes, with and without schemas."""
    fields = [decimal_field("price", 2), field("payload", "string"), field("__deleted", "string")]

    def row(deleted: str, **more: Any) -> dict[str, Any]:
        return {"price": decimal_bytes(150), "payload": "p", "__deleted": deleted, **more}

    schema = {"type": "struct", "fields": fields, "optional": True, "name": "shop.Value"}
    wrapped = [
        {"schema": schema, "payload": value} for value in (row("false", __op="c"), row("true", __op="d"), row("false"))
    ]
    bare = [
        {"price": 1.5, "payload": "p", "__deleted": "true"},
        {"price": 1.5, "payload": "p", "__deleted": False, "__op": "r"},
    ]
    rows, reasons = read(spark, "price decimal(9,2), payload string", [*wrapped, *bare, {"price": 1.5, "payload": "p"}])

    assert list(reasons) == [5]
    assert [row["op"] for row in rows] == ["c", "d", "u", "d", "r"]
    assert {tuple(row["row"]) for row in rows} == {(Decimal("1.50"), "p")}
    assert [(row["before"] is None, row["after"] is None) for row in rows] == [
        (row["op"] != "d", row["op"] == "d") for row in rows
    ]


@pytest.mark.slow
def test_documents_of_mongodb(spark: SparkSession) -> None:
    """A document in a text is a row: numbers, ids, dates, decimals and bytes lose the objects with their types."""
    document: dict[str, Any] = {
        "_id": {"$oid": "65ba8d480000000000000001"},
        "n": {"$numberLong": "5000000000"},
        "price": {"$numberDecimal": "1234"},
        "made": {"$date": MICROS // 1000},
        "seen": {"$date": {"$numberLong": str(MICROS // 1000)}},
        "text": {"$date": "2024-01-31T17:51:04.777Z"},
        "raw": {"$binary": "AQI=", "$type": "00"},
        "raw2": {"$binary": {"base64": "AQI=", "subType": "00"}},
        "items": [{"sku": '{"$oid":"x"}', "count": {"$numberInt": "2"}}],
    }
    after = json.dumps(document)
    update = {"removedFields": None, "updatedFields": '{"n": 1}', "truncatedArrays": None}
    changes = [
        event("c", None, after, connector="mongodb", updateDescription=None),
        event("u", None, after, [], connector="mongodb", updateDescription=update),
        event("d", after, None, connector="mongodb"),
        event("u", None, None, connector="mongodb", updateDescription=update),
        event("d", None, None, connector="mongodb"),
    ]
    ddl = (
        "_id string, n bigint, price decimal(9,1), made timestamp_ntz, seen timestamp_ntz, text timestamp_ntz, "
        "raw binary, raw2 binary, items array<struct<sku: string, count: int>>"
    )
    rows, reasons = read(spark, ddl, changes, timeUnit="micros")

    at = AT.replace(microsecond=777000)
    items = [Row(sku='{"$oid":"x"}', count=2)]
    found = (document["_id"]["$oid"], 5000000000, Decimal(1234), at, at, at, b"\x01\x02", b"\x01\x02", items)
    assert [(row["op"], tuple(row["row"])) for row in rows] == [(op, found) for op in "cud"]
    assert list(reasons) == [3, 4]


@pytest.mark.slow
def test_keys_have_types_of_connectors(spark: SparkSession) -> None:
    """The times and decimals of a key are read by its schema, or by the options of the values."""
    fields = [decimal_field("id", 0), field("day", "int32", f"{TIME}.Date")]
    key = {"schema": {"type": "struct", "fields": fields}, "payload": {"id": decimal_bytes(7), "day": 19753}}
    value = event("c", None, {"x": 1})
    pairs = [(key, value), (key["payload"], value), ({"id": "no", "day": 1}, value), (None, value)]
    rows, reasons = read(spark, "x int", pairs, "id decimal(20,0), day date", decimalMode="precise")

    expected = (Decimal(7), date(2024, 1, 31))
    assert [row["_kafka_key"] and tuple(row["_kafka_key"]) for row in rows] == [expected, expected, None]
    assert reasons == {2: "the key has a decimal that cannot be read as decimal(20,0): `id`"}


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["millis", "micros", "nanos"])
def test_times_without_a_schema(spark: SparkSession, unit: str) -> None:
    """Without a schema the numbers of a timestamp have the declared unit, and those of a date are days."""
    number = {"millis": MICROS // 1000, "micros": MICROS, "nanos": MICROS * 1000}[unit]
    at = AT.replace(microsecond=777000) if unit == "millis" else AT
    value = event("c", None, {"day": 19753, "at": number, "past": [number, None]})

    found = one(spark, "day date, at timestamp_ntz, past array<timestamp_ntz>", value, timeUnit=unit)

    assert found == (date(2024, 1, 31), at, [at, None])
