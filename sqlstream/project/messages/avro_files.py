"""The schema of an Avro file, from its header: https://avro.apache.org/docs/1.12.0/specification/#object-container-files."""

from __future__ import annotations

from typing import BinaryIO

from sqlstream.project.messages.avro import LOGICAL, AvroSchemaError, avro_type
from sqlstream.project.types.data_types import MICROS, DataType, Primitive

_MAGIC = b"Obj\x01"

_SCHEMA = b"avro.schema"

_LONGEST = 10
"""The most bytes of a number."""

_IN_FILES = {
    **LOGICAL,
    ("long", "timestamp-micros"): Primitive("timestamp", MICROS),
    ("long", "local-timestamp-micros"): Primitive("timestamp_ntz", MICROS),
}


def file_type(file: BinaryIO) -> DataType:
    """Returns the type of the rows of an Avro file, with `MICROS` as the parameters of times in microseconds.

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
