"""Makes the records that Spark's Kafka writer writes of a model's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.functions import (
    array,
    array_append,
    coalesce,
    col,
    concat,
    expr,
    lit,
    regexp_replace,
    struct,
    to_json,
    when,
)

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.kafka_records import AVRO, RecordShape, record_shape
from sqlstream.project.formats.format import TIME_PARSER
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.reading.sources import quoted

KEPT_NULLS = {"ignoreNullFields": "false"}
"""Options of to_json: every record has all fields, so that a reader sees when a value becomes null."""

HEADERS = "array<struct<key:string,value:binary>>"
"""The type of a column that has all headers of a record."""


def written_rows(model: CompiledModel, output: Output, frame: DataFrame) -> DataFrame:
    """Returns the rows of `frame` with the columns that Spark's writer gets: records for Kafka, otherwise the same.

    A record has a value, and as needed key, topic, partition and headers. The result has the same rows in the same
    order, and needs no shuffle. Raises: Spark's errors.
    """
    if output.format != "kafka":
        return frame
    config = model.config
    types = dict(frame.dtypes)
    shape = record_shape(output, config, types)
    if shape.is_raw and not (shape.key or shape.headers or config.delete_when):
        return frame
    parts = {name: col(quoted(name)) for name in shape.unchanged}
    time_parser = frame.sparkSession.conf.get(TIME_PARSER) or ""
    json_options = format_of("json").writer_options(KEPT_NULLS, time_parser)
    value = parts["value"] if shape.is_raw else _value(shape, json_options)
    # a record without value is a tombstone: a compacted topic forgets the key
    if config.delete_when:
        value = when(expr(config.delete_when), lit(None)).otherwise(value)
    parts["value"] = value
    if shape.key:
        parts["key"] = _key(shape.key, types, json_options)
    if shape.headers:
        parts["headers"] = _headers(shape.headers, {name.lower(): type_ for name, type_ in types.items()})
    return frame.select(*(column.alias(name) for name, column in parts.items()))


def _value(shape: RecordShape, json_options: Mapping[str, str]) -> Column:
    if shape.value_format == AVRO:
        return to_avro(_struct(shape.value))
    return to_json(_struct(shape.value), dict(json_options))


def _key(names: Sequence[str], types: Mapping[str, str], json_options: Mapping[str, str]) -> Column:
    """Returns the key as JSON. Times of whole milliseconds have three digits as in Spark's own text: a compacted topic
    must not get a second key for what it has.
    """
    short, in_key = to_json(_struct(names), KEPT_NULLS), {name.lower() for name in names}
    if not any("timestamp" in type_ for name, type_ in types.items() if name.lower() in in_key):
        return short
    exact = to_json(_struct(names), dict(json_options))
    return when(regexp_replace(exact, lit(r"(\.\d{3})000"), lit("$1")) == short, short).otherwise(exact)


def _struct(names: Sequence[str]) -> Column:
    return struct(*(col(quoted(name)) for name in names))


def _headers(names: Sequence[str], types: Mapping[str, str]) -> Column:
    """Returns the headers: one for each simple column, under its name, and all of a column of headers."""
    headers = array().cast(HEADERS)
    for name in names:
        column = col(quoted(name))
        if types.get(name.lower()) == HEADERS:
            headers = concat(headers, coalesce(column, array().cast(HEADERS)))  # concat with a null is null
            continue
        value = column if types.get(name.lower()) == "binary" else column.cast("string").cast("binary")
        headers = array_append(headers, struct(lit(name).alias("key"), value.alias("value")))
    return headers
