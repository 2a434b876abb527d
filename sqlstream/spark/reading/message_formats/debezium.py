"""Parses the change events of Debezium: JSON with the operation, and the row before and after it.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events

Debezium writes times as numbers of different units and decimals as bytes. The `schema` around an event says which ones
they are; without it, options of the source do. Spark would read both wrong, so they are parsed here.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from hashlib import md5
from operator import and_, or_
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql.functions import (
    aggregate,
    array,
    array_compact,
    array_contains,
    array_except,
    array_position,
    coalesce,
    concat,
    conv,
    create_map,
    date_from_unix_date,
    exists,
    expr,
    floor,
    get,
    get_json_object,
    json_object_keys,
    length,
    lit,
    lpad,
    make_dt_interval,
    map_values,
    regexp_extract,
    regexp_replace,
    rtrim,
    schema_of_variant,
    size,
    struct,
    substring,
    timestamp_micros,
    transform,
    translate,
    try_add,
    try_element_at,
    try_multiply,
    try_to_binary,
    try_variant_get,
    when,
)
from pyspark.sql.functions import hex as hex_
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from sqlstream.project.messages.message_format import (
    AFTER,
    BEFORE,
    DELETE,
    LIST_UNAVAILABLE,
    MESSAGE,
    OPERATION,
    TRUNCATE,
    UNAVAILABLE,
    UPSERTS,
    lists_unavailable,
)
from sqlstream.spark.reading.corrupt import leaf_reasons, map_leaves, raw_struct
from sqlstream.spark.reading.message_formats.parsers import PAYLOAD, JsonParser, other_case

TIME_UNIT = "timeUnit"
"""The option with the unit of numbers that are timestamps."""

DECIMAL_MODE, PRECISE = "decimalMode", "precise"
"""The option with Debezium's setting `decimal.handling.mode`, and the mode with bytes."""

UNKNOWN_VALUE, UNKNOWN = "unavailableValue", "__debezium_unavailable_value"
"""The option with the text that marks a value that is not known, and its default, as in Debezium's setting
`unavailable.value.placeholder`. PostgreSQL does not send large values that have not changed.
"""

SCHEMA = "schema"

_PARTS = ("type", "name", "parameters")

_PARSED, _WRITTEN, _RAW, _TYPED = "parsed", "written", "raw", "typed"
"""The fields of what the steps of a parser return."""

_FIRST, _LAST = -719_162 * 86_400_000_000, 2_932_897 * 86_400_000_000 - 1
"""The years 1 to 9999, in microseconds since 1970. The infinity of PostgreSQL is outside."""

_UNITS = {"days": Decimal(86_400_000_000), "millis": Decimal(1000), "micros": Decimal(1), "nanos": Decimal("0.001")}
"""The microseconds of each unit of a time."""

_TIMES = {
    "io.debezium.time.Date": "days",
    "org.apache.kafka.connect.data.Date": "days",
    "io.debezium.time.Timestamp": "millis",
    "org.apache.kafka.connect.data.Timestamp": "millis",
    "io.debezium.time.MicroTimestamp": "micros",
    "io.debezium.time.NanoTimestamp": "nanos",
}
"""The units of numbers by the name of their type in a schema. Numbers of other types are not times since 1970."""

_DECIMAL = "org.apache.kafka.connect.data.Decimal"

_TYPE = "type string, name string, parameters map<string, string>"
_COLUMN = f"field string, {_TYPE}, items struct<{_TYPE}>"
_SCHEMA = f"struct<fields array<struct<{_COLUMN}, fields array<struct<{_COLUMN}>>>>>"
"""What is read of the schema of an event, which has the schemas of its rows, or of a key, which has columns."""


def _raw(kind: DataType) -> DataType | None:
    """Returns the type with which Spark reads a time or decimal. Only a variant keeps all digits of a number, and
    whether it is a number or text.
    """
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        return StringType()
    return VariantType() if isinstance(kind, DecimalType) else None


@dataclass(frozen=True)
class _Written:
    """What the schema of a message says about a column: its type, the name of what it means, and a decimal's scale.

    All are null without a schema; with `is_known` false, for all messages.
    """

    type: Column
    name: Column
    scale: Column
    is_known: bool = True


