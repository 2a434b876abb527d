"""Spark's data types as frozen values, also read from the JSON of a Spark schema, and written as DDL.

A type's `str()` is Spark's catalog string: `array<struct<a:int,b:decimal(10,2)>>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ALIASES = {
    "byte": "tinyint",
    "character": "char",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "short": "smallint",
    "timestamp_ltz": "timestamp",
}
"""Spark's aliases of types."""

PLAIN_NAMES = frozenset(
    {
        *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary", "void", "variant"),
        *("date", "timestamp", "timestamp_ntz", "interval"),
    }
)
"""The names of types without parameters (`trivialPrimitiveType` in `SqlBaseParser.g4` of Spark 4.3)."""


@dataclass(frozen=True)
class Primitive:
    """A type without parts. `name` is Spark's main name, such as `bigint` or `interval day to second`. `parameters` are
    those of `char(5)`, `varchar(5)`, `time(6)`, `geometry(4326)` and `geography(4326)`.
    """

    name: str
    parameters: tuple[str, ...] = ()
    collation: str | None = None

    def __str__(self) -> str:
        sized = f"{self.name}({','.join(self.parameters)})" if self.parameters else self.name
        return f"{sized} collate {self.collation}" if self.collation else sized


MICROS = ("micros",)
"""The parameters of a time in microseconds, in the type of an Avro file."""


@dataclass(frozen=True)
class Decimal:
    """A number of `precision` digits, `scale` of them after the point."""

    precision: int = 10
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class Array:
    """A list of values of one type."""

    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True)
class Map:
    """Values by key."""

    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True)
class Field:
    """One field of a struct, or one column of a schema. Spark ignores the letter case of its name."""

    name: str
    type: DataType
    nullable: bool = True
    comment: str = ""


@dataclass(frozen=True)
class Struct:
    """Named fields in order. A schema is a struct too. Spark allows fields with the same name."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"struct<{','.join(f'{field.name}:{field.type}' for field in self.fields)}>"

    def field(self, name: str) -> Field | None:
        """Returns the first field of that name, in any letter case."""
        return next((field for field in self.fields if field.name.lower() == name.lower()), None)


@dataclass(frozen=True)
class Unknown:
    """A type that only Spark can interpret. `text` is its DDL."""

    text: str

    def __str__(self) -> str:
        return self.text


DataType = Primitive | Decimal | Array | Map | Struct | Unknown

_SIZED = re.compile(r"(?P<name>char|varchar|time|geometry|geography)\((?P<parameters>[^()]*)\)")
_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_INTERVAL = re.compile(r"interval (?:(?:year|month)(?: to month)?|(?:day|hour|minute|second)(?: to \w+)?)")


_WITH_PARTS: Mapping[type, str] = {Array: "array", Map: "map", Struct: "struct", Decimal: "decimal"}


def type_name(type_: DataType) -> str:
    """Returns the name of a type without its parts, such as `bigint`, `decimal` or `struct`; empty if unknown."""
    return type_.name if isinstance(type_, Primitive) else _WITH_PARTS.get(type(type_), "")


_LARGER = {
    "tinyint": ("smallint", "int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}


def includes(wide: DataType, narrow: DataType) -> bool:
    """Returns whether a type that has no parts has all values of the type `narrow`: it is the same one, or has larger
    numbers or more digits.
    """
    if isinstance(wide, Decimal) and isinstance(narrow, Decimal):
        return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
    return wide == narrow or type_name(wide) in _LARGER.get(type_name(narrow), ())


def read_json_schema(text: str) -> Struct | Unknown:
    """Returns the schema in the output of Spark's `df.schema.json()`; Unknown for text of any other form. An unknown
    type, such as a user-defined one, becomes Unknown.
    """
    try:
        found = _from_json(json.loads(text))
    except (json.JSONDecodeError, RecursionError):
        return Unknown(text)
    return found if isinstance(found, Struct) else Unknown(text)


def _from_json(value: object) -> DataType:
    if isinstance(value, str):
        return _named(value)
    if not isinstance(value, dict):
        return Unknown(json.dumps(value))
    if value.get("type") == "array":
        return Array(_from_json(value.get("elementType")), value.get("containsNull") is not False)
    if value.get("type") == "map":
        key, item = _from_json(value.get("keyType")), _from_json(value.get("valueType"))
        return Map(key, item, value.get("valueContainsNull") is not False)
    fields = value.get("fields")
    if value.get("type") == "struct" and isinstance(fields, list) and all(isinstance(field, dict) for field in fields):
        return Struct(tuple(map(_field_from_json, fields)))
    return Unknown(json.dumps(value))


def _field_from_json(field: Mapping[str, object]) -> Field:
    metadata = field.get("metadata")
    comment = metadata.get("comment", "") if isinstance(metadata, dict) else ""
    nullable = field.get("nullable") is not False
    return Field(str(field.get("name", "")), _from_json(field.get("type")), nullable, str(comment))


def _named(text: str) -> DataType:
    name, _, collation = text.strip().partition(" collate ")
    name = ALIASES.get(name, name)
    if decimal := _DECIMAL.fullmatch(name):
        return Decimal(int(decimal[1]), int(decimal[2]))
    if sized := _SIZED.fullmatch(name):
        parameters = tuple(part.strip() for part in sized["parameters"].split(","))
        return Primitive(sized["name"], parameters, collation or None)
    if name in PLAIN_NAMES or _INTERVAL.fullmatch(name):
        return Primitive(name, collation=collation or None)
    return Decimal() if name == "decimal" else Primitive("void") if name == "null" else Unknown(text)


def type_ddl(kind: DataType, *, as_written: bool = False) -> str:
    """Returns a type as DDL: ``struct<`a b`: array<int>>``. Spark reads all fields as nullable. `as_written` is the
    form for readers, with backquotes only where they are needed, and with NOT NULL and the comments of fields.
    """
    if isinstance(kind, Array):
        return f"array<{type_ddl(kind.element, as_written=as_written)}>"
    if isinstance(kind, Map):
        value = type_ddl(kind.value, as_written=as_written)
        return f"map<{type_ddl(kind.key, as_written=as_written)}, {value}>"
    if isinstance(kind, Struct):
        return f"struct<{_fields_ddl(kind.fields, ': ', as_written=as_written)}>"
    return str(kind)


def columns_ddl(fields: Sequence[Field], *, as_written: bool = False) -> str:
    """Returns the columns of a schema as DDL, in the forms of `type_ddl`."""
    return _fields_ddl(fields, " ", as_written=as_written)


def _fields_ddl(fields: Sequence[Field], between: str, *, as_written: bool) -> str:
    texts = []
    for field in fields:
        text = f"{name_ddl(field.name, as_written=as_written)}{between}{type_ddl(field.type, as_written=as_written)}"
        null = " NOT NULL" if as_written and not field.nullable else ""
        comment = f" COMMENT '{field.comment}'" if as_written and field.comment else ""
        texts.append(f"{text}{null}{comment}")
    return ", ".join(texts)


def name_ddl(name: str, *, as_written: bool = False) -> str:
    """Returns a name in DDL with backquotes, `as_written` only where they are needed."""
    return name if as_written and _SIMPLE_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
