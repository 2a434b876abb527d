"""The parser of each format of keys and values."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.project.messages.message_format import (
    AVRO,
    DEBEZIUM,
    JSON,
    PROTOBUF,
    ROW,
    TEXT,
    MessageFormat,
)
from sqlstream.project.types.types import Struct
from sqlstream.spark.reading.corrupt import Timestamps
from sqlstream.spark.reading.message_formats.debezium import DebeziumParser
from sqlstream.spark.reading.message_formats.parsers import (
    AvroParser,
    JsonParser,
    Parser,
    ProtobufParser,
    RawParser,
    TextParser,
    struct_of,
)


def value_parser(messages: MessageFormat, options: Mapping[str, str], times: Timestamps) -> Parser:
    """Returns the parser of values; `options` are those of `messages` with all secrets. `times` reads their times."""
    form = messages.value_format
    if form == AVRO and messages.avro is not None:
        return AvroParser(messages.avro, options)
    if form == DEBEZIUM:
        row = next(column.type for column in messages.columns if column.name == ROW)
        return DebeziumParser(struct_of(row.fields if isinstance(row, Struct) else ()), options)
    if form == PROTOBUF:
        return ProtobufParser(struct_of(messages.columns), options)
    if form == JSON:
        return JsonParser(times.parsed(struct_of(messages.columns)), options)
    return TextParser() if form == TEXT else RawParser()


def key_parser(messages: MessageFormat) -> Parser:
    """Returns the parser of keys. Kafka Connect writes the keys of change events in the same way as the events."""
    if messages.key_avro is not None:
        return AvroParser(messages.key_avro, {})
    if messages.key_format == JSON and isinstance(messages.key, Struct):
        is_wrapped = messages.value_format == DEBEZIUM
        return JsonParser(struct_of(messages.key.fields), {}, is_wrapped=is_wrapped)
    return TextParser() if messages.key_format == TEXT else RawParser()