@dataclass(frozen=True)
class ConnectValues:
    """Converts the columns `row` of an object that a connector wrote to their declared types.

    Without `reads_schema`, the schema of the message has no influence.
    """

    row: StructType
    options: Mapping[str, str]
    reads_schema: bool = True

    @property
    def raw(self) -> StructType:
        """The types with which Spark parses the columns."""
        return raw_struct(self.row, _raw)

    @property
    def schema(self) -> list[StructField]:
        """The field with the schema of the object; none if no column needs it."""
        return [StructField(SCHEMA, DataType.fromDDL(_SCHEMA))] if self._of_schema() else []

    def written(self, parsed: Column) -> Column:
        """Returns what the schema in `parsed` says about the columns, by their names."""
        fields = parsed.getField(SCHEMA).getField("fields")
        found = []
        for each in self._of_schema():
            of_items = isinstance(each.dataType, ArrayType)
            levels = (_at(fields, AFTER, "fields"), fields)  # columns of an unwrapped row or a key are at the top
            at = partial(_at, field=each.name, of_items=of_items)
            parts = {part: coalesce(*(at(level, part=part) for level in levels)) for part in _PARTS}
            found.append(struct(*(value.alias(part) for part, value in parts.items())).alias(each.name))
        return struct(*found) if found else lit(None)

    def typed(self, raw: Column, written: Column) -> Column:
        """Returns the object `raw` with its declared types."""
        columns = []
        for each in self.row:
            read = partial(self._read, self._written(written, each))
            columns.append(map_leaves(raw.getField(each.name), each.dataType, _raw, read).alias(each.name))
        return when(raw.isNotNull(), struct(*columns))

    def problems(self, raw: Column, typed: Column, written: Column) -> Iterator[Column]:
        """Yields why values of `raw`, which `typed` has converted, cannot be read; each null for good ones."""
        for each in self.row:
            found = typed.getField(each.name) if _raw(each.dataType) is not None else None
            test = partial(self._problem, self._written(written, each), found)
            yield from leaf_reasons(raw.getField(each.name), each.dataType, each.name, _raw, test)

    def _of_schema(self) -> list[StructField]:
        """Returns the columns whose types the schema of a message says."""
        kinds = [(each, each.dataType) for each in self.row if self.reads_schema]
        items = [(each, kind.elementType if isinstance(kind, ArrayType) else kind) for each, kind in kinds]
        return [each for each, kind in items if _raw(kind) is not None]

    def _written(self, written: Column, column: StructField) -> _Written:
        if column not in self._of_schema():
            return _Written(*(lit(None).cast("string"),) * 3, is_known=False)
        found = written.getField(column.name)
        return _Written(found.getField("type"), found.getField("name"), found.getField("parameters").getItem("scale"))

    def _read(self, written: _Written, raw: Column, kind: DataType) -> Column:
        """Returns a time or decimal in its declared type; null if it cannot be read."""
        return self._decimal(raw, kind, written) if isinstance(kind, DecimalType) else self._time(raw, kind, written)

    def _problem(self, written: _Written, typed: Column | None, raw: Column, kind: DataType, name: str) -> Column:
        unread = (self._read(written, raw, kind) if typed is None else typed).isNull()
        if not isinstance(kind, DecimalType):
            return when(raw.isNotNull() & unread, f"{_TIME}: `{name}`")
        reason = f"has a decimal that cannot be read as {kind.simpleString()}: `{name}`"
        is_unknown = self._mode(written).isNull() & (schema_of_variant(raw) == "STRING")
        unknown = f"has a decimal whose {DECIMAL_MODE} is not in value_options: `{name}`"
        return when(raw.try_cast("string").isNotNull() & unread, when(is_unknown, unknown).otherwise(reason))

    def _time(self, raw: Column, kind: DataType, written: _Written) -> Column:
        """Returns a time from a number since 1970 or from ISO text."""
        is_document = raw.startswith("{")
        text = when(is_document, regexp_extract(raw, _DOCUMENT_DATE, 1)).otherwise(raw)
        number = text.try_cast("bigint").cast("decimal(20,0)")
        declared = "days" if isinstance(kind, DateType) else self.options.get(TIME_UNIT, "").lower()
        default = lit(_UNITS.get(declared)).cast(_FACTOR)
        names = [part for name, unit in _TIMES.items() for part in (lit(name), lit(_UNITS[unit]).cast(_FACTOR))]
        of_schema = try_element_at(create_map(*names), written.name) if written.is_known else lit(None).cast(_FACTOR)
        unit = when(is_document, lit(_UNITS["millis"]).cast(_FACTOR)).when(written.name.isNull(), default)
        micros = floor(number * unit.otherwise(of_schema))
        micros = when(micros.between(_FIRST, _LAST), micros.cast("bigint"))
        since = expr("timestamp_ntz'1970-01-01'") + make_dt_interval(secs=micros.cast("decimal(20,0)") / lit(1_000_000))
        found = timestamp_micros(micros) if isinstance(kind, TimestampType) else since.cast(kind)
        is_date = isinstance(kind, DateType)
        return when(number.isNotNull(), found).otherwise((rtrim(text, lit("Z")) if is_date else text).try_cast(kind))

    def _mode(self, written: _Written) -> Column:
        """Returns how a decimal in a text is written; null if it is not known."""
        declared = lit(self.options.get(DECIMAL_MODE, "").lower() or None).cast("string")
        known = when(written.name == _DECIMAL, PRECISE).when(written.type == "bytes", "").otherwise("string")
        return when(written.type.isNull(), declared).otherwise(known) if written.is_known else declared

    def _decimal(self, raw: Column, kind: DecimalType, written: _Written) -> Column:
        """Returns a decimal from a number, from text, from bytes in base64, or from an object with bytes and scale."""
        text, mode, form = raw.try_cast("string"), self._mode(written), schema_of_variant(raw)
        is_object, is_text = form.startswith("OBJECT"), form == "STRING"
        base64 = when(is_object, try_variant_get(raw, "$.value", "string")).otherwise(text)
        scale = when(is_object, try_variant_get(raw, "$.scale", "int"))
        scale = scale.otherwise(coalesce(written.scale.try_cast("int"), lit(kind.scale)))
        is_plain = ~is_text | mode.isin("string", "double") | (mode.isNull() & ~text.rlike(_MAY_BE_BYTES))
        found = when(is_object | (is_text & (mode == PRECISE)), _of_bytes(base64, scale)).when(is_plain, text)
        return found.try_cast(kind)


