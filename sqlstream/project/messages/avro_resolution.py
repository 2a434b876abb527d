"""What a reader's Avro schema makes of the records of a writer with other logical types.

https://avro.apache.org/docs/1.12.0/specification/#schema-resolution: Avro resolves types without a look at logical
types. A number of milliseconds would become one of microseconds, and the unscaled value of a decimal would get another
scale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sqlstream.project.messages.avro import LOGICAL, NAMED, decimal_of, full_name

_TIME = re.compile(r"(|local-)timestamp-(millis|micros)")
_TIMES_OF_DAY = {("int", "time-millis"), ("long", "time-micros")}
_PROMOTED = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""The types of a writer that Avro reads as another one."""


def read_as(reader: str, writer: str) -> tuple[str, str | None]:
    """Returns the reader's schema for records of `writer`, in which times have the writer's unit, and which field it
    would misread: `price` is decimal(10,3), and would be read as decimal(10,2). None if there is no such field.
    """
    read, written = json.loads(reader), json.loads(writer)
    resolution = _Resolution(_named_types(read), _named_types(written))
    resolution.resolve(read, written, "")
    return json.dumps(read), next(iter(resolution.misread), None)


class _Resolution:
    """Finds the reader's logical types that are not those of the writer, and sets the units of times in its schema.
    `read` and `written` are the named types of the two schemas.
    """

    def __init__(self, read: Mapping[str, Any], written: Mapping[str, Any]) -> None:
        self.misread: list[str] = []
        self._read, self._written = read, written
        self._compared: set[tuple[str, str]] = set()

    def resolve(self, reader: Any, writer: Any, path: str) -> None:
        """Compares two types that are read and written at `path`."""
        read, written = _branches(reader, self._read), _branches(writer, self._written)
        for each in written:
            # Avro takes the first branch of the same type, or else the first that can hold the values
            same = [known for known in read if _kind(known) == _kind(each)]
            for known in (same or [known for known in read if _kind(each) in _PROMOTED.get(_kind(known), ())])[:1]:
                self._resolve_type(known, each, path)

    def _resolve_type(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> None:
        if "fields" in reader and "fields" in writer:  # a record can contain itself
            names = str(reader.get("name")), str(writer.get("name"))
            if names in self._compared:
                return
            self._compared.add(names)
        for part in ("items", "values"):
            if part in reader and part in writer:
                self.resolve(reader[part], writer[part], f"{path}[]")
        fields = {each.get("name"): each for each in writer.get("fields") or ()}
        for each in reader.get("fields") or ():
            names = (each.get("name"), *each.get("aliases", ()))
            found = next((fields[name] for name in names if name in fields), None)
            if found is not None:
                self.resolve(each.get("type"), found.get("type"), f"{path}.{each['name']}" if path else each["name"])
        self._compare(reader, writer, path)

    def _compare(self, reader: dict[str, Any], writer: dict[str, Any], path: str) -> None:
        one, other = _logical(reader), _logical(writer)
        if one is None or other is None or one == other:
            return
        time, written_time = _TIME.fullmatch(one), _TIME.fullmatch(other)
        if time is not None and written_time is not None:
            reader["logicalType"] = f"{time[1]}timestamp-{written_time[2]}"
        elif not (one.startswith("decimal") and other.startswith("decimal") and _scale(one) == _scale(other)):
            self.misread.append(f"`{path}` is {other}, and would be read as {one}")


def _named_types(schema: Any, namespace: str = "") -> dict[str, Any]:
    """Returns the named types within a schema, by their full name and by the last part of it."""
    found: dict[str, Any] = {}
    parts = schema if isinstance(schema, list) else []
    if isinstance(schema, dict):
        if schema.get("type") in NAMED:
            full, namespace = full_name(schema, namespace)
            found = {full: schema, full.rpartition(".")[2]: schema}
        parts = [each.get("type") for each in schema.get("fields") or () if isinstance(each, dict)]
        parts += [schema.get(part) for part in ("items", "values", "type")]
    for part in parts:
        found = {**_named_types(part, namespace), **found}
    return found


def _branches(schema: Any, names: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the types other than null in a schema, which can be a union."""
    if isinstance(schema, list):
        return [branch for each in schema for branch in _branches(each, names)]
    if isinstance(schema, str):
        return [] if schema == "null" else [names.get(schema, {"type": schema})]
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type")
    if isinstance(kind, dict | list) or kind in names or kind == "null":
        return _branches(kind, names)
    return [schema]


def _kind(schema: Mapping[str, Any]) -> str:
    return str(schema.get("type"))


def _scale(decimal: str) -> str:
    return decimal.rpartition(",")[2]


def _logical(schema: Mapping[str, Any]) -> str | None:
    """Returns a logical type that changes the meaning of a value: decimal(10,2), timestamp-millis, date."""
    kind, logical = _kind(schema), schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        found = decimal_of(schema)
        return f"decimal({found.precision},{found.scale})"
    return str(logical) if (kind, logical) in (*LOGICAL, *_TIMES_OF_DAY) else None
