"""Avro schemas: as Spark's data types, as `SchemaConverters` of Spark's Avro connector converts them, those of files,
and those of a registry that are pinned in the project.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import quote

from sqlstream.project.types.data_types import MICROS, Array, DataType, Decimal, Field, Map, Primitive, Struct

PRIMITIVES = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}

LOGICAL: Mapping[tuple[str, str], DataType] = {
    ("int", "date"): Primitive("date"),
    ("long", "time-micros"): Primitive("time", ("6",)),
    ("long", "timestamp-millis"): Primitive("timestamp"),
    ("long", "timestamp-micros"): Primitive("timestamp"),
    ("long", "local-timestamp-millis"): Primitive("timestamp_ntz"),
    ("long", "local-timestamp-micros"): Primitive("timestamp_ntz"),
}
"""Logical types that change Spark's type. Spark ignores all others but decimals."""

# with `MICROS`, which say more than Spark's type
_IN_FILES = {
    **LOGICAL,
    ("long", "timestamp-micros"): Primitive("timestamp", MICROS),
    ("long", "local-timestamp-micros"): Primitive("timestamp_ntz", MICROS),
}

_MAGIC = b"Obj\x01"

_SCHEMA = b"avro.schema"

_LONGEST = 10
"""The most bytes of a number."""

_MOST_DIGITS = 38

NAMED = ("record", "enum", "fixed")


class AvroSchemaError(ValueError):
    """A text is not an Avro schema that Spark can read; the message says why."""


def avro_type(text: str, logical: Mapping[tuple[str, str], DataType] = LOGICAL) -> DataType:
    """Returns the Spark type of an Avro schema in JSON; `logical` has those of the logical types of primitive ones.

    Raises: AvroSchemaError.
    """
    try:
        schema = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        message = f"the JSON is not valid: {error}"
        raise AvroSchemaError(message) from error
    return _Converter(logical).convert(schema, "")


def file_type(file: BinaryIO) -> DataType:
    """Returns the type of the rows of an Avro file, with `MICROS` as the parameters of times in microseconds:
    https://avro.apache.org/docs/1.12.0/specification/#object-container-files.

    Raises: AvroSchemaError if it is no such file, OSError.
    """
    if file.read(len(_MAGIC)) != _MAGIC:
        message = "the file does not begin as an Avro file does"
        raise AvroSchemaError(message)
    schema = _metadata(file).get(_SCHEMA)
    if schema is None:
        message = "the header of the file has no schema"
        raise AvroSchemaError(message)
    return avro_type(schema.decode("utf-8", "replace"), _IN_FILES)


def _metadata(file: BinaryIO) -> dict[bytes, bytes]:
    """Returns the metadata of a file: a map in blocks, the last of which is empty."""
    found = {}
    while (count := _long(file)) != 0:
        if count < 0:  # the number of bytes follows
            count = -count
            _long(file)
        for _ in range(count):
            key = _bytes(file)
            found[key] = _bytes(file)
    return found


def _bytes(file: BinaryIO) -> bytes:
    size = _long(file)
    read = file.read(size) if size >= 0 else b""
    if len(read) != size:
        message = "the header of the file is cut off"
        raise AvroSchemaError(message)
    return read


def _long(file: BinaryIO) -> int:
    """Returns a number: zigzag, in seven bits a byte, the lowest first."""
    number = 0
    for position in range(_LONGEST):
        byte = file.read(1)
        if not byte:
            break
        number |= (byte[0] & 0x7F) << (7 * position)
        if not byte[0] & 0x80:
            return (number >> 1) ^ -(number & 1)
    message = "the header of the file is cut off"
    raise AvroSchemaError(message)