class ConnectParser:
    """What the parsers of keys and of events share: Spark parses an object (`_json`), and further steps convert its
    values. `_raw` and `_typed` are the fields of the same names in their results.
    """

    @property
    def steps(self) -> Sequence[Callable[[Column], Column]]:
        """The steps after `parse`, each a function of the result of the one before it."""
        return (self._arranged, self._converted)

    def parse(self, data: Column) -> Column:
        """Returns the object with its times and decimals as they are written, and its schema."""
        return self._json.parse(data)

    def _arranged(self, parsed: Column) -> Column:
        written = self._values.written(parsed)
        return struct(parsed.alias(_PARSED), written.alias(_WRITTEN), self._raw(parsed).alias(_RAW))

    def _converted(self, arranged: Column) -> Column:
        typed = self._typed(arranged.getField(_RAW), arranged.getField(_WRITTEN))
        return struct(*(arranged.getField(name).alias(name) for name in (_PARSED, _WRITTEN, _RAW)), typed.alias(_TYPED))

    def _raw(self, parsed: Column) -> Column:
        raise NotImplementedError

    def _typed(self, raw: Column, written: Column) -> Column:
        raise NotImplementedError

    @property
    def _values(self) -> ConnectValues:
        raise NotImplementedError

    @property
    def _json(self) -> JsonParser:
        raise NotImplementedError


