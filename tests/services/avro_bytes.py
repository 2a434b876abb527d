"""Avro's binary encoding, files of it, and messages in the wire format of a schema registry.

https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import json
import struct
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

_MARKER = bytes(range(16))
_EPOCH = date(1970, 1, 1)
_NAMES = {"int32": "int", "int64": "long", "float": "float", "double": "double", "string": "string", "bool": "boolean"}


def avro_long(number: int) -> bytes:
    """Returns a long: zigzag, then seven bits a byte, the lowest first."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def avro_string(text: str) -> bytes:
    """Returns a string: its length in bytes, then UTF-8."""
    return avro_long(len(text.encode())) + text.encode()


def avro_double(number: float) -> bytes:
    """Returns a double."""
    return struct.pack("<d", number)


def framed(schema_id: int, body: bytes) -> bytes:
    """Returns a message: a zero byte, the id of the schema, the record."""
    return b"\0" + struct.pack(">I", schema_id) + body


def avro_schema(kind: pa.DataType, name: str) -> dict[str, Any]:
    """Returns the schema of a type of Arrow, in which all fields and items can be null. Records are named after `name`
    and their path.
    """
    if pa.types.is_struct(kind):
        fields = [{"name": field.name, **_nullable(field.type, f"{name}_{field.name}")} for field in kind]
        return {"type": "record", "name": name, "fields": [{**field, "default": None} for field in fields]}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _nullable(kind.value_type, f"{name}_item")["type"]}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-millis" if kind.unit == "ms" else "timestamp-micros"}
    return {"type": "int", "logicalType": "date"} if pa.types.is_date(kind) else {"type": _NAMES[str(kind)]}


def _nullable(kind: pa.DataType, name: str) -> dict[str, Any]:
    return {"type": ["null", avro_schema(kind, name)]}


def avro_value(value: Any, kind: pa.DataType) -> bytes:
    """Returns a value of a type of Arrow in the encoding of its `avro_schema`."""
    if pa.types.is_struct(kind):
        return b"".join(_optional(value.get(field.name), field.type) for field in kind)
    if pa.types.is_list(kind):
        items = b"".join(_optional(item, kind.value_type) for item in value)
        return (avro_long(len(value)) + items if value else b"") + avro_long(0)
    if isinstance(value, Decimal):
        number = int(value.scaleb(kind.scale))
        size = number.bit_length() // 8 + 1
        return avro_long(size) + number.to_bytes(size, "big", signed=True)
    if isinstance(value, datetime):
        return avro_long(round(value.timestamp() * (1_000 if kind.unit == "ms" else 1_000_000)))
    if isinstance(value, date):
        return avro_long((value - _EPOCH).days)
    if isinstance(value, bool):
        return bytes([value])
    if pa.types.is_floating(kind):
        return struct.pack("<f" if str(kind) == "float" else "<d", value)
    return avro_string(value) if isinstance(value, str) else avro_long(value)


def _optional(value: Any, kind: pa.DataType) -> bytes:
    return avro_long(0) if value is None else avro_long(1) + avro_value(value, kind)


def avro_file(schema: dict[str, Any], record: bytes) -> bytes:
    """Returns a file with one record: its header, and a block with the number of records and their length."""
    text = json.dumps(schema).encode()
    header = avro_long(1) + avro_string("avro.schema") + avro_long(len(text)) + text + avro_long(0)
    return b"Obj\x01" + header + _MARKER + avro_long(1) + avro_long(len(record)) + record + _MARKER
