"""Parses the messages of Kafka sources: good ones become rows, the others are corrupt.

Each message is parsed once and completely, whichever columns a model reads, so that all models see the same records.
Spark's optimizer would parse twice (for the filter and for the columns), or never (`count(*)`). It does not copy or
remove expressions whose value may differ between two evaluations, so parsers depend on the partition's number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    coalesce,
    col,
    concat,
    concat_ws,
    count_if,
    current_timestamp,
    lit,
    when,
)
from pyspark.sql.types import StructField

from sqlstream.project.declarations.on_corrupt import CORRUPT_MESSAGE_COLUMNS
from sqlstream.project.declarations.schema_changes import RESCUED, rescues
from sqlstream.project.messages.message_format import (
    AVRO,
    DEBEZIUM,
    HEADERS,
    JSON,
    KEY,
    METADATA,
    PLAIN,
    PROTOBUF,
    RAW,
    TEXT,
    MessageFormat,
    has_headers,
)
from sqlstream.project.types.data_types import Struct
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.corrupt import ColumnChecks, Counters, fails_at, is_good, once
from sqlstream.spark.reading.corrupt_errors import CORRUPT_MESSAGE
from sqlstream.spark.reading.message_formats.debezium import (
    SCHEMA,
    UNWRAPPED_PREFIX,
    ConnectParser,
    ConnectValues,
    DebeziumKeyParser,
    DebeziumParser,
    written_otherwise,
)
from sqlstream.spark.reading.message_formats.parsers import (
    AvroParser,
    JsonParser,
    Parser,
    ProtobufParser,
    RawParser,
    TextParser,
    struct_of,
)
from sqlstream.spark.reading.new_fields import NewFields

VALUE, PARSED_KEY, REASON = "_sqlstream_value", "_sqlstream_key", "_sqlstream_reason"
"""Columns that models do not see: the parsed value and key, and the reason why a message is corrupt (null: good)."""

EVENT = "_sqlstream_event"
"""The text of a change event that is written in another way; null for any other message."""

RECORD = "_sqlstream_record"
"""The record of a message whose value is not JSON, or is more than the record, as a JSON object."""

NO_VALUE, NO_KEY = "_sqlstream_no_value", "_sqlstream_no_key"
"""Whether there is no value or key. The bytes themselves would be copied with each row."""


def read_messages(
    frame: DataFrame,
    table: SourceTable,
    messages: MessageFormat,
    options: Mapping[str, str],
    counters: Counters,
) -> DataFrame:
    """Returns the rows of `table` in `frame`, which has the columns of Spark's Kafka reader.

    The table's `on_corrupt` defines what happens to corrupt messages. `options` are those of the parser of values, with
    all secrets. `counters` count messages.
    """
    if messages.value_format == DEBEZIUM:  # a null value follows each deletion, so that compaction removes the key
        frame = frame.filter(col("value").isNotNull())
    checks = ColumnChecks(table.corrupt_of or table, options, frame.sparkSession)
    value, key = value_parser(messages, options, checks), key_parser(messages, options)
    kinds: Iterable[StructField] = () if messages.value_format in PLAIN else struct_of(messages.columns)
    columns = [(each.name, value.field(col(VALUE), each.name), each.dataType) for each in kinds]
    parsed = _parsed(frame, value, key, checks.problems(columns, frame), needs_value=messages.value_format not in PLAIN)
    if table.corrupt_of is not None:
        return _corrupt(parsed)
    if table.on_corrupt == "drop" and counters.dropped is not None:
        parsed = parsed.observe(counters.dropped, count_if(col(REASON).isNotNull()).alias("rows"))
    is_kept = is_good(col(REASON))
    if table.on_corrupt in (None, "fail"):
        is_kept = fails_at(col(REASON).isNotNull(), _error_text(table))
    metadata = [col(name).alias(field.name) for name, field in METADATA.items()]
    if has_headers(table.options):
        metadata.append(col("headers").alias(HEADERS))
    typed = [checks.typed(field, kind).alias(name) for name, field, kind in columns]
    # text and bytes have no fields: their only column is the value
    typed = typed or [value.field(col(VALUE), field.name).alias(field.name) for field in messages.columns]
    is_raw = messages.value_format == messages.key_format == RAW  # any bytes are good
    rows = parsed if is_raw else parsed.filter(is_kept)
    if table.schema_changes is not None:
        rows, new = _new_fields(rows, table, messages, value, options)
        rows = new.found(rows, counters.new_fields)
        if rescues(table):
            metadata.append(new.rescued().alias(RESCUED))
    return rows.select(*typed, key.result(col(PARSED_KEY)).alias(KEY), *metadata)


def _parsed(frame: DataFrame, value: Parser, key: Parser, wrong: Sequence[Column], *, needs_value: bool) -> DataFrame:
    """Returns `frame` with the parsed values and keys, and the reasons why messages are corrupt."""
    nulls = (col("value").isNull().alias(NO_VALUE), col("key").isNull().alias(NO_KEY))
    data = col("value")
    if isinstance(value, DebeziumParser):
        frame = frame.select("*", once(written_otherwise(data)).alias(EVENT))
        data = coalesce(col(EVENT), data.cast("string"))
    parsed = frame.select(
        "*", *nulls, _read_once(value, data).alias(VALUE), _read_once(key, col("key")).alias(PARSED_KEY)
    )
    # each step is a column, so that Spark does not repeat its expressions for each field
    for parser, name in ((value, VALUE), (key, PARSED_KEY)):
        for step in parser.steps if isinstance(parser, ConnectParser) else ():
            parsed = parsed.withColumn(name, once(step(col(name))))
    if isinstance(value, DebeziumParser):
        parsed = parsed.filter(is_good(when(value.is_without_row(data, col(VALUE)), "is not about a row")))
    reasons = [
        *([when(col(NO_VALUE), "the value is null")] if needs_value else []),
        *_problem("value", col(NO_VALUE), value.problem(data, col(VALUE))),
        *wrong,
        *_problem("key", col(NO_KEY), key.problem(col("key"), col(PARSED_KEY))),
    ]
    reason = once(coalesce(*reasons)) if reasons else lit(None).cast("string")
    return parsed.select("*", reason.alias(REASON))


def _new_fields(
    rows: DataFrame, table: SourceTable, messages: MessageFormat, value: Parser, options: Mapping[str, str]
) -> tuple[DataFrame, NewFields]:
    """Returns the good messages with the column `RECORD`, if they need it, and what finds their new fields."""
    topic, partition, offset = (col(name).cast("string") for name in ("topic", "partition", "offset"))
    place = concat(lit("topic "), topic, lit(", partition "), partition, lit(", offset "), offset)
    text, prefix = col("value").cast("string"), ""
    if isinstance(value, AvroParser):
        text, options = value.text(col("value")), {}
    elif isinstance(value, DebeziumParser):
        text, prefix = value.row_text(coalesce(col(EVENT), text), col(VALUE)), UNWRAPPED_PREFIX
    if not isinstance(value, JsonParser):
        rows = rows.select("*", once(text).alias(RECORD))
        text = col(RECORD)
    declared = struct_of(messages.record_columns)
    return rows, NewFields(table, declared, text, options, place, ignored_prefix=prefix)


def _read_once(parser: Parser, data: Column) -> Column:
    parsed = parser.parse(data)
    return parsed if isinstance(parser, RawParser) else once(parsed)


def _problem(part: str, is_null: Column, problem: Column | None) -> list[Column]:
    return [] if problem is None else [when(~is_null, concat(lit(f"the {part} "), problem))]


def _error_text(table: SourceTable) -> Column:
    """Returns the text of an error that `read_corrupt_record` recognizes.

    It has one line for each part: with `to_json`, Spark would generate no code for the filter and what is above it.
    """
    parts = (lit(table.full_name), col("topic"), col("partition"), col("offset"), col(REASON))
    return concat_ws("\n", lit(CORRUPT_MESSAGE), *(part.cast("string") for part in parts))


def _corrupt(parsed: DataFrame) -> DataFrame:
    """Returns the corrupt messages, with the columns of a table of corrupt messages."""
    found = {"reason": col(REASON), "quarantined_at": current_timestamp()}
    names = [column.name for column in CORRUPT_MESSAGE_COLUMNS]
    return parsed.filter(col(REASON).isNotNull()).select(*(found.get(name, col(name)).alias(name) for name in names))


def value_parser(messages: MessageFormat, options: Mapping[str, str], checks: ColumnChecks) -> Parser:
    """Returns the parser of values; `options` are those of `messages` with all secrets. `checks` reads their times."""
    form = messages.value_format
    if form == AVRO and messages.avro is not None:
        return AvroParser(messages.avro, options, messages.columns)
    if form == DEBEZIUM:
        return DebeziumParser(struct_of(messages.record_columns), options)
    if form == PROTOBUF:
        return ProtobufParser(struct_of(messages.columns), options)
    if form == JSON:
        return JsonParser(checks.parsed(struct_of(messages.columns)), options)
    return TextParser() if form == TEXT else RawParser()


def key_parser(messages: MessageFormat, options: Mapping[str, str]) -> Parser:
    """Returns the parser of keys. Kafka Connect writes the keys of change events in the same way as the events, so
    they have the `options` of the values.
    """
    if messages.key_avro is not None:
        return AvroParser(messages.key_avro, {})
    if messages.key_format == JSON and isinstance(messages.key, Struct):
        columns = struct_of(messages.key.fields)
        if messages.value_format != DEBEZIUM:
            return JsonParser(columns, {})
        # the schema is beside the columns of a key
        return DebeziumKeyParser(ConnectValues(columns, options, reads_schema=SCHEMA not in columns.names))
    return TextParser() if messages.key_format == TEXT else RawParser()