@dataclass(frozen=True)
class DebeziumKeyParser(ConnectParser):
    """Reads keys of change events, with or without the `schema` and `payload` around them."""

    values: ConnectValues

    def _raw(self, parsed: Column) -> Column:
        return self._json.result(parsed)

    def _typed(self, raw: Column, written: Column) -> Column:
        return self.values.typed(raw, written)

    def problem(self, data: Column, parsed: Column) -> Column:
        """Returns whether there is no object, or one with a value that cannot be read."""
        unread = self.values.problems(*(parsed.getField(name) for name in (_RAW, _TYPED, _WRITTEN)))
        return coalesce(self._json.problem(data, parsed.getField(_PARSED)), *unread)

    def field(self, parsed: Column, name: str) -> Column:
        """Returns a column."""
        return self.result(parsed).getField(name)

    def result(self, parsed: Column) -> Column:
        """Returns the columns in their declared types."""
        return parsed.getField(_TYPED)

    @property
    def _values(self) -> ConnectValues:
        return self.values

    @property
    def _json(self) -> JsonParser:
        return JsonParser(self.values.raw, {}, is_wrapped=True, around=self.values.schema)


@dataclass(frozen=True)
class DebeziumParser(ConnectParser):
    """Reads change events whose rows have the columns `row`, with or without the `schema` and `payload` around them.

    For a message that `written_otherwise` knows, the data are what that returns.
    """

    row: StructType
    options: Mapping[str, str]

    @property
    def steps(self) -> Sequence[Callable[[Column], Column]]:
        """The steps after `parse`; the last one makes a list of the columns without a value, if the source has it."""
        return (*super().steps, self._listed) if lists_unavailable(self.options) else super().steps

    def _listed(self, converted: Column) -> Column:
        """Returns the result of the steps before, with null for each value that the event does not have, and with the
        names of their columns.
        """
        rows, lists = [], {}
        for name in (BEFORE, AFTER):
            row = converted.getField(_TYPED).getField(name)
            columns, found = {each: row.getField(each) for each in self.row.names}, dict(self._unavailable(row))
            columns |= {each: when(~is_unavailable, columns[each]) for each, is_unavailable in found.items()}
            known = struct(*(value.alias(each) for each, value in columns.items()))
            rows.append(when(row.isNotNull(), known).alias(name))
            named = (when(is_unavailable, each) for each, is_unavailable in found.items())
            lists[name] = array_compact(array(*named, lit(None).cast("string")))
        is_deletion = converted.getField(_RAW).getField(OPERATION) == DELETE
        unavailable = when(is_deletion, lists[BEFORE]).otherwise(lists[AFTER])
        others = (converted.getField(name).alias(name) for name in (_PARSED, _WRITTEN, _RAW))
        return struct(*others, struct(*rows).alias(_TYPED), unavailable.alias(UNAVAILABLE))

    def _raw(self, parsed: Column) -> Column:
        return struct(*(self._json.field(parsed, name).alias(name) for name in (OPERATION, BEFORE, AFTER)))

    def _typed(self, raw: Column, written: Column) -> Column:
        return struct(*(self._values.typed(raw.getField(name), written).alias(name) for name in (BEFORE, AFTER)))

    def is_without_row(self, data: Column, parsed: Column) -> Column:
        """Returns whether a message is of Debezium, but not about a row: a heartbeat, the begin or end of a
        transaction, a change of a table's columns, or a message that PostgreSQL writes to its log.
        """
        operation, text = self.field(parsed, OPERATION), data.cast("string")
        keys = json_object_keys(coalesce(get_json_object(text, f"$.{PAYLOAD}"), text))
        has_all = [reduce(and_, (array_contains(keys, name) for name in names)) for names in _WITHOUT_ROW]
        is_heartbeat = array_contains(keys, "ts_ms") & (size(array_except(keys, array(*map(lit, _CLOCKS)))) == 0)
        is_message = (operation == MESSAGE) & array_contains(keys, "message")
        found = when(operation.isNull(), reduce(or_, has_all, is_heartbeat)).otherwise(is_message)
        return coalesce(found, lit(False))

    def problem(self, data: Column, parsed: Column) -> Column:
        """Returns whether there is no event, a row is missing, a value cannot be read, or a value is not known.

        The values of a row after a change that are not known must not replace those that are. A row of nulls alone may
        have names in another letter case, as in an Oracle database.
        """
        operation, before, after = (self.field(parsed, name) for name in (OPERATION, BEFORE, AFTER))
        is_complete = (operation.isin(list(UPSERTS)) & after.isNotNull()) | ((operation == DELETE) & before.isNotNull())
        # `is_complete` is null if there is no operation
        incomplete = when(operation == TRUNCATE, _TRUNCATED).when(~coalesce(is_complete, lit(False)), _EVENT)
        rows = ((parsed.getField(_RAW).getField(name), row) for name, row in ((BEFORE, before), (AFTER, after)))
        unread = [each for row in rows for each in self._values.problems(*row, parsed.getField(_WRITTEN))]
        text = self.options.get(UNKNOWN_VALUE, UNKNOWN)
        unknown = () if lists_unavailable(self.options) else self._unavailable(after)
        unread += [
            when(found, f"has no value for `{name}`, only `{text}`{_REPLICA_IDENTITY}") for name, found in unknown
        ]
        unread.append(self._other_case(data, after))
        return coalesce(self._json.problem(data, parsed.getField(_PARSED)), incomplete, *unread)

    def _unavailable(self, row: Column) -> Iterator[tuple[str, Column]]:
        """Yields each column whose value can be the placeholder of values that are not known, and whether it is."""
        text = self.options.get(UNKNOWN_VALUE, UNKNOWN)
        for each in self.row if text else ():
            found = _Placeholder(text).is_in(row.getField(each.name), each.dataType)
            if found is not None:
                yield each.name, coalesce(found, lit(False))

    def row_text(self, data: Column, parsed: Column) -> Column:
        """Returns the row of a good event as a JSON object, with the fields that unwrapping adds to it."""
        is_deletion = self.field(parsed, OPERATION) == DELETE
        return when(is_deletion, _inside(data, BEFORE)).otherwise(_inside(data, AFTER))

    def _other_case(self, data: Column, row: Column) -> Column:
        inner = _inside(data.cast("string"), AFTER)
        is_empty = reduce(and_, (row.getField(name).isNull() for name in self.row.names))
        return when(row.isNotNull() & is_empty, other_case(json_object_keys(inner), self.row.names))

    def field(self, parsed: Column, name: str) -> Column:
        """Returns the operation, the columns of `row` without a value, or a row in its declared types; the row of a
        deletion is the one before it.
        """
        if name == OPERATION:
            return parsed.getField(_RAW).getField(name)
        if name == UNAVAILABLE:
            return parsed.getField(name)
        typed = parsed.getField(_TYPED)
        if name in (BEFORE, AFTER):
            return typed.getField(name)
        is_deletion = self.field(parsed, OPERATION) == DELETE
        return when(is_deletion, typed.getField(BEFORE)).otherwise(typed.getField(AFTER))

    def result(self, parsed: Column) -> Column:
        """Returns the event."""
        return parsed

    @property
    def _values(self) -> ConnectValues:
        return ConnectValues(self.row, self.options)

    @property
    def _json(self) -> JsonParser:
        fields = {OPERATION: StringType(), BEFORE: self._values.raw, AFTER: self._values.raw}
        own = (TIME_UNIT, DECIMAL_MODE, UNKNOWN_VALUE, LIST_UNAVAILABLE)
        options = {name: value for name, value in self.options.items() if name not in own}
        event = StructType([StructField(name, kind) for name, kind in fields.items()])
        return JsonParser(event, options, is_wrapped=True, around=self._values.schema)


