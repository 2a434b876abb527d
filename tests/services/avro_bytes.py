"""Avro's binary encoding of a few types, and messages in the wire format of a schema registry."""

from __future__ import annotations

import struct


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
