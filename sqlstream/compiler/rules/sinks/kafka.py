"""Rules on Kafka sinks: the records that they make of a model's rows.

Those on raw records are the ones of `KafkaWriter.validateQuery` of Spark 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.kafka_records import RAW, RecordShape, has_topic_option, record_shape
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule, rule
from sqlstream.errors import Severity
from sqlstream.location import Location
from sqlstream.project.types.data_types import Array, DataType, Field, Map, Primitive, Struct, Unknown
from sqlstream.project.wording import did_you_mean, quoted, quoted_list

STRING, BINARY, INT = Primitive("string"), Primitive("binary"), Primitive("int")
HEADERS = Array(Struct((Field("key", STRING), Field("value", BINARY))))

KAFKA_TYPES: dict[str, tuple[DataType, ...]] = {
    "value": (STRING, BINARY),
    "key": (STRING, BINARY),
    "topic": (STRING,),
    "partition": (INT,),
    "headers": (HEADERS,),
}
"""The types of each column that a Kafka sink reads (Spark's Kafka integration guide)."""


@rule("unknown-key")
def keys_of_kafka(compiled: CompiledProject) -> Problems:
    """Only a Kafka sink makes records, with `value_format`, `key` and `headers`."""
    for sink in compiled.project.sinks:
        for key in ("value_format", "key", "headers"):
            if getattr(sink.record, key) and sink.format != "kafka":
                yield Problem(
                    f"sink `{sink.name}` has the key `{key}`, but its format is {sink.format}",
                    "only a sink of format kafka makes records of rows",
                    "set format: kafka, or remove the key",
                    sink.locations.get(key, sink.location),
                )


@output_rule("sink-schema")
def kafka_columns(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A Kafka sink needs a topic, and a value if it makes none itself, with types that Spark writes."""
    columns = compiled.columns.get(model.unique_id)
    shape = _shape(model, output, columns)
    if columns is None or shape is None:
        return
    yield from _repeated_names(model, output, columns, shape)
    yield from _missing_columns(model, output, columns, shape)
    yield from _wrong_types(model, output, columns, shape)


@output_rule("unknown-column")
def columns_of_records(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """The columns in `key` and `headers` of a Kafka sink must be columns of the model."""
    columns = compiled.columns.get(model.unique_id)
    names = [column.name for column in columns or ()]
    known = {name.lower() for name in names}
    for key in ("key", "headers") if columns is not None and output.format == "kafka" else ():
        for name in (name for name in getattr(output.record, key) if name.lower() not in known):
            yield Problem(
                f"sink `{output.sink}` has the {key} {quoted(name)}, which is not a column of `{model.name}`",
                f"the columns of `{model.name}` are {quoted_list(names)}",
                did_you_mean(name, names),
                _location_in_sink(compiled, output, key),
            )


@output_rule("missing-key")
def keys_of_deleted_records(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A record that deletes another one must have the same key, so the key must be the `unique_key`."""
    key, unique = output.record.key, model.config.unique_key
    differs = bool(unique) and {name.lower() for name in key} != {name.lower() for name in unique}
    if output.format == "kafka" and model.config.delete_when and key and differs:
        yield Problem(
            f"sink `{output.sink}` has the key {quoted_list(key)}, but `{model.name}` deletes by {quoted_list(unique)}",
            "in a compacted topic, a record without a value deletes all records with its key",
            "remove the key of the sink: unique_key then becomes the key",
            _location_in_sink(compiled, output, "key"),
        )


@output_rule("unkeyed-updates", severity=Severity.WARNING)
def updates_without_key(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Records that replace earlier ones need a key."""
    columns = compiled.columns.get(model.unique_id)
    shape = _shape(model, output, columns)
    mode = model.config.output_mode
    if shape is not None and model.streaming and mode != "append" and not shape.has_key:
        yield Problem(
            f"`{model.name}` writes to Kafka in {mode} mode without a key",
            "each batch writes changed rows again, and readers cannot see which record replaces which",
            "add unique_key with the columns that identify a row",
            model.location_of("output_mode"),
        )


def _shape(model: CompiledModel, output: Output, columns: Sequence[Column] | None) -> RecordShape | None:
    """Returns the parts of the records, None for another format, or if unknown columns decide."""
    if output.format != "kafka" or columns is None:
        return None
    types = {column.name: "" if column.type is None else str(column.type) for column in columns}
    is_open = output.record.value_format is None and isinstance(_type_of(columns, "value"), Unknown | None)
    return None if "value" in types and is_open else record_shape(output, model.config, types)


def _type_of(columns: Sequence[Column], name: str) -> DataType | None:
    return next((column.type for column in columns if column.name.lower() == name.lower()), None)


def _repeated_names(model: CompiledModel, output: Output, columns: Sequence[Column], shape: RecordShape) -> Problems:
    names = Counter(column.name.lower() for column in columns)
    repeated = [name for name, count in names.items() if count > 1]
    if repeated and not shape.is_raw:
        yield Problem(
            f"`{model.name}` has several columns with the same name: {quoted_list(repeated)}",
            f"sink `{output.sink}` writes {shape.value_format} values, whose fields need different names",
            "give each column a unique name with `as`",
            model.file.location,
        )


def _missing_columns(
    model: CompiledModel, output: Output, columns: Sequence[Column], shape: RecordShape
) -> Iterator[Problem]:
    names = [column.name for column in columns]
    given = f"the columns of `{model.name}` are {', '.join(f'`{name}`' for name in dict.fromkeys(names))}"
    if shape.value_format == RAW and "value" not in names:
        yield Problem(
            f"`{model.name}` has no column `value`, but sink `{output.sink}` writes raw values",
            f"the column `value` (string or binary) becomes the value of the record; {given}",
            "use value_format: json in the sink, or select the value, such as to_json(struct(*)) as value",
            model.location_of("sink"),
        )
    if "topic" not in names and not has_topic_option(output):
        yield Problem(
            f"Kafka sink `{output.sink}` has no topic for the rows of `{model.name}`",
            f"the topic is an option of the sink or a column `topic`; {given}",
            "add options: {topic: ...} to the sink",
            model.location_of("sink"),
        )


def _wrong_types(
    model: CompiledModel, output: Output, columns: Sequence[Column], shape: RecordShape
) -> Iterator[Problem]:
    types = {column.name: column.type for column in columns}
    for name in shape.unchanged:
        given, allowed = types.get(name), KAFKA_TYPES[name]
        is_text = isinstance(given, Primitive) and bool(given.collation)
        if given is None or isinstance(given, Unknown) or is_text or str(given) in map(str, allowed):
            continue
        yield Problem(
            f"Kafka sink `{output.sink}` cannot write the column `{name}` of `{model.name}`",
            f"its type is {given}, but Kafka needs {' or '.join(map(str, allowed))} here",
            f"use cast({name} as {allowed[0]}) as {name}, or to_json({name})",
            model.location_of("sink"),
        )
    for name in shape.headers:
        given = _type_of(columns, name)
        if isinstance(given, Array | Map | Struct) and str(given) != str(HEADERS):
            yield Problem(
                f"sink `{output.sink}` cannot write the column `{name}` of `{model.name}` as a header",
                f"its type is {given}; a header is a simple value, or all headers have the type {HEADERS}",
                f"use to_json({name}) as {name}, or remove it from headers",
                model.location_of("sink"),
            )


def _location_in_sink(compiled: CompiledProject, output: Output, key: str) -> Location:
    sink = next(sink for sink in compiled.project.sinks if sink.name == output.sink)
    return sink.locations.get(key, sink.location)