def written_otherwise(data: Column) -> Column:
    """Returns the text of an event for an unwrapped row, and for an event of MongoDB, whose rows are documents in
    texts; null for any other message.
    """
    text = data.cast("string")
    is_wrapped, deleted = get_json_object(text, f"$.{PAYLOAD}.{_DELETED}").isNotNull(), _inside(text, _DELETED)
    is_deletion = deleted == "true"
    operation = when(is_deletion, DELETE).otherwise(coalesce(_inside(text, f"{UNWRAPPED_PREFIX}op"), lit("u")))
    name = when(is_deletion, f'"{BEFORE}":').otherwise(f'"{AFTER}":')
    parts = when(is_wrapped, concat(regexp_extract(text, _WRAPPED, 1), name, regexp_extract(text, _WRAPPED, 2)))
    row = concat(lit('{"op":"'), operation, lit('",'), parts.otherwise(concat(name, text, lit("}"))))
    before, after = (coalesce(_plain(_inside(text, each)), lit("null")) for each in (BEFORE, AFTER))
    operation = coalesce(_inside(text, OPERATION), lit(""))
    event = concat(lit('{"op":"'), operation, lit(f'","{BEFORE}":'), before, lit(f',"{AFTER}":'), after, lit("}"))
    # to search for a text is faster than to parse, and most messages have neither
    is_row = text.contains(f'"{_DELETED}"') & deleted.isNotNull()
    is_document = text.contains('"mongodb"') & (_inside(text, "source.connector") == "mongodb")
    return when(is_row, row).when(is_document, event)


