"""What a reader's Avro schema makes of the records of a writer with other logical types.

https://avro.apache.org/docs/1.12.0/specification/#schema-resolution: Avro resolves types without a look at logical
types. A number of milliseconds would become one of microseconds, and the unscaled value of a decimal would get another
scale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlstream.project.messages.avro import LOGICAL, NAMED, full_name

_TIME = re.compile(r"(|local-)timestamp-(millis|micros)")
_DECIMAL = re.compile(r"decimal\(\d+,(\d+)\)")
_OTHERS = (("int", "time-millis"), ("long", "timestamp-nanos"), ("long", "local-timestamp-nanos"))
"""Logical types that change the meaning of a number, beside those that Spark reads."""

_PROMOTED = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""The types of a writer that Avro reads as another one."""


def read_as(reader: str, writer: str) -> tuple[str, dict[str, str]]:
    """Returns the reader's schema for records of `writer`, in which times have the writer's unit, and what it would
    misread, by the field of the record: `price` is decimal(10,3), and would be read as decimal(10,2). A value that is
    no record has the name "".
    """
    if reader == writer:
        return reader, {}
    read, written = json.loads(reader), json.loads(writer)
    resolution = _Resolution(_named_types(read, ""), _named_types(written, ""))
    resolution.resolve(_Type(read, ""), _Type(written, ""), "")
    return json.dumps(read), resolution.misread


@dataclass(frozen=True)
class _Type:
    """A schema, and the namespace in which its names are."""

    schema: Any
    namespace: str

    @property
    def kind(self) -> str:
        """The name of the type, without that of a record, an enum or a fixed type."""
        return str(self.schema.get("type"))

    @property
    def name(self) -> str | None:
        """The full name of a record, an enum or a fixed type."""
        return full_name(self.schema, self.namespace)[0] if self.kind in NAMED else None

    def part(self, schema: Any) -> _Type:
        """Returns a type within this one."""
        return _Type(schema, full_name(self.schema, self.namespace)[1] if self.kind in NAMED else self.namespace)


class _Resolution:
    """Finds the reader's logical types that are not those of the writer, and sets the units of times in its schema.
    `read` and `written` are the named types of the two schemas.
    """

    def __init__(self, read: Mapping[str, _Type], written: Mapping[str, _Type]) -> None:
        self.misread: dict[str, str] = {}
        self._read, self._written = read, written
        self._compared: set[tuple[str | None, str | None]] = set()
        self._units: dict[int, str] = {}

    def resolve(self, reader: _Type, writer: _Type, path: str) -> None:
        """Compares two types that are read and written at `path`."""
        read, written = _branches(reader, self._read), _branches(writer, self._written)
        for each in written:
            known = _branch_for(each, read)
            if known is not None:
                self._resolve_type(known, each, path)

    def _resolve_type(self, reader: _Type, writer: _Type, path: str) -> None:
        if reader.kind == writer.kind == "record":  # a record can contain itself
            names = reader.name, writer.name
            if names in self._compared:
                return
            self._compared.add(names)
        for part in ("items", "values"):
            if part in reader.schema and part in writer.schema:
                self.resolve(reader.part(reader.schema[part]), writer.part(writer.schema[part]), f"{path}[]")
        fields = {each.get("name"): each for each in writer.schema.get("fields") or ()}
        for each in reader.schema.get("fields") or ():
            names_of_field = (each.get("name"), *each.get("aliases", ()))
            found = next((fields[name] for name in names_of_field if name in fields), None)
            if found is not None:
                inner = f"{path}.{each['name']}" if path else each["name"]
                self.resolve(reader.part(each.get("type")), writer.part(found.get("type")), inner)
        self._compare(reader, writer, path)

    def _compare(self, reader: _Type, writer: _Type, path: str) -> None:
        unit = _written_unit(reader, writer)
        # a named type of the reader can have the values of several types of the writer
        if unit is not None and self._units.setdefault(id(reader.schema), unit) == unit:
            reader.schema["logicalType"] = unit
        elif unit is not None or not _means_the_same(reader, writer):
            was, now = (_logical(each) or each.kind for each in (writer, reader))
            field = re.split(r"[.\[]", path)[0]
            self.misread.setdefault(field, f"`{path or 'value'}` is {was}, and would be read as {now}")


def _written_unit(reader: _Type, writer: _Type) -> str | None:
    """Returns the reader's logical type of a time with the unit of the writer; None if they are not times."""
    time, written = _TIME.fullmatch(_logical(reader) or ""), _TIME.fullmatch(_logical(writer) or "")
    return None if time is None or written is None else f"{time[1]}timestamp-{written[2]}"


def _means_the_same(reader: _Type, writer: _Type) -> bool:
    """Returns whether a value of the writer has the same meaning for the reader, who may take a number as it is."""
    read, written = _logical(reader), _logical(writer)
    if {reader.kind, writer.kind} == {"string", "bytes"}:
        return read is None and written is None
    scales = [_DECIMAL.fullmatch(each or "") for each in (read, written)]
    if scales[0] is not None and scales[1] is not None:
        return scales[0][1] == scales[1][1]
    return read is None or written is None or read == written


def _branch_for(writer: _Type, read: list[_Type]) -> _Type | None:
    """Returns the type of the reader's union `read` as which Avro reads values of `writer`: one of the same name, of
    the same type, or the first that can hold the values.
    """
    same = [known for known in read if known.kind == writer.kind]
    if writer.name is not None:
        short = writer.name.rpartition(".")[2]
        by_name = [known for known in same if known.name == writer.name]
        same = by_name or [known for known in same if (known.name or "").rpartition(".")[2] == short] or same
    promoted = [known for known in read if writer.kind in _PROMOTED.get(known.kind, ())]
    return next(iter((*same, *promoted)), None)


def _named_types(schema: Any, namespace: str) -> dict[str, _Type]:
    """Returns the named types within a schema, by their full names."""
    found: dict[str, _Type] = {}
    parts = schema if isinstance(schema, list) else []
    if isinstance(schema, dict):
        if schema.get("type") in NAMED:
            full, inner = full_name(schema, namespace)
            found, namespace = {full: _Type(schema, namespace)}, inner
        parts = [each.get("type") for each in schema.get("fields") or () if isinstance(each, dict)]
        parts += [schema.get(part) for part in ("items", "values", "type")]
    for part in parts:
        found = {**_named_types(part, namespace), **found}
    return found


def _branches(given: _Type, names: Mapping[str, _Type]) -> list[_Type]:
    """Returns the types other than null in a schema, which can be a union."""
    schema, namespace = given.schema, given.namespace
    if isinstance(schema, list):
        return [branch for each in schema for branch in _branches(_Type(each, namespace), names)]
    if isinstance(schema, str):
        known = names.get(f"{namespace}.{schema}" if namespace and "." not in schema else schema, names.get(schema))
        return [] if schema == "null" else [known or _Type({"type": schema}, namespace)]
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type")
    is_name = (
        isinstance(kind, str) and kind not in NAMED and kind not in ("array", "map") and "logicalType" not in schema
    )
    return _branches(_Type(kind, namespace), names) if is_name or isinstance(kind, dict | list) else [given]


def _logical(given: _Type) -> str | None:
    """Returns a logical type that changes the meaning of a value: decimal(10,2), timestamp-millis, date."""
    logical = given.schema.get("logicalType")
    if logical == "decimal" and given.kind in ("bytes", "fixed"):
        return f"decimal({given.schema.get('precision')},{given.schema.get('scale', 0)})"
    return str(logical) if (given.kind, logical) in (*LOGICAL, *_OTHERS) else None
