"""The columns of source formats that have the same ones always, whatever is read."""

from __future__ import annotations

from sqlstream.project.values import SourceTable

BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"
"""What Spark gives of each file (`BinaryFileFormat.schema`). A stream of them starts with exactly this declared."""

_TICKS = "timestamp timestamp, value bigint"

_MESSAGES = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)

_COLUMNS = {
    "binaryFile": BINARY_FILE,
    "kafka": _MESSAGES,
    "rate": _TICKS,
    "rate-micro-batch": _TICKS,
    "socket": "value string",
    "text": "value string",
}


def fixed_columns(table: SourceTable) -> str | None:
    """Returns the columns of `table` as Spark DDL where its format alone decides on them, else None."""
    columns = _COLUMNS.get(table.format)
    option, more = _OPTIONAL.get(table.format, ("", ""))
    return f"{columns}, {more}" if columns and _is_on(table, option) else columns


_OPTIONAL = {
    "kafka": ("includeHeaders", "headers array<struct<key: string, value: binary>>"),
    "socket": ("includeTimestamp", "timestamp timestamp"),
}
"""Options that add columns, by format, with those columns."""


def _is_on(table: SourceTable, option: str) -> bool:
    given = (str(value) for name, value in table.options.items() if name.lower() == option.lower())
    return any(value.lower() == "true" for value in given)
