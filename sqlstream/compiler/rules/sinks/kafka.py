"""What a Kafka sink asks of a model's columns: `KafkaWriter.validateQuery` of Spark 4.3, of which no test asks Spark.

The columns are those that Spark's guide to Kafka names: value, key, topic, partition and headers, in this spelling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.flow.columns import Column
from sqlstream.errors import Finding
from sqlstream.project.types.types import Array, DataType, Field, Primitive, Struct, Unknown

STRING, BINARY, INT = Primitive("string"), Primitive("binary"), Primitive("int")
HEADERS = Array(Struct((Field("key", STRING), Field("value", BINARY))))

TAKEN: dict[str, tuple[DataType, ...]] = {
    "value": (STRING, BINARY),
    "key": (STRING, BINARY),
    "topic": (STRING,),
    "partition": (INT,),
    "headers": (HEADERS,),
}
"""The types that each column may have."""


def kafka_findings(model: CompiledModel, output: Output, columns: Sequence[Column]) -> Iterator[Finding]:
    """Gives what a Kafka sink lacks, and which of its columns are of another type."""
    by_name = {column.name: column for column in columns}
    place = model.place_of("sink")
    given = ", ".join(f"`{name}`" for name in by_name)
    if "value" not in by_name:
        yield Finding(
            "sink-schema",
            f"`{model.name}` has no column `value`, but sink `{output.sink}` writes to Kafka",
            f"the column `value` (string or binary) becomes the message; the columns of `{model.name}` are {given}",
            "select to_json(struct(*)) as value",
            place,
        )
    if "topic" not in by_name and not any(name.lower() == "topic" for name in output.options):
        yield Finding(
            "sink-schema",
            f"Kafka sink `{output.sink}` has no topic for the rows of `{model.name}`",
            f"the topic is an option of the sink or a column `topic`; the columns of `{model.name}` are {given}",
            "add options: {topic: ...} to the sink",
            place,
        )
    for name, taken in TAKEN.items():
        type_ = by_name[name].type if name in by_name else None
        if type_ is not None and not isinstance(type_, Unknown) and not _fits(type_, taken):
            yield Finding(
                "sink-schema",
                f"Kafka sink `{output.sink}` cannot write the column `{name}` of `{model.name}`",
                f"its type is {type_}, but Kafka needs {' or '.join(map(str, taken))} here",
                f"use cast({name} as {taken[0]}) as {name}, or to_json({name})",
                place,
            )


def _fits(type_: DataType, taken: tuple[DataType, ...]) -> bool:
    return any(str(type_) == str(other) for other in taken) or (isinstance(type_, Primitive) and bool(type_.collation))
