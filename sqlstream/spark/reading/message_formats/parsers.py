"""Parsers of the keys and values of messages, one for each format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Protocol

from pyspark.sql import Column
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import (
    array,
    array_except,
    arrays_overlap,
    coalesce,
    concat,
    concat_ws,
    conv,
    from_json,
    get,
    is_valid_utf8,
    json_object_keys,
    length,
    lit,
    lower,
    regexp_extract_all,
    split,
    struct,
    substring,
    to_json,
    when,
)
from pyspark.sql.functions import hex as hex_
from pyspark.sql.protobuf.functions import from_protobuf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from sqlstream.project.declarations.on_corrupt import CORRUPT_OPTION
from sqlstream.project.messages.avro import AvroSchemaError, AvroSchemas, avro_type
from sqlstream.project.messages.avro_resolution import read_as
from sqlstream.project.types.data_types import Field, Struct, columns_ddl
from sqlstream.spark.reading.corrupt import with_corrupt
from sqlstream.state.signature.source_checks import CORRUPT

HEADER_BYTES = 5
"""The length of the header of a message in the wire format of a schema registry."""

MAX_BYTES = 2**31 - 1

DESCRIPTOR, MESSAGE_NAME = "descriptor", "message"
"""The options of Protobuf: a descriptor file of the project, and the full name of the message."""

PAYLOAD = "payload"

MOST_NAMED_FIELDS = 100
"""The number of fields of a corrupt object that are tried, so that the plan of a wide table does not become huge."""

NOT_READ = "is not a JSON object with the declared types"

WITHIN = "value"
"""The field of the outer record of Avro."""


def other_case(keys: Column, names: Sequence[str]) -> Column:
    """Returns which of the `keys` of a JSON object differ from one of the declared `names` only in letter case; null if
    none does, or if the object has the declared name too.

    It has no function with a lambda, for which Spark generates no code: such a plan is slower for all messages.
    """
    declared = array(*map(lit, names))
    # Most objects have no such key. This takes less time to see than which one it is.
    others = lower(concat_ws("\0", array_except(keys, declared)))
    can_differ = arrays_overlap(split(others, "\0"), array(*(lit(name.lower()) for name in names)))
    # The keys become one text, separated by \0. The pattern finds whole keys in it that are a declared name in any
    # letter case; \Q and \E quote the names. Without a missing name it would find empty keys, but for (?=[^\x00]).
    missing = concat_ws(r"\E|\Q", array_except(declared, keys))
    pattern = concat(lit(r"(?iu)(?<![^\x00])(?=[^\x00])(?:\Q"), missing, lit(r"\E)(?![^\x00])"))
    similar = regexp_extract_all(concat_ws("\0", keys), pattern, lit(0))
    start = "has fields whose names differ from the declared columns in case: "
    return when(can_differ, _listed(start, array_except(similar, declared)))


def _listed(start: str, *texts: Column) -> Column:
    """Returns `start` and those of the `texts`, or of their items, that are not null; null if there are none.

    Spark writes code for each copy of an expression, in each task of each batch, so `texts` are in it only once.
    """
    found = regexp_extract_all(concat(lit(start), concat_ws(", ", *texts)), lit(rf"(?s)\A{start}.+\z"), lit(0))
    return get(found, lit(0))


class Parser(Protocol):
    """Parses the bytes of one column."""

    def parse(self, data: Column) -> Column:
        """Returns the parsed form of `data`, which may also have what the other methods need."""

    def problem(self, data: Column, parsed: Column) -> Column | None:
        """Returns why `data`, which is not null, is corrupt, such as `is not UTF-8`; null if it is good.

        Returns None if no data is corrupt.
        """

    def field(self, parsed: Column, name: str) -> Column:
        """Returns one column of good data; text and bytes have only one."""

    def result(self, parsed: Column) -> Column:
        """Returns what models see of good data: text, bytes or a struct; null for null."""


@dataclass(frozen=True)
class RawParser:
    """Leaves bytes as they are."""

    def parse(self, data: Column) -> Column:
        """Returns `data`."""
        return data

    def problem(self, _data: Column, _parsed: Column) -> None:
        """Returns None."""

    def field(self, parsed: Column, _name: str) -> Column:
        """Returns `parsed`."""
        return parsed

    def result(self, parsed: Column) -> Column:
        """Returns `parsed`."""
        return parsed


@dataclass(frozen=True)
class TextParser:
    """Reads UTF-8 text."""

    def parse(self, data: Column) -> Column:
        """Returns `data` as text."""
        return data.cast("string")

    def problem(self, _data: Column, parsed: Column) -> Column:
        """Returns whether the bytes are not UTF-8, which Spark would not notice."""
        return when(~is_valid_utf8(parsed), "is not UTF-8")

    def field(self, parsed: Column, _name: str) -> Column:
        """Returns `parsed`."""
        return parsed

    def result(self, parsed: Column) -> Column:
        """Returns `parsed`."""
        return parsed


@dataclass(frozen=True)
class JsonParser:
    """Reads JSON objects with the fields of `schema`.

    With `is_wrapped`, an object can also be the `payload` of another one, as Kafka Connect writes it with schemas;
    `around` are fields of the outer one.
    """

    schema: StructType
    options: Mapping[str, str]
    is_wrapped: bool = False
    around: Sequence[StructField] = ()

    def parse(self, data: Column) -> Column:
        """Returns the fields, and the text of an object that Spark cannot read."""
        outer = [*self.around, StructField(PAYLOAD, self.schema)] if self.is_wrapped else []
        return from_json(data.cast("string"), with_corrupt(StructType([*self.schema, *outer])), self._options)

    def problem(self, data: Column, parsed: Column) -> Column:
        """Returns whether there is no object, one with a field that Spark cannot read, or one whose field differs from
        a declared column only in letter case, which Spark would ignore. For blank text Spark returns null.
        """
        unread, names = self.unread(data, parsed), self.schema.names
        if self.is_wrapped or not names:
            return unread
        # to list its keys, Spark parses an object again, so not one that has all fields
        lacks_field = reduce(or_, (parsed.getField(name).isNull() for name in names))
        keys = json_object_keys(data.cast("string"))
        return coalesce(unread, when(lacks_field, other_case(keys, names)))

    def unread(self, data: Column, parsed: Column) -> Column:
        """Returns whether there is no object, or one with a field that Spark cannot read."""
        corrupt = parsed.isNull() | parsed.getField(CORRUPT).isNotNull()
        return when(corrupt, self._unread(data.cast("string")))

    def _unread(self, text: Column) -> Column:
        """Returns which fields of a corrupt object Spark cannot read. Spark itself says it only in an error, so each
        field is parsed alone; this expression runs only for corrupt messages.
        """
        found = self._read(text, [StructField("_sqlstream_no_field", StringType())])
        is_object = found.isNotNull() & found.getField(CORRUPT).isNull()
        leaves = list(self._leaves())[:MOST_NAMED_FIELDS]
        read = [(self._read(text, leaf), f"`{name}` as {kind}") for name, kind, leaf in leaves]
        unread = [when(value.getField(CORRUPT).isNotNull(), described) for value, described in read]
        named = coalesce(_listed("has a field that cannot be read: ", *unread), lit(NOT_READ))
        return when(is_object, named).otherwise("is not a JSON object")

    def _leaves(self) -> Iterator[tuple[str, str, list[StructField]]]:
        """Yields the name and type of each field, and those in the rows of a wrapped object, alone in their object."""
        for each in self.schema.fields:
            parts = each.dataType.fields if self.is_wrapped and isinstance(each.dataType, StructType) else [None]
            for part in parts:
                alone = each if part is None else StructField(each.name, StructType([part]))
                wrapped = [StructField(PAYLOAD, StructType([alone]))] if self.is_wrapped else []
                name = each.name if part is None else f"{each.name}.{part.name}"
                yield name, (part or each).dataType.simpleString(), [alone, *wrapped]

    def _read(self, text: Column, fields: list[StructField]) -> Column:
        return from_json(text, with_corrupt(StructType(fields)), self._options)

    @property
    def _options(self) -> dict[str, str]:
        return {**self.options, "mode": "PERMISSIVE", CORRUPT_OPTION: CORRUPT}

    def field(self, parsed: Column, name: str) -> Column:
        """Returns a field."""
        if not self.is_wrapped:
            return parsed.getField(name)
        payload = parsed.getField(PAYLOAD)
        return when(payload.isNotNull(), payload.getField(name)).otherwise(parsed.getField(name))

    def result(self, parsed: Column) -> Column:
        """Returns the fields."""
        return when(parsed.isNotNull(), struct(*(self.field(parsed, name).alias(name) for name in self.schema.names)))


@dataclass(frozen=True)
class AvroParser:
    """Reads Avro, by the schema that the header of a message names, as the reader's schema. `columns` are the fields of
    the record that models can read, all without them.

    A record in a record has the same bytes as the inner one, so each schema is put into another record: for bytes that
    cannot be read, Spark returns the outer one with a null in it, and not a record of nulls.
    """

    schemas: AvroSchemas
    options: Mapping[str, str]
    columns: Sequence[Field] = ()

    def parse(self, data: Column) -> Column:
        """Returns the record within another one; null for a message whose schema is not pinned."""
        reader = self.schemas.reader
        return self._by_writer(data, lambda body, writer: self._read(body, writer, read_as(reader, writer)[0]))

    def problem(self, data: Column, parsed: Column) -> Column:
        """Returns whether the header or the bytes after it are wrong."""
        unread = when(parsed.isNull() | parsed.getField(WITHIN).isNull(), "cannot be read with its Avro schema")
        if not self.schemas.writers:
            return unread
        # the wire format: a byte 0, and the id of the schema in four bytes
        is_framed = (length(data) >= HEADER_BYTES) & (substring(data, 1, 1) == lit(bytearray(1)))
        number = conv(hex_(substring(data, 2, 4)), 16, 10)
        missing = concat(lit("has the schema id "), number, lit(f", which is not in {self.schemas.path}"))
        found = when(~is_framed, "does not begin with a schema id").when(
            ~self._header(data).isin([_header_of(number) for number in self.schemas.writers]), missing
        )
        for each, name, misread in self._misread():
            value = parsed.getField(WITHIN) if name is None else self.field(parsed, name)
            is_misread = (self._header(data) == lit(_header_of(each))) & value.isNotNull()
            found = found.when(is_misread, f"has the schema id {each}, in which {misread}")
        return found.otherwise(unread)

    def _misread(self) -> Iterator[tuple[int, str | None, str]]:
        """Yields what the reader's schema would misread: the id of the writer's schema, the field of the record, and
        the difference. The field is None in a value that is no record, or one of several.
        """
        kind = avro_type(self.schemas.reader)
        names = {field.name for field in kind.fields} if isinstance(kind, Struct) else set()
        read = {field.name for field in self.columns} or names
        for number, writer in self.schemas.writers.items():
            for name, misread in read_as(self.schemas.reader, writer)[1].items():
                if name not in names:  # also in a union of records
                    yield number, None, misread
                elif name in read:
                    yield number, name, misread

    def field(self, parsed: Column, name: str) -> Column:
        """Returns a field of the record; the value itself if the schema is not that of a record."""
        inner = parsed.getField(WITHIN)
        return inner.getField(name) if isinstance(avro_type(self.schemas.reader), Struct) else inner

    def result(self, parsed: Column) -> Column:
        """Returns the record."""
        return parsed.getField(WITHIN)

    def text(self, data: Column) -> Column:
        """Returns a good record as its writer wrote it, as a JSON object; null if it has no fields but the columns, or
        if Spark cannot read the others.
        """
        known = Struct(tuple(self.columns))

        def written(body: Column, writer: str) -> Column:
            try:
                kind = avro_type(writer)
            except AvroSchemaError:  # such as a record that contains itself in a field that is not declared
                kind = known
            if kind == known or not isinstance(kind, Struct):
                return lit(None).cast("string")
            record = self._read(body, writer, _for_json(writer, self.schemas.reader)).getField(WITHIN)
            return to_json(record, {"ignoreNullFields": "false"})

        return self._by_writer(data, written)

    def _by_writer(self, data: Column, read: Callable[[Column, str], Column]) -> Column:
        """Returns what `read` returns for the bytes of a record and the schema of its writer; null without one."""
        if not self.schemas.writers:
            return read(data, self.schemas.reader)
        body = substring(data, HEADER_BYTES + 1, MAX_BYTES)
        branches = [
            (self._header(data) == lit(_header_of(number)), read(body, writer))
            for number, writer in self.schemas.writers.items()
        ]
        (first, found), *others = branches
        return reduce(lambda chain, branch: chain.when(*branch), others, when(first, found))

    def _read(self, data: Column, writer: str, reader: str) -> Column:
        # from_avro takes the schema of the writer as an argument, and that of the reader as an option
        options = {**self.options, "mode": "PERMISSIVE", "avroSchema": _in_record(reader)}
        return from_avro(data, _in_record(writer), options)

    @staticmethod
    def _header(data: Column) -> Column:
        return substring(data, 1, HEADER_BYTES)


@dataclass(frozen=True)
class ProtobufParser:
    """Reads messages of Protobuf, by a descriptor file."""

    schema: StructType
    options: Mapping[str, str]

    def parse(self, data: Column) -> Column:
        """Returns the message; null for bytes that cannot be read."""
        rest = {name: value for name, value in self.options.items() if name not in (MESSAGE_NAME, DESCRIPTOR)}
        options = {**rest, "mode": "PERMISSIVE"}
        return from_protobuf(data, self.options.get(MESSAGE_NAME, ""), self.options.get(DESCRIPTOR), options)

    def problem(self, _data: Column, parsed: Column) -> Column:
        """Returns whether there is no message."""
        return when(parsed.isNull(), "is not a Protobuf message of the declared type")

    def field(self, parsed: Column, name: str) -> Column:
        """Returns a field, in its declared type."""
        return parsed.getField(name).cast(self.schema[name].dataType)

    def result(self, parsed: Column) -> Column:
        """Returns the message."""
        return parsed


def _header_of(number: int) -> bytearray:
    return bytearray(b"\0" + number.to_bytes(4, "big"))


def _in_record(schema: str) -> str:
    field = {"name": WITHIN, "type": json.loads(schema)}
    return json.dumps({"type": "record", "name": "sqlstream_message", "fields": [field]})


def _for_json(writer: str, reader: str) -> str:
    """Returns the writer's schema with numbers in place of times of day, which Spark 4.1 cannot write as JSON, and with
    the reader's names of the fields of a record.
    """

    def plain(each: dict[str, object]) -> dict[str, object]:
        is_time = each.get("logicalType") == "time-micros"
        return {name: value for name, value in each.items() if not (is_time and name == "logicalType")}

    written, read = json.loads(writer, object_hook=plain), json.loads(reader)
    is_record = isinstance(written, dict) and isinstance(read, dict)  # a union can have several
    fields = {field["name"]: field for field in written.get("fields", ())} if is_record else {}
    for field in read.get("fields", ()) if is_record else ():
        before = next((name for name in field.get("aliases", ()) if name in fields), None)
        if field["name"] not in fields and before is not None:
            fields[before] |= {"name": field["name"], "aliases": [before]}
    return json.dumps(written)


def struct_of(columns: Sequence[Field]) -> StructType:
    """Returns the columns as Spark's type. Raises: Spark's errors."""
    found = DataType.fromDDL(columns_ddl(columns))
    return found if isinstance(found, StructType) else StructType()
