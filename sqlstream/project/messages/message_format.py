"""How the keys and values of a Kafka source become columns, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlstream.project.configuration.documents import SchemaRegistry
from sqlstream.project.messages.avro import AvroSchemas
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.types.data_types import Array, DataType, Field, Primitive, Struct

JSON, AVRO, PROTOBUF, DEBEZIUM, TEXT, RAW = "json", "avro", "protobuf", "debezium", "text", "raw"

PLAIN = frozenset({TEXT, RAW})
"""The formats in which a key or value is one column."""

BYTES = Primitive("binary")

PREFIX = "_kafka_"
"""The start of the names of all metadata columns. Columns of a value cannot begin with it."""

KEY = f"{PREFIX}key"
HEADERS = f"{PREFIX}headers"

METADATA = {
    "topic": Field(f"{PREFIX}topic", Primitive("string")),
    "partition": Field(f"{PREFIX}partition", Primitive("int")),
    "offset": Field(f"{PREFIX}offset", Primitive("bigint")),
    "timestamp": Field(f"{PREFIX}timestamp", Primitive("timestamp")),
    "timestampType": Field(f"{PREFIX}timestamp_type", Primitive("int")),
}
"""The metadata columns beside the key and the headers, by Spark's name."""

_HEADER = Struct((Field("key", Primitive("string")), Field("value", BYTES)))

OPERATION, BEFORE, AFTER, ROW = "op", "before", "after", "row"
"""The columns of a change event of Debezium."""

UNAVAILABLE = "unavailable"
"""The column of a change event with the names of the columns whose value the event does not have."""

LIST_UNAVAILABLE = "listUnavailable"
"""The option of values with which change events have this column."""

UPSERTS, DELETE, TRUNCATE, MESSAGE = ("c", "r", "u"), "d", "t", "m"
"""The operations: created, read (in a snapshot) and updated; deleted; all rows deleted; a message without a row."""


@dataclass(frozen=True)
class MessageFormat:
    """The formats of the keys and values of a Kafka source.

    `columns` are the columns of the value; none if their schema is not pinned yet. `key` is the type of the key's
    column. `options` are those of the parser of the value. `avro` and `key_avro` are the schemas of a format avro.
    """

    value_format: str
    columns: tuple[Field, ...]
    key_format: str = RAW
    key: DataType = BYTES
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    registry: SchemaRegistry | None = None
    avro: AvroSchemas | None = None
    key_avro: AvroSchemas | None = None

    @property
    def formats(self) -> Mapping[str, str]:
        """The formats of values and keys, by the key in YAML."""
        return {"value_format": self.value_format, "key_format": self.key_format}

    @property
    def has_avro(self) -> bool:
        """Whether keys or values are Avro."""
        return AVRO in self.formats.values()

    @property
    def record_columns(self) -> tuple[Field, ...]:
        """The columns of a record: of the value, and for change events those of the row in it."""
        if self.value_format != DEBEZIUM:
            return self.columns
        row = next((column.type for column in self.columns if column.name == ROW), None)
        return row.fields if isinstance(row, Struct) else ()

    @property
    def lists_unavailable(self) -> bool:
        """Whether a change event says which values it does not have."""
        return lists_unavailable(self.options)

    @property
    def is_plain(self) -> bool:
        """Whether a value is one column."""
        return self.value_format in PLAIN

    def all_columns(self, options: Mapping[str, OptionValue]) -> tuple[Field, ...]:
        """Returns the columns of a source with these reader `options`: those of the value, then the metadata."""
        headers = [Field(HEADERS, Array(_HEADER))] if has_headers(options) else []
        return (*self.columns, Field(KEY, self.key), *METADATA.values(), *headers)


def change_columns(row: tuple[Field, ...], options: Mapping[str, OptionValue]) -> tuple[Field, ...]:
    """Returns the columns of change events of a table with the columns `row`, none if it has none. `options` are those
    of the values.
    """
    kind, text = Struct(row), Primitive("string")
    columns = (Field(OPERATION, text), *(Field(name, kind) for name in (BEFORE, AFTER, ROW)))
    unavailable = (Field(UNAVAILABLE, Array(text)),) if lists_unavailable(options) else ()
    return (*columns, *unavailable) if row else ()


def lists_unavailable(options: Mapping[str, OptionValue]) -> bool:
    """Returns whether change events with these options of values say which values they do not have."""
    return str(options.get(LIST_UNAVAILABLE, "")).lower() == "true"


def has_headers(options: Mapping[str, OptionValue]) -> bool:
    """Returns whether a source with `options` has the headers of messages."""
    return any(name.lower() == "includeheaders" and str(value).lower() == "true" for name, value in options.items())


def fixed_columns(value_format: str) -> Sequence[Field]:
    """Returns the columns of a value in a format whose columns the project does not declare."""
    return (Field("value", Primitive("string") if value_format == TEXT else BYTES),)