@dataclass
class _Converter:
    """Converts one schema; `_known` are its named types by full name, `_open` those around the current type."""

    _logical: Mapping[tuple[str, str], DataType]
    _known: dict[str, DataType] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)

    def convert(self, schema: object, namespace: str) -> DataType:
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if not isinstance(schema, dict):
            message = f"`{json.dumps(schema)}` is not a type"
            raise AvroSchemaError(message)
        kind = schema.get("type")
        if isinstance(kind, dict | list):
            return self.convert(kind, namespace)
        if kind in NAMED:
            return self._named(schema, kind, namespace)
        if kind == "array":
            return Array(self.convert(schema.get("items"), namespace))
        if kind == "map":
            return Map(Primitive("string"), self.convert(schema.get("values"), namespace))
        if kind == "bytes" and schema.get("logicalType") == "decimal":
            return _decimal(schema)
        logical = self._logical.get((str(kind), str(schema.get("logicalType"))))
        return logical or self._by_name(str(kind), namespace)

    def _by_name(self, name: str, namespace: str) -> DataType:
        if name in PRIMITIVES:
            return Primitive(PRIMITIVES[name])
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self._open:
            message = f"the record `{full}` contains itself, which Spark cannot read"
            raise AvroSchemaError(message)
        found = self._known.get(full, self._known.get(name))
        if found is None:
            message = f"`{name}` is not a type of Avro, and the schema does not define it"
            raise AvroSchemaError(message)
        return found

    def _named(self, schema: Mapping[str, Any], kind: str, namespace: str) -> DataType:
        full, inner = full_name(schema, namespace)
        self._open.add(full)
        found = self._record(schema, inner) if kind == "record" else _leaf(schema, kind)
        self._open.discard(full)
        self._known[full] = found
        return found

    def _record(self, schema: Mapping[str, Any], namespace: str) -> DataType:
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(each, dict) for each in fields):
            message = f"the record `{schema.get('name')}` has no list of fields"
            raise AvroSchemaError(message)
        return Struct(tuple(Field(str(each.get("name")), self.convert(each.get("type"), namespace)) for each in fields))

    def _union(self, branches: list[object], namespace: str) -> DataType:
        others = [branch for branch in branches if branch != "null"]
        types = [self.convert(branch, namespace) for branch in others]
        if len(types) == 1:
            return types[0]
        names = {str(kind) for kind in types}
        for pair, wider in (({"int", "bigint"}, "bigint"), ({"float", "double"}, "double")):
            if names == pair:
                return Primitive(wider)
        if not types:
            return Primitive("void")
        return Struct(tuple(Field(f"member{at}", kind) for at, kind in enumerate(types)))


def full_name(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """Returns the full name of a named type, and the namespace of the types within it."""
    name = str(schema.get("name", ""))
    inner = name.rpartition(".")[0] or str(schema.get("namespace", namespace))
    return (name if "." in name or not inner else f"{inner}.{name}"), inner


def _leaf(schema: Mapping[str, Any], kind: str) -> DataType:
    if kind == "enum":
        return Primitive("string")
    return _decimal(schema) if schema.get("logicalType") == "decimal" else Primitive("binary")


def _decimal(schema: Mapping[str, Any]) -> DataType:
    if int(schema.get("precision", 10)) > _MOST_DIGITS:
        message = f"it has a decimal of {schema['precision']} digits, and Spark's have at most {_MOST_DIGITS}"
        raise AvroSchemaError(message)
    return Decimal(int(schema.get("precision", 10)), int(schema.get("scale", 0)))


# The Avro schemas of a registry that are pinned in the project: one JSON file for each subject.
#
# https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format: a
# message begins with a zero byte and the id of its writer's schema as four bytes, most significant first.

FOLDER = "registry"
"""The folder of the files, in the project."""


@dataclass(frozen=True)
class PinnedSchema:
    """One version of a subject: its number, the id in the registry, and the schema as JSON."""

    version: int
    id: int
    schema: str


@dataclass(frozen=True)
class AvroSchemas:
    """The schemas of keys or values. `reader` gives the columns. `writers` are the schemas by id, empty for messages
    without ids, which are written with `reader`. `path` is the file of the project with the schemas.
    """

    reader: str
    writers: Mapping[int, str]
    path: str


def pinned_path(subject: str) -> str:
    """Returns the path of a subject's file in the project."""
    return f"{FOLDER}/{quote(subject, safe='')}.json"


def pinned_text(subject: str, versions: Sequence[PinnedSchema]) -> str:
    """Returns the text of a subject's file, in the order of the versions, so that a diff shows only what is new."""
    listed = [
        {"version": each.version, "id": each.id, "schema": json.loads(each.schema)}
        for each in sorted(versions, key=lambda each: each.version)
    ]
    return json.dumps({"subject": subject, "versions": listed}, indent=2, ensure_ascii=False) + "\n"


def pinned_versions(text: str) -> list[PinnedSchema]:
    """Returns the versions in a subject's file. Raises: AvroSchemaError."""
    try:
        versions = json.loads(text)["versions"]
        return [PinnedSchema(int(each["version"]), int(each["id"]), json.dumps(each["schema"])) for each in versions]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"it is not a file of `sqlstream source schema`: {type(error).__name__} {error}"
        raise AvroSchemaError(message) from error


def read_pinned(text: str, path: str) -> AvroSchemas:
    """Returns the schemas of a subject's file; its newest version is the reader's. Raises: AvroSchemaError."""
    found = pinned_versions(text)
    if not found:
        message = "it has no versions"
        raise AvroSchemaError(message)
    newest = max(found, key=lambda each: each.version)
    avro_type(newest.schema)
    return AvroSchemas(newest.schema, {each.id: each.schema for each in found}, path)