def _inside(text: Column, path: str) -> Column:
    return coalesce(get_json_object(text, f"$.{PAYLOAD}.{path}"), get_json_object(text, f"$.{path}"))


def _plain(document: Column) -> Column:
    """Returns a document of MongoDB with plain numbers, ids and bytes instead of objects with their types."""
    return regexp_replace(regexp_replace(document, _DOCUMENT_NUMBER, "$1"), _DOCUMENT_TEXT, "$1$2$3")


def _at(fields: Column, field: str, part: str, *, of_items: bool = False) -> Column:
    """Returns a part of the schema of a field, or of the items of its lists; null if there is none."""
    place = (array_position(fields.getField("field"), field) - 1).cast("int")
    return get((fields.getField("items") if of_items else fields).getField(part), place)


def _of_bytes(base64: Column, scale: Column) -> Column:
    """Returns the text of a decimal from its unscaled value, bytes of a signed number with the highest one first; null
    if it has too many digits. It has a function with a lambda, because without one its plan would be far larger.
    """
    data = when(length(base64) % 4 == 0, try_to_binary(base64, lit("base64")))  # text without padding is something else
    is_negative = substring(hex_(data), 1, 1) >= "8"
    # all bits of a negative number are inverted, so that no part of the sum has too many digits
    digits = when(is_negative, translate(hex_(data), "0123456789ABCDEF", "FEDCBA9876543210")).otherwise(hex_(data))
    digits = lpad(digits, lit(32), lit("0"))
    value = aggregate(
        array(*map(lit, (1, 9, 17, 25))),
        lit(0).cast(_WIDE),
        lambda sum_, at: try_add(
            try_multiply(sum_, lit(2**32)), conv(digits.substr(at, lit(8)), 16, 10).cast("decimal(10,0)")
        ).cast(_WIDE),
    )
    # the sign is text, because Spark's minus keeps only 34 digits
    signed = when(is_negative, concat(lit("-"), try_add(value, lit(1)).cast("string"))).otherwise(value.cast("string"))
    return when(length(data).between(1, 16), concat(signed, lit("E"), (-scale).cast("string")))


@dataclass(frozen=True)
class _Placeholder:
    """Finds what Debezium writes in place of a value that it does not have, for the configured `text`.

    It depends on the type in the database: the class UnchangedToastedPlaceholder of its connector has the list.
    """

    text: str

    def is_in(self, value: Column, kind: DataType) -> Column | None:
        """Returns whether a value is the placeholder or contains it; None if no value of its type can."""
        if isinstance(kind, StringType):
            return value.isin(*self._texts)
        if isinstance(kind, BinaryType):
            return value.isin(bytearray(self._data), *_UNKNOWN_PLACES)
        if isinstance(kind, VariantType):
            return coalesce(try_variant_get(value, "$", "string"), lit("")).isin(*self._texts)
        if isinstance(kind, ArrayType):
            return self._in_list(value, kind.elementType)
        if isinstance(kind, MapType):
            return self._in_any(map_values(value), kind.valueType)
        if isinstance(kind, StructType):
            return self._in_struct(value, kind)
        return None

    @property
    def _data(self) -> bytes:
        return self.text.encode()

    @property
    def _texts(self) -> list[str]:
        """The placeholder itself, of bytes (`binary.handling.mode`), of a UUID in a list, and of HSTORE as JSON."""
        data = self._data
        encoded = {b64encode(data).decode(), urlsafe_b64encode(data).decode(), data.hex(), data.hex().upper()}
        named = UUID(bytes=md5(data, usedforsecurity=False).digest(), version=3)  # as Java's UUID.nameUUIDFromBytes
        document = {self.text: self.text}
        objects = (json.dumps(document), json.dumps(document, separators=(",", ":")))
        return [self.text, *sorted(encoded), str(named), *objects]

    def _in_list(self, values: Column, kind: DataType) -> Column | None:
        """Returns whether a list has the placeholder, or is the one of a list of numbers or dates: its bytes."""
        found = self._in_any(values, kind)
        numbers = array(*(lit(byte - 256 if byte > 127 else byte) for byte in self._data))  # Java's bytes have a sign
        if isinstance(kind, DateType):
            return values == transform(numbers, date_from_unix_date)
        if not isinstance(kind, NumericType | StringType):
            return found
        is_bytes = values == numbers.try_cast(ArrayType(kind))
        return is_bytes if found is None else found | is_bytes

    def _in_any(self, values: Column, kind: DataType) -> Column | None:
        # asks only whether a value of this type can have it
        if self.is_in(lit(None), kind) is None:
            return None

        def has(value: Column) -> Column:
            found = self.is_in(value, kind)
            return lit(False) if found is None else coalesce(found, lit(False))

        return exists(values, has)

    def _in_struct(self, value: Column, kind: StructType) -> Column | None:
        parts = [self.is_in(value.getField(each.name), each.dataType) for each in kind]
        if all(each in kind.names and isinstance(kind[each].dataType, NumericType) for each in "xy"):
            parts.append((value.getField("x") == _UNKNOWN_POINT) & (value.getField("y") == _UNKNOWN_POINT))
        found = [coalesce(part, lit(False)) for part in parts if part is not None]
        return reduce(or_, found) if found else None


