"""The columns of source formats that have the same ones always, whatever is read."""

from __future__ import annotations

from sqlstream.project.values import SourceTable

BINARY_FILE = "path string, modificationTime timestamp, length bigint, content binary"
"""What Spark gives of each file (`BinaryFileFormat.schema`). A stream of them starts with exactly this declared."""

_TICKS = "timestamp timestamp, value bigint"

_COLUMNS = {
    "binaryfile": BINARY_FILE,
    "rate": _TICKS,
    "rate-micro-batch": _TICKS,
    "socket": "value string",
    "text": "value string",
}


def fixed_columns(table: SourceTable) -> str | None:
    """Returns the columns of `table` as Spark DDL where its format alone decides on them, else None."""
    columns = _COLUMNS.get(table.format.lower())
    if columns and table.format.lower() == "socket" and _has_timestamp(table):
        return f"{columns}, timestamp timestamp"
    return columns


def _has_timestamp(table: SourceTable) -> bool:
    return any(name.lower() == "includetimestamp" and str(value) == "true" for name, value in table.options.items())
