"""Parsers of the keys and values of messages, one for each format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column
from pyspark.sql.functions import from_json, is_valid_utf8, lit, struct, when
from pyspark.sql.types import DataType, StructType

from sqlstream.project.messages.message_format import RAW, TEXT, MessageFormat
from sqlstream.project.on_corrupt import CORRUPT_OPTION
from sqlstream.project.types.ddl import columns_ddl
from sqlstream.project.types.types import Field, Struct
from sqlstream.spark.reading.corrupt import CORRUPT, with_corrupt


class Parser(Protocol):
    """Parses the bytes of one column."""

    def parse(self, data: Column) -> Column:
        """Returns the parsed form of `data`, which may also have what the other methods need."""

    def problem(self, data: Column, parsed: Column) -> Column:
        """Returns why `data`, which is not null, is corrupt, such as `is not UTF-8`; null if it is good."""

    def result(self, parsed: Column) -> Column:
        """Returns what models see of good data: text, bytes or a struct; null for null."""


@dataclass(frozen=True)
class RawParser:
    """Leaves bytes as they are."""

    def parse(self, data: Column) -> Column:
        """Returns `data`."""
        return data

    def problem(self, _data: Column, _parsed: Column) -> Column:
        """Returns null."""
        return lit(None).cast("string")

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

    def result(self, parsed: Column) -> Column:
        """Returns `parsed`."""
        return parsed


@dataclass(frozen=True)
class JsonParser:
    """Reads JSON objects with the fields of `schema`."""

    schema: StructType
    options: Mapping[str, str]

    def parse(self, data: Column) -> Column:
        """Returns the fields, and the text of an object that Spark cannot read."""
        options = {**self.options, "mode": "PERMISSIVE", CORRUPT_OPTION: CORRUPT}
        return from_json(data.cast("string"), with_corrupt(self.schema), options)

    def problem(self, _data: Column, parsed: Column) -> Column:
        """Returns whether there is no object, or one that Spark cannot read. For blank text Spark returns null."""
        corrupt = parsed.isNull() | parsed.getField(CORRUPT).isNotNull()
        return when(corrupt, "is not a JSON object with the declared types")

    def result(self, parsed: Column) -> Column:
        """Returns the fields."""
        return when(parsed.isNotNull(), struct(*(parsed.getField(name).alias(name) for name in self.schema.names)))


def value_parser(messages: MessageFormat, options: Mapping[str, str]) -> Parser:
    """Returns the parser of values; `options` are those of `messages` with all secrets."""
    return _parser(messages.value_format, messages.columns, options)


def key_parser(messages: MessageFormat) -> Parser:
    """Returns the parser of keys."""
    return _parser(messages.key_format, messages.key.fields if isinstance(messages.key, Struct) else (), {})


def _parser(form: str, columns: tuple[Field, ...], options: Mapping[str, str]) -> Parser:
    if form == RAW:
        return RawParser()
    if form == TEXT:
        return TextParser()
    return JsonParser(struct_of(columns), options)


def struct_of(columns: Sequence[Field]) -> StructType:
    """Returns the columns as Spark's type. Raises: Spark's errors."""
    found = DataType.fromDDL(columns_ddl(columns))
    return found if isinstance(found, StructType) else StructType()