_REPLICA_IDENTITY = ", because the change left it as it was; PostgreSQL sends it with REPLICA IDENTITY FULL"

_UNKNOWN_POINT = -99_999_999
"""Both coordinates of a point that is not known."""

_UNKNOWN_PLACES = tuple(
    bytearray.fromhex(f"0101000020E6100000{place}")
    for place in ("000000FC83D797C1000000FC83D797C1", "0C21E7FDFF7F66401842CEFBFF7F5640")
)
"""The bytes (WKB) of a geometry and of a geography that are not known."""

_EVENT = "is not a change event of Debezium with the rows of its operation"
_TRUNCATED = "says that the table was truncated, which is not a change of a row"
_TIME = "has a time that is neither ISO text nor a number of a known unit in the years 1 to 9999"

_WITHOUT_ROW = (("source", "databaseName", "ddl"), ("status", "id", "event_count", "data_collections"))
"""The fields of changes of a table's columns, and of the begin and end of a transaction."""

_CLOCKS = ("ts_ms", "ts_us", "ts_ns")
"""The fields of a heartbeat."""

UNWRAPPED_PREFIX = "__"
"""The start of the names of all fields that unwrapping adds to a row."""

_DELETED = f"{UNWRAPPED_PREFIX}deleted"
"""The field with which Debezium's ExtractNewRecordState marks rows, if it keeps those of deletions."""

_WRAPPED = rf'(?s)^\s*\{{(.*?)"{PAYLOAD}"\s*:(.*)$'
"""A text with a schema: what is before the name of the payload, and what is after it."""

_MAY_BE_BYTES = r"^(?:[0-9eE+]{4})+$"
"""Text that is both a decimal and base64."""

_WIDE, _FACTOR = "decimal(38,0)", "decimal(14,3)"

_DOCUMENT_DATE = r'^\{"\$date":"?([^"{}]+)"?\}$'
_DOCUMENT_NUMBER = r'\{\s*"\$number(?:Int|Long|Double|Decimal)"\s*:\s*"?(-?[0-9][0-9.eE+-]*)"?\s*\}'
_DOCUMENT_TEXT = (
    r'\{\s*"\$(?:oid|symbol)"\s*:\s*("(?:[^"\\]|\\.)*")\s*\}'
    r'|\{\s*"\$binary"\s*:\s*("[^"]*")\s*(?:,\s*"\$type"\s*:\s*"[^"]*"\s*)?\}'
    r'|\{\s*"\$binary"\s*:\s*\{\s*"base64"\s*:\s*("[^"]*")[^{}]*\}\s*\}'
)
"""Values of MongoDB's extended JSON, which are objects with the name of a type. In a text, quotes have a backslash, so
a pattern does not match inside one. https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/
"""
